/* What the host part of a device executor hands to a kernel, beside the calls of moves.h: which thread block each GPU
 * thread block is, and, for the interpreter, the steps as a table. In device memory. */
#ifndef PCCL_KERNEL_TABLES_H
#define PCCL_KERNEL_TABLES_H

#include "kernel/moves.h"

typedef struct pccl_k_place {
  uint32_t number; /* of the thread block through all ranks of the plan */
  uint32_t call;   /* index of its rank in calls */
  uint32_t tb;     /* its number on its rank */
} pccl_k_place;

typedef struct pccl_k_step {
  int32_t op, recv, send; /* the ends' numbers on the rank, or -1 */
  int32_t src_buffer, src, dst_buffer, dst, chunks;
  int32_t wait, waits; /* first and number */
  uint32_t every;      /* 1: addends of its own for each chunk, 0: one for all */
  uint64_t addends;    /* the first; a step that does not reduce has the table's first */
} pccl_k_step;

typedef struct pccl_k_table_wait {
  int32_t tb, steps, step; /* `steps`: of that thread block */
} pccl_k_table_wait;

typedef struct pccl_k_table_block {
  int32_t step, steps; /* first and number */
} pccl_k_table_block;

typedef struct pccl_k_work {
  pccl_k_call *calls;        /* a rank of this process each */
  const pccl_k_place *place; /* [GPU thread blocks] */
  /* interpreter */
  const pccl_k_table_block *block; /* by number */
  const pccl_k_step *step;
  const pccl_k_table_wait *wait;
  const uint64_t *addends;  /* PCCL_K_ADDENDS, one or more */
  uint32_t protocol, tasks; /* tasks: task-major */
} pccl_k_work;

#endif
