/* The file behind memory of the user's. */
#ifndef PCCL_MEMORY_BACKING_H
#define PCCL_MEMORY_BACKING_H

#include "memory/registry.h"

/* Finds out whether [memory, memory + bytes) is a shared mapping, for reading and writing, of one file that this
 * process has open or can open by its path. If so, *opened is the file, opened anew, whose descriptor the caller owns,
 * and *offset the place in it; otherwise opened->fd is -1. INVALID: some of the memory is not mapped. */
polyccl_result pccl_backing_find(const void *memory, size_t bytes, pccl_opened *opened, uint64_t *offset);

#endif
