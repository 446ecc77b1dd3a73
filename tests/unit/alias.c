/* What the library calls right on ranks in place, though the plan is out of place: hand-made plans where it is not, the
 * marks that remain, the shipped algorithms. The interpreter, which shares no code with it, confirms the plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/compile.h>
#include <polyccl/language.h>

#include "../interpreter/interpreter.h"
#include "plan/alias.h"

static polyccl_plan *parse(const char *text) {
  polyccl_plan *plan = NULL;
  if (polyccl_plan_parse("text", text, strlen(text), &plan) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  return plan;
}

static void assert_verifies(const polyccl_plan *plan) {
  if (polyccl_plan_verify(plan, NULL) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
}

static bool is_safe(const polyccl_plan *plan) {
  pccl_alias alias;
  assert_int_equal(pccl_alias_find(plan, &alias), POLYCCL_SUCCESS);
  bool safe = alias.safe;
  assert_int_equal(safe, alias.step != NULL);
  pccl_alias_free(&alias);
  return safe;
}

/* Under many interleavings with these ranks in place. */
static interpreter_outcome outcome_in_place(const polyccl_plan *plan, uint64_t ranks) {
  interpreter_outcome outcome = INTERPRETER_RIGHT;
  for (uint64_t seed = 1; seed <= 200 && outcome == INTERPRETER_RIGHT; seed++) {
    interpreter_options options = {
        .micro_batches = 1 + (int)seed % 3, .depth = plan->fifo_depth, .seed = seed, .in_place = ranks};
    char why[256];
    outcome = interpret(plan, &options, why, sizeof why);
  }
  return outcome;
}

/* Nothing orders the send of the input and the sum that takes its place. */
static void sum_that_overwrites_what_is_to_be_sent_is_unsafe(void **state) {
  (void)state;
  polyccl_plan *plan = parse(
      "polyccl-plan 1\nname \"x\"\ncollective allreduce\nranks 2\nchunks 1\n"
      "rank 0 scratch 0\n  tb\n    send i0 x1 to 1.0\n  tb\n    rrc i0 o0 x1 from 1.0\n"
      "rank 1 scratch 0\n  tb\n    send i0 x1 to 0.0\n  tb\n    rrc i0 o0 x1 from 0.0\n");
  assert_verifies(plan);
  assert_int_equal(outcome_in_place(plan, 0), INTERPRETER_RIGHT);
  assert_int_equal(outcome_in_place(plan, 1), INTERPRETER_WRONG);
  assert_false(is_safe(plan));
  polyccl_plan_destroy(plan);
  plan = parse(
      "polyccl-plan 1\nname \"x\"\ncollective allreduce\nranks 2\nchunks 1\n"
      "rank 0 scratch 0\n  tb\n    send i0 x1 to 1.0\n  tb\n    rrc i0 o0 x1 from 1.0 wait 0.0\n"
      "rank 1 scratch 0\n  tb\n    send i0 x1 to 0.0\n  tb\n    rrc i0 o0 x1 from 0.0 wait 0.0\n");
  assert_true(is_safe(plan));
  for (uint64_t ranks = 0; ranks < 4; ranks++) {
    assert_int_equal(outcome_in_place(plan, ranks), INTERPRETER_RIGHT);
  }
  polyccl_plan_destroy(plan);
}

/* Rank 0 sends back what it has received over its first input, rank 1 stores that over its own input's second chunk and
 * then copies the input there. All ranks in place: rank 1's chunk comes back to it. None: it takes its input. Rank 1
 * alone: it keeps what rank 0 sent, which is rank 0's own input. */
static void right_in_both_pure_forms_is_not_enough(void **state) {
  (void)state;
  polyccl_plan *plan = parse(
      "polyccl-plan 1\nname \"x\"\ncollective alltoall\nranks 2\nchunks 1\n"
      "rank 0 scratch 2\n  tb\n    copy i0 s0 x2\n    recv o0 x1 from 1.0\n    send i0 x1 to 1.0\n"
      "    copy s0 o0 x1\n    send s1 x1 to 1.0\n    recv o1 x1 from 1.0\n"
      "rank 1 scratch 0\n  tb\n    send i1 x1 to 0.0\n    recv o1 x1 from 0.0\n"
      "    copy i1 o1 x1\n    send i0 x1 to 0.0\n    recv o0 x1 from 0.0\n");
  assert_verifies(plan);
  assert_int_equal(outcome_in_place(plan, 0), INTERPRETER_RIGHT);
  assert_int_equal(outcome_in_place(plan, 1), INTERPRETER_RIGHT);
  assert_int_equal(outcome_in_place(plan, 2), INTERPRETER_WRONG);
  assert_int_equal(outcome_in_place(plan, 3), INTERPRETER_RIGHT);
  assert_false(is_safe(plan));
  plan->inplace = true;
  assert_verifies(plan);
  polyccl_plan_destroy(plan);
}

/* The copy of a chunk to its own place moves nothing there, and so cannot bring back what was overwritten. */
static void copy_to_its_own_place_restores_nothing(void **state) {
  (void)state;
  polyccl_plan *plan = parse(
      "polyccl-plan 1\nname \"x\"\ncollective broadcast\nranks 1\nchunks 2\nrank 0 scratch 0\n"
      "  tb\n    copy i0 o1 x1\n    copy o1 o0 x1\n    copy i1 o1 x1\n");
  assert_verifies(plan);
  assert_int_equal(outcome_in_place(plan, 1), INTERPRETER_WRONG);
  assert_false(is_safe(plan));
  polyccl_plan_destroy(plan);
  plan = parse(
      "polyccl-plan 1\nname \"x\"\ncollective broadcast\nranks 1\nchunks 2\nrank 0 scratch 0\n"
      "  tb\n    copy i0 o0 x1\n  tb\n    copy i1 o1 x1\n  tb\n    copy i0 o0 x1 wait 0.0\n");
  assert_int_equal(outcome_in_place(plan, 1), INTERPRETER_RIGHT);
  assert_true(is_safe(plan));
  polyccl_plan_destroy(plan);
}

/* Rank 1 may still read its input when rank 0 sends; rank 0 overwrites what it sends as soon as it is received. */
static void marks_follow_the_placement_of_their_memory(void **state) {
  (void)state;
  polyccl_plan *plan = parse(
      "polyccl-plan 1\nname \"x\"\ncollective custom\nranks 2\nchunks 1\n"
      "post 0 0 = 1.0\npost 1 0 = 0.0\n"
      "rank 0 scratch 0\n  tb\n    send i0 x1 to 1.0 get\n    recv o0 x1 from 1.0\n"
      "rank 1 scratch 1\n  tb\n    copy i0 s0 x1\n    send s0 x1 to 0.0\n    recv o0 x1 from 0.0 "
      "put\n");
  assert_verifies(plan);
  pccl_alias alias;
  assert_int_equal(pccl_alias_find(plan, &alias), POLYCCL_SUCCESS);
  assert_true(alias.safe);
  assert_int_equal(alias.step[0].flags, POLYCCL_FLAG_GET); /* out of place alone */
  assert_int_equal(alias.step[4].flags, 0);                /* the sender cannot know rank 1's placement */
  pccl_alias_free(&alias);
  assert_int_equal(plan->step[4].flags, POLYCCL_FLAG_PUT);
  polyccl_plan_destroy(plan);
}

static void forms_without_two_buffers_are_not_asked(void **state) {
  (void)state;
  polyccl_plan *plan = parse(
      "polyccl-plan 1\nname \"x\"\ncollective sendrecv\nranks 2\nchunks 1\npeer 1\n"
      "rank 0 scratch 0\n  tb\n    send i0 x1 to 1.0\n"
      "rank 1 scratch 0\n  tb\n    recv o0 x1 from 0.0\n");
  assert_verifies(plan);
  assert_false(is_safe(plan));
  polyccl_plan_destroy(plan);
}

static bool is_algorithm_safe(const char *name, int ranks, polyccl_placement placement) {
  char path[256], number[16];
  snprintf(path, sizeof path, POLYCCL_SOURCE_DIR "/algorithms/%s.lua", name);
  snprintf(number, sizeof number, "%d", ranks);
  polyccl_param param = {"ranks", number};
  polyccl_program *program;
  polyccl_plan *plan;
  polyccl_compile_options options = {.size = sizeof options, .placement = placement};
  if (polyccl_program_load(path, &param, 1, &program) != POLYCCL_SUCCESS ||
      polyccl_compile(program, &options, &plan) != POLYCCL_SUCCESS) {
    fail_msg("%s: %s", name, polyccl_last_error());
  }
  bool safe = is_safe(plan);
  for (uint64_t mask = 0; safe && mask < 1u << ranks; mask++) {
    for (size_t s = 0; s < plan->steps; s++) {
      plan->step[s].flags = 0;
    }
    assert_int_equal(outcome_in_place(plan, mask), INTERPRETER_RIGHT);
  }
  polyccl_plan_destroy(plan);
  polyccl_program_destroy(program);
  return safe;
}

static void shipped_algorithms_are_safe(void **state) {
  (void)state;
  static const char *const safe[] = {
      "allreduce_allpairs",
      "allreduce_ring",
      "allreduce_halving_doubling",
      "allgather_ring",
      "allgather_allpairs",
      "reduce_scatter_allpairs",
      "reduce_scatter_ring",
      "broadcast_tree",
      "broadcast_chain",
      "reduce_tree",
      "reduce_chain",
      "gather",
      "scatter",
  };
  for (int ranks = 2; ranks <= 4; ranks++) {
    for (size_t i = 0; i < sizeof safe / sizeof safe[0]; i++) {
      assert_true(is_algorithm_safe(safe[i], ranks, POLYCCL_OUT_OF_PLACE));
    }
    assert_false(is_algorithm_safe("allreduce_oneshot", ranks, POLYCCL_OUT_OF_PLACE));
    assert_true(is_algorithm_safe("allreduce_oneshot", ranks, POLYCCL_EITHER_PLACE));
    assert_false(is_algorithm_safe("alltoall", ranks, POLYCCL_EITHER_PLACE)); /* written out of place */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sum_that_overwrites_what_is_to_be_sent_is_unsafe),
      cmocka_unit_test(right_in_both_pure_forms_is_not_enough),
      cmocka_unit_test(copy_to_its_own_place_restores_nothing),
      cmocka_unit_test(marks_follow_the_placement_of_their_memory),
      cmocka_unit_test(forms_without_two_buffers_are_not_asked),
      cmocka_unit_test(shipped_algorithms_are_safe),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
