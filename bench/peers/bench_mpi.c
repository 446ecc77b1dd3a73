/* usage: mpirun ... bench_mpi BOARD: MPI under the common harness. BOARD is a file that all ranks map. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"

static void *allocate(size_t bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, 4096, bytes) != 0) {
    exit(1);
  }
  return memory;
}

static void progress(void) {
  int flag;
  MPI_Iprobe(MPI_ANY_SOURCE, 12345, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static void call(bench_op op, const float *in, float *out, size_t elements) {
  int count = (int)elements;
  switch (op) {
    case BENCH_ALLREDUCE: MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    case BENCH_ALLGATHER: MPI_Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD); break;
    case BENCH_REDUCE_SCATTER: MPI_Reduce_scatter_block(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    case BENCH_BROADCAST: { /* MPI broadcasts in place: the root's output is its input */
      int rank;
      MPI_Comm_rank(MPI_COMM_WORLD, &rank);
      if (rank == 0 && out[0] != in[0]) {
        for (size_t i = 0; i < elements; i++) {
          out[i] = in[i];
        }
      }
      MPI_Bcast(out, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
      break;
    }
    default: MPI_Alltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD); break;
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int fd = argc == 2 ? open(argv[1], O_RDWR) : -1;
  void *board = fd < 0 ? MAP_FAILED : mmap(NULL, bench_board_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (board == MAP_FAILED) {
    fprintf(stderr, "usage: mpirun ... bench_mpi BOARD (a file of %zu bytes)\n", bench_board_bytes());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  bench_peer peer = {.name = "openmpi", .allocate = allocate, .call = call, .progress = progress};
  MPI_Comm_rank(MPI_COMM_WORLD, &peer.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &peer.ranks);
  size_t wrong = bench_run(&peer, board);
  MPI_Finalize();
  return wrong != 0;
}
