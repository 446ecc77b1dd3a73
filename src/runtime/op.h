/* Exchanges as calls: sends, receives and the collectives with a count for each rank. They run on the calling thread,
 * at once or, sends and receives in a group, when the group ends. */
#ifndef PCCL_RUNTIME_OP_H
#define PCCL_RUNTIME_OP_H

#include "executor/exchange.h"
#include "runtime/comm.h"

typedef struct pccl_work {
  pccl_claim claim; /* left on the board when the work begins; not for sends and receives */
  bool collective;  /* all ranks make this call: it is counted and compared */
  /* The work owns the array. */
  pccl_transfer *transfer;
  size_t transfers;
  const char *name;
} pccl_work;

/* Does the work, or collects it in the thread's group. Takes over what *work owns, also when it fails. UNSUPPORTED: a
 * stream, or a collective in a group. */
polyccl_result pccl_submit(polyccl_comm *comm, polyccl_stream *stream, pccl_work *work);

/* Does the work now. Takes over what it owns. */
polyccl_result pccl_work_run(polyccl_comm *comm, pccl_work *work);

/* Refuses a stream, and any call but sends and receives in a group. */
polyccl_result pccl_refuse_later(const polyccl_stream *stream);

/* Whether the calling thread is in a group; adds transfers to it. */
bool pccl_in_group(void);
polyccl_result pccl_group_add(polyccl_comm *comm, const pccl_work *work);

#endif
