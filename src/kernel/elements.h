/* Reductions by all threads of a block, for the GPU form of generated kernels. Types and reductions have the numbers of
 * polyccl/types.h. The results have the bits that docs/executor.md defines: smaller floats are computed in 32 bits and
 * rounded to nearest even, every NaN becomes one, and averages follow mean.h. */
#ifndef PCCL_KERNEL_ELEMENTS_H
#define PCCL_KERNEL_ELEMENTS_H

#include "kernel/float8.h"

struct pccl_k_f16 {
  uint16_t bits;
};
struct pccl_k_bf16 {
  uint16_t bits;
};
/* e4m3 or e5m2, by the bits of the significand. */
template <int FRACTION>
struct pccl_k_f8 {
  uint8_t bits;
};

/* Conversions between an element and the type it is computed in. The second argument selects a wider form
 * (mean.h). */
template <class T>
struct pccl_k_wide {
  typedef T type;
  static PCCL_FN T widen(T x) { return x; }
  static PCCL_FN T widen(T x, int) { return x; }
  static PCCL_FN T narrow(T x) { return x; }
  static PCCL_FN T narrow(T x, int) { return x; }
};

PCCL_FN double pccl_k_double_of(uint64_t bits) {
  double f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

PCCL_FN uint64_t pccl_k_bits_of(double f) {
  uint64_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

/* Every NaN becomes one NaN. Integers do not change. */
template <class W>
PCCL_FN W pccl_k_one_nan(W x) {
  return x;
}
template <>
PCCL_FN float pccl_k_one_nan(float x) {
  return pccl_k_float_of(x != x ? 0x7fc00000u : pccl_k_bits_of(x));
}
template <>
PCCL_FN double pccl_k_one_nan(double x) {
  return pccl_k_double_of(x != x ? (uint64_t)0x7ff8 << 48 : pccl_k_bits_of(x));
}

template <>
struct pccl_k_wide<pccl_k_bf16> {
  typedef float type;
  static PCCL_FN float widen(pccl_k_bf16 x) { return pccl_k_float_of((uint32_t)x.bits << 16); }
  static PCCL_FN pccl_k_bf16 narrow(float f) {
    uint32_t bits = pccl_k_bits_of(f);
    pccl_k_bf16 result;
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
      result.bits = 0x7fc0;
    } else {
      result.bits = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
    return result;
  }
  static PCCL_FN float widen(pccl_k_bf16 x, int) { return widen(x); }
  static PCCL_FN pccl_k_bf16 narrow(float f, int) { return narrow(f); }
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
      result.bits = 0x7e00;
    } else if (rest >= 0x477ff000u) { /* rounds to 65536 or more */
      result.bits = (uint16_t)(sign | 0x7c00);
    } else if (rest < 0x38800000u) { /* subnormal or zero: adding 2^-1 rounds at 2^-24 */
      result.bits =
          (uint16_t)(sign | (pccl_k_bits_of(pccl_k_float_of(rest) + pccl_k_float_of(0x3f000000u)) - 0x3f000000u));
    } else {
      result.bits = (uint16_t)(sign | ((rest + 0xfff + (rest >> 13 & 1) - 0x38000000u) >> 13));
    }
    return result;
  }
  static PCCL_FN float widen(pccl_k_f16 x, int wider) {
    return pccl_k_wider_value(x.bits, widen(x), wider, PCCL_K_F16);
  }
  static PCCL_FN pccl_k_f16 narrow(float f, int wider) {
    pccl_k_f16 result;
    result.bits = (uint16_t)pccl_k_wider_code(f, narrow(f).bits, wider, PCCL_K_F16);
    return result;
  }
};

template <int FRACTION>
struct pccl_k_wide<pccl_k_f8<FRACTION>> {
  typedef float type;
  typedef pccl_k_f8<FRACTION> code;
  static PCCL_FN float widen(code x) {
    return FRACTION == 3 ? pccl_k_f8e4m3_value(x.bits) : pccl_k_f8e5m2_value(x.bits);
  }
  static PCCL_FN code narrow(float f) {
    code result;
    result.bits = (uint8_t)(FRACTION == 3 ? pccl_k_f8e4m3_code(f) : pccl_k_f8e5m2_code(f));
    return result;
  }
  static PCCL_FN float widen(code x, int wider) {
    return FRACTION == 3 ? pccl_k_wider_value(x.bits, widen(x), wider, PCCL_K_F8E4M3)
                         : pccl_k_wider_value(x.bits, widen(x), wider, PCCL_K_F8E5M2);
  }
  static PCCL_FN code narrow(float f, int wider) {
    code result;
    result.bits = (uint8_t)(FRACTION == 3 ? pccl_k_wider_code(f, narrow(f).bits, wider, PCCL_K_F8E4M3)
                                          : pccl_k_wider_code(f, narrow(f).bits, wider, PCCL_K_F8E5M2));
    return result;
  }
};

/* min and max order -0 below +0, and a NaN makes a NaN. Equal numbers have equal bits except for zeros. */
template <class W>
PCCL_FN W pccl_k_min_of(W x, W y) {
  return x < y ? x : y;
}
template <class W>
PCCL_FN W pccl_k_max_of(W x, W y) {
  return x > y ? x : y;
}
template <>
PCCL_FN float pccl_k_min_of(float x, float y) {
  return x < y ? x : y < x ? y : pccl_k_float_of(pccl_k_bits_of(x) | pccl_k_bits_of(y));
}
template <>
PCCL_FN float pccl_k_max_of(float x, float y) {
  return x > y ? x : y > x ? y : x == y ? pccl_k_float_of(pccl_k_bits_of(x) & pccl_k_bits_of(y)) : x != x ? x : y;
}
template <>
PCCL_FN double pccl_k_min_of(double x, double y) {
  return x < y ? x : y < x ? y : pccl_k_double_of(pccl_k_bits_of(x) | pccl_k_bits_of(y));
}
template <>
PCCL_FN double pccl_k_max_of(double x, double y) {
  return x > y ? x : y > x ? y : x == y ? pccl_k_double_of(pccl_k_bits_of(x) & pccl_k_bits_of(y)) : x != x ? x : y;
}

template <int OP, class T>
PCCL_FN T pccl_k_apply(T a, T b) {
  typedef pccl_k_wide<T> wide;
  typedef typename wide::type W;
  W x = wide::widen(a), y = wide::widen(b);
  switch (OP) {
    case 1: return wide::narrow(pccl_k_one_nan((W)(x * y)));
    case 2: return wide::narrow(pccl_k_one_nan(pccl_k_min_of(x, y)));
    case 3: return wide::narrow(pccl_k_one_nan(pccl_k_max_of(x, y)));
    default: return wide::narrow(pccl_k_one_nan((W)(x + y)));
  }
}

/* ---- averages ---- */

/* x * left + y * right. Each product is rounded by itself, so the order of operands does not matter. */
#ifdef __CUDACC__
PCCL_FN float pccl_k_scaled_sum(float x, float left, float y, float right) {
  return __fadd_rn(__fmul_rn(x, left), __fmul_rn(y, right));
}
PCCL_FN double pccl_k_scaled_sum(double x, double left, double y, double right) {
  return __dadd_rn(__dmul_rn(x, left), __dmul_rn(y, right));
}
#else
template <class W>
PCCL_FN W pccl_k_scaled_sum(W x, W left, W y, W right) {
#ifdef __clang__
#pragma clang fp contract(off)
#endif
  W first = x * left, second = y * right; /* with gcc: -ffp-contract=off */
  return first + second;
}
#endif

/* Only a rounding can carry the average of finite numbers beyond the largest number. */
template <class W>
PCCL_FN W pccl_k_limited(W q, W sum, W largest, W widest) {
  return sum <= widest && q > largest ? largest : sum >= -widest && q < -largest ? -largest : q;
}

template <class T>
struct pccl_k_largest;
template <>
struct pccl_k_largest<float> {
  static PCCL_FN float of() { return pccl_k_float_of(0x7f7fffffu); }
  static PCCL_FN float widest() { return of(); }
  enum { HEADROOM = 1, SCALED = 1 };
};
template <>
struct pccl_k_largest<double> {
  static PCCL_FN double of() { return pccl_k_double_of(~(uint64_t)0 >> 1 ^ (uint64_t)1 << 52); }
  static PCCL_FN double widest() { return of(); }
  enum { HEADROOM = 1, SCALED = 1 };
};
template <>
struct pccl_k_largest<pccl_k_bf16> {
  static PCCL_FN float of() { return pccl_k_float_of(0x7f7f0000u); }
  static PCCL_FN float widest() { return pccl_k_float_of(0x7f7fffffu); }
  enum { HEADROOM = 1, SCALED = 1 };
};
template <>
struct pccl_k_largest<pccl_k_f16> {
  static PCCL_FN float of() { return 65504.0f; }
  static PCCL_FN float widest() { return pccl_k_float_of(0x7f7fffffu); }
  enum { HEADROOM = 0, SCALED = 0 };
};
template <int FRACTION>
struct pccl_k_largest<pccl_k_f8<FRACTION>> {
  static PCCL_FN float of() { return FRACTION == 3 ? 448.0f : 57344.0f; }
  static PCCL_FN float widest() { return pccl_k_float_of(0x7f7fffffu); }
  enum { HEADROOM = 1, SCALED = 0 };
};

/* The factors of an average, which are the same for all elements. Integers use the divisor alone. */
template <class T>
struct pccl_k_averaging {
  typedef pccl_k_wide<T> wide;
  typedef typename wide::type W;
  typedef pccl_k_largest<T> limit;
  pccl_k_mean mean;
  W left, right, divisor;
  PCCL_FN pccl_k_averaging(uint64_t addends) {
    mean = pccl_k_mean_of(addends, limit::HEADROOM);
    left = limit::SCALED ? (W)pccl_k_power_down(mean.sum - mean.a) : (W)1;
    right = limit::SCALED ? (W)pccl_k_power_down(mean.sum - mean.b) : (W)1;
    divisor = (W)mean.divisor * (limit::SCALED ? (W)pccl_k_power_down(mean.sum) : (W)1);
  }
  PCCL_FN T apply(T a, T b) const {
    W sum = pccl_k_scaled_sum(wide::widen(a, mean.a), left, wide::widen(b, mean.b), right);
    if (mean.divisor == 0) {
      return wide::narrow(pccl_k_one_nan(sum), mean.sum);
    }
    return wide::narrow(pccl_k_one_nan(pccl_k_limited<W>(sum / divisor, sum, limit::of(), limit::widest())));
  }
};

template <class T, class WRAPS>
struct pccl_k_averaging_integers {
  uint32_t divisor;
  PCCL_FN pccl_k_averaging_integers(uint64_t addends) { divisor = pccl_k_mean_of(addends, 0).divisor; }
  PCCL_FN T apply(T a, T b) const {
    T sum = (T)(WRAPS)((WRAPS)a + (WRAPS)b);
    return divisor == 0 ? sum : (T)(sum / (int64_t)divisor);
  }
};

template <int OP, class T>
struct pccl_k_reducing {
  PCCL_FN T apply(T a, T b) const { return pccl_k_apply<OP, T>(a, b); }
};

/* Of bytes, of which any but 0 is true. */
struct pccl_k_either {
  PCCL_FN uint8_t apply(uint8_t a, uint8_t b) const { return (a | b) != 0; }
};
struct pccl_k_both {
  PCCL_FN uint8_t apply(uint8_t a, uint8_t b) const { return a != 0 && b != 0; }
};

/* dst[i] = out[i] = a[i] op b[i] for i below n. `all` threads share the work, and this one is number `t`. `out` may be
 * NULL. A thread takes 16 bytes at a time if all places are aligned for that. */
template <class OPERATION, class T>
PCCL_FN void pccl_k_reduce_as(const OPERATION &operation, T *dst, T *out, const T *a, const T *b, size_t n, size_t t,
                              size_t all) {
  enum { PER = (int)(sizeof(pccl_k_pack) / sizeof(T)) };
  size_t packs = pccl_k_packable((uintptr_t)dst | (uintptr_t)out | (uintptr_t)a | (uintptr_t)b) ? n / PER : 0;
  for (size_t i = t; i < packs; i += all) {
    pccl_k_pack p = ((const pccl_k_pack *)a)[i], q = ((const pccl_k_pack *)b)[i];
    T x[PER], y[PER];
    memcpy(x, &p, sizeof p);
    memcpy(y, &q, sizeof q);
    PCCL_UNROLL
    for (int k = 0; k < PER; k++) {
      x[k] = operation.apply(x[k], y[k]);
    }
    memcpy(&p, x, sizeof p);
    ((pccl_k_pack *)dst)[i] = p;
    if (out != NULL) {
      ((pccl_k_pack *)out)[i] = p;
    }
  }
  for (size_t i = packs * PER + t; i < n; i += all) {
    T x = operation.apply(a[i], b[i]);
    dst[i] = x;
    if (out != NULL) {
      out[i] = x;
    }
  }
}

/* Signed integers are added and multiplied as unsigned ones, so that they wrap around; min and max compare signed. */
template <class T, class WRAPS, class AVERAGING>
PCCL_FN void pccl_k_reduce_by(int op, void *dst, void *out, const void *a, const void *b, size_t n, size_t t,
                              size_t all, uint64_t addends) {
  T *to = (T *)dst, *also = (T *)out;
  const T *p = (const T *)a, *q = (const T *)b;
  WRAPS *wraps = (WRAPS *)dst, *wraps_out = (WRAPS *)out;
  const WRAPS *u = (const WRAPS *)a, *v = (const WRAPS *)b;
  switch (op) {
    case 1: pccl_k_reduce_as(pccl_k_reducing<1, WRAPS>(), wraps, wraps_out, u, v, n, t, all); break;
    case 2: pccl_k_reduce_as(pccl_k_reducing<2, T>(), to, also, p, q, n, t, all); break;
    case 3: pccl_k_reduce_as(pccl_k_reducing<3, T>(), to, also, p, q, n, t, all); break;
    case 4: pccl_k_reduce_as(AVERAGING(addends), to, also, p, q, n, t, all); break;
    default: pccl_k_reduce_as(pccl_k_reducing<0, WRAPS>(), wraps, wraps_out, u, v, n, t, all); break;
  }
}

template <class T>
PCCL_FN void pccl_k_reduce_floats(int op, void *dst, void *out, const void *a, const void *b, size_t n, size_t t,
                                  size_t all, uint64_t addends) {
  pccl_k_reduce_by<T, T, pccl_k_averaging<T>>(op, dst, out, a, b, n, t, all, addends);
}

template <class T, class WRAPS>
PCCL_FN void pccl_k_reduce_integers(int op, void *dst, void *out, const void *a, const void *b, size_t n, size_t t,
                                    size_t all, uint64_t addends) {
  pccl_k_reduce_by<T, WRAPS, pccl_k_averaging_integers<T, WRAPS>>(op, dst, out, a, b, n, t, all, addends);
}

/* The sum and the max are logical or, the product and the min logical and. */
PCCL_FN void pccl_k_reduce_bools(int op, void *dst, void *out, const void *a, const void *b, size_t n, size_t t,
                                 size_t all) {
  uint8_t *to = (uint8_t *)dst, *also = (uint8_t *)out;
  const uint8_t *p = (const uint8_t *)a, *q = (const uint8_t *)b;
  if (op == 1 || op == 2) {
    pccl_k_reduce_as(pccl_k_both(), to, also, p, q, n, t, all);
  } else {
    pccl_k_reduce_as(pccl_k_either(), to, also, p, q, n, t, all);
  }
}

/* Out of line, since every step calls it. */
static __device__ __noinline__ void pccl_k_reduce_some(const pccl_k_call *c, void *dst, void *out, const void *a,
                                                       const void *b, size_t n, size_t t, size_t all,
                                                       uint64_t addends) {
  int op = (int)c->redop;
  switch (c->dtype) {
    case 0: pccl_k_reduce_floats<float>(op, dst, out, a, b, n, t, all, addends); break;
    case 1: pccl_k_reduce_floats<double>(op, dst, out, a, b, n, t, all, addends); break;
    case 2: pccl_k_reduce_integers<int32_t, uint32_t>(op, dst, out, a, b, n, t, all, addends); break;
    case 3: pccl_k_reduce_integers<int64_t, uint64_t>(op, dst, out, a, b, n, t, all, addends); break;
    case 4: pccl_k_reduce_integers<uint8_t, uint8_t>(op, dst, out, a, b, n, t, all, addends); break;
    case 5: pccl_k_reduce_floats<pccl_k_f16>(op, dst, out, a, b, n, t, all, addends); break;
    case 6: pccl_k_reduce_floats<pccl_k_bf16>(op, dst, out, a, b, n, t, all, addends); break;
    case 7: pccl_k_reduce_integers<uint32_t, uint32_t>(op, dst, out, a, b, n, t, all, addends); break;
    case 8: pccl_k_reduce_integers<uint64_t, uint64_t>(op, dst, out, a, b, n, t, all, addends); break;
    case 9: pccl_k_reduce_integers<int8_t, uint8_t>(op, dst, out, a, b, n, t, all, addends); break;
    case 10: pccl_k_reduce_bools(op, dst, out, a, b, n, t, all); break;
    case 11: pccl_k_reduce_floats<pccl_k_f8<3>>(op, dst, out, a, b, n, t, all, addends); break;
    default: pccl_k_reduce_floats<pccl_k_f8<2>>(op, dst, out, a, b, n, t, all, addends); break;
  }
}

PCCL_FN void pccl_k_reduce(const pccl_k_call *c, char *dst, char *out, const char *a, const char *b, size_t n,
                           uint64_t addends) {
  pccl_k_reduce_some(c, dst, out, a, b, n, pccl_k_thread(), pccl_k_threads(), addends);
}

/* One thread reduces up to 8 bytes of registers. */
PCCL_FN void pccl_k_reduce_unit(const pccl_k_call *c, void *dst, const void *a, const void *b, size_t n,
                                uint64_t addends) {
  pccl_k_reduce_some(c, dst, NULL, a, b, n, 0, 1, addends);
}

#endif
