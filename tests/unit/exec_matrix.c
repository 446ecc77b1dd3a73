/* Every algorithm on every number of ranks, count, type, reduction, placement and protocol moves the right data: each
 * element is compared with an independent computation from the collective's definition, the bytes around the buffers
 * must stay as they are. `quick` takes a part of the combinations, `all` takes them all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <polyccl/compile.h>
#include <polyccl/language.h>

#include "../../tools/run.h"
#include "base/map.h"
#include "exec_util.h"
#include "kernel/reduce.h"
#include "plan/plan.h"
#include "runtime/launcher.h"

enum { GUARD = 192, GUARD_BYTE = 0xa5 };

/* The sanitizers run ranks as threads, where they see all. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static const struct {
  const char *file;
  bool grid; /* nodes x gpus instead of ranks */
  bool power_of_two;
} algorithms[] = {
    {"allgather_ring", false, false},
    {"allgather_tree", false, false},
    {"allreduce_allpairs", false, false},
    {"allreduce_halving_doubling", false, true},
    {"allreduce_hierarchical", true, false},
    {"allreduce_oneshot", false, false},
    {"allreduce_ring", false, false},
    {"allreduce_tree", false, false},
    {"alltoall", false, false},
    {"alltoall_three_step", true, false},
    {"alltoall_two_step", true, false},
    {"alltonext", true, false},
    {"broadcast_chain", false, false},
    {"broadcast_tree", false, false},
    {"gather", false, false},
    {"reduce_chain", false, false},
    {"reduce_scatter_ring", false, false},
    {"reduce_scatter_tree", false, false},
    {"scatter", false, false},
};
enum { ALGORITHMS = sizeof algorithms / sizeof algorithms[0] };

static const int rank_numbers[] = {1, 2, 3, 4, 5, 7, 8};
static const int grids[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 2}, {2, 3}, {2, 4}};
enum { SIZES = 7 };

static unsigned every = 1; /* of the combinations */

typedef struct job {
  const polyccl_plan *plan;
  bool uneven, shared;
  size_t offset;
  unsigned seed;
} job;

typedef struct memory {
  char *at, *begin;
  size_t bytes;
} memory;

static bool make_memory(const job *j, size_t bytes, size_t shift, memory *m) {
  size_t all = bytes + shift + 2 * GUARD;
  void *made = j->shared ? NULL : malloc(all);
  if (j->shared && polyccl_mem_alloc(&made, all) != POLYCCL_SUCCESS) {
    return false;
  }
  if (made == NULL) {
    return false;
  }
  memset(made, GUARD_BYTE, all);
  *m = (memory){made, (char *)made + GUARD + shift, bytes};
  return true;
}

static void free_memory(const job *j, memory *m) {
  if (j->shared) {
    polyccl_mem_free(m->at);
  } else {
    free(m->at);
  }
}

static bool guards_hold(const memory *m) {
  for (const char *p = m->at; p < m->begin; p++) {
    if ((unsigned char)*p != GUARD_BYTE) {
      return false;
    }
  }
  for (size_t i = 0; i < GUARD; i++) {
    if ((unsigned char)m->begin[m->bytes + i] != GUARD_BYTE) {
      return false;
    }
  }
  return true;
}

static polyccl_result one_call(polyccl_comm *comm, const job *j, int id, size_t count, polyccl_dtype dtype,
                               polyccl_redop op) {
  const polyccl_plan *plan = j->plan;
  int rank = polyccl_comm_user_rank(comm), in, out;
  pccl_collective_spec spec = pccl_plan_spec(plan);
  pccl_collective_shape(&spec, &in, &out);
  size_t element = polyccl_dtype_size(dtype), chunks = (size_t)plan->chunks;
  size_t in_bytes = count * (size_t)in / chunks * element, out_bytes = count * (size_t)out / chunks * element;
  size_t shift = j->offset * element;
  memory first = {0}, second = {0};
  if (!make_memory(j, plan->inplace && out_bytes > in_bytes ? out_bytes : in_bytes, shift, &first) ||
      !make_memory(j, plan->inplace ? 0 : out_bytes, shift, &second)) {
    return POLYCCL_ERROR_MEMORY;
  }
  char *input = first.begin, *output = second.begin;
  if (plan->inplace) {
    output = input + (size_t)(pccl_collective_cell(&spec, rank, true, 0) / plan->chunks) * count * element;
    input += (size_t)(pccl_collective_cell(&spec, rank, false, 0) / plan->chunks) * count * element;
  }
  pccl_run_fill(plan, rank, dtype, op, count, input);
  polyccl_result result = polyccl_run_plan(comm, id, input, output, count, dtype, op, NULL);
  if (result == POLYCCL_SUCCESS) {
    uint64_t wrong = pccl_run_wrong(plan, rank, dtype, op, count, output);
    if (wrong > 0 || !guards_hold(&first) || !guards_hold(&second)) {
      fprintf(stderr, "rank %d: %s, %d ranks, %s, count %zu, %s, %s, %s, %s buffers: %llu wrong, guards %s\n", rank,
              plan->name, plan->ranks, polyccl_protocol_name(plan->protocol), count, polyccl_dtype_name(dtype),
              polyccl_redop_name(op), plan->inplace ? "in place" : "out of place", j->shared ? "shared" : "private",
              (unsigned long long)wrong, guards_hold(&first) && guards_hold(&second) ? "hold" : "overwritten");
      result = POLYCCL_ERROR_INTERNAL;
    }
  }
  free_memory(j, &first);
  free_memory(j, &second);
  return result;
}

static polyccl_result calls(polyccl_comm *comm, void *argument) {
  const job *j = argument;
  size_t n = (size_t)polyccl_comm_count(comm);
  const size_t counts[] = {0, 1, n - 1, n, n + 1, 13, 257, 65537};
  bool reduces = pccl_collective_reduces(j->plan->collective) && j->plan->collective != POLYCCL_CUSTOM;
  int id;
  polyccl_result result = polyccl_comm_add_plan(comm, j->plan, &id);
  for (unsigned c = 0; c < sizeof counts / sizeof counts[0]; c++) {
    size_t count = counts[c];
    if (!j->uneven) {
      count = count / (size_t)j->plan->chunks * (size_t)j->plan->chunks;
    }
    for (unsigned k = 0; k < POLYCCL_DTYPE_COUNT * POLYCCL_REDOP_COUNT && result == POLYCCL_SUCCESS; k++) {
      polyccl_redop op = (polyccl_redop)(k / POLYCCL_DTYPE_COUNT);
      /* The large count once per plan, the type and reduction turn with the seed; other plans have other turns. */
      bool turn = k == (j->seed + c) % (POLYCCL_DTYPE_COUNT * POLYCCL_REDOP_COUNT);
      if ((count > 1000 && !turn) || (!reduces && op != POLYCCL_SUM) ||
          !pccl_reduction_defined((polyccl_dtype)(k % POLYCCL_DTYPE_COUNT), op)) {
        continue;
      }
      result = one_call(comm, j, id, count, (polyccl_dtype)(k % POLYCCL_DTYPE_COUNT), op);
    }
  }
  return result;
}

static polyccl_plan *compile(int algorithm, int size, polyccl_placement placement, polyccl_verify_report *report) {
  char path[512], a[12], b[12];
  snprintf(path, sizeof path, "%s/algorithms/%s.lua", POLYCCL_SOURCE_DIR, algorithms[algorithm].file);
  bool grid = algorithms[algorithm].grid;
  snprintf(a, sizeof a, "%d", grid ? grids[size][0] : rank_numbers[size]);
  snprintf(b, sizeof b, "%d", grid ? grids[size][1] : 0);
  polyccl_param params[2] = {{grid ? "nodes" : "ranks", a}, {"gpus", b}};
  polyccl_program *program = NULL;
  if (polyccl_program_load(path, params, grid ? 2 : 1, &program) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  polyccl_plan *plan = NULL;
  polyccl_compile_options options = {.size = sizeof(polyccl_compile_options), .placement = placement};
  polyccl_result result = polyccl_compile(program, &options, &plan);
  bool written_in_place = polyccl_program_get_config(program)->inplace;
  polyccl_program_destroy(program);
  if (result != POLYCCL_SUCCESS) {
    /* Only the placement that the program was not written for may be impossible. */
    if (written_in_place == (placement == POLYCCL_IN_PLACE)) {
      fail_msg("%s", polyccl_last_error());
    }
    return NULL;
  }
  assert_int_equal(polyccl_plan_verify(plan, report), POLYCCL_SUCCESS);
  return plan;
}

static bool is_power_of_two(int n) { return (n & (n - 1)) == 0; }

static void every_algorithm_moves_the_right_data(void **state) {
  (void)state;
  unsigned number = 0, ran = 0;
  for (int a = 0; a < ALGORITHMS; a++) {
    for (int size = 0; size < SIZES; size++) {
      if (algorithms[a].power_of_two && !is_power_of_two(rank_numbers[size])) {
        continue;
      }
      for (int placement = POLYCCL_IN_PLACE; placement <= POLYCCL_OUT_OF_PLACE; placement++) {
        polyccl_plan *plan = NULL;
        polyccl_verify_report report;
        for (int protocol = 0; protocol < POLYCCL_PROTOCOL_COUNT; protocol++) {
          unsigned seed = (unsigned)pccl_mix64(++number);
          if (seed % every != 0) {
            continue;
          }
          if (plan == NULL && (plan = compile(a, size, (polyccl_placement)placement, &report)) == NULL) {
            break;
          }
          plan->protocol = (polyccl_protocol)protocol;
          seed /= every;
          job j = {plan, report.uneven, seed % 2 != 0, seed / 2 % 2, seed / 8};
          bool threads = SANITIZED || seed / 4 % 2 != 0;
          polyccl_result result =
              threads ? pccl_launch_threads(plan->ranks, calls, &j) : pccl_launch_processes(plan->ranks, calls, &j);
          if (result != POLYCCL_SUCCESS) {
            fail_msg("%s on %d ranks, %s, %s: %s", algorithms[a].file, plan->ranks,
                     polyccl_protocol_name(plan->protocol), plan->inplace ? "in place" : "out of place",
                     polyccl_last_error());
          }
          ran++;
        }
        polyccl_plan_destroy(plan);
      }
    }
  }
  printf("%u plans ran\n", ran);
  assert_true(ran * every * 2 > number);
}

int main(int argc, char **argv) {
  bool quick = argc < 2 || strcmp(argv[1], "all") != 0;
  every = quick ? (SANITIZED ? 40 : 16) : 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_algorithm_moves_the_right_data)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
