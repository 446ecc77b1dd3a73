/* POLYCCL_CHECK=1: before a call moves data, its ranks compare what they are about to do. */
#ifndef PCCL_RUNTIME_AGREE_H
#define PCCL_RUNTIME_AGREE_H

#include "runtime/comm.h"

/* INVALID on every rank, naming two ranks and their calls at the first difference; TIMEOUT naming the ranks that did
 * not call. */
polyccl_result pccl_agree(polyccl_comm *comm, const pccl_claim *record);

#endif
