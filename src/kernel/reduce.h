/* Arithmetic on vectors of elements: the reductions, and copies that spare the cache.
 *
 * One source (reduce_body.h) is compiled once per instruction set; pccl_reduce_kernels() gives the table for this CPU.
 * The functions take any alignment and touch exactly the ranges they are given. A destination may be one of the sources
 * but may not overlap one otherwise. */
#ifndef PCCL_KERNEL_REDUCE_H
#define PCCL_KERNEL_REDUCE_H

#include <stddef.h>

#include <polyccl/types.h>

/* dst[i] = a[i] + b[i]; n elements. `addends` says for averages how many contributions a and b hold
 * (PCCL_K_ADDENDS, mean.h); the others do not look at it. */
typedef void (*pccl_reduce_fn)(void *dst, const void *a, const void *b, size_t n, uint64_t addends);

typedef struct pccl_kernels {
  const char *name;
  pccl_reduce_fn reduce[POLYCCL_DTYPE_COUNT][POLYCCL_REDOP_COUNT];
  /* A copy past the cache. Its stores are ordered before later ones by stream_fence only. */
  void (*stream_copy)(void *dst, const void *src, size_t bytes);
  void (*stream_fence)(void);
} pccl_kernels;

const pccl_kernels *pccl_reduce_kernels(void);

/* The tables that were compiled; all are tested against each other. NULL ends the list. Some may not run on this CPU:
 * pccl_kernels_usable. */
extern const pccl_kernels *const pccl_all_kernels[];
int pccl_kernels_usable(const pccl_kernels *kernels);

#endif
