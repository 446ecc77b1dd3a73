/* usage: mpirun ... bench_mpi BOARD NAME: an MPI library under the common harness. BOARD is a file that all ranks map.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"

static int my_rank;

static void *allocate(size_t bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, 4096, bytes) != 0) {
    fprintf(stderr, "bench_mpi: no memory for %zu bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

static void progress(void) {
  int flag;
  MPI_Iprobe(MPI_ANY_SOURCE, 12345, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static void call(bench_op op, const float *in, float *out, size_t elements, int root) {
  MPI_Comm all = MPI_COMM_WORLD;
  int count = (int)elements, peer = 1 - my_rank;
  switch (op) {
    case BENCH_ALLREDUCE: MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, all); break;
    case BENCH_ALLGATHER: MPI_Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, all); break;
    case BENCH_REDUCE_SCATTER: MPI_Reduce_scatter_block(in, out, count, MPI_FLOAT, MPI_SUM, all); break;
    case BENCH_ALLTOALL: MPI_Alltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, all); break;
    case BENCH_SENDRECV:
      MPI_Sendrecv(in, count, MPI_FLOAT, peer, 0, out, count, MPI_FLOAT, peer, 0, all, MPI_STATUS_IGNORE);
      break;
    case BENCH_PINGPONG:
      if (my_rank == 0) {
        MPI_Send(in, count, MPI_FLOAT, 1, 1, all);
        MPI_Recv(out, count, MPI_FLOAT, 1, 1, all, MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(out, count, MPI_FLOAT, 0, 1, all, MPI_STATUS_IGNORE);
        MPI_Send(in, count, MPI_FLOAT, 0, 1, all);
      }
      break;
    default:
      if (op == BENCH_BROADCAST && my_rank == root) { /* MPI has only the one in place */
        memcpy(out, in, elements * sizeof *out);
      }
      MPI_Bcast(out, count, MPI_FLOAT, root, all);
      break;
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int fd = argc == 3 ? open(argv[1], O_RDWR) : -1;
  void *board = fd < 0 ? MAP_FAILED : mmap(NULL, bench_board_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (board == MAP_FAILED) {
    fprintf(stderr, "usage: mpirun ... bench_mpi BOARD NAME (BOARD: a file of %zu zero bytes)\n", bench_board_bytes());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  bench_peer peer = {
      .name = argv[2], .ranks = {.board = board, .progress = progress}, .allocate = allocate, .call = call};
  MPI_Comm_rank(MPI_COMM_WORLD, &peer.ranks.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &peer.ranks.ranks);
  if (peer.ranks.ranks > BENCH_MAX_RANKS) {
    fprintf(stderr, "bench_mpi: at most %d ranks\n", BENCH_MAX_RANKS);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  my_rank = peer.ranks.rank;
  size_t wrong = bench_run(&peer);
  MPI_Finalize();
  return wrong != 0;
}
