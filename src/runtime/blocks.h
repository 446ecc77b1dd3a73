/* Blocks of a buffer, one for each rank, as collectives with counts have them: checks of their arguments. */
#ifndef PCCL_RUNTIME_BLOCKS_H
#define PCCL_RUNTIME_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

#include <polyccl/types.h>

typedef struct pccl_blocks {
  const char *call, *side; /* for messages: "alltoallv", "receive" */
  const void *buffer;
  const size_t *counts, *displs; /* in elements; displs NULL: end to end */
  int ranks;
  size_t element;
} pccl_blocks;

/* INVALID for counts or displacements that are missing or beyond memory, and for a buffer that is missing. */
polyccl_result pccl_blocks_check(const pccl_blocks *blocks);
/* INVALID if two blocks overlap. The blocks have been checked. */
polyccl_result pccl_blocks_check_apart(const pccl_blocks *blocks);

/* True: some byte of a block, other than block `except`, lies in [memory, memory + bytes). */
bool pccl_blocks_touch(const pccl_blocks *blocks, int except, const void *memory, size_t bytes);

/* The address of a block. `offset` in elements is where it begins when they lie end to end. */
void *pccl_block_at(const pccl_blocks *blocks, int rank, size_t offset);

#endif
