/* The library's own plans: where no loaded plan does a call, one of the shipped programs is compiled for it, once.
 * Every rank comes to the same choice, since it follows from the call and the number of ranks only. */
#ifndef PCCL_RUNTIME_BUILTIN_H
#define PCCL_RUNTIME_BUILTIN_H

#include "runtime/plans.h"

typedef struct pccl_builtin_call {
  polyccl_collective collective;
  int root; /* -1: has none */
  bool inplace;
  uint64_t bytes; /* of the larger buffer */
} pccl_builtin_call;

/* NULL in *loaded: there is none. The plan belongs to the communicator. */
polyccl_result pccl_builtin_plan(polyccl_comm *comm, const pccl_builtin_call *call, const pccl_loaded **loaded);

void pccl_builtin_free(polyccl_comm *comm);

#endif
