#include "runtime/op.h"

#include <stdlib.h>

#include "base/error.h"
#include "executor/agree.h"

static polyccl_result run(polyccl_comm *comm, const pccl_work *work) {
  if (work->collective) {
    pccl_post_call(&comm->executor.member, &work->claim);
    if (comm->checks) {
      PCCL_TRY(pccl_agree(&comm->executor.member));
    }
  }
  pccl_exchange *exchange;
  PCCL_TRY(pccl_exchange_begin(&comm->executor, work->transfer, work->transfers, work->name, &exchange));
  polyccl_result result = pccl_exchange_wait(exchange);
  pccl_exchange_free(exchange);
  return result;
}

polyccl_result pccl_work_run(polyccl_comm *comm, pccl_work *work) {
  polyccl_result result = run(comm, work);
  free(work->transfer);
  return result;
}

polyccl_result pccl_refuse_later(const polyccl_stream *stream) {
  if (stream != NULL) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "there are no streams yet: the last argument must be NULL");
  }
  return pccl_in_group() ? pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "a group holds sends and receives only")
                         : POLYCCL_SUCCESS;
}

polyccl_result pccl_submit(polyccl_comm *comm, polyccl_stream *stream, pccl_work *work) {
  bool collects = pccl_in_group() && !work->collective && stream == NULL;
  polyccl_result result = collects ? pccl_group_add(comm, work) : pccl_refuse_later(stream);
  if (collects || result != POLYCCL_SUCCESS) {
    free(work->transfer);
    return result;
  }
  return pccl_work_run(comm, work);
}
