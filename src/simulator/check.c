/* Checks that the plan is well formed and fits the topology. Whether it is right is for the verifier to say. */
#include "base/error.h"
#include "plan/plan.h"
#include "simulator/machine.h"

static polyccl_result bad_step(const polyccl_plan *plan, const polyccl_thread_block *tb, int32_t step,
                               const char *what) {
  return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_step_location(plan, &plan->step[tb->step + step]),
                      "rank %d, thread block %d, step %d: %s", tb->rank, (int)(tb - plan->tb) - plan->rank[tb->rank].tb,
                      step, what);
}

static polyccl_result check_step(const polyccl_plan *plan, const polyccl_thread_block *tb, int32_t index) {
  const polyccl_step *step = &plan->step[tb->step + index];
  if (step->count < (pccl_op_moves(step->op) ? 1 : 0)) {
    return bad_step(plan, tb, index, "the count must be at least 1");
  }
  if ((step->recv >= 0 && plan->connection[step->recv].dst != tb->rank) ||
      (step->send >= 0 && plan->connection[step->send].src != tb->rank)) {
    return bad_step(plan, tb, index, "it uses a connection of another rank");
  }
  const polyccl_plan_rank *rank = &plan->rank[tb->rank];
  for (int32_t w = step->wait; w < step->wait + step->waits; w++) {
    const polyccl_wait *wait = &plan->wait[w];
    if (wait->tb >= rank->tbs || wait->step >= plan->tb[rank->tb + wait->tb].steps) {
      return bad_step(plan, tb, index, "it waits for a step that does not exist");
    }
  }
  return POLYCCL_SUCCESS;
}

/* The engine numbers all thread blocks and steps, so they must stand in order, without gaps. */
static polyccl_result check_order(const polyccl_plan *plan) {
  int32_t tb = 0;
  int64_t step = 0;
  for (int32_t r = 0; r < plan->ranks; r++) {
    if (plan->rank[r].tbs != 0 && plan->rank[r].tb != tb) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d's thread blocks do not follow those of the rank before", r);
    }
    for (int32_t t = 0; t < plan->rank[r].tbs; t++, tb++) {
      if (plan->tb[tb].step != step) {
        return pccl_fail(POLYCCL_ERROR_INVALID,
                         "rank %d, thread block %d: its steps do not follow those of the block before", r, t);
      }
      step += plan->tb[tb].steps;
    }
  }
  return (size_t)tb == plan->tbs && (uint64_t)step == plan->steps
             ? POLYCCL_SUCCESS
             : pccl_fail(POLYCCL_ERROR_INVALID,
                         "the plan has %zu thread blocks and %zu steps, but its ranks have %d and %lld", plan->tbs,
                         plan->steps, tb, (long long)step);
}

polyccl_result pccl_sim_check(const polyccl_plan *plan, const polyccl_topology *topology) {
  if (plan->tbs > INT32_MAX / 4 || plan->steps > INT32_MAX / 2 || plan->connections > INT32_MAX ||
      plan->waits > INT32_MAX) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the plan has %zu thread blocks and %zu steps, too many to simulate",
                     plan->tbs, plan->steps);
  }
  PCCL_TRY(pccl_plan_well_formed(plan));
  if (plan->ranks > topology->ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the plan has %d ranks, but the topology \"%s\" has %d", plan->ranks,
                     topology->name != NULL ? topology->name : "", topology->ranks);
  }
  PCCL_TRY(check_order(plan));
  for (size_t t = 0; t < plan->tbs; t++) {
    for (int32_t i = 0; i < plan->tb[t].steps; i++) {
      PCCL_TRY(check_step(plan, &plan->tb[t], i));
    }
  }
  return POLYCCL_SUCCESS;
}
