/* Point to point, and the barrier. */
#include <string.h>

#include "base/error.h"
#include "runtime/op.h"

static polyccl_result check_transfer(const polyccl_comm *comm, const pccl_transfer *t) {
  PCCL_TRY(pccl_comm_usable(comm));
  const char *call = t->sends ? "polyccl_send" : "polyccl_recv";
  if ((unsigned)t->dtype >= POLYCCL_DTYPE_COUNT) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: unknown data type (number %d)", call, (int)t->dtype);
  }
  if (t->peer < 0 || t->peer >= comm->executor.member.ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: peer %d is out of range (0 to %d)", call, t->peer,
                     comm->executor.member.ranks - 1);
  }
  if (t->count > SIZE_MAX / 4096 / polyccl_dtype_size(t->dtype)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: %zu elements are more than memory can hold", call, t->count);
  }
  if (t->buffer == NULL && t->count > 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: the buffer is NULL", call);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result submit(polyccl_comm *comm, polyccl_stream *stream, pccl_transfer t) {
  PCCL_TRY(check_transfer(comm, &t));
  pccl_transfer *kept = pccl_array(1, sizeof *kept);
  if (kept == NULL) {
    return pccl_no_memory("a send or receive");
  }
  *kept = t;
  pccl_work work = {.transfer = kept, .transfers = 1, .name = "send/recv"};
  return pccl_submit(comm, stream, &work);
}

polyccl_result polyccl_send(const void *send, size_t count, polyccl_dtype dtype, int peer, polyccl_comm *comm,
                            polyccl_stream *stream) {
  return submit(comm, stream,
                (pccl_transfer){.sends = true,
                                .peer = peer,
                                .channel = PCCL_CHANNEL_POINT,
                                .buffer = (void *)(uintptr_t)send,
                                .count = count,
                                .dtype = dtype,
                                .after = -1,
                                .replaces = -1});
}

polyccl_result polyccl_recv(void *recv, size_t count, polyccl_dtype dtype, int peer, polyccl_comm *comm,
                            polyccl_stream *stream) {
  return submit(comm, stream,
                (pccl_transfer){.peer = peer,
                                .channel = PCCL_CHANNEL_POINT,
                                .buffer = recv,
                                .count = count,
                                .dtype = dtype,
                                .after = -1,
                                .replaces = -1});
}

/* Nobody has the result before all have called. The calls of a communicator run one after another, so they can share
 * its memory. */
polyccl_result polyccl_barrier(polyccl_comm *comm, polyccl_stream *stream) {
  PCCL_TRY(pccl_comm_usable(comm));
  return polyccl_allreduce(&comm->barrier[0], &comm->barrier[1], 1, POLYCCL_UINT8, POLYCCL_MAX, comm, stream);
}
