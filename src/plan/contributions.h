/* How many contributions the operands of each reduction hold: what an average must know (kernel/mean.h), since a step
 * sees only bits. Found by executing the plan on numbers of contributions instead of data. */
#ifndef PCCL_PLAN_CONTRIBUTIONS_H
#define PCCL_PLAN_CONTRIBUTIONS_H

#include <polyccl/plan.h>

typedef struct pccl_contributions {
  size_t *first; /* [steps + 1] where a step's chunks begin in a and b; only steps that reduce have any */
  /* Of the step's operands, in the order of docs/plan.md (rrc: src, msg; reduce: dst, src), by chunk. They stop at
   * PCCL_MAX_CONTRIBUTIONS. */
  uint32_t *a, *b;
  bool uniform; /* the chunks of every step are alike */
} pccl_contributions;

enum { PCCL_MAX_CONTRIBUTIONS = 0x7fffffff };

/* The plan must be right (polyccl_plan_verify()) and its collective not custom. MEMORY is the only error. */
polyccl_result pccl_contributions_find(const polyccl_plan *plan, pccl_contributions *contributions);
void pccl_contributions_free(pccl_contributions *contributions);

/* a[i] and b[i] together are what all ranks give. */
static inline bool pccl_contributions_complete(const polyccl_plan *plan, const pccl_contributions *c, size_t i) {
  return c->a[i] + c->b[i] == (uint32_t)plan->ranks;
}

#endif
