/* Marks for messages by reference (docs/plan.md, By reference). */
#ifndef PCCL_PLAN_REFERENCE_H
#define PCCL_PLAN_REFERENCE_H

#include <polyccl/plan.h>

/* References are for ranks that share a machine; marks of larger plans would cost more than they are worth. */
enum { PCCL_REFERENCE_MAX_STEPS = 1 << 16, PCCL_REFERENCE_MAX_RANKS = 128 };

/* Sets get and put wherever they are right, replacing what marks there were; nothing on plans beyond the limits. The
 * plan must be right but for its marks. */
polyccl_result pccl_plan_mark_references(polyccl_plan *plan);

#endif
