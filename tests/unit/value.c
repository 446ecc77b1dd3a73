/* Symbolic values: what a sum of chunks holds, told exactly and without looking at each contribution of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <polyccl/program.h>

#include "base/map.h"
#include "program/coverage.h"

static uint64_t random_state;

static int32_t below(int32_t n) {
  random_state = pccl_mix64(random_state + 1);
  return (int32_t)(random_state % (uint64_t)n);
}

static int32_t sum_of(pccl_values *values, int32_t a, int32_t b) {
  int32_t sum = pccl_value_add(values, a, b);
  assert_true(sum >= 0);
  return sum;
}

/* How often each leaf is in each value, by adding up what the two operands have. */
static uint32_t *count_leaves(const pccl_values *values) {
  size_t leaves = (size_t)values->leaves, all = leaves + values->sum.len;
  uint32_t *times = calloc(all * leaves, sizeof *times);
  assert_non_null(times);
  for (size_t v = 0; v < all; v++) {
    for (size_t k = 0; k < leaves; k++) {
      const pccl_value_sum *sum = v < leaves ? NULL : &values->sum.data[v - leaves];
      times[v * leaves + k] =
          sum == NULL ? v == k : times[(size_t)sum->a * leaves + k] + times[(size_t)sum->b * leaves + k];
    }
  }
  return times;
}

static bool holds_all_ranks(const pccl_values *values, const uint32_t *times, int32_t value, int32_t chunk) {
  for (int32_t leaf = 0; leaf < values->leaves; leaf++) {
    if (times[(size_t)value * (size_t)values->leaves + (size_t)leaf] != (leaf % values->input == chunk)) {
      return false;
    }
  }
  return true;
}

/* Adds up the chunks `chunk` of all ranks, in a random order of random parts; or, `wrong`, with one rank in place of
 * another, or another chunk. */
static int32_t random_sum(pccl_values *values, int32_t ranks, int32_t chunk, bool wrong) {
  int32_t part[256];
  for (int32_t r = 0; r < ranks; r++) {
    part[r] = r * values->input + chunk;
  }
  if (wrong) {
    int32_t *at = &part[below(ranks)];
    *at = below(2) == 0 ? below(ranks) * values->input + chunk : *at - chunk + below(values->input);
  }
  for (int32_t n = ranks; n > 1; n--) {
    /* Mostly neighbours, so that sums have parts in common. */
    int32_t i = below(n - 1), j = below(4) > 0 ? i + 1 : i + 1 + below(n - 1 - i);
    part[i] = sum_of(values, part[i], part[j]);
    memmove(&part[j], &part[j + 1], (size_t)(n - 1 - j) * sizeof *part);
  }
  return part[0];
}

/* `sets`: by sets of ranks from the first question on. */
static void compare_answers(pccl_values *values, const uint32_t *times, int32_t ranks, bool sets, int *right) {
  pccl_coverage c;
  assert_int_equal(pccl_coverage_open(&c, values, ranks), POLYCCL_SUCCESS);
  c.visits = sets ? PCCL_COVERAGE_MAX_VISITS : 0;
  for (int32_t value = 0; value < values->leaves + (int32_t)values->sum.len; value++) {
    for (int32_t chunk = 0; chunk < values->input; chunk++) {
      bool yes;
      assert_int_equal(pccl_coverage_ask(&c, value, chunk, &yes), POLYCCL_SUCCESS);
      if (yes != holds_all_ranks(values, times, value, chunk)) {
        fail_msg("%d ranks, value %d, chunk %d: %s", ranks, value, chunk, yes ? "yes" : "no");
      }
      *right += yes;
    }
  }
  assert_true(!sets || c.visits == PCCL_COVERAGE_MAX_VISITS);
  pccl_coverage_close(&c);
}

static void sums_of_all_ranks_are_told_exactly(void **state) {
  (void)state;
  static const int32_t ranks[] = {1, 2, 3, 5, 31, 32, 33, 64, 70, 130};
  for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
    pccl_values values = {.leaves = 3 * ranks[i], .input = 3, .chunks = 3};
    random_state = i;
    for (int k = 0; k < 24; k++) {
      random_sum(&values, ranks[i], k % 3, k % 2 != 0);
    }
    uint32_t *times = count_leaves(&values);
    int one_by_one = 0, by_sets = 0;
    compare_answers(&values, times, ranks[i], false, &one_by_one);
    compare_answers(&values, times, ranks[i], true, &by_sets);
    assert_true(one_by_one >= 3 && by_sets == one_by_one);
    free(times);
    pccl_values_free(&values);
  }
}

static void equal_trees_are_one(void **state) {
  (void)state;
  pccl_values values = {.leaves = 3, .input = 1, .chunks = 1};
  int32_t left = sum_of(&values, sum_of(&values, 0, 1), 2), right = sum_of(&values, 0, sum_of(&values, 1, 2));
  assert_int_equal(left, sum_of(&values, 2, sum_of(&values, 1, 0)));
  assert_int_not_equal(left, right); /* another rounding */
  assert_int_equal(values.sum.len, 4);
  int32_t twice = sum_of(&values, left, right), wanted[] = {2, 0, 1, 1, 0, 2}, other[] = {2, 0, 1, 1, 0, 1};
  bool no_memory = false;
  assert_true(pccl_value_holds(&values, twice, wanted, 6, &no_memory));
  assert_false(pccl_value_holds(&values, twice, wanted, 5, &no_memory));
  assert_false(pccl_value_holds(&values, twice, other, 6, &no_memory));
  for (int i = 0; i < 40; i++) { /* 6 x 2^40 contributions in 40 more sums */
    twice = sum_of(&values, twice, twice);
  }
  assert_int_equal(pccl_value_leaves(&values, twice), UINT32_MAX);
  assert_false(pccl_value_holds(&values, twice, wanted, 6, &no_memory));
  assert_false(no_memory);
  pccl_values_free(&values);
}

/* `ranks` sums over all ranks, of the same 8 parts in different orders: 10 sums each. One by one they have ranks x
 * ranks contributions; the work done is far from that. */
static void parts_in_common_are_looked_at_once(void **state) {
  (void)state;
  enum { PARTS = 8 };
  for (int32_t ranks = 1024; ranks <= 8192; ranks *= 2) {
    pccl_values values = {.leaves = ranks, .input = 1, .chunks = 1};
    int32_t part[PARTS], *sum = calloc((size_t)ranks, sizeof *sum);
    assert_non_null(sum);
    for (int32_t r = 0; r < ranks; r++) { /* interleaved, which is the worst for sets */
      part[r % PARTS] = r < PARTS ? r : sum_of(&values, part[r % PARTS], r);
    }
    random_state = 1;
    for (int32_t r = 0; r < ranks; r++) {
      int32_t order[PARTS] = {0, 1, 2, 3, 4, 5, 6, 7};
      for (int32_t i = 0; i < PARTS; i++) {
        int32_t j = i + below(PARTS - i), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
        sum[r] = i == 0 ? part[order[0]] : sum_of(&values, sum[r], part[order[i]]);
      }
    }
    pccl_coverage c;
    assert_int_equal(pccl_coverage_open(&c, &values, ranks), POLYCCL_SUCCESS);
    for (int32_t r = 0; r < ranks; r++) {
      bool yes;
      assert_int_equal(pccl_coverage_ask(&c, sum[r], 0, &yes), POLYCCL_SUCCESS);
      assert_true(yes);
    }
    assert_true(c.visits <= ((size_t)1 << 20) + 5 * values.sum.len + (size_t)ranks);
    assert_true(c.sets.work < 64 * (size_t)ranks);
    pccl_coverage_close(&c);
    pccl_values_free(&values);
    free(sum);
  }
}

static void too_much_to_follow_is_refused(void **state) {
  (void)state;
  enum { RANKS = 200 };
  pccl_values values = {.leaves = RANKS, .input = 1, .chunks = 1};
  random_state = 7;
  int32_t sum = random_sum(&values, RANKS, 0, false), other = random_sum(&values, RANKS, 0, false);
  pccl_coverage c;
  bool yes;
  assert_int_equal(pccl_coverage_open(&c, &values, RANKS), POLYCCL_SUCCESS);
  c.visits = PCCL_COVERAGE_MAX_VISITS - 1;
  c.sets.work = PCCL_COVERAGE_MAX_SETS;
  assert_int_equal(pccl_coverage_ask(&c, sum, 0, &yes), POLYCCL_SUCCESS); /* no sets, but this visit may be made */
  assert_true(yes && c.too_many);
  assert_int_equal(pccl_coverage_ask(&c, sum, 0, &yes), POLYCCL_SUCCESS); /* known */
  assert_int_equal(pccl_coverage_ask(&c, other, 0, &yes), POLYCCL_ERROR_LIMIT);
  assert_non_null(strstr(polyccl_last_error(), "the outputs are sums of 200 ranks in more different orders"));
  pccl_coverage_close(&c);
  pccl_values_free(&values);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_trees_are_one),
      cmocka_unit_test(sums_of_all_ranks_are_told_exactly),
      cmocka_unit_test(parts_in_common_are_looked_at_once),
      cmocka_unit_test(too_much_to_follow_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
