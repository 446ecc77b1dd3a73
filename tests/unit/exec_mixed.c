/* Ranks in place and out of place in one call: every collective by every shipped algorithm, compiled for either
 * placement, by generated code, and by the library's own plans, for all sets of ranks in place (some of them, where
 * there are many), as threads and as processes, in private and in shared memory. Every element says its rank and index.
 * Inputs of ranks that are out of place stay as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <polyccl/codegen.h>
#include <polyccl/compile.h>
#include <polyccl/language.h>
#include <polyccl/memory.h>
#include <polyccl/polyccl.h>

#include "runtime/launcher.h"

/* The thread sanitizer follows generated code only if that is compiled for it; it is slow, and gets a part. */
#if defined(__SANITIZE_THREAD__)
#define CODE_OPTIONS "-fsanitize=thread"
enum { SANITIZED = 1 };
#else
#define CODE_OPTIONS ""
enum { SANITIZED = 0 };
#endif

typedef struct shape {
  bool blocks_in, blocks_out, rooted_in, rooted_out; /* rooted: the root's alone counts */
} shape;

static const shape shapes[POLYCCL_COLLECTIVE_COUNT] = {
    [POLYCCL_ALLREDUCE] = {0},
    [POLYCCL_ALLGATHER] = {.blocks_out = true},
    [POLYCCL_REDUCE_SCATTER] = {.blocks_in = true},
    [POLYCCL_ALLTOALL] = {.blocks_in = true, .blocks_out = true},
    [POLYCCL_BROADCAST] = {.rooted_in = true},
    [POLYCCL_REDUCE] = {.rooted_out = true},
    [POLYCCL_GATHER] = {.blocks_out = true, .rooted_out = true},
    [POLYCCL_SCATTER] = {.blocks_in = true, .rooted_in = true},
};

typedef struct job {
  const char *name;
  polyccl_collective collective;
  polyccl_plan *plan; /* NULL: the library's own */
  const char *code;   /* NULL: interpreted */
  int root;
} job;

static int32_t value_at(int rank, size_t index) { return (int32_t)((size_t)rank * 1000003 + index * 7 + 1); }

static int32_t expected(polyccl_collective collective, int ranks, int rank, int root, size_t count, size_t i) {
  int32_t sum = 0;
  size_t at = collective == POLYCCL_REDUCE_SCATTER ? (size_t)rank * count + i : i;
  switch (collective) {
    case POLYCCL_ALLGATHER:
    case POLYCCL_GATHER: return value_at((int)(i / count), i % count);
    case POLYCCL_ALLTOALL: return value_at((int)(i / count), (size_t)rank * count + i % count);
    case POLYCCL_BROADCAST: return value_at(root, i);
    case POLYCCL_SCATTER: return value_at(root, (size_t)rank * count + i);
    default: break;
  }
  for (int r = 0; r < ranks; r++) {
    sum += value_at(r, at);
  }
  return sum;
}

static polyccl_result run(polyccl_comm *comm, const job *j, const void *send, void *recv, size_t count) {
  switch (j->collective) {
    case POLYCCL_ALLREDUCE: return polyccl_allreduce(send, recv, count, POLYCCL_INT32, POLYCCL_SUM, comm, NULL);
    case POLYCCL_ALLGATHER: return polyccl_allgather(send, recv, count, POLYCCL_INT32, comm, NULL);
    case POLYCCL_REDUCE_SCATTER:
      return polyccl_reduce_scatter(send, recv, count, POLYCCL_INT32, POLYCCL_SUM, comm, NULL);
    case POLYCCL_ALLTOALL: return polyccl_alltoall(send, recv, count, POLYCCL_INT32, comm, NULL);
    case POLYCCL_BROADCAST: return polyccl_broadcast(send, recv, count, POLYCCL_INT32, j->root, comm, NULL);
    case POLYCCL_REDUCE: return polyccl_reduce(send, recv, count, POLYCCL_INT32, POLYCCL_SUM, j->root, comm, NULL);
    case POLYCCL_GATHER: return polyccl_gather(send, recv, count, POLYCCL_INT32, j->root, comm, NULL);
    default: return polyccl_scatter(send, recv, count, POLYCCL_INT32, j->root, comm, NULL);
  }
}

typedef struct buffers {
  int32_t *a, *b;
  size_t room; /* elements of each */
} buffers;

/* What a rank passes in one call. `absent`: NULL where the rank gives or takes nothing. */
typedef struct call {
  size_t count;
  bool inplace, absent;
} call;

static polyccl_result check(const job *j, const call *c, int ranks, int rank, const int32_t *send, size_t in,
                            const int32_t *recv, size_t out, const int32_t *input) {
  const shape *s = &shapes[j->collective];
  bool takes = !s->rooted_out || rank == j->root;
  for (size_t i = 0; takes && i < out; i++) {
    int32_t wanted = expected(j->collective, ranks, rank, j->root, c->count, i);
    if (recv[i] != wanted) {
      fprintf(stderr, "%s on %d ranks, count %zu, root %d, rank %d %s: element %zu is %d, not %d\n", j->name, ranks,
              c->count, j->root, rank, c->inplace ? "in place" : "out of place", i, (int)recv[i], (int)wanted);
      return POLYCCL_ERROR_INTERNAL;
    }
  }
  if (!c->inplace && send != NULL && memcmp(send, input, in * sizeof *send) != 0) {
    fprintf(stderr, "%s on %d ranks, count %zu, root %d: rank %d's input has changed\n", j->name, ranks, c->count,
            j->root, rank);
    return POLYCCL_ERROR_INTERNAL;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result one(polyccl_comm *comm, const job *j, const call *c, buffers *m) {
  const shape *s = &shapes[j->collective];
  int rank = polyccl_comm_user_rank(comm), ranks = polyccl_comm_count(comm);
  size_t n = (size_t)ranks, in = c->count * (s->blocks_in ? n : 1), out = c->count * (s->blocks_out ? n : 1);
  bool gives = !s->rooted_in || rank == j->root, takes = !s->rooted_out || rank == j->root;
  int32_t *send = m->a, *recv = m->b, *input = malloc(in * sizeof *input);
  if (input == NULL) {
    return POLYCCL_ERROR_MEMORY;
  }
  for (size_t i = 0; i < m->room; i++) {
    m->a[i] = m->b[i] = -5;
  }
  if (c->inplace) {
    recv = s->blocks_in && !s->blocks_out ? m->a + (size_t)rank * c->count : m->a;
    send = s->blocks_out && !s->blocks_in ? m->a + (size_t)rank * c->count : m->a;
  }
  for (size_t i = 0; i < in; i++) {
    input[i] = gives ? value_at(rank, i) : -9;
  }
  memcpy(send, input, in * sizeof *send);
  int32_t *given = c->absent && !gives ? NULL : send, *taken = c->absent && !takes ? NULL : recv;
  polyccl_result result = run(comm, j, given, taken, c->count);
  int32_t *end = c->inplace ? m->a + (in > out ? in : out) : recv + out;
  if (result == POLYCCL_SUCCESS) {
    result = check(j, c, ranks, rank, send, in, recv, out, input);
  }
  if (result == POLYCCL_SUCCESS && *end != -5) {
    fprintf(stderr, "%s: rank %d wrote beyond its buffer\n", j->name, rank);
    result = POLYCCL_ERROR_INTERNAL;
  }
  free(input);
  return result;
}

static polyccl_result all_mixtures(polyccl_comm *comm, const job *j, buffers *m) {
  static const size_t counts[] = {1, 13, 997, 6000};
  int ranks = polyccl_comm_count(comm), rank = polyccl_comm_user_rank(comm);
  unsigned sets = ranks <= 4 ? 1u << ranks : 6;
  for (unsigned k = 0; k < sets; k++) {
    unsigned in_place = ranks <= 4 ? k : k * 0x9e3779b9u >> 13;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
      call c = {.count = counts[i], .inplace = (in_place >> rank & 1) != 0, .absent = (k + i) % 2 == 0};
      polyccl_result result = one(comm, j, &c, m);
      if (result != POLYCCL_SUCCESS) {
        return result;
      }
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result rank_of_job(polyccl_comm *comm, void *argument) {
  const job *j = argument;
  buffers m = {.room = 6000 * (size_t)polyccl_comm_count(comm) + 16};
  polyccl_result result = POLYCCL_SUCCESS;
  if (j->plan != NULL) {
    result = j->code != NULL ? polyccl_comm_add_generated(comm, j->plan, j->code, NULL)
                             : polyccl_comm_add_plan(comm, j->plan, NULL);
  }
  m.a = malloc(m.room * sizeof *m.a);
  m.b = malloc(m.room * sizeof *m.b);
  result = result == POLYCCL_SUCCESS && (m.a == NULL || m.b == NULL) ? POLYCCL_ERROR_MEMORY : result;
  result = result == POLYCCL_SUCCESS ? all_mixtures(comm, j, &m) : result;
  free(m.a);
  free(m.b);
  void *memory[2] = {NULL, NULL};
  for (int i = 0; i < 2 && result == POLYCCL_SUCCESS; i++) {
    result = polyccl_mem_alloc(&memory[i], m.room * sizeof(int32_t));
  }
  m.a = memory[0];
  m.b = memory[1];
  result = result == POLYCCL_SUCCESS ? all_mixtures(comm, j, &m) : result;
  polyccl_mem_free(memory[0]);
  polyccl_mem_free(memory[1]);
  return result;
}

static void run_job(const job *j, int ranks) {
  if (pccl_launch_threads(ranks, rank_of_job, (void *)j) != POLYCCL_SUCCESS ||
      pccl_launch_processes(ranks, rank_of_job, (void *)j) != POLYCCL_SUCCESS) {
    fail_msg("%s on %d ranks, root %d: %s", j->name, ranks, j->root, polyccl_last_error());
  }
}

/* NULL: the algorithm has no such form. */
static polyccl_plan *compile(const char *algorithm, int ranks, int root, polyccl_placement placement) {
  char path[256], number[16], root_text[16];
  snprintf(path, sizeof path, POLYCCL_SOURCE_DIR "/algorithms/%s.lua", algorithm);
  snprintf(number, sizeof number, "%d", ranks);
  snprintf(root_text, sizeof root_text, "%d", root);
  polyccl_param params[] = {{"ranks", number}, {"root", root_text}};
  polyccl_program *program;
  if (polyccl_program_load(path, params, root >= 0 ? 2 : 1, &program) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  polyccl_compile_options options = {.size = sizeof options, .placement = placement};
  polyccl_plan *plan = NULL;
  polyccl_compile(program, &options, &plan);
  polyccl_program_destroy(program);
  return plan;
}

static const char *const algorithms[] = {
    "allreduce_oneshot",
    "allreduce_allpairs",
    "allreduce_ring",
    "allreduce_halving_doubling",
    "allgather_ring",
    "allgather_allpairs",
    "reduce_scatter_ring",
    "reduce_scatter_allpairs",
    "alltoall",
    "broadcast_tree",
    "broadcast_chain",
    "reduce_tree",
    "reduce_chain",
    "gather",
    "scatter",
};
enum { ALGORITHMS = sizeof algorithms / sizeof algorithms[0] };

static bool is_rooted(const char *algorithm) {
  return strncmp(algorithm, "broadcast", 9) == 0 || strncmp(algorithm, "reduce_t", 8) == 0 ||
         strncmp(algorithm, "reduce_c", 8) == 0 || strcmp(algorithm, "gather") == 0 ||
         strcmp(algorithm, "scatter") == 0;
}

static void run_algorithms(int ranks, int to) {
  static const polyccl_placement placements[] = {POLYCCL_OUT_OF_PLACE, POLYCCL_EITHER_PLACE, POLYCCL_IN_PLACE};
  int done = 0;
  for (int a = 0; a < to; a++) {
    for (int p = 0; p < 3; p++) {
      int root = is_rooted(algorithms[a]) ? (a + p) % ranks : -1;
      polyccl_plan *plan = compile(algorithms[a], ranks, root, placements[p]);
      if (plan == NULL) {
        assert_true(placements[p] == POLYCCL_IN_PLACE && strcmp(algorithms[a], "alltoall") == 0);
        continue;
      }
      plan->protocol = (polyccl_protocol)((a + p + ranks) % 5 < 3 ? POLYCCL_SIMPLE : (a + p) % 2 + 1);
      job j = {algorithms[a], plan->collective, plan, NULL, root};
      run_job(&j, ranks);
      polyccl_plan_destroy(plan);
      done++;
    }
  }
  assert_true(done >= 3 * to - 1);
}

static void two_ranks(void **state) {
  (void)state;
  run_algorithms(2, ALGORITHMS);
}

static void three_ranks(void **state) {
  (void)state;
  run_algorithms(3, ALGORITHMS);
}

static void four_ranks(void **state) {
  (void)state;
  run_algorithms(4, SANITIZED ? 2 : ALGORITHMS);
}

static void eight_ranks(void **state) {
  (void)state;
  run_algorithms(8, SANITIZED ? 2 : ALGORITHMS);
}

static void own_plans(void **state) {
  (void)state;
  for (int collective = 0; collective < POLYCCL_COLLECTIVE_COUNT; collective++) {
    if (collective == POLYCCL_SENDRECV || collective == POLYCCL_CUSTOM) {
      continue;
    }
    for (int ranks = 1; ranks <= (SANITIZED ? 3 : 4); ranks++) {
      const char *name = polyccl_collective_name((polyccl_collective)collective);
      job j = {name, (polyccl_collective)collective, NULL, NULL, ranks - 1};
      run_job(&j, ranks);
    }
  }
}

static void generated_code(void **state) {
  (void)state;
  char folder[] = "/tmp/polyccl-mixed-XXXXXX", source[64], code[64], command[256];
  assert_non_null(mkdtemp(folder));
  snprintf(source, sizeof source, "%s/code.c", folder);
  const char *cc = getenv("CC") != NULL ? getenv("CC") : "cc";
  for (int a = 0; a < ALGORITHMS; a += 2) {
    int root = is_rooted(algorithms[a]) ? 1 : -1;
    polyccl_plan *plan = compile(algorithms[a], 3, root, a % 4 == 0 ? POLYCCL_EITHER_PLACE : POLYCCL_OUT_OF_PLACE);
    assert_non_null(plan);
    plan->protocol = (polyccl_protocol)(a / 2 % 3);
    FILE *file = fopen(source, "w");
    assert_non_null(file);
    assert_int_equal(polyccl_plan_generate(plan, POLYCCL_TARGET_C, file), POLYCCL_SUCCESS);
    assert_int_equal(fclose(file), 0);
    snprintf(code, sizeof code, "%s/code%d.so", folder, a);
    snprintf(command, sizeof command, "%s -std=gnu17 -O1 %s -shared -fPIC -o %s %s", cc, CODE_OPTIONS, code, source);
    assert_int_equal(system(command), 0);
    job j = {algorithms[a], plan->collective, plan, code, root};
    run_job(&j, 3);
    unlink(code);
    polyccl_plan_destroy(plan);
  }
  unlink(source);
  assert_int_equal(rmdir(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_ranks),   cmocka_unit_test(three_ranks), cmocka_unit_test(four_ranks),
      cmocka_unit_test(eight_ranks), cmocka_unit_test(own_plans),   cmocka_unit_test(generated_code),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
