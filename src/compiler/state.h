/* Policy "state" as compile.c sees it. */
#ifndef PCCL_COMPILER_STATE_H
#define PCCL_COMPILER_STATE_H

#include "compiler/task.h"

/* INVALID where the options do not fit the program. */
polyccl_result pccl_state_check(const pccl_ir *ir, const polyccl_compile_options *options);

/* Schedules and allocates; afterwards the IR is ready for emit. May be called again with another rule. */
polyccl_result pccl_state_try(const pccl_tasks *tasks, polyccl_schedule schedule, const pccl_schedule_rule *rule,
                              bool directions);

/* The published pipeline on a lowered IR: one schedule, one allocation. */
polyccl_result pccl_state_once(pccl_ir *ir, const polyccl_compile_options *options);

/* Schedule "best" (search.c): the IR, fresh from pccl_ir_of(), becomes that of the quickest plan found. */
polyccl_result pccl_state_search(pccl_ir *ir, const polyccl_compile_options *options);

/* Policy "connection" on a lowered IR, up to emit (compile.c). */
polyccl_result pccl_connection_passes(pccl_ir *ir, const polyccl_compile_options *options);

#endif
