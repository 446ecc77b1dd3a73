#include "harness.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 64, MOST_SAMPLES = 101, MOST_BATCH = 200 };

typedef struct board {
  _Alignas(128) _Atomic uint32_t arrived;
  _Alignas(128) _Atomic uint32_t phase;
  _Alignas(128) double sample[MOST_RANKS][MOST_SAMPLES];
  double estimate[MOST_RANKS];
  _Atomic uint64_t wrong;
} board;

static const char *const op_names[BENCH_OPS] = {"allreduce", "allgather", "reduce_scatter", "broadcast", "alltoall"};

size_t bench_board_bytes(void) { return sizeof(board); }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void barrier(const bench_peer *peer, board *b) {
  uint32_t phase = atomic_load(&b->phase);
  if (atomic_fetch_add(&b->arrived, 1) + 1 == (uint32_t)peer->ranks) {
    atomic_store(&b->arrived, 0);
    atomic_store(&b->phase, phase + 1);
    return;
  }
  int crowded = peer->ranks > sysconf(_SC_NPROCESSORS_ONLN);
  for (unsigned spins = 1; atomic_load_explicit(&b->phase, memory_order_acquire) == phase; spins++) {
    if (peer->progress != NULL) {
      peer->progress();
    }
    if (crowded || spins % 100000 == 0) {
      sched_yield();
    }
  }
}

static int is_blocked(bench_op op) { return op != BENCH_ALLREDUCE && op != BENCH_BROADCAST; }

/* Small whole numbers that tell ranks and places apart; sums are exact. */
static float value_at(int rank, size_t index) { return (float)((rank + 1) * (int)(1 + index % 7)); }

static float expected(const bench_peer *peer, bench_op op, size_t count, size_t i) {
  int sum = peer->ranks * (peer->ranks + 1) / 2;
  switch (op) {
    case BENCH_ALLREDUCE: return (float)(sum * (int)(1 + i % 7));
    case BENCH_ALLGATHER: return value_at((int)(i / count), i % count);
    case BENCH_REDUCE_SCATTER: return (float)(sum * (int)(1 + ((size_t)peer->rank * count + i) % 7));
    case BENCH_BROADCAST: return value_at(0, i);
    default: return value_at((int)(i / count), (size_t)peer->rank * count + i % count);
  }
}

static void check(const bench_peer *peer, board *b, bench_op op, size_t count, const float *out) {
  size_t length = op == BENCH_ALLGATHER || op == BENCH_ALLTOALL ? count * (size_t)peer->ranks : count;
  uint64_t wrong = 0;
  for (size_t i = 0; i < length; i++) {
    wrong += out[i] != expected(peer, op, count, i);
  }
  atomic_fetch_add(&b->wrong, wrong);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void report(const bench_peer *peer, board *b, bench_op op, size_t bytes, int samples) {
  double slowest[MOST_SAMPLES];
  for (int s = 0; s < samples; s++) {
    slowest[s] = 0;
    for (int r = 0; r < peer->ranks; r++) {
      slowest[s] = b->sample[r][s] > slowest[s] ? b->sample[r][s] : slowest[s];
    }
  }
  qsort(slowest, (size_t)samples, sizeof *slowest, by_value);
  printf("%s\t%s\t%d\t%zu\t%.3f\t%.3f\n", peer->name, op_names[op], peer->ranks, bytes, slowest[samples / 2] * 1e6,
         slowest[0] * 1e6);
  fflush(stdout);
}

static double seconds_per_case(void) {
  const char *text = getenv("BENCH_SECONDS");
  return text != NULL && atof(text) > 0 ? atof(text) : 0.3;
}

static void run_case(const bench_peer *peer, board *b, bench_op op, size_t bytes, float *in, float *out) {
  size_t ranks = (size_t)peer->ranks, count = bytes / sizeof(float) / (is_blocked(op) ? ranks : 1);
  count = count > 0 ? count : 1;
  size_t in_length = op == BENCH_REDUCE_SCATTER || op == BENCH_ALLTOALL ? count * ranks : count;
  size_t out_length = op == BENCH_ALLGATHER || op == BENCH_ALLTOALL ? count * ranks : count;
  for (size_t i = 0; i < in_length; i++) {
    in[i] = value_at(peer->rank, i);
  }
  memset(out, 0xff, out_length * sizeof *out);
  barrier(peer, b);
  peer->call(op, in, out, count);
  check(peer, b, op, count, out);
  barrier(peer, b);
  int trial = bytes <= 65536 ? 10 : 2;
  for (int i = 0; i < trial; i++) {
    peer->call(op, in, out, count);
  }
  barrier(peer, b);
  double start = now();
  for (int i = 0; i < trial; i++) {
    peer->call(op, in, out, count);
  }
  b->estimate[peer->rank] = (now() - start) / trial;
  barrier(peer, b);
  double each = 0;
  for (int r = 0; r < peer->ranks; r++) {
    each = b->estimate[r] > each ? b->estimate[r] : each;
  }
  barrier(peer, b);
  double fits = 0.0005 / each;
  int batch = fits < 1 ? 1 : fits > MOST_BATCH ? MOST_BATCH : (int)fits;
  double wanted = seconds_per_case() / (each * batch);
  int samples = wanted < 5 ? 5 : wanted > MOST_SAMPLES ? MOST_SAMPLES : (int)wanted;
  for (int s = 0; s < samples; s++) {
    barrier(peer, b);
    start = now();
    for (int i = 0; i < batch; i++) {
      peer->call(op, in, out, count);
    }
    b->sample[peer->rank][s] = (now() - start) / batch;
  }
  barrier(peer, b);
  if (peer->rank == 0) {
    report(peer, b, op, bytes, samples);
  }
  barrier(peer, b);
}

size_t bench_run(const bench_peer *peer, void *shared) {
  board *b = shared;
  const char *ops = getenv("BENCH_OPS"), *list = getenv("BENCH_SIZES");
  char sizes[400];
  snprintf(sizes, sizeof sizes, "%s", list != NULL ? list : "8 1024 32768 262144 1048576 16777216 134217728");
  size_t most = 0;
  for (char *at = sizes; *at != '\0';) {
    size_t bytes = strtoull(at, &at, 10);
    most = bytes > most ? bytes : most;
    at += strspn(at, " ,");
  }
  size_t room = most + sizeof(float) * (size_t)peer->ranks;
  float *in = peer->allocate(room), *out = peer->allocate(room);
  memset(in, 0, room);
  memset(out, 0, room);
  for (int op = 0; op < BENCH_OPS; op++) {
    if (ops != NULL && strstr(ops, op_names[op]) == NULL) {
      continue;
    }
    for (char *at = sizes; *at != '\0';) {
      size_t bytes = strtoull(at, &at, 10);
      at += strspn(at, " ,");
      run_case(peer, b, (bench_op)op, bytes, in, out);
    }
  }
  return atomic_load(&b->wrong);
}
