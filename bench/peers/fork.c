#include "fork.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void bench_require(polyccl_result result) {
  if (result != POLYCCL_SUCCESS) {
    fprintf(stderr, "benchmark: %s\n", polyccl_last_error());
    _exit(1);
  }
}

void *bench_allocate_shared(size_t bytes) {
  void *memory = NULL;
  bench_require(polyccl_mem_alloc(&memory, bytes));
  return memory;
}

void *bench_allocate_private(size_t bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, 4096, bytes) != 0) {
    fprintf(stderr, "benchmark: no memory for %zu bytes\n", bytes);
    _exit(1);
  }
  return memory;
}

/* The rank's core, if there is one for each. */
static void bind_rank(int ranks, int rank) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || ranks > CPU_COUNT(&allowed)) {
    return;
  }
  int wanted = rank;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (CPU_ISSET(cpu, &allowed) && wanted-- == 0) {
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one);
      return;
    }
  }
}

int bench_fork(int ranks, bench_rank_fn function, void *argument) {
  void *board = mmap(NULL, bench_board_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (ranks < 1 || ranks > BENCH_MAX_RANKS || board == MAP_FAILED) {
    fprintf(stderr, "benchmark: cannot start %d ranks (1 to %d)\n", ranks, BENCH_MAX_RANKS);
    return 1;
  }
  polyccl_unique_id id;
  bench_require(polyccl_get_unique_id(&id));
  pid_t child[BENCH_MAX_RANKS];
  for (int rank = 0; rank < ranks; rank++) {
    child[rank] = fork();
    if (child[rank] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      bind_rank(ranks, rank);
      polyccl_comm *comm = NULL;
      bench_require(polyccl_comm_init_rank(&comm, ranks, id, rank));
      bench_ranks r = {.board = board, .rank = rank, .ranks = ranks};
      function(&r, comm, argument);
      bench_barrier(&r);
      polyccl_comm_destroy(comm);
      fflush(NULL);
      _exit(0);
    }
  }
  int failed = 0;
  for (int left = ranks; left > 0; left--) {
    int status = 0;
    pid_t ended = wait(&status);
    for (int rank = 0; rank < ranks; rank++) {
      child[rank] = child[rank] == ended ? 0 : child[rank];
    }
    for (int rank = 0; status != 0 && rank < ranks; rank++) {
      failed = 1;
      if (child[rank] > 0) {
        kill(child[rank], SIGKILL);
      }
    }
  }
  return failed;
}
