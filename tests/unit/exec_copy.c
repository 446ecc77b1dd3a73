/* Private memory by copy: the receiver reads the sender's buffer where it is, and what goes wrong there ends the call
 * with an error that names the sender. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exec_util.h"
#include "runtime/comm.h"
#include "runtime/launcher.h"
#include "transport/copy.h"

static polyccl_result complain(const char *what, int rank, size_t index, int32_t wanted, int32_t found) {
  fprintf(stderr, "%s: rank %d, element %zu: wanted %d, found %d\n", what, rank, index, wanted, found);
  return POLYCCL_ERROR_INTERNAL;
}

/* Element `index` of what `rank` gives in call `round`. */
static int32_t value(int rank, size_t index, int round) {
  return (int32_t)((rank + 1) * 1000003 + (int)(index % 90001) * 7 + round * 31);
}

enum { COPIED_COUNT = 4096 }; /* one micro-batch */

/* What becomes of rank 0's memory between its sending and rank 1's reading. */
typedef enum turn { CHANGED, UNMAPPED, KILLED, UNKNOWN } turn;

typedef struct copied {
  polyccl_plan *plan;
  turn turn;
  _Atomic int arrived, sent;
  _Atomic int result;
  bool allowed;
  char error[400];
} copied;

/* Both ranks send all to the other, which stores it. Without put, a sender need not wait for its receiver. */
static polyccl_plan *make_swap(void) {
  polyccl_plan *plan;
  if (polyccl_plan_create(2, &plan) != POLYCCL_SUCCESS) {
    abort();
  }
  plan->name = strdup("swap");
  plan->collective = POLYCCL_ALLGATHER;
  plan->chunks = 1;
  plan->chunks_out = 2;
  plan->protocol = POLYCCL_SIMPLE;
  plan->fifo_depth = 1;
  pccl_plan_builder builder = {0};
  for (int r = 0; r < 2; r++) {
    if (!pccl_vec_push(&builder.rank, (polyccl_plan_rank){.input = 1, .output = 2}) ||
        pccl_plan_builder_add_tb(&builder, r) != POLYCCL_SUCCESS) {
      abort();
    }
    add_step(&builder, POLYCCL_STEP_SEND, POLYCCL_BUF_INPUT, 0, 0, 0, -1, 1 - r, r)->flags = POLYCCL_FLAG_GET;
    add_step(&builder, POLYCCL_STEP_COPY, POLYCCL_BUF_INPUT, 0, POLYCCL_BUF_OUTPUT, r, -1, -1, r);
    add_step(&builder, POLYCCL_STEP_RECV, 0, 0, POLYCCL_BUF_OUTPUT, 1 - r, 1 - r, -1, r);
  }
  pccl_plan_builder_finish(&builder, plan);
  pccl_plan_builder_free(&builder);
  return plan;
}

static void fill_values(int32_t *in, int rank, int round) {
  for (size_t i = 0; i < COPIED_COUNT; i++) {
    in[i] = value(rank, i, round);
  }
}

/* Rank 0 sends, which moves nothing, and does to its memory what the turn says before rank 1 may read. */
static polyccl_result send_and_turn(polyccl_comm *comm, copied *c, int id, int32_t *in, int32_t *out) {
  pccl_executor *executor = &comm->executor;
  pccl_prepared *prepared;
  polyccl_result result =
      pccl_prepare(executor, comm->plans.data[id], COPIED_COUNT, POLYCCL_INT32, POLYCCL_SUM, &prepared);
  if (result != POLYCCL_SUCCESS) {
    return result;
  }
  fill_values(in, 0, 1);
  executor->member.calls++;
  pccl_execution x;
  result = pccl_execution_begin(&x, executor, prepared, in, out, pccl_call_signature(executor, prepared));
  while (result == POLYCCL_SUCCESS && x.state[0].step == 0) {
    pccl_execution_round(&x);
  }
  if (c->turn == CHANGED || c->turn == UNKNOWN) {
    fill_values(in, 0, 2);
  } else if (c->turn == UNMAPPED) {
    munmap(in, COPIED_COUNT * sizeof *in);
  }
  atomic_store(&c->sent, 1);
  if (c->turn == KILLED) {
    raise(SIGKILL);
  }
  result = result == POLYCCL_SUCCESS ? pccl_execution_wait(&x) : result;
  return c->turn == UNMAPPED && result != POLYCCL_SUCCESS ? POLYCCL_SUCCESS : result;
}

static polyccl_result read_late(polyccl_comm *comm, copied *c, int id, int32_t *in, int32_t *out) {
  c->allowed = pccl_member_can_copy(&comm->executor.member, 0);
  while (atomic_load(&c->sent) == 0) {
    usleep(1000);
  }
  polyccl_result result = polyccl_run_plan(comm, id, in, out, COPIED_COUNT, POLYCCL_INT32, POLYCCL_SUM, NULL);
  snprintf(c->error, sizeof c->error, "%s", result == POLYCCL_SUCCESS ? "" : polyccl_last_error());
  atomic_store(&c->result, (int)result);
  for (size_t i = 0; result == POLYCCL_SUCCESS && i < COPIED_COUNT; i++) {
    int32_t wanted = value(0, i, c->turn == CHANGED && c->allowed ? 2 : 1);
    if (out[i] != wanted) {
      return complain("read late", 1, i, wanted, out[i]);
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result meet_the_turn(polyccl_comm *comm, void *argument) {
  copied *c = argument;
  int id, rank = polyccl_comm_user_rank(comm);
  pccl_member *member = &comm->executor.member;
  if (c->turn == UNKNOWN && rank == 0) {
    member->cookie++; /* as if another process had the number */
  }
  atomic_fetch_add(&c->arrived, 1);
  while (atomic_load(&c->arrived) < 2) {
    usleep(1000);
  }
  int32_t *in = mmap(NULL, COPIED_COUNT * sizeof *in, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int32_t *out = malloc(2 * COPIED_COUNT * sizeof *out);
  polyccl_result result = polyccl_comm_add_plan(comm, c->plan, &id);
  if (result == POLYCCL_SUCCESS) { /* the ends are opened: rank 1 has said whether it can read */
    fill_values(in, rank, 0);
    result = polyccl_run_plan(comm, id, in, out, COPIED_COUNT, POLYCCL_INT32, POLYCCL_SUM, NULL);
  }
  if (result != POLYCCL_SUCCESS) {
    return result;
  }
  return rank == 0 ? send_and_turn(comm, c, id, in, out) : read_late(comm, c, id, in, out);
}

static void private_memory_is_read_in_place(void **state) {
  (void)state;
  static const struct {
    turn turn;
    polyccl_result result;
    const char *says;
  } cases[] = {{CHANGED, POLYCCL_SUCCESS, ""},
               {UNKNOWN, POLYCCL_SUCCESS, ""},
               {UNMAPPED, POLYCCL_ERROR_REMOTE, "rank 1 cannot copy from the buffer of rank 0"},
               {KILLED, POLYCCL_ERROR_REMOTE, "rank 0"}};
  copied *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(c, MAP_FAILED);
  polyccl_plan *plan = make_swap();
  setenv("POLYCCL_KERNEL_COPY", "1", 1);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    memset(c, 0, sizeof *c);
    c->plan = plan;
    c->turn = cases[i].turn;
    c->result = -1;
    polyccl_result result = pccl_launch_processes(2, meet_the_turn, c);
    if (!c->allowed && cases[i].turn != UNKNOWN) {
      break; /* this system forbids it, and what was changed was not seen */
    }
    if ((result == POLYCCL_SUCCESS) != (cases[i].turn != KILLED)) {
      fail_msg("case %zu: %s", i, polyccl_last_error());
    }
    assert_int_equal(c->result, cases[i].result);
    if (strstr(c->error, cases[i].says) == NULL) {
      fail_msg("\"%s\" does not say \"%s\"", c->error, cases[i].says);
    }
  }
  unsetenv("POLYCCL_KERNEL_COPY");
  polyccl_plan_destroy(plan);
  munmap(c, sizeof *c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(private_memory_is_read_in_place)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
