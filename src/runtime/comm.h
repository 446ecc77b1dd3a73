/* Inside of a communicator: a member with its executor, the plans that are loaded, and what was chosen for calls. */
#ifndef PCCL_RUNTIME_COMM_H
#define PCCL_RUNTIME_COMM_H

#include <polyccl/polyccl.h>

#include "builtin/builtin.h"
#include "executor/execute.h"
#include "runtime/placement.h"
#include "transport/shm/segment.h"

struct polyccl_comm {
  polyccl_comm *next; /* in the list of those not yet destroyed */
  pccl_executor executor;
  bool checks; /* POLYCCL_CHECK */
  unsigned forks;
  PCCL_VEC(pccl_loaded *) plans;
  pccl_builtin builtin;
  struct pccl_choice *choices; /* select.c */
  pccl_stage_pool stages;
  unsigned char barrier[2]; /* what a barrier reduces, and into what (point.c) */
};

/* polyccl_get_unique_id() for a launcher that watches the segment without joining; withdrawn by pccl_withdraw(). */
polyccl_result pccl_offer(polyccl_unique_id *id, pccl_segment **segment);
void pccl_withdraw(const polyccl_unique_id *id);

/* Refuses NULL, a copy that fork() made, an aborted communicator. */
polyccl_result pccl_comm_usable(const polyccl_comm *comm);

/* The next calls of this rank are recorded, each from the start of the trace; NULL: no longer. */
void pccl_record_calls(polyccl_comm *comm, struct pccl_call_trace *trace);

#endif
