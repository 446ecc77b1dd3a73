/* The text of the portable headers in src/kernel, which the build embeds in the library. */
#ifndef PCCL_CODEGEN_PORTABLE_H
#define PCCL_CODEGEN_PORTABLE_H

#include <stddef.h>

typedef struct pccl_portable_file {
  const char *name; /* "moves.h" */
  const unsigned char *text;
  const size_t *length;
} pccl_portable_file;

extern const pccl_portable_file pccl_portable_files[]; /* a NULL name ends the list */

#endif
