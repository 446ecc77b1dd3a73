/* The kernel tables of this build. CMakeLists.txt compiles each for its own instruction set. */
#ifndef PCCL_KERNEL_VARIANTS_H
#define PCCL_KERNEL_VARIANTS_H

#include "kernel/reduce.h"

extern const pccl_kernels pccl_kernels_base;
#if defined(__x86_64__)
extern const pccl_kernels pccl_kernels_v3, pccl_kernels_v4;
#endif

#endif
