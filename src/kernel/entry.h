/* Where a GPU enters generated code: one cooperative launch, whose thread blocks are the plan's of the ranks on this
 * device. All of them must be resident at once, since they wait for one another. */
#ifndef PCCL_KERNEL_ENTRY_H
#define PCCL_KERNEL_ENTRY_H

typedef struct pccl_k_launch {
  int number; /* of the thread block through all ranks */
  int call;   /* index of its rank in calls */
  int tb;     /* its number on its rank */
} pccl_k_launch;

static __device__ __forceinline__ void pccl_k_enter_block(pccl_k_call *calls, const pccl_k_launch *launch, int block) {
  pccl_k_call *c = &calls[launch[block].call];
  pccl_k_dispatch(launch[block].number, c, &c->block[launch[block].tb]);
}

#ifndef PCCL_ON_THREADS
extern "C" __global__ void pccl_k_kernel(pccl_k_call *calls, const pccl_k_launch *launch) {
  pccl_k_enter_block(calls, launch, (int)blockIdx.x);
}

/* Averages: output divided by the number of ranks, integers truncated. */
template <class T>
static __device__ void pccl_k_divide_as(T *at, uint64_t n, int ranks) {
  typedef pccl_k_wide<T> wide;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (uint64_t)gridDim.x * blockDim.x) {
    at[i] = wide::narrow(wide::widen(at[i]) / (typename wide::type)ranks);
  }
}

extern "C" __global__ void pccl_k_divide(void *at, uint64_t n, uint32_t dtype, int ranks) {
  switch (dtype) {
    case 0: pccl_k_divide_as((float *)at, n, ranks); break;
    case 1: pccl_k_divide_as((double *)at, n, ranks); break;
    case 2: pccl_k_divide_as((int32_t *)at, n, ranks); break;
    case 3: pccl_k_divide_as((int64_t *)at, n, ranks); break;
    case 4: pccl_k_divide_as((uint8_t *)at, n, ranks); break;
    case 5: pccl_k_divide_as((pccl_k_f16 *)at, n, ranks); break;
    default: pccl_k_divide_as((pccl_k_bf16 *)at, n, ranks); break;
  }
}
#endif

#endif
