/* Arithmetic: every kernel table against plain reference code, element by element and bit by bit; all lengths and
 * alignments around vector sizes; nothing outside the range is touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "kernel/lines.h"
#include "kernel/mean.h"
#include "kernel/reduce.h"

/* ---- references, written from the formats' definitions ---- */

static double half_value(uint16_t h) {
  int exponent = h >> 10 & 31, fraction = h & 1023;
  double value = exponent == 31
                     ? (fraction != 0 ? NAN : INFINITY)
                     : ldexp(exponent == 0 ? fraction : fraction + 1024, (exponent == 0 ? 1 : exponent) - 25);
  return (h & 0x8000) != 0 ? -value : value;
}

static double bfloat_value(uint16_t b) {
  uint32_t bits = (uint32_t)b << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return (double)value;
}

/* The nearest of the type's values, ties to the even one, by search: slow and independent. */
static uint16_t nearest(double value, double (*value_of)(uint16_t), uint16_t infinity) {
  if (isnan(value)) { /* the one NaN */
    return (uint16_t)(infinity | (infinity == 0x7c00 ? 0x200 : 0x40));
  }
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  double magnitude = fabs(value);
  uint16_t low = 0, high = infinity;
  while (high - low > 1) {
    uint16_t middle = (uint16_t)((low + high) / 2);
    if (value_of(middle) <= magnitude) {
      low = middle;
    } else {
      high = middle;
    }
  }
  if (magnitude == INFINITY) {
    return sign | infinity;
  }
  /* Infinity stands where the next value would be. */
  double above = high == infinity ? 2 * value_of(low) - value_of((uint16_t)(low - 1)) : value_of(high);
  double down = magnitude - value_of(low), up = above - magnitude;
  bool take_high = up < down || (up == down && (high & 1) == 0);
  return sign | (take_high ? high : low);
}

/* -0 is below +0; a NaN makes a NaN. */
static double lower(double a, double b) { return isnan(a) || isnan(b) ? NAN : a < b || (a == b && signbit(a)) ? a : b; }

static double apply(polyccl_redop op, double a, double b) {
  switch (op) {
    case POLYCCL_PROD: return (double)((float)a * (float)b);
    case POLYCCL_MIN: return lower(a, b);
    case POLYCCL_MAX: return -lower(-a, -b);
    default: return (double)((float)a + (float)b);
  }
}

/* For one value and all 65,536 others. */
static void check_halves(const pccl_kernels *k, polyccl_dtype dtype, double (*value_of)(uint16_t), uint16_t infinity,
                         uint16_t with) {
  static uint16_t a[65536], b[65536], c[65536];
  for (int i = 0; i < 65536; i++) {
    a[i] = (uint16_t)i;
    b[i] = with;
  }
  for (int op = 0; op < POLYCCL_AVG; op++) {
    k->reduce[dtype][op](c, a, b, 65536, 0);
    for (int i = 0; i < 65536; i++) {
      double want = apply((polyccl_redop)op, value_of(a[i]), value_of(with));
      uint16_t right = nearest(want, value_of, infinity);
      if (c[i] != right) {
        fail_msg("%s %s %s of %04x and %04x: %04x, not %04x", k->name, polyccl_dtype_name(dtype),
                 polyccl_redop_name((polyccl_redop)op), a[i], with, c[i], right);
      }
    }
  }
}

static void halves_round_to_nearest_even(void **state) {
  (void)state;
  static const uint16_t others[] = {0x0000, 0x8001, 0x3c01, 0x7bff, 0x7c00, 0xfc00, 0x7e00,
                                    0xff80, 0x7c01, 0x8000, 0x0400, 0x1403, 0xb555};
  for (int t = 0; pccl_all_kernels[t] != NULL; t++) {
    for (size_t i = 0; pccl_kernels_usable(pccl_all_kernels[t]) && i < sizeof others / sizeof others[0]; i++) {
      check_halves(pccl_all_kernels[t], POLYCCL_FLOAT16, half_value, 0x7c00, others[i]);
      check_halves(pccl_all_kernels[t], POLYCCL_BFLOAT16, bfloat_value, 0x7f80, others[i]);
    }
  }
}

/* The same bits from all tables, for any data, length, alignment, in place or not; averages at each stage. */
static void tables_agree(void **state) {
  (void)state;
  enum { BYTES = 4096 };
  static unsigned char a[BYTES], b[BYTES], want[BYTES], got[BYTES];
  uint64_t seed = 1;
  for (int i = 0; i < BYTES; i++) {
    a[i] = (unsigned char)pccl_mix64(seed++);
    b[i] = (unsigned char)pccl_mix64(seed++);
  }
  for (int t = 0; pccl_all_kernels[t] != NULL; t++) {
    const pccl_kernels *k = pccl_all_kernels[t], *plain = NULL;
    for (int u = 0; pccl_all_kernels[u] != NULL; u++) {
      plain = pccl_all_kernels[u];
    }
    if (!pccl_kernels_usable(k)) {
      continue;
    }
    for (int dtype = 0; dtype < POLYCCL_DTYPE_COUNT; dtype++) {
      size_t e = polyccl_dtype_size((polyccl_dtype)dtype);
      for (int op = 0; op < POLYCCL_REDOP_COUNT; op++) {
        if (!pccl_reduction_defined((polyccl_dtype)dtype, (polyccl_redop)op)) {
          continue;
        }
        for (size_t n = 0; n < 150; n += n < 70 ? 1 : 13) {
          static const uint64_t stages[] = {PCCL_K_ADDENDS(1, 1, 0), PCCL_K_ADDENDS(1, 1, 1), PCCL_K_ADDENDS(3, 1, 0),
                                            PCCL_K_ADDENDS(1, 4, 1), PCCL_K_ADDENDS(31, 33, 1)};
          uint64_t addends = stages[n % (sizeof stages / sizeof stages[0])];
          size_t shift = n % 7;
          memset(want, 0x11, BYTES);
          memset(got, 0x11, BYTES);
          plain->reduce[dtype][op](want + shift, a + 3, b + 1, n, addends);
          if (n % 2 == 0) {
            k->reduce[dtype][op](got + shift, a + 3, b + 1, n, addends);
          } else { /* in place */
            memcpy(got + shift, a + 3, n * e);
            k->reduce[dtype][op](got + shift, got + shift, b + 1, n, addends);
          }
          assert_memory_equal(got, want, BYTES);
        }
      }
    }
  }
}

static void numbers_are_as_documented(void **state) {
  (void)state;
  for (int t = 0; pccl_all_kernels[t] != NULL; t++) {
    const pccl_kernels *k = pccl_all_kernels[t];
    if (!pccl_kernels_usable(k)) {
      continue;
    }
    int32_t big[2] = {INT32_MAX, -9}, one[2] = {1, 2}, sum[2];
    k->reduce[POLYCCL_INT32][POLYCCL_SUM](sum, big, one, 2, 0);
    assert_true(sum[0] == INT32_MIN && sum[1] == -7);
    k->reduce[POLYCCL_INT32][POLYCCL_AVG](sum, big, one, 2, PCCL_K_ADDENDS(2, 1, 1));
    assert_true(sum[0] == INT32_MIN / 3 && sum[1] == -2);
    uint8_t bytes[2] = {200, 255}, more[2] = {100, 1};
    k->reduce[POLYCCL_UINT8][POLYCCL_SUM](bytes, bytes, more, 2, 0);
    assert_true(bytes[0] == 44 && bytes[1] == 0);
    int64_t wide[1] = {INT64_MIN}, other[1] = {5};
    k->reduce[POLYCCL_INT64][POLYCCL_MIN](wide, other, wide, 1, 0);
    assert_true(wide[0] == INT64_MIN);
    double d[1] = {0.25}, e[1] = {0.75}; /* two contributions, times 2^-2 */
    k->reduce[POLYCCL_FLOAT64][POLYCCL_AVG](d, d, e, 1, PCCL_K_ADDENDS(2, 1, 1));
    assert_true(d[0] == 1.75 / 3);
  }
}

/* What reductions make of special values, bit by bit, in the vector body and at every place of the tail. */
typedef struct special {
  polyccl_redop op;
  float a, b;
  uint32_t want;
} special;

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* The double of the same meaning: a NaN, an infinity, a zero, the largest number. */
static uint64_t doubled(uint32_t bits) {
  uint64_t sign = (uint64_t)(bits >> 31) << 63;
  switch (bits & 0x7fffffffu) {
    case 0x7fc00000: return 0x7ff8000000000000u;
    case 0x7f800000: return sign | 0x7ff0000000000000u;
    case 0x7f7fffff: return sign | 0x7fefffffffffffffu;
    default: return sign;
  }
}

static void special_values_are_as_documented(void **state) {
  (void)state;
  const float quiet = float_of(0xffc12345), signalling = float_of(0x7f800001), large = float_of(0x7f7fffff);
  const special specials[] = {
      {POLYCCL_MAX, 0.0f, -0.0f, 0},
      {POLYCCL_MAX, -0.0f, -0.0f, 0x80000000},
      {POLYCCL_MIN, 0.0f, -0.0f, 0x80000000},
      {POLYCCL_MIN, 0.0f, 0.0f, 0},
      {POLYCCL_MIN, quiet, 1, 0x7fc00000},
      {POLYCCL_MAX, signalling, -1, 0x7fc00000},
      {POLYCCL_MIN, quiet, signalling, 0x7fc00000},
      {POLYCCL_MIN, -INFINITY, large, 0xff800000},
      {POLYCCL_MAX, INFINITY, -large, 0x7f800000},
      {POLYCCL_SUM, quiet, signalling, 0x7fc00000},
      {POLYCCL_SUM, quiet, 1, 0x7fc00000},
      {POLYCCL_SUM, INFINITY, -INFINITY, 0x7fc00000},
      {POLYCCL_SUM, large, large, 0x7f800000},
      {POLYCCL_SUM, 0.0f, -0.0f, 0},
      {POLYCCL_PROD, 0, -INFINITY, 0x7fc00000},
      {POLYCCL_PROD, signalling, 0, 0x7fc00000},
      {POLYCCL_AVG, quiet, 1, 0x7fc00000},
      {POLYCCL_AVG, INFINITY, -INFINITY, 0x7fc00000},
      {POLYCCL_AVG, INFINITY, 1, 0x7f800000},
      {POLYCCL_AVG, large, large, 0x7f7fffff},
      {POLYCCL_AVG, -0.0f, -0.0f, 0x80000000},
  };
  for (int t = 0; pccl_all_kernels[t] != NULL; t++) {
    const pccl_kernels *k = pccl_all_kernels[t];
    for (size_t i = 0; pccl_kernels_usable(k) && i < sizeof specials / sizeof specials[0]; i++) {
      for (size_t at = 0; at < 70; at++) {
        for (int swap = 0; swap < 2; swap++) {
          float a[70], b[70], c[70];
          double wide_a[70], wide_b[70], wide_c[70];
          for (size_t j = 0; j < 70; j++) {
            a[j] = swap ? specials[i].b : specials[i].a;
            b[j] = swap ? specials[i].a : specials[i].b;
            wide_a[j] = (double)a[j] == (double)large ? 0x1.fffffffffffffp1023 : (double)a[j];
            wide_b[j] = (double)b[j] == (double)large ? 0x1.fffffffffffffp1023 : (double)b[j];
          }
          k->reduce[POLYCCL_FLOAT32][specials[i].op](c, a, b, at + 1, PCCL_K_ADDENDS(1, 1, 1));
          k->reduce[POLYCCL_FLOAT64][specials[i].op](wide_c, wide_a, wide_b, at + 1, PCCL_K_ADDENDS(1, 1, 1));
          uint32_t got;
          uint64_t wide_got;
          memcpy(&got, &c[at], sizeof got);
          memcpy(&wide_got, &wide_c[at], sizeof wide_got);
          assert_int_equal(got, specials[i].want);
          assert_true(wide_got == doubled(specials[i].want));
        }
      }
    }
  }
}

/* Long vectors give the bits of the same elements reduced one by one, wherever special values lie: nowhere, in one
 * element, or in many. */
static void long_vectors_agree_with_single_elements(void **state) {
  (void)state;
  enum { COUNT = 4099, SHIFT = 3 };
  static unsigned char a[COUNT * 8], b[COUNT * 8], want[COUNT * 8], got[COUNT * 8 + SHIFT];
  static const uint32_t specials[] = {0x7fc00000, 0xffc12345, 0x7f800001, 0x7f800000, 0xff800000, 0, 0x80000000};
  for (int round = 0; round < 40; round++) {
    polyccl_dtype dtype = round % 2 == 0 ? POLYCCL_FLOAT32 : POLYCCL_FLOAT64;
    size_t e = polyccl_dtype_size(dtype);
    uint64_t seed = pccl_mix64((uint64_t)round), only = pccl_mix64(seed) % COUNT;
    for (size_t i = 0; i < COUNT; i++) {
      uint64_t random = pccl_mix64(seed + i);
      bool is_special = round % 4 < 2 ? i == only && round >= 4 : random % 8 == 0;
      float x = (float)(random >> 40), y = -(float)(random >> 8 & 0xffffff);
      x = is_special ? float_of(specials[random / 8 % 7]) : x;
      y = is_special ? float_of(specials[random / 64 % 7]) : y;
      double wide_x = (double)x, wide_y = (double)y;
      memcpy(a + i * e, e == 4 ? (const void *)&x : (const void *)&wide_x, e);
      memcpy(b + i * e, e == 4 ? (const void *)&y : (const void *)&wide_y, e);
    }
    for (int t = 0; pccl_all_kernels[t] != NULL; t++) {
      const pccl_kernels *k = pccl_all_kernels[t];
      for (int op = 0; pccl_kernels_usable(k) && op < POLYCCL_REDOP_COUNT; op++) {
        for (size_t i = 0; i < COUNT; i++) {
          k->reduce[dtype][op](want + i * e, a + i * e, b + i * e, 1, PCCL_K_ADDENDS(1, 2, 1));
        }
        memcpy(got + SHIFT, round % 3 == 0 ? a : b, COUNT * e); /* either source may be the destination */
        k->reduce[dtype][op](got + SHIFT, round % 3 == 0 ? got + SHIFT : a, round % 3 == 0 ? b : got + SHIFT, COUNT,
                             PCCL_K_ADDENDS(1, 2, 1));
        assert_memory_equal(got + SHIFT, want, COUNT * e);
      }
    }
  }
}

static void stream_copy_copies(void **state) {
  (void)state;
  static unsigned char from[2000], to[2000], want[2000];
  for (int i = 0; i < 2000; i++) {
    from[i] = (unsigned char)pccl_mix64((uint64_t)i);
  }
  for (int t = 0; pccl_all_kernels[t] != NULL; t++) {
    for (size_t n = 0; pccl_kernels_usable(pccl_all_kernels[t]) && n < 700; n++) {
      size_t at = n * 5 % 131, source = n * 3 % 67;
      memset(to, 7, sizeof to);
      memset(want, 7, sizeof want);
      memcpy(want + at, from + source, n);
      pccl_all_kernels[t]->stream_copy(to + at, from + source, n);
      pccl_all_kernels[t]->stream_fence();
      assert_memory_equal(to, want, sizeof to);
    }
  }
}

/* A message in lines arrives whole or not at all, whatever its length, and an older one is never taken for it. */
static void lines_carry_messages(void **state) {
  (void)state;
  _Alignas(128) static char slot[8192];
  static unsigned char from[2000], to[2000];
  for (uint64_t number = 5; number < 1500; number++) {
    size_t bytes = number % 700, at = 0;
    for (size_t i = 0; i < bytes; i++) {
      from[i] = (unsigned char)pccl_mix64(number * 1000 + i);
    }
    assert_true(bytes == 0 || !pccl_ll128_arrived(slot, &at, bytes, number));
    pccl_ll128_write(slot, 0, from, bytes, number);
    at = 0;
    assert_true(pccl_ll128_arrived(slot, &at, bytes, number));
    memset(to, 0, sizeof to);
    pccl_ll128_read(slot, 0, to, bytes);
    assert_memory_equal(to, from, bytes);
    assert_true(bytes + 1 > 699 || to[bytes] == 0);
  }
  memset(slot, 0, sizeof slot);
  for (uint64_t number = 5; number < 1500; number++) {
    size_t bytes = number % 700, at = 0;
    for (size_t i = 0; i < bytes; i++) {
      from[i] = (unsigned char)pccl_mix64(number * 1000 + i);
    }
    assert_true(bytes == 0 || !pccl_ll_arrived(slot, &at, bytes, number));
    pccl_ll_write(slot, 0, from, bytes, number);
    at = 0;
    assert_true(pccl_ll_arrived(slot, &at, bytes, number));
    memset(to, 0, sizeof to);
    pccl_ll_read(slot, 0, to, bytes);
    assert_memory_equal(to, from, bytes);
    assert_int_equal(to[bytes], 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(halves_round_to_nearest_even),
      cmocka_unit_test(tables_agree),
      cmocka_unit_test(numbers_are_as_documented),
      cmocka_unit_test(special_values_are_as_documented),
      cmocka_unit_test(long_vectors_agree_with_single_elements),
      cmocka_unit_test(stream_copy_copies),
      cmocka_unit_test(lines_carry_messages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
