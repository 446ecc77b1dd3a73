/* polyccl export: a plan in the formats of other tools. */
#include <stdio.h>

#include <polyccl/simulator.h>

#include "option.h"
#include "plan_args.h"
#include "sizes.h"
#include "tools.h"

const char pccl_export_help[] =
    "usage: polyccl export PROGRAM|PLAN [-p name=value ...] --chakra PREFIX --size SIZE\n\n"
    "  --chakra PREFIX   Chakra execution traces, PREFIX.RANK.et for every rank: what ASTRA-sim runs\n"
    "  --size SIZE       bytes of the larger buffer of a rank\n";

typedef struct export_args {
  pccl_program_args program;
  const char *prefix;
  uint64_t bytes;
  bool has_bytes;
} export_args;

const pccl_tool_option pccl_export_options[] = {
    PCCL_PROGRAM_OPTIONS(export_args),
    {.name = "--chakra",
     .takes = PCCL_TAKES_TEXT,
     .wants = "a prefix for the files",
     .at = offsetof(export_args, prefix)},
    {.name = "--size",
     .takes = PCCL_TAKES_SIZE,
     .wants = "a number of bytes",
     .at = offsetof(export_args, bytes),
     .max = PCCL_MAX_BYTES,
     .given = offsetof(export_args, has_bytes)},
    {.name = NULL},
};

static int parse_export_args(export_args *args, int argc, char **argv) {
  int status = pccl_tool_parse("export", pccl_export_options, args, argc, argv);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  if (args->program.path == NULL || args->prefix == NULL || !args->has_bytes) {
    return pccl_tool_usage("export", "%s (polyccl export PROGRAM|PLAN --chakra PREFIX --size SIZE)",
                           args->program.path == NULL ? "which program or plan?"
                           : !args->has_bytes         ? "for which --size?"
                                                      : "--chakra wants a prefix for the files");
  }
  return PCCL_EXIT_OK;
}

int pccl_tool_export(int argc, char **argv) {
  export_args args = {0};
  int status = parse_export_args(&args, argc, argv);
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
