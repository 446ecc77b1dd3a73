/* Plans as generated code: a shared object that `polyccl build --target c` and a C compiler made. It replaces the
 * executor's loop over prepared steps; rings, waiting and failures are the executor's own. */
#ifndef PCCL_EXECUTOR_GENERATED_H
#define PCCL_EXECUTOR_GENERATED_H

#include "executor/execute.h"
#include "kernel/moves.h"

/* Belongs to the loaded plan and does not change. */
typedef struct pccl_generated_code {
  void *library;
  const pccl_k_function *function; /* [thread blocks] of this rank */
  pccl_link *send, *recv;          /* the rank's connections by the generated numbers */
  uint32_t sends, receives;
} pccl_generated_code;

/* A call's state: part of the executor's lease. */
typedef struct pccl_generated_run {
  const pccl_generated_code *code;
  pccl_end **send, **recv; /* the executor's ends */
  pccl_k_end *k_send, *k_recv;
  pccl_k_block *block; /* [thread blocks] */
  pccl_k_call call;
  bool open; /* the rings have this call's geometry */
} pccl_generated_run;

/* Attaches the code in the file at `path` to the loaded plan. INVALID: it is not for this plan. */
polyccl_result pccl_generated_attach(const polyccl_plan *plan, int rank, const char *path, pccl_loaded *loaded);
void pccl_generated_free(pccl_generated_code *code);

polyccl_result pccl_generated_begin(pccl_execution *execution);
/* Runs every thread block as far as it goes; true: something moved. Leaves the positions in the execution's states, for
 * messages. */
bool pccl_generated_round(pccl_execution *execution);
void pccl_generated_run_free(pccl_generated_run *run);

#endif
