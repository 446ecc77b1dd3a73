/* What a rank does while it has nothing to do: spin, then yield, then sleep until a peer rings.
 *
 * With a core for each rank a waiting rank spins for long, peers ring without a fence and may miss a rank that is just
 * falling asleep; its sleeps are short. When ranks outnumber cores a waiting rank soon sleeps, and peers ring behind a
 * full fence: either the peer sees `sleeping`, or the sleeper, which polls once more after setting it, sees the data.
 */
#ifndef PCCL_RUNTIME_WAIT_H
#define PCCL_RUNTIME_WAIT_H

#include "runtime/comm.h"

typedef struct pccl_patience {
  uint32_t idle; /* fruitless rounds since the last progress */
  uint32_t bell; /* its value when `armed` */
  bool armed;
  uint64_t since;   /* nanoseconds: when it began to yield; 0: not yet */
  uint64_t checked; /* when the peers were last looked at */
} pccl_patience;

/* Called after a fruitless round. TIMEOUT: out of patience, with no message yet; REMOTE and others: with a message. */
polyccl_result pccl_idle(polyccl_comm *comm, pccl_patience *patience);

/* Aborts the communicator when a peer's process has ended without leaving. */
polyccl_result pccl_look_at_peers(polyccl_comm *comm);

/* Called on progress. */
static inline void pccl_busy(polyccl_comm *comm, pccl_patience *patience) {
  if (patience->armed) {
    atomic_store_explicit(&comm->cell->sleeping, 0, memory_order_relaxed);
    atomic_store_explicit(&comm->cell->awaits, 0, memory_order_relaxed);
  }
  *patience = (pccl_patience){0};
}

/* Orders an earlier store before a later load. ThreadSanitizer knows no fences; a read-modify-write does as well. */
static inline void pccl_full_fence(void) {
#if defined(__SANITIZE_THREAD__)
  _Atomic int here = 0;
  atomic_fetch_add(&here, 1);
#else
  atomic_thread_fence(memory_order_seq_cst);
#endif
}

void pccl_ring_bell(pccl_rank_cell *cell);

/* After something was written for the peer. */
static inline void pccl_notify(const polyccl_comm *comm, pccl_rank_cell *peer) {
  if (comm->crowded) {
    pccl_full_fence();
  }
  if (__builtin_expect(atomic_load_explicit(&peer->sleeping, memory_order_relaxed) != 0, 0)) {
    pccl_ring_bell(peer);
  }
}

#endif
