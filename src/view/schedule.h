/* The order of a plan's steps without a clock. Each step has a column, the first that the order of its thread block,
 * waits and messages allow; credits do not count. The static pictures are drawn from it. */
#ifndef PCCL_VIEW_SCHEDULE_H
#define PCCL_VIEW_SCHEDULE_H

#include <polyccl/plan.h>

typedef struct pccl_schedule {
  int32_t *level;  /* [steps]: its column */
  int32_t *order;  /* [steps]: all steps, each after those that it needs */
  int32_t *sender; /* [steps]: the step that sends what it receives, or -1 */
  int32_t *block;  /* [steps]: its thread block */
  int32_t levels;
} pccl_schedule;

/* INVALID when the plan cannot end (the message names a step that never starts) or a receive has no send. */
polyccl_result pccl_schedule_make(const polyccl_plan *plan, pccl_schedule *schedule);
void pccl_schedule_free(pccl_schedule *schedule);

#endif
