#include "kernel/tiling.h"

#include "base/error.h"
#include "base/size.h"
#include "kernel/lines.h"

enum { SIMPLE_UNIT = 64 }; /* a cache line */

static size_t slot_payload(polyccl_protocol protocol, size_t slot_bytes) {
  switch (protocol) {
    case POLYCCL_LL: return slot_bytes / 2;
    case POLYCCL_LL128: return slot_bytes / PCCL_LL128_BYTES * PCCL_LL128_PAYLOAD;
    default: return slot_bytes;
  }
}

polyccl_result pccl_tiling_find(const pccl_tiling_input *in, pccl_tiling *tiling) {
  size_t unit = in->protocol == POLYCCL_LL128 ? PCCL_LL128_PAYLOAD : SIMPLE_UNIT;
  size_t payload = slot_payload(in->protocol, in->slot_bytes) - in->note_bytes;
  size_t max = payload / in->chunks / unit * unit, stride = in->stride * in->element;
  if (max == 0) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "slots of %zu bytes do not hold messages of %zu chunks", in->slot_bytes,
                     in->chunks);
  }
  size_t wanted = pccl_min_size(in->max_bytes / in->chunks, pccl_pipelined_tile(stride, in->chunks));
  wanted = wanted < max ? pccl_round_up(wanted, unit) : max;
  wanted = pccl_min_size(wanted > 0 ? wanted : unit, max);
  tiling->tile = stride <= wanted ? in->stride : wanted / in->element;
  tiling->batches = in->stride == 0 ? 1 : (in->stride + tiling->tile - 1) / tiling->tile;
  return POLYCCL_SUCCESS;
}
