/* The arguments that every subcommand which reads a program shares: PROGRAM [-p name=value ...]. */
#ifndef PCCL_TOOLS_PROGRAM_ARGS_H
#define PCCL_TOOLS_PROGRAM_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include <polyccl/language.h>

#include "accept.h"

typedef struct pccl_program_args {
  const char *path; /* NULL until one was given */
  polyccl_param *params;
  size_t count;
  pccl_accept accept; /* what the subcommand can take */
} pccl_program_args;

/* Takes argv[*at] if it is "-p" (with the argument after it), "-pname=value" or, when no path was given yet, a path;
 * moves *at to the last one it took. False: not one of these. A wrong -p sets *error to what is wrong with it. */
bool pccl_program_args_take(pccl_program_args *args, int argc, char **argv, int *at, const char **error);
void pccl_program_args_free(pccl_program_args *args);

#endif
