/* Data for polyccl run: each input element depends on its rank and place, and every way to reduce it, in any order,
 * gives the same bits: floating-point values are small integers whose sums the type has all, integers wrap around. What
 * an output must hold follows from the collective's definition alone (program/collective.h; of a custom collective its
 * post lines), not from the plan's steps. */
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "plan/plan.h"
#include "run.h"

/* What values depend on. */
typedef struct values {
  polyccl_dtype dtype;
  polyccl_redop op;
  bool reduces;
  uint64_t addends; /* of the output chunk that has the largest number of them */
} values;

static bool is_unsigned(polyccl_dtype dtype) {
  return dtype == POLYCCL_UINT8 || dtype == POLYCCL_UINT32 || dtype == POLYCCL_UINT64 || dtype == POLYCCL_BOOL;
}

static bool is_integer(polyccl_dtype dtype) {
  return is_unsigned(dtype) || dtype == POLYCCL_INT32 || dtype == POLYCCL_INT64 || dtype == POLYCCL_INT8;
}

/* Bits of an 8-bit float's significand after the leading one; 0: another type. */
static int fraction_of(polyccl_dtype dtype) {
  return dtype == POLYCCL_FLOAT8E4M3 ? 3 : dtype == POLYCCL_FLOAT8E5M2 ? 2 : 0;
}

/* Largest integer up to which the type has them all; of 8-bit floats, partial averages, too (kernel/mean.h). */
static uint64_t exact_range(polyccl_dtype dtype) {
  switch (dtype) {
    case POLYCCL_BFLOAT16: return 256;
    case POLYCCL_FLOAT16: return 2048;
    case POLYCCL_UINT8: return 255;
    case POLYCCL_INT8: return 127;
    case POLYCCL_FLOAT8E4M3: return 8;
    case POLYCCL_FLOAT8E5M2: return 4;
    default: return 1 << 20;
  }
}

static uint64_t max_addends(const polyccl_plan *plan) {
  int32_t max = 1;
  if (plan->collective != POLYCCL_CUSTOM) {
    return pccl_collective_reduces(plan->collective) ? (uint64_t)plan->ranks : 1;
  }
  for (size_t i = 0; i < plan->posts; i++) {
    max = plan->post[i].leaves > max ? plan->post[i].leaves : max;
  }
  return (uint64_t)max;
}

static values values_of(const polyccl_plan *plan, polyccl_dtype dtype, polyccl_redop op) {
  uint64_t addends = max_addends(plan);
  return (values){dtype, op, pccl_collective_reduces(plan->collective), addends};
}

/* Factors of floating-point products are powers of two of either sign, few enough that a product stays finite in all
 * likelihood; should it not, it is infinite in every order, since factors are never less than 1. Integers wrap; odd
 * factors keep every bit of the product in use. */
static int64_t factor_at(const values *v, uint64_t bits) {
  if (is_integer(v->dtype)) {
    return (int64_t)(bits | 1);
  }
  uint64_t rarely = v->addends <= 16 ? 4 : v->addends / 4;
  int64_t sign = bits >> 60 & 1 ? -1 : 1;
  return bits % rarely == 0 ? 2 * sign : sign;
}

/* Addends whose sum stays within `range`, whatever is added to what first. Where even ones would be too many, nearly
 * all are zero. */
static int64_t addend_at(const values *v, uint64_t bits, uint64_t range) {
  int64_t sign = !is_unsigned(v->dtype) && bits >> 60 & 1 ? -1 : 1;
  uint64_t each = range / v->addends;
  if (each >= 2) {
    return sign * (int64_t)(bits % (each + 1));
  }
  uint64_t rarely = 8 * v->addends / range + 1;
  return bits % rarely == 0 ? sign : 0;
}

/* Bytes of which so many are 0 that an operand often decides. */
static int64_t bool_at(const values *v, uint64_t bits) {
  uint64_t rarely = v->addends > 2 ? v->addends : 2;
  bool either = v->op == POLYCCL_SUM || v->op == POLYCCL_MAX, decides = bits % rarely == 0;
  return decides == either ? (int64_t)((bits >> 32) % 255 + 1) : 0;
}

/* One of the integers of an 8-bit float, each as likely. */
static int64_t float8_at(int fraction, uint64_t bits) {
  uint64_t one = (uint64_t)1 << fraction, code = bits % (fraction == 3 ? 55 : 60);
  int64_t magnitude = (int64_t)(code < one ? code : (one + code % one) << (code / one - 1));
  return bits >> 60 & 1 ? -magnitude : magnitude;
}

/* The value of element `index` of the input of `rank`; an integer type takes its lowest bits. */
static int64_t value_at(const values *v, int rank, size_t index) {
  uint64_t bits = pccl_mix64(((uint64_t)rank << 44) ^ index);
  if (v->reduces && v->dtype == POLYCCL_BOOL) {
    return bool_at(v, bits);
  }
  if (v->reduces && v->op == POLYCCL_PROD) {
    return factor_at(v, bits);
  }
  bool sums = v->reduces && (v->op == POLYCCL_SUM || v->op == POLYCCL_AVG);
  if (is_integer(v->dtype) && !(sums && v->op == POLYCCL_AVG)) {
    return (int64_t)bits;
  }
  uint64_t range = exact_range(v->dtype);
  if (sums) {
    return addend_at(v, bits, range);
  }
  if (fraction_of(v->dtype) > 0) {
    return float8_at(fraction_of(v->dtype), bits);
  }
  int64_t sign = bits >> 60 & 1 ? -1 : 1;
  return sign * (int64_t)(bits % range);
}

/* ---- bits ---- */

static uint16_t half_bits(double value) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  value = fabs(value);
  int exponent;
  if (value == 0 || isinf(value)) {
    return value == 0 ? sign : sign | 0x7c00;
  }
  frexp(value, &exponent); /* value = fraction * 2^exponent, 0.5 <= fraction < 1 */
  double unit = exponent < -13 ? ldexp(1, -24) : ldexp(1, exponent - 11);
  double rounded = nearbyint(value / unit) * unit;
  double fraction = frexp(rounded, &exponent);
  if (exponent > 16) {
    return sign | 0x7c00;
  }
  uint16_t bits = exponent < -13
                      ? (uint16_t)(rounded / ldexp(1, -24))
                      : (uint16_t)(((unsigned)(exponent + 14) << 10) + ((unsigned)ldexp(fraction, 11) - 1024));
  return sign | bits;
}

static uint16_t bfloat_bits(double value) {
  int exponent;
  float rounded = (float)value; /* zero and infinity keep their sign */
  if (value != 0 && !isinf(value)) {
    frexp(value, &exponent);
    double unit = ldexp(1, exponent - 8);
    rounded = (float)(nearbyint(value / unit) * unit);
  }
  uint32_t bits;
  memcpy(&bits, &rounded, sizeof bits);
  return (uint16_t)(bits >> 16);
}

/* A number beyond the largest, which halves of the last place count to, is a NaN of e4m3 and an infinity of e5m2. */
static uint8_t float8_bits(double value, int fraction) {
  int exponent, least = fraction == 3 ? -6 : -14; /* of the smallest number that is not subnormal */
  uint8_t sign = signbit(value) ? 0x80 : 0;
  value = fabs(value);
  if (value == 0) {
    return sign;
  }
  frexp(value, &exponent);
  double unit = ldexp(1, (exponent - 1 > least ? exponent - 1 : least) - fraction);
  double rounded = nearbyint(value / unit) * unit;
  if (!(rounded <= (fraction == 3 ? 448 : 57344))) {
    return fraction == 3 ? 0x7f : sign | 0x7c;
  }
  double scaled = frexp(rounded, &exponent) * 2;
  return sign |
         (uint8_t)(exponent - 1 < least ? rounded / ldexp(1, least - fraction)
                                        : ldexp(exponent - 1 - least + 1, fraction) + ldexp(scaled - 1, fraction));
}

static void store_element(void *at, polyccl_dtype dtype, double value, int64_t integer) {
  switch (dtype) {
    case POLYCCL_FLOAT32: memcpy(at, &(float){(float)value}, sizeof(float)); break;
    case POLYCCL_FLOAT64: memcpy(at, &value, sizeof value); break;
    case POLYCCL_INT32: memcpy(at, &(int32_t){(int32_t)integer}, sizeof(int32_t)); break;
    case POLYCCL_INT64: memcpy(at, &integer, sizeof integer); break;
    case POLYCCL_UINT8: memcpy(at, &(uint8_t){(uint8_t)integer}, sizeof(uint8_t)); break;
    case POLYCCL_FLOAT16: memcpy(at, &(uint16_t){half_bits(value)}, sizeof(uint16_t)); break;
    case POLYCCL_BFLOAT16: memcpy(at, &(uint16_t){bfloat_bits(value)}, sizeof(uint16_t)); break;
    case POLYCCL_UINT32: memcpy(at, &(uint32_t){(uint32_t)integer}, sizeof(uint32_t)); break;
    case POLYCCL_UINT64: memcpy(at, &integer, sizeof integer); break;
    case POLYCCL_INT8: memcpy(at, &(int8_t){(int8_t)integer}, sizeof(int8_t)); break;
    case POLYCCL_BOOL: memcpy(at, &(uint8_t){(uint8_t)integer}, sizeof(uint8_t)); break;
    case POLYCCL_FLOAT8E4M3:
    case POLYCCL_FLOAT8E5M2: memcpy(at, &(uint8_t){float8_bits(value, fraction_of(dtype))}, sizeof(uint8_t)); break;
    case POLYCCL_DTYPE_COUNT: break;
  }
}

void pccl_run_fill(const polyccl_plan *plan, int rank, polyccl_dtype dtype, polyccl_redop op, size_t count,
                   void *input) {
  pccl_collective_spec spec = pccl_plan_spec(plan);
  int in, out;
  pccl_collective_shape(&spec, &in, &out);
  values v = values_of(plan, dtype, op);
  size_t elements = count * (size_t)(in / spec.chunks), bytes = polyccl_dtype_size(dtype);
  for (size_t i = 0; i < elements; i++) {
    int64_t value = value_at(&v, rank, i);
    store_element((char *)input + i * bytes, dtype, (double)value, value);
  }
}

/* ---- what must be there ---- */

/* The reduction over the contributions to one element; integers in 64 bits, of which the type takes its own. */
typedef struct expected {
  const values *v;
  uint64_t addends;
  uint64_t integer;
  double value;
} expected;

/* An integer as its type has it: min and max compare those. */
static int64_t narrow_integer(polyccl_dtype dtype, int64_t value) {
  switch (dtype) {
    case POLYCCL_INT32: return (int32_t)value;
    case POLYCCL_UINT32: return (uint32_t)value;
    case POLYCCL_INT8: return (int8_t)value;
    case POLYCCL_UINT8:
    case POLYCCL_BOOL: return (uint8_t)value;
    default: return value;
  }
}

static bool is_less(polyccl_dtype dtype, int64_t a, int64_t b) {
  return dtype == POLYCCL_UINT64 ? (uint64_t)a < (uint64_t)b : a < b;
}

static void add_contribution(expected *e, int rank, size_t index) {
  int64_t number = narrow_integer(e->v->dtype, value_at(e->v, rank, index)), before = (int64_t)e->integer;
  if (e->addends++ == 0) {
    e->integer = (uint64_t)number;
    e->value = (double)number;
    return;
  }
  if (e->v->dtype == POLYCCL_BOOL) {
    bool either = e->v->op == POLYCCL_SUM || e->v->op == POLYCCL_MAX;
    e->integer = either ? before != 0 || number != 0 : before != 0 && number != 0;
    return;
  }
  switch (e->v->op) {
    case POLYCCL_PROD:
      e->integer *= (uint64_t)number;
      e->value *= (double)number;
      return;
    case POLYCCL_MIN: e->integer = (uint64_t)(is_less(e->v->dtype, number, before) ? number : before); break;
    case POLYCCL_MAX: e->integer = (uint64_t)(is_less(e->v->dtype, before, number) ? number : before); break;
    default: e->integer += (uint64_t)number; break;
  }
  e->value = (double)(int64_t)e->integer;
}

/* 1: `got` is not the element; with `ranks` > 0 the average over them. */
static uint64_t element_differs(expected *e, int ranks, const char *got) {
  unsigned char right[8];
  int64_t integer = (int64_t)e->integer;
  if (ranks > 0) {
    e->value /= ranks;
    integer = narrow_integer(e->v->dtype, integer);
    integer = is_unsigned(e->v->dtype) ? (int64_t)((uint64_t)integer / (uint64_t)ranks) : integer / ranks;
  }
  store_element(right, e->v->dtype, e->value, integer);
  return memcmp(right, got, polyccl_dtype_size(e->v->dtype)) != 0;
}

/* Where a chunk lies in the user's buffer, in elements (docs/plan.md, Counts that chunks do not divide). */
static size_t chunk_at(const polyccl_plan *plan, int chunk, size_t count, size_t stride, size_t *length) {
  size_t block = (size_t)(chunk / plan->chunks), start = (size_t)(chunk % plan->chunks) * stride;
  start = start < count ? start : count;
  *length = count - start < stride ? count - start : stride;
  return block * count + start;
}

static uint64_t wrong_in_custom(const polyccl_plan *plan, const values *v, int rank, size_t count, const char *output) {
  uint64_t wrong = 0;
  size_t bytes = polyccl_dtype_size(v->dtype), stride = pccl_collective_stride(plan->chunks, count, bytes);
  for (size_t i = 0; i < plan->posts; i++) {
    const polyccl_post *post = &plan->post[i];
    size_t length, unused, at = chunk_at(plan, post->chunk, count, stride, &length);
    for (size_t within = 0; post->rank == rank && within < length; within++) {
      expected e = {.v = v};
      for (int32_t l = post->leaf; l < post->leaf + post->leaves; l++) {
        add_contribution(&e, plan->leaf[l].rank, chunk_at(plan, plan->leaf[l].chunk, count, stride, &unused) + within);
      }
      wrong += element_differs(&e, 0, output + (at + within) * bytes);
    }
  }
  return wrong;
}

uint64_t pccl_run_wrong(const polyccl_plan *plan, int rank, polyccl_dtype dtype, polyccl_redop op, size_t count,
                        const void *output) {
  pccl_collective_spec spec = pccl_plan_spec(plan);
  size_t bytes = polyccl_dtype_size(dtype);
  values v = values_of(plan, dtype, op);
  if (spec.kind == POLYCCL_CUSTOM) {
    return wrong_in_custom(plan, &v, rank, count, output);
  }
  spec.chunks = 1; /* the definition by blocks; how the plan cuts them does not matter */
  int in, out;
  pccl_collective_shape(&spec, &in, &out);
  uint64_t wrong = 0;
  for (int block = 0; block < out; block++) {
    polyccl_leaf leaf;
    pccl_post_kind kind = pccl_collective_post(&spec, rank, block, &leaf);
    if (kind == PCCL_POST_ANY) {
      continue;
    }
    int average = kind == PCCL_POST_ALL && op == POLYCCL_AVG ? spec.ranks : 0;
    for (size_t i = 0; i < count; i++) {
      expected e = {.v = &v};
      int first = kind == PCCL_POST_ALL ? 0 : leaf.rank, last = kind == PCCL_POST_ALL ? spec.ranks - 1 : leaf.rank;
      for (int r = first; r <= last; r++) {
        add_contribution(&e, r, (size_t)leaf.chunk * count + i);
      }
      wrong += element_differs(&e, average, (const char *)output + ((size_t)block * count + i) * bytes);
    }
  }
  return wrong;
}
