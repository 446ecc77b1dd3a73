/* A member: one rank's place in a communicator, as the executor needs it. It holds the board that the ranks share, the
 * peers, and this rank's ends of connections. One thread at a time drives a member. */
#ifndef PCCL_TRANSPORT_MEMBER_H
#define PCCL_TRANSPORT_MEMBER_H

#include <sys/types.h>

#include "base/map.h"
#include "base/vec.h"
#include "memory/region.h"
#include "transport/board.h"
#include "transport/transport.h"

typedef struct pccl_segment pccl_segment;

/* POLYCCL_KERNEL_COPY. */
typedef enum pccl_copy_mode { PCCL_COPY_NEVER = 0, PCCL_COPY_ALWAYS, PCCL_COPY_AUTO } pccl_copy_mode;

/* Whether a peer's memory can be read through the kernel (copy.h). */
typedef enum pccl_copy_state { PCCL_COPY_UNKNOWN = 0, PCCL_COPY_ALLOWED, PCCL_COPY_REFUSED } pccl_copy_state;

/* Another rank's process as this rank reaches it. */
typedef struct pccl_peer {
  const pccl_transport *transport;
  int32_t pid;
  bool same_process;
  pccl_copy_state copy;
  int process_fd; /* a pidfd, opened when first needed; -1 */
  /* The peer's buffers in call number `call`, where this rank can address them. */
  uint64_t call;
  char *base[PCCL_CALL_BUFFERS];
} pccl_peer;

typedef struct pccl_member {
  pccl_board *board;
  pccl_segment *segment; /* of the transport shm */
  int rank, ranks, cores;
  bool oversubscribed; /* more ranks than cores */
  bool lines;          /* all peers can be reached by LL and LL128 */
  pccl_copy_mode kernel_copy;
  bool copy_refused; /* it was said that some peer's memory cannot be read */
  int32_t pid;
  uint64_t cookie; /* others read it to know this process again */
  uint64_t timeout_ns;
  pccl_peer *peer; /* [ranks] */
  PCCL_VEC(pccl_end *) ends;
  pccl_map end_of;    /* number of the connection and side -> index in ends */
  int looked;         /* how far pccl_look_at_peers() has come */
  uint64_t calls;     /* operations begun */
  uint64_t announced; /* operations with messages by reference */
  pccl_region_cache regions;
} pccl_member;

/* Joins the communicator of `segment` as `rank`, without waiting for the others. Takes over the reference to
 * `segment`, also when it fails. */
polyccl_result pccl_member_create(pccl_segment *segment, int ranks, int rank, uint64_t timeout_ns, pccl_member *member);
/* SUCCESS: all have joined; IN_PROGRESS: not yet; TIMEOUT, REMOTE: some never will. `since` (ns): when it began. */
polyccl_result pccl_member_test(pccl_member *member, uint64_t since);
/* The same until all have joined or an error ends it. */
polyccl_result pccl_member_wait(pccl_member *member);
/* Frees what the member holds. With `leaves` the others are told that this rank sends and takes nothing more. */
void pccl_member_destroy(pccl_member *member, bool leaves);

/* The end of a connection, opened at the first use. */
polyccl_result pccl_member_end(pccl_member *member, const pccl_connection_key *key, bool sender, pccl_end **end);

static inline pccl_rank_cell *pccl_member_cell(const pccl_member *member) { return &member->board->cell[member->rank]; }

/* Orders an earlier store before a later load. ThreadSanitizer knows no fences; a read-modify-write does as well. */
static inline void pccl_full_fence(void) {
#if defined(__SANITIZE_THREAD__)
  _Atomic int here = 0;
  atomic_fetch_add(&here, 1);
#else
  atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* After something was sent or given back on a connection. */
static inline void pccl_end_flush(pccl_member *member, pccl_end *end) {
  if (member->oversubscribed) {
    pccl_full_fence();
  }
  if (__builtin_expect(atomic_load_explicit(end->attention, memory_order_relaxed) != 0, 0)) {
    end->transport->flush(member, end);
  }
}

/* After something was written on the board for `rank`. */
static inline void pccl_member_notify(pccl_member *member, int rank) {
  pccl_full_fence();
  if (atomic_load_explicit(&member->board->cell[rank].sleeping, memory_order_relaxed) != 0) {
    pccl_board_ring(member->board, rank);
  }
}

/* Moves what is under way. */
static inline bool pccl_member_progress(pccl_member *member) {
  const pccl_transport *transport = member->peer[0].transport;
  return transport->progress != NULL && transport->progress(member);
}

#endif
