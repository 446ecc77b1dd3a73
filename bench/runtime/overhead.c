/* usage: bench_overhead RANKS: nanoseconds of small calls, which are what the library itself costs: an AllReduce of 8 B
 * on the NULL stream, and a group of 8 sends and 8 receives of 8 B with the next rank (one rank: with
 * itself). The cases take turns sample by sample. Prints case, ranks, median, min. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fork.h"

enum { SAMPLES = 51, BATCH = 100, MESSAGES = 8, ELEMENTS = 2 };

typedef struct overhead {
  int next, previous;
  polyccl_comm *comm;
  float in[MESSAGES][ELEMENTS], out[MESSAGES][ELEMENTS];
} overhead;

/* Seconds of BATCH calls. */
typedef double (*overhead_fn)(overhead *o);

static void reduce(overhead *o) {
  bench_require(polyccl_allreduce(o->in[0], o->out[0], ELEMENTS, POLYCCL_FLOAT32, POLYCCL_SUM, o->comm, NULL));
}

static void exchange(overhead *o, int first, int messages) {
  bench_require(polyccl_group_start());
  for (int m = first; m < first + messages; m++) {
    bench_require(polyccl_send(o->in[m], ELEMENTS, POLYCCL_FLOAT32, o->next, o->comm, NULL));
    bench_require(polyccl_recv(o->out[m], ELEMENTS, POLYCCL_FLOAT32, o->previous, o->comm, NULL));
  }
  bench_require(polyccl_group_end());
}

static double time_blocking(overhead *o) {
  double start = bench_now();
  for (int i = 0; i < BATCH; i++) {
    reduce(o);
  }
  return bench_now() - start;
}

static double time_group(overhead *o) {
  double start = bench_now();
  for (int i = 0; i < BATCH; i++) {
    exchange(o, 0, MESSAGES);
  }
  return bench_now() - start;
}

static double time_pairs(overhead *o) {
  double start = bench_now();
  for (int i = 0; i < BATCH; i++) {
    for (int m = 0; m < MESSAGES; m++) {
      exchange(o, m, 1);
    }
  }
  return bench_now() - start;
}

static const struct {
  const char *name;
  overhead_fn run;
  int messages; /* the outputs that it writes; 0: an AllReduce */
} cases[] = {
    {"AllReduce, NULL stream", time_blocking, 0},
    {"group of 8 sends and 8 receives, NULL stream", time_group, MESSAGES},
    {"8 groups of a send and a receive, NULL stream", time_pairs, MESSAGES},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static float value_at(int rank, int message, int element) { return (float)(1000 * rank + 10 * message + element + 1); }

static void check(const bench_ranks *r, overhead *o, int which) {
  memset(o->out, 0xff, sizeof o->out);
  bench_barrier(r);
  cases[which].run(o);
  int rows = cases[which].messages > 0 ? cases[which].messages : 1;
  for (int m = 0; m < rows; m++) {
    for (int e = 0; e < ELEMENTS; e++) {
      float expected = cases[which].messages > 0 ? value_at(o->previous, m, e) : 0;
      for (int rank = 0; cases[which].messages == 0 && rank < r->ranks; rank++) {
        expected += value_at(rank, m, e);
      }
      if (o->out[m][e] != expected) {
        fprintf(stderr, "bench_overhead: %s: rank %d has %g instead of %g (message %d, element %d)\n",
                cases[which].name, r->rank, (double)o->out[m][e], (double)expected, m, e);
        _exit(1);
      }
    }
  }
}

static void run_rank(const bench_ranks *r, polyccl_comm *comm, void *argument) {
  const char *only = argument;
  static double seconds[CASES][SAMPLES];
  overhead o = {.next = (r->rank + 1) % r->ranks, .previous = (r->rank + r->ranks - 1) % r->ranks, .comm = comm};
  for (int m = 0; m < MESSAGES; m++) {
    for (int e = 0; e < ELEMENTS; e++) {
      o.in[m][e] = value_at(r->rank, m, e);
    }
  }
  for (int c = 0; c < CASES; c++) {
    if (strstr(cases[c].name, only) != NULL) {
      check(r, &o, c);
    }
  }
  for (int s = 0; s < SAMPLES; s++) {
    for (int c = 0; c < CASES; c++) {
      if (strstr(cases[c].name, only) != NULL) {
        bench_barrier(r);
        seconds[c][s] = bench_max(r, cases[c].run(&o) / BATCH);
      }
    }
  }
  for (int c = 0; c < CASES && r->rank == 0; c++) {
    if (strstr(cases[c].name, only) != NULL) {
      double median = bench_median(seconds[c], SAMPLES);
      printf("%s\t%d\t%.1f\t%.1f\n", cases[c].name, r->ranks, median * 1e9, seconds[c][0] * 1e9);
    }
  }
}

int main(int argc, char **argv) {
  if (argc != 2 && argc != 3) {
    fprintf(stderr, "usage: bench_overhead RANKS [TEXT]   (TEXT: only the cases whose names have it)\n");
    return 2;
  }
  return bench_fork(atoi(argv[1]), run_rank, argc == 3 ? argv[2] : "");
}
