/* The executor, first light: a ring on threads and on processes moves the right data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "exec_util.h"
#include "runtime/launcher.h"

typedef struct job {
  polyccl_plan *plan;
  size_t count;
} job;

static polyccl_result ring(polyccl_comm *comm, void *argument) {
  const job *j = argument;
  int rank = polyccl_comm_user_rank(comm), ranks = polyccl_comm_count(comm);
  int id;
  polyccl_result result = polyccl_comm_add_plan(comm, j->plan, &id);
  float *in = malloc((j->count + 2) * sizeof *in), *out = malloc((j->count + 2) * sizeof *out);
  for (int round = 0; round < 3 && result == POLYCCL_SUCCESS; round++) {
    for (size_t i = 0; i < j->count + 2; i++) {
      in[i] = (float)((rank + 1) * (int)(i % 1000 + 1) + round);
      out[i] = -1;
    }
    float *target = j->plan->inplace ? in + 1 : out + 1;
    float last = target[j->count];
    result = polyccl_run_plan(comm, id, in + 1, target, j->count, POLYCCL_FLOAT32, POLYCCL_SUM, NULL);
    for (size_t i = 0; i < j->count && result == POLYCCL_SUCCESS; i++) {
      float want = (float)(ranks * (ranks + 1) / 2 * (int)((i + 1) % 1000 + 1) + ranks * round);
      if (target[i] != want) {
        fprintf(stderr, "rank %d of %d, count %zu, element %zu: %g, not %g\n", rank, ranks, j->count, i,
                (double)target[i], (double)want);
        result = POLYCCL_ERROR_INTERNAL;
      }
    }
    if (target[j->count] != last) {
      result = POLYCCL_ERROR_INTERNAL;
    }
  }
  free(in);
  free(out);
  return result;
}

static const size_t counts[] = {0, 1, 3, 4, 5, 257, 65537};

static void rings_reduce(void **state) {
  (void)state;
  for (int ranks = 1; ranks <= 4; ranks++) {
    for (int kind = 0; kind < 2 * 3 * POLYCCL_PROTOCOL_COUNT; kind++) {
      bool inplace = kind % 2 != 0;
      polyccl_protocol protocol = (polyccl_protocol)(kind / 6);
      int shape = kind / 2 % 3;
      polyccl_plan *plan = shape == 0 ? make_ring(ranks, inplace, protocol)
                                      : make_oneshot(ranks, 3, inplace, protocol, (polyccl_loop_order)(shape - 1));
      for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        job j = {plan, counts[i]};
        assert_int_equal(pccl_launch_threads(ranks, ring, &j), POLYCCL_SUCCESS);
        if (i % 3 == 1) {
          assert_int_equal(pccl_launch_processes(ranks, ring, &j), POLYCCL_SUCCESS);
        }
      }
      polyccl_plan_destroy(plan);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rings_reduce)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
