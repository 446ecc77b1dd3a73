/* polyccl check: whether a program computes its collective. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/language.h>

#include "program/collective.h"
#include "program_args.h"
#include "tools.h"

static int check_program(const pccl_program_args *args) {
  polyccl_program *program = NULL;
  polyccl_result result = pccl_program_args_load("check", args->path, args->params, args->count, NULL, &program);
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("check", result);
  }
  polyccl_program_summary summary;
  result = polyccl_program_check(program, &summary);
  if (result != POLYCCL_SUCCESS) {
    polyccl_program_destroy(program);
    return pccl_tool_failed("check", result);
  }
  const polyccl_program_config *config = polyccl_program_get_config(program);
  printf("%s: right\n", config->name);
  printf("collective  %s, %s, %s\n", polyccl_collective_name(config->collective),
         config->inplace ? "in place" : "out of place", polyccl_protocol_name(config->protocol));
  printf("ranks       %d\n", summary.ranks);
  printf("chunks      %d\n", summary.chunks);
  printf("instances   %d\n", config->instances);
  printf("steps       %zu (%zu between ranks)\n", summary.operations, summary.remote);
  printf("hops        %d\n", summary.longest);
  if (config->min_bytes > 0 || config->max_bytes > 0) {
    printf("bytes       from %zu", config->min_bytes);
    if (config->max_bytes > 0) {
      printf(" to %zu", config->max_bytes);
    }
    printf("\n");
  }
  if (pccl_collective_reduces(config->collective) && config->collective != POLYCCL_CUSTOM) {
    printf("identical   %s\n",
           summary.identical ? "yes (every rank gets the same bits)" : "no (ranks reduce in different orders)");
  }
  polyccl_program_destroy(program);
  return PCCL_EXIT_OK;
}

static int list_params(const pccl_program_args *args) {
  polyccl_param_info *infos = NULL;
  size_t count = 0;
  polyccl_result result = pccl_program_args_params("check", args->path, args->params, args->count, &infos, &count);
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("check", result);
  }
  for (size_t i = 0; i < count; i++) {
    bool changed = infos[i].default_value != NULL && strcmp(infos[i].value, infos[i].default_value) != 0;
    printf("%-14s %-12s %s", infos[i].name, infos[i].value, infos[i].help);
    if (changed) {
      printf(" (default %s)", infos[i].default_value);
    }
    printf("%s\n", infos[i].default_value == NULL ? " (no default)" : "");
  }
  free(infos);
  return PCCL_EXIT_OK;
}

typedef struct check_args {
  pccl_program_args program;
  bool params;
} check_args;

static const pccl_tool_option check_options[] = {
    PCCL_PROGRAM_OPTIONS(check_args),
    {.name = "--params",
     .help = "List the program's parameters with their values and defaults instead.",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(check_args, params)},
    {.name = NULL},
};

static int check_command(int argc, char **argv) {
  check_args args = {0};
  int status = pccl_tool_parse("check", check_options, &args, argc, argv);
  if (status == PCCL_EXIT_OK && args.program.path == NULL) {
    status = pccl_tool_missing("check", "a program");
  }
  if (status == PCCL_EXIT_OK) {
    status = args.params ? list_params(&args.program) : check_program(&args.program);
  }
  pccl_program_args_free(&args.program);
  return status;
}

const pccl_tool pccl_check_tool = {
    .name = "check",
    .usage = "PROGRAM [-p NAME=VALUE ...] [--params]",
    .summary = "Check that a program computes its collective.",
    .description =
        "A program is a Lua file, a schedule of TE-CCL, an algorithm of SCCL, or the trees of ForestColl;"
        " its content tells which. The command runs the program in its sandbox and proves that at the end"
        " every output chunk holds exactly its contributions, each once. If a chunk is wrong, the error "
        "names the first one, what it holds, what it lacks, and the line that made it. If all are right, "
        "the command prints the numbers of steps and hops and whether all ranks get the same bits.",
    .options = check_options,
    .run = check_command,
};
