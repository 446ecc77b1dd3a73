/* polyccl build PLAN --target c|cuda|hip: generated source; --interpreter: the kernel that runs any plan. */
#include <stdio.h>

#include <polyccl/codegen.h>

#include "option.h"
#include "output.h"
#include "tools.h"

static const char *const target_names[] = {"c", "cuda", "hip", NULL};

typedef struct build_args {
  const char *path, *output;
  int target;
  bool interpreter;
} build_args;

const pccl_tool_option pccl_build_options[] = {
    {.name = "", .takes = PCCL_TAKES_PATH, .wants = "a plan", .at = offsetof(build_args, path)},
    {.name = "--target", .takes = PCCL_TAKES_WORD, .at = offsetof(build_args, target), .words = target_names},
    {.name = "--interpreter", .takes = PCCL_TAKES_NOTHING, .at = offsetof(build_args, interpreter)},
    {.name = "-o", .takes = PCCL_TAKES_TEXT, .wants = "a file", .at = offsetof(build_args, output)},
    {.name = NULL},
};

int pccl_tool_build(int argc, char **argv) {
  build_args args = {0};
  int status = pccl_tool_parse("build", pccl_build_options, &args, argc, argv);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  if ((args.path == NULL) != args.interpreter) {
    return pccl_tool_usage("build", args.interpreter
                                        ? "--interpreter runs any plan and takes none"
                                        : "which plan? (polyccl build PLAN [--target c|cuda|hip] [-o FILE])");
  }
  polyccl_plan *plan = NULL;
  polyccl_result result = args.interpreter ? POLYCCL_SUCCESS : polyccl_plan_read(args.path, &plan);
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("build", result);
  }
  pccl_output output;
  status = pccl_output_open(&output, "build", args.output);
  if (status == PCCL_EXIT_OK) {
    result = args.interpreter ? polyccl_interpreter_generate((polyccl_target)args.target, output.file)
                              : polyccl_plan_generate(plan, (polyccl_target)args.target, output.file);
    status = pccl_output_close(&output, result == POLYCCL_SUCCESS ? PCCL_EXIT_OK : pccl_tool_failed("build", result));
  }
  polyccl_plan_destroy(plan);
  return status;
}
