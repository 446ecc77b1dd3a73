/* Loops for f32 and f64 in x86's vectors; reduce_body.h includes them. They give the bits of its plain loops, for which
 * compilers make longer code: one min or max instruction replaces several comparisons, and one comparison finds a NaN
 * in two vectors.
 *
 * KIND_OP_vectors(dst, a, b, n) reduces whole vectors and returns the number of elements that it reduced, n or a few
 * less. */
#ifndef PCCL_KERNEL_REDUCE_X86_H
#define PCCL_KERNEL_REDUCE_X86_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/* VEC_SELECT_NAN gives `nan` where x or y is a NaN, else r. VEC_MARK collects whether an element of x or y is a NaN,
 * and VEC_MARKED tests it. */
#if defined(__AVX512F__)
#define VEC(op) _mm512_##op
#define VEC_ps __m512
#define VEC_pd __m512d
#define VEC_SET1_BITS_ps(bits) _mm512_castsi512_ps(_mm512_set1_epi32((int)(bits)))
#define VEC_SET1_BITS_pd(bits) _mm512_castsi512_pd(_mm512_set1_epi64((long long)(bits)))
#define VEC_SELECT_NAN(suffix, r, x, y, nan) \
  _mm512_mask_mov_##suffix(r, _mm512_cmp_##suffix##_mask(x, y, _CMP_UNORD_Q), nan)
#define VEC_MARKS(suffix) uint32_t
#define VEC_NO_MARKS(suffix) 0
#define VEC_MARK(suffix, marks, x, y) ((marks) | (uint32_t)_mm512_cmp_##suffix##_mask(x, y, _CMP_UNORD_Q))
#define VEC_MARKED(suffix, marks) ((marks) != 0)
#elif defined(__AVX__)
#define VEC(op) _mm256_##op
#define VEC_ps __m256
#define VEC_pd __m256d
#define VEC_SET1_BITS_ps(bits) _mm256_castsi256_ps(_mm256_set1_epi32((int)(bits)))
#define VEC_SET1_BITS_pd(bits) _mm256_castsi256_pd(_mm256_set1_epi64x((long long)(bits)))
#define VEC_SELECT_NAN(suffix, r, x, y, nan) _mm256_blendv_##suffix(r, nan, _mm256_cmp_##suffix(x, y, _CMP_UNORD_Q))
#define VEC_MARKS(suffix) VEC_##suffix
#define VEC_NO_MARKS(suffix) _mm256_setzero_##suffix()
#define VEC_MARK(suffix, marks, x, y) _mm256_or_##suffix(marks, _mm256_cmp_##suffix(x, y, _CMP_UNORD_Q))
#define VEC_MARKED(suffix, marks) (_mm256_movemask_##suffix(marks) != 0)
#else
#define VEC(op) _mm_##op
#define VEC_ps __m128
#define VEC_pd __m128d
#define VEC_SET1_BITS_ps(bits) _mm_castsi128_ps(_mm_set1_epi32((int)(bits)))
#define VEC_SET1_BITS_pd(bits) _mm_castsi128_pd(_mm_set1_epi64x((long long)(bits)))
#define VEC_SELECT_NAN(suffix, r, x, y, nan)                          \
  _mm_or_##suffix(_mm_and_##suffix(_mm_cmpunord_##suffix(x, y), nan), \
                  _mm_andnot_##suffix(_mm_cmpunord_##suffix(x, y), r))
#define VEC_MARKS(suffix) VEC_##suffix
#define VEC_NO_MARKS(suffix) _mm_setzero_##suffix()
#define VEC_MARK(suffix, marks, x, y) _mm_or_##suffix(marks, _mm_cmpunord_##suffix(x, y))
#define VEC_MARKED(suffix, marks) (_mm_movemask_##suffix(marks) != 0)
#endif
/* Bytes of results between two tests of the marks; they are still in L1 for the second pass. */
enum { VEC_BLOCK = 4096 };

/* Offsets are bytes. */
#define VEC_AT(suffix, from, i) VEC(loadu_##suffix)((const void *)((const char *)(from) + (i)))
#define VEC_PUT(suffix, to, i, value) VEC(storeu_##suffix)((void *)((char *)(to) + (i)), value)
enum { VEC_BYTES = sizeof(VEC_ps), VEC_PAIR = 2 * VEC_BYTES };

/* A NaN among results is rare. So a block's results are stored as the processor gives them, and a second pass replaces
 * each NaN by the one NaN only if the block has any. */
#define PCCL_X86_CHECKED(name, op, suffix, type, nan_bits)                                                       \
  static size_t name(void *dst, const void *a, const void *b, size_t n) {                                        \
    const VEC_##suffix nan = VEC_SET1_BITS_##suffix(nan_bits);                                                   \
    size_t bytes = n * sizeof(type), i = 0;                                                                      \
    while (bytes - i >= VEC_PAIR) {                                                                              \
      size_t start = i, end = bytes - i < VEC_BLOCK ? bytes : i + VEC_BLOCK;                                     \
      VEC_MARKS(suffix) marks = VEC_NO_MARKS(suffix);                                                            \
      for (; end - i >= VEC_PAIR; i += VEC_PAIR) {                                                               \
        VEC_##suffix x = VEC(op##_##suffix)(VEC_AT(suffix, a, i), VEC_AT(suffix, b, i));                         \
        VEC_##suffix y = VEC(op##_##suffix)(VEC_AT(suffix, a, i + VEC_BYTES), VEC_AT(suffix, b, i + VEC_BYTES)); \
        VEC_PUT(suffix, dst, i, x);                                                                              \
        VEC_PUT(suffix, dst, i + VEC_BYTES, y);                                                                  \
        marks = VEC_MARK(suffix, marks, x, y);                                                                   \
      }                                                                                                          \
      for (size_t k = start; VEC_MARKED(suffix, marks) && k < i; k += VEC_BYTES) {                               \
        VEC_##suffix x = VEC_AT(suffix, dst, k);                                                                 \
        VEC_PUT(suffix, dst, k, VEC_SELECT_NAN(suffix, x, x, x, nan));                                           \
      }                                                                                                          \
    }                                                                                                            \
    return i / sizeof(type);                                                                                     \
  }

/* The processor's min and max give the second operand where both are zeros. JOIN of both orders gives the right zero:
 * -0 | 0 for min, -0 & 0 for max. Other equal numbers have equal bits. */
#define PCCL_X86_ORDER(name, op, JOIN, suffix, type, nan_bits)                                   \
  static size_t name(void *dst, const void *a, const void *b, size_t n) {                        \
    const VEC_##suffix nan = VEC_SET1_BITS_##suffix(nan_bits);                                   \
    size_t bytes = n * sizeof(type), i = 0;                                                      \
    for (; bytes - i >= VEC_BYTES; i += VEC_BYTES) {                                             \
      VEC_##suffix x = VEC_AT(suffix, a, i), y = VEC_AT(suffix, b, i);                           \
      VEC_##suffix r = VEC(JOIN##_##suffix)(VEC(op##_##suffix)(x, y), VEC(op##_##suffix)(y, x)); \
      VEC_PUT(suffix, dst, i, VEC_SELECT_NAN(suffix, r, x, y, nan));                             \
    }                                                                                            \
    return i / sizeof(type);                                                                     \
  }

#define PCCL_X86_LOOPS(kind, suffix, type, nan_bits)                  \
  PCCL_X86_CHECKED(kind##_sum_vectors, add, suffix, type, nan_bits)   \
  PCCL_X86_CHECKED(kind##_prod_vectors, mul, suffix, type, nan_bits)  \
  PCCL_X86_ORDER(kind##_min_vectors, min, or, suffix, type, nan_bits) \
  PCCL_X86_ORDER(kind##_max_vectors, max, and, suffix, type, nan_bits)

PCCL_X86_LOOPS(f32, ps, float, 0x7fc00000u)
PCCL_X86_LOOPS(f64, pd, double, 0x7ff8000000000000u)

#endif
