/* Reductions by all threads of a block, for the GPU form of generated kernels. Numbers of types and reductions are
 * those of polyccl/types.h; 16-bit floats are reduced in 32 bits and rounded to nearest even; min and max of floats
 * drop NaN. */
#ifndef PCCL_KERNEL_ELEMENTS_H
#define PCCL_KERNEL_ELEMENTS_H

struct pccl_k_f16 {
  uint16_t bits;
};
struct pccl_k_bf16 {
  uint16_t bits;
};

template <class T>
struct pccl_k_wide {
  typedef T type;
  static PCCL_FN T widen(T x) { return x; }
  static PCCL_FN T narrow(T x) { return x; }
};

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

template <>
struct pccl_k_wide<pccl_k_bf16> {
  typedef float type;
  static PCCL_FN float widen(pccl_k_bf16 x) { return pccl_k_float_of((uint32_t)x.bits << 16); }
  static PCCL_FN pccl_k_bf16 narrow(float f) {
    uint32_t bits = pccl_k_bits_of(f);
    pccl_k_bf16 result;
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
      result.bits = (uint16_t)(bits >> 16 | 0x40);
    } else {
      result.bits = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
    return result;
  }
};

template <>
struct pccl_k_wide<pccl_k_f16> {
  typedef float type;
  static PCCL_FN float widen(pccl_k_f16 x) {
    uint32_t sign = (uint32_t)(x.bits & 0x8000) << 16, exponent = x.bits >> 10 & 31, mantissa = x.bits & 1023;
    if (exponent == 31) {
      return pccl_k_float_of(sign | 0x7f800000u | mantissa << 13);
    }
    if (exponent == 0) { /* subnormal: mantissa times 2^-24 */
      float f = (float)mantissa * pccl_k_float_of(0x33800000u);
      return sign != 0 ? -f : f;
    }
    return pccl_k_float_of(sign | (exponent + 112) << 23 | mantissa << 13);
  }
  static PCCL_FN pccl_k_f16 narrow(float f) {
    uint32_t bits = pccl_k_bits_of(f), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffffu;
    pccl_k_f16 result;
    if (rest > 0x7f800000u) {
      result.bits = (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x3ff));
    } else if (rest >= 0x477ff000u) { /* rounds beyond the largest */
      result.bits = (uint16_t)(sign | 0x7c00);
    } else if (rest < 0x38800000u) { /* subnormal or zero: add a power whose last bit is 2^-24, take the sum's bits */
      result.bits =
          (uint16_t)(sign | (pccl_k_bits_of(pccl_k_float_of(rest) + pccl_k_float_of(0x3f000000u)) - 0x3f000000u));
    } else {
      result.bits = (uint16_t)(sign | ((rest + 0xfff + (rest >> 13 & 1) - 0x38000000u) >> 13));
    }
    return result;
  }
};

/* fmin and fmax: of a number and a NaN the number. */
template <class T>
PCCL_FN T pccl_k_apply(int op, T a, T b) {
  switch (op) {
    case 1: return (T)(a * b);
    case 2: return b != b ? a : a != a ? b : a < b ? a : b;
    case 3: return b != b ? a : a != a ? b : a > b ? a : b;
    default: return (T)(a + b);
  }
}

template <class T>
PCCL_FN void pccl_k_reduce_as(int op, T *dst, const T *a, const T *b, size_t n, size_t first, size_t step) {
  typedef pccl_k_wide<T> wide;
  for (size_t i = first; i < n; i += step) {
    dst[i] = wide::narrow(pccl_k_apply<typename wide::type>(op, wide::widen(a[i]), wide::widen(b[i])));
  }
}

/* dst[i] = a[i] + b[i] for i = first, first + step, ... below n. Out of line: every step calls it. */
static __device__ __noinline__ void pccl_k_reduce_some(const pccl_k_call *c, void *dst, const void *a, const void *b,
                                                       size_t n, size_t first, size_t step) {
  int op = (int)c->redop;
  switch (c->dtype) {
    case 0: pccl_k_reduce_as(op, (float *)dst, (const float *)a, (const float *)b, n, first, step); break;
    case 1: pccl_k_reduce_as(op, (double *)dst, (const double *)a, (const double *)b, n, first, step); break;
    /* Signed sums wrap: computed unsigned, but min and max compare signed. */
    case 2:
      if (op == 2 || op == 3) {
        pccl_k_reduce_as(op, (int32_t *)dst, (const int32_t *)a, (const int32_t *)b, n, first, step);
      } else {
        pccl_k_reduce_as(op, (uint32_t *)dst, (const uint32_t *)a, (const uint32_t *)b, n, first, step);
      }
      break;
    case 3:
      if (op == 2 || op == 3) {
        pccl_k_reduce_as(op, (int64_t *)dst, (const int64_t *)a, (const int64_t *)b, n, first, step);
      } else {
        pccl_k_reduce_as(op, (uint64_t *)dst, (const uint64_t *)a, (const uint64_t *)b, n, first, step);
      }
      break;
    case 4: pccl_k_reduce_as(op, (uint8_t *)dst, (const uint8_t *)a, (const uint8_t *)b, n, first, step); break;
    case 5:
      pccl_k_reduce_as(op, (pccl_k_f16 *)dst, (const pccl_k_f16 *)a, (const pccl_k_f16 *)b, n, first, step);
      break;
    default:
      pccl_k_reduce_as(op, (pccl_k_bf16 *)dst, (const pccl_k_bf16 *)a, (const pccl_k_bf16 *)b, n, first, step);
      break;
  }
}

PCCL_FN void pccl_k_reduce(const pccl_k_call *c, char *dst, const char *a, const char *b, size_t n) {
  pccl_k_reduce_some(c, dst, a, b, n, pccl_k_thread(), pccl_k_threads());
}

/* By one thread, on up to 8 bytes of registers. */
PCCL_FN void pccl_k_reduce_unit(const pccl_k_call *c, void *dst, const void *a, const void *b, size_t n) {
  pccl_k_reduce_some(c, dst, a, b, n, 0, 1);
}

#endif
