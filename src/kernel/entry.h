/* Where a GPU enters: one cooperative launch, whose thread blocks are the plan's of the ranks on this device. All of
 * them must be resident at once, since they wait for one another. A generated file defines pccl_k_dispatch() before. */
#ifndef PCCL_KERNEL_ENTRY_H
#define PCCL_KERNEL_ENTRY_H

#include "kernel/tables.h"

extern "C" __global__ void pccl_k_kernel(const pccl_k_work *work) {
  const pccl_k_place *place = &work->place[blockIdx.x];
  pccl_k_call *c = &work->calls[place->call];
  pccl_k_dispatch(work, place->number, c, &c->block[place->tb]);
}

/* Averages: output divided by the number of ranks, integers truncated. */
template <class T>
static __device__ void pccl_k_divide_as(const pccl_k_work *work) {
  typedef pccl_k_wide<T> wide;
  T *at = (T *)work->at;
  uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < work->n; i += step) {
    at[i] = wide::narrow((typename wide::type)(wide::widen(at[i]) / (typename wide::type)(int)work->ranks));
  }
}

extern "C" __global__ void pccl_k_divide(const pccl_k_work *work) {
  switch (work->dtype) {
    case 0: pccl_k_divide_as<float>(work); break;
    case 1: pccl_k_divide_as<double>(work); break;
    case 2: pccl_k_divide_as<int32_t>(work); break;
    case 3: pccl_k_divide_as<int64_t>(work); break;
    case 4: pccl_k_divide_as<uint8_t>(work); break;
    case 5: pccl_k_divide_as<pccl_k_f16>(work); break;
    default: pccl_k_divide_as<pccl_k_bf16>(work); break;
  }
}

#endif
