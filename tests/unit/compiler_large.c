/* Programs of many like messages. A pass that is quadratic in any of what is many here does not end in the time that
 * tests have; what is asserted is the plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <polyccl/compile.h>

static const polyccl_location here = {"large.lua", 1};

static polyccl_program *make(int ranks, int chunks) {
  polyccl_program_config config = {.size = sizeof(polyccl_program_config),
                                   .collective = POLYCCL_CUSTOM,
                                   .ranks = ranks,
                                   .chunks = chunks,
                                   .inplace = true};
  polyccl_program *p = NULL;
  assert_int_equal(polyccl_program_create(&config, &p), POLYCCL_SUCCESS);
  return p;
}

static polyccl_ref copy(polyccl_program *p, const polyccl_ref *src, int rank, int index, polyccl_hints hints) {
  polyccl_ref ref = {0};
  if (polyccl_program_copy(p, src, rank, POLYCCL_INPUT, index, hints, here, &ref) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  return ref;
}

static polyccl_ref chunk(polyccl_program *p, int rank, int index, int size) {
  polyccl_ref ref = {0};
  assert_int_equal(polyccl_program_chunk(p, rank, POLYCCL_INPUT, index, size, here, &ref), POLYCCL_SUCCESS);
  return ref;
}

/* Without the verifier: what it takes is its own tests' matter. */
static polyccl_plan *compile(polyccl_program *p) {
  polyccl_compile_options options = {.size = sizeof(polyccl_compile_options), .no_verify = true};
  polyccl_plan *plan = NULL;
  if (polyccl_compile(p, &options, &plan) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  polyccl_program_destroy(p);
  return plan;
}

static void many_messages_of_one_connection(void **state) {
  (void)state;
  enum { MANY = 1 << 18 };
  polyccl_program *p = make(2, MANY);
  for (int i = 0; i < MANY; i++) {
    polyccl_ref from = chunk(p, 0, i, 1);
    copy(p, &from, 1, i, POLYCCL_NO_HINTS);
  }
  polyccl_plan *plan = compile(p);
  assert_int_equal(plan->connections, 1);
  assert_int_equal(plan->tbs, 2);
  assert_int_equal(plan->waits, 0);
  for (int side = 0; side < 2; side++) {
    assert_int_equal(plan->tb[side].steps, MANY);
    for (int i = 0; i < MANY; i++) {
      const polyccl_step *step = &plan->step[plan->tb[side].step + i];
      assert_int_equal(step->op, side == 0 ? POLYCCL_STEP_SEND : POLYCCL_STEP_RECV);
      assert_int_equal(side == 0 ? step->src : step->dst, i);
    }
  }
  polyccl_plan_destroy(plan);
}

/* All go through rank 0, from rank 1 to a rank each: each needs a channel of its own. */
static void many_routes_through_one_rank(void **state) {
  (void)state;
  enum { MANY = 30000 };
  polyccl_program *p = make(MANY + 2, 1);
  for (int i = 0; i < MANY; i++) {
    polyccl_ref from = chunk(p, 1, 0, 1);
    polyccl_ref at = copy(p, &from, 0, 0, POLYCCL_NO_HINTS);
    copy(p, &at, 2 + i, 0, POLYCCL_NO_HINTS);
  }
  polyccl_plan *plan = compile(p);
  assert_int_equal(plan->rank[0].tbs, MANY);
  assert_int_equal(plan->connections, 2 * MANY);
  for (int i = 0; i < MANY; i++) {
    const polyccl_step *step = &plan->step[plan->tb[plan->rank[0].tb + i].step];
    assert_int_equal(step->op, POLYCCL_STEP_RCS);
    assert_int_equal(plan->connection[step->recv].channel, plan->connection[step->send].channel);
  }
  polyccl_plan_destroy(plan);
}

/* One step that waits for as many thread blocks as there are. */
static void a_step_with_many_waits(void **state) {
  (void)state;
  enum { MANY = 60000 };
  polyccl_program *p = make(1, 2 * MANY);
  for (int i = 0; i < MANY; i++) {
    polyccl_hints hints = {.channel = -1, .send_tb = i, .recv_tb = -1};
    polyccl_ref from = chunk(p, 0, i, 1);
    copy(p, &from, 0, MANY + i, hints);
  }
  polyccl_ref all = chunk(p, 0, MANY, MANY);
  copy(p, &all, 0, 0, (polyccl_hints){.channel = -1, .send_tb = MANY, .recv_tb = -1});
  polyccl_plan *plan = compile(p);
  assert_int_equal(plan->tbs, MANY + 1);
  assert_int_equal(plan->waits, MANY);
  for (int i = 0; i < MANY; i++) {
    assert_int_equal(plan->wait[i].step, 0);
    assert_int_equal(plan->wait[i].tb, i);
  }
  polyccl_plan_destroy(plan);
}

/* Each thread block waits for the one before, and so knows all before that: one wait each, however many there are. */
static void a_chain_of_many_thread_blocks(void **state) {
  (void)state;
  enum { MANY = 60000 };
  polyccl_program *p = make(1, MANY + 1);
  polyccl_ref at = chunk(p, 0, 0, 1);
  for (int i = 0; i < MANY; i++) {
    at = copy(p, &at, 0, i + 1, (polyccl_hints){.channel = -1, .send_tb = i, .recv_tb = -1});
  }
  polyccl_plan *plan = compile(p);
  assert_int_equal(plan->tbs, MANY);
  assert_int_equal(plan->waits, MANY - 1);
  for (int i = 1; i < MANY; i++) {
    assert_int_equal(plan->step[plan->tb[i].step].waits, 1);
    assert_int_equal(plan->wait[plan->step[plan->tb[i].step].wait].tb, i - 1);
  }
  polyccl_plan_destroy(plan);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(many_messages_of_one_connection),
      cmocka_unit_test(many_routes_through_one_rank),
      cmocka_unit_test(a_step_with_many_waits),
      cmocka_unit_test(a_chain_of_many_thread_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
