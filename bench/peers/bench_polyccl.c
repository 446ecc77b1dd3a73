/* usage: bench_polyccl RANKS private|shared ALGORITHMS: PolyCCL under the common harness. ALGORITHMS is the folder of
 * the programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <polyccl/compile.h>
#include <polyccl/language.h>
#include <polyccl/polyccl.h>

#include "harness.h"
#include "runtime/launcher.h"

/* What runs at which sizes (bytes of the larger buffer); max 0: no limit. */
typedef struct choice {
  const char *program;
  polyccl_protocol protocol;
  size_t min, max;
} choice;

static const choice choices[] = {
    {"allreduce_oneshot.lua", POLYCCL_LL128, 0, 1024},
    {"allreduce_oneshot.lua", POLYCCL_SIMPLE, 1025, 8192},
    {"allreduce_allpairs.lua", POLYCCL_SIMPLE, 8193, 0},
    {"allgather_ring.lua", POLYCCL_LL128, 0, 1024},
    {"allgather_ring.lua", POLYCCL_SIMPLE, 1025, 0},
    {"reduce_scatter_ring.lua", POLYCCL_LL128, 0, 1024},
    {"reduce_scatter_ring.lua", POLYCCL_SIMPLE, 1025, 0},
    {"broadcast_chain.lua", POLYCCL_LL128, 0, 1024},
    {"broadcast_chain.lua", POLYCCL_SIMPLE, 1025, 0},
    {"alltoall.lua", POLYCCL_LL128, 0, 1024},
    {"alltoall.lua", POLYCCL_SIMPLE, 1025, 0},
};
enum { CHOICES = sizeof choices / sizeof choices[0] };

typedef struct setup {
  int ranks, shared;
  polyccl_plan *plan[CHOICES];
  void *board;
} setup;

static polyccl_comm *comm;

static void require(polyccl_result result) {
  if (result != POLYCCL_SUCCESS) {
    fprintf(stderr, "bench_polyccl: %s\n", polyccl_last_error());
    exit(1);
  }
}

static void *allocate_shared(size_t bytes) {
  void *memory = NULL;
  require(polyccl_mem_alloc(&memory, bytes));
  return memory;
}

static void *allocate_private(size_t bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, 4096, bytes) != 0) {
    exit(1);
  }
  return memory;
}

static void call(bench_op op, const float *in, float *out, size_t count) {
  switch (op) {
    case BENCH_ALLREDUCE: require(polyccl_allreduce(in, out, count, POLYCCL_FLOAT32, POLYCCL_SUM, comm)); break;
    case BENCH_ALLGATHER: require(polyccl_allgather(in, out, count, POLYCCL_FLOAT32, comm)); break;
    case BENCH_REDUCE_SCATTER:
      require(polyccl_reduce_scatter(in, out, count, POLYCCL_FLOAT32, POLYCCL_SUM, comm));
      break;
    case BENCH_BROADCAST: require(polyccl_broadcast(in, out, count, POLYCCL_FLOAT32, 0, comm)); break;
    default: require(polyccl_alltoall(in, out, count, POLYCCL_FLOAT32, comm)); break;
  }
}

static polyccl_result run_rank(polyccl_comm *mine, void *argument) {
  const setup *s = argument;
  comm = mine;
  for (int i = 0; i < CHOICES; i++) {
    require(polyccl_comm_add_plan(comm, s->plan[i], NULL));
  }
  bench_peer peer = {.name = s->shared ? "polyccl-shared" : "polyccl-private",
                     .rank = polyccl_comm_user_rank(comm),
                     .ranks = s->ranks,
                     .allocate = s->shared ? allocate_shared : allocate_private,
                     .call = call};
  if (bench_run(&peer, s->board) != 0) {
    fprintf(stderr, "bench_polyccl: wrong results\n");
    exit(1);
  }
  return POLYCCL_SUCCESS;
}

static void compile(setup *s, const char *folder, const char *ranks) {
  for (int i = 0; i < CHOICES; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, choices[i].program);
    polyccl_param param = {"ranks", ranks};
    polyccl_program *program;
    require(polyccl_program_load(path, &param, 1, &program));
    polyccl_compile_options options = {.placement = POLYCCL_OUT_OF_PLACE};
    require(polyccl_compile(program, &options, &s->plan[i]));
    polyccl_program_destroy(program);
    s->plan[i]->protocol = choices[i].protocol;
    s->plan[i]->min_bytes = choices[i].min;
    s->plan[i]->max_bytes = choices[i].max;
  }
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: bench_polyccl RANKS private|shared ALGORITHMS\n");
    return 2;
  }
  setup s = {.ranks = atoi(argv[1]), .shared = strcmp(argv[2], "shared") == 0};
  compile(&s, argv[3], argv[1]);
  s.board = mmap(NULL, bench_board_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (s.board == MAP_FAILED) {
    return 1;
  }
  require(pccl_launch_processes(s.ranks, run_rank, &s));
  for (int i = 0; i < CHOICES; i++) {
    polyccl_plan_destroy(s.plan[i]);
  }
  return 0;
}
