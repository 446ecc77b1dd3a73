/* What the plan folder shares: the collective of a plan, ops as data. */
#ifndef PCCL_PLAN_PLAN_H
#define PCCL_PLAN_PLAN_H

#include <polyccl/plan.h>

#include "program/collective.h"

pccl_collective_spec pccl_plan_spec(const polyccl_plan *plan);

/* What each op uses; docs/plan.md, Steps. */
typedef struct pccl_op_traits {
  const char *name, *xml;
  bool receives, sends;
  bool reads_src, writes_dst; /* memory */
  bool reads_dst;             /* reduce */
  bool reduces;
} pccl_op_traits;

extern const pccl_op_traits pccl_ops[POLYCCL_STEP_OP_COUNT];

/* The author's place of a step; {NULL, 0} when unknown. */
polyccl_location pccl_step_location(const polyccl_plan *plan, const polyccl_step *step);

#endif
