/* A name for memory that other ranks may read and write. */
#ifndef PCCL_MEMORY_REFERENCE_H
#define PCCL_MEMORY_REFERENCE_H

#include <stdint.h>

/* `region` 0: the memory has no name outside its process, and `offset` is its address there. */
typedef struct pccl_reference {
  uint64_t region, offset;
} pccl_reference;

#endif
