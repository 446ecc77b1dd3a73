/* Inside of a communicator. */
#ifndef PCCL_RUNTIME_COMM_H
#define PCCL_RUNTIME_COMM_H

#include <polyccl/polyccl.h>

#include "base/map.h"
#include "base/vec.h"
#include "kernel/reduce.h"
#include "transport/connection.h"
#include "transport/region.h"
#include "transport/segment.h"

struct pccl_loaded;
typedef struct pccl_builtin_entry { /* builtin.c */
  int row, root;
  bool inplace;
  struct pccl_loaded *plan; /* NULL: the program has no such form */
} pccl_builtin_entry;
struct pccl_prepared;

/* A peer's buffers in the running call, as far as this rank can address them. */
typedef struct pccl_view {
  uint64_t call; /* valid for this one */
  char *base[PCCL_CALL_BUFFERS];
} pccl_view;

struct polyccl_comm {
  polyccl_comm *next; /* in the list of those not yet destroyed */
  pccl_segment *segment;
  pccl_rank_cell *cell; /* ours */
  const pccl_kernels *kernels;
  int rank, ranks, cores;
  bool crowded;  /* more ranks than cores */
  bool checks;   /* POLYCCL_CHECK */
  uint64_t made; /* calls that were checked */
  unsigned forks;
  int32_t pid;
  uint64_t timeout_ns;
  size_t cache_bytes;  /* the last level's */
  size_t buffer_bytes; /* for all slots of a rank's receiving ends */

  PCCL_VEC(pccl_end *) ends;
  pccl_map end_of; /* key -> index in ends */
  PCCL_VEC(struct pccl_loaded *) plans;
  PCCL_VEC(struct pccl_builtin_entry) builtin; /* builtin.c */
  struct pccl_prepared *recent;                /* newest first */
  size_t prepared;
  struct pccl_choice *choices; /* select.c */

  struct pccl_call_trace *trace; /* calls are recorded there; NULL: they are not */

  void *stage[2]; /* rooted calls: a copy of the input, a place for an output that is not wanted (select.c) */
  size_t stage_bytes[2];
  void *scratch;
  size_t scratch_bytes;
  uint64_t calls;  /* with references */
  pccl_view *view; /* [ranks] */
  pccl_region_cache regions;
  int *peer_fd; /* pidfds, opened when first needed; -1 */
};

/* polyccl_get_unique_id() for a launcher that watches the segment without joining; withdrawn by pccl_withdraw(). */
polyccl_result pccl_offer(polyccl_unique_id *id, pccl_segment **segment);
void pccl_withdraw(const polyccl_unique_id *id);

/* Refuses NULL, a copy that fork() made, an aborted communicator. */
polyccl_result pccl_comm_usable(const polyccl_comm *comm);

/* The end of (src, dst, channel), opened on first use. */
polyccl_result pccl_comm_end(polyccl_comm *comm, int src, int dst, int channel, polyccl_protocol protocol,
                             int log2_bytes, bool sender, pccl_end **end);

#endif
