/* Two ways of timing for every library, both in one run, so that figures can be compared. Ranks meet at a barrier of
 * the harness's own before each sample; a sample's time is the slowest rank's; the median and the min of the samples
 * are reported. Float32, sum.
 *
 * Back to back: a sample is a batch of calls without a barrier between them (0.5 ms of calls, at most 200), so that a
 * rank may be in the next call while another is in this one. A root is rank 0.
 *
 * Single: above 32 KiB a sample is one call, after the barrier; the root is rank 0. A call of 32 KiB or less is too
 * short for a barrier that costs as much, so a sample is a batch of calls (5 ms of calls, at most 200, a multiple of
 * the ranks), and the root goes round the ranks inside it, so that no root runs ahead of the others for long. 51
 * samples; above 1 MiB 31, above 16 MiB 11; fewer, but at least 5, if they would take too long (at least 3 if a call
 * takes over a second).
 *
 * Sizes as nccl-tests counts them: bytes of the larger buffer of a rank. That is the output for AllGather and the input
 * for ReduceScatter and AllToAll, of which each rank's block is a part; a block has at least one element. */
#ifndef PCCL_BENCH_HARNESS_H
#define PCCL_BENCH_HARNESS_H

#include <stddef.h>

#include "board.h"

typedef enum bench_op {
  BENCH_ALLREDUCE = 0,
  BENCH_ALLGATHER,
  BENCH_REDUCE_SCATTER,
  BENCH_BROADCAST_IN_PLACE, /* the root's input is its output, as MPI_Bcast has it */
  BENCH_ALLTOALL,
  BENCH_SENDRECV,  /* 2 ranks: each sends to the other and receives from it, at once */
  BENCH_PINGPONG,  /* 2 ranks: rank 0 sends, rank 1 answers; half the time of both */
  BENCH_BROADCAST, /* out of place; only if BENCH_OPS names it */
  BENCH_OPS
} bench_op;

/* A library; the function ends the process on an error. */
typedef struct bench_peer {
  const char *name;
  bench_ranks ranks;
  void *(*allocate)(size_t bytes);
  /* `count` elements per block. `root`: of the broadcasts. */
  void (*call)(bench_op op, const float *in, float *out, size_t count, int root);
} bench_peer;

/* Runs what the environment asks for and prints, on rank 0, lines of name, operation, ranks, bytes, median and min in
 * microseconds, way (back or single). The number of wrong elements: each operation's result is compared with what it
 * must be, element by element, before it is timed. Environment:
 *   BENCH_OPS      operations (default: all that the number of ranks allows, but not broadcast)
 *   BENCH_SIZES    bytes (default: 8 1024 32768 262144 1048576 16777216 134217728)
 *   BENCH_WAYS     back, single (default: both)
 *   BENCH_SECONDS  about what a case may take back to back (default 0.3); single: five times that at most */
size_t bench_run(const bench_peer *peer);

#endif
