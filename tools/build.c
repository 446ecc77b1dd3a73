/* polyccl build: writes a plan, or the kernel that runs any plan, as source code. */
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

static const pccl_tool_option build_options[] = {
    {.name = "", .takes = PCCL_TAKES_PATH, .expects = "a plan", .at = offsetof(build_args, path)},
    {.name = "--target",
     .value = "c|cuda|hip",
     .help = "Write C for this machine (default), or one cooperative kernel for nvcc or hipcc. Compile C as a"
             " shared object and run it with polyccl run --generated=FILE.so.",
     .takes = PCCL_TAKES_WORD,
     .at = offsetof(build_args, target),
     .words = target_names},
    {.name = "--interpreter",
     .help = "Write the kernel that runs any plan from a table of its steps, for cuda and hip.",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(build_args, interpreter)},
    PCCL_OUTPUT_OPTION(build_args, output),
    {.name = NULL},
};

static int build_command(int argc, char **argv) {
  build_args args = {0};
  int status = pccl_tool_parse("build", build_options, &args, argc, argv);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  if ((args.path == NULL) != args.interpreter) {
    return args.interpreter ? pccl_tool_usage("build", "--interpreter excludes a plan: its kernel runs any plan")
                            : pccl_tool_missing("build", "a plan");
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

const pccl_tool pccl_build_tool = {
    .name = "build",
    .usage = "PLAN [--target c|cuda|hip] [-o FILE]\n--interpreter --target cuda|hip [-o FILE]",
    .summary = "Write a plan as C, CUDA or HIP source code.",
    .description =
        "The plan is verified first. The source has a function for every thread block of every rank; "
        "operations, places, connections and waits are constants in it. It includes the kernel source and"
        " compiles alone.",
    .options = build_options,
    .run = build_command,
};
