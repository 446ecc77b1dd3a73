/* Groups of sends and receives: one exchange. */
#include <stdlib.h>

#include <polyccl/group.h>

#include "base/error.h"
#include "runtime/op.h"

static _Thread_local struct {
  int depth;
  polyccl_comm *comm;
  PCCL_VEC(pccl_transfer) transfers;
  polyccl_result failed; /* the first error of a call in the group */
} group;

bool pccl_in_group(void) { return group.depth > 0; }

static polyccl_result add(polyccl_comm *comm, const pccl_work *work) {
  if (group.comm != NULL && group.comm != comm) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "a group holds calls of one communicator only");
  }
  for (size_t i = 0; i < work->transfers; i++) {
    if (!pccl_vec_push(&group.transfers, work->transfer[i])) {
      return pccl_no_memory("a group");
    }
  }
  group.comm = comm;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_group_add(polyccl_comm *comm, const pccl_work *work) {
  polyccl_result result = add(comm, work);
  group.failed = group.failed != POLYCCL_SUCCESS ? group.failed : result;
  return result;
}

polyccl_result polyccl_group_start(void) {
  group.depth++;
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_group_end(void) {
  if (group.depth == 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_group_end: no group was started");
  }
  if (--group.depth > 0) {
    return POLYCCL_SUCCESS;
  }
  polyccl_comm *comm = group.comm;
  polyccl_result failed = group.failed;
  pccl_work work = {.transfer = group.transfers.data, .transfers = group.transfers.len, .name = "send/recv"};
  group.comm = NULL;
  group.failed = POLYCCL_SUCCESS;
  group.transfers.data = NULL;
  group.transfers.len = group.transfers.cap = 0;
  if (failed != POLYCCL_SUCCESS || comm == NULL) {
    free(work.transfer);
    return failed != POLYCCL_SUCCESS ? pccl_fail(failed, "a call in the group failed, so none was begun")
                                     : POLYCCL_SUCCESS;
  }
  return pccl_work_run(comm, &work);
}
