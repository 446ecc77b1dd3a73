/* Plans as generated code: a shared object that `polyccl build --target c` and a C compiler made. It replaces the
 * executor's loop over prepared steps; rings, waiting and failures are the executor's own. */
#ifndef PCCL_RUNTIME_GENERATED_H
#define PCCL_RUNTIME_GENERATED_H

#include "kernel/moves.h"
#include "runtime/execute.h"

typedef struct pccl_generated_code {
  void *library;
  const pccl_k_function *function; /* [thread blocks] of this rank */
  pccl_end **send, **recv;         /* the executor's ends by the generated numbers */
  uint32_t sends, receives;
  pccl_k_end *k_send, *k_recv; /* theirs while a call runs */
  pccl_k_block *block;         /* [thread blocks] */
  pccl_k_call call;
  bool open; /* the rings have this call's geometry */
} pccl_generated_code;

/* Attaches the code in the file at `path` to the loaded plan. INVALID: it is not for this plan. */
polyccl_result pccl_generated_attach(polyccl_comm *comm, const polyccl_plan *plan, const char *path,
                                     pccl_loaded *loaded);
void pccl_generated_free(pccl_generated_code *code);

/* Begins a call. */
void pccl_generated_begin(pccl_generated_code *code, const pccl_prepared *prepared, char *const *buffers);

/* Runs every thread block as far as it goes; true: something moved. *running: thread blocks not ended. Leaves the
 * positions in prepared->state, for messages. */
bool pccl_generated_round(polyccl_comm *comm, pccl_generated_code *code, const pccl_prepared *prepared,
                          uint32_t *running);

#endif
