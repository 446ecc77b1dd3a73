/* The arithmetic of types of one byte, on all pairs of their codes, and of unsigned integers: every kernel table
 * against references written from the formats' definitions in double precision. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/map.h"
#include "kernel/mean.h"
#include "kernel/reduce.h"

enum { PAIRS = 65536, CODES = 128 };

/* All pairs; the sources are shifted by a byte each, so that vectors are unaligned. */
static uint8_t pair_a[PAIRS + 1], pair_b[PAIRS + 2], got[PAIRS + 3];

static void make_pairs(void) {
  for (int i = 0; i < PAIRS; i++) {
    pair_a[1 + i] = (uint8_t)(i >> 8);
    pair_b[2 + i] = (uint8_t)i;
  }
}

/* Reduces all pairs into got + 3: as one vector, or in pieces of 1 to 77 elements, which are nearly all tail. */
static void reduce_pairs(const pccl_kernels *k, polyccl_dtype dtype, polyccl_redop op, uint64_t addends, bool pieces) {
  memset(got, 0x5a, sizeof got);
  for (size_t i = 0, n = 0; i < PAIRS; i += n) {
    n = pieces ? 1 + i % 77 : PAIRS;
    n = n < PAIRS - i ? n : PAIRS - i;
    k->reduce[dtype][op](got + 3 + i, pair_a + 1 + i, pair_b + 2 + i, n, addends);
  }
}

/* ---- 8-bit floats ---- */

/* The positive values of a form, by their codes; `finite` is the number of them. */
typedef struct form {
  double value[CODES];
  int finite;
  uint8_t nan, beyond; /* the codes of a NaN, and of a number that is too large */
} form;

/* `wider` > 0: the form of partial averages, whose significand is a bit shorter from 2^(16 - wider) or 2^(9 - wider).
 */
static form form_of(polyccl_dtype dtype, int wider) {
  bool e4m3 = dtype == POLYCCL_FLOAT8E4M3;
  int fraction = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15, end = e4m3 ? 9 : 16;
  form f = {.finite = e4m3 ? 127 : 124, .nan = e4m3 ? 0x7f : 0x7e, .beyond = e4m3 ? 0x7f : 0x7c};
  int first = (end - wider + bias) << fraction;
  for (int code = 0; code < f.finite; code++) {
    int exponent = code >> fraction, rest = code & ((1 << fraction) - 1);
    f.value[code] =
        exponent == 0 ? ldexp(rest, 1 - bias - fraction) : ldexp(rest + (1 << fraction), exponent - bias - fraction);
    if (wider > 0 && code >= first) {
      int past = code - first, half = 1 << (fraction - 1);
      f.value[code] = ldexp(half + past % half, end - wider + past / half - (fraction - 1));
    }
  }
  return f;
}

static double value_of(const form *f, uint8_t code) {
  int magnitude = code & 0x7f;
  double value = magnitude < f->finite ? f->value[magnitude] : f->beyond == 0x7c && magnitude == 0x7c ? INFINITY : NAN;
  return (code & 0x80) != 0 ? -value : value;
}

/* The code of the nearest value, of two the even code. Numbers that round to the place after the largest are too large;
 * in a wider form they are the largest. */
static uint8_t nearest(const form *f, double value, bool wider) {
  if (isnan(value)) {
    return f->nan;
  }
  double magnitude = fabs(value), largest = f->value[f->finite - 1];
  double next = 2 * largest - f->value[f->finite - 2];
  uint8_t sign = signbit(value) ? 0x80 : 0;
  if (magnitude > (largest + next) / 2 || (magnitude * 2 == largest + next && f->finite % 2 == 0)) {
    return wider && !isinf(value) ? sign | (uint8_t)(f->finite - 1) : f->beyond == 0x7f ? 0x7f : sign | f->beyond;
  }
  int code = 0;
  while (code + 1 < f->finite && f->value[code + 1] <= magnitude) {
    code++;
  }
  if (code + 1 < f->finite) {
    double down = magnitude - f->value[code], up = f->value[code + 1] - magnitude;
    code += up < down || (up == down && code % 2 != 0);
  }
  return sign | (uint8_t)code;
}

/* -0 is below +0; a NaN makes a NaN. */
static double lower(double a, double b) { return isnan(a) || isnan(b) ? NAN : a < b || (a == b && signbit(a)) ? a : b; }

/* Exact: two numbers of 4 bits at most, no more than 2^33 apart. */
static double apply(polyccl_redop op, double a, double b) {
  switch (op) {
    case POLYCCL_PROD: return a * b;
    case POLYCCL_MIN: return lower(a, b);
    case POLYCCL_MAX: return -lower(-a, -b);
    default: return a + b;
  }
}

static void check_code(const pccl_kernels *k, polyccl_dtype dtype, polyccl_redop op, int i, uint8_t want) {
  if (got[3 + i] != want) {
    fail_msg("%s %s %s of %02x and %02x: %02x, not %02x", k->name, polyccl_dtype_name(dtype), polyccl_redop_name(op),
             i >> 8, i & 255, got[3 + i], want);
  }
}

static void float8_reductions(void **state) {
  (void)state;
  make_pairs();
  for (int t = 0; pccl_all_kernels[t] != NULL; t++) {
    for (polyccl_dtype dtype = POLYCCL_FLOAT8E4M3; dtype <= POLYCCL_FLOAT8E5M2; dtype++) {
      form f = form_of(dtype, 0);
      for (int op = 0; op < POLYCCL_AVG && pccl_kernels_usable(pccl_all_kernels[t]); op++) {
        for (int pieces = 0; pieces < 2; pieces++) {
          reduce_pairs(pccl_all_kernels[t], dtype, (polyccl_redop)op, 0, pieces != 0);
          for (int i = 0; i < PAIRS; i++) {
            double want = apply((polyccl_redop)op, value_of(&f, (uint8_t)(i >> 8)), value_of(&f, (uint8_t)i));
            check_code(pccl_all_kernels[t], dtype, (polyccl_redop)op, i, nearest(&f, want, false));
          }
          assert_true(got[0] == 0x5a && got[1] == 0x5a && got[2] == 0x5a);
        }
      }
    }
  }
}

/* An infinity of e4m3 has no code, so what stands for one is the type's NaN; the largest number stays. */
static void float8_edges(void **state) {
  (void)state;
  static const struct {
    polyccl_dtype dtype;
    polyccl_redop op;
    uint8_t a, b, want;
  } cases[] = {
      {POLYCCL_FLOAT8E4M3, POLYCCL_SUM, 0x7e, 0x58, 0x7e},  /* 448 + 16 is a tie of 448 and 480 */
      {POLYCCL_FLOAT8E4M3, POLYCCL_SUM, 0x7e, 0x59, 0x7f},  /* 448 + 18 */
      {POLYCCL_FLOAT8E4M3, POLYCCL_SUM, 0xfe, 0xfe, 0x7f},  /* -448 - 448 */
      {POLYCCL_FLOAT8E4M3, POLYCCL_PROD, 0x01, 0x01, 0x00}, /* 2^-9 x 2^-9 */
      {POLYCCL_FLOAT8E4M3, POLYCCL_MAX, 0x00, 0x80, 0x00},
      {POLYCCL_FLOAT8E4M3, POLYCCL_MIN, 0x00, 0x80, 0x80},
      {POLYCCL_FLOAT8E4M3, POLYCCL_MIN, 0xff, 0x38, 0x7f},
      {POLYCCL_FLOAT8E5M2, POLYCCL_SUM, 0x7b, 0x67, 0x7b}, /* 57344 + 1792 */
      {POLYCCL_FLOAT8E5M2, POLYCCL_SUM, 0x7b, 0x6c, 0x7c}, /* 57344 + 4096 is a tie of 57344 and 65536 */
      {POLYCCL_FLOAT8E5M2, POLYCCL_SUM, 0xfb, 0xfb, 0xfc},
      {POLYCCL_FLOAT8E5M2, POLYCCL_SUM, 0x7c, 0xfc, 0x7e},
      {POLYCCL_FLOAT8E5M2, POLYCCL_PROD, 0x7c, 0x00, 0x7e},
      {POLYCCL_FLOAT8E5M2, POLYCCL_MAX, 0xfd, 0x7c, 0x7e},
  };
  for (int t = 0; pccl_all_kernels[t] != NULL; t++) {
    for (size_t i = 0; pccl_kernels_usable(pccl_all_kernels[t]) && i < sizeof cases / sizeof cases[0]; i++) {
      uint8_t result = 0x5a;
      pccl_all_kernels[t]->reduce[cases[i].dtype][cases[i].op](&result, &cases[i].a, &cases[i].b, 1, 0);
      assert_int_equal(result, cases[i].want);
    }
  }
}

/* How much wider the form of `k` contributions is. */
static int width_of(polyccl_dtype dtype, unsigned k) {
  int most = dtype == POLYCCL_FLOAT8E4M3 ? 15 : 30, wider = k > 1 ? (int)ceil(log2(k)) + 1 : 0;
  return wider < most ? wider : most;
}

static void float8_averages(void **state) {
  (void)state;
  static const unsigned stages[][3] = {{1, 1, 0}, {1, 1, 1}, {2, 1, 0},  {1, 2, 1},   {3, 4, 0},     {1, 31, 1},
                                       {5, 5, 1}, {8, 8, 1}, {60, 4, 0}, {500, 1, 1}, {512, 512, 0}, {40000, 3, 1}};
  make_pairs();
  for (int t = 0; pccl_all_kernels[t] != NULL; t++) {
    const pccl_kernels *k = pccl_all_kernels[t];
    for (size_t s = 0; s < sizeof stages / sizeof stages[0] && pccl_kernels_usable(k); s++) {
      for (polyccl_dtype dtype = POLYCCL_FLOAT8E4M3; dtype <= POLYCCL_FLOAT8E5M2; dtype++) {
        unsigned a = stages[s][0], b = stages[s][1];
        bool last = stages[s][2] != 0;
        form left = form_of(dtype, width_of(dtype, a)), right = form_of(dtype, width_of(dtype, b));
        form result = form_of(dtype, last ? 0 : width_of(dtype, a + b));
        reduce_pairs(k, dtype, POLYCCL_AVG, PCCL_K_ADDENDS(a, b, last), s % 2 != 0);
        for (int i = 0; i < PAIRS; i++) {
          float sum = (float)(value_of(&left, (uint8_t)(i >> 8)) + value_of(&right, (uint8_t)i));
          double want = last ? (double)(sum / (float)(a + b)) : (double)sum;
          check_code(k, dtype, POLYCCL_AVG, i, nearest(&result, want, !last || !isinf(sum)));
        }
      }
    }
  }
}

/* ---- bytes and unsigned integers ---- */

static void bools_are_logical(void **state) {
  (void)state;
  make_pairs();
  for (int t = 0; pccl_all_kernels[t] != NULL; t++) {
    for (int op = 0; op < POLYCCL_AVG && pccl_kernels_usable(pccl_all_kernels[t]); op++) {
      for (int pieces = 0; pieces < 2; pieces++) {
        reduce_pairs(pccl_all_kernels[t], POLYCCL_BOOL, (polyccl_redop)op, 0, pieces != 0);
        for (int i = 0; i < PAIRS; i++) {
          bool a = i >> 8 != 0, b = (i & 255) != 0, either = op == POLYCCL_SUM || op == POLYCCL_MAX;
          check_code(pccl_all_kernels[t], POLYCCL_BOOL, (polyccl_redop)op, i, either ? a || b : a && b);
        }
      }
    }
    assert_null(pccl_all_kernels[t]->reduce[POLYCCL_BOOL][POLYCCL_AVG]);
  }
  assert_int_equal(pccl_check_reduction(POLYCCL_BOOL, POLYCCL_AVG), POLYCCL_ERROR_UNSUPPORTED);
  assert_string_equal(polyccl_last_error(), "avg is not defined for bool");
  assert_int_equal(pccl_check_reduction(POLYCCL_BOOL, POLYCCL_SUM), POLYCCL_SUCCESS);
  assert_int_equal(pccl_check_reduction(POLYCCL_INT8, POLYCCL_AVG), POLYCCL_SUCCESS);
  assert_int_equal(pccl_check_reduction(POLYCCL_DTYPE_COUNT, POLYCCL_SUM), POLYCCL_ERROR_INVALID);
}

static void bytes_wrap(void **state) {
  (void)state;
  make_pairs();
  for (int t = 0; pccl_all_kernels[t] != NULL; t++) {
    for (int op = 0; op < POLYCCL_REDOP_COUNT && pccl_kernels_usable(pccl_all_kernels[t]); op++) {
      for (int is_signed = 0; is_signed < 2; is_signed++) {
        polyccl_dtype dtype = is_signed ? POLYCCL_INT8 : POLYCCL_UINT8;
        reduce_pairs(pccl_all_kernels[t], dtype, (polyccl_redop)op, PCCL_K_ADDENDS(1, 2, 1), true);
        for (int i = 0; i < PAIRS; i++) {
          int a = is_signed ? (int8_t)(i >> 8) : i >> 8, b = is_signed ? (int8_t)i : i & 255;
          int sum = is_signed ? (int8_t)(a + b) : (uint8_t)(a + b);
          int want[] = {sum, a * b, a < b ? a : b, a > b ? a : b, sum / 3};
          check_code(pccl_all_kernels[t], dtype, (polyccl_redop)op, i, (uint8_t)want[op]);
        }
      }
    }
  }
}

/* Numbers above the largest of the signed type are large. */
static void unsigned_integers_wrap(void **state) {
  (void)state;
  enum { COUNT = 1000 };
  static uint64_t a[COUNT], b[COUNT], c[COUNT];
  static uint32_t x[COUNT], y[COUNT], z[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    a[i] = pccl_mix64(i) >> (i % 64);
    b[i] = pccl_mix64(i + COUNT) >> (i / 64 % 64);
    x[i] = (uint32_t)(pccl_mix64(i) >> 32) >> (i % 32);
    y[i] = (uint32_t)(pccl_mix64(i + COUNT) >> 32) >> (i / 32 % 32);
  }
  for (int t = 0; pccl_all_kernels[t] != NULL; t++) {
    for (int op = 0; op < POLYCCL_REDOP_COUNT && pccl_kernels_usable(pccl_all_kernels[t]); op++) {
      pccl_all_kernels[t]->reduce[POLYCCL_UINT64][op](c, a, b, COUNT, PCCL_K_ADDENDS(2, 3, 1));
      pccl_all_kernels[t]->reduce[POLYCCL_UINT32][op](z, x, y, COUNT, PCCL_K_ADDENDS(2, 3, 1));
      for (size_t i = 0; i < COUNT; i++) {
        uint64_t want[] = {a[i] + b[i], a[i] * b[i], a[i] < b[i] ? a[i] : b[i], a[i] > b[i] ? a[i] : b[i],
                           (a[i] + b[i]) / 5};
        uint32_t narrow[] = {x[i] + y[i], x[i] * y[i], x[i] < y[i] ? x[i] : y[i], x[i] > y[i] ? x[i] : y[i],
                             (x[i] + y[i]) / 5};
        assert_true(c[i] == want[op]);
        assert_int_equal(z[i], narrow[op]);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(float8_reductions), cmocka_unit_test(float8_edges), cmocka_unit_test(float8_averages),
      cmocka_unit_test(bools_are_logical), cmocka_unit_test(bytes_wrap),   cmocka_unit_test(unsigned_integers_wrap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
