/* Random changes to plans: what a defect of a compiler pass, of a reader or of an author would do. */
#ifndef PCCL_TESTS_MUTATE_H
#define PCCL_TESTS_MUTATE_H

#include <polyccl/plan.h>

/* A copy to change; NULL: no memory. */
polyccl_plan *mutation_copy(const polyccl_plan *plan);

/* Changes the plan at one place, chosen by *random (which moves on). `what` gets one line that says how. False: this
 * kind of change finds nothing to change here; the plan is as it was. */
bool mutate(polyccl_plan *plan, uint64_t *random, char *what, size_t size);

#endif
