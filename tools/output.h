/* Where a subcommand writes: standard output, or a file. A file appears whole or not at all, even if a signal ends the
 * command. */
#ifndef PCCL_TOOLS_OUTPUT_H
#define PCCL_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct pccl_output {
  const char *tool, *path;
  FILE *file;
  char *temporary; /* NULL: the file is written in place */
} pccl_output;

/* Opens the file, or standard output if `path` is NULL or "-". Returns the exit status; if it is 0, output->file is
 * open. */
int pccl_output_open(pccl_output *output, const char *tool, const char *path);

/* Closes the file. Returns `status` if it is not 0, and the file then does not appear; otherwise 0 if everything was
 * written. */
int pccl_output_close(pccl_output *output, int status);

#endif
