/* polyccl build PLAN --target c|cuda|hip: generated source; --interpreter: the kernel that runs any plan. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/codegen.h>

#include "output.h"
#include "tools.h"

static const char *const target_names[] = {"c", "cuda", "hip"};

int pccl_tool_build(int argc, char **argv) {
  const char *path = NULL, *output_path = NULL;
  int target = 0;
  bool interpreter = false;
  for (int i = 1; i < argc; i++) {
    bool has_value = i + 1 < argc;
    if (strcmp(argv[i], "--target") == 0 && has_value) {
      i++;
      for (target = 0; target < 3 && strcmp(argv[i], target_names[target]) != 0; target++) {
      }
      if (target == 3) {
        return pccl_tool_usage("build", "unknown target \"%s\" (known: c, cuda, hip)", argv[i]);
      }
    } else if (strcmp(argv[i], "--interpreter") == 0) {
      interpreter = true;
    } else if (strcmp(argv[i], "-o") == 0 && has_value) {
      output_path = argv[++i];
    } else if (argv[i][0] == '-' || path != NULL) {
      return pccl_tool_usage("build", "unexpected argument \"%s\"", argv[i]);
    } else {
      path = argv[i];
    }
  }
  if ((path == NULL) != interpreter) {
    return pccl_tool_usage("build", interpreter ? "--interpreter runs any plan and takes none"
                                                : "which plan? (polyccl build PLAN [--target c|cuda|hip] [-o FILE])");
  }
  polyccl_plan *plan = NULL;
  polyccl_result result = interpreter ? POLYCCL_SUCCESS : polyccl_plan_read(path, &plan);
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("build", result);
  }
  pccl_output output;
  int status = pccl_output_open(&output, "build", output_path);
  if (status == PCCL_EXIT_OK) {
    result = interpreter ? polyccl_interpreter_generate((polyccl_target)target, output.file)
                         : polyccl_plan_generate(plan, (polyccl_target)target, output.file);
    status = pccl_output_close(&output, result == POLYCCL_SUCCESS ? PCCL_EXIT_OK : pccl_tool_failed("build", result));
  }
  polyccl_plan_destroy(plan);
  return status;
}
