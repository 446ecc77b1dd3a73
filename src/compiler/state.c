/* Policy "state": ResCCL's pipeline from the lowered IR to the order and the thread blocks that wait and emit need. */
#include "compiler/state.h"
#include "base/clock.h"
#include "base/error.h"

polyccl_result pccl_state_try(const pccl_tasks *tasks, polyccl_schedule schedule, const pccl_schedule_rule *rule,
                              bool directions) {
  pccl_pipeline pipeline;
  double at = pccl_now_seconds();
  PCCL_TRY(schedule == POLYCCL_SCHEDULE_ROUND_ROBIN ? pccl_schedule_round_robin(tasks, rule, &pipeline)
                                                    : pccl_schedule_hpds(tasks, rule, &pipeline));
  PCCL_LAP(tasks->ir, &at, schedule);
  polyccl_result result = pccl_pass_allocate(tasks, &pipeline, directions);
  pccl_pipeline_free(&pipeline);
  PCCL_TRY(result);
  PCCL_LAP(tasks->ir, &at, allocate);
  PCCL_TRY(pccl_pass_wait(tasks->ir));
  PCCL_LAP(tasks->ir, &at, wait);
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_state_check(const pccl_ir *ir, const polyccl_compile_options *options) {
  if (options->topology == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "policy state needs a topology");
  }
  if (options->topology->ranks < ir->program->config.ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s has %d ranks, but topology %s only %d", ir->program->name,
                     ir->program->config.ranks, options->topology->name, options->topology->ranks);
  }
  if (options->max_tbs < 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "at most %d thread blocks is out of range (1 and up, 0: no bound)",
                     options->max_tbs);
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_state_once(pccl_ir *ir, const polyccl_compile_options *options) {
  pccl_tasks tasks;
  pccl_schedule_rule rule = {.max_tbs = options->max_tbs};
  double at = pccl_now_seconds();
  polyccl_result result = pccl_tasks_build(ir, options->topology, &tasks);
  PCCL_LAP(ir, &at, schedule);
  if (result == POLYCCL_SUCCESS) {
    result = pccl_state_try(&tasks, options->schedule, &rule, options->max_tbs == 0);
  }
  pccl_tasks_free(&tasks);
  return result;
}
