/* What kernels need of the machine they run on. One source serves two forms:
 *
 *   C     A plan's thread block is a state machine on one CPU thread. A step that must wait leaves its function, and
 * the next call returns to it. GPU   A plan's thread block is a GPU thread block. Thread 0 polls, and the other threads
 * wait at a barrier.
 *
 * nvcc and hipcc compile the GPU form. Any other C++ compiler can, too: its user defines PCCL_K_BUILTINS, declares
 * CUDA's built-ins (__device__, threadIdx, __syncthreads_or() and so on) before this header, and may define
 * PCCL_K_PAUSE() and PCCL_K_BACKOFF.
 *
 * Generated files carry the text of this header and of moves.h, so it uses built-ins and fixed-width types alone. */
#ifndef PCCL_KERNEL_DEVICE_H
#define PCCL_KERNEL_DEVICE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__) || defined(__HIPCC__) || defined(PCCL_K_BUILTINS)
#define PCCL_GPU 1
#else
#define PCCL_GPU 0
#endif

#if PCCL_GPU
#define PCCL_FN __device__ __forceinline__
#else
#define PCCL_FN static inline __attribute__((always_inline, unused))
#endif

/* Marks the types of words and packs that access memory of any type. */
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
/* A barrier that also votes: it returns true to all threads if any thread came with true, so that all leave together.
 */
PCCL_FN int pccl_k_any(int mine) { return __syncthreads_or(mine); }
#endif

/* What a waiting thread does between two polls of a word that another thread block changes. */
#ifndef PCCL_K_PAUSE
#define PCCL_K_PAUSE() ((void)0)
#endif
/* A waiting thread polls so many times (a power of two) before it reads the stop flag, which lies in the host's memory
 * and costs a transfer over the bus. */
#ifndef PCCL_K_BACKOFF
#define PCCL_K_BACKOFF 1024
#endif

/* ---- memory that other thread blocks and ranks see ----
 *
 * The threads of a block write data and meet at a barrier. Then one thread releases what all of them wrote: it calls
 * pccl_k_fence() once and pccl_k_store_fenced() for each counter. */

#if defined(__CUDACC__)
/* System scope, since the peer may be another device or another process. */
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
/* Every store releases by itself, which costs little on a CPU. The thread sanitizer does not understand fences. */
PCCL_FN void pccl_k_fence(void) {}
PCCL_FN void pccl_k_store_fenced(uint64_t *at, uint64_t value) { pccl_k_store(at, value); }
#endif

#endif
