/* The text of one kernel table. Each reduce_*.c defines KERNELS (the table's name) and KERNELS_LABEL, includes this
 * header and is compiled for its instruction set. The compiler vectorises the loops. */
#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernel/float8.h"
#include "kernel/mean.h"
#include "kernel/reduce.h"

#if defined(__x86_64__)
#include "kernel/reduce_x86.h"
#endif

/* Elements are read and written by memcpy, so they may have any alignment and type. */
#define LOAD(type, p, i) load_##type((const char *)(p) + (i) * sizeof(type))
#define DEFINE_ACCESS(type)                        \
  static inline type load_##type(const char *at) { \
    type value;                                    \
    memcpy(&value, at, sizeof value);              \
    return value;                                  \
  }                                                \
  static inline void store_##type(char *at, type value) { memcpy(at, &value, sizeof value); }

DEFINE_ACCESS(float)
DEFINE_ACCESS(double)
DEFINE_ACCESS(int32_t)
DEFINE_ACCESS(int64_t)
DEFINE_ACCESS(int8_t)
DEFINE_ACCESS(uint8_t)
DEFINE_ACCESS(uint16_t)
DEFINE_ACCESS(uint32_t)
DEFINE_ACCESS(uint64_t)

/* bfloat16 is the upper half of a float. The way back rounds to nearest even and makes every NaN the one of results. */
static inline float from_bf16(uint16_t h) {
  uint32_t bits = (uint32_t)h << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}

/* IEEE half is converted by integer arithmetic, and its subnormal numbers by one float addition each way. */
static inline float from_f16(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
  uint32_t shifted = (uint32_t)(h & 0x7fffu) << 13;
  uint32_t exponent = shifted & 0x0f800000u;
  uint32_t normal = shifted + (exponent == 0x0f800000u ? (255u - 31u) << 23 : (127u - 15u) << 23);
  uint32_t raised = shifted + (113u << 23);
  float small, magic = 6.103515625e-05f; /* 2^-14 */
  memcpy(&small, &raised, sizeof small);
  small -= magic;
  uint32_t subnormal;
  memcpy(&subnormal, &small, sizeof subnormal);
  uint32_t bits = sign | (exponent == 0 ? subnormal : normal);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint16_t to_f16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t normal = (magnitude - ((127u - 15u) << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  float small, magic = 0.5f;
  memcpy(&small, &magnitude, sizeof small);
  small += magic; /* the addition rounds at 2^-24, the last place of a half */
  uint32_t subnormal;
  memcpy(&subnormal, &small, sizeof subnormal);
  subnormal -= 0x3f000000u;
  uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result; /* rounds to 65536 or more */
  return (uint16_t)(magnitude > 0x7f800000u ? 0x7e00u : sign | result);
}

/* The bits of a NaN depend on the order of operands and on the instruction. So every NaN becomes one NaN, and ranks
 * that reduce in the same order have the same bits. The choice is made among integers, since a compiler may treat all
 * NaNs as equal. */
static inline float one_nan_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits = value != value ? 0x7fc00000u : bits;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline double one_nan_double(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits = value != value ? 0x7ff8000000000000u : bits;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* min and max order -0 below +0, and a NaN makes a NaN. Equal numbers have equal bits except for zeros, of which
 * bitwise or (min) and bitwise and (max) give the right one. */
#define DEFINE_ORDER(name, type, BITS, COMPARE, JOIN, ONE_NAN_BITS) \
  static inline type name(type a, type b) {                         \
    type first = a COMPARE b ? a : b, second = b COMPARE a ? b : a; \
    BITS x, y;                                                      \
    memcpy(&x, &first, sizeof x);                                   \
    memcpy(&y, &second, sizeof y);                                  \
    x = __builtin_isunordered(a, b) ? ONE_NAN_BITS : x JOIN y;      \
    memcpy(&first, &x, sizeof first);                               \
    return first;                                                   \
  }

DEFINE_ORDER(min_float, float, uint32_t, <, |, 0x7fc00000u)
DEFINE_ORDER(max_float, float, uint32_t, >, &, 0x7fc00000u)
DEFINE_ORDER(min_double, double, uint64_t, <, |, 0x7ff8000000000000u)
DEFINE_ORDER(max_double, double, uint64_t, >, &, 0x7ff8000000000000u)
#define PLAIN_MIN(a, b) ((a) < (b) ? (a) : (b))
#define PLAIN_MAX(a, b) ((a) > (b) ? (a) : (b))
#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define EITHER(a, b) (uint8_t)((unsigned)((a) != 0) | (unsigned)((b) != 0))
#define BOTH(a, b) (uint8_t)((unsigned)((a) != 0) & (unsigned)((b) != 0))
#define SAME(a) (a)

/* A destination may be one of the sources. Loops say that elements do not depend on each other, since the compiler's
 * own test for overlap would then choose the slow loop. */
#if defined(__clang__)
#define ELEMENTWISE _Pragma("clang loop vectorize(assume_safety)")
#else
#define ELEMENTWISE _Pragma("GCC ivdep")
#endif

/* STORED is the element in memory; IN and OUT are the conversions around the operation. */
#define DEFINE_REDUCE(name, STORED, IN, OUT, OPERATION)                                       \
  static void name(void *dst, const void *a, const void *b, size_t n, uint64_t addends) {     \
    (void)addends;                                                                            \
    ELEMENTWISE                                                                               \
    for (size_t i = 0; i < n; i++) {                                                          \
      store_##STORED((char *)dst + i * sizeof(STORED),                                        \
                     (STORED)OUT(OPERATION(IN(LOAD(STORED, a, i)), IN(LOAD(STORED, b, i))))); \
    }                                                                                         \
  }

/* The quotient q of a sum, which only a rounding can carry beyond the type's largest number if the sum is finite. */
#define LIMITED(q, sum, largest, widest) \
  ((sum) <= (widest) && (q) > (largest) ? (largest) : (sum) >= -(widest) && (q) < -(largest) ? -(largest) : (q))

/* The loop of an average. It computes in WIDE; IN_AT and OUT_AT convert from and to a form that is mean.a, mean.b or
 * mean.sum powers of two wider. LAST is the result as an expression of `sum`. */
#define DEFINE_MEAN_LOOP(name, STORED, WIDE, IN_AT, OUT_AT, LAST)                                              \
  static void name(void *dst, const void *a, const void *b, size_t n, pccl_k_mean mean, WIDE left, WIDE right, \
                   WIDE divisor) {                                                                             \
    (void)mean;                                                                                                \
    (void)divisor;                                                                                             \
    ELEMENTWISE                                                                                                \
    for (size_t i = 0; i < n; i++) {                                                                           \
      WIDE sum = IN_AT(LOAD(STORED, a, i), mean.a) * left + IN_AT(LOAD(STORED, b, i), mean.b) * right;         \
      store_##STORED((char *)dst + i * sizeof(STORED), (STORED)OUT_AT(LAST));                                  \
    }                                                                                                          \
  }

/* A division by a power of two is done as a multiplication. SCALED says that partial sums are scaled down, not in a
 * wider form. */
#define DEFINE_MEAN(kind, STORED, WIDE, IN_AT, OUT_AT, OUT, LARGEST, WIDEST, HEADROOM, SCALED)                   \
  DEFINE_MEAN_LOOP(kind##_avg_some, STORED, WIDE, IN_AT, OUT_AT, sum)                                            \
  DEFINE_MEAN_LOOP(kind##_avg_divided, STORED, WIDE, IN_AT, OUT, LIMITED(sum / divisor, sum, LARGEST, WIDEST))   \
  DEFINE_MEAN_LOOP(kind##_avg_multiplied, STORED, WIDE, IN_AT, OUT, LIMITED(sum *divisor, sum, LARGEST, WIDEST)) \
  static void kind##_avg(void *dst, const void *a, const void *b, size_t n, uint64_t addends) {                  \
    pccl_k_mean mean = pccl_k_mean_of(addends, HEADROOM);                                                        \
    WIDE left = (SCALED) ? (WIDE)pccl_k_power_down(mean.sum - mean.a) : 1;                                       \
    WIDE right = (SCALED) ? (WIDE)pccl_k_power_down(mean.sum - mean.b) : 1;                                      \
    WIDE divisor = (WIDE)mean.divisor * ((SCALED) ? (WIDE)pccl_k_power_down(mean.sum) : 1);                      \
    if (mean.divisor == 0) {                                                                                     \
      kind##_avg_some(dst, a, b, n, mean, left, right, 0);                                                       \
    } else if ((mean.divisor & (mean.divisor - 1)) == 0) {                                                       \
      kind##_avg_multiplied(dst, a, b, n, mean, left, right, 1 / divisor);                                       \
    } else {                                                                                                     \
      kind##_avg_divided(dst, a, b, n, mean, left, right, divisor);                                              \
    }                                                                                                            \
  }

/* Sums and products of integers are computed unsigned, so they wrap around. The average divides the wrapped sum. */
#define DEFINE_INTEGER(kind, STORED, UNSIGNED, DIVISOR)                                         \
  DEFINE_REDUCE(kind##_sum, UNSIGNED, SAME, SAME, PLUS)                                         \
  DEFINE_REDUCE(kind##_prod, UNSIGNED, SAME, SAME, TIMES)                                       \
  DEFINE_REDUCE(kind##_min, STORED, SAME, SAME, PLAIN_MIN)                                      \
  DEFINE_REDUCE(kind##_max, STORED, SAME, SAME, PLAIN_MAX)                                      \
  static void kind##_avg(void *dst, const void *a, const void *b, size_t n, uint64_t addends) { \
    uint32_t divisor = pccl_k_mean_of(addends, 0).divisor;                                      \
    if (divisor == 0) {                                                                         \
      kind##_sum(dst, a, b, n, addends);                                                        \
      return;                                                                                   \
    }                                                                                           \
    ELEMENTWISE                                                                                 \
    for (size_t i = 0; i < n; i++) {                                                            \
      STORED sum = (STORED)(UNSIGNED)(LOAD(UNSIGNED, a, i) + LOAD(UNSIGNED, b, i));             \
      store_##STORED((char *)dst + i * sizeof(STORED), (STORED)(sum / (DIVISOR)divisor));       \
    }                                                                                           \
  }

/* Whole vectors by the processor's own instructions where reduce_x86.h has them, the rest by the plain loop. */
#if defined(__x86_64__)
#define DEFINE_REDUCE_FAST(name, type, OUT, OPERATION)                                                      \
  DEFINE_REDUCE(name##_plain, type, SAME, OUT, OPERATION)                                                   \
  static void name(void *dst, const void *a, const void *b, size_t n, uint64_t addends) {                   \
    size_t done = name##_vectors(dst, a, b, n), bytes = done * sizeof(type);                                \
    name##_plain((char *)dst + bytes, (const char *)a + bytes, (const char *)b + bytes, n - done, addends); \
  }
#else
#define DEFINE_REDUCE_FAST(name, type, OUT, OPERATION) DEFINE_REDUCE(name, type, SAME, OUT, OPERATION)
#endif

#define DEFINE_NATIVE(kind, type, ONE_NAN, MIN, MAX)    \
  DEFINE_REDUCE_FAST(kind##_sum, type, ONE_NAN, PLUS)   \
  DEFINE_REDUCE_FAST(kind##_prod, type, ONE_NAN, TIMES) \
  DEFINE_REDUCE_FAST(kind##_min, type, SAME, MIN)       \
  DEFINE_REDUCE_FAST(kind##_max, type, SAME, MAX)

/* Floats that are computed in f32. */
#define DEFINE_SMALL(kind, STORED, IN, OUT)             \
  DEFINE_REDUCE(kind##_sum, STORED, IN, OUT, PLUS)      \
  DEFINE_REDUCE(kind##_prod, STORED, IN, OUT, TIMES)    \
  DEFINE_REDUCE(kind##_min, STORED, IN, OUT, min_float) \
  DEFINE_REDUCE(kind##_max, STORED, IN, OUT, max_float)

DEFINE_NATIVE(f32, float, one_nan_float, min_float, max_float)
DEFINE_NATIVE(f64, double, one_nan_double, min_double, max_double)
DEFINE_SMALL(f16, uint16_t, from_f16, to_f16)
DEFINE_SMALL(bf16, uint16_t, from_bf16, to_bf16)
DEFINE_SMALL(f8e4m3, uint8_t, pccl_k_f8e4m3_value, pccl_k_f8e4m3_code)
DEFINE_SMALL(f8e5m2, uint8_t, pccl_k_f8e5m2_value, pccl_k_f8e5m2_code)

#define SAME_AT(value, wider) (value)
#define BF16_AT(half, wider) from_bf16(half)
#define F16_AT(half, wider) pccl_k_wider_value(half, from_f16(half), wider, PCCL_K_F16)
#define TO_F16_AT(sum) pccl_k_wider_code(sum, to_f16(sum), mean.sum, PCCL_K_F16)
#define F8E4M3_AT(code, wider) pccl_k_wider_value(code, pccl_k_f8e4m3_value(code), wider, PCCL_K_F8E4M3)
#define TO_F8E4M3_AT(sum) pccl_k_wider_code(sum, pccl_k_f8e4m3_code(sum), mean.sum, PCCL_K_F8E4M3)
#define F8E5M2_AT(code, wider) pccl_k_wider_value(code, pccl_k_f8e5m2_value(code), wider, PCCL_K_F8E5M2)
#define TO_F8E5M2_AT(sum) pccl_k_wider_code(sum, pccl_k_f8e5m2_code(sum), mean.sum, PCCL_K_F8E5M2)
#define BF16_LARGEST 0x1.fep127f
DEFINE_MEAN(f32, float, float, SAME_AT, one_nan_float, one_nan_float, FLT_MAX, FLT_MAX, 1, true)
DEFINE_MEAN(f64, double, double, SAME_AT, one_nan_double, one_nan_double, DBL_MAX, DBL_MAX, 1, true)
DEFINE_MEAN(bf16, uint16_t, float, BF16_AT, to_bf16, to_bf16, BF16_LARGEST, FLT_MAX, 1, true)
DEFINE_MEAN(f16, uint16_t, float, F16_AT, TO_F16_AT, to_f16, 65504.0f, FLT_MAX, 0, false)
DEFINE_MEAN(f8e4m3, uint8_t, float, F8E4M3_AT, TO_F8E4M3_AT, pccl_k_f8e4m3_code, 448.0f, FLT_MAX, 1, false)
DEFINE_MEAN(f8e5m2, uint8_t, float, F8E5M2_AT, TO_F8E5M2_AT, pccl_k_f8e5m2_code, 57344.0f, FLT_MAX, 1, false)

DEFINE_INTEGER(i32, int32_t, uint32_t, int32_t)
DEFINE_INTEGER(i64, int64_t, uint64_t, int64_t)
DEFINE_INTEGER(u8, uint8_t, uint8_t, int32_t)
DEFINE_INTEGER(u32, uint32_t, uint32_t, uint32_t)
DEFINE_INTEGER(u64, uint64_t, uint64_t, uint64_t)
DEFINE_INTEGER(i8, int8_t, uint8_t, int32_t)
DEFINE_REDUCE(bool_or, uint8_t, SAME, SAME, EITHER)
DEFINE_REDUCE(bool_and, uint8_t, SAME, SAME, BOTH)

#if defined(__x86_64__)
/* Whole cache lines bypass the cache. A head and a tail that share lines with other data do not. */
static void stream_copy(void *dst, const void *src, size_t bytes) {
  char *to = dst;
  const char *from = src;
  size_t head = (size_t)(-(uintptr_t)to & 63u);
  if (bytes < head + 64) {
    memcpy(to, from, bytes);
    return;
  }
  memcpy(to, from, head);
  to += head, from += head, bytes -= head;
  for (; bytes >= 64; bytes -= 64, to += 64, from += 64) {
#if defined(__AVX512F__)
    _mm512_stream_si512((void *)to, _mm512_loadu_si512(from));
#elif defined(__AVX__)
    __m256i low = _mm256_loadu_si256((const __m256i *)from), high = _mm256_loadu_si256((const __m256i *)(from + 32));
    _mm256_stream_si256((__m256i *)to, low);
    _mm256_stream_si256((__m256i *)(to + 32), high);
#else
    for (int i = 0; i < 64; i += 16) {
      _mm_stream_si128((__m128i *)(to + i), _mm_loadu_si128((const __m128i *)(from + i)));
    }
#endif
  }
  memcpy(to, from, bytes);
}
static void stream_fence(void) { _mm_sfence(); }
#else
static void stream_copy(void *dst, const void *src, size_t bytes) { memcpy(dst, src, bytes); }
static void stream_fence(void) {}
#endif

#define ROW(kind)                                                                                                     \
  {                                                                                                                   \
    [POLYCCL_SUM] = kind##_sum, [POLYCCL_PROD] = kind##_prod, [POLYCCL_MIN] = kind##_min, [POLYCCL_MAX] = kind##_max, \
    [POLYCCL_AVG] = kind##_avg                                                                                        \
  }

const pccl_kernels KERNELS = {
    .name = KERNELS_LABEL,
    .reduce =
        {[POLYCCL_FLOAT32] = ROW(f32),
         [POLYCCL_FLOAT64] = ROW(f64),
         [POLYCCL_INT32] = ROW(i32),
         [POLYCCL_INT64] = ROW(i64),
         [POLYCCL_UINT8] = ROW(u8),
         [POLYCCL_FLOAT16] = ROW(f16),
         [POLYCCL_BFLOAT16] = ROW(bf16),
         [POLYCCL_UINT32] = ROW(u32),
         [POLYCCL_UINT64] = ROW(u64),
         [POLYCCL_INT8] = ROW(i8),
         [POLYCCL_BOOL] =
             {[POLYCCL_SUM] = bool_or, [POLYCCL_PROD] = bool_and, [POLYCCL_MIN] = bool_and, [POLYCCL_MAX] = bool_or},
         [POLYCCL_FLOAT8E4M3] = ROW(f8e4m3),
         [POLYCCL_FLOAT8E5M2] = ROW(f8e5m2)},
    .stream_copy = stream_copy,
    .stream_fence = stream_fence,
};
