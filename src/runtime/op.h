/* Operations: what one call, or one group of calls on one communicator, has to do.
 *
 * An operation is a list of works, done one after another: at most one exchange first (all sends and receives of a
 * group), then calls of plans in issue order. It runs when it is at the head of its communicator's queue and at the
 * head of each of its streams. Operations of the NULL stream run on the calling thread. */
#ifndef PCCL_RUNTIME_OP_H
#define PCCL_RUNTIME_OP_H

#include "executor/exchange.h"
#include "runtime/comm.h"

typedef enum pccl_work_kind { PCCL_WORK_PLAN, PCCL_WORK_EXCHANGE } pccl_work_kind;

typedef struct pccl_work {
  struct pccl_work *next;
  pccl_work_kind kind;
  pccl_claim claim; /* left on the board when the work begins; not for sends and receives (op.c) */
  bool collective;  /* all ranks make this call: it is counted and compared */
  /* PLAN: the work owns a reference. Nothing is moved when `prepared` is NULL. */
  pccl_prepared *prepared;
  const void *send;
  void *recv;
  /* EXCHANGE: the work owns the array. */
  pccl_transfer *transfer;
  size_t transfers;
  const char *name;
  /* Memory that the work needs until it has ended, or NULL; the work owns it. */
  void *stage;
} pccl_work;

/* Does the work, or queues it on the stream or in the thread's group. Takes over *work (not the struct itself), also
 * when it fails. */
polyccl_result pccl_submit(polyccl_comm *comm, polyccl_stream *stream, pccl_work *work);

#endif
