/* Arithmetic on sizes, and the figures by which executors cut steps into micro-batches. */
#ifndef PCCL_BASE_SIZE_H
#define PCCL_BASE_SIZE_H

#include <stddef.h>

static inline size_t pccl_min_size(size_t a, size_t b) { return a < b ? a : b; }

/* The smallest multiple of `unit` that is not smaller than `value`. */
static inline size_t pccl_round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

/* An executor cuts a step into PCCL_TILE_PIPELINE micro-batches, so that messages overlap, if each has at least
 * PCCL_TILE_MIN bytes. It cuts the step into more if a micro-batch would exceed PCCL_TILE_MAX bytes, which fit into the
 * L2 cache of a CPU. The executors and the CPU models of the simulator share these numbers. */
enum { PCCL_TILE_PIPELINE = 4, PCCL_TILE_MIN = 16 << 10, PCCL_TILE_MAX = 128 << 10 };

/* The first of these two rules, for chunks of `bytes` bytes of which the largest step moves `chunks`: the bytes of a
 * chunk in a micro-batch. */
static inline size_t pccl_pipelined_tile(size_t bytes, size_t chunks) {
  size_t part = bytes / PCCL_TILE_PIPELINE, min = PCCL_TILE_MIN / chunks;
  return part > min ? part : min;
}

#endif
