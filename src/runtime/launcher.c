#include "runtime/launcher.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "base/vec.h"
#include "runtime/comm.h"

/* What the ranks leave for the launcher, in memory shared with them. */
typedef struct report {
  _Atomic int failures; /* numbers the failures in the order in which they happened */
  struct rank_report {
    int order; /* from 1; 0: none */
    int result;
    char message[500];
  } rank[];
} report;

static void note(report *to, int rank, polyccl_result result) {
  if (result != POLYCCL_SUCCESS) {
    struct rank_report *entry = &to->rank[rank];
    snprintf(entry->message, sizeof entry->message, "%s", polyccl_last_error());
    entry->result = (int)result;
    entry->order = atomic_fetch_add(&to->failures, 1) + 1;
  }
}

static polyccl_result first_failure(const report *from, int ranks) {
  const struct rank_report *first = NULL;
  int failed = 0;
  for (int rank = 0; rank < ranks; rank++) {
    const struct rank_report *entry = &from->rank[rank];
    if (entry->order != 0 && (first == NULL || entry->order < first->order)) {
      first = entry;
      failed = rank;
    }
  }
  return first == NULL ? POLYCCL_SUCCESS
                       : pccl_fail((polyccl_result)first->result, "rank %d: %s", failed, first->message);
}

/* A core for each rank, where there are enough: what the scheduler puts together for a moment waits for a long one. */
static void bind(int ranks, int rank) {
  cpu_set_t allowed, one;
  if (strcmp(pccl_option("POLYCCL_BIND"), "none") == 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0 ||
      ranks > CPU_COUNT(&allowed)) {
    return;
  }
  int wanted = (int)((long)rank * CPU_COUNT(&allowed) / ranks);
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (CPU_ISSET(cpu, &allowed) && wanted-- == 0) {
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one); /* this thread; without it the rank only runs slower */
      return;
    }
  }
}

/* ---- processes ---- */

static _Noreturn void be_rank(int ranks, int rank, pid_t parent, const polyccl_unique_id *id, report *to,
                              pccl_rank_fn function, void *argument) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    _exit(1);
  }
  bind(ranks, rank);
  polyccl_comm *comm = NULL;
  polyccl_result result = polyccl_comm_init_rank(&comm, ranks, *id, rank);
  if (result == POLYCCL_SUCCESS) {
    result = function(comm, argument);
  }
  note(to, rank, result);
  if (result != POLYCCL_SUCCESS) {
    polyccl_comm_abort(comm); /* keeps an abort notice that there is */
  }
  polyccl_comm_destroy(comm);
  fflush(NULL);
  _exit(result == POLYCCL_SUCCESS ? 0 : 1);
}

static void describe_end(int status, char *text, size_t length) {
  if (WIFSIGNALED(status)) {
    snprintf(text, length, "was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else {
    snprintf(text, length, "ended with exit status %d before its work was done", WEXITSTATUS(status));
  }
}

/* A rank ended; one that ended without a word is a failure of its own, and the others are told. */
static void reap(int rank, int status, report *to, pccl_board *board) {
  struct rank_report *entry = &to->rank[rank];
  bool left = atomic_load(&board->cell[rank].state) == PCCL_RANK_LEFT;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && left) {
    return;
  }
  if (WIFEXITED(status) && entry->order != 0) {
    pccl_board_abort(board, (polyccl_result)entry->result, "rank %d: %s", rank, entry->message);
    return;
  }
  char how[100];
  describe_end(status, how, sizeof how);
  snprintf(entry->message, sizeof entry->message, "%s", how);
  entry->result = POLYCCL_ERROR_REMOTE;
  entry->order = -1; /* the cause of the others' failures, whoever noticed first */
  pccl_board_abort(board, POLYCCL_ERROR_REMOTE, "rank %d %s", rank, how);
}

typedef struct children {
  int ranks, left;
  pid_t *pid;             /* 0: reaped */
  struct pollfd *watched; /* pidfds; -1: none */
} children;

static void forget_child(children *c, int rank) {
  if (c->watched[rank].fd >= 0) {
    close(c->watched[rank].fd);
  }
  c->watched[rank].fd = -1;
  c->pid[rank] = 0;
  c->left--;
}

/* Ranks get `grace` from the first failure on to end by themselves. False: some were killed then. */
static bool wait_for_ranks(children *c, report *to, pccl_board *board) {
  static const uint64_t grace = 2000000000u;
  uint64_t failed_at = 0;
  bool killed = false;
  while (c->left > 0) {
    poll(c->watched, (nfds_t)c->ranks, 100);
    for (int rank = 0; rank < c->ranks; rank++) {
      int status;
      if (c->pid[rank] > 0 && waitpid(c->pid[rank], &status, WNOHANG) == c->pid[rank]) {
        if (!killed) {
          reap(rank, status, to, board);
        }
        forget_child(c, rank);
      }
    }
    if (failed_at == 0 && pccl_board_aborted(board)) {
      failed_at = pccl_now();
    }
    if (failed_at != 0 && !killed && pccl_now() - failed_at > grace) {
      killed = true;
      for (int rank = 0; rank < c->ranks; rank++) {
        if (c->pid[rank] > 0) {
          kill(c->pid[rank], SIGKILL);
        }
      }
    }
  }
  return !killed;
}

static polyccl_result fork_ranks(children *c, const polyccl_unique_id *id, report *to, pccl_rank_fn function,
                                 void *argument) {
  pid_t parent = getpid();
  fflush(NULL);
  for (int rank = 0; rank < c->ranks; rank++) {
    pid_t child = fork();
    if (child == 0) {
      be_rank(c->ranks, rank, parent, id, to, function, argument);
    }
    if (child < 0) {
      return pccl_fail_errno("cannot start rank %d of %d", rank, c->ranks);
    }
    c->pid[rank] = child;
    c->watched[rank] = (struct pollfd){.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN};
    c->left++;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result launch(children *c, report *to, pccl_rank_fn function, void *argument) {
  polyccl_unique_id id;
  pccl_segment *segment;
  PCCL_TRY(pccl_offer(&id, &segment));
  polyccl_result result = fork_ranks(c, &id, to, function, argument);
  for (int rank = 0; rank < c->ranks && result != POLYCCL_SUCCESS; rank++) {
    if (c->pid[rank] > 0) {
      kill(c->pid[rank], SIGKILL);
    }
  }
  bool ended = wait_for_ranks(c, to, &segment->header->board);
  if (result == POLYCCL_SUCCESS) {
    result = first_failure(to, c->ranks);
  }
  if (result == POLYCCL_SUCCESS && !ended) {
    result = pccl_board_error(&segment->header->board); /* none of those that failed came to say so */
  }
  pccl_withdraw(&id);
  return result;
}

polyccl_result pccl_launch_processes(int ranks, pccl_rank_fn function, void *argument) {
  if (ranks < 1 || ranks > POLYCCL_MAX_LOCAL_RANKS) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "cannot start %d ranks (1 to %d)", ranks, POLYCCL_MAX_LOCAL_RANKS);
  }
  size_t bytes = sizeof(report) + (size_t)ranks * sizeof(struct rank_report);
  report *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (to == MAP_FAILED) {
    return pccl_fail_errno("no memory shared with the ranks");
  }
  children c = {.ranks = ranks,
                .pid = pccl_zeroed((size_t)ranks, sizeof *c.pid),
                .watched = pccl_zeroed((size_t)ranks, sizeof *c.watched)};
  polyccl_result result;
  if (c.pid != NULL && c.watched != NULL) {
    for (int rank = 0; rank < ranks; rank++) {
      c.watched[rank].fd = -1;
    }
    result = launch(&c, to, function, argument);
  } else {
    result = pccl_no_memory("the ranks");
  }
  free(c.pid);
  free(c.watched);
  munmap(to, bytes);
  return result;
}

/* ---- threads ---- */

typedef struct thread_rank {
  pthread_t thread;
  polyccl_comm *comm;
  report *to;
  pccl_rank_fn function;
  void *argument;
} thread_rank;

static void *be_thread(void *argument) {
  thread_rank *self = argument;
  bind(polyccl_comm_count(self->comm), polyccl_comm_user_rank(self->comm));
  polyccl_result result = self->function(self->comm, self->argument);
  note(self->to, polyccl_comm_user_rank(self->comm), result);
  if (result != POLYCCL_SUCCESS) {
    polyccl_comm_abort(self->comm);
  }
  return NULL;
}

static polyccl_result run_threads(int ranks, thread_rank *threads, polyccl_comm **comms, report *to,
                                  pccl_rank_fn function, void *argument) {
  PCCL_TRY(polyccl_comm_init_all(comms, ranks));
  polyccl_result result = POLYCCL_SUCCESS;
  int started = 0;
  for (; started < ranks; started++) {
    threads[started] = (thread_rank){.comm = comms[started], .to = to, .function = function, .argument = argument};
    errno = pthread_create(&threads[started].thread, NULL, be_thread, &threads[started]);
    if (errno != 0) {
      result = pccl_fail_errno("cannot start rank %d of %d", started, ranks);
      polyccl_comm_abort(comms[0]);
      break;
    }
  }
  for (int rank = 0; rank < started; rank++) {
    pthread_join(threads[rank].thread, NULL);
  }
  for (int rank = 0; rank < ranks; rank++) {
    polyccl_comm_destroy(comms[rank]);
  }
  return result != POLYCCL_SUCCESS ? result : first_failure(to, ranks);
}

polyccl_result pccl_launch_threads(int ranks, pccl_rank_fn function, void *argument) {
  if (ranks < 1 || ranks > POLYCCL_MAX_LOCAL_RANKS) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "cannot start %d ranks (1 to %d)", ranks, POLYCCL_MAX_LOCAL_RANKS);
  }
  report *to = calloc(1, sizeof *to + (size_t)ranks * sizeof(struct rank_report));
  thread_rank *threads = pccl_zeroed((size_t)ranks, sizeof *threads);
  polyccl_comm **comms = pccl_zeroed((size_t)ranks, sizeof *comms);
  polyccl_result result = to != NULL && threads != NULL && comms != NULL
                              ? run_threads(ranks, threads, comms, to, function, argument)
                              : pccl_no_memory("the ranks");
  free(to);
  free(threads);
  free(comms);
  return result;
}
