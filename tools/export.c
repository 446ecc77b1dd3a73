/* polyccl export: a plan in the formats of other tools. */
#include <stdio.h>
#include <string.h>

#include <polyccl/simulator.h>

#include "base/options.h"
#include "option.h"
#include "plan_args.h"
#include "tools.h"

static const char help[] =
    "usage: polyccl export PROGRAM|PLAN [-p name=value ...] --chakra PREFIX --size SIZE\n\n"
    "  --chakra PREFIX   Chakra execution traces, PREFIX.RANK.et for every rank: what ASTRA-sim runs\n"
    "  --size SIZE       bytes of the larger buffer of a rank\n";

typedef struct export_args {
  pccl_program_args program;
  const char *prefix;
  uint64_t bytes;
} export_args;

static int parse(export_args *args, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char *error = NULL, *value;
    if ((value = pccl_tool_value("--chakra", argc, argv, &i)) != NULL) {
      args->prefix = value;
    } else if ((value = pccl_tool_value("--size", argc, argv, &i)) != NULL) {
      if (!pccl_parse_size(value, &args->bytes) || args->bytes == 0) {
        return pccl_tool_usage("export", "--size wants a number of bytes such as 64m, not \"%s\"", value);
      }
    } else if (!pccl_program_args_take(&args->program, argc, argv, &i, &error)) {
      return pccl_tool_usage("export", "unexpected argument \"%s\"", argv[i]);
    } else if (error != NULL) {
      return pccl_tool_usage("export", "%s", error);
    }
  }
  if (args->program.path == NULL || args->prefix == NULL || *args->prefix == '\0' || args->bytes == 0) {
    return pccl_tool_usage("export", "%s (polyccl export PROGRAM|PLAN --chakra PREFIX --size SIZE)",
                           args->program.path == NULL ? "which program or plan?"
                           : args->bytes == 0         ? "for which --size?"
                                                      : "--chakra wants a prefix for the files");
  }
  return PCCL_EXIT_OK;
}

int pccl_tool_export(int argc, char **argv) {
  if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    fputs(help, stdout);
    return PCCL_EXIT_OK;
  }
  export_args args = {0};
  int status = parse(&args, argc, argv);
  polyccl_plan *plan = NULL;
  if (status == PCCL_EXIT_OK) {
    polyccl_result result = pccl_plan_args_load("export", &args.program, &plan);
    if (result == POLYCCL_SUCCESS) {
      result = polyccl_plan_write_chakra(plan, args.bytes, args.prefix);
    }
    status = result == POLYCCL_SUCCESS ? PCCL_EXIT_OK : pccl_tool_failed("export", result);
  }
  polyccl_plan_destroy(plan);
  pccl_program_args_free(&args.program);
  return status;
}
