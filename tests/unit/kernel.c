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
  if (isnan(value)) {
    return (uint16_t)(infinity | 1);
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

static double apply(polyccl_redop op, double a, double b) {
  switch (op) {
    case POLYCCL_PROD: return (double)((float)a * (float)b);
    case POLYCCL_MIN: return fmin(a, b);
    case POLYCCL_MAX: return fmax(a, b);
    default: return (double)((float)a + (float)b);
  }
}

static bool same_half(uint16_t a, uint16_t b, double (*value_of)(uint16_t)) {
  return a == b || (isnan(value_of(a)) && isnan(value_of(b)));
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
    k->reduce[dtype][op](c, a, b, 65536);
    for (int i = 0; i < 65536; i++) {
      double want = apply((polyccl_redop)op, value_of(a[i]), value_of(with));
      bool zeros = (op == POLYCCL_MIN || op == POLYCCL_MAX) && value_of(a[i]) == 0 && value_of(with) == 0;
      uint16_t right = nearest(want, value_of, infinity);
      if (!same_half(c[i], right, value_of) && !(zeros && value_of(c[i]) == 0)) {
        fail_msg("%s %s %s of %04x and %04x: %04x, not %04x", k->name, polyccl_dtype_name(dtype),
                 polyccl_redop_name((polyccl_redop)op), a[i], with, c[i], right);
      }
    }
  }
}

static void halves_round_to_nearest_even(void **state) {
  (void)state;
  static const uint16_t others[] = {0x0000, 0x8001, 0x3c01, 0x7bff, 0x7c00, 0x7e00, 0x0400, 0x1403, 0xb555};
  for (int t = 0; pccl_all_kernels[t] != NULL; t++) {
    for (size_t i = 0; pccl_kernels_usable(pccl_all_kernels[t]) && i < sizeof others / sizeof others[0]; i++) {
      check_halves(pccl_all_kernels[t], POLYCCL_FLOAT16, half_value, 0x7c00, others[i]);
      check_halves(pccl_all_kernels[t], POLYCCL_BFLOAT16, bfloat_value, 0x7f80, others[i]);
    }
  }
}

/* The same bits from all tables, for any data, length, alignment, in place or not. */
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
        for (size_t n = 0; n < 150; n += n < 70 ? 1 : 13) {
          size_t shift = n % 7;
          memset(want, 0x11, BYTES);
          memset(got, 0x11, BYTES);
          plain->reduce[dtype][op](want + shift, a + 3, b + 1, n);
          if (n % 2 == 0) {
            k->reduce[dtype][op](got + shift, a + 3, b + 1, n);
          } else { /* in place */
            memcpy(got + shift, a + 3, n * e);
            k->reduce[dtype][op](got + shift, got + shift, b + 1, n);
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
    int32_t big[2] = {INT32_MAX, -7}, one[2] = {1, 2}, sum[2];
    k->reduce[POLYCCL_INT32][POLYCCL_SUM](sum, big, one, 2);
    assert_true(sum[0] == INT32_MIN && sum[1] == -5);
    k->divide[POLYCCL_INT32](big, 2, 3);
    assert_true(big[1] == -2);
    uint8_t bytes[2] = {200, 255}, more[2] = {100, 1};
    k->reduce[POLYCCL_UINT8][POLYCCL_SUM](bytes, bytes, more, 2);
    assert_true(bytes[0] == 44 && bytes[1] == 0);
    int64_t wide[1] = {INT64_MIN}, other[1] = {5};
    k->reduce[POLYCCL_INT64][POLYCCL_MIN](wide, other, wide, 1);
    assert_true(wide[0] == INT64_MIN);
    float x[4] = {NAN, 1, NAN, -2}, y[4] = {3, NAN, NAN, 5}, z[4];
    k->reduce[POLYCCL_FLOAT32][POLYCCL_MIN](z, x, y, 4);
    assert_true(z[0] == 3 && z[1] == 1 && isnan(z[2]) && z[3] == -2);
    k->reduce[POLYCCL_FLOAT32][POLYCCL_MAX](z, x, y, 4);
    assert_true(z[0] == 3 && z[1] == 1 && isnan(z[2]) && z[3] == 5);
    double d[1] = {1};
    k->divide[POLYCCL_FLOAT64](d, 1, 3);
    assert_true(d[0] == 1.0 / 3);
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
      cmocka_unit_test(halves_round_to_nearest_even), cmocka_unit_test(tables_agree),
      cmocka_unit_test(numbers_are_as_documented),    cmocka_unit_test(stream_copy_copies),
      cmocka_unit_test(lines_carry_messages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
