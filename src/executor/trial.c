#include "executor/trial.h"

/* The least of some messages counts, since what disturbs only makes them slower. There are more of them than a call
 * has, so that a buffer that calls read again and again counts as it then is. By slot the sender copies, too, which the
 * receiver does not see: that counts as half of what it sees. bench/peers/bench_polyccl measures. */
enum { WARM_MESSAGES = 4, TIMED_MESSAGES = 16, MESSAGES_BETWEEN = 500 };

static void ask(pccl_end *end, pccl_trial *trial, bool by_copy) {
  uint32_t bit = (uint32_t)1 << (trial - end->trial), wanted = atomic_load_explicit(end->copies, memory_order_relaxed);
  trial->by_copy = by_copy;
  atomic_store_explicit(end->copies, by_copy ? wanted | bit : wanted & ~bit, memory_order_relaxed);
}

static void enter(pccl_trial *trial, pccl_trial_phase phase) {
  trial->phase = (uint8_t)phase;
  trial->messages = 0;
}

void pccl_trial_note(pccl_end *end, pccl_trial *trial, const pccl_prepared *p, bool by_copy, size_t bytes,
                     uint64_t ns) {
  static const uint16_t lasts[] = {WARM_MESSAGES, TIMED_MESSAGES, TIMED_MESSAGES, MESSAGES_BETWEEN};
  if (trial->of != p) {
    trial->of = p;
    ask(end, trial, false);
    enter(trial, PCCL_TRIAL_WARM);
  }
  if (by_copy != (trial->by_copy != 0)) {
    return; /* the sender does not follow, or does not know yet */
  }
  if (is_timed(trial)) {
    uint64_t cost = (ns << 20) / bytes;
    uint32_t least = cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;
    if (trial->messages == 0 || least < trial->cost[by_copy]) {
      trial->cost[by_copy] = least;
    }
  }
  if (++trial->messages < lasts[trial->phase]) {
    return;
  }
  switch (trial->phase) {
    case PCCL_TRIAL_FIRST:
      ask(end, trial, !by_copy);
      enter(trial, PCCL_TRIAL_SECOND);
      break;
    case PCCL_TRIAL_SECOND:
      ask(end, trial, trial->cost[1] / 3 < trial->cost[0] / 2);
      enter(trial, PCCL_TRIAL_DONE);
      break;
    default: enter(trial, PCCL_TRIAL_FIRST); break;
  }
}
