/* The compiler: what comes out for small programs, step by step; every plan is proved by the verifier on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <polyccl/compile.h>

static polyccl_location at(int line) { return (polyccl_location){"t.lua", line}; }

static polyccl_ref take(polyccl_program *p, int rank, int buffer, int index, int size) {
  polyccl_ref ref = {0};
  if (polyccl_program_chunk(p, rank, buffer, index, size, at(1), &ref) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  return ref;
}

static polyccl_ref copy_hinted(polyccl_program *p, polyccl_ref src, int rank, int buffer, int index,
                               polyccl_hints hints, int line) {
  polyccl_ref ref = {0};
  if (polyccl_program_copy(p, &src, rank, buffer, index, hints, at(line), &ref) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  return ref;
}

static polyccl_ref copy(polyccl_program *p, polyccl_ref src, int rank, int buffer, int index) {
  return copy_hinted(p, src, rank, buffer, index, POLYCCL_NO_HINTS, 2);
}

static polyccl_ref reduce(polyccl_program *p, polyccl_ref acc, polyccl_ref operand) {
  polyccl_ref ref = {0};
  if (polyccl_program_reduce(p, &acc, &operand, POLYCCL_NO_HINTS, at(3), &ref) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  return ref;
}

static polyccl_program *make(polyccl_program_config config) {
  polyccl_program *program = NULL;
  assert_int_equal(polyccl_program_create(&config, &program), POLYCCL_SUCCESS);
  return program;
}

static polyccl_plan *compile(polyccl_program *program, polyccl_placement placement) {
  polyccl_plan *plan = NULL;
  polyccl_compile_options options = {.size = sizeof(polyccl_compile_options), .placement = placement};
  if (polyccl_compile(program, &options, &plan) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  polyccl_program_destroy(program);
  return plan;
}

/* The ops of a thread block, "send rrcs recv". */
static const char *ops(const polyccl_plan *plan, int rank, int tb) {
  static char text[4096];
  text[0] = '\0';
  const polyccl_thread_block *block = &plan->tb[plan->rank[rank].tb + tb];
  for (int i = 0; i < block->steps; i++) {
    const polyccl_step *step = &plan->step[block->step + i];
    strcat(text, i > 0 ? " " : "");
    strcat(text, polyccl_step_op_name((polyccl_step_op)step->op));
  }
  return text;
}

static polyccl_program *ring(polyccl_program_config config) {
  polyccl_program *p = make(config);
  int n = config.ranks;
  for (int c = 0; c < n; c++) {
    polyccl_ref ref = take(p, (c + 1) % n, POLYCCL_INPUT, c, 1);
    for (int s = 2; s <= n; s++) {
      ref = reduce(p, take(p, (c + s) % n, POLYCCL_INPUT, c, 1), ref);
    }
    for (int s = 1; s < n; s++) {
      ref = copy(p, ref, (ref.rank + 1) % n, -1, -1);
    }
  }
  return p;
}

static void forwarding_is_fused(void **state) {
  (void)state;
  polyccl_program *p = make((polyccl_program_config){.size = sizeof(polyccl_program_config),
                                                     .collective = POLYCCL_BROADCAST,
                                                     .ranks = 3,
                                                     .chunks = 1,
                                                     .inplace = true});
  copy(p, copy(p, take(p, 0, POLYCCL_INPUT, 0, 1), 1, -1, -1), 2, -1, -1);
  polyccl_plan *plan = compile(p, POLYCCL_AS_WRITTEN);
  assert_int_equal(plan->steps, 3);
  assert_string_equal(ops(plan, 0, 0), "send");
  assert_string_equal(ops(plan, 1, 0), "rcs");
  assert_string_equal(ops(plan, 2, 0), "recv");
  polyccl_plan_destroy(plan);
}

static void a_ring_is_one_thread_block_per_rank(void **state) {
  (void)state;
  polyccl_plan *plan = compile(ring((polyccl_program_config){.size = sizeof(polyccl_program_config),
                                                             .collective = POLYCCL_ALLREDUCE,
                                                             .ranks = 4,
                                                             .chunks = 4,
                                                             .inplace = true}),
                               POLYCCL_AS_WRITTEN);
  assert_int_equal(plan->tbs, 4);
  assert_int_equal(plan->connections, 4);
  assert_int_equal(plan->waits, 0);
  for (int rank = 0; rank < 4; rank++) {
    assert_string_equal(ops(plan, rank, 0), "send rrs rrs rrcs rcs rcs recv");
  }
  assert_int_equal(plan->fifo_depth, 2);
  polyccl_plan_destroy(plan);
}

static void instances_use_their_own_channels(void **state) {
  (void)state;
  for (int replication = 0; replication < 2; replication++) {
    polyccl_plan *plan = compile(ring((polyccl_program_config){.size = sizeof(polyccl_program_config),
                                                               .collective = POLYCCL_ALLREDUCE,
                                                               .ranks = 4,
                                                               .chunks = 4,
                                                               .inplace = true,
                                                               .instances = 3,
                                                               .replication = (polyccl_replication)replication}),
                                 POLYCCL_AS_WRITTEN);
    assert_int_equal(plan->chunks, 12);
    assert_int_equal(plan->tbs, 12);
    assert_int_equal(plan->connections, 12);
    assert_int_equal(plan->steps, 3 * 28);
    polyccl_plan_destroy(plan);
  }
}

static void out_of_place_reads_the_input_and_keeps_it(void **state) {
  (void)state;
  polyccl_plan *plan = compile(ring((polyccl_program_config){.size = sizeof(polyccl_program_config),
                                                             .collective = POLYCCL_ALLREDUCE,
                                                             .ranks = 3,
                                                             .chunks = 3,
                                                             .inplace = true}),
                               POLYCCL_OUT_OF_PLACE);
  assert_false(plan->inplace);
  for (size_t i = 0; i < plan->steps; i++) {
    const polyccl_step *step = &plan->step[i];
    if (step->op != POLYCCL_STEP_SEND && step->op != POLYCCL_STEP_RRS) {
      assert_int_equal(step->dst_buf, POLYCCL_BUF_OUTPUT);
    }
  }
  assert_int_equal(plan->rank[0].scratch, 0);
  assert_int_equal(plan->steps, 3 * 5);
  polyccl_plan_destroy(plan);
}

static void an_untouched_block_is_copied_out_of_place(void **state) {
  (void)state;
  polyccl_program *p = make((polyccl_program_config){.size = sizeof(polyccl_program_config),
                                                     .collective = POLYCCL_ALLGATHER,
                                                     .ranks = 2,
                                                     .chunks = 2,
                                                     .inplace = true});
  copy(p, take(p, 0, POLYCCL_OUTPUT, 0, 2), 1, -1, -1);
  copy(p, take(p, 1, POLYCCL_OUTPUT, 2, 2), 0, -1, -1);
  polyccl_plan *plan = compile(p, POLYCCL_OUT_OF_PLACE);
  int copies = 0;
  for (size_t i = 0; i < plan->steps; i++) {
    copies += plan->step[i].op == POLYCCL_STEP_COPY;
  }
  assert_int_equal(copies, 2);
  polyccl_plan_destroy(plan);
}

static void mixed_counts_replicate_right(void **state) {
  (void)state;
  /* Known fault 5: instances cut a copy of two chunks otherwise than two copies of one. */
  for (int replication = 0; replication < 2; replication++) {
    polyccl_program *p = make((polyccl_program_config){.size = sizeof(polyccl_program_config),
                                                       .collective = POLYCCL_ALLGATHER,
                                                       .ranks = 4,
                                                       .chunks = 1,
                                                       .inplace = true,
                                                       .instances = 2,
                                                       .replication = (polyccl_replication)replication});
    for (int r = 0; r < 4; r++) {
      copy(p, take(p, r, POLYCCL_OUTPUT, r, 1), r ^ 1, -1, -1);
    }
    for (int r = 0; r < 4; r++) {
      copy(p, take(p, r, POLYCCL_OUTPUT, r & 2, 2), r ^ 2, -1, -1);
    }
    polyccl_plan *plan = compile(p, POLYCCL_AS_WRITTEN);
    polyccl_plan_destroy(plan);
  }
}

static void a_remote_reduce_keeps_its_local_operand(void **state) {
  (void)state;
  /* Known fault 1: source and destination index differ. */
  polyccl_program *p = make((polyccl_program_config){
      .size = sizeof(polyccl_program_config), .collective = POLYCCL_CUSTOM, .ranks = 2, .chunks = 2, .inplace = true});
  polyccl_leaf leaves[] = {{1, 1}, {0, 0}};
  assert_int_equal(polyccl_program_post(p, 1, 1, leaves, 2), POLYCCL_SUCCESS);
  reduce(p, take(p, 1, POLYCCL_OUTPUT, 1, 1), take(p, 0, POLYCCL_INPUT, 0, 1));
  polyccl_plan *plan = compile(p, POLYCCL_AS_WRITTEN);
  assert_int_equal(plan->step[1].op, POLYCCL_STEP_RRC);
  assert_int_equal(plan->step[1].src, 1);
  assert_int_equal(plan->step[1].dst, 1);
  assert_int_equal(plan->step[0].src, 0);
  polyccl_plan_destroy(plan);
}

static void partly_overwritten_values_are_stored(void **state) {
  (void)state;
  /* Known fault 2: rrs only when every chunk of the value is overwritten. */
  polyccl_program *p = make((polyccl_program_config){
      .size = sizeof(polyccl_program_config), .collective = POLYCCL_CUSTOM, .ranks = 3, .chunks = 2, .inplace = true});
  polyccl_leaf sum[] = {{1, 1}, {0, 1}}, other = {2, 0};
  assert_int_equal(polyccl_program_post(p, 1, 1, sum, 2), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_program_post(p, 1, 0, &other, 1), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_program_post(p, 2, 1, sum, 2), POLYCCL_SUCCESS);
  polyccl_ref zero = take(p, 2, POLYCCL_INPUT, 0, 1);
  polyccl_ref kept = copy(p, zero, 0, POLYCCL_INPUT, 0);
  (void)kept;
  polyccl_ref value = reduce(p, take(p, 1, POLYCCL_INPUT, 0, 2), take(p, 0, POLYCCL_INPUT, 0, 2));
  copy(p, value, 2, POLYCCL_INPUT, 0);
  copy(p, take(p, 0, POLYCCL_INPUT, 0, 1), 1, POLYCCL_INPUT, 0);
  polyccl_plan *plan = compile(p, POLYCCL_AS_WRITTEN);
  bool fused = false;
  for (size_t i = 0; i < plan->steps; i++) {
    assert_int_not_equal(plan->step[i].op, POLYCCL_STEP_RRS);
    fused = fused || plan->step[i].op == POLYCCL_STEP_RRCS;
  }
  assert_true(fused);
  polyccl_plan_destroy(plan);
}

static void a_local_reduce_on_initial_data_stays(void **state) {
  (void)state;
  /* Known fault 3. */
  polyccl_program *p = make((polyccl_program_config){
      .size = sizeof(polyccl_program_config), .collective = POLYCCL_CUSTOM, .ranks = 1, .chunks = 2, .inplace = true});
  polyccl_leaf sum[] = {{0, 0}, {0, 1}};
  assert_int_equal(polyccl_program_post(p, 0, 0, sum, 2), POLYCCL_SUCCESS);
  reduce(p, take(p, 0, POLYCCL_INPUT, 0, 1), take(p, 0, POLYCCL_INPUT, 1, 1));
  polyccl_plan *plan = compile(p, POLYCCL_AS_WRITTEN);
  assert_string_equal(ops(plan, 0, 0), "reduce");
  polyccl_plan_destroy(plan);
}

static void one_connection_in_two_thread_blocks_is_refused(void **state) {
  (void)state;
  /* Known fault 7. */
  polyccl_program *p = make((polyccl_program_config){.size = sizeof(polyccl_program_config),
                                                     .collective = POLYCCL_BROADCAST,
                                                     .ranks = 2,
                                                     .chunks = 2,
                                                     .inplace = true});
  copy_hinted(p, take(p, 0, POLYCCL_INPUT, 0, 1), 1, -1, -1, (polyccl_hints){0, 0, 0}, 7);
  copy_hinted(p, take(p, 0, POLYCCL_INPUT, 1, 1), 1, -1, -1, (polyccl_hints){0, 1, 0}, 8);
  polyccl_plan *plan = NULL;
  assert_int_equal(polyccl_compile(p, NULL, &plan), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(),
                      "t.lua:8: rank 0 sends to rank 1 on channel 0 in thread block 1 here and in thread block 0 at "
                      "t.lua:7; a connection belongs to one: use the same sendtb, or another channel");
  polyccl_program_destroy(p);
}

static void two_peers_in_one_thread_block_are_refused(void **state) {
  (void)state;
  polyccl_program *p = make((polyccl_program_config){.size = sizeof(polyccl_program_config),
                                                     .collective = POLYCCL_BROADCAST,
                                                     .ranks = 3,
                                                     .chunks = 1,
                                                     .inplace = true});
  copy_hinted(p, take(p, 0, POLYCCL_INPUT, 0, 1), 1, -1, -1, (polyccl_hints){0, 0, 0}, 7);
  copy_hinted(p, take(p, 0, POLYCCL_INPUT, 0, 1), 2, -1, -1, (polyccl_hints){0, 0, 0}, 8);
  polyccl_plan *plan = NULL;
  assert_int_equal(polyccl_compile(p, NULL, &plan), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(),
                      "t.lua:8: thread block 0 of rank 0 would send to rank 2 on channel 0 here and rank 1 on channel "
                      "0 at t.lua:7; a thread block has one send peer and one channel: give one of them another "
                      "sendtb");
  polyccl_program_destroy(p);
}

static void parallelize_cuts_only_its_scope(void **state) {
  (void)state;
  polyccl_program *p = make((polyccl_program_config){.size = sizeof(polyccl_program_config),
                                                     .collective = POLYCCL_BROADCAST,
                                                     .ranks = 3,
                                                     .chunks = 1,
                                                     .inplace = true});
  polyccl_ref there = copy(p, take(p, 0, POLYCCL_INPUT, 0, 1), 1, -1, -1);
  assert_int_equal(polyccl_program_parallel_begin(p, 4, at(5)), POLYCCL_SUCCESS);
  copy(p, there, 2, -1, -1);
  assert_int_equal(polyccl_program_parallel_end(p), POLYCCL_SUCCESS);
  polyccl_plan *plan = compile(p, POLYCCL_AS_WRITTEN);
  assert_int_equal(plan->chunks, 4);
  assert_int_equal(plan->rank[0].tbs, 1);
  assert_int_equal(plan->rank[2].tbs, 4);
  assert_int_equal(plan->step[0].count, 4);
  polyccl_plan_destroy(plan);
}

/* Every rank starts `rounds` chunks on a ring that also passes on those of others; two slots per connection do. */
static void rings_that_share_a_channel_need_two_slots(void **state) {
  (void)state;
  enum { RANKS = 4, ROUNDS = 6 };
  polyccl_program *p = make((polyccl_program_config){.size = sizeof(polyccl_program_config),
                                                     .collective = POLYCCL_ALLREDUCE,
                                                     .ranks = RANKS,
                                                     .chunks = RANKS * ROUNDS,
                                                     .inplace = true});
  for (int c = 0; c < RANKS * ROUNDS; c++) {
    polyccl_ref sum = take(p, c % RANKS, POLYCCL_INPUT, c, 1);
    for (int s = 1; s < RANKS; s++) {
      sum = reduce(p, take(p, (c + s) % RANKS, POLYCCL_INPUT, c, 1), sum);
    }
    for (int s = 1; s < RANKS; s++) {
      sum = copy(p, sum, (sum.rank + 1) % RANKS, -1, -1);
    }
  }
  polyccl_plan *plan = compile(p, POLYCCL_AS_WRITTEN);
  assert_int_equal(plan->tbs, RANKS);
  assert_int_equal(plan->fifo_depth, 2);
  polyccl_plan_destroy(plan);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(forwarding_is_fused),
      cmocka_unit_test(a_ring_is_one_thread_block_per_rank),
      cmocka_unit_test(rings_that_share_a_channel_need_two_slots),
      cmocka_unit_test(instances_use_their_own_channels),
      cmocka_unit_test(out_of_place_reads_the_input_and_keeps_it),
      cmocka_unit_test(an_untouched_block_is_copied_out_of_place),
      cmocka_unit_test(mixed_counts_replicate_right),
      cmocka_unit_test(a_remote_reduce_keeps_its_local_operand),
      cmocka_unit_test(partly_overwritten_values_are_stored),
      cmocka_unit_test(a_local_reduce_on_initial_data_stays),
      cmocka_unit_test(one_connection_in_two_thread_blocks_is_refused),
      cmocka_unit_test(two_peers_in_one_thread_block_are_refused),
      cmocka_unit_test(parallelize_cuts_only_its_scope),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
