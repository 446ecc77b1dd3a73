/* The arithmetic of generated GPU code as a function, for arithmetic.c. arithmetic.sh compiles it on threads. */
#include "kernel/moves.h"

extern "C" __attribute__((visibility("default"))) void gpu_reduce(uint32_t dtype, uint32_t op, void *dst, const void *a,
                                                                  const void *b, size_t n, uint64_t addends) {
  pccl_k_call call = {};
  call.dtype = dtype;
  call.redop = op;
  pccl_k_reduce_unit(&call, dst, a, b, n, addends);
}
