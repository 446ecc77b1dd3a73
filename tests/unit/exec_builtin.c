/* The collectives without any loaded plan: the library's own do them, on every number of ranks, at sizes on both sides
 * of each change of program, in place and not, from every root, with NULL where a rank gives or takes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/polyccl.h>

#include "runtime/launcher.h"

typedef struct shape {
  polyccl_collective collective;
  bool blocks_in, blocks_out, rooted;
} shape;

static const shape shapes[] = {
    {POLYCCL_ALLREDUCE, false, false, false},     {POLYCCL_ALLGATHER, false, true, false},
    {POLYCCL_REDUCE_SCATTER, true, false, false}, {POLYCCL_ALLTOALL, true, true, false},
    {POLYCCL_BROADCAST, false, false, true},      {POLYCCL_REDUCE, false, false, true},
    {POLYCCL_GATHER, false, true, true},          {POLYCCL_SCATTER, true, false, true},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static int32_t value_at(int rank, size_t index) { return (int32_t)((size_t)rank * 1000003 + index * 7 + 1); }

static int32_t expected(polyccl_collective collective, int ranks, int rank, int root, size_t count, size_t i) {
  uint32_t sum = 0; /* wraps, as sums of integers do */
  size_t at = collective == POLYCCL_REDUCE_SCATTER ? (size_t)rank * count + i : i;
  for (int r = 0; r < ranks; r++) {
    sum += (uint32_t)value_at(r, at);
  }
  switch (collective) {
    case POLYCCL_ALLGATHER:
    case POLYCCL_GATHER: return value_at((int)(i / count), i % count);
    case POLYCCL_ALLTOALL: return value_at((int)(i / count), (size_t)rank * count + i % count);
    case POLYCCL_BROADCAST: return value_at(root, i);
    case POLYCCL_SCATTER: return value_at(root, (size_t)rank * count + i);
    default: return (int32_t)sum;
  }
}

static polyccl_result run(polyccl_comm *comm, polyccl_collective collective, const void *send, void *recv, size_t count,
                          int root) {
  switch (collective) {
    case POLYCCL_ALLREDUCE: return polyccl_allreduce(send, recv, count, POLYCCL_INT32, POLYCCL_SUM, comm, NULL);
    case POLYCCL_ALLGATHER: return polyccl_allgather(send, recv, count, POLYCCL_INT32, comm, NULL);
    case POLYCCL_REDUCE_SCATTER:
      return polyccl_reduce_scatter(send, recv, count, POLYCCL_INT32, POLYCCL_SUM, comm, NULL);
    case POLYCCL_ALLTOALL: return polyccl_alltoall(send, recv, count, POLYCCL_INT32, comm, NULL);
    case POLYCCL_BROADCAST: return polyccl_broadcast(send, recv, count, POLYCCL_INT32, root, comm, NULL);
    case POLYCCL_REDUCE: return polyccl_reduce(send, recv, count, POLYCCL_INT32, POLYCCL_SUM, root, comm, NULL);
    case POLYCCL_GATHER: return polyccl_gather(send, recv, count, POLYCCL_INT32, root, comm, NULL);
    default: return polyccl_scatter(send, recv, count, POLYCCL_INT32, root, comm, NULL);
  }
}

/* One call; `inplace`: where the rank's input and output both matter, they share memory. */
static polyccl_result one(polyccl_comm *comm, const shape *s, size_t count, int root, bool inplace, int32_t *a,
                          int32_t *b) {
  int rank = polyccl_comm_user_rank(comm), ranks = polyccl_comm_count(comm);
  size_t n = (size_t)ranks, in = count * (s->blocks_in ? n : 1), out = count * (s->blocks_out ? n : 1);
  bool gives = !s->rooted || rank == root || s->collective == POLYCCL_REDUCE || s->collective == POLYCCL_GATHER;
  bool takes = !s->rooted || rank == root || s->collective == POLYCCL_BROADCAST || s->collective == POLYCCL_SCATTER;
  int32_t *send = a, *recv = b;
  if (inplace && gives && takes) {
    send = !s->blocks_in && s->blocks_out ? a + (size_t)rank * count : a;
    recv = s->blocks_in && !s->blocks_out ? a + (size_t)rank * count : a;
  }
  for (size_t i = 0; i < count * n; i++) {
    a[i] = b[i] = -5;
  }
  for (size_t i = 0; i < in && gives; i++) {
    send[i] = value_at(rank, i);
  }
  int32_t *end = recv + out, guard = *end;
  polyccl_result result = run(comm, s->collective, gives ? send : NULL, takes ? recv : NULL, count, root);
  if (result != POLYCCL_SUCCESS || !takes) {
    return result;
  }
  for (size_t i = 0; i < out; i++) {
    if (recv[i] != expected(s->collective, ranks, rank, root, count, i)) {
      fprintf(stderr, "%s on %d ranks, count %zu, root %d, %s: rank %d element %zu is %d, not %d\n",
              polyccl_collective_name(s->collective), ranks, count, root, inplace ? "in place" : "out of place", rank,
              i, (int)recv[i], (int)expected(s->collective, ranks, rank, root, count, i));
      return POLYCCL_ERROR_INTERNAL;
    }
  }
  return *end == guard || inplace ? POLYCCL_SUCCESS : POLYCCL_ERROR_INTERNAL;
}

static polyccl_result all(polyccl_comm *comm, void *argument) {
  (void)argument;
  static const size_t counts[] = {1, 14, 15, 700, 2048, 4097}; /* 56, 60, 8192 and more than 16384 bytes */
  int ranks = polyccl_comm_count(comm);
  size_t room = (5000 * (size_t)ranks + 1) * sizeof(int32_t);
  int32_t *a = malloc(room), *b = malloc(room);
  polyccl_result result = POLYCCL_SUCCESS;
  memset(a, 0, room);
  memset(b, 0, room);
  for (int s = 0; s < SHAPES; s++) {
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
      for (int root = 0; root < (shapes[s].rooted && c % 2 == 0 ? ranks : 1); root++) {
        for (int inplace = 0; inplace < 2 && result == POLYCCL_SUCCESS; inplace++) {
          result = one(comm, &shapes[s], counts[c], root, inplace != 0, a, b);
        }
      }
    }
  }
  free(a);
  free(b);
  return result;
}

static void collectives_work_without_plans(void **state) {
  (void)state;
  static const int ranks[] = {1, 2, 3, 5, 8};
  for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
    if (pccl_launch_threads(ranks[i], all, NULL) != POLYCCL_SUCCESS ||
        (i % 2 == 1 && pccl_launch_processes(ranks[i], all, NULL) != POLYCCL_SUCCESS)) {
      fail_msg("%d ranks: %s", ranks[i], polyccl_last_error());
    }
  }
}

/* Sizes on both sides of the change from trees to rings where that is small. */
static polyccl_result call_without_roots(polyccl_comm *comm, void *argument) {
  const size_t *counts = argument;
  size_t ranks = (size_t)polyccl_comm_count(comm), max = counts[0] > counts[1] ? counts[0] : counts[1];
  int32_t *a = calloc(max * ranks + 1, sizeof *a), *b = calloc(max * ranks + 1, sizeof *b);
  polyccl_result result = a != NULL && b != NULL ? POLYCCL_SUCCESS : POLYCCL_ERROR_MEMORY;
  for (int s = 0; s < SHAPES && result == POLYCCL_SUCCESS; s++) {
    for (int i = 0; i < 4 && !shapes[s].rooted && result == POLYCCL_SUCCESS; i++) {
      result = one(comm, &shapes[s], counts[i / 2], 0, i % 2 != 0, a, b);
    }
  }
  free(a);
  free(b);
  return result;
}

/* More ranks than all-pairs programs are used for. */
static void many_ranks_work_without_plans(void **state) {
  (void)state;
  static const struct {
    int ranks;
    size_t counts[2];
  } cases[] = {{65, {3, 2100}}, {130, {1, 15}}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    if (pccl_launch_threads(cases[i].ranks, call_without_roots, (void *)(uintptr_t)cases[i].counts) !=
        POLYCCL_SUCCESS) {
      fail_msg("%d ranks: %s", cases[i].ranks, polyccl_last_error());
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(collectives_work_without_plans),
                                     cmocka_unit_test(many_ranks_work_without_plans)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
