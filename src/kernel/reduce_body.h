/* The text of one kernel table. Included by reduce_*.c, each compiled for its instruction set, with KERNELS (the
 * table's name) and KERNELS_LABEL defined. Loops are plain C for the compiler to vectorise. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernel/reduce.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Elements through memcpy: any alignment, no aliasing surprise. */
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
DEFINE_ACCESS(uint8_t)
DEFINE_ACCESS(uint16_t)
DEFINE_ACCESS(uint32_t)
DEFINE_ACCESS(uint64_t)

/* bfloat16 is the upper half of a float; back with round to nearest even, NaN kept a NaN. */
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
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}

/* IEEE half by integer arithmetic; subnormals by one float addition each way. */
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
  small += magic; /* the addition rounds at 2^-24, the half's last place */
  uint32_t subnormal;
  memcpy(&subnormal, &small, sizeof subnormal);
  subnormal -= 0x3f000000u;
  uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result; /* rounds to 65536 or more */
  result = magnitude > 0x7f800000u ? 0x7e00u : result;
  return (uint16_t)(sign | result);
}

/* min and max as fmin and fmax: a NaN loses against a number. */
static inline float min_float(float a, float b) { return a < b || b != b ? a : b; }
static inline float max_float(float a, float b) { return a > b || b != b ? a : b; }
static inline double min_double(double a, double b) { return a < b || b != b ? a : b; }
static inline double max_double(double a, double b) { return a > b || b != b ? a : b; }
#define PLAIN_MIN(a, b) ((a) < (b) ? (a) : (b))
#define PLAIN_MAX(a, b) ((a) > (b) ? (a) : (b))
#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define SAME(a) (a)

/* A destination may be a source, element for element; said so, since the compiler's own overlap test would take the
 * slow loop. */
#if defined(__clang__)
#define ELEMENTWISE _Pragma("clang loop vectorize(assume_safety)")
#else
#define ELEMENTWISE _Pragma("GCC ivdep")
#endif

/* STORED: the element in memory; IN, OUT: conversions around the operation. */
#define DEFINE_REDUCE(name, STORED, IN, OUT, OPERATION)                                       \
  static void name(void *dst, const void *a, const void *b, size_t n) {                       \
    ELEMENTWISE                                                                               \
    for (size_t i = 0; i < n; i++) {                                                          \
      store_##STORED((char *)dst + i * sizeof(STORED),                                        \
                     (STORED)OUT(OPERATION(IN(LOAD(STORED, a, i)), IN(LOAD(STORED, b, i))))); \
    }                                                                                         \
  }

#define DEFINE_FLOATING(kind, STORED, IN, OUT, MIN, MAX)                     \
  DEFINE_REDUCE(kind##_sum, STORED, IN, OUT, PLUS)                           \
  DEFINE_REDUCE(kind##_prod, STORED, IN, OUT, TIMES)                         \
  DEFINE_REDUCE(kind##_min, STORED, IN, OUT, MIN)                            \
  DEFINE_REDUCE(kind##_max, STORED, IN, OUT, MAX)                            \
  static void kind##_divide(void *dst, size_t n, int ranks) {                \
    ELEMENTWISE                                                              \
    for (size_t i = 0; i < n; i++) {                                         \
      char *at = (char *)dst + i * sizeof(STORED);                           \
      store_##STORED(at, (STORED)OUT(IN(load_##STORED(at)) / (float)ranks)); \
    }                                                                        \
  }

/* Sums and products of integers wrap around, computed unsigned. */
#define DEFINE_INTEGER(kind, STORED, UNSIGNED)                 \
  DEFINE_REDUCE(kind##_sum, UNSIGNED, SAME, SAME, PLUS)        \
  DEFINE_REDUCE(kind##_prod, UNSIGNED, SAME, SAME, TIMES)      \
  DEFINE_REDUCE(kind##_min, STORED, SAME, SAME, PLAIN_MIN)     \
  DEFINE_REDUCE(kind##_max, STORED, SAME, SAME, PLAIN_MAX)     \
  static void kind##_divide(void *dst, size_t n, int ranks) {  \
    ELEMENTWISE                                                \
    for (size_t i = 0; i < n; i++) {                           \
      char *at = (char *)dst + i * sizeof(STORED);             \
      store_##STORED(at, (STORED)(load_##STORED(at) / ranks)); \
    }                                                          \
  }

DEFINE_FLOATING(f32, float, SAME, SAME, min_float, max_float)
DEFINE_FLOATING(f64, double, SAME, SAME, min_double, max_double)
DEFINE_FLOATING(f16, uint16_t, from_f16, to_f16, min_float, max_float)
DEFINE_FLOATING(bf16, uint16_t, from_bf16, to_bf16, min_float, max_float)
DEFINE_INTEGER(i32, int32_t, uint32_t)
DEFINE_INTEGER(i64, int64_t, uint64_t)
DEFINE_INTEGER(u8, uint8_t, uint8_t)

#if defined(__x86_64__)
/* Whole cache lines go past the cache; a head and a tail that share lines with others do not. */
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
    [POLYCCL_AVG] = kind##_sum                                                                                        \
  }

const pccl_kernels KERNELS = {
    .name = KERNELS_LABEL,
    .reduce = {[POLYCCL_FLOAT32] = ROW(f32),
               [POLYCCL_FLOAT64] = ROW(f64),
               [POLYCCL_INT32] = ROW(i32),
               [POLYCCL_INT64] = ROW(i64),
               [POLYCCL_UINT8] = ROW(u8),
               [POLYCCL_FLOAT16] = ROW(f16),
               [POLYCCL_BFLOAT16] = ROW(bf16)},
    .divide = {[POLYCCL_FLOAT32] = f32_divide,
               [POLYCCL_FLOAT64] = f64_divide,
               [POLYCCL_INT32] = i32_divide,
               [POLYCCL_INT64] = i64_divide,
               [POLYCCL_UINT8] = u8_divide,
               [POLYCCL_FLOAT16] = f16_divide,
               [POLYCCL_BFLOAT16] = bf16_divide},
    .stream_copy = stream_copy,
    .stream_fence = stream_fence,
};
