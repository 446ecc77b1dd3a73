/* CUDA's built-ins on a CPU, with a pthread for each GPU thread, for generated sources (src/kernel/device.h,
 * PCCL_K_BUILTINS). They show the logic of the GPU form where there is no GPU:
 *
 *   g++ -include tests/gpu/on_threads.h -x c++ -fno-strict-aliasing -ffp-contract=off -shared -fPIC plan.cu
 *
 * A file compiled so exports on_threads_run(), and driver_on_threads.c launches its kernels through that function. */
#ifndef ON_THREADS_H
#define ON_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PCCL_K_BUILTINS
#define PCCL_K_PAUSE() sched_yield() /* the thread that is waited for may need this core */
#define PCCL_K_BACKOFF 1             /* the stop flag is as near as any word */

#define __device__
#define __global__ __attribute__((visibility("default")))
#define __forceinline__ inline __attribute__((always_inline, unused))
#define __noinline__ __attribute__((noinline))

struct on_threads_index {
  unsigned x;
};

/* The threads of a block share this; the driver makes it. */
struct on_threads_block {
  pthread_barrier_t barrier;
  int any[3]; /* used in turn: one collects votes, one may still be read, one is clear */
};

static thread_local on_threads_index threadIdx, blockIdx, blockDim, gridDim;
static thread_local on_threads_block *on_threads_mine;
static thread_local unsigned on_threads_votes;

static inline void __attribute__((unused)) __syncthreads() { pthread_barrier_wait(&on_threads_mine->barrier); }

static inline int __attribute__((unused)) __syncthreads_or(int mine) {
  int *cell = &on_threads_mine->any[on_threads_votes % 3], *next = &on_threads_mine->any[(on_threads_votes + 2) % 3];
  on_threads_votes++;
  if (mine) {
    __atomic_store_n(cell, 1, __ATOMIC_RELAXED);
  }
  pthread_barrier_wait(&on_threads_mine->barrier);
  int result = __atomic_load_n(cell, __ATOMIC_RELAXED);
  if (threadIdx.x == 0) { /* all readers of it have reached the barrier, and its next voters have not passed it */
    __atomic_store_n(next, 0, __ATOMIC_RELAXED);
  }
  return result;
}

/* The calling thread runs the kernel as thread `thread` of block `block`. */
extern "C" __attribute__((visibility("default"), used)) void on_threads_run(void (*kernel)(const void *),
                                                                            const void *work, unsigned block,
                                                                            unsigned blocks, unsigned thread,
                                                                            unsigned threads, void *shared) {
  threadIdx.x = thread, blockIdx.x = block, blockDim.x = threads, gridDim.x = blocks;
  on_threads_mine = (on_threads_block *)shared;
  on_threads_votes = 0;
  kernel(work);
}

#endif
