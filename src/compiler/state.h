/* Policy "state" as compile.c sees it. */
#ifndef PCCL_COMPILER_STATE_H
#define PCCL_COMPILER_STATE_H

#include "compiler/task.h"

/* INVALID where the options do not fit the program. */
polyccl_result pccl_state_check(const pccl_ir *ir, const polyccl_compile_options *options);

/* Schedules and allocates once; afterwards the IR is ready for emit. May be called again with another rule. */
polyccl_result pccl_state_try(const pccl_tasks *tasks, polyccl_schedule schedule, const pccl_schedule_rule *rule,
                              bool directions);

#endif
