/* Reductions on special numbers: plans run on threads, each rank's output is kept, and tests look at its bits. An
 * element's bits follow from its rank and index alone, so a test can make them once more. */
#ifndef PCCL_TESTS_EXEC_NUMBERS_H
#define PCCL_TESTS_EXEC_NUMBERS_H

#include <polyccl/codegen.h>
#include <polyccl/compile.h>
#include <polyccl/language.h>
#include <polyccl/polyccl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "plan/plan.h"
#include "runtime/launcher.h"

/* Wide enough that its own roundings do not count. */
#ifdef __SIZEOF_FLOAT128__
typedef __float128 exact;
#else
typedef long double exact;
#endif

/* ---- formats ---- */

typedef struct format {
  int bits, fraction; /* of an element, of its significand without the leading one */
  bool endless;       /* no infinities: only the code of all ones is a NaN (f8e4m3) */
} format;

static inline format format_of(polyccl_dtype dtype) {
  switch (dtype) {
    case POLYCCL_FLOAT64: return (format){64, 52, false};
    case POLYCCL_FLOAT16: return (format){16, 10, false};
    case POLYCCL_BFLOAT16: return (format){16, 7, false};
    case POLYCCL_FLOAT8E4M3: return (format){8, 3, true};
    case POLYCCL_FLOAT8E5M2: return (format){8, 2, false};
    default: return (format){32, 23, false};
  }
}

static inline bool is_float(polyccl_dtype dtype) {
  return dtype == POLYCCL_FLOAT32 || dtype == POLYCCL_FLOAT64 || dtype == POLYCCL_FLOAT16 ||
         dtype == POLYCCL_BFLOAT16 || dtype == POLYCCL_FLOAT8E4M3 || dtype == POLYCCL_FLOAT8E5M2;
}

static inline uint64_t load_bits(const void *at, size_t bytes) {
  uint64_t bits = 0;
  memcpy(&bits, at, bytes); /* little-endian, as the buffers of all targets are */
  return bits;
}

static inline uint64_t float_bits(format f, uint64_t sign, uint64_t exponent, uint64_t fraction) {
  uint64_t most = ((uint64_t)1 << (f.bits - 1 - f.fraction)) - 1;
  return (sign & 1) << (f.bits - 1) | (exponent < most ? exponent : most) << f.fraction |
         (fraction & (((uint64_t)1 << f.fraction) - 1));
}

static inline uint64_t sign_bit(format f) { return (uint64_t)1 << (f.bits - 1); }
static inline uint64_t largest_exponent(format f) {
  return ((uint64_t)1 << (f.bits - 1 - f.fraction)) - (f.endless ? 1 : 2);
}
/* What a number becomes that is too large: without infinities the NaN. */
static inline uint64_t infinity_bits(format f) {
  return f.endless ? sign_bit(f) - 1 : float_bits(f, 0, largest_exponent(f) + 1, 0);
}
static inline uint64_t one_nan_bits(format f) { return infinity_bits(f) | (uint64_t)1 << (f.fraction - 1); }
static inline bool is_finite(format f, uint64_t bits) { return (bits & (sign_bit(f) - 1)) < infinity_bits(f); }
static inline bool is_nan(format f, uint64_t bits) {
  return f.endless ? !is_finite(f, bits) : (bits & (sign_bit(f) - 1)) > infinity_bits(f);
}
static inline uint64_t largest_bits(format f) { return infinity_bits(f) - 1; }

static inline exact power_of_two(int exponent) {
  exact result = 1, factor = exponent < 0 ? (exact)0.5 : (exact)2;
  for (unsigned left = (unsigned)(exponent < 0 ? -exponent : exponent); left > 0; left /= 2) {
    result *= left % 2 != 0 ? factor : 1;
    factor *= factor;
  }
  return result;
}

static inline int smallest_exponent(format f) {
  return 1 - (int)(largest_exponent(f) / 2) - f.fraction; /* of the smallest subnormal number */
}

/* Of a finite number. */
static inline exact number_of(format f, uint64_t bits) {
  uint64_t fraction = bits & (((uint64_t)1 << f.fraction) - 1);
  int exponent = (int)((bits & (sign_bit(f) - 1)) >> f.fraction);
  exact magnitude = exponent == 0 ? (exact)fraction : (exact)(fraction | (uint64_t)1 << f.fraction);
  magnitude *= power_of_two(smallest_exponent(f) + (exponent > 1 ? exponent - 1 : 0));
  return (bits & sign_bit(f)) != 0 ? -magnitude : magnitude;
}

static inline exact magnitude_of(exact x) { return x < 0 ? -x : x; }

/* ---- plans ---- */

/* `second`: GPUs of each of `first` nodes, or 0: `first` ranks. NULL: the program has no such placement. */
static inline polyccl_plan *compile_algorithm(const char *name, int first, int second, polyccl_placement placement,
                                              polyccl_verify_report *report) {
  char path[512], a[12], b[12];
  snprintf(path, sizeof path, "%s/algorithms/%s.lua", POLYCCL_SOURCE_DIR, name);
  snprintf(a, sizeof a, "%d", first);
  snprintf(b, sizeof b, "%d", second);
  polyccl_param params[2] = {{second > 0 ? "nodes" : "ranks", a}, {"gpus", b}};
  polyccl_program *program = NULL;
  polyccl_plan *plan = NULL;
  if (polyccl_program_load(path, params, second > 0 ? 2 : 1, &program) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  polyccl_compile_options options = {.size = sizeof(polyccl_compile_options), .placement = placement};
  polyccl_result result = polyccl_compile(program, &options, &plan);
  polyccl_program_destroy(program);
  if (result == POLYCCL_SUCCESS && polyccl_plan_verify(plan, report) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  return result == POLYCCL_SUCCESS ? plan : NULL;
}

/* The plan as generated C, compiled into `path`. */
static inline void generate_code(const polyccl_plan *plan, const char *path) {
  char source[300], command[1000];
  const char *compiler = getenv("CC") != NULL ? getenv("CC") : "cc";
  snprintf(source, sizeof source, "%s.c", path);
  snprintf(command, sizeof command, "%s -std=gnu17 -O1 -shared -fPIC -o %s %s", compiler, path, source);
  FILE *file = fopen(source, "w");
  if (file == NULL || polyccl_plan_generate(plan, POLYCCL_TARGET_C, file) != POLYCCL_SUCCESS || fclose(file) != 0 ||
      system(command) != 0) {
    fail_msg("cannot make %s", path);
  }
  remove(source);
}

/* ---- runs ---- */

typedef struct call_kind {
  polyccl_dtype dtype;
  polyccl_redop op;
} call_kind;

typedef uint64_t (*bits_fn)(polyccl_dtype dtype, polyccl_redop op, int ranks, int rank, size_t index);

typedef struct runs {
  const polyccl_plan *plan;
  const char *code; /* NULL: interpreted */
  size_t count;
  const call_kind *kind;
  int kinds;
  bits_fn bits;
  bool shared; /* memory that other processes could read, too */
  char **out;  /* [kinds x ranks] what each rank's output held */
} runs;

static inline polyccl_result run_one(polyccl_comm *comm, const runs *r, int id, int number) {
  pccl_collective_spec spec = pccl_plan_spec(r->plan);
  int rank = polyccl_comm_user_rank(comm), in, out;
  pccl_collective_shape(&spec, &in, &out);
  const call_kind *kind = &r->kind[number];
  size_t element = polyccl_dtype_size(kind->dtype), block = r->count * element;
  size_t in_bytes = (size_t)(in / spec.chunks) * block, out_bytes = (size_t)(out / spec.chunks) * block;
  void *first = NULL, *second = NULL;
  if (polyccl_mem_alloc(&first, in_bytes > out_bytes ? in_bytes : out_bytes) != POLYCCL_SUCCESS ||
      polyccl_mem_alloc(&second, out_bytes) != POLYCCL_SUCCESS) {
    return POLYCCL_ERROR_MEMORY;
  }
  char *input = first, *output = second;
  if (spec.inplace) {
    output = input + (size_t)(pccl_collective_cell(&spec, rank, true, 0) / spec.chunks) * block;
    input += (size_t)(pccl_collective_cell(&spec, rank, false, 0) / spec.chunks) * block;
  }
  for (size_t i = 0; i < in_bytes / element; i++) {
    uint64_t bits = r->bits(kind->dtype, kind->op, spec.ranks, rank, i);
    memcpy(input + i * element, &bits, element);
  }
  polyccl_result result = polyccl_run_plan(comm, id, input, output, r->count, kind->dtype, kind->op, NULL);
  char *kept = malloc(out_bytes + 1);
  if (kept != NULL) {
    memcpy(kept, output, out_bytes);
  }
  r->out[number * spec.ranks + rank] = kept;
  polyccl_mem_free(first);
  polyccl_mem_free(second);
  return result == POLYCCL_SUCCESS && kept == NULL ? POLYCCL_ERROR_MEMORY : result;
}

static inline polyccl_result run_rank(polyccl_comm *comm, void *argument) {
  const runs *r = argument;
  int id;
  polyccl_result result = r->code != NULL ? polyccl_comm_add_generated(comm, r->plan, r->code, &id)
                                          : polyccl_comm_add_plan(comm, r->plan, &id);
  for (int k = 0; k < r->kinds && result == POLYCCL_SUCCESS; k++) {
    result = run_one(comm, r, id, k);
  }
  return result;
}

/* Runs all kinds of calls; the outputs stand in r->out until free_outputs(). */
static inline void run_everywhere(runs *r) {
  r->out = calloc((size_t)(r->kinds * r->plan->ranks), sizeof *r->out);
  if (r->out == NULL || pccl_launch_threads(r->plan->ranks, run_rank, r) != POLYCCL_SUCCESS) {
    fail_msg("%s on %d ranks, %s: %s", r->plan->name, r->plan->ranks, polyccl_protocol_name(r->plan->protocol),
             polyccl_last_error());
  }
}

static inline void free_outputs(runs *r) {
  for (int i = 0; i < r->kinds * r->plan->ranks; i++) {
    free(r->out[i]);
  }
  free(r->out);
}

static inline uint64_t output_bits(const runs *r, int number, int rank, size_t index) {
  size_t element = polyccl_dtype_size(r->kind[number].dtype);
  return load_bits(r->out[number * r->plan->ranks + rank] + index * element, element);
}

/* The input element that output element `index` of the rank is the reduction of; false: the rank has no output. */
static inline bool input_index(const polyccl_plan *plan, int rank, size_t count, size_t index, size_t *input) {
  *input = plan->collective == POLYCCL_REDUCE_SCATTER ? (size_t)rank * count + index : index;
  return plan->collective != POLYCCL_REDUCE || rank == plan->root;
}

#endif
