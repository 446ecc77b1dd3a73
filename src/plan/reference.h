/* Marks for messages by reference (docs/plan.md, By reference). */
#ifndef PCCL_PLAN_REFERENCE_H
#define PCCL_PLAN_REFERENCE_H

#include <polyccl/plan.h>

/* Only ranks that share a machine can use references; larger plans get no marks, since finding them takes long. */
enum { PCCL_REFERENCE_MAX_STEPS = 1 << 16, PCCL_REFERENCE_MAX_RANKS = 128 };

/* Sets get and put wherever they are right, and removes all other marks. Does nothing to plans beyond the limits. The
 * plan must be right except for its marks. Errors: those of the verifier. */
polyccl_result pccl_plan_mark_references(polyccl_plan *plan);

#endif
