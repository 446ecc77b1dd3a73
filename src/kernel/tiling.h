/* How executors cut chunks into micro-batches: one rule for the interpreter, generated code and GPUs. All ranks must
 * find the same, so it follows from the plan, the call and options that are alike on all ranks. */
#ifndef PCCL_KERNEL_TILING_H
#define PCCL_KERNEL_TILING_H

#include <stddef.h>
#include <stdint.h>

#include <polyccl/types.h>

typedef struct pccl_tiling_input {
  polyccl_protocol protocol;
  size_t slot_bytes, note_bytes; /* of a slot; what of it holds no payload */
  size_t max_bytes;              /* of a micro-batch of a step, if the slot holds more */
  size_t chunks;                 /* of the plan's largest step */
  size_t stride, element;        /* elements of a chunk; bytes */
} pccl_tiling_input;

typedef struct pccl_tiling {
  size_t tile; /* elements of a chunk in a micro-batch */
  uint64_t batches;
} pccl_tiling;

/* UNSUPPORTED: slots are too small for the largest step. */
polyccl_result pccl_tiling_find(const pccl_tiling_input *input, pccl_tiling *tiling);

#endif
