/* Data for polyccl run: each input element depends on its rank and place, results are exact in every type. What an
 * output must hold follows from the collective's definition alone (program/collective.h), not from the plan. */
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "run.h"

/* Largest integer up to which the type has them all. */
static double exact_range(polyccl_dtype dtype) {
  switch (dtype) {
    case POLYCCL_BFLOAT16: return 256;
    case POLYCCL_FLOAT16: return 2048;
    case POLYCCL_UINT8: return 255;
    default: return 1 << 20;
  }
}

/* The value of element `index` of the input of `rank`. */
static int64_t value_at(const pccl_collective_spec *spec, int rank, size_t index, polyccl_dtype dtype,
                        polyccl_redop op) {
  uint64_t bits = pccl_mix64(((uint64_t)rank << 44) ^ index);
  bool reduces = pccl_collective_reduces(spec->kind);
  if (reduces && op == POLYCCL_PROD) {
    return bits % 4 == 0 ? 2 : 1; /* a product of at most 2^ranks */
  }
  double range = exact_range(dtype);
  if (reduces && (op == POLYCCL_SUM || op == POLYCCL_AVG)) {
    range /= spec->ranks; /* every partial sum is exact */
  }
  return (int64_t)(bits % (uint64_t)(range >= 2 ? range : 2));
}

static uint16_t half_bits(double value) {
  if (value == 0) {
    return 0;
  }
  int exponent;
  double fraction = frexp(value, &exponent); /* value = fraction * 2^exponent, 0.5 <= fraction < 1 */
  double unit = exponent < -13 ? ldexp(1, -24) : ldexp(1, exponent - 11);
  double rounded = nearbyint(value / unit) * unit;
  fraction = frexp(rounded, &exponent);
  if (exponent > 16) {
    return 0x7c00;
  }
  return exponent < -13 ? (uint16_t)(rounded / ldexp(1, -24))
                        : (uint16_t)(((unsigned)(exponent + 14) << 10) + ((unsigned)ldexp(fraction, 11) - 1024));
}

static uint16_t bfloat_bits(double value) {
  int exponent;
  frexp(value, &exponent);
  double unit = ldexp(1, exponent - 8);
  float rounded = value == 0 ? 0 : (float)(nearbyint(value / unit) * unit);
  uint32_t bits;
  memcpy(&bits, &rounded, sizeof bits);
  return (uint16_t)(bits >> 16);
}

/* Results are not negative. */
static void store(void *at, polyccl_dtype dtype, double value, int64_t integer) {
  switch (dtype) {
    case POLYCCL_FLOAT32: memcpy(at, &(float){(float)value}, sizeof(float)); break;
    case POLYCCL_FLOAT64: memcpy(at, &value, sizeof value); break;
    case POLYCCL_INT32: memcpy(at, &(int32_t){(int32_t)integer}, sizeof(int32_t)); break;
    case POLYCCL_INT64: memcpy(at, &integer, sizeof integer); break;
    case POLYCCL_UINT8: memcpy(at, &(uint8_t){(uint8_t)integer}, sizeof(uint8_t)); break;
    case POLYCCL_FLOAT16: memcpy(at, &(uint16_t){half_bits(value)}, sizeof(uint16_t)); break;
    case POLYCCL_BFLOAT16: memcpy(at, &(uint16_t){bfloat_bits(value)}, sizeof(uint16_t)); break;
    case POLYCCL_DTYPE_COUNT: break;
  }
}

void pccl_run_fill(const pccl_collective_spec *spec, int rank, polyccl_dtype dtype, polyccl_redop op, size_t count,
                   void *input) {
  int in, out;
  pccl_collective_shape(spec, &in, &out);
  size_t elements = count * (size_t)(in / spec->chunks), bytes = polyccl_dtype_size(dtype);
  for (size_t i = 0; i < elements; i++) {
    int64_t value = value_at(spec, rank, i, dtype, op);
    store((char *)input + i * bytes, dtype, (double)value, value);
  }
}

/* The reduction over the leaves of one output chunk, at element `within` of the chunk's block. */
typedef struct expected {
  const pccl_collective_spec *spec;
  polyccl_dtype dtype;
  polyccl_redop op;
  int leaves;
  int64_t integer;
  double value;
} expected;

static void add(expected *e, int rank, size_t index) {
  int64_t v = value_at(e->spec, rank, index, e->dtype, e->op);
  if (e->leaves++ == 0) {
    e->integer = v;
  } else {
    switch (e->op) {
      case POLYCCL_PROD: e->integer = (int64_t)((uint64_t)e->integer * (uint64_t)v); break;
      case POLYCCL_MIN: e->integer = v < e->integer ? v : e->integer; break;
      case POLYCCL_MAX: e->integer = v > e->integer ? v : e->integer; break;
      default: e->integer += v; break;
    }
  }
  e->value = e->op == POLYCCL_PROD && e->leaves > 1 ? e->value * (double)v : (double)e->integer;
}

static void store_expected(expected *e, bool reduced, void *at) {
  if (reduced && e->op == POLYCCL_AVG) {
    e->value /= e->spec->ranks;
    e->integer /= e->spec->ranks;
  }
  store(at, e->dtype, e->value, e->integer);
}

/* The element of the input that leaf (chunk) has for element `within` of its chunk. */
static size_t input_index(const pccl_collective_spec *spec, int chunk, size_t count, size_t stride, size_t within) {
  size_t block = (size_t)(chunk / spec->chunks), place = (size_t)(chunk % spec->chunks);
  return block * count + place * stride + within;
}

static uint64_t compare(const expected *want, bool reduced, const char *got) {
  unsigned char right[8];
  expected copy = *want;
  store_expected(&copy, reduced, right);
  return memcmp(right, got, polyccl_dtype_size(want->dtype)) != 0;
}

static uint64_t wrong_in_custom(const polyccl_plan *plan, const pccl_collective_spec *spec, int rank,
                                polyccl_dtype dtype, polyccl_redop op, size_t stride, const char *output) {
  uint64_t wrong = 0;
  size_t bytes = polyccl_dtype_size(dtype);
  for (size_t i = 0; i < plan->posts; i++) {
    const polyccl_post *post = &plan->post[i];
    for (size_t within = 0; post->rank == rank && within < stride; within++) {
      expected e = {.spec = spec, .dtype = dtype, .op = op};
      for (int32_t l = post->leaf; l < post->leaf + post->leaves; l++) {
        add(&e, plan->leaf[l].rank, (size_t)plan->leaf[l].chunk * stride + within);
      }
      wrong += compare(&e, post->leaves > 1, output + ((size_t)post->chunk * stride + within) * bytes);
    }
  }
  return wrong;
}

uint64_t pccl_run_wrong(const polyccl_plan *plan, int rank, polyccl_dtype dtype, polyccl_redop op, size_t count,
                        const void *output) {
  pccl_collective_spec spec = {.kind = plan->collective,
                               .ranks = plan->ranks,
                               .chunks = plan->chunks,
                               .chunks_out = plan->chunks_out,
                               .inplace = plan->inplace,
                               .root = plan->root,
                               .peer = plan->peer};
  size_t bytes = polyccl_dtype_size(dtype);
  if (spec.kind == POLYCCL_CUSTOM) {
    return wrong_in_custom(plan, &spec, rank, dtype, op, count / (size_t)spec.chunks, output);
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
    for (size_t i = 0; i < count; i++) {
      expected e = {.spec = &spec, .dtype = dtype, .op = op};
      int first = kind == PCCL_POST_ALL ? 0 : leaf.rank, last = kind == PCCL_POST_ALL ? spec.ranks - 1 : leaf.rank;
      for (int r = first; r <= last; r++) {
        add(&e, r, input_index(&spec, leaf.chunk, count, count, i));
      }
      wrong += compare(&e, kind == PCCL_POST_ALL, (const char *)output + ((size_t)block * count + i) * bytes);
    }
  }
  return wrong;
}
