/* Subcommands that take PLAN or PROGRAM: a plan either way, verified. */
#ifndef PCCL_TOOLS_PLAN_ARGS_H
#define PCCL_TOOLS_PLAN_ARGS_H

#include <polyccl/plan.h>

#include "program_args.h"

/* A plan file (its text format or MSCCL XML) is read, anything else is loaded as a program and compiled. Parameters
 * (-p) for a plan are an error. */
polyccl_result pccl_plan_args_load(const pccl_program_args *args, polyccl_plan **plan);

#endif
