/* What a rank does while it has nothing to do: it spins, then yields, then sleeps until a peer rings.
 *
 * With a core for each rank a waiting rank spins for long. Peers ring without a fence and may miss a rank that is just
 * falling asleep, so its sleeps are short. When ranks outnumber cores a waiting rank soon sleeps, and peers ring behind
 * a full fence: either the peer sees `sleeping`, or the sleeper, which polls once more after it has set `sleeping`,
 * sees the data. */
#ifndef PCCL_TRANSPORT_WAIT_H
#define PCCL_TRANSPORT_WAIT_H

#include "transport/member.h"

typedef struct pccl_backoff {
  uint32_t idle; /* fruitless rounds since the last progress */
  uint32_t bell; /* its value when `armed` */
  bool armed;
  uint64_t since;   /* nanoseconds: when it began to yield; 0: not yet */
  uint64_t checked; /* when the peers were last looked at */
  bool timed_out;   /* nothing has moved for too long: the caller says for whom it waits */
} pccl_backoff;

/* Called after a fruitless round; may sleep. Errors: the abort notice; REMOTE, a peer has died. */
polyccl_result pccl_idle(pccl_member *member, pccl_backoff *backoff);

/* The peer's process has ended without leaving the communicator. */
bool pccl_is_dead(pccl_member *member, int rank);

/* Aborts the communicator when a peer's process has ended without leaving. */
polyccl_result pccl_look_at_peers(pccl_member *member);

/* Called on progress. */
static inline void pccl_busy(pccl_member *member, pccl_backoff *backoff) {
  if (backoff->armed) {
    pccl_rank_cell *cell = pccl_member_cell(member);
    atomic_store_explicit(&cell->sleeping, 0, memory_order_relaxed);
    atomic_store_explicit(&cell->awaits, 0, memory_order_relaxed);
  }
  *backoff = (pccl_backoff){0};
}

#endif
