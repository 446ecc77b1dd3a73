/* Messages by copy, as their receiver reads them. */
#include "base/error.h"
#include "executor/messages.h"
#include "executor/references.h"
#include "transport/copy.h"

static polyccl_result fetch(pccl_execution *x, const pccl_prepared_step *step, size_t start, size_t n, uint64_t from) {
  size_t e = x->p->arithmetic.element, pieces = 0;
  pccl_piece piece[PCCL_COPY_PIECES];
  for (uint32_t i = 0; i < step->runs; i++) {
    const pccl_run *run = &step->run[i];
    size_t valid = pccl_min_size(clip(run->remote_src_len, start, n), clip(run->dst_len, start, n));
    piece[pieces++] =
        (pccl_piece){x->base[step->dst_buf] + run->dst + start * e, from + run->remote_src + start * e, valid * e};
    if (pieces == PCCL_COPY_PIECES || i + 1 == step->runs) {
      PCCL_TRY(pccl_member_copy(x->member, step->recv->peer, piece, pieces));
      pieces = 0;
    }
  }
  return POLYCCL_SUCCESS;
}

bool pccl_fetch(pccl_execution *x, const pccl_prepared_step *step, size_t start, size_t n, uint64_t from) {
  if (x->failed == POLYCCL_SUCCESS) {
    x->failed = fetch(x, step, start, n, from);
  }
  return x->failed == POLYCCL_SUCCESS;
}
