#include "plan_args.h"

#include "base/error.h"
#include "plan/plan.h"

static polyccl_result compile_program_args(const char *tool, const pccl_program_args *args,
                                           const polyccl_compile_options *options, polyccl_plan **plan) {
  polyccl_program *program = NULL;
  PCCL_TRY(pccl_program_args_load(tool, args->path, args->params, args->count, &args->accept, &program));
  polyccl_result result = polyccl_compile(program, options, plan);
  polyccl_program_destroy(program);
  return result;
}

polyccl_result pccl_plan_args_load(const char *tool, const pccl_program_args *args, polyccl_plan **plan) {
  return pccl_plan_args_compile(tool, args, NULL, plan);
}

polyccl_result pccl_plan_args_compile(const char *tool, const pccl_program_args *args,
                                      const polyccl_compile_options *options, polyccl_plan **plan) {
  bool is_plan;
  PCCL_TRY(pccl_is_plan_file(args->path, &is_plan));
  if (!is_plan) {
    return compile_program_args(tool, args, options, plan);
  }
  if (options != NULL && options->policy != POLYCCL_POLICY_CONNECTION) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s is a plan; --policy needs a program", args->path);
  }
  if (args->count > 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s is a plan; it has no parameters (-p %s=...)", args->path,
                     args->params[0].name);
  }
  polyccl_plan *read = NULL;
  PCCL_TRY(polyccl_plan_read(args->path, &read));
  polyccl_result result = pccl_accept_plan(&args->accept, read);
  result = result == POLYCCL_SUCCESS ? polyccl_plan_verify(read, NULL) : result;
  if (result != POLYCCL_SUCCESS) {
    polyccl_plan_destroy(read);
    return pccl_prefix(result, "%s: ", args->path);
  }
  *plan = read;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_plan_set_order(polyccl_plan *plan, polyccl_loop_order order) {
  if (order == plan->order) {
    return POLYCCL_SUCCESS;
  }
  plan->order = order;
  plan->fifo_depth = 0;
  polyccl_verify_report report;
  PCCL_TRY(polyccl_plan_verify(plan, &report));
  plan->fifo_depth = report.fifo_depth;
  return POLYCCL_SUCCESS;
}
