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
 * - f16 and the 8-bit floats: the form is the sum itself in a wider form of the type. Of f16, the significand has 10
 *   bits instead of 11 from 2^(16 - w) up, where w is ceil(log2 k), so the same codes reach 2^(16 + w). Subnormal
 *   numbers, which gradients have, lose nothing. The 8-bit floats have few codes in the last power of two, so their
 *   w is ceil(log2 k) + 1; e4m3 reaches from 2^(9 - w) to 2^(9 + w), e5m2 what f16 does.
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

/* The binary exponents by which the operands and the sum are scaled down, or by which their form is wider. */
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

/* `headroom` is what a type's exponents have beyond ceil(log2 k): 0 for f16, else 1. */
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

/* The formats with a wider form: bits of an element and of its significand after the leading one, codes of exponents
 * of finite numbers, and the largest finite code. The arguments are constants, which fold away. */
#define PCCL_K_F16 16, 10, 31, 0x7bffu
#define PCCL_K_F8E4M3 8, 3, 16, 0x7eu
#define PCCL_K_F8E5M2 8, 2, 31, 0x7bu

/* The first number with the shorter significand, as bits of f32. The form cannot be wider than the codes of exponents
 * allow; e4m3 comes to that with more than 2^14 contributions. */
PCCL_FN uint32_t pccl_k_wider_start(int exponents, int *wider) {
  *wider = *wider < exponents - 1 ? *wider : exponents - 1;
  return (uint32_t)(128 + exponents / 2 - *wider) << 23;
}

/* The value of `code` in the form that is `wider` powers of two wider; `plain` is its value in the type. */
PCCL_FN float pccl_k_wider_value(uint32_t code, float plain, int wider, int bits, int fraction, int exponents,
                                 uint32_t largest) {
  uint32_t start = pccl_k_wider_start(exponents, &wider), first = (uint32_t)(exponents - wider) << fraction;
  uint32_t sign = code >> (bits - 1), magnitude = code - (sign << (bits - 1));
  uint32_t value = sign << 31 | (((magnitude - first) << (24 - fraction)) + start);
  return magnitude >= first && magnitude <= largest ? pccl_k_float_of(value) : plain;
}

/* The code of `value` in the wider form, rounded to nearest even; `plain` is its code in the type. Only roundings lead
 * to a finite value beyond the form's largest, and such a value becomes the largest. */
PCCL_FN uint32_t pccl_k_wider_code(float value, uint32_t plain, int wider, int bits, int fraction, int exponents,
                                   uint32_t largest) {
  uint32_t start = pccl_k_wider_start(exponents, &wider), first = (uint32_t)(exponents - wider) << fraction;
  uint32_t magnitude = pccl_k_bits_of(value) & 0x7fffffffu, sign = pccl_k_bits_of(value) >> 31;
  int shift = 24 - fraction;
  uint32_t code = ((magnitude - start + (1u << (shift - 1)) - 1u + (magnitude >> shift & 1u)) >> shift) + first;
  code = code < largest ? code : largest;
  return magnitude >= start && magnitude < 0x7f800000u ? sign << (bits - 1) | code : plain;
}

#endif
