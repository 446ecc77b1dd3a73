/* usage: bench_first_call RANKS [BYTES]: the first AllReduce of ranks that are threads of this process, with the
 * process's peak memory. Prints ranks, bytes, milliseconds of polyccl_comm_init_all(), of the first call and of the
 * second, from the first rank's start to the last one's end, and VmHWM in MiB. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fork.h"

enum { CALLS = 2 };

typedef struct first_call {
  int ranks;
  size_t count;
  polyccl_comm **comms;
  pthread_barrier_t barrier;
} first_call;

typedef struct first_rank {
  first_call *shared;
  int rank;
  double start[CALLS], end[CALLS];
  pthread_t thread;
} first_rank;

static void *run_rank(void *argument) {
  first_rank *mine = argument;
  first_call *f = mine->shared;
  float *in = bench_allocate_private(f->count * sizeof *in), *out = bench_allocate_private(f->count * sizeof *out);
  for (size_t i = 0; i < f->count; i++) {
    in[i] = (float)((mine->rank + 1) * (int)(1 + i % 7));
  }
  for (int call = 0; call < CALLS; call++) {
    memset(out, 0xff, f->count * sizeof *out);
    pthread_barrier_wait(&f->barrier);
    mine->start[call] = bench_now();
    bench_require(
        polyccl_allreduce(in, out, f->count, POLYCCL_FLOAT32, POLYCCL_SUM, BENCH_BLOCKING(f->comms[mine->rank])));
    mine->end[call] = bench_now();
    for (size_t i = 0; i < f->count; i++) {
      float expected = (float)(f->ranks * (f->ranks + 1) / 2 * (int)(1 + i % 7)); /* below 2^24 with 1,024 ranks */
      if (out[i] != expected) {
        fprintf(stderr, "bench_first_call: rank %d, call %d: element %zu is %g instead of %g\n", mine->rank, call, i,
                (double)out[i], (double)expected);
        _exit(1);
      }
    }
  }
  free(in);
  free(out);
  return NULL;
}

static double measure_call(const first_rank *rank, int ranks, int call) {
  double start = rank[0].start[call], end = rank[0].end[call];
  for (int r = 1; r < ranks; r++) {
    start = rank[r].start[call] < start ? rank[r].start[call] : start;
    end = rank[r].end[call] > end ? rank[r].end[call] : end;
  }
  return end - start;
}

static double read_peak_mib(void) {
  char line[200];
  double kib = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL) {
    if (sscanf(line, "VmHWM: %lf", &kib) == 1) {
      break;
    }
  }
  if (status != NULL) {
    fclose(status);
  }
  return kib / 1024;
}

int main(int argc, char **argv) {
  first_call f = {.ranks = argc >= 2 ? atoi(argv[1]) : 0};
  size_t bytes = argc == 3 ? strtoull(argv[2], NULL, 10) : 4096;
  if (argc > 3 || f.ranks < 1 || f.ranks > POLYCCL_MAX_LOCAL_RANKS || bytes < sizeof(float)) {
    fprintf(stderr, "usage: bench_first_call RANKS [BYTES]   (1 to %d ranks)\n", POLYCCL_MAX_LOCAL_RANKS);
    return 2;
  }
  f.count = bytes / sizeof(float);
  f.comms = calloc((size_t)f.ranks, sizeof *f.comms);
  first_rank *rank = calloc((size_t)f.ranks, sizeof *rank);
  if (f.comms == NULL || rank == NULL || pthread_barrier_init(&f.barrier, NULL, (unsigned)f.ranks) != 0) {
    fprintf(stderr, "bench_first_call: no memory\n");
    return 1;
  }
  double start = bench_now();
  bench_require(polyccl_comm_init_all(f.comms, f.ranks));
  double init = bench_now() - start;
  for (int r = 0; r < f.ranks; r++) {
    rank[r].shared = &f;
    rank[r].rank = r;
    if (pthread_create(&rank[r].thread, NULL, run_rank, &rank[r]) != 0) {
      fprintf(stderr, "bench_first_call: cannot start the thread of rank %d\n", r);
      return 1;
    }
  }
  for (int r = 0; r < f.ranks; r++) {
    pthread_join(rank[r].thread, NULL);
  }
  printf("%d\t%zu\t%.2f\t%.2f\t%.2f\t%.1f\n", f.ranks, bytes, init * 1e3, measure_call(rank, f.ranks, 0) * 1e3,
         measure_call(rank, f.ranks, 1) * 1e3, read_peak_mib());
  for (int r = 0; r < f.ranks; r++) {
    polyccl_comm_destroy(f.comms[r]);
  }
  free(rank);
  free(f.comms);
  return 0;
}
