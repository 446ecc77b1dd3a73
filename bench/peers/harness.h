/* One way of timing for every library, so that figures can be compared: ranks meet at a barrier of the harness's own
 * before each sample; a sample is a batch of calls, its time the slowest rank's; the median and the least of the
 * samples are reported. Float32, sum, out of place. Sizes as nccl-tests counts: bytes of the larger buffer. */
#ifndef PCCL_BENCH_HARNESS_H
#define PCCL_BENCH_HARNESS_H

#include <stddef.h>

typedef enum bench_op {
  BENCH_ALLREDUCE = 0,
  BENCH_ALLGATHER,
  BENCH_REDUCE_SCATTER,
  BENCH_BROADCAST,
  BENCH_ALLTOALL,
  BENCH_OPS
} bench_op;

/* A library; the functions end the process on an error. */
typedef struct bench_peer {
  const char *name;
  int rank, ranks;
  void *(*allocate)(size_t bytes);
  /* `count` elements per block. */
  void (*call)(bench_op op, const float *in, float *out, size_t count);
  /* Called while a rank waits at a barrier: a library that must be polled; NULL: none. */
  void (*progress)(void);
} bench_peer;

/* Memory that all ranks share, made before they exist or by a file that the launcher names; bytes it needs. */
size_t bench_board_bytes(void);

/* Runs what the environment asks for (BENCH_OPS, BENCH_SIZES, BENCH_SECONDS) and prints, on rank 0, lines of
 * name, operation, ranks, bytes, median and least in microseconds. The number of wrong elements. */
size_t bench_run(const bench_peer *peer, void *board);

#endif
