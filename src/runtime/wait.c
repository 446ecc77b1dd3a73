#include "runtime/wait.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

enum {
  SPINS = 500,       /* a yield costs little when nobody else wants the core, and much is lost without when one does */
  SPINS_CROWDED = 2, /* the peer we wait for may need this core */
  YIELDS = 4000,
  YIELDS_CROWDED = 200,
  SLEEP_US = 1000, /* bounds the loss when a bell was missed */
  SLEEP_CROWDED_US = 50000
};
static const uint64_t check_every_ns = 50u * 1000 * 1000;
static const uint64_t yield_ns = 10u * 1000 * 1000; /* on a loaded machine each yield takes as long as others like */

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

void pccl_ring_bell(pccl_rank_cell *cell) {
  atomic_store_explicit(&cell->sleeping, 0, memory_order_relaxed);
  atomic_fetch_add_explicit(&cell->bell, 1, memory_order_release);
  pccl_futex_wake(&cell->bell);
}

/* The peer's process has ended without leaving the communicator. */
static bool is_dead(polyccl_comm *comm, int rank) {
  pccl_rank_cell *cell = &comm->segment->header->cell[rank];
  if (rank == comm->rank || cell->pid == comm->pid || atomic_load(&cell->state) != PCCL_RANK_JOINED) {
    return false;
  }
  if (comm->peer_fd[rank] < 0) {
    comm->peer_fd[rank] = (int)syscall(SYS_pidfd_open, cell->pid, 0);
  }
  bool ended;
  if (comm->peer_fd[rank] < 0) {
    ended = errno == ESRCH;
  } else {
    struct pollfd poller = {.fd = comm->peer_fd[rank], .events = POLLIN};
    ended = poll(&poller, 1, 0) == 1;
  }
  return ended && atomic_load(&cell->state) == PCCL_RANK_JOINED;
}

polyccl_result pccl_look_at_peers(polyccl_comm *comm) {
  pccl_segment_header *header = comm->segment->header;
  for (int rank = 0; rank < comm->ranks; rank++) {
    if (is_dead(comm, rank)) {
      pccl_segment_abort(header, POLYCCL_ERROR_REMOTE, "rank %d (process %d) has died", rank,
                         (int)header->cell[rank].pid);
      return pccl_segment_abort_error(header);
    }
  }
  return POLYCCL_SUCCESS;
}

static void sleep_or_arm(polyccl_comm *comm, pccl_patience *patience) {
  if (!patience->armed || atomic_load_explicit(&comm->cell->bell, memory_order_acquire) != patience->bell) {
    patience->bell = atomic_load_explicit(&comm->cell->bell, memory_order_acquire);
    atomic_store_explicit(&comm->cell->sleeping, 1, memory_order_relaxed);
    pccl_full_fence();
    patience->armed = true;
    return; /* the caller polls once more */
  }
  pccl_futex_wait(&comm->cell->bell, patience->bell, comm->crowded ? SLEEP_CROWDED_US : SLEEP_US);
}

polyccl_result pccl_idle(polyccl_comm *comm, pccl_patience *patience) {
  uint32_t spins = comm->crowded ? SPINS_CROWDED : SPINS;
  uint32_t idle = patience->idle++;
  if (idle < spins) {
    if (idle > 200 || comm->crowded) {
      relax();
    }
    return POLYCCL_SUCCESS;
  }
  if (pccl_segment_aborted(comm->segment->header)) {
    return pccl_segment_abort_error(comm->segment->header);
  }
  uint64_t now = pccl_now();
  if (patience->since == 0) {
    patience->since = patience->checked = now;
  }
  if (idle < spins + (comm->crowded ? YIELDS_CROWDED : YIELDS) && now - patience->since < yield_ns) {
    sched_yield();
    return POLYCCL_SUCCESS;
  }
  if (now - patience->checked > check_every_ns) {
    patience->checked = now;
    PCCL_TRY(pccl_look_at_peers(comm));
  }
  if (now - patience->since > comm->timeout_ns) {
    return POLYCCL_ERROR_TIMEOUT;
  }
  sleep_or_arm(comm, patience);
  return POLYCCL_SUCCESS;
}
