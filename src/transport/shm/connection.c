/* Connections in shared memory: both sides map the same ring. */
#include <stdlib.h>

#include "base/error.h"
#include "transport/copy.h"
#include "transport/member.h"
#include "transport/shm/segment.h"

/* The counters lie on lines of their own. The signatures of the last messages lie beside the tail, which a receiver
 * reads anyway. */
enum { SIGNATURES_BESIDE_TAIL = 16 };
typedef struct ring {
  alignas(PCCL_LINE) _Atomic uint64_t tail;
  _Atomic uint32_t signature[SIGNATURES_BESIDE_TAIL];
  alignas(PCCL_LINE) _Atomic uint64_t head;
  _Atomic uint32_t copies; /* the receiver asks for messages by copy */
  alignas(PCCL_LINE) char slots[];
} ring;

static polyccl_result connect_end(pccl_member *member, const pccl_connection_key *key, bool sender, pccl_end **end) {
  size_t bytes = (size_t)1 << key->log2_bytes, signatures = (size_t)1 << key->log2_depth;
  size_t behind = signatures > SIGNATURES_BESIDE_TAIL ? signatures * sizeof(uint32_t) : 0;
  pccl_end *made = pccl_zeroed(1, sizeof *made);
  if (made == NULL) {
    return pccl_no_memory("a connection");
  }
  void *memory;
  polyccl_result result =
      pccl_segment_find(member->segment, pccl_connection_number(key), sizeof(ring) + bytes + behind, &memory);
  if (result != POLYCCL_SUCCESS) {
    free(made);
    return result;
  }
  ring *shared = memory;
  int peer = sender ? key->dst : key->src;
  *made = (pccl_end){.tail = &shared->tail,
                     .head = &shared->head,
                     .slots = shared->slots,
                     .copies = &shared->copies,
                     .signature = behind > 0 ? (_Atomic uint32_t *)(void *)(shared->slots + bytes) : shared->signature,
                     .signature_mask = signatures - 1,
                     .attention = &member->board->cell[peer].sleeping,
                     .transport = &pccl_transport_shm,
                     .peer = peer,
                     .channel = key->channel,
                     .same_process = member->peer[peer].same_process,
                     .protocol = key->protocol,
                     .bytes = bytes};
  if (!sender && pccl_member_can_copy(member, peer)) {
    made->tries_copies = member->kernel_copy == PCCL_COPY_AUTO;
    atomic_store_explicit(made->copies, made->tries_copies ? 0 : UINT32_MAX, memory_order_relaxed);
  }
  *end = made;
  return POLYCCL_SUCCESS;
}

static void close_end(pccl_end *end) { free(end); }

static void flush_end(pccl_member *member, pccl_end *end) { pccl_board_ring(member->board, end->peer); }

const pccl_transport pccl_transport_shm = {
    .name = "shm", .lines = true, .addresses = true, .connect = connect_end, .close = close_end, .flush = flush_end};
