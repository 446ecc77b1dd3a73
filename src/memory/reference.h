/* A name for memory that other ranks may read and write. */
#ifndef PCCL_MEMORY_REFERENCE_H
#define PCCL_MEMORY_REFERENCE_H

#include <stdint.h>

/* `region` 0: no file holds the memory, so other processes can only copy it through the kernel. */
typedef struct pccl_reference {
  uint64_t region, offset; /* the file, and the place in it */
  uint64_t address;        /* in the process that the memory belongs to */
} pccl_reference;

#endif
