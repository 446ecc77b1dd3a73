/* The route of one chunk through a plan: which ranks hold it or a part of it, in which order, by which steps. */
#ifndef PCCL_VIEW_ROUTE_H
#define PCCL_VIEW_ROUTE_H

#include <polyccl/plan.h>

#include "base/vec.h"
#include "view/schedule.h"

/* A place where the chunk was: a rank's own data before the start (step -1), or what a step wrote or sent on. */
typedef struct pccl_route_stop {
  int32_t rank, step; /* step: index into the plan's steps, or -1 */
  int32_t column;     /* from left to right */
  bool reduces;       /* adds what was there */
  bool stays;         /* is in the rank's output at the end */
} pccl_route_stop;

typedef struct pccl_leg {
  int32_t from, to; /* stops */
  bool message;     /* between ranks */
} pccl_leg;

typedef struct pccl_route {
  PCCL_VEC(pccl_route_stop) stops; /* in the plan's order: legs lead to later stops */
  PCCL_VEC(pccl_leg) legs;
  int32_t columns;
} pccl_route;

/* `chunk` counts in the larger buffer: output chunk, or input chunk where the input is larger. Data that was reduced
 * with the chunk counts as the chunk. INVALID: out of range, or no such plan (pccl_schedule_make). */
polyccl_result pccl_route_find(const polyccl_plan *plan, const pccl_schedule *schedule, int chunk, pccl_route *route);
void pccl_route_free(pccl_route *route);

#endif
