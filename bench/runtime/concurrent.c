/* usage: bench_concurrent RANKS private|shared: AllReduces of two communicators over the same ranks, one after another
 * and at once, where half of the ranks issue the second one first. The ways take turns sample by sample. BENCH_SIZES:
 * bytes of each AllReduce. Prints way, memory, ranks, bytes, median and min of both together in microseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fork.h"

enum { PAIR = 2, MAX_SAMPLES = 31 };

typedef struct half {
  polyccl_comm *comm;
  polyccl_stream *stream;
  float *in, *out;
} half;

typedef struct concurrent {
  half half[PAIR];
  size_t count;
  int first; /* the half that this rank issues first */
} concurrent;

typedef struct setup {
  int shared;
  polyccl_unique_id id; /* of the second communicator, made before the ranks exist */
} setup;

static void reduce(const concurrent *c, int which, polyccl_stream *stream) {
  const half *h = &c->half[which];
  bench_require(polyccl_allreduce(h->in, h->out, c->count, POLYCCL_FLOAT32, POLYCCL_SUM, h->comm, stream));
}

static void run_blocking(const concurrent *c) {
  reduce(c, 0, NULL);
  reduce(c, 1, NULL);
}

static void run_in_turn(const concurrent *c) {
  for (int which = 0; which < PAIR; which++) {
    reduce(c, which, c->half[which].stream);
    bench_require(polyccl_stream_synchronize(c->half[which].stream));
  }
}

static void run_at_once(const concurrent *c) {
  reduce(c, c->first, c->half[c->first].stream);
  reduce(c, 1 - c->first, c->half[1 - c->first].stream);
  bench_require(polyccl_stream_synchronize(c->half[0].stream));
  bench_require(polyccl_stream_synchronize(c->half[1].stream));
}

static const struct {
  const char *name;
  void (*run)(const concurrent *c);
} ways[] = {{"one after another, NULL stream", run_blocking},
            {"one after another, two streams", run_in_turn},
            {"at once, two streams", run_at_once}};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* Whole numbers that tell communicators, ranks and places apart. */
static float value_at(int rank, int which, size_t i) { return (float)((rank + 1) * (int)(1 + 10 * which + i % 7)); }

static void check(const bench_ranks *r, const concurrent *c, int way) {
  for (int which = 0; which < PAIR; which++) {
    memset(c->half[which].out, 0xff, c->count * sizeof(float));
  }
  bench_barrier(r);
  ways[way].run(c);
  for (int which = 0; which < PAIR; which++) {
    for (size_t i = 0; i < c->count; i++) {
      float expected = (float)(r->ranks * (r->ranks + 1) / 2 * (int)(1 + 10 * which + i % 7));
      if (c->half[which].out[i] != expected) {
        fprintf(stderr, "bench_concurrent: %s: rank %d, communicator %d: element %zu of %zu is %g instead of %g\n",
                ways[way].name, r->rank, which, i, c->count, (double)c->half[which].out[i], (double)expected);
        _exit(1);
      }
    }
  }
}

static void run_size(const bench_ranks *r, concurrent *c, size_t bytes, const char *memory) {
  static double seconds[WAYS][MAX_SAMPLES];
  int samples = bytes <= 16 << 20 ? MAX_SAMPLES : 11;
  c->count = bytes / sizeof(float);
  for (int which = 0; which < PAIR; which++) {
    for (size_t i = 0; i < c->count; i++) {
      c->half[which].in[i] = value_at(r->rank, which, i);
    }
  }
  for (int way = 0; way < WAYS; way++) {
    check(r, c, way);
  }
  for (int s = 0; s < samples; s++) {
    for (int way = 0; way < WAYS; way++) {
      bench_barrier(r);
      double start = bench_now();
      ways[way].run(c);
      seconds[way][s] = bench_max(r, bench_now() - start);
    }
  }
  for (int way = 0; way < WAYS && r->rank == 0; way++) {
    double median = bench_median(seconds[way], samples);
    printf("%s\t%s\t%d\t%zu\t%.1f\t%.1f\n", ways[way].name, memory, r->ranks, bytes, median * 1e6,
           seconds[way][0] * 1e6);
  }
}

static void run_rank(const bench_ranks *r, polyccl_comm *comm, void *argument) {
  const setup *s = argument;
  const char *sizes = getenv("BENCH_SIZES");
  sizes = sizes != NULL ? sizes : "1048576 16777216 134217728";
  size_t max = sizeof(float);
  for (const char *at = sizes; *at != '\0';) {
    size_t bytes = bench_next_size(&at);
    max = bytes > max ? bytes : max;
  }
  concurrent c = {.half = {{.comm = comm}, {.comm = NULL}}, .first = r->rank % PAIR};
  bench_require(polyccl_comm_init_rank(&c.half[1].comm, r->ranks, s->id, r->rank));
  for (int which = 0; which < PAIR; which++) {
    half *h = &c.half[which];
    h->in = s->shared ? bench_allocate_shared(max) : bench_allocate_private(max);
    h->out = s->shared ? bench_allocate_shared(max) : bench_allocate_private(max);
    bench_require(polyccl_stream_create(&h->stream));
  }
  for (const char *at = sizes; *at != '\0';) {
    run_size(r, &c, bench_next_size(&at), s->shared ? "shared" : "private");
  }
  bench_require(polyccl_stream_destroy(c.half[0].stream));
  bench_require(polyccl_stream_destroy(c.half[1].stream));
  bench_barrier(r);
  polyccl_comm_destroy(c.half[1].comm);
}

int main(int argc, char **argv) {
  setup s = {.shared = argc == 3 && strcmp(argv[2], "shared") == 0};
  if (argc != 3 || (!s.shared && strcmp(argv[2], "private") != 0)) {
    fprintf(stderr, "usage: bench_concurrent RANKS private|shared\n");
    return 2;
  }
  bench_require(polyccl_get_unique_id(&s.id));
  return bench_fork(atoi(argv[1]), run_rank, &s);
}
