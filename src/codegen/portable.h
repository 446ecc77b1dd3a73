/* The text of src/kernel's portable headers, embedded when the library is built. */
#ifndef PCCL_CODEGEN_PORTABLE_H
#define PCCL_CODEGEN_PORTABLE_H

#include <stddef.h>

typedef struct pccl_portable_file {
  const char *name; /* "moves.h" */
  const unsigned char *text;
  const size_t *length;
} pccl_portable_file;

extern const pccl_portable_file pccl_portable_files[]; /* ends with a NULL name */

#endif
