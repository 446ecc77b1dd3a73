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
template <int OP, class T>
PCCL_FN T pccl_k_apply(T a, T b) {
  typedef pccl_k_wide<T> wide;
  typedef typename wide::type W;
  W x = wide::widen(a), y = wide::widen(b);
  switch (OP) {
    case 1: return wide::narrow((W)(x * y));
    case 2: return wide::narrow(y != y ? x : x != x ? y : x < y ? x : y);
    case 3: return wide::narrow(y != y ? x : x != x ? y : x > y ? x : y);
    default: return wide::narrow((W)(x + y));
  }
}

/* dst[i] = out[i] = a[i] + b[i] for i below n, shared out among `all` threads of which this is number `t`; out may be
 * NULL. 16 bytes at a time where everything is aligned for it. */
template <int OP, class T>
PCCL_FN void pccl_k_reduce_as(T *dst, T *out, const T *a, const T *b, size_t n, size_t t, size_t all) {
  enum { PER = (int)(sizeof(pccl_k_pack) / sizeof(T)) };
  size_t packs = pccl_k_packable((uintptr_t)dst | (uintptr_t)out | (uintptr_t)a | (uintptr_t)b) ? n / PER : 0;
  for (size_t i = t; i < packs; i += all) {
    pccl_k_pack p = ((const pccl_k_pack *)a)[i], q = ((const pccl_k_pack *)b)[i];
    T x[PER], y[PER];
    memcpy(x, &p, sizeof p);
    memcpy(y, &q, sizeof q);
    PCCL_UNROLL
    for (int k = 0; k < PER; k++) {
      x[k] = pccl_k_apply<OP, T>(x[k], y[k]);
    }
    memcpy(&p, x, sizeof p);
    ((pccl_k_pack *)dst)[i] = p;
    if (out != NULL) {
      ((pccl_k_pack *)out)[i] = p;
    }
  }
  for (size_t i = packs * PER + t; i < n; i += all) {
    T x = pccl_k_apply<OP, T>(a[i], b[i]);
    dst[i] = x;
    if (out != NULL) {
      out[i] = x;
    }
  }
}

/* Signed integers are added and multiplied as unsigned ones, so that they wrap; min and max compare signed. */
template <class T, class WRAPS>
PCCL_FN void pccl_k_reduce_by(int op, void *dst, void *out, const void *a, const void *b, size_t n, size_t t,
                              size_t all) {
  switch (op) {
    case 1: pccl_k_reduce_as<1>((WRAPS *)dst, (WRAPS *)out, (const WRAPS *)a, (const WRAPS *)b, n, t, all); break;
    case 2: pccl_k_reduce_as<2>((T *)dst, (T *)out, (const T *)a, (const T *)b, n, t, all); break;
    case 3: pccl_k_reduce_as<3>((T *)dst, (T *)out, (const T *)a, (const T *)b, n, t, all); break;
    default: pccl_k_reduce_as<0>((WRAPS *)dst, (WRAPS *)out, (const WRAPS *)a, (const WRAPS *)b, n, t, all); break;
  }
}

/* Out of line: every step calls it. */
static __device__ __noinline__ void pccl_k_reduce_some(const pccl_k_call *c, void *dst, void *out, const void *a,
                                                       const void *b, size_t n, size_t t, size_t all) {
  int op = (int)c->redop;
  switch (c->dtype) {
    case 0: pccl_k_reduce_by<float, float>(op, dst, out, a, b, n, t, all); break;
    case 1: pccl_k_reduce_by<double, double>(op, dst, out, a, b, n, t, all); break;
    case 2: pccl_k_reduce_by<int32_t, uint32_t>(op, dst, out, a, b, n, t, all); break;
    case 3: pccl_k_reduce_by<int64_t, uint64_t>(op, dst, out, a, b, n, t, all); break;
    case 4: pccl_k_reduce_by<uint8_t, uint8_t>(op, dst, out, a, b, n, t, all); break;
    case 5: pccl_k_reduce_by<pccl_k_f16, pccl_k_f16>(op, dst, out, a, b, n, t, all); break;
    default: pccl_k_reduce_by<pccl_k_bf16, pccl_k_bf16>(op, dst, out, a, b, n, t, all); break;
  }
}

PCCL_FN void pccl_k_reduce(const pccl_k_call *c, char *dst, char *out, const char *a, const char *b, size_t n) {
  pccl_k_reduce_some(c, dst, out, a, b, n, pccl_k_thread(), pccl_k_threads());
}

/* By one thread, on up to 8 bytes of registers. */
PCCL_FN void pccl_k_reduce_unit(const pccl_k_call *c, void *dst, const void *a, const void *b, size_t n) {
  pccl_k_reduce_some(c, dst, NULL, a, b, n, 0, 1);
}

#endif
