/* The executor: runs a prepared plan on the calling thread, all thread blocks of the rank in turn. */
#ifndef PCCL_RUNTIME_EXECUTE_H
#define PCCL_RUNTIME_EXECUTE_H

#include "runtime/plans.h"

/* Where a thread block stands. */
typedef struct pccl_tb_state {
  uint32_t step; /* the one to run next */
  bool ended;
  uint64_t batch; /* its micro-batch */
  uint64_t done;  /* steps ended, each micro-batch counted */
  size_t arrived; /* line protocols: payload of the awaited message that has come */
  uint64_t since; /* traced: ns, when it began to wait, 0: it does not; and for what (polyccl_trace_state) */
  uint32_t reason;
} pccl_tb_state;

/* The ring may carry messages of this geometry: it has so far, or it is drained. */
bool pccl_end_ready(polyccl_protocol protocol, const pccl_prepared *p, pccl_end *end);

/* `send` and `recv` have been checked against the plan. */
polyccl_result pccl_execute(polyccl_comm *comm, pccl_prepared *prepared, const void *send, void *recv);

#endif
