#include "runtime/agree.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "runtime/wait.h"

static void name_call(const pccl_claim *r, char *text, size_t length) {
  char root[24] = "", plan[24] = "";
  if (r->root >= 0) {
    snprintf(root, sizeof root, ", root %d", (int)r->root);
  }
  if (r->plan >= 0) {
    snprintf(plan, sizeof plan, " by plan %d", (int)r->plan);
  }
  const char *dtype = polyccl_dtype_name((polyccl_dtype)r->dtype), *op = polyccl_redop_name((polyccl_redop)r->op);
  snprintf(text, length, "%s%s of %llu %s, %s%s, %s", polyccl_collective_name((polyccl_collective)r->collective), plan,
           (unsigned long long)r->count, dtype != NULL ? dtype : "?", op != NULL ? op : "?", root,
           r->inplace != 0 ? "in place" : "out of place");
}

/* Placement may differ where only some ranks' outputs are used; all else may not. */
static bool same_call(const pccl_claim *a, const pccl_claim *b) {
  return a->count == b->count && a->collective == b->collective && a->plan == b->plan && a->dtype == b->dtype &&
         a->op == b->op && a->root == b->root && a->inplace == b->inplace;
}

static polyccl_result differ(polyccl_comm *comm, int other) {
  pccl_segment_header *header = comm->segment->header;
  char mine[150], theirs[150];
  name_call(&comm->cell->record[comm->made % 2], mine, sizeof mine);
  name_call(&header->cell[other].record[comm->made % 2], theirs, sizeof theirs);
  pccl_segment_abort(header, POLYCCL_ERROR_INVALID, "call %llu differs: rank %d: %s; rank %d: %s",
                     (unsigned long long)comm->made, comm->rank, mine, other, theirs);
  return pccl_segment_abort_error(header);
}

static polyccl_result never_called(polyccl_comm *comm) {
  pccl_segment_header *header = comm->segment->header;
  char mine[150], list[100] = "";
  size_t used = 0;
  for (int rank = 0; rank < comm->ranks && used < sizeof list - 16; rank++) {
    if (atomic_load(&header->cell[rank].made) < comm->made) {
      used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", used > 0 ? ", " : "", rank);
    }
  }
  name_call(&comm->cell->record[comm->made % 2], mine, sizeof mine);
  pccl_segment_abort(header, POLYCCL_ERROR_TIMEOUT, "rank %d waited %llu s in call %llu (%s) for rank %s to call",
                     comm->rank, (unsigned long long)(comm->timeout_ns / 1000000000u), (unsigned long long)comm->made,
                     mine, list);
  return pccl_segment_abort_error(header);
}

static bool all_called(const polyccl_comm *comm) {
  for (int rank = 0; rank < comm->ranks; rank++) {
    if (atomic_load_explicit(&comm->segment->header->cell[rank].made, memory_order_acquire) < comm->made) {
      return false;
    }
  }
  return true;
}

polyccl_result pccl_agree(polyccl_comm *comm, const pccl_claim *record) {
  pccl_segment_header *header = comm->segment->header;
  comm->made++;
  comm->cell->record[comm->made % 2] = *record;
  atomic_store_explicit(&comm->cell->made, comm->made, memory_order_release);
  for (int rank = 0; rank < comm->ranks; rank++) {
    pccl_notify(comm, &header->cell[rank]);
  }
  pccl_patience patience = {0};
  while (!all_called(comm)) {
    polyccl_result result = pccl_idle(comm, &patience);
    if (result != POLYCCL_SUCCESS) {
      pccl_busy(comm, &patience);
      return result == POLYCCL_ERROR_TIMEOUT && !pccl_segment_aborted(header) ? never_called(comm) : result;
    }
  }
  pccl_busy(comm, &patience);
  for (int rank = 0; rank < comm->ranks; rank++) {
    if (!same_call(record, &header->cell[rank].record[comm->made % 2])) {
      return differ(comm, rank);
    }
  }
  return POLYCCL_SUCCESS;
}
