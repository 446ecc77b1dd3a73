/* Where a subcommand writes: standard output, or a file that appears whole or not at all, also when
 * the command is interrupted by a signal. */
#ifndef PCCL_TOOLS_OUTPUT_H
#define PCCL_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct pccl_output {
  const char *tool, *path;
  FILE *file;
  char *temporary; /* NULL: written in place */
} pccl_output;

/* `path` NULL or "-": standard output. The exit status; 0: output->file is open. */
int pccl_output_open(pccl_output *output, const char *tool, const char *path);

/* The exit status: `status` when that is not 0 (then nothing stays behind), else whether everything was written. */
int pccl_output_close(pccl_output *output, int status);

#endif
