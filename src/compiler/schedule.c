/* schedule: tasks of the lowered IR in sub-pipelines, by HPDS or in turn. */
#include "compiler/schedule.h"

#include "base/error.h"

polyccl_result pccl_schedule_check_options(const polyccl_program *program, const polyccl_compile_options *options) {
  if (options->topology == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "policy state needs a topology");
  }
  if (options->topology->ranks < program->config.ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s has %d ranks, but topology %s has only %d", program->name,
                     program->config.ranks, options->topology->name, options->topology->ranks);
  }
  if (options->max_tbs < 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "at most %d thread blocks is out of range (1 and up, 0: no bound)",
                     options->max_tbs);
  }
  return POLYCCL_SUCCESS;
}

/* A message is its send and, right after it, its receive. */
static bool write_order(const pccl_tasks *tasks, const pccl_pipeline *pipeline) {
  pccl_ir *ir = tasks->ir;
  ir->order.len = 0;
  ir->loop = POLYCCL_TASK_MAJOR;
  for (size_t i = 0; i < tasks->count; i++) {
    int32_t task = pipeline->sequence[i], number = tasks->task[task].node;
    pccl_node *node = &ir->nodes.data[number];
    node->pipeline = pipeline->of_task[task];
    if (!pccl_vec_push(&ir->order, number)) {
      return false;
    }
    if (node->to >= 0) {
      ir->nodes.data[node->to].pipeline = node->pipeline;
      if (!pccl_vec_push(&ir->order, node->to)) {
        return false;
      }
    }
  }
  return true;
}

polyccl_result pccl_schedule_tasks(const pccl_tasks *tasks, polyccl_schedule schedule, int32_t max_tbs) {
  pccl_pipeline pipeline;
  PCCL_TRY(schedule == POLYCCL_SCHEDULE_ROUND_ROBIN ? pccl_schedule_round_robin(tasks, max_tbs, &pipeline)
                                                    : pccl_schedule_hpds(tasks, max_tbs, &pipeline));
  bool written = write_order(tasks, &pipeline);
  pccl_pipeline_free(&pipeline);
  return written ? POLYCCL_SUCCESS : pccl_no_memory("the schedule");
}

polyccl_result pccl_pass_schedule(pccl_ir *ir) {
  pccl_tasks tasks;
  polyccl_result result = pccl_tasks_build(ir, ir->options->topology, &tasks);
  if (result == POLYCCL_SUCCESS) {
    result = pccl_schedule_tasks(&tasks, ir->options->schedule, ir->options->max_tbs);
  }
  pccl_tasks_free(&tasks);
  return result;
}
