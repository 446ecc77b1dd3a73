#include "transport/wait.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

enum {
  SPINS = 500, /* a yield costs little when nobody else wants the core, and much is lost without when one does */
  SPINS_OVERSUBSCRIBED = 2, /* the peer we wait for may need this core */
  YIELDS = 4000,
  YIELDS_OVERSUBSCRIBED = 200,
  SLEEP_US = 1000, /* bounds the loss when a bell was missed */
  SLEEP_OVERSUBSCRIBED_US = 50000,
  MAX_LOOKS = 64 /* of 1,024 peers each is seen within 0.8 s by a rank that waits alone */
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

bool pccl_is_dead(pccl_member *member, int rank) {
  pccl_peer *peer = &member->peer[rank];
  int32_t pid = member->board->cell[rank].pid;
  if (rank == member->rank || pid == member->pid || pccl_board_state(member->board, rank) != PCCL_RANK_JOINED) {
    return false;
  }
  if (peer->process_fd < 0) {
    peer->process_fd = (int)syscall(SYS_pidfd_open, pid, 0);
  }
  bool ended;
  if (peer->process_fd < 0) {
    ended = errno == ESRCH;
  } else {
    struct pollfd poller = {.fd = peer->process_fd, .events = POLLIN};
    ended = poll(&poller, 1, 0) == 1;
  }
  return ended && pccl_board_state(member->board, rank) == PCCL_RANK_JOINED;
}

/* So many at a time, for each costs a system call; every rank begins behind itself, so together they see all. */
polyccl_result pccl_look_at_peers(pccl_member *member) {
  int looks = member->ranks < MAX_LOOKS ? member->ranks : MAX_LOOKS;
  for (int i = 0; i < looks; i++) {
    member->looked = (member->looked + 1) % member->ranks;
    int rank = (member->rank + member->looked) % member->ranks;
    if (pccl_is_dead(member, rank)) {
      pccl_board_abort(member->board, POLYCCL_ERROR_REMOTE, "rank %d (process %d) has died", rank,
                       (int)member->board->cell[rank].pid);
      return pccl_board_error(member->board);
    }
  }
  return POLYCCL_SUCCESS;
}

static void sleep_or_arm(pccl_member *member, pccl_backoff *backoff) {
  pccl_rank_cell *cell = pccl_member_cell(member);
  if (!backoff->armed || atomic_load_explicit(&cell->bell, memory_order_acquire) != backoff->bell) {
    backoff->bell = atomic_load_explicit(&cell->bell, memory_order_acquire);
    atomic_store_explicit(&cell->sleeping, 1, memory_order_relaxed);
    pccl_full_fence();
    backoff->armed = true;
    return; /* the caller polls once more */
  }
  pccl_board_sleep(member->board, member->rank, backoff->bell,
                   member->oversubscribed ? SLEEP_OVERSUBSCRIBED_US : SLEEP_US);
}

polyccl_result pccl_idle(pccl_member *member, pccl_backoff *backoff) {
  uint32_t spins = member->oversubscribed ? SPINS_OVERSUBSCRIBED : SPINS;
  uint32_t idle = backoff->idle++;
  if (idle < spins) {
    if (idle > 200 || member->oversubscribed) {
      relax();
    }
    return POLYCCL_SUCCESS;
  }
  if (pccl_board_aborted(member->board)) {
    return pccl_board_error(member->board);
  }
  uint64_t now = pccl_now();
  if (backoff->since == 0) {
    backoff->since = backoff->checked = now;
  }
  if (idle < spins + (member->oversubscribed ? YIELDS_OVERSUBSCRIBED : YIELDS) && now - backoff->since < yield_ns) {
    sched_yield();
    return POLYCCL_SUCCESS;
  }
  if (now - backoff->checked > check_every_ns) {
    backoff->checked = now;
    PCCL_TRY(pccl_look_at_peers(member));
  }
  backoff->timed_out = now - backoff->since > member->timeout_ns;
  if (!backoff->timed_out) {
    sleep_or_arm(member, backoff);
  }
  return POLYCCL_SUCCESS;
}
