/* The builder: references, staleness, ranges; the symbolic check and its messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <polyccl/program.h>

#include "program/program.h"

static polyccl_location at(int line) { return (polyccl_location){"t.lua", line}; }

static polyccl_program *make(polyccl_collective collective, int ranks, int chunks, bool inplace) {
  polyccl_program_config config = {.size = sizeof(polyccl_program_config),
                                   .collective = collective,
                                   .ranks = ranks,
                                   .chunks = chunks,
                                   .inplace = inplace};
  polyccl_program *program = NULL;
  assert_int_equal(polyccl_program_create(&config, &program), POLYCCL_SUCCESS);
  return program;
}

static polyccl_ref take(polyccl_program *p, int rank, int buffer, int index) {
  polyccl_ref ref = {0};
  assert_int_equal(polyccl_program_chunk(p, rank, buffer, index, 1, at(1), &ref), POLYCCL_SUCCESS);
  return ref;
}

static polyccl_ref copy(polyccl_program *p, polyccl_ref src, int rank, int buffer, int index, int line) {
  polyccl_ref ref = {0};
  assert_int_equal(polyccl_program_copy(p, &src, rank, buffer, index, POLYCCL_NO_HINTS, at(line), &ref), 0);
  return ref;
}

static polyccl_ref reduce(polyccl_program *p, polyccl_ref acc, polyccl_ref operand, int line) {
  polyccl_ref ref = {0};
  assert_int_equal(polyccl_program_reduce(p, &acc, &operand, POLYCCL_NO_HINTS, at(line), &ref), POLYCCL_SUCCESS);
  return ref;
}

static polyccl_program *ring(int ranks, int skip) {
  polyccl_program *p = make(POLYCCL_ALLREDUCE, ranks, ranks, true);
  for (int c = 0; c < ranks; c++) {
    polyccl_ref ref = take(p, (c + 1) % ranks, POLYCCL_INPUT, c);
    for (int s = 2; s <= ranks - skip; s++) {
      ref = reduce(p, take(p, (c + s) % ranks, POLYCCL_INPUT, c), ref, 5);
    }
    for (int s = 1; s < ranks; s++) {
      ref = copy(p, ref, (ref.rank + 1) % ranks, -1, -1, 6);
    }
  }
  return p;
}

static void a_ring_is_right(void **state) {
  (void)state;
  for (int ranks = 1; ranks < 9; ranks++) {
    polyccl_program *p = ring(ranks, 0);
    polyccl_program_summary summary;
    assert_int_equal(polyccl_program_check(p, &summary), POLYCCL_SUCCESS);
    assert_int_equal(summary.operations, 2 * ranks * (ranks - 1));
    assert_int_equal(summary.longest, 2 * (ranks - 1));
    assert_true(summary.identical);
    polyccl_program_destroy(p);
  }
}

static void a_lacking_contribution_is_named(void **state) {
  (void)state;
  polyccl_program *p = ring(3, 1);
  assert_int_equal(polyccl_program_check(p, NULL), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "allreduce: rank 0 output[0]: lacks rank 0 chunk 0; copied at t.lua:6");
  polyccl_program_destroy(p);
}

static void a_double_contribution_is_named(void **state) {
  (void)state;
  polyccl_program *p = make(POLYCCL_ALLREDUCE, 2, 1, true);
  polyccl_ref sum = reduce(p, take(p, 1, POLYCCL_INPUT, 0), take(p, 0, POLYCCL_INPUT, 0), 3);
  sum = reduce(p, take(p, 0, POLYCCL_INPUT, 0), sum, 4);
  assert_int_equal(polyccl_program_check(p, NULL), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "allreduce: rank 0 output[0]: has 2x rank 0 chunk 0; reduced at t.lua:4");
  polyccl_program_destroy(p);
}

static void missing_output_is_named(void **state) {
  (void)state;
  polyccl_program *p = make(POLYCCL_ALLGATHER, 2, 1, true);
  assert_int_equal(polyccl_program_check(p, NULL), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(),
                      "allgather: rank 0 output[1]: holds nothing, lacks rank 1 chunk 0; never written");
  polyccl_program_destroy(p);
}

static void stale_references_are_errors(void **state) {
  (void)state;
  polyccl_program *p = make(POLYCCL_ALLREDUCE, 2, 1, true);
  polyccl_ref old = take(p, 1, POLYCCL_INPUT, 0), ref;
  reduce(p, take(p, 1, POLYCCL_INPUT, 0), take(p, 0, POLYCCL_INPUT, 0), 8);
  assert_int_equal(polyccl_program_copy(p, &old, 0, -1, -1, POLYCCL_NO_HINTS, at(9), &ref), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(),
                      "t.lua:9: stale chunk: rank 1 input[0] was overwritten at t.lua:8 after this reference to it was "
                      "taken");
  polyccl_program_destroy(p);
}

static void misuse_is_an_error_with_its_place(void **state) {
  (void)state;
  polyccl_program *p = make(POLYCCL_ALLREDUCE, 2, 4, false);
  polyccl_ref ref, whole;
  assert_int_equal(polyccl_program_chunk(p, 2, POLYCCL_INPUT, 0, 1, at(2), &ref), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "t.lua:2: rank 2 is out of range (the program has ranks 0 to 1)");
  assert_int_equal(polyccl_program_chunk(p, 1, POLYCCL_INPUT, 3, 2, at(2), &ref), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "t.lua:2: rank 1 input[3..4] is out of range (4 chunks there, size 2)");
  assert_int_equal(polyccl_program_chunk(p, 1, POLYCCL_INPUT, 0, INT32_MAX, at(2), &ref), POLYCCL_ERROR_INVALID);
  assert_int_equal(polyccl_program_chunk(p, 1, POLYCCL_OUTPUT, 0, 1, at(2), &ref), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "t.lua:2: rank 1 output[0] holds nothing yet");
  assert_int_equal(polyccl_program_chunk(p, 1, 7, 0, 1, at(2), &ref), POLYCCL_ERROR_INVALID);
  assert_int_equal(polyccl_program_chunk(p, 1, POLYCCL_INPUT, 0, 2, at(2), &whole), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_program_reduce(p, &whole, &whole, POLYCCL_NO_HINTS, at(3), &ref), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(),
                      "t.lua:3: cannot reduce rank 1 input[0..1] into rank 1 input[0..1]: a chunk cannot be reduced "
                      "with itself");
  assert_int_equal(polyccl_program_copy(p, &whole, 1, POLYCCL_INPUT, 1, POLYCCL_NO_HINTS, at(4), &ref),
                   POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(),
                      "t.lua:4: a copy from rank 1 input[0..1] to rank 1 input[1..2] overlaps itself");
  polyccl_program_destroy(p);
}

static void scratch_grows_by_appending(void **state) {
  (void)state;
  polyccl_program *p = make(POLYCCL_ALLREDUCE, 2, 1, false);
  int tmp = 0, again = 0;
  assert_int_equal(polyccl_program_scratch(p, "tmp", &tmp), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_program_scratch(p, "tmp", &again), POLYCCL_SUCCESS);
  assert_int_equal(tmp, again);
  polyccl_ref first = copy(p, take(p, 0, POLYCCL_INPUT, 0), 1, tmp, -1, 2);
  polyccl_ref second = copy(p, take(p, 1, POLYCCL_INPUT, 0), 1, tmp, -1, 3);
  assert_int_equal(first.index, 0);
  assert_int_equal(second.index, 1);
  polyccl_ref sum = reduce(p, first, second, 4);
  copy(p, sum, 1, POLYCCL_OUTPUT, 0, 5);
  copy(p, sum, 0, POLYCCL_OUTPUT, 0, 6);
  assert_int_equal(polyccl_program_check(p, NULL), POLYCCL_SUCCESS);
  polyccl_program_destroy(p);
}

static void groups_join_fresh_references_of_one_buffer(void **state) {
  (void)state;
  polyccl_program *p = make(POLYCCL_ALLTOALL, 4, 1, false);
  int scratch;
  assert_int_equal(polyccl_program_scratch(p, "tmp", &scratch), POLYCCL_SUCCESS);
  polyccl_ref first = copy(p, take(p, 0, POLYCCL_INPUT, 1), 1, scratch, 2, 2), group;
  polyccl_ref second = copy(p, take(p, 0, POLYCCL_INPUT, 2), 1, scratch, 4, 3);
  assert_int_equal(polyccl_program_group(p, &second, &first, at(4), &group), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "t.lua:4: rank 1 tmp[3] holds nothing yet");
  polyccl_ref between = copy(p, take(p, 0, POLYCCL_INPUT, 3), 1, scratch, 3, 5);
  assert_int_equal(polyccl_program_group(p, &second, &first, at(6), &group), POLYCCL_SUCCESS);
  assert_int_equal(group.rank, 1);
  assert_int_equal(group.buffer, scratch);
  assert_int_equal(group.index, 2);
  assert_int_equal(group.size, 3);
  copy(p, take(p, 2, POLYCCL_INPUT, 0), 1, scratch, 3, 7);
  assert_int_equal(polyccl_program_group(p, &first, &between, at(8), &group), POLYCCL_ERROR_INVALID);
  assert_non_null(strstr(polyccl_last_error(), "t.lua:8: stale chunk: rank 1 tmp[3] was overwritten at t.lua:7"));
  polyccl_ref input = take(p, 1, POLYCCL_INPUT, 0);
  assert_int_equal(polyccl_program_group(p, &first, &input, at(9), &group), POLYCCL_ERROR_INVALID);
  assert_non_null(strstr(polyccl_last_error(), "they lie in different buffers"));
  polyccl_program_destroy(p);
}

static void custom_conditions_are_checked(void **state) {
  (void)state;
  polyccl_program *p = make(POLYCCL_CUSTOM, 3, 1, false);
  for (int rank = 1; rank < 3; rank++) {
    assert_int_equal(polyccl_program_post(p, rank, 0, &(polyccl_leaf){rank - 1, 0}, 1), POLYCCL_SUCCESS);
  }
  assert_int_equal(polyccl_program_post(p, 1, 0, &(polyccl_leaf){0, 0}, 1), POLYCCL_ERROR_INVALID);
  copy(p, take(p, 0, POLYCCL_INPUT, 0), 1, POLYCCL_OUTPUT, 0, 3);
  copy(p, take(p, 0, POLYCCL_INPUT, 0), 2, POLYCCL_OUTPUT, 0, 4);
  assert_int_equal(polyccl_program_check(p, NULL), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(),
                      "custom: rank 2 output[0]: has rank 0 chunk 0, lacks rank 1 chunk 0; copied at t.lua:4");
  polyccl_program_destroy(p);
}

/* Doubled n times, a chunk has 2^n contributions. They are counted where they are too many to be listed. */
static void origins_are_counted_without_a_list(void **state) {
  (void)state;
  polyccl_program *p = make(POLYCCL_ALLREDUCE, 2, 1, true);
  for (int n = 1; n <= 40; n++) {
    uint32_t count = 0;
    size_t listed = 0;
    polyccl_ref sum = reduce(p, take(p, 0, POLYCCL_INPUT, 0), take(p, 1, POLYCCL_INPUT, 0), 2);
    copy(p, sum, 1, POLYCCL_INPUT, 0, 3);
    assert_int_equal(pccl_program_count_origins(p, &sum, 0, at(4), &count), POLYCCL_SUCCESS);
    assert_int_equal(count, n < 32 ? (uint32_t)1 << n : UINT32_MAX);
    if (n <= 10) {
      assert_int_equal(polyccl_program_origins(p, &sum, 0, at(4), NULL, 0, &listed), POLYCCL_SUCCESS);
      assert_int_equal(listed, count);
    } else if (n > 22) {
      assert_int_equal(polyccl_program_origins(p, &sum, 0, at(4), NULL, 0, &listed), POLYCCL_ERROR_LIMIT);
    }
    assert_int_equal(pccl_program_count_origins(p, &sum, 1, at(4), &count), POLYCCL_ERROR_INVALID);
  }
  polyccl_program_destroy(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_ring_is_right),
      cmocka_unit_test(a_lacking_contribution_is_named),
      cmocka_unit_test(a_double_contribution_is_named),
      cmocka_unit_test(missing_output_is_named),
      cmocka_unit_test(stale_references_are_errors),
      cmocka_unit_test(misuse_is_an_error_with_its_place),
      cmocka_unit_test(scratch_grows_by_appending),
      cmocka_unit_test(groups_join_fresh_references_of_one_buffer),
      cmocka_unit_test(custom_conditions_are_checked),
      cmocka_unit_test(origins_are_counted_without_a_list),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
