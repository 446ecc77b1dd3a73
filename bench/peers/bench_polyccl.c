/* usage: bench_polyccl RANKS private|shared: PolyCCL, with its own plans, under the common harness. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <polyccl/polyccl.h>

#include "harness.h"
#include "runtime/launcher.h"

typedef struct setup {
  int ranks, shared;
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
    case BENCH_ALLREDUCE: require(polyccl_allreduce(in, out, count, POLYCCL_FLOAT32, POLYCCL_SUM, comm, NULL)); break;
    case BENCH_ALLGATHER: require(polyccl_allgather(in, out, count, POLYCCL_FLOAT32, comm, NULL)); break;
    case BENCH_REDUCE_SCATTER:
      require(polyccl_reduce_scatter(in, out, count, POLYCCL_FLOAT32, POLYCCL_SUM, comm, NULL));
      break;
    case BENCH_BROADCAST: require(polyccl_broadcast(in, out, count, POLYCCL_FLOAT32, 0, comm, NULL)); break;
    default: require(polyccl_alltoall(in, out, count, POLYCCL_FLOAT32, comm, NULL)); break;
  }
}

static polyccl_result run_rank(polyccl_comm *mine, void *argument) {
  const setup *s = argument;
  comm = mine;
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

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: bench_polyccl RANKS private|shared\n");
    return 2;
  }
  setup s = {.ranks = atoi(argv[1]), .shared = strcmp(argv[2], "shared") == 0};
  s.board = mmap(NULL, bench_board_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (s.board == MAP_FAILED) {
    return 1;
  }
  require(pccl_launch_processes(s.ranks, run_rank, &s));
  return 0;
}
