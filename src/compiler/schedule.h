/* Policy "state" on a lowered IR: from tasks to an order of the nodes in sub-pipelines. */
#ifndef PCCL_COMPILER_SCHEDULE_H
#define PCCL_COMPILER_SCHEDULE_H

#include "compiler/task.h"

/* INVALID where the options of policy "state" do not fit the program. */
polyccl_result pccl_schedule_check_options(const polyccl_program *program, const polyccl_compile_options *options);

/* Schedules the tasks and writes ir->order, ir->loop and node->pipeline of their IR, for pccl_pass_allocate(). A later
 * call replaces what an earlier one wrote. `schedule` is HPDS or ROUND_ROBIN, max_tbs is that of the options. */
polyccl_result pccl_schedule_tasks(const pccl_tasks *tasks, polyccl_schedule schedule, int32_t max_tbs);

#endif
