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
#define PCCL_FN __device__ __forceinline__
#else
#define PCCL_FN static inline __attribute__((always_inline, unused))
#endif

/* Words and packs that are read from, and written to, memory of any type. */
#ifdef __CUDACC__
#define PCCL_ALIAS /* nvcc's code does not depend on types */
#define PCCL_UNROLL _Pragma("unroll")
#else
#define PCCL_ALIAS __attribute__((__may_alias__))
#define PCCL_UNROLL
#endif
typedef uint64_t PCCL_ALIAS pccl_k_word;

/* ---- threads of a block ---- */

#if PCCL_GPU
PCCL_FN uint32_t pccl_k_thread(void) { return threadIdx.x; }
PCCL_FN uint32_t pccl_k_threads(void) { return blockDim.x; }
PCCL_FN void pccl_k_barrier(void) { __syncthreads(); }
/* A barrier; true in all threads where one or more came with true, so that they leave together. */
PCCL_FN int pccl_k_any(int mine) { return __syncthreads_or(mine); }
#endif

/* Between two looks at what another will change. */
#ifdef PCCL_ON_THREADS
enum { PCCL_K_PATIENCE = 0 };
PCCL_FN void pccl_k_pause(void) { sched_yield(); }
#else
enum { PCCL_K_PATIENCE = 1023 }; /* looks, a power of two less 1, between two at the stop flag, which may be far */
PCCL_FN void pccl_k_pause(void) {}
#endif

/* ---- memory that others see ----
 *
 * What threads of a block wrote before a barrier is released by one thread after it: pccl_k_fence() once, then
 * pccl_k_store_fenced() for each counter. */

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
PCCL_FN void pccl_k_fence(void) { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
PCCL_FN void pccl_k_store_fenced(uint64_t *at, uint64_t value) { pccl_k_store_relaxed(at, value); }
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
PCCL_FN void pccl_k_store_fenced(uint64_t *at, uint64_t value) { pccl_k_store_relaxed(at, value); }
#else
PCCL_FN uint64_t pccl_k_load(const uint64_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
PCCL_FN void pccl_k_store(uint64_t *at, uint64_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }
PCCL_FN uint64_t pccl_k_load_relaxed(const uint64_t *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
PCCL_FN void pccl_k_store_relaxed(uint64_t *at, uint64_t value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
/* Every store releases by itself: on a CPU that costs little, and the thread sanitizer knows no fences. */
PCCL_FN void pccl_k_fence(void) {}
PCCL_FN void pccl_k_store_fenced(uint64_t *at, uint64_t value) { pccl_k_store(at, value); }
#endif

#endif
