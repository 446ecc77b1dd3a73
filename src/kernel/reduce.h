/* Arithmetic on vectors of elements: the reductions, and copies that bypass the cache.
 *
 * One source (reduce_body.h) is compiled once per instruction set, and pccl_reduce_kernels() returns the best table for
 * this CPU. The functions accept any alignment and access exactly the given ranges. A destination may be one of the
 * sources, but may not overlap a source otherwise. */
#ifndef PCCL_KERNEL_REDUCE_H
#define PCCL_KERNEL_REDUCE_H

#include <stdbool.h>
#include <stddef.h>

#include <polyccl/types.h>

/* dst[i] = a[i] op b[i] for n elements. For averages, `addends` says how many contributions a and b hold
 * (PCCL_K_ADDENDS, mean.h); other operations ignore it. */
typedef void (*pccl_reduce_fn)(void *dst, const void *a, const void *b, size_t n, uint64_t addends);

typedef struct pccl_kernels {
  const char *name;
  pccl_reduce_fn reduce[POLYCCL_DTYPE_COUNT][POLYCCL_REDOP_COUNT]; /* NULL: not defined */
  /* A copy that bypasses the cache. Only stream_fence orders its stores before later ones. */
  void (*stream_copy)(void *dst, const void *src, size_t bytes);
  void (*stream_fence)(void);
} pccl_kernels;

const pccl_kernels *pccl_reduce_kernels(void);

/* False: the operation is not defined for the type (avg of bool). Both are in range. */
bool pccl_reduction_defined(polyccl_dtype dtype, polyccl_redop op);
/* Errors: INVALID for a number out of range, UNSUPPORTED for an operation that is not defined. */
polyccl_result pccl_check_reduction(polyccl_dtype dtype, polyccl_redop op);

/* All tables of this build, best first; NULL ends the list. pccl_kernels_usable() says whether this CPU can run one. */
extern const pccl_kernels *const pccl_all_kernels[];
int pccl_kernels_usable(const pccl_kernels *kernels);

#endif
