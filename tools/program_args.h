/* The arguments that subcommands share which read a program: PROGRAM [-p NAME=VALUE ...]. */
#ifndef PCCL_TOOLS_PROGRAM_ARGS_H
#define PCCL_TOOLS_PROGRAM_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include <polyccl/language.h>

#include "accept.h"
#include "option.h"

typedef struct pccl_program_args {
  const char *path; /* NULL until one was given */
  polyccl_param *params;
  size_t count;
  pccl_accept accept; /* what the subcommand requires of the program */
} pccl_program_args;

/* The rows of a subcommand's table (option.h) for its member `program` in ARGS. */
#define PCCL_PROGRAM_OPTIONS(ARGS)                                                                \
  {.name = "-p",                                                                                  \
   .value = "NAME=VALUE",                                                                         \
   .help = PCCL_HELP_PARAMETER,                                                                   \
   .takes = PCCL_TAKES_PARAMETER,                                                                 \
   .at = offsetof(ARGS, program)},                                                                \
  {                                                                                               \
    .name = "", .takes = PCCL_TAKES_PATH, .expects = "a file", .at = offsetof(ARGS, program.path) \
  }
#define PCCL_HELP_PARAMETER                                                                                \
  "Give the program's parameter NAME a value. The option may be repeated; polyccl check PROGRAM --params " \
  "lists the parameters."

/* Adds "name=value"; false if the text is something else. */
bool pccl_program_args_add(pccl_program_args *args, const char *text);
/* polyccl_program_load() and polyccl_program_params() for the subcommand `tool`. The watchdog (watchdog.h) ends the
 * command if the program escapes the bounds of its sandbox. `accept` (NULL: no requirement) is asked as soon as the
 * program has declared its collective. */
polyccl_result pccl_program_args_load(const char *tool, const char *path, const polyccl_param *params, size_t count,
                                      const pccl_accept *accept, polyccl_program **program);
polyccl_result pccl_program_args_params(const char *tool, const char *path, const polyccl_param *params, size_t count,
                                        polyccl_param_info **infos, size_t *info_count);
void pccl_program_args_free(pccl_program_args *args);

#endif
