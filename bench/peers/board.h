/* What the ranks of a benchmark share, whatever library they run: a barrier, the clock and their samples. Nothing here
 * calls a library, so that the same code times all of them. */
#ifndef PCCL_BENCH_BOARD_H
#define PCCL_BENCH_BOARD_H

#include <stddef.h>
#include <stdint.h>

enum { BENCH_MAX_RANKS = 64, BENCH_MAX_SAMPLES = 101 };

typedef struct bench_board bench_board;

/* A rank of a benchmark. */
typedef struct bench_ranks {
  bench_board *board; /* memory of bench_board_bytes() zero bytes that all ranks map */
  int rank, ranks;
  void (*progress)(void); /* polls the library while a rank waits at the barrier; NULL: it needs no polling */
} bench_ranks;

/* Seconds. */
typedef struct bench_times {
  double median, min;
} bench_times;

/* Makes `batch` calls. */
typedef void (*bench_batch_fn)(void *argument, int batch);

size_t bench_board_bytes(void);
double bench_now(void);

/* Returns when all ranks have called it. A rank that waits spins, and yields its core each time if ranks outnumber
 * cores. */
void bench_barrier(const bench_ranks *r);

/* The largest of the ranks' values. */
double bench_max(const bench_ranks *r, double value);

/* Adds to the count of wrong elements that all ranks share; the sum of all so far. */
uint64_t bench_add_wrong(const bench_ranks *r, uint64_t wrong);

/* A sample is a barrier, then `batch` calls without one between them; its time is that of the slowest rank, divided by
 * `batch`. The median of an even number of samples is the mean of the two in the middle. */
bench_times bench_sample(const bench_ranks *r, int samples, int batch, bench_batch_fn call, void *argument);

/* The median of values, which it sorts. */
double bench_median(double *values, int count);

/* A number of the environment, or `otherwise` if it is not set or not above zero. */
double bench_setting(const char *name, double otherwise);

/* Reads the next of BENCH_SIZES, numbers that are apart by spaces or commas, and moves *at behind it. */
size_t bench_next_size(const char **at);

#endif
