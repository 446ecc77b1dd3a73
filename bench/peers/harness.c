#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[BENCH_OPS] = {"allreduce", "allgather", "reduce_scatter", "broadcast_in_place",
                                                "alltoall",  "sendrecv",  "pingpong",       "broadcast"};

enum { SMALL = 32768, MAX_BATCH = 200 };

/* One operation at one size. */
typedef struct bench_case {
  const bench_peer *peer;
  bench_op op;
  size_t bytes, count;
  float *in, *out;
  int roots; /* the root goes round so many ranks; 1: it is rank 0 */
} bench_case;

static int has_blocks(bench_op op) {
  return op == BENCH_ALLGATHER || op == BENCH_REDUCE_SCATTER || op == BENCH_ALLTOALL;
}

static size_t count_inputs(const bench_case *c) {
  size_t blocks = c->op == BENCH_REDUCE_SCATTER || c->op == BENCH_ALLTOALL ? (size_t)c->peer->ranks.ranks : 1;
  return c->count * blocks;
}

static size_t count_outputs(const bench_case *c) {
  size_t blocks = c->op == BENCH_ALLGATHER || c->op == BENCH_ALLTOALL ? (size_t)c->peer->ranks.ranks : 1;
  return c->count * blocks;
}

/* Small whole numbers that tell ranks and places apart; sums are exact. */
static float value_at(int rank, size_t index) { return (float)((rank + 1) * (int)(1 + index % 7)); }

static float expected(const bench_case *c, size_t i) {
  int rank = c->peer->ranks.rank, ranks = c->peer->ranks.ranks, sum = ranks * (ranks + 1) / 2;
  size_t here = (size_t)rank * c->count;
  switch (c->op) {
    case BENCH_ALLREDUCE: return (float)(sum * (int)(1 + i % 7));
    case BENCH_ALLGATHER: return value_at((int)(i / c->count), i % c->count);
    case BENCH_REDUCE_SCATTER: return (float)(sum * (int)(1 + (here + i) % 7));
    case BENCH_ALLTOALL: return value_at((int)(i / c->count), here + i % c->count);
    case BENCH_SENDRECV:
    case BENCH_PINGPONG: return value_at(1 - rank, i);
    default: return value_at(0, i);
  }
}

static void call_batch(void *argument, int batch) {
  const bench_case *c = argument;
  for (int i = 0, root = 0; i < batch; i++) {
    c->peer->call(c->op, c->in, c->out, c->count, root);
    root = root + 1 < c->roots ? root + 1 : 0;
  }
}

static void check_case(bench_case *c) {
  const bench_ranks *r = &c->peer->ranks;
  size_t inputs = count_inputs(c), outputs = count_outputs(c), wrong = 0;
  for (size_t i = 0; i < inputs; i++) {
    c->in[i] = value_at(r->rank, i);
  }
  memset(c->out, 0xff, outputs * sizeof *c->out);
  if (c->op == BENCH_BROADCAST_IN_PLACE && r->rank == 0) {
    memcpy(c->out, c->in, outputs * sizeof *c->out);
  }
  bench_barrier(r);
  call_batch(c, 1);
  size_t first = outputs;
  for (size_t i = outputs; i-- > 0;) {
    if (c->out[i] != expected(c, i)) {
      first = i;
      wrong++;
    }
  }
  if (wrong > 0) {
    fprintf(stderr, "%s %s, %zu bytes: rank %d has %zu wrong elements of %zu, the first at %zu: %g instead of %g\n",
            c->peer->name, op_names[c->op], c->bytes, r->rank, wrong, outputs, first, (double)c->out[first],
            (double)expected(c, first));
  }
  bench_add_wrong(r, wrong);
  bench_barrier(r);
}

/* Seconds of a call, roughly. */
static double estimate(bench_case *c, int calls) {
  const bench_ranks *r = &c->peer->ranks;
  bench_barrier(r);
  double start = bench_now();
  call_batch(c, calls);
  return bench_max(r, (bench_now() - start) / calls);
}

static double clip(double value, double min, double max) { return value < min ? min : value > max ? max : value; }

static void report(const bench_case *c, const char *way, bench_times times) {
  double scale = c->op == BENCH_PINGPONG ? 0.5e6 : 1e6;
  if (c->peer->ranks.rank == 0) {
    printf("%s\t%s\t%d\t%zu\t%.3f\t%.3f\t%s\n", c->peer->name, op_names[c->op], c->peer->ranks.ranks, c->bytes,
           times.median * scale, times.min * scale, way);
    fflush(stdout);
  }
}

static void time_back_to_back(bench_case *c) {
  c->roots = 1;
  int trial = c->bytes <= 2 * SMALL ? 10 : 2;
  bench_barrier(&c->peer->ranks);
  call_batch(c, trial);
  double each = estimate(c, trial);
  int batch = (int)clip(0.0005 / each, 1, MAX_BATCH);
  int samples = (int)clip(bench_setting("BENCH_SECONDS", 0.3) / (each * batch), 5, BENCH_MAX_SAMPLES);
  report(c, "back", bench_sample(&c->peer->ranks, samples, batch, call_batch, c));
}

static void time_single(bench_case *c) {
  int ranks = c->peer->ranks.ranks, small = c->bytes <= SMALL;
  c->roots = ranks;
  double each = estimate(c, small ? 10 : 1);
  int batch = small ? (int)clip(0.005 / each, 1, MAX_BATCH) : 1;
  batch -= batch > ranks ? batch % ranks : 0;
  double room = 5 * bench_setting("BENCH_SECONDS", 0.3) / (each * batch);
  int samples = c->bytes <= 1 << 20 ? 51 : c->bytes <= 16 << 20 ? 31 : 11;
  samples = (int)clip(room, each > 1 ? 3 : 5, samples);
  if (each <= 0.1) {
    bench_sample(&c->peer->ranks, 2, batch, call_batch, c); /* warms up */
  }
  report(c, "single", bench_sample(&c->peer->ranks, samples, batch, call_batch, c));
}

/* Whether `word` stands in a list whose words are apart by spaces or commas. NULL: no list. */
static int lists(const char *list, const char *word) {
  size_t length = strlen(word);
  for (const char *at = list; at != NULL && *at != '\0';) {
    size_t end = strcspn(at, " ,");
    if (end == length && strncmp(at, word, length) == 0) {
      return 1;
    }
    at += end + strspn(at + end, " ,");
  }
  return 0;
}

static int is_wanted(bench_op op, int ranks) {
  const char *ops = getenv("BENCH_OPS");
  if ((op == BENCH_SENDRECV || op == BENCH_PINGPONG) && ranks != 2) {
    return 0;
  }
  return ops != NULL ? lists(ops, op_names[op]) : op != BENCH_BROADCAST;
}

size_t bench_run(const bench_peer *peer) {
  int ranks = peer->ranks.ranks;
  const char *sizes = getenv("BENCH_SIZES"), *ways = getenv("BENCH_WAYS");
  sizes = sizes != NULL ? sizes : "8 1024 32768 262144 1048576 16777216 134217728";
  size_t max = 0;
  for (const char *at = sizes; *at != '\0';) {
    size_t bytes = bench_next_size(&at);
    max = bytes > max ? bytes : max;
  }
  size_t room = max + sizeof(float) * (size_t)ranks;
  float *in = peer->allocate(room), *out = peer->allocate(room);
  memset(in, 0, room);
  memset(out, 0, room);
  for (int op = 0; op < BENCH_OPS; op++) {
    for (const char *at = sizes; *at != '\0' && is_wanted((bench_op)op, ranks);) {
      size_t bytes = bench_next_size(&at),
             count = bytes / sizeof(float) / (has_blocks((bench_op)op) ? (size_t)ranks : 1);
      bench_case c = {peer, (bench_op)op, bytes, count > 0 ? count : 1, in, out, 1};
      check_case(&c);
      if (ways == NULL || lists(ways, "back")) {
        time_back_to_back(&c);
      }
      if (ways == NULL || lists(ways, "single")) {
        time_single(&c);
      }
    }
  }
  bench_barrier(&peer->ranks);
  return bench_add_wrong(&peer->ranks, 0);
}
