/* usage: bench_polyccl RANKS private|shared: PolyCCL, with its own plans, under the common harness. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fork.h"
#include "harness.h"

static polyccl_comm *comm;
static int my_rank;

#ifdef BENCH_NO_STREAMS
static void send_and_receive(bench_op op, const float *in, float *out, size_t count) {
  (void)op, (void)in, (void)out, (void)count;
  fprintf(stderr, "bench_polyccl: this library has no send and recv\n");
  _exit(1);
}
#else
static void send_and_receive(bench_op op, const float *in, float *out, size_t count) {
  int peer = 1 - my_rank;
  if (op == BENCH_SENDRECV) {
    bench_require(polyccl_group_start());
    bench_require(polyccl_send(in, count, POLYCCL_FLOAT32, peer, comm, NULL));
    bench_require(polyccl_recv(out, count, POLYCCL_FLOAT32, peer, comm, NULL));
    bench_require(polyccl_group_end());
  } else if (my_rank == 0) {
    bench_require(polyccl_send(in, count, POLYCCL_FLOAT32, peer, comm, NULL));
    bench_require(polyccl_recv(out, count, POLYCCL_FLOAT32, peer, comm, NULL));
  } else {
    bench_require(polyccl_recv(out, count, POLYCCL_FLOAT32, peer, comm, NULL));
    bench_require(polyccl_send(in, count, POLYCCL_FLOAT32, peer, comm, NULL));
  }
}
#endif

static void call(bench_op op, const float *in, float *out, size_t count, int root) {
  switch (op) {
    case BENCH_ALLREDUCE:
      bench_require(polyccl_allreduce(in, out, count, POLYCCL_FLOAT32, POLYCCL_SUM, BENCH_BLOCKING(comm)));
      break;
    case BENCH_ALLGATHER:
      bench_require(polyccl_allgather(in, out, count, POLYCCL_FLOAT32, BENCH_BLOCKING(comm)));
      break;
    case BENCH_REDUCE_SCATTER:
      bench_require(polyccl_reduce_scatter(in, out, count, POLYCCL_FLOAT32, POLYCCL_SUM, BENCH_BLOCKING(comm)));
      break;
    case BENCH_BROADCAST_IN_PLACE:
      bench_require(polyccl_broadcast(out, out, count, POLYCCL_FLOAT32, root, BENCH_BLOCKING(comm)));
      break;
    case BENCH_BROADCAST:
      bench_require(polyccl_broadcast(in, out, count, POLYCCL_FLOAT32, root, BENCH_BLOCKING(comm)));
      break;
    case BENCH_ALLTOALL: bench_require(polyccl_alltoall(in, out, count, POLYCCL_FLOAT32, BENCH_BLOCKING(comm))); break;
    default: send_and_receive(op, in, out, count); break;
  }
}

static void run_rank(const bench_ranks *r, polyccl_comm *mine, void *argument) {
  const int *shared = argument;
  comm = mine;
  my_rank = r->rank;
  bench_peer peer = {.name = *shared ? "polyccl-shared" : "polyccl-private",
                     .ranks = *r,
                     .allocate = *shared ? bench_allocate_shared : bench_allocate_private,
                     .call = call};
  if (bench_run(&peer) != 0) {
    _exit(1);
  }
}

int main(int argc, char **argv) {
  int shared = argc == 3 && strcmp(argv[2], "shared") == 0;
  if (argc != 3 || (!shared && strcmp(argv[2], "private") != 0)) {
    fprintf(stderr, "usage: bench_polyccl RANKS private|shared\n");
    return 2;
  }
  return bench_fork(atoi(argv[1]), run_rank, &shared);
}
