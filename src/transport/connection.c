#include "transport/connection.h"

#include "base/error.h"

enum { RANK_BITS = 10, CHANNEL_BITS = 32, PROTOCOL_BITS = 2, SIZE_BITS = 6 };

uint64_t pccl_end_key(int src, int dst, int channel, polyccl_protocol protocol, int log2_bytes) {
  uint64_t key = (uint64_t)src << RANK_BITS | (uint64_t)dst;
  key = key << CHANNEL_BITS | (uint32_t)channel;
  key = key << PROTOCOL_BITS | ((uint64_t)protocol + 1);
  return key << SIZE_BITS | (uint64_t)log2_bytes;
}

polyccl_result pccl_end_open(pccl_segment *segment, int src, int dst, int channel, polyccl_protocol protocol,
                             int log2_bytes, bool sender, pccl_end *end) {
  size_t bytes = (size_t)1 << log2_bytes;
  void *memory;
  uint64_t key = pccl_end_key(src, dst, channel, protocol, log2_bytes);
  PCCL_TRY(pccl_segment_find(segment, key, sizeof(pccl_ring) + bytes, &memory));
  int peer = sender ? dst : src;
  *end = (pccl_end){.ring = memory,
                    .peer_cell = &segment->header->cell[peer],
                    .peer = peer,
                    .channel = channel,
                    .protocol = protocol,
                    .bytes = bytes};
  return POLYCCL_SUCCESS;
}
