/* What a rank does where its buffers are not as the plan wants them. All ranks of a call run the same plan, and each
 * may have its input and output in one memory or apart, so a plan must run with either:
 *
 *   plan out of place, buffers in place   as it is where the plan is alias-safe (plan/alias.h); else with a copy of
 *                                         the input
 *   plan in place, buffers apart          in the output, into which the input is copied first; in memory of its own
 *                                         where the input is the larger buffer, from which the result is copied out
 *
 * A rank that gives or takes nothing, but is on the way, gets memory for it. */
#ifndef PCCL_RUNTIME_PLACEMENT_H
#define PCCL_RUNTIME_PLACEMENT_H

#include "executor/plans.h"

/* Memory for the copies of one call; a communicator keeps the last one for the next call. */
typedef struct pccl_stage {
  void *memory; /* of polyccl_mem_alloc(), so that other ranks can address it */
  size_t bytes;
} pccl_stage;

typedef struct pccl_stage_pool {
  pccl_stage *_Atomic idle; /* or NULL */
} pccl_stage_pool;

typedef struct pccl_placed_copy {
  const void *from;
  void *to;
  size_t bytes; /* 0: nothing is copied */
} pccl_placed_copy;

typedef struct pccl_placement {
  const void *send; /* what the plan runs with */
  void *recv;
  pccl_stage *stage; /* or NULL */
  pccl_placed_copy before, after;
} pccl_placement;

/* When the call is made: checks the buffers and says what it takes to run `p` on them. No byte of them is touched. The
 * caller ends the placement, whether the plan has run or not. INVALID: a buffer is missing, or the two overlap other
 * than in place. */
polyccl_result pccl_placement_make(pccl_stage_pool *pool, int rank, const pccl_prepared *p, const void *send,
                                   void *recv, pccl_placement *placement);
/* When the call begins, before the plan runs. */
void pccl_placement_begin(const pccl_placement *placement);
/* When it has ended. `ran`: the result is there. */
void pccl_placement_end(pccl_stage_pool *pool, pccl_placement *placement, bool ran);

/* Frees what is kept. No placement of the pool is left. */
void pccl_stage_pool_free(pccl_stage_pool *pool);

#endif
