/* Sends and receives in groups by the public interface: in any pattern, nested, to oneself; what a group refuses. */
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

#define TRY(call)                                               \
  do {                                                          \
    polyccl_result tried = (call);                              \
    if (tried != POLYCCL_SUCCESS) {                             \
      fprintf(stderr, "%s: %s\n", #call, polyccl_last_error()); \
      return tried;                                             \
    }                                                           \
  } while (0)

static int32_t tag(int from, int to, size_t i) { return (int32_t)(from * 1000003 + to * 10007 + (int)i); }

/* Everybody sends to everybody, also to itself, and receives in the other order; long enough that no slot holds it. */
static polyccl_result all_to_all(polyccl_comm *comm, void *argument) {
  size_t count = *(const size_t *)argument;
  int rank = polyccl_comm_user_rank(comm), ranks = polyccl_comm_count(comm);
  int32_t *out = malloc((count + 1) * (size_t)ranks * sizeof *out),
          *in = calloc((count + 1) * (size_t)ranks, sizeof *in);
  if (out == NULL || in == NULL) {
    return POLYCCL_ERROR_MEMORY;
  }
  TRY(polyccl_group_start());
  for (int peer = ranks - 1; peer >= 0; peer--) {
    TRY(polyccl_group_start()); /* nested: nothing begins at its end */
    for (size_t i = 0; i < count; i++) {
      out[(size_t)peer * count + i] = tag(rank, peer, i);
    }
    TRY(polyccl_send(out + (size_t)peer * count, count, POLYCCL_INT32, peer, comm, NULL));
    TRY(polyccl_group_end());
  }
  for (int peer = 0; peer < ranks; peer++) {
    TRY(polyccl_recv(in + (size_t)peer * count, count, POLYCCL_INT32, peer, comm, NULL));
  }
  TRY(polyccl_group_end());
  for (int peer = 0; peer < ranks; peer++) {
    for (size_t i = 0; i < count; i++) {
      if (in[(size_t)peer * count + i] != tag(peer, rank, i)) {
        fprintf(stderr, "rank %d from %d: element %zu is %d\n", rank, peer, i, in[(size_t)peer * count + i]);
        return POLYCCL_ERROR_INTERNAL;
      }
    }
  }
  TRY(polyccl_barrier(comm, NULL));
  free(out);
  free(in);
  return POLYCCL_SUCCESS;
}

static void any_pattern(void **state) {
  (void)state;
  static const size_t counts[] = {0, 1, 7, 1000, 300001};
  for (int ranks = 1; ranks <= 4; ranks++) {
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
      size_t count = counts[c];
      assert_int_equal(pccl_launch_threads(ranks, all_to_all, &count), POLYCCL_SUCCESS);
      assert_int_equal(pccl_launch_processes(ranks, all_to_all, &count), POLYCCL_SUCCESS);
    }
  }
}

static void refusals(void **state) {
  (void)state;
  polyccl_comm *comm;
  assert_int_equal(polyccl_comm_init_all(&comm, 1), POLYCCL_SUCCESS);
  float number = 1;
  assert_int_equal(polyccl_group_end(), POLYCCL_ERROR_INVALID);
  assert_int_equal(polyccl_group_start(), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_allreduce(&number, &number, 1, POLYCCL_FLOAT32, POLYCCL_SUM, comm, NULL),
                   POLYCCL_ERROR_UNSUPPORTED);
  assert_int_equal(polyccl_group_end(), POLYCCL_SUCCESS);
  polyccl_stream *stream = (polyccl_stream *)(void *)&number;
  assert_int_equal(polyccl_allreduce(&number, &number, 1, POLYCCL_FLOAT32, POLYCCL_SUM, comm, stream),
                   POLYCCL_ERROR_UNSUPPORTED);
  assert_int_equal(polyccl_send(&number, 1, POLYCCL_FLOAT32, 0, comm, NULL), POLYCCL_ERROR_INVALID); /* to oneself */
  polyccl_comm_destroy(comm);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(any_pattern), cmocka_unit_test(refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
