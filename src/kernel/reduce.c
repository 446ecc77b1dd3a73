#include "kernel/reduce.h"

#include <stdatomic.h>

#include "base/error.h"
#include "kernel/variants.h"

const pccl_kernels *const pccl_all_kernels[] = {
#if defined(__x86_64__)
    &pccl_kernels_v4, &pccl_kernels_v3,
#endif
    &pccl_kernels_base, NULL};

int pccl_kernels_usable(const pccl_kernels *kernels) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (kernels == &pccl_kernels_v4) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && pccl_kernels_usable(&pccl_kernels_v3);
  }
  if (kernels == &pccl_kernels_v3) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
  }
#endif
  return kernels == &pccl_kernels_base;
}

const pccl_kernels *pccl_reduce_kernels(void) {
  static _Atomic(const pccl_kernels *) chosen;
  const pccl_kernels *kernels = atomic_load_explicit(&chosen, memory_order_relaxed);
  for (int i = 0; kernels == NULL; i++) {
    if (pccl_kernels_usable(pccl_all_kernels[i])) {
      kernels = pccl_all_kernels[i];
      atomic_store_explicit(&chosen, kernels, memory_order_relaxed);
    }
  }
  return kernels;
}

bool pccl_reduction_defined(polyccl_dtype dtype, polyccl_redop op) {
  return dtype != POLYCCL_BOOL || op != POLYCCL_AVG;
}

polyccl_result pccl_check_reduction(polyccl_dtype dtype, polyccl_redop op) {
  if ((unsigned)dtype >= POLYCCL_DTYPE_COUNT || (unsigned)op >= POLYCCL_REDOP_COUNT) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "unknown data type or reduction (numbers %d, %d)", (int)dtype, (int)op);
  }
  if (!pccl_reduction_defined(dtype, op)) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "%s is not defined for %s", polyccl_redop_name(op),
                     polyccl_dtype_name(dtype));
  }
  return POLYCCL_SUCCESS;
}
