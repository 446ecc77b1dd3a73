/* The library's own plans: where no loaded plan does a call, one of the shipped programs is compiled for it, once.
 * Every rank comes to the same choice, since it follows from the call and the number of ranks only. */
#ifndef PCCL_BUILTIN_BUILTIN_H
#define PCCL_BUILTIN_BUILTIN_H

#include "executor/plans.h"

typedef struct pccl_builtin_call {
  polyccl_collective collective;
  int root;       /* -1: has none */
  uint64_t bytes; /* of the larger buffer */
} pccl_builtin_call;

/* The programs that one rank of a communicator has compiled. */
typedef struct pccl_builtin_entry {
  int row, root;
  pccl_loaded *plan; /* NULL: the program has no such form */
} pccl_builtin_entry;

typedef struct pccl_builtin {
  pccl_member *member;
  size_t buffer_bytes; /* POLYCCL_BUFFER */
  PCCL_VEC(pccl_builtin_entry) entries;
} pccl_builtin;

/* NULL in *loaded: there is none. The plan belongs to `builtin`. */
polyccl_result pccl_builtin_plan(pccl_builtin *builtin, const pccl_builtin_call *call, pccl_loaded **loaded);

void pccl_builtin_free(pccl_builtin *builtin);

#endif
