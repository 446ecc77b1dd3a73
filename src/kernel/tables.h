/* The tables in device memory that the host part of a device executor passes to a kernel beside the calls of moves.h.
 * They say which thread block of the plan each GPU thread block executes. For the interpreter they also hold the
 * steps. */
#ifndef PCCL_KERNEL_TABLES_H
#define PCCL_KERNEL_TABLES_H

#include "kernel/moves.h"

typedef struct pccl_k_place {
  uint32_t number; /* the thread block, counted through all ranks of the plan */
  uint32_t call;   /* index of its rank in calls */
  uint32_t tb;     /* the thread block's number on its rank */
} pccl_k_place;

typedef struct pccl_k_step {
  int32_t op, recv, send; /* the ends' numbers on the rank, or -1 */
  int32_t src_buffer, src, dst_buffer, dst, chunks;
  int32_t wait, waits; /* first and number */
  uint32_t every;      /* 1: each chunk has its own addends, 0: all chunks share one entry */
  uint64_t addends;    /* index of the first; 0 for a step that does not reduce */
} pccl_k_step;

typedef struct pccl_k_table_wait {
  int32_t tb, steps, step; /* `steps`: number of steps of thread block tb */
} pccl_k_table_wait;

typedef struct pccl_k_table_block {
  int32_t step, steps; /* first and number */
} pccl_k_table_block;

typedef struct pccl_k_work {
  pccl_k_call *calls;        /* one for each rank of this process */
  const pccl_k_place *place; /* [GPU thread blocks] */
  /* interpreter */
  const pccl_k_table_block *block; /* by number */
  const pccl_k_step *step;
  const pccl_k_table_wait *wait;
  const uint64_t *addends;  /* PCCL_K_ADDENDS; at least one entry */
  uint32_t protocol, tasks; /* tasks: task-major */
} pccl_k_work;

#endif
