/* Where the verifier says that all ranks get the same bits, they do: zeros of both signs, NaNs of both signs and many
 * payloads, infinities, subnormal numbers, in every type, operation, protocol and algorithm that reduces, in the vector
 * body and the tail; and what docs/plan.md defines of such numbers is what comes out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <unistd.h>

#include "exec_numbers.h"
#include "kernel/reduce.h"

/* The specials that the ranks have at an index are mixed from a few kinds, so that zeros meet zeros, and a NaN that one
 * rank has meets numbers, infinities and other NaNs. */
enum { MIXTURES = 7 };

static uint64_t special(format f, uint64_t random, size_t mixture) {
  uint64_t sign = random, kind = random / 2 % 8, more = pccl_mix64(random);
  switch (mixture) {
    case 0: return float_bits(f, sign, 0, 0);
    case 1: /* one NaN or none, quiet or signalling */
      return kind == 0 ? infinity_bits(f) | (sign % 2) * sign_bit(f) | 1 | (more & (((uint64_t)1 << f.fraction) - 1))
                       : float_bits(f, sign, largest_exponent(f) / 2, more);
    case 2: return infinity_bits(f) | (sign % 2) * sign_bit(f) | (more % 2 << (f.fraction - 1)) | (more / 2 % 8 + 1);
    case 3:
      return kind < 2 ? infinity_bits(f) | (sign % 2) * sign_bit(f) : float_bits(f, sign, largest_exponent(f) / 2, 0);
    case 4: return float_bits(f, sign, kind % 2, more);
    case 5:
      return kind < 5 ? float_bits(f, sign, 0, 0) : float_bits(f, sign, kind == 5 ? 0 : largest_exponent(f) / 2, 1);
    default: return float_bits(f, sign, more % (largest_exponent(f) + 2), more / 4096);
  }
}

static uint64_t element(polyccl_dtype dtype, polyccl_redop op, int ranks, int rank, size_t index) {
  (void)op;
  (void)ranks;
  uint64_t random = pccl_mix64(((uint64_t)rank << 40) ^ index);
  return is_float(dtype) ? special(format_of(dtype), random, index % MIXTURES) : random;
}

/* -0 below +0: the order of the bits as signed magnitudes. */
static int64_t order_of(format f, uint64_t bits) {
  int64_t magnitude = (int64_t)(bits & (sign_bit(f) - 1));
  return (bits & sign_bit(f)) != 0 ? -magnitude - 1 : magnitude;
}

/* What must come out whatever the order of the reduction; false: that depends on it. */
static bool defined(polyccl_dtype dtype, polyccl_redop op, int ranks, size_t index, uint64_t *want) {
  format f = format_of(dtype);
  bool nan = false, plus = false, minus = false, zero = false, only_minus_zero = true;
  uint64_t first = element(dtype, op, ranks, 0, index), sign = 0;
  *want = first;
  for (int r = 0; r < ranks; r++) {
    uint64_t bits = element(dtype, op, ranks, r, index), magnitude = bits & (sign_bit(f) - 1);
    bool below = order_of(f, bits) < order_of(f, *want);
    nan = nan || is_nan(f, bits);
    plus = plus || bits == infinity_bits(f);
    minus = minus || bits == (infinity_bits(f) | sign_bit(f));
    zero = zero || magnitude == 0;
    only_minus_zero = only_minus_zero && bits == sign_bit(f);
    sign ^= bits & sign_bit(f);
    *want = (op == POLYCCL_MIN && below) || (op == POLYCCL_MAX && !below) ? bits : *want;
  }
  bool invalid = op == POLYCCL_PROD ? zero && (plus || minus) : plus && minus;
  if (nan || (invalid && op != POLYCCL_MIN && op != POLYCCL_MAX)) {
    *want = one_nan_bits(f);
    return true;
  }
  if (op == POLYCCL_MIN || op == POLYCCL_MAX) {
    return true;
  }
  if (op == POLYCCL_PROD) { /* no zero: partial products may still run under or over */
    *want = sign | (zero ? 0 : infinity_bits(f));
    return zero && index % MIXTURES != 6;
  }
  *want = only_minus_zero ? sign_bit(f) : infinity_bits(f) | (minus ? sign_bit(f) : 0);
  return only_minus_zero || ((plus || minus) && index % MIXTURES != 6);
}

static void fail_element(const runs *r, int k, int rank, size_t i, uint64_t got, uint64_t want) {
  fail_msg("%s on %d ranks, %s, %s, %s %s%s: rank %d element %zu (mixture %zu) is %llx, not %llx", r->plan->name,
           r->plan->ranks, polyccl_protocol_name(r->plan->protocol), r->plan->inplace ? "in place" : "out of place",
           polyccl_dtype_name(r->kind[k].dtype), polyccl_redop_name(r->kind[k].op),
           r->code != NULL ? ", generated" : "", rank, i, i % MIXTURES, (unsigned long long)got,
           (unsigned long long)want);
}

enum { KINDS = POLYCCL_DTYPE_COUNT * POLYCCL_REDOP_COUNT - 1 }; /* all but the average of bool */

/* True where all ranks' outputs had the same bits. */
static bool check_outputs(const runs *r, bool identical) {
  bool same = true;
  for (int k = 0; k < KINDS; k++) {
    for (int rank = 0; rank < r->plan->ranks; rank++) {
      for (size_t i = 0; i < r->count; i++) {
        size_t index;
        uint64_t want;
        if (!input_index(r->plan, rank, r->count, i, &index)) {
          break;
        }
        uint64_t got = output_bits(r, k, rank, i);
        if (r->plan->collective == POLYCCL_ALLREDUCE && got != output_bits(r, k, 0, i)) {
          same = false;
          if (identical) {
            fail_element(r, k, rank, i, got, output_bits(r, k, 0, i));
          }
        }
        if (is_float(r->kind[k].dtype) && defined(r->kind[k].dtype, r->kind[k].op, r->plan->ranks, index, &want) &&
            got != want) {
          fail_element(r, k, rank, i, got, want);
        }
      }
    }
  }
  return same;
}

static void check_plan(const polyccl_plan *plan, const char *code, size_t count, bool identical) {
  call_kind kinds[KINDS];
  int number = 0;
  for (int k = 0; k <= KINDS; k++) {
    call_kind kind = {(polyccl_dtype)(k / POLYCCL_REDOP_COUNT), (polyccl_redop)(k % POLYCCL_REDOP_COUNT)};
    if (pccl_reduction_defined(kind.dtype, kind.op)) {
      kinds[number++] = kind;
    }
  }
  assert_int_equal(number, KINDS);
  runs r = {.plan = plan, .code = code, .count = count, .kind = kinds, .kinds = KINDS, .bits = element};
  run_everywhere(&r);
  check_outputs(&r, identical);
  free_outputs(&r);
}

static const struct {
  const char *name;
  int first, second;
} algorithms[] = {
    {"allreduce_ring", 2, 0},
    {"allreduce_ring", 5, 0},
    {"allreduce_allpairs", 2, 0},
    {"allreduce_allpairs", 4, 0},
    {"allreduce_oneshot", 2, 0},
    {"allreduce_oneshot", 4, 0},
    {"allreduce_halving_doubling", 8, 0},
    {"allreduce_hierarchical", 2, 2},
    {"reduce_chain", 4, 0},
    {"reduce_tree", 5, 0},
    {"reduce_scatter_ring", 3, 0},
    {"reduce_scatter_allpairs", 4, 0},
};

static void ranks_agree(void **state) {
  (void)state;
  int identical = 0, all = 0;
  for (size_t a = 0; a < sizeof algorithms / sizeof algorithms[0]; a++) {
    for (int placement = POLYCCL_IN_PLACE; placement <= POLYCCL_OUT_OF_PLACE; placement++) {
      polyccl_verify_report report;
      polyccl_plan *plan = compile_algorithm(algorithms[a].name, algorithms[a].first, algorithms[a].second,
                                             (polyccl_placement)placement, &report);
      for (int protocol = 0; plan != NULL && protocol < POLYCCL_PROTOCOL_COUNT; protocol++) {
        plan->protocol = (polyccl_protocol)protocol;
        /* Vector bodies with tails of many lengths; at 1103 elements wide types go by reference. */
        size_t counts[] = {1, 61, protocol == POLYCCL_SIMPLE ? 1103 : 133};
        for (int c = 0; c < 3; c++) {
          size_t chunks = (size_t)plan->chunks;
          check_plan(plan, NULL, report.uneven ? counts[c] : (counts[c] + chunks - 1) / chunks * chunks,
                     report.identical);
        }
        identical += report.identical;
        all++;
      }
      polyccl_plan_destroy(plan);
    }
  }
  assert_true(all > 50 && identical > 30);
}

/* Operands of one sum in either order: of two ranks each adds the other's to its own. */
static void order_of_operands_does_not_show(void **state) {
  (void)state;
  char path[64];
  snprintf(path, sizeof path, "/tmp/exec_identical.%d.so", (int)getpid());
  polyccl_verify_report report;
  polyccl_plan *plan = compile_algorithm("allreduce_oneshot", 2, 0, POLYCCL_OUT_OF_PLACE, &report);
  assert_non_null(plan);
  assert_true(report.identical);
  for (int protocol = 0; protocol < POLYCCL_PROTOCOL_COUNT; protocol++) {
    plan->protocol = (polyccl_protocol)protocol;
    generate_code(plan, path);
    check_plan(plan, path, 997, true);
    check_plan(plan, NULL, 997, true);
    remove(path);
  }
  polyccl_plan_destroy(plan);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_agree), cmocka_unit_test(order_of_operands_does_not_show)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
