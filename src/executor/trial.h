/* By slot or by copy: the receiver of a connection finds out which is quicker and asks the sender for it.
 *
 * The kernel copies quickly what lies in caches unchanged since it was last read, and slowly what the sender has just
 * written (docs/executor.md, By copy). Only the receiver sees the difference, as time. So for each class of sizes it
 * times a few messages by slot and a few by copy, asks for the quicker way for many messages, and tries again. Another
 * prepared plan begins anew, by slot. The sender need not follow: the note in the slot says how a message goes. */
#ifndef PCCL_EXECUTOR_TRIAL_H
#define PCCL_EXECUTOR_TRIAL_H

#include "executor/plans.h"

/* Smaller messages go by slot: a system call costs as much as they do. */
enum { PCCL_MIN_COPY_BYTES = 16 << 10, PCCL_MIN_COPY_LOG2 = 14 };

static inline unsigned size_class(size_t bytes) {
  unsigned log2 = 63 - (unsigned)__builtin_clzll((unsigned long long)bytes);
  return log2 - PCCL_MIN_COPY_LOG2 < PCCL_SIZE_CLASSES ? log2 - PCCL_MIN_COPY_LOG2 : PCCL_SIZE_CLASSES - 1;
}

/* The receiver asks for messages of `bytes` bytes by copy. */
static inline bool wants_copy(const pccl_end *end, size_t bytes) {
  return bytes >= PCCL_MIN_COPY_BYTES && end->copies != NULL &&
         (atomic_load_explicit(end->copies, memory_order_relaxed) >> size_class(bytes) & 1) != 0;
}

/* The trial that a message takes part in; NULL: none. */
static inline pccl_trial *find_trial(const pccl_prepared_step *step, pccl_way way, size_t bytes) {
  return step->may_fetch && step->recv->tries_copies && bytes >= PCCL_MIN_COPY_BYTES &&
                 (way == PCCL_BY_SLOT || way == PCCL_BY_COPY)
             ? &step->recv->trial[size_class(bytes)]
             : NULL;
}

static inline bool is_timed(const pccl_trial *trial) {
  return trial->phase == PCCL_TRIAL_FIRST || trial->phase == PCCL_TRIAL_SECOND;
}

/* A message has been moved, in `ns` if it was timed. */
void pccl_trial_note(pccl_end *end, pccl_trial *trial, const pccl_prepared *p, bool by_copy, size_t bytes, uint64_t ns);

#endif
