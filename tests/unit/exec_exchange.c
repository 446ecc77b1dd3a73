/* Sends and receives in any pattern: every message arrives whole, in order and at its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "exchange_util.h"

typedef enum shape { RING, ALL, OWN, RANDOM, SHAPES } shape;

typedef struct pattern {
  shape shape;
  uint64_t seed;
  bool shared;   /* memory of polyccl_mem_alloc() */
  bool counters; /* as over a transport without lines */
  size_t largest;
  int rounds;
} pattern;

enum { GUARD = 0x5a };

static int messages(const pattern *p, int ranks, int src, int dst, int round) {
  switch (p->shape) {
    case RING: return dst == (src + 1) % ranks;
    case ALL: return 1 + (int)(p->seed % 4);
    case OWN: return src == dst ? 3 : 0;
    default: return (int)draw(p->seed, src, dst, 1000 + round, 6);
  }
}

/* Elements; many messages are empty, small or just around a slot. */
static size_t size_of(const pattern *p, int src, int dst, int message) {
  size_t which = draw(p->seed, src, dst, 2000 + message, 8);
  size_t any = draw(p->seed, src, dst, 3000 + message, p->largest + 1);
  return which == 0 ? 0 : which < 4 ? any % 80 : which == 4 ? any % 5000 : any;
}

static polyccl_dtype type_of(const pattern *p, int src, int dst, int message) {
  return (polyccl_dtype)draw(p->seed, src, dst, 4000 + message, POLYCCL_DTYPE_COUNT);
}

/* The transfers of one rank, lanes interleaved as the seed says. */
static size_t list_transfers(const pattern *p, int ranks, int rank, int round, arena *memory, pccl_transfer *list,
                             size_t room) {
  int next[2][16] = {0};
  size_t length = 0, left = 0;
  for (int peer = 0; peer < ranks; peer++) {
    left += (size_t)(messages(p, ranks, rank, peer, round) + messages(p, ranks, peer, rank, round));
  }
  for (int try = 0; left > 0 && length < room; try++) {
    size_t pick = draw(p->seed + (uint64_t)round, rank, try, 5000, 2 * (size_t)ranks);
    int peer = (int)pick / 2;
    bool sends = pick % 2 != 0;
    int src = sends ? rank : peer, dst = sends ? peer : rank, message = next[sends][peer];
    if (message == messages(p, ranks, src, dst, round)) {
      continue;
    }
    next[sends][peer]++;
    left--;
    message += 10 * round;
    pccl_transfer t = {.sends = sends,
                       .peer = peer,
                       .channel = PCCL_CHANNEL_POINT,
                       .count = size_of(p, src, dst, message),
                       .dtype = type_of(p, src, dst, message),
                       .after = -1,
                       .replaces = -1};
    size_t bytes = t.count * polyccl_dtype_size(t.dtype);
    unsigned char *buffer = arena_take(memory, bytes);
    for (size_t i = 0; i < bytes; i++) {
      buffer[i] = sends ? tag(src, dst, message, i) : 0;
    }
    buffer[bytes] = GUARD;
    t.buffer = buffer;
    list[length++] = t;
  }
  return length;
}

static bool arrived(const pccl_transfer *list, size_t length, int rank, int round) {
  int next[16] = {0};
  for (size_t k = 0; k < length; k++) {
    const pccl_transfer *t = &list[k];
    const unsigned char *buffer = t->buffer;
    size_t bytes = t->count * polyccl_dtype_size(t->dtype);
    if (t->sends) {
      continue;
    }
    int message = next[t->peer]++ + 10 * round;
    for (size_t i = 0; i <= bytes; i++) {
      unsigned char want = i < bytes ? tag(t->peer, rank, message, i) : GUARD;
      if (buffer[i] != want) {
        fprintf(stderr, "rank %d, message %d from %d, byte %zu of %zu: %d, not %d\n", rank, message, t->peer, i, bytes,
                buffer[i], want);
        return false;
      }
    }
  }
  return true;
}

static polyccl_result play(polyccl_comm *comm, void *argument) {
  const pattern *p = argument;
  int rank = polyccl_comm_user_rank(comm), ranks = polyccl_comm_count(comm);
  static _Thread_local pccl_transfer list[400];
  comm->executor.member.lines = !p->counters;
  for (int round = 0; round < p->rounds; round++) {
    arena memory = {.shared = p->shared};
    size_t length = list_transfers(p, ranks, rank, round, &memory, list, 400);
    polyccl_result result = exchange_all(comm, list, length, "send/recv");
    bool right = result == POLYCCL_SUCCESS && arrived(list, length, rank, round);
    arena_free(&memory);
    if (!right) {
      return result != POLYCCL_SUCCESS ? result : POLYCCL_ERROR_INTERNAL;
    }
  }
  return POLYCCL_SUCCESS;
}

static void run(int ranks, const pattern *p, bool threads) {
  pattern here = *p;
  polyccl_result result = threads ? pccl_launch_threads(ranks, play, &here) : pccl_launch_processes(ranks, play, &here);
  if (result != POLYCCL_SUCCESS) {
    fail_msg("%d ranks as %s, shape %d, seed %llu, shared %d, counters %d: %s", ranks,
             threads ? "threads" : "processes", p->shape, (unsigned long long)p->seed, p->shared, p->counters,
             polyccl_last_error());
  }
}

static void every_pattern(void **state) {
  (void)state;
  for (int ranks = 1; ranks <= 8; ranks++) {
    for (int k = 0; k < SHAPES * 4; k++) {
      pattern p = {.shape = (shape)(k / 4),
                   .seed = (uint64_t)(ranks * 100 + k),
                   .shared = k % 2 != 0,
                   .counters = k % 4 == 2,
                   .largest = ranks <= 3 ? 300000 : 20000,
                   .rounds = 3};
      run(ranks, &p, true);
      if (ranks % 2 == 0) {
        run(ranks, &p, false);
      }
    }
  }
}

/* Rings wrap around many times, with messages of all sizes behind one another. */
static void many_messages(void **state) {
  (void)state;
  for (int k = 0; k < 6; k++) {
    pattern p = {.shape = RANDOM, .seed = (uint64_t)(7000 + k), .shared = k % 2 != 0, .largest = 9000, .rounds = 60};
    run(2 + k % 3, &p, k % 3 != 0);
  }
}

/* Two ranks swap the contents of buffers, which are larger than the rings, in all orders of progress: what comes
 * overwrites only what has gone. */
static void swaps_in_place(void **state) {
  (void)state;
  enum { BYTES = 1200000 };
  static unsigned char memory[2][BYTES];
  polyccl_comm *comms[2];
  assert_int_equal(polyccl_comm_init_all(comms, 2), POLYCCL_SUCCESS);
  for (int round = 0; round < 40; round++) {
    pccl_transfer list[2][2];
    pccl_exchange *x[2];
    for (int rank = 0; rank < 2; rank++) {
      int first = (int)draw((uint64_t)round, rank, 0, 0, 2); /* the index of the send */
      for (size_t i = 0; i < BYTES; i++) {
        memory[rank][i] = tag(rank, 1 - rank, round, i);
      }
      list[rank][0] = (pccl_transfer){.sends = true,
                                      .peer = 1 - rank,
                                      .channel = PCCL_CHANNEL_POINT,
                                      .buffer = memory[rank],
                                      .count = BYTES,
                                      .dtype = POLYCCL_UINT8,
                                      .after = -1,
                                      .replaces = -1};
      list[rank][1] = list[rank][0];
      list[rank][1 - first].sends = false;
      list[rank][1 - first].replaces = first;
      assert_int_equal(pccl_exchange_begin(&comms[rank]->executor, list[rank], 2, "send/recv", &x[rank]),
                       POLYCCL_SUCCESS);
    }
    int fruitless = 0;
    for (int step = 0; !pccl_exchange_ended(x[0]) || !pccl_exchange_ended(x[1]); step++) {
      int rank = (int)draw((uint64_t)round, step, 1, 1, 2);
      fruitless = pccl_exchange_round(x[rank]) ? 0 : fruitless + 1;
      assert_true(fruitless < 100); /* in vain on both ranks: a deadlock */
    }
    for (int rank = 0; rank < 2; rank++) {
      pccl_exchange_free(x[rank]);
      for (size_t i = 0; i < BYTES; i++) {
        if (memory[rank][i] != tag(1 - rank, rank, round, i)) {
          fail_msg("round %d, rank %d, byte %zu", round, rank, i);
        }
      }
    }
  }
  polyccl_comm_destroy(comms[0]);
  polyccl_comm_destroy(comms[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_pattern), cmocka_unit_test(many_messages),
                                     cmocka_unit_test(swaps_in_place)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
