/* For subcommands that take PLAN or PROGRAM: both give a verified plan. */
#ifndef PCCL_TOOLS_PLAN_ARGS_H
#define PCCL_TOOLS_PLAN_ARGS_H

#include <polyccl/compile.h>
#include <polyccl/plan.h>

#include "program_args.h"

/* Reads a plan file (plan text or MSCCL XML); loads anything else as a program and compiles it. Parameters (-p) of a
 * plan are an error. `tool` is the name of the subcommand. */
polyccl_result pccl_plan_args_load(const char *tool, const pccl_program_args *args, polyccl_plan **plan);

/* The same with the compiler's options (NULL: the defaults); a policy other than "connection" is an error for a plan.
 */
polyccl_result pccl_plan_args_compile(const char *tool, const pccl_program_args *args,
                                      const polyccl_compile_options *options, polyccl_plan **plan);

/* Gives the plan another loop order, which makes it another plan: it is verified again and gets the FIFO depth that it
 * needs. */
polyccl_result pccl_plan_set_order(polyccl_plan *plan, polyccl_loop_order order);

#endif
