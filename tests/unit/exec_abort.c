/* An abort at a random moment of a call with messages by reference: the buffers of a call that has failed are the
 * caller's at once, so no other rank may touch them any more, and a call that succeeds has the right data. Each rank
 * takes its buffers out of the address space as soon as its call has failed; a rank that still reads or writes there
 * ends the test with a signal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "exec_util.h"
#include "runtime/launcher.h"

enum { RANKS = 3, COUNT = 1 << 20, ROUNDS = 60 };

typedef struct moment {
  polyccl_comm *comm;
  uint64_t delay;
} moment;

static atomic_int failures;

static void *abort_later(void *argument) {
  const moment *m = argument;
  uint64_t from = pccl_now();
  while (pccl_now() - from < m->delay) {
  }
  polyccl_comm_abort(m->comm);
  return NULL;
}

static float leaf(int rank, size_t i) { return (float)((i * 7 + (size_t)rank * 13) % 1009); }

static float *map_buffer(void) {
  void *memory = mmap(NULL, COUNT * sizeof(float), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

static bool is_right(const float *out) {
  for (size_t i = 0; i < COUNT; i++) {
    float wanted = 0;
    for (int rank = 0; rank < RANKS; rank++) {
      wanted += leaf(rank, i);
    }
    if (out[i] != wanted) {
      return false;
    }
  }
  return true;
}

/* Calls until one fails. */
static polyccl_result call_until_aborted(polyccl_comm *comm, void *argument) {
  const uint64_t *random = argument;
  int rank = polyccl_comm_user_rank(comm);
  float *in = map_buffer(), *out = map_buffer();
  if (in == NULL || out == NULL) {
    return POLYCCL_ERROR_MEMORY;
  }
  for (size_t i = 0; i < COUNT; i++) {
    in[i] = leaf(rank, i);
  }
  polyccl_result result = polyccl_allreduce(in, out, COUNT, POLYCCL_FLOAT32, POLYCCL_SUM, comm, NULL);
  uint64_t before = pccl_now();
  if (result == POLYCCL_SUCCESS) {
    result = polyccl_allreduce(in, out, COUNT, POLYCCL_FLOAT32, POLYCCL_SUM, comm, NULL);
  }
  uint64_t took = pccl_now() - before;
  moment m = {comm, *random % (2 * took + 1)};
  pthread_t thread;
  bool aborts = rank == 0 && pthread_create(&thread, NULL, abort_later, &m) == 0;
  bool right = true;
  while (result == POLYCCL_SUCCESS && right) {
    result = polyccl_allreduce(in, out, COUNT, POLYCCL_FLOAT32, POLYCCL_SUM, comm, NULL);
    right = result != POLYCCL_SUCCESS || is_right(out);
  }
  mprotect(in, COUNT * sizeof(float), PROT_NONE);
  mprotect(out, COUNT * sizeof(float), PROT_NONE);
  if (aborts) {
    pthread_join(thread, NULL);
  }
  atomic_fetch_add(&failures, result != POLYCCL_SUCCESS);
  return right ? result : POLYCCL_ERROR_INTERNAL;
}

static void buffers_are_the_callers_after_an_abort(void **state) {
  (void)state;
  uint64_t random = 88172645463325252u;
  for (int round = 0; round < ROUNDS; round++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    assert_int_equal(pccl_launch_threads(RANKS, call_until_aborted, &random), POLYCCL_ERROR_REMOTE);
    assert_non_null(strstr(polyccl_last_error(), "rank 0 aborted the communicator"));
  }
  assert_int_equal(failures, RANKS * ROUNDS);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(buffers_are_the_callers_after_an_abort)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
