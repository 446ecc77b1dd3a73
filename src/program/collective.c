#include "program/collective.h"

#include <polyccl/program.h>

#include "base/error.h"

typedef struct shape_entry {
  bool input_blocks, output_blocks; /* true: one block per rank, false: one block */
  bool rooted, reduces;
} shape_entry;

static const shape_entry shapes[POLYCCL_COLLECTIVE_COUNT] = {
    [POLYCCL_ALLREDUCE] = {.reduces = true},
    [POLYCCL_ALLGATHER] = {.output_blocks = true},
    [POLYCCL_REDUCE_SCATTER] = {.input_blocks = true, .reduces = true},
    [POLYCCL_ALLTOALL] = {.input_blocks = true, .output_blocks = true},
    [POLYCCL_BROADCAST] = {.rooted = true},
    [POLYCCL_REDUCE] = {.rooted = true, .reduces = true},
    [POLYCCL_GATHER] = {.output_blocks = true, .rooted = true},
    [POLYCCL_SCATTER] = {.input_blocks = true, .rooted = true},
    [POLYCCL_SENDRECV] = {.rooted = true},
    [POLYCCL_CUSTOM] = {.reduces = true},
};

bool pccl_collective_reduces(polyccl_collective kind) { return shapes[kind].reduces; }

size_t pccl_collective_stride(int chunks, size_t count, size_t element_bytes) {
  enum { ALIGNED_ELEMENTS = 64, MIN_ALIGNED_BYTES = 4096 };
  size_t stride = count / (size_t)chunks + (count % (size_t)chunks != 0);
  if (count % (size_t)chunks != 0 && stride >= MIN_ALIGNED_BYTES / element_bytes) {
    stride += (ALIGNED_ELEMENTS - stride % ALIGNED_ELEMENTS) % ALIGNED_ELEMENTS;
  }
  return stride;
}

void pccl_collective_shape(const pccl_collective_spec *spec, int *input, int *output) {
  const shape_entry *shape = &shapes[spec->kind];
  *input = spec->chunks * (shape->input_blocks ? spec->ranks : 1);
  *output = spec->chunks * (shape->output_blocks ? spec->ranks : 1);
  if (spec->kind == POLYCCL_CUSTOM && spec->chunks_out > 0) {
    *output = spec->chunks_out;
  }
}

polyccl_result pccl_collective_validate(const pccl_collective_spec *spec) {
  if ((unsigned)spec->kind >= POLYCCL_COLLECTIVE_COUNT) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "unknown collective number %d", (int)spec->kind);
  }
  if (spec->ranks < 1 || spec->ranks > POLYCCL_MAX_RANKS) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "ranks = %d is out of range (1 to %d)", spec->ranks, POLYCCL_MAX_RANKS);
  }
  const shape_entry *shape = &shapes[spec->kind];
  int blocks = shape->input_blocks || shape->output_blocks ? spec->ranks : 1;
  if (spec->chunks < 1 || spec->chunks > POLYCCL_MAX_CHUNKS / blocks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "chunks = %d is out of range (1 to %d for %s on %d ranks)", spec->chunks,
                     POLYCCL_MAX_CHUNKS / blocks, polyccl_collective_name(spec->kind), spec->ranks);
  }
  if (spec->kind == POLYCCL_CUSTOM && (spec->chunks_out < 0 || spec->chunks_out > POLYCCL_MAX_CHUNKS)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "output chunks = %d is out of range (0 to %d)", spec->chunks_out,
                     POLYCCL_MAX_CHUNKS);
  }
  if (shape->rooted && (spec->root < 0 || spec->root >= spec->ranks)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "root = %d is out of range (0 to %d)", spec->root, spec->ranks - 1);
  }
  if (spec->kind == POLYCCL_SENDRECV && (spec->peer < 0 || spec->peer >= spec->ranks)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "peer = %d is out of range (0 to %d)", spec->peer, spec->ranks - 1);
  }
  if (spec->kind == POLYCCL_SENDRECV && spec->inplace) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "sendrecv has no in-place form");
  }
  return POLYCCL_SUCCESS;
}

int pccl_collective_cells(const pccl_collective_spec *spec) {
  int input, output;
  pccl_collective_shape(spec, &input, &output);
  if (!spec->inplace) {
    return input + output;
  }
  return input > output ? input : output;
}

int pccl_collective_cell(const pccl_collective_spec *spec, int rank, bool output, int index) {
  const shape_entry *shape = &shapes[spec->kind];
  if (!spec->inplace) {
    int in, out;
    pccl_collective_shape(spec, &in, &out);
    return output ? in + index : index;
  }
  if (shape->input_blocks == shape->output_blocks) {
    return index;
  }
  /* The buffer with one block is block `rank` of the other. */
  bool one_block = output ? shape->input_blocks : shape->output_blocks;
  return one_block ? rank * spec->chunks + index : index;
}

pccl_post_kind pccl_collective_post(const pccl_collective_spec *spec, int rank, int index, polyccl_leaf *leaf) {
  int chunks = spec->chunks;
  switch (spec->kind) {
    case POLYCCL_ALLREDUCE: *leaf = (polyccl_leaf){-1, index}; return PCCL_POST_ALL;
    case POLYCCL_REDUCE: *leaf = (polyccl_leaf){-1, index}; return rank == spec->root ? PCCL_POST_ALL : PCCL_POST_ANY;
    case POLYCCL_REDUCE_SCATTER: *leaf = (polyccl_leaf){-1, rank * chunks + index}; return PCCL_POST_ALL;
    case POLYCCL_ALLGATHER: *leaf = (polyccl_leaf){index / chunks, index % chunks}; return PCCL_POST_ONE;
    case POLYCCL_GATHER:
      *leaf = (polyccl_leaf){index / chunks, index % chunks};
      return rank == spec->root ? PCCL_POST_ONE : PCCL_POST_ANY;
    case POLYCCL_ALLTOALL: *leaf = (polyccl_leaf){index / chunks, rank * chunks + index % chunks}; return PCCL_POST_ONE;
    case POLYCCL_BROADCAST: *leaf = (polyccl_leaf){spec->root, index}; return PCCL_POST_ONE;
    case POLYCCL_SCATTER: *leaf = (polyccl_leaf){spec->root, rank * chunks + index}; return PCCL_POST_ONE;
    case POLYCCL_SENDRECV:
      *leaf = (polyccl_leaf){spec->root, index};
      return rank == spec->peer ? PCCL_POST_ONE : PCCL_POST_ANY;
    case POLYCCL_CUSTOM:
    case POLYCCL_COLLECTIVE_COUNT: break;
  }
  return PCCL_POST_ANY;
}
