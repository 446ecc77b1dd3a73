/* Collectives with a count for each rank, compared with what their definition says, element by element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/error.h"
#include "exchange_util.h"

enum { MOST = 8, GUARD = 0xa5, ROUNDS = 3 };

typedef struct job {
  uint64_t seed;
  bool shared, inplace;
  size_t largest;
  int root;
} job;

static size_t count_of(const job *j, int src, int dst) {
  size_t which = draw(j->seed, src, dst, 1, 6), any = draw(j->seed, src, dst, 2, j->largest + 1);
  return which == 0 ? 0 : which < 3 ? any % 40 : any;
}

/* Blocks in another order than the ranks, with gaps; *total: elements of the buffer. */
static void place(const job *j, int rank, int ranks, const size_t *counts, size_t *displs, size_t *total) {
  size_t at = 0;
  for (int i = 0; i < ranks; i++) {
    int block = (int)((size_t)i * 3 + j->seed) % ranks;
    block = ranks % 3 == 0 ? ranks - 1 - i : block;
    at += draw(j->seed, rank, i, 7, 3);
    displs[block] = at;
    at += counts[block];
  }
  *total = at;
}

typedef struct buffer {
  unsigned char *bytes;
  size_t total, element;
} buffer;

static buffer make_buffer(arena *memory, size_t elements, size_t element) {
  buffer b = {arena_take(memory, elements * element + 64), elements, element};
  memset(b.bytes, GUARD, elements * element + 64);
  return b;
}

static void fill_block(buffer b, size_t displ, size_t count, int src, int dst, int message) {
  for (size_t i = 0; i < count * b.element; i++) {
    b.bytes[displ * b.element + i] = tag(src, dst, message, i);
  }
}

static bool check_block(buffer b, size_t displ, size_t count, int src, int dst, int message, const char *call) {
  for (size_t i = 0; i < count * b.element; i++) {
    if (b.bytes[displ * b.element + i] != tag(src, dst, message, i)) {
      fprintf(stderr, "%s: block of rank %d at rank %d, byte %zu of %zu\n", call, src, dst, i, count * b.element);
      return false;
    }
  }
  return true;
}

/* What lies between the blocks was not touched. */
static bool check_gaps(buffer b, int ranks, const size_t *counts, const size_t *displs, const char *call) {
  for (size_t at = 0; at < b.total + 64 / b.element; at++) {
    bool inside = false;
    for (int i = 0; i < ranks; i++) {
      inside |= at >= displs[i] && at < displs[i] + counts[i];
    }
    for (size_t k = 0; k < b.element && !inside; k++) {
      if (b.bytes[at * b.element + k] != GUARD) {
        fprintf(stderr, "%s wrote between blocks, at element %zu\n", call, at);
        return false;
      }
    }
  }
  return true;
}

static polyccl_result check(polyccl_result result, bool right) {
  return result != POLYCCL_SUCCESS || right ? result : POLYCCL_ERROR_INTERNAL;
}

/* ---- moves ---- */

static polyccl_result alltoallv(polyccl_comm *comm, const job *j, polyccl_dtype dtype, int round) {
  int rank = polyccl_comm_user_rank(comm), ranks = polyccl_comm_count(comm);
  size_t sends[MOST], receives[MOST], send_at[MOST], recv_at[MOST], total, element = polyccl_dtype_size(dtype);
  for (int i = 0; i < ranks; i++) {
    sends[i] = j->inplace ? count_of(j, rank < i ? rank : i, rank < i ? i : rank) : count_of(j, rank, i);
    receives[i] = j->inplace ? sends[i] : count_of(j, i, rank);
  }
  arena memory = {.shared = j->shared};
  place(j, rank, ranks, sends, send_at, &total);
  buffer send = make_buffer(&memory, total, element), recv = send;
  place(j, rank, ranks, receives, recv_at, &total);
  if (!j->inplace) {
    recv = make_buffer(&memory, total, element);
  }
  for (int i = 0; i < ranks; i++) {
    fill_block(send, send_at[i], sends[i], rank, i, round);
  }
  polyccl_result result =
      polyccl_alltoallv(send.bytes, sends, send_at, recv.bytes, receives, recv_at, dtype, comm, NULL);
  bool right = check_gaps(recv, ranks, receives, recv_at, "alltoallv");
  for (int i = 0; i < ranks; i++) {
    right = right && check_block(recv, recv_at[i], receives[i], i, rank, round, "alltoallv");
    right = right && (j->inplace || check_block(send, send_at[i], sends[i], rank, i, round, "alltoallv's input"));
  }
  arena_free(&memory);
  return check(result, right);
}

static polyccl_result allgatherv(polyccl_comm *comm, const job *j, polyccl_dtype dtype, int round) {
  int rank = polyccl_comm_user_rank(comm), ranks = polyccl_comm_count(comm);
  size_t counts[MOST], displs[MOST], total, element = polyccl_dtype_size(dtype);
  for (int i = 0; i < ranks; i++) {
    counts[i] = count_of(j, i, 0);
  }
  arena memory = {.shared = j->shared};
  place(j, rank, ranks, counts, displs, &total);
  buffer recv = make_buffer(&memory, total, element), send = make_buffer(&memory, counts[rank], element);
  bool inplace = j->inplace && rank % 2 == 0; /* each rank for itself */
  const void *from = inplace ? recv.bytes + displs[rank] * element : send.bytes;
  fill_block(inplace ? recv : send, inplace ? displs[rank] : 0, counts[rank], rank, 99, round);
  polyccl_result result = polyccl_allgatherv(from, counts[rank], recv.bytes, counts, displs, dtype, comm, NULL);
  bool right = check_gaps(recv, ranks, counts, displs, "allgatherv");
  for (int i = 0; i < ranks; i++) {
    for (size_t k = 0; k < counts[i] * element && right; k++) {
      right = recv.bytes[displs[i] * element + k] == tag(i, 99, round, k);
    }
  }
  arena_free(&memory);
  return check(result, right);
}

static polyccl_result gatherv(polyccl_comm *comm, const job *j, polyccl_dtype dtype, int round) {
  int rank = polyccl_comm_user_rank(comm), ranks = polyccl_comm_count(comm), root = j->root % ranks;
  size_t counts[MOST], displs[MOST], total, element = polyccl_dtype_size(dtype);
  for (int i = 0; i < ranks; i++) {
    counts[i] = count_of(j, i, 1);
  }
  arena memory = {.shared = j->shared};
  place(j, root, ranks, counts, displs, &total);
  buffer recv = make_buffer(&memory, total, element), send = make_buffer(&memory, counts[rank], element);
  bool inplace = j->inplace && rank == root, is_root = rank == root;
  fill_block(inplace ? recv : send, inplace ? displs[rank] : 0, counts[rank], rank, root, round);
  const void *from = inplace ? recv.bytes + displs[rank] * element : send.bytes;
  polyccl_result result = polyccl_gatherv(from, counts[rank], is_root ? recv.bytes : NULL, is_root ? counts : NULL,
                                          is_root ? displs : NULL, dtype, root, comm, NULL);
  bool right = !is_root || check_gaps(recv, ranks, counts, displs, "gatherv");
  for (int i = 0; i < ranks && is_root; i++) {
    right = right && check_block(recv, displs[i], counts[i], i, root, round, "gatherv");
  }
  arena_free(&memory);
  return check(result, right);
}

static polyccl_result scatterv(polyccl_comm *comm, const job *j, polyccl_dtype dtype, int round) {
  int rank = polyccl_comm_user_rank(comm), ranks = polyccl_comm_count(comm), root = j->root % ranks;
  size_t counts[MOST], displs[MOST], total, element = polyccl_dtype_size(dtype);
  for (int i = 0; i < ranks; i++) {
    counts[i] = count_of(j, i, 2);
  }
  arena memory = {.shared = j->shared};
  place(j, root, ranks, counts, displs, &total);
  buffer send = make_buffer(&memory, total, element), recv = make_buffer(&memory, counts[rank], element);
  bool inplace = j->inplace && rank == root, is_root = rank == root;
  for (int i = 0; i < ranks && is_root; i++) {
    fill_block(send, displs[i], counts[i], root, i, round);
  }
  void *to = inplace ? send.bytes + displs[rank] * element : recv.bytes;
  polyccl_result result = polyccl_scatterv(is_root ? send.bytes : NULL, is_root ? counts : NULL,
                                           is_root ? displs : NULL, to, counts[rank], dtype, root, comm, NULL);
  bool right =
      check_block(inplace ? send : recv, inplace ? displs[rank] : 0, counts[rank], root, rank, round, "scatterv");
  const size_t start = 0;
  right = right && (inplace || check_gaps(recv, 1, &counts[rank], &start, "scatterv"));
  for (int i = 0; i < ranks && is_root; i++) {
    right = right && check_block(send, displs[i], counts[i], root, i, round, "scatterv's input");
  }
  arena_free(&memory);
  return check(result, right);
}

/* ---- reductions ---- */

static polyccl_result reduce_scatterv(polyccl_comm *comm, const job *j, polyccl_dtype dtype, polyccl_redop op,
                                      int round) {
  int rank = polyccl_comm_user_rank(comm), ranks = polyccl_comm_count(comm);
  size_t counts[MOST], displs[MOST], total = 0, element = polyccl_dtype_size(dtype);
  const pccl_kernels *kernels = comm->executor.kernels;
  for (int i = 0; i < ranks; i++) {
    counts[i] = count_of(j, i, 3);
    displs[i] = total;
    total += counts[i];
  }
  arena memory = {.shared = j->shared};
  buffer send = make_buffer(&memory, total, element), recv = make_buffer(&memory, counts[rank], element);
  buffer want = make_buffer(&memory, counts[rank], element), other = make_buffer(&memory, counts[rank], element);
  bool inplace = j->inplace && rank % 2 != 0;
  for (int i = 0; i < ranks; i++) {
    fill_block(send, displs[i], counts[i], rank, i, round);
  }
  /* The contributions are bits of any kind; the definition is the kernel's, rank after rank from this one on. */
  fill_block(want, 0, counts[rank], rank, rank, round);
  for (int i = 1; i < ranks; i++) {
    fill_block(other, 0, counts[rank], (rank + i) % ranks, rank, round);
    uint64_t addends = (uint64_t)i | (uint64_t)1 << 31 | (uint64_t)(i == ranks - 1) << 63;
    kernels->reduce[dtype][op](want.bytes, want.bytes, other.bytes, counts[rank], addends);
  }
  void *to = inplace ? send.bytes + displs[rank] * element : recv.bytes;
  polyccl_result result = polyccl_reduce_scatterv(send.bytes, to, counts, dtype, op, comm, NULL);
  bool right = memcmp(to, want.bytes, counts[rank] * element) == 0;
  for (int i = 0; i < ranks; i++) {
    right = right && ((inplace && i == rank) ||
                      check_block(send, displs[i], counts[i], rank, i, round, "reduce_scatterv's input"));
  }
  const size_t start = 0;
  right = right && (inplace || check_gaps(recv, 1, &counts[rank], &start, "reduce_scatterv"));
  if (result == POLYCCL_SUCCESS && !right) {
    fprintf(stderr, "reduce_scatterv of %s, %s on rank %d of %d is wrong\n", polyccl_dtype_name(dtype),
            polyccl_redop_name(op), rank, ranks);
  }
  arena_free(&memory);
  return check(result, right);
}

/* Sums of small numbers are exact, so they do not depend on the order: this checks the definition itself. */
static polyccl_result exact_sums(polyccl_comm *comm, const job *j) {
  int rank = polyccl_comm_user_rank(comm), ranks = polyccl_comm_count(comm);
  size_t counts[MOST], total = 0, before = 0;
  for (int i = 0; i < ranks; i++) {
    counts[i] = count_of(j, i, 4);
    before += i < rank ? counts[i] : 0;
    total += counts[i];
  }
  float *send = calloc(total + 1, sizeof *send), *recv = calloc(counts[rank] + 1, sizeof *recv);
  polyccl_result result = POLYCCL_SUCCESS;
  for (int op = 0; op < 2 && result == POLYCCL_SUCCESS; op++) {
    for (size_t i = 0; i < total; i++) {
      send[i] = (float)((rank + 1) * (int)(i % 1000));
    }
    result =
        polyccl_reduce_scatterv(send, recv, counts, POLYCCL_FLOAT32, op == 0 ? POLYCCL_SUM : POLYCCL_AVG, comm, NULL);
    for (size_t i = 0; i < counts[rank] && result == POLYCCL_SUCCESS; i++) {
      float sum = (float)(ranks * (ranks + 1) / 2 * (int)((before + i) % 1000)), n = op == 0 ? 1 : (float)ranks;
      result = recv[i] == sum / n ? POLYCCL_SUCCESS : POLYCCL_ERROR_INTERNAL;
    }
  }
  free(send);
  free(recv);
  return result;
}

static polyccl_result play(polyccl_comm *comm, void *argument) {
  const job *j = argument;
  for (int round = 0; round < ROUNDS; round++) {
    polyccl_dtype dtype = (polyccl_dtype)draw(j->seed, round, 0, 8, POLYCCL_DTYPE_COUNT);
    PCCL_TRY(alltoallv(comm, j, dtype, round));
    PCCL_TRY(allgatherv(comm, j, dtype, round));
    PCCL_TRY(gatherv(comm, j, dtype, round));
    PCCL_TRY(scatterv(comm, j, dtype, round));
    PCCL_TRY(exact_sums(comm, j));
  }
  for (int k = 0; k < POLYCCL_DTYPE_COUNT * POLYCCL_REDOP_COUNT; k++) {
    polyccl_dtype dtype = (polyccl_dtype)(k / POLYCCL_REDOP_COUNT);
    polyccl_redop op = (polyccl_redop)(k % POLYCCL_REDOP_COUNT);
    if (comm->executor.kernels->reduce[dtype][op] != NULL) {
      PCCL_TRY(reduce_scatterv(comm, j, dtype, op, k));
    }
  }
  return POLYCCL_SUCCESS;
}

static void blocks_arrive(void **state) {
  (void)state;
  for (int ranks = 1; ranks <= MOST; ranks++) {
    for (int k = 0; k < 4; k++) {
      job j = {.seed = (uint64_t)(ranks * 10 + k),
               .shared = k % 2 != 0,
               .inplace = k >= 2,
               .largest = ranks <= 3 ? 60000 : 3000,
               .root = k * 3 + 1};
      if (pccl_launch_threads(ranks, play, &j) != POLYCCL_SUCCESS) {
        fail_msg("%d threads, case %d: %s", ranks, k, polyccl_last_error());
      }
      if (ranks % 2 == 0 && pccl_launch_processes(ranks, play, &j) != POLYCCL_SUCCESS) {
        fail_msg("%d processes, case %d: %s", ranks, k, polyccl_last_error());
      }
    }
  }
}

/* ---- arguments ---- */

static void expect_text(const char *wanted) {
  if (strstr(polyccl_last_error(), wanted) == NULL) {
    fail_msg("\"%s\" does not say \"%s\"", polyccl_last_error(), wanted);
  }
}

static void bad_arguments_are_refused(void **state) {
  (void)state;
  polyccl_comm *comms[2];
  assert_int_equal(polyccl_comm_init_all(comms, 2), POLYCCL_SUCCESS);
  polyccl_comm *comm = comms[1];
  float a[64] = {0}, b[64] = {0};
  const size_t two[] = {4, 4}, apart[] = {0, 8}, near[] = {0, 3}, far[] = {0, SIZE_MAX / 2}, huge[] = {4, SIZE_MAX / 8};
  const polyccl_dtype f32 = POLYCCL_FLOAT32;
#define REFUSED(text, ...)                                \
  do {                                                    \
    assert_int_equal(__VA_ARGS__, POLYCCL_ERROR_INVALID); \
    expect_text(text);                                    \
  } while (0)
  REFUSED("send counts are NULL", polyccl_alltoallv(a, NULL, apart, b, two, apart, f32, comm, NULL));
  REFUSED("receive counts are NULL", polyccl_alltoallv(a, two, apart, b, NULL, apart, f32, comm, NULL));
  REFUSED("send displacements are NULL", polyccl_alltoallv(a, two, NULL, b, two, apart, f32, comm, NULL));
  REFUSED("receive displacements are NULL", polyccl_alltoallv(a, two, apart, b, two, NULL, f32, comm, NULL));
  REFUSED("receive blocks 0 and 1 overlap", polyccl_alltoallv(a, two, apart, b, two, near, f32, comm, NULL));
  REFUSED("send block 1", polyccl_alltoallv(a, two, far, b, two, apart, f32, comm, NULL));
  REFUSED("receive block 1", polyccl_alltoallv(a, two, apart, b, huge, apart, f32, comm, NULL));
  REFUSED("send buffer is NULL", polyccl_alltoallv(NULL, two, apart, b, two, apart, f32, comm, NULL));
  REFUSED("buffers overlap", polyccl_alltoallv(a, two, apart, a + 2, two, apart, f32, comm, NULL));
  REFUSED("unknown data type", polyccl_alltoallv(a, two, apart, b, two, apart, (polyccl_dtype)99, comm, NULL));
  REFUSED("communicator is NULL", polyccl_alltoallv(a, two, apart, b, two, apart, f32, NULL, NULL));
  REFUSED("sends 5 elements to itself, but receives 4", polyccl_allgatherv(a, 5, b, two, apart, f32, comm, NULL));
  REFUSED("buffers overlap", polyccl_allgatherv(b + 1, 4, b, two, apart, f32, comm, NULL));
  REFUSED("receive blocks 0 and 1 overlap", polyccl_allgatherv(a, 4, b, two, near, f32, comm, NULL));
  REFUSED("unknown reduction", polyccl_reduce_scatterv(a, b, two, f32, (polyccl_redop)99, comm, NULL));
  REFUSED("buffers overlap", polyccl_reduce_scatterv(a, a + 1, two, f32, POLYCCL_SUM, comm, NULL));
  REFUSED("send counts are NULL", polyccl_reduce_scatterv(a, b, NULL, f32, POLYCCL_SUM, comm, NULL));
  REFUSED("root 2 is out of range", polyccl_gatherv(a, 4, b, two, apart, f32, 2, comm, NULL));
  REFUSED("receive counts are NULL", polyccl_gatherv(a, 4, b, NULL, apart, f32, 1, comm, NULL));
  REFUSED("root -1 is out of range", polyccl_scatterv(a, two, apart, b, 4, f32, -1, comm, NULL));
  REFUSED("send displacements are NULL", polyccl_scatterv(a, two, NULL, b, 4, f32, 1, comm, NULL));
  REFUSED("peer 2 is out of range", polyccl_send(a, 4, f32, 2, comm, NULL));
  REFUSED("peer -1 is out of range", polyccl_recv(a, 4, f32, -1, comm, NULL));
  REFUSED("buffer is NULL", polyccl_recv(NULL, 4, f32, 0, comm, NULL));
  REFUSED("more than memory can hold", polyccl_send(a, SIZE_MAX / 4, f32, 0, comm, NULL));
  REFUSED("to itself without the matching receive", polyccl_send(a, 4, f32, 1, comm, NULL));
  assert_int_equal(polyccl_comm_get_async_error(comm), POLYCCL_SUCCESS);
  polyccl_comm_destroy(comms[0]);
  polyccl_comm_destroy(comms[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_arrive), cmocka_unit_test(bad_arguments_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
