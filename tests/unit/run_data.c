/* The checker of polyccl run: on random custom collectives, counts, types and reductions it calls right what the
 * library computes and an exact reference confirms, and finds every element that has one bit changed and every
 * reduction that lacks a contribution. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <polyccl/compile.h>
#include <polyccl/program.h>

#include "../../tools/run.h"
#include "base/map.h"
#include "exec_util.h"
#include "runtime/launcher.h"

/* Sanitizers are slow at starting threads. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { PLANS = 12 };
#else
enum { PLANS = 48 };
#endif
enum { MAX_RANKS = 4, MAX_CHUNKS = 400, MAX_MUTATED = 4 };

static uint64_t random_state = 1;
static unsigned below(unsigned n) { return (unsigned)(pccl_mix64(random_state++) % n); }

/* ---- exact values ---- */

static long double decode(polyccl_dtype dtype, const char *at) {
  switch (dtype) {
    case POLYCCL_FLOAT32: return *(const float *)(const void *)at;
    case POLYCCL_FLOAT64: return *(const double *)(const void *)at;
    case POLYCCL_BFLOAT16: {
      uint32_t bits = (uint32_t)(*(const uint16_t *)(const void *)at) << 16;
      float value;
      memcpy(&value, &bits, sizeof value);
      return value;
    }
    case POLYCCL_FLOAT16: {
      unsigned bits = *(const uint16_t *)(const void *)at, exponent = bits >> 10 & 31, fraction = bits & 1023;
      long double size = exponent == 31  ? (fraction == 0 ? (long double)INFINITY : (long double)NAN)
                         : exponent == 0 ? ldexpl(fraction, -24)
                                         : ldexpl(1024 + fraction, (int)exponent - 25);
      return bits & 0x8000 ? -size : size;
    }
    case POLYCCL_FLOAT8E4M3:
    case POLYCCL_FLOAT8E5M2: {
      unsigned bits = *(const uint8_t *)(const void *)at, magnitude = bits & 0x7f;
      int fraction = dtype == POLYCCL_FLOAT8E4M3 ? 3 : 2, bias = fraction == 3 ? 7 : 15;
      int exponent = (int)(magnitude >> fraction), rest = (int)(magnitude & ((1u << fraction) - 1));
      long double size =
          ldexpl(exponent == 0 ? rest : rest + (1 << fraction), (exponent > 0 ? exponent : 1) - bias - fraction);
      size = magnitude == (fraction == 3 ? 0x7fu : 0x7cu) ? (long double)INFINITY : size;
      return bits & 0x80 ? -size : size;
    }
    default: return 0;
  }
}

static uint64_t decode_integer(polyccl_dtype dtype, const char *at) {
  switch (dtype) {
    case POLYCCL_INT32: return (uint64_t)(int64_t) * (const int32_t *)(const void *)at;
    case POLYCCL_INT8: return (uint64_t)(int64_t) * (const int8_t *)(const void *)at;
    case POLYCCL_UINT32: return *(const uint32_t *)(const void *)at;
    case POLYCCL_UINT8:
    case POLYCCL_BOOL: return *(const uint8_t *)(const void *)at;
    case POLYCCL_UINT64:
    case POLYCCL_INT64: return *(const uint64_t *)(const void *)at;
    default: return 0;
  }
}

static bool is_integer(polyccl_dtype dtype) {
  return dtype == POLYCCL_INT32 || dtype == POLYCCL_INT64 || dtype == POLYCCL_UINT8 || dtype == POLYCCL_UINT32 ||
         dtype == POLYCCL_UINT64 || dtype == POLYCCL_INT8 || dtype == POLYCCL_BOOL;
}

static long double largest(polyccl_dtype dtype) {
  switch (dtype) {
    case POLYCCL_FLOAT16: return 65504;
    case POLYCCL_FLOAT64: return 0x1.fffffffffffffp1023L;
    case POLYCCL_FLOAT8E4M3: return 448;
    case POLYCCL_FLOAT8E5M2: return 57344;
    default: return 3.4e38L;
  }
}

typedef struct sum {
  polyccl_dtype dtype;
  polyccl_redop op;
  int addends;
  long double value;
  uint64_t integer;
} sum;

static uint64_t either_or_both(polyccl_redop op, uint64_t a, uint64_t b) {
  return op == POLYCCL_SUM || op == POLYCCL_MAX ? a + b > 0 : a * b > 0;
}

static bool is_below(polyccl_dtype dtype, uint64_t a, uint64_t b) {
  return dtype == POLYCCL_UINT64 ? a < b : (int64_t)a < (int64_t)b;
}

static void add(sum *s, const char *at) {
  long double value = decode(s->dtype, at);
  uint64_t integer = decode_integer(s->dtype, at);
  if (s->addends++ == 0) {
    s->value = value;
    s->integer = integer;
    return;
  }
  if (s->dtype == POLYCCL_BOOL) {
    s->integer = either_or_both(s->op, s->integer, integer);
    return;
  }
  switch (s->op) {
    case POLYCCL_PROD:
      s->value *= value;
      s->integer *= integer;
      break;
    case POLYCCL_MIN:
      s->value = fminl(s->value, value);
      s->integer = is_below(s->dtype, integer, s->integer) ? integer : s->integer;
      break;
    case POLYCCL_MAX:
      s->value = fmaxl(s->value, value);
      s->integer = is_below(s->dtype, s->integer, integer) ? integer : s->integer;
      break;
    default:
      s->value += value;
      s->integer += integer;
      break;
  }
}

static bool is_right(const sum *s, const char *got) {
  if (is_integer(s->dtype)) {
    uint64_t mask = UINT64_MAX >> (64 - 8 * polyccl_dtype_size(s->dtype));
    return ((s->integer ^ decode_integer(s->dtype, got)) & mask) == 0;
  }
  long double value = decode(s->dtype, got);
  if (s->dtype == POLYCCL_FLOAT8E4M3 && fabsl(s->value) > largest(s->dtype)) {
    return *got == 0x7f;
  }
  return fabsl(s->value) > largest(s->dtype) ? isinf(value) && signbit(value) == signbit(s->value) : value == s->value;
}

/* ---- random custom collectives ---- */

typedef struct post {
  int rank, chunk, leaves;
  polyccl_leaf leaf[MAX_RANKS * MAX_CHUNKS];
} post;

/* `same_place`: all contributions come from the chunk's own place, so any count works. */
static void random_post(post *p, int ranks, int chunks, bool same_place, int max) {
  static bool taken[MAX_RANKS * MAX_CHUNKS];
  memset(taken, 0, sizeof taken);
  int wanted = 1 + (int)below((unsigned)max);
  p->leaves = 0;
  for (int tries = 0; tries < 4 * wanted && p->leaves < wanted; tries++) {
    int rank = (int)below((unsigned)ranks), chunk = same_place ? p->chunk : (int)below((unsigned)chunks);
    if (!taken[rank * chunks + chunk]) {
      taken[rank * chunks + chunk] = true;
      p->leaf[p->leaves++] = (polyccl_leaf){rank, chunk};
    }
  }
}

/* Moves what the post says into place; the last `lacking` leaves are left out. */
static void write_post(polyccl_program *program, const post *p, int lacking) {
  const polyccl_location nowhere = {NULL, 0};
  polyccl_ref from, to;
  for (int i = 0; i < p->leaves - lacking; i++) {
    assert_int_equal(
        polyccl_program_chunk(program, p->leaf[i].rank, POLYCCL_INPUT, p->leaf[i].chunk, 1, nowhere, &from),
        POLYCCL_SUCCESS);
    polyccl_result result =
        i == 0 ? polyccl_program_copy(program, &from, p->rank, POLYCCL_OUTPUT, p->chunk, POLYCCL_NO_HINTS, nowhere, &to)
               : polyccl_program_reduce(program, &to, &from, POLYCCL_NO_HINTS, nowhere, &to);
    assert_int_equal(result, POLYCCL_SUCCESS);
  }
}

/* What it says of itself lacks what it does not do, so that it compiles. */
static polyccl_plan *compile_posts(int ranks, int chunks, const post *posts, int count, int lacking) {
  polyccl_program_config config = {.size = sizeof(polyccl_program_config),
                                   .name = "random",
                                   .collective = POLYCCL_CUSTOM,
                                   .ranks = ranks,
                                   .chunks = chunks};
  polyccl_program *program;
  polyccl_plan *plan;
  assert_int_equal(polyccl_program_create(&config, &program), POLYCCL_SUCCESS);
  for (int i = 0; i < count; i++) {
    assert_int_equal(polyccl_program_post(program, posts[i].rank, posts[i].chunk, posts[i].leaf,
                                          posts[i].leaves - (i == 0 ? lacking : 0)),
                     POLYCCL_SUCCESS);
  }
  for (int i = 0; i < count; i++) {
    write_post(program, &posts[i], i == 0 ? lacking : 0);
  }
  assert_int_equal(polyccl_compile(program, NULL, &plan), POLYCCL_SUCCESS);
  polyccl_program_destroy(program);
  return plan;
}

/* ---- one call ---- */

typedef struct trial {
  const polyccl_plan *plan;
  size_t count;
  polyccl_dtype dtype;
  polyccl_redop op;
  char *input[MAX_RANKS], *output[MAX_RANKS];
  polyccl_result result;
} trial;

static polyccl_result call(polyccl_comm *comm, void *argument) {
  trial *t = argument;
  int id, rank = polyccl_comm_user_rank(comm);
  polyccl_result result = polyccl_comm_add_plan(comm, t->plan, &id);
  if (result == POLYCCL_SUCCESS) {
    result = polyccl_run_plan(comm, id, t->input[rank], t->output[rank], t->count, t->dtype, t->op, NULL);
  }
  return result;
}

static void run_trial(trial *t) {
  size_t bytes = t->count * polyccl_dtype_size(t->dtype) + 1;
  for (int rank = 0; rank < t->plan->ranks; rank++) {
    t->input[rank] = malloc(bytes);
    t->output[rank] = malloc(bytes);
    memset(t->output[rank], 0x5a, bytes);
    pccl_run_fill(t->plan, rank, t->dtype, t->op, t->count, t->input[rank]);
  }
  t->result = pccl_launch_threads(t->plan->ranks, call, t);
}

static void free_trial(trial *t) {
  for (int rank = 0; rank < t->plan->ranks; rank++) {
    free(t->input[rank]);
    free(t->output[rank]);
  }
}

static uint64_t wrong_by(const trial *t, const polyccl_plan *plan, int rank) {
  return pccl_run_wrong(plan, rank, t->dtype, t->op, t->count, t->output[rank]);
}

/* First and number of elements of a chunk, as docs/plan.md says. */
static size_t first_of(const trial *t, int chunk, size_t *length) {
  size_t chunks = (size_t)t->plan->chunks, stride = (t->count + chunks - 1) / chunks, at = (size_t)chunk * stride;
  if (t->count % chunks != 0 && stride * polyccl_dtype_size(t->dtype) >= 4096) {
    stride = (stride + 63) / 64 * 64;
    at = (size_t)chunk * stride;
  }
  at = at < t->count ? at : t->count;
  *length = t->count - at < stride ? t->count - at : stride;
  return at;
}

static void check_post(const trial *t, const post *p, uint64_t *mutated) {
  size_t length, other, element = polyccl_dtype_size(t->dtype), at = first_of(t, p->chunk, &length);
  for (size_t i = 0; i < length; i++) {
    sum s = {.dtype = t->dtype, .op = t->op};
    for (int l = 0; l < p->leaves; l++) {
      add(&s, t->input[p->leaf[l].rank] + (first_of(t, p->leaf[l].chunk, &other) + i) * element);
    }
    char *got = t->output[p->rank] + (at + i) * element;
    if (!is_right(&s, got)) {
      print_error("%s %s count %zu, %d chunks: element %zu of %d addends is not exact\n", polyccl_dtype_name(t->dtype),
                  polyccl_redop_name(t->op), t->count, t->plan->chunks, at + i, p->leaves);
      fail();
    }
    if (i == 0 || i + 1 == length) {
      got[0] ^= 1;
      assert_int_equal(wrong_by(t, t->plan, p->rank), 1);
      got[0] ^= 1;
      ++*mutated;
    }
  }
}

static void check_trial(trial *t, const post *posts, int count, uint64_t *mutated) {
  run_trial(t);
  if (t->result != POLYCCL_SUCCESS) {
    print_error("%s\n", polyccl_last_error());
  }
  assert_int_equal(t->result, POLYCCL_SUCCESS);
  for (int rank = 0; rank < t->plan->ranks; rank++) {
    assert_int_equal(wrong_by(t, t->plan, rank), 0);
  }
  for (int i = 0; i < count && i < MAX_MUTATED; i++) {
    check_post(t, &posts[i], mutated);
  }
  free_trial(t);
}

static bool defined(polyccl_redop op) { return op != POLYCCL_AVG; } /* for custom collectives */

static void custom_collectives(void **state) {
  (void)state;
  static const size_t counts[] = {0, 1, 2, 3, 7, 29, 97, 1031, 8200};
  static post posts[12];
  uint64_t mutated[POLYCCL_DTYPE_COUNT][POLYCCL_REDOP_COUNT] = {{0}};
  for (int n = 0; n < PLANS; n++) {
    bool same_place = n % 2 == 0, many = n % 6 == 5; /* many: more addends than some types have integers */
    int ranks = 1 + (int)below(MAX_RANKS), chunks = many ? MAX_CHUNKS : 1 + (int)below(9), count = 0;
    for (int i = 0; i < 12 && i < ranks * chunks; i++) {
      posts[count] = (post){.rank = i % ranks, .chunk = i / ranks};
      random_post(&posts[count++], ranks, chunks, same_place, same_place ? ranks : ranks * chunks);
    }
    polyccl_plan *plan = compile_posts(ranks, chunks, posts, count, 0);
    for (int dtype = 0; dtype < POLYCCL_DTYPE_COUNT; dtype++) {
      for (int op = 0; op < POLYCCL_REDOP_COUNT; op++) {
        size_t wanted = counts[below(sizeof counts / sizeof counts[0])];
        trial t = {.plan = plan, .dtype = (polyccl_dtype)dtype, .op = (polyccl_redop)op};
        t.count = same_place ? wanted : wanted % 40 * (size_t)chunks;
        if (defined(t.op)) {
          check_trial(&t, posts, count, &mutated[dtype][op]);
        }
      }
    }
    polyccl_plan_destroy(plan);
  }
  for (int dtype = 0; dtype < POLYCCL_DTYPE_COUNT; dtype++) {
    for (int op = 0; op < POLYCCL_REDOP_COUNT; op++) {
      assert_true(!defined((polyccl_redop)op) || mutated[dtype][op] > PLANS / 2);
    }
  }
}

/* A contribution that is missing is found in every type and reduction, with few addends and with many. */
static void missing_contributions(void **state) {
  (void)state;
  static post posts[2];
  for (int many = 0; many < 2; many++) {
    int chunks = many ? 300 : 3;
    for (int i = 0; i < 2; i++) {
      posts[i] = (post){.rank = i, .chunk = 0, .leaves = chunks};
      for (int c = 0; c < chunks; c++) {
        posts[i].leaf[c] = (polyccl_leaf){c % 2, c};
      }
    }
    polyccl_plan *right = compile_posts(2, chunks, posts, 2, 0), *wrong = compile_posts(2, chunks, posts, 2, 1);
    for (int dtype = 0; dtype < POLYCCL_DTYPE_COUNT; dtype++) {
      for (int op = 0; op < POLYCCL_REDOP_COUNT; op++) {
        if (defined((polyccl_redop)op)) {
          trial t = {.plan = wrong, .dtype = (polyccl_dtype)dtype, .op = (polyccl_redop)op};
          t.count = (polyccl_dtype_size(t.dtype) > 1 ? 2000 : 4000) * (size_t)chunks;
          run_trial(&t);
          assert_int_equal(t.result, POLYCCL_SUCCESS);
          assert_true(wrong_by(&t, right, 0) > 0);
          assert_int_equal(wrong_by(&t, right, 1), 0);
          free_trial(&t);
        }
      }
    }
    polyccl_plan_destroy(right);
    polyccl_plan_destroy(wrong);
  }
}

/* Collectives on rings, averages among them: as the definition says, and one changed bit is found. */
static void collectives(void **state) {
  (void)state;
  static const size_t counts[] = {0, 1, 3, 64, 1031};
  for (int ranks = 1; ranks <= MAX_RANKS; ranks++) {
    polyccl_plan *plan = make_ring(ranks, false, POLYCCL_SIMPLE);
    for (int dtype = 0; dtype < POLYCCL_DTYPE_COUNT; dtype++) {
      for (int op = 0; op < POLYCCL_REDOP_COUNT; op++) {
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
          trial t = {.plan = plan, .count = counts[c], .dtype = (polyccl_dtype)dtype, .op = (polyccl_redop)op};
          run_trial(&t);
          if (t.dtype == POLYCCL_BOOL && t.op == POLYCCL_AVG) {
            assert_int_equal(t.result, POLYCCL_ERROR_UNSUPPORTED);
            free_trial(&t);
            continue;
          }
          assert_int_equal(t.result, POLYCCL_SUCCESS);
          for (int rank = 0; rank < ranks; rank++) {
            char *output = t.output[rank];
            assert_int_equal(wrong_by(&t, plan, rank), 0);
            if (t.count > 0) {
              output[(t.count - 1) * polyccl_dtype_size(t.dtype)] ^= 1;
              assert_int_equal(wrong_by(&t, plan, rank), 1);
            }
          }
          free_trial(&t);
        }
      }
    }
    polyccl_plan_destroy(plan);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(custom_collectives),
      cmocka_unit_test(missing_contributions),
      cmocka_unit_test(collectives),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
