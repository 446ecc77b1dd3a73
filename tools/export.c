/* polyccl export: writes a plan in the formats of other tools. */
#include <stdio.h>

#include <polyccl/simulator.h>

#include "option.h"
#include "plan_args.h"
#include "sizes.h"
#include "tools.h"

typedef struct export_args {
  pccl_program_args program;
  const char *prefix;
  uint64_t bytes;
  bool has_bytes;
} export_args;

static const pccl_tool_option export_options[] = {
    PCCL_PROGRAM_OPTIONS(export_args),
    {.name = "--chakra",
     .value = "PREFIX",
     .help = "Write the trace of each rank to PREFIX.RANK.et.",
     .takes = PCCL_TAKES_TEXT,
     .expects = "a prefix for the files",
     .at = offsetof(export_args, prefix)},
    {.name = "--size",
     .value = "SIZE",
     .help = "Write traces of a call of SIZE bytes of a rank's larger buffer.",
     .takes = PCCL_TAKES_SIZE,
     .expects = "a number of bytes",
     .at = offsetof(export_args, bytes),
     .max = PCCL_MAX_BYTES,
     .given = offsetof(export_args, has_bytes)},
    {.name = NULL},
};

static int parse_export_args(export_args *args, int argc, char **argv) {
  int status = pccl_tool_parse("export", export_options, args, argc, argv);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  if (args->program.path == NULL || args->prefix == NULL || !args->has_bytes) {
    return pccl_tool_missing("export", args->program.path == NULL ? "a program or a plan"
                                       : !args->has_bytes         ? "--size"
                                                                  : "--chakra");
  }
  return PCCL_EXIT_OK;
}

static int export_command(int argc, char **argv) {
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

const pccl_tool pccl_export_tool = {
    .name = "export",
    .usage = "PROGRAM|PLAN [-p NAME=VALUE ...] --chakra PREFIX --size SIZE",
    .summary = "Write a plan as Chakra execution traces for ASTRA-sim.",
    .description = "",
    .options = export_options,
    .run = export_command,
};
