#include "board.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct bench_board {
  _Alignas(128) _Atomic uint32_t arrived;
  _Alignas(128) _Atomic uint32_t phase;
  _Alignas(128) double sample[BENCH_MAX_RANKS][BENCH_MAX_SAMPLES];
  double value[BENCH_MAX_RANKS];
  _Atomic uint64_t wrong;
};

size_t bench_board_bytes(void) { return sizeof(bench_board); }

double bench_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bench_setting(const char *name, double otherwise) {
  const char *text = getenv(name);
  return text != NULL && atof(text) > 0 ? atof(text) : otherwise;
}

size_t bench_next_size(const char **at) {
  char *end;
  size_t bytes = strtoull(*at, &end, 10);
  if (end == *at) {
    fprintf(stderr, "BENCH_SIZES: not a number: %s\n", *at);
    _exit(2);
  }
  *at = end + strspn(end, " ,");
  return bytes;
}

/* sysconf() reads a file, and a rank that does so at the barrier starts late. */
static long count_cores(void) {
  static long cores;
  if (cores == 0) {
    cores = sysconf(_SC_NPROCESSORS_ONLN);
  }
  return cores;
}

void bench_barrier(const bench_ranks *r) {
  bench_board *b = r->board;
  int crowded = r->ranks > count_cores();
  uint32_t phase = atomic_load(&b->phase);
  if (atomic_fetch_add(&b->arrived, 1) + 1 == (uint32_t)r->ranks) {
    atomic_store(&b->arrived, 0);
    atomic_store(&b->phase, phase + 1);
    return;
  }
  for (unsigned spins = 1; atomic_load_explicit(&b->phase, memory_order_acquire) == phase; spins++) {
    if (r->progress != NULL) {
      r->progress();
    }
    if (crowded || spins % 100000 == 0) {
      sched_yield();
    }
  }
}

double bench_max(const bench_ranks *r, double value) {
  bench_board *b = r->board;
  b->value[r->rank] = value;
  bench_barrier(r);
  double max = b->value[0];
  for (int rank = 1; rank < r->ranks; rank++) {
    max = b->value[rank] > max ? b->value[rank] : max;
  }
  bench_barrier(r);
  return max;
}

uint64_t bench_add_wrong(const bench_ranks *r, uint64_t wrong) {
  return atomic_fetch_add(&r->board->wrong, wrong) + wrong;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

bench_times bench_sample(const bench_ranks *r, int samples, int batch, bench_batch_fn call, void *argument) {
  bench_board *b = r->board;
  for (int s = 0; s < samples; s++) {
    bench_barrier(r);
    double start = bench_now();
    call(argument, batch);
    b->sample[r->rank][s] = (bench_now() - start) / batch;
  }
  bench_barrier(r);
  double slowest[BENCH_MAX_SAMPLES];
  for (int s = 0; s < samples; s++) {
    slowest[s] = 0;
    for (int rank = 0; rank < r->ranks; rank++) {
      slowest[s] = b->sample[rank][s] > slowest[s] ? b->sample[rank][s] : slowest[s];
    }
  }
  bench_barrier(r); /* the next call of this function overwrites the samples */
  bench_times times = {.median = bench_median(slowest, samples)};
  times.min = slowest[0];
  return times;
}
