/* Averages are finite and near the exact one wherever their addends are finite: numbers at both ends of each type, of
 * both signs, on 2 to 64 ranks, by every algorithm that reduces, every protocol, in place and not, interpreted and
 * generated. The bound is that of docs/executor.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <unistd.h>

#include "exec_numbers.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { MOST_RANKS = 8 };
#else
enum { MOST_RANKS = 64 };
#endif

/* What the elements of an index are like. */
typedef enum pattern {
  MODERATE,
  LARGE,
  LARGE_SIGNED,
  SUBNORMAL,
  SMALLEST,
  ANY_FINITE,
  ALIKE,
  LARGEST,
  INTEGERS,
  NEAR_SUBNORMAL,
  UPPER, /* f16: about where its wider form begins */
  MINUS_ZERO,
  PATTERNS
} pattern;

static uint64_t bits_of_integer(format f, int64_t value) {
  if (value == 0) {
    return 0;
  }
  uint64_t magnitude = (uint64_t)(value < 0 ? -value : value);
  int top = 63 - __builtin_clzll(magnitude);
  return float_bits(f, value < 0, largest_exponent(f) / 2 + (uint64_t)top, magnitude << (f.fraction - top));
}

/* Integers whose sums are exact, in the wider form of 8-bit floats, too. */
static int64_t integer_of(format f, int ranks, uint64_t random) {
  int64_t limit = ((int64_t)1 << (f.fraction < 20 ? f.fraction : 20)) / ranks;
  return (int64_t)(random % (uint64_t)(2 * limit + 1)) - limit;
}

static uint64_t patterned(format f, int ranks, int rank, size_t index) {
  uint64_t random = pccl_mix64(((uint64_t)rank << 40) ^ index), common = pccl_mix64(index), more = pccl_mix64(random);
  uint64_t top = largest_exponent(f);
  switch ((pattern)(index % PATTERNS)) {
    case MODERATE: return float_bits(f, random, top / 2 + random / 2 % 5, more);
    case LARGE: return float_bits(f, 0, top - random % 2, more);
    case LARGE_SIGNED: return float_bits(f, random, top, more);
    case SUBNORMAL: return float_bits(f, random, 0, more);
    case SMALLEST: return 1;
    case ANY_FINITE: return float_bits(f, random, random / 2 % (top + 1), more);
    case ALIKE: return float_bits(f, common, common / 2 % (top + 1), pccl_mix64(common));
    case LARGEST: return (common & 1) * sign_bit(f) | largest_bits(f);
    case INTEGERS: return bits_of_integer(f, integer_of(f, ranks, random));
    case NEAR_SUBNORMAL: return float_bits(f, random, random / 2 % 3, more);
    case UPPER: return float_bits(f, random % 8 == 0, top - random / 8 % 8, more);
    default: return sign_bit(f);
  }
}

static uint64_t element(polyccl_dtype dtype, polyccl_redop op, int ranks, int rank, size_t index) {
  (void)op;
  if (!is_float(dtype)) {
    uint64_t random = pccl_mix64(((uint64_t)rank << 40) ^ index);
    return index % 3 == 0 ? random % 5 : random;
  }
  format f = format_of(dtype);
  uint64_t bits = patterned(f, ranks, rank, index);
  return is_finite(f, bits) ? bits : bits - 1; /* f8e4m3's NaN has the exponent of its largest numbers */
}

/* The type's partial sums take a form with shorter significands for large numbers. */
static bool has_wider_form(format f) { return f.bits == 8 || (f.bits == 16 && f.fraction == 10); }

/* Of each rounding, relative, where partial sums may reach the wider form; 8-bit floats reach it with small numbers. */
static exact unit_of(format f, pattern p) {
  bool small =
      p == SUBNORMAL || p == SMALLEST || (f.bits > 8 && (p == MODERATE || p == INTEGERS || p == NEAR_SUBNORMAL));
  return power_of_two(-f.fraction - 1 + (has_wider_form(f) && !small));
}

/* As far from the exact average as docs/executor.md allows, with ranks - 1 additions. */
static exact bound_of(polyccl_dtype dtype, pattern p, int ranks, exact mean_of_magnitudes) {
  format f = format_of(dtype);
  exact grows = 1, smallest = power_of_two(smallest_exponent(f));
  for (int i = 0; i < ranks; i++) {
    grows *= 1 + unit_of(f, p);
  }
  return (grows - 1) * mean_of_magnitudes + smallest * (has_wider_form(f) ? (exact)0.5 : (exact)(2 * ranks));
}

static bool is_nearest(format f, uint64_t bits, exact value) {
  exact off = magnitude_of(number_of(f, bits) - value);
  bool zero = (bits & (sign_bit(f) - 1)) == 0;
  return off <= magnitude_of(number_of(f, bits + 1) - value) &&
         (zero || off <= magnitude_of(number_of(f, bits - 1) - value));
}

static bool float_is_right(polyccl_dtype dtype, int ranks, size_t index, uint64_t got) {
  format f = format_of(dtype);
  pattern p = (pattern)(index % PATTERNS);
  exact sum = 0, magnitudes = 0;
  for (int r = 0; r < ranks; r++) {
    exact x = number_of(f, element(dtype, POLYCCL_AVG, ranks, r, index));
    sum += x;
    magnitudes += magnitude_of(x);
  }
  if (!is_finite(f, got) || (p == MINUS_ZERO && got != sign_bit(f)) ||
      (p == INTEGERS && !is_nearest(f, got, sum / ranks))) {
    return false;
  }
  return magnitude_of(number_of(f, got) - sum / ranks) <= bound_of(dtype, p, ranks, magnitudes / ranks);
}

/* The sum wraps, the quotient is truncated. */
static bool integer_is_right(polyccl_dtype dtype, int ranks, size_t index, uint64_t got) {
  uint64_t sum = 0;
  for (int r = 0; r < ranks; r++) {
    sum += element(dtype, POLYCCL_AVG, ranks, r, index);
  }
  switch (dtype) {
    case POLYCCL_INT32: return (int32_t)got == (int32_t)sum / ranks;
    case POLYCCL_INT64: return (int64_t)got == (int64_t)sum / ranks;
    case POLYCCL_UINT32: return got == (uint32_t)sum / (uint32_t)ranks;
    case POLYCCL_UINT64: return got == sum / (uint64_t)ranks;
    case POLYCCL_INT8: return (int8_t)got == (int8_t)sum / ranks;
    default: return got == (uint64_t)((uint8_t)sum / ranks);
  }
}

static const call_kind kinds[] = {
    {POLYCCL_FLOAT16, POLYCCL_AVG}, {POLYCCL_BFLOAT16, POLYCCL_AVG},   {POLYCCL_FLOAT32, POLYCCL_AVG},
    {POLYCCL_FLOAT64, POLYCCL_AVG}, {POLYCCL_INT32, POLYCCL_AVG},      {POLYCCL_INT64, POLYCCL_AVG},
    {POLYCCL_UINT8, POLYCCL_AVG},   {POLYCCL_UINT32, POLYCCL_AVG},     {POLYCCL_UINT64, POLYCCL_AVG},
    {POLYCCL_INT8, POLYCCL_AVG},    {POLYCCL_FLOAT8E4M3, POLYCCL_AVG}, {POLYCCL_FLOAT8E5M2, POLYCCL_AVG}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void check_plan(const polyccl_plan *plan, const char *code, size_t count) {
  runs r = {.plan = plan, .code = code, .count = count, .kind = kinds, .kinds = KINDS, .bits = element};
  run_everywhere(&r);
  for (int k = 0; k < KINDS; k++) {
    for (int rank = 0; rank < plan->ranks; rank++) {
      for (size_t i = 0; i < count; i++) {
        size_t index;
        if (i > 300 && rank > 0) {
          i += 12; /* looked at thinly */
        }
        if (i >= count || !input_index(plan, rank, count, i, &index)) {
          break;
        }
        uint64_t got = output_bits(&r, k, rank, i);
        bool right = is_float(kinds[k].dtype) ? float_is_right(kinds[k].dtype, plan->ranks, index, got)
                                              : integer_is_right(kinds[k].dtype, plan->ranks, index, got);
        if (!right) {
          fail_msg("%s on %d ranks, %s, %s, %s%s: rank %d element %zu (pattern %zu) is %llx", plan->name, plan->ranks,
                   polyccl_protocol_name(plan->protocol), plan->inplace ? "in place" : "out of place",
                   polyccl_dtype_name(kinds[k].dtype), code != NULL ? ", generated" : "", rank, i, index % PATTERNS,
                   (unsigned long long)got);
        }
        if (plan->collective == POLYCCL_ALLREDUCE && rank > 1) {
          i += 22; /* they are compared with rank 0's elsewhere */
        }
      }
    }
  }
  free_outputs(&r);
}

static const struct {
  const char *name;
  int first, second;
} algorithms[] = {
    {"allreduce_ring", 2, 0},
    {"allreduce_ring", 3, 0},
    {"allreduce_ring", 7, 0},
    {"allreduce_ring", 64, 0},
    {"allreduce_allpairs", 5, 0},
    {"allreduce_allpairs", 16, 0},
    {"allreduce_oneshot", 4, 0},
    {"allreduce_oneshot", 9, 0},
    {"allreduce_halving_doubling", 8, 0},
    {"allreduce_halving_doubling", 32, 0},
    {"allreduce_hierarchical", 2, 3},
    {"allreduce_hierarchical", 4, 8},
    {"reduce_chain", 2, 0},
    {"reduce_chain", 33, 0},
    {"reduce_tree", 6, 0},
    {"reduce_tree", 64, 0},
    {"reduce_scatter_ring", 3, 0},
    {"reduce_scatter_ring", 16, 0},
    {"reduce_scatter_allpairs", 4, 0},
    {"reduce_scatter_allpairs", 11, 0},
};

static void averages_are_near_the_exact_ones(void **state) {
  (void)state;
  int ran = 0;
  for (size_t a = 0; a < sizeof algorithms / sizeof algorithms[0]; a++) {
    int ranks = algorithms[a].first * (algorithms[a].second > 0 ? algorithms[a].second : 1);
    for (int placement = POLYCCL_IN_PLACE; placement <= POLYCCL_OUT_OF_PLACE && ranks <= MOST_RANKS; placement++) {
      polyccl_verify_report report;
      polyccl_plan *plan = compile_algorithm(algorithms[a].name, algorithms[a].first, algorithms[a].second,
                                             (polyccl_placement)placement, &report);
      for (int protocol = 0; plan != NULL && protocol < POLYCCL_PROTOCOL_COUNT; protocol++) {
        plan->protocol = (polyccl_protocol)protocol;
        size_t count = ranks > 16 ? 301 : protocol == POLYCCL_SIMPLE ? 2101 : 701; /* 2101: goes by reference */
        check_plan(plan, NULL, report.uneven ? count : count / (size_t)plan->chunks * (size_t)plan->chunks);
        ran++;
      }
      polyccl_plan_destroy(plan);
    }
  }
  assert_true(ran > (MOST_RANKS > 8 ? 100 : 40));
}

/* Several micro-batches, chunks of one step with different numbers of contributions, and all of it as generated code.
 */
static void averages_of_generated_code(void **state) {
  (void)state;
  char path[64];
  snprintf(path, sizeof path, "/tmp/exec_average.%d.so", (int)getpid());
  for (int i = 0; i < 4; i++) {
    polyccl_plan *plan = NULL;
    polyccl_verify_report report;
    if (i == 0) {
      assert_int_equal(polyccl_plan_read(POLYCCL_SOURCE_DIR "/tests/plans/right/mixed_addends_3r.plan", &plan),
                       POLYCCL_SUCCESS);
    } else {
      static const char *const names[] = {"allreduce_ring", "allreduce_halving_doubling", "reduce_scatter_allpairs"};
      plan = compile_algorithm(names[i - 1], 4, 0, POLYCCL_AS_WRITTEN, &report);
      assert_non_null(plan);
    }
    for (int protocol = 0; protocol < POLYCCL_PROTOCOL_COUNT; protocol++) {
      plan->protocol = (polyccl_protocol)protocol;
      generate_code(plan, path);
      check_plan(plan, path, 1201 / (size_t)plan->chunks * (size_t)plan->chunks);
      check_plan(plan, NULL, 1201 / (size_t)plan->chunks * (size_t)plan->chunks);
      check_plan(plan, protocol == 0 ? path : NULL, 60000 / (size_t)plan->chunks * (size_t)plan->chunks);
      remove(path);
    }
    polyccl_plan_destroy(plan);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(averages_are_near_the_exact_ones),
                                     cmocka_unit_test(averages_of_generated_code)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
