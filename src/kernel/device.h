/* One source for three compilers: what kernels need of the machine they run on.
 *
 *   C (cc)           a thread block is a state machine of one thread: PCCL_AWAIT leaves the function and comes back
 *   CUDA, HIP        a thread block is one: PCCL_AWAIT spins in thread 0, the others wait at a barrier
 *   PCCL_ON_THREADS  the GPU form on the CPU, a pthread per GPU thread, so that its logic can be proved without a GPU;
 *                    tests/gpu/on_threads.h gives the built-ins
 *
 * Self-contained: generated files carry the text of this header and of moves.h. Only built-ins and fixed-width types.
 */
#ifndef PCCL_KERNEL_DEVICE_H
#define PCCL_KERNEL_DEVICE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__) || defined(__HIPCC__) || defined(PCCL_ON_THREADS)
#define PCCL_GPU 1
#else
#define PCCL_GPU 0
#endif

#if PCCL_GPU
#ifndef PCCL_ON_THREADS
#define PCCL_FN __device__ __forceinline__
#else
#define PCCL_FN static inline
#endif
#else
#define PCCL_FN static inline __attribute__((always_inline, unused))
#endif

/* ---- threads of a block ---- */

#if PCCL_GPU
PCCL_FN uint32_t pccl_k_thread(void) { return threadIdx.x; }
PCCL_FN uint32_t pccl_k_threads(void) { return blockDim.x; }
PCCL_FN void pccl_k_barrier(void) { __syncthreads(); }
#else
PCCL_FN uint32_t pccl_k_thread(void) { return 0; }
PCCL_FN uint32_t pccl_k_threads(void) { return 1; }
PCCL_FN void pccl_k_barrier(void) {}
#endif

/* ---- memory that others see ---- */

#if defined(__CUDACC__)
/* System scope: the peer may be another device or another process. */
PCCL_FN uint64_t pccl_k_load(const uint64_t *at) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}
PCCL_FN void pccl_k_store(uint64_t *at, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
PCCL_FN uint64_t pccl_k_load_relaxed(const uint64_t *at) {
  uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}
PCCL_FN void pccl_k_store_relaxed(uint64_t *at, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}
PCCL_FN void pccl_k_fence(void) { __threadfence_system(); }
#elif defined(__HIPCC__)
PCCL_FN uint64_t pccl_k_load(const uint64_t *at) {
  return __hip_atomic_load(at, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}
PCCL_FN void pccl_k_store(uint64_t *at, uint64_t value) {
  __hip_atomic_store(at, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}
PCCL_FN uint64_t pccl_k_load_relaxed(const uint64_t *at) {
  return __hip_atomic_load(at, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
PCCL_FN void pccl_k_store_relaxed(uint64_t *at, uint64_t value) {
  __hip_atomic_store(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
PCCL_FN void pccl_k_fence(void) { __threadfence_system(); }
#else
PCCL_FN uint64_t pccl_k_load(const uint64_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
PCCL_FN void pccl_k_store(uint64_t *at, uint64_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
PCCL_FN uint64_t pccl_k_load_relaxed(const uint64_t *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
PCCL_FN void pccl_k_store_relaxed(uint64_t *at, uint64_t value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
PCCL_FN void pccl_k_fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
#endif

#endif
