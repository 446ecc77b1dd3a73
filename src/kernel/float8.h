/* The 8-bit floats of OCP's specification (OFP8): their values as f32, and the way back, rounded to nearest even.
 *
 * - e4m3: 4 bits of exponent, 3 of significand, no infinities; 0x7f and 0xff are NaNs, and 448 is the largest number.
 *   What rounds to more becomes a NaN, as an infinity does: OFP8's non-saturating mode, which PyTorch's casts to
 *   float8_e4m3fn have, too. Saturation would hide that a sum is lost.
 * - e5m2: the upper byte of an f16, with its infinities and NaNs.
 *
 * Every NaN becomes 0x7f or 0x7e, without sign. The kernels of the CPU and generated code share this header, which is
 * self-contained as device.h is. There are no branches, so loops become vectors. */
#ifndef PCCL_KERNEL_FLOAT8_H
#define PCCL_KERNEL_FLOAT8_H

#include "kernel/mean.h"

/* Subnormal numbers are converted by one float addition each way, which rounds at the type's last place: 2^-6 and 2^14
 * for e4m3, 2^-14 and 2^7 for e5m2. */
PCCL_FN float pccl_k_f8e4m3_value(uint32_t code) {
  uint32_t magnitude = (code & 0x7fu) << 20;
  float small = pccl_k_float_of(magnitude + (121u << 23)) - pccl_k_float_of(0x3c800000u);
  uint32_t bits = magnitude < (1u << 23) ? pccl_k_bits_of(small) : magnitude + (120u << 23);
  bits = magnitude == (0x7fu << 20) ? 0x7fc00000u : bits;
  return pccl_k_float_of((code & 0x80u) << 24 | bits);
}

PCCL_FN uint32_t pccl_k_f8e4m3_code(float value) {
  uint32_t bits = pccl_k_bits_of(value), magnitude = bits & 0x7fffffffu;
  uint32_t normal = (magnitude - (120u << 23) + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20;
  uint32_t subnormal = pccl_k_bits_of(pccl_k_float_of(magnitude) + pccl_k_float_of(0x46800000u)) - 0x46800000u;
  uint32_t code = magnitude < 0x3c800000u ? subnormal : normal;
  return magnitude > 0x43e80000u ? 0x7fu : (bits >> 24 & 0x80u) | code; /* beyond 464, which is a tie with 480 */
}

PCCL_FN float pccl_k_f8e5m2_value(uint32_t code) {
  uint32_t magnitude = (code & 0x7fu) << 21;
  float small = pccl_k_float_of(magnitude + (113u << 23)) - pccl_k_float_of(0x38800000u);
  uint32_t normal = magnitude + (magnitude < (31u << 23) ? 112u << 23 : 224u << 23);
  uint32_t bits = magnitude < (1u << 23) ? pccl_k_bits_of(small) : normal;
  return pccl_k_float_of((code & 0x80u) << 24 | bits);
}

PCCL_FN uint32_t pccl_k_f8e5m2_code(float value) {
  uint32_t bits = pccl_k_bits_of(value), magnitude = bits & 0x7fffffffu;
  uint32_t normal = (magnitude - (112u << 23) + 0xfffffu + (magnitude >> 21 & 1u)) >> 21;
  uint32_t subnormal = pccl_k_bits_of(pccl_k_float_of(magnitude) + pccl_k_float_of(0x43000000u)) - 0x43000000u;
  uint32_t code = magnitude < 0x38800000u ? subnormal : normal;
  code = magnitude >= 0x47700000u ? 0x7cu : code; /* rounds to 65536 or more */
  return magnitude > 0x7f800000u ? 0x7eu : (bits >> 24 & 0x80u) | code;
}

#endif
