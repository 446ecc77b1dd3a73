/* Averages: how a step adds two partial averages, and how the last step divides. The kernels of the CPU and generated
 * code share this header, which is self-contained as device.h is.
 *
 * A reduction step of an average knows how many contributions each of its operands holds (plan/contributions.h). An
 * operand that holds one contribution is the user's element itself. An operand that holds k > 1 contributions is a
 * partial average in the bits of its type, in a form that cannot overflow. The step that adds the last contribution
 * divides and stores the average itself.
 *
 * - f32, f64 and bf16: the form is the sum times 2^-(ceil(log2 k) + 1). It never exceeds half of the largest
 *   contribution, so roundings cannot carry it past the largest number. The scaling is exact except for subnormal
 *   numbers.
 * - f16: the form is the sum itself in a wider form of f16. From 2^(16 - ceil(log2 k)) up, its significand has 10 bits
 *   instead of 11, so the same codes reach 2^(16 + ceil(log2 k)). Subnormal numbers, which f16 gradients have, lose
 *   nothing.
 * - integers: the form is the sum, which wraps around.
 *
 * docs/executor.md states the error. */
#ifndef PCCL_KERNEL_MEAN_H
#define PCCL_KERNEL_MEAN_H

#include "kernel/device.h"

PCCL_FN float pccl_k_float_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

PCCL_FN uint32_t pccl_k_bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

/* The contributions of a step's operands in one word: those of a in the low 31 bits, those of b in the next 31. The top
 * bit says that the result holds all contributions. */
#define PCCL_K_ADDENDS(a, b, last) ((uint64_t)(a) | (uint64_t)(b) << 31 | (uint64_t)(last) << 63)

/* The binary exponents by which the operands and the sum are scaled down; for f16, by which their form is wider. */
typedef struct pccl_k_mean {
  int a, b, sum;
  uint32_t divisor; /* the number of contributions if the result holds all, else 0 */
} pccl_k_mean;

PCCL_FN int pccl_k_log2_up(uint32_t value) {
  int log2 = 0;
  while (log2 < 31 && ((uint32_t)1 << log2) < value) {
    log2++;
  }
  return log2;
}

/* `headroom` is 1 for scaled sums and 0 for f16. */
PCCL_FN pccl_k_mean pccl_k_mean_of(uint64_t addends, int headroom) {
  uint32_t a = (uint32_t)addends & 0x7fffffffu, b = (uint32_t)(addends >> 31) & 0x7fffffffu;
  pccl_k_mean mean;
  mean.a = a > 1 ? pccl_k_log2_up(a) + headroom : 0;
  mean.b = b > 1 ? pccl_k_log2_up(b) + headroom : 0;
  mean.sum = pccl_k_log2_up(a + b) + headroom;
  mean.divisor = addends >> 63 != 0 ? a + b : 0;
  return mean;
}

/* 2^-exponent, for exponents up to 126. */
PCCL_FN float pccl_k_power_down(int exponent) { return pccl_k_float_of((uint32_t)(127 - exponent) << 23); }

/* The value of the f16 code `half` in the form that is `wider` powers of two wider; `plain` is its value as an f16. */
PCCL_FN float pccl_k_f16_widen(uint32_t half, float plain, int wider) {
  uint32_t code = half & 0x7fffu, first = (uint32_t)(31 - wider) << 10;
  uint32_t bits = (half & 0x8000u) << 16 | (((code - first) << 14) + ((uint32_t)(143 - wider) << 23));
  return code >= first && code < 0x7c00u ? pccl_k_float_of(bits) : plain;
}

/* The code of `value` in the wider form, rounded to nearest even; `plain` is its code as an f16. Only roundings lead to
 * a finite value beyond the form's largest, and such a value becomes the largest. */
PCCL_FN uint32_t pccl_k_f16_narrow(float value, uint32_t plain, int wider) {
  uint32_t bits = pccl_k_bits_of(value), magnitude = bits & 0x7fffffffu, threshold = (uint32_t)(143 - wider) << 23;
  uint32_t code = ((magnitude - threshold + 0x1fffu + (magnitude >> 14 & 1u)) >> 14) + ((uint32_t)(31 - wider) << 10);
  code = code < 0x7bffu ? code : 0x7bffu;
  return magnitude >= threshold && magnitude < 0x7f800000u ? (bits >> 16 & 0x8000u) | code : plain;
}

#endif
