/* Ranks as processes, by nothing but the public interface, so that a benchmark also builds against an older library. */
#ifndef PCCL_BENCH_FORK_H
#define PCCL_BENCH_FORK_H

#include <polyccl/polyccl.h>

#include "board.h"

/* The last arguments of a call that blocks. BENCH_NO_STREAMS: an older interface, in which all calls block, and send
 * and recv are missing (bench/runtime/before.sh). */
#ifdef BENCH_NO_STREAMS
#define BENCH_BLOCKING(comm) comm
#else
#define BENCH_BLOCKING(comm) comm, NULL
#endif

/* Runs in every rank. */
typedef void (*bench_rank_fn)(const bench_ranks *r, polyccl_comm *comm, void *argument);

/* Forks `ranks` processes that share a board and a communicator, each on a core of its own if there are enough, and
 * runs `function` in each. The exit status: 0, or 1 if a rank failed, which ends the others. */
int bench_fork(int ranks, bench_rank_fn function, void *argument);

/* Ends the process with the library's message if `result` is an error. */
void bench_require(polyccl_result result);

/* Memory of polyccl_mem_alloc() (shared) or any other (private), at a page; ends the process if there is none. */
void *bench_allocate_shared(size_t bytes);
void *bench_allocate_private(size_t bytes);

#endif
