/* Whether a plan that is out of place is right where a rank's input and output are one memory
 * (docs/plan.md, In place). */
#ifndef PCCL_PLAN_ALIAS_H
#define PCCL_PLAN_ALIAS_H

#include <polyccl/plan.h>

/* A mark beside those of polyccl_step: get is right also where the sender is in place. */
enum { PCCL_FLAG_GET_IN_PLACE = 1 << 7 };

typedef struct pccl_alias {
  bool safe; /* each rank may be in place or not, whatever the others are */
  /* [steps] The plan's steps with the marks that hold: put for receivers of any placement, get for senders out of
   * place, get in place for others. NULL where the plan is not safe. */
  polyccl_step *step;
} pccl_alias;

/* The plan must be right (polyccl_plan_verify()). A plan that is in place, or whose collective has no in-place form, is
 * not safe. The caller frees the result. Errors: MEMORY. */
polyccl_result pccl_alias_find(const polyccl_plan *plan, pccl_alias *alias);
void pccl_alias_free(pccl_alias *alias);

#endif
