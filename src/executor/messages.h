/* Messages of the interpreter: whether one has arrived, whether there is a slot for another. Inline parts of the
 * executor's loop. */
#ifndef PCCL_EXECUTOR_MESSAGES_H
#define PCCL_EXECUTOR_MESSAGES_H

#include "executor/execute.h"
#include "kernel/lines.h"

/* A message's number and its call's signature as one stamp, of which the flags of lines are made. LL has room for 16
 * bits of the number and 15 of the signature, LL128 for 40 and 24. Both stand in the stamp side by side, so a line that
 * an older message has left is never taken for the new one: what could look like it is wiped in time. */
enum { LL_NUMBER_BITS = 16, LL_SIGNATURE_BITS = 15, LL128_SIGNATURE_BITS = 24 };

static inline uint64_t stamp_of(polyccl_protocol protocol, uint64_t number, uint32_t signature) {
  if (protocol == POLYCCL_LL) {
    return (number & (((uint64_t)1 << LL_NUMBER_BITS) - 1)) | (uint64_t)(signature & ((1u << LL_SIGNATURE_BITS) - 1))
                                                                  << LL_NUMBER_BITS;
  }
  return number << LL128_SIGNATURE_BITS | (signature & ((1u << LL128_SIGNATURE_BITS) - 1));
}

/* So many messages after the last wiping, a flag in the ring may be taken for a new one soon. */
static inline uint64_t wipe_every(polyccl_protocol protocol) {
  switch (protocol) {
    case POLYCCL_LL: return (uint64_t)1 << (LL_NUMBER_BITS - 1);
    case POLYCCL_LL128: return (uint64_t)1 << (64 - LL128_SIGNATURE_BITS - 1);
    default: return UINT64_MAX;
  }
}

static inline size_t line_payload(polyccl_protocol protocol) {
  return protocol == POLYCCL_LL ? PCCL_LL_PAYLOAD : PCCL_LL128_PAYLOAD;
}

/* Bytes of a message that one run takes. */
static inline size_t run_pitch(polyccl_protocol protocol, size_t bytes) {
  size_t unit = protocol == POLYCCL_SIMPLE ? 64 : line_payload(protocol);
  return pccl_round_up(bytes, unit);
}

/* Elements of [start, start + n) that are among the first `valid`. */
static inline size_t clip(size_t valid, size_t start, size_t n) {
  return valid <= start ? 0 : pccl_min_size(valid - start, n);
}

static inline size_t tile_elements(const pccl_prepared *p, const pccl_prepared_step *step, uint64_t batch) {
  return p->batches == 1 ? step->len : pccl_min_size(p->tile, step->len - batch * p->tile);
}

static inline char *slot_of(const pccl_prepared *p, const pccl_end *end) {
  return end->slots + (end->count & (p->depth - 1)) * p->slot_bytes;
}

/* A message of another call does not count: the call waits, and the check that follows finds who disagrees. */
static inline bool message_arrived(polyccl_protocol protocol, const pccl_execution *x, pccl_tb_state *tb,
                                   const pccl_prepared_step *step, size_t bytes) {
  pccl_end *end = step->recv;
  if (protocol == POLYCCL_SIMPLE) {
    if (end->cached <= end->count) {
      end->cached = atomic_load_explicit(end->tail, memory_order_acquire);
    }
    return end->cached > end->count &&
           __builtin_expect(atomic_load_explicit(&end->signature[end->count & end->signature_mask],
                                                 memory_order_relaxed) == x->signature,
                            1);
  }
  const char *slot = slot_of(x->p, end);
  uint64_t stamp = stamp_of(protocol, end->count, x->signature);
  return protocol == POLYCCL_LL ? pccl_ll_arrived(slot, &tb->arrived, bytes, stamp)
                                : pccl_ll128_arrived(slot, &tb->arrived, bytes, stamp);
}

/* The ring is empty and may change its geometry, or have old flags wiped out. */
static inline bool drained(polyccl_protocol protocol, const pccl_prepared *p, pccl_end *end) {
  end->cached = atomic_load_explicit(end->head, memory_order_acquire);
  if (end->cached != end->count) {
    return false;
  }
  if (end->count - end->wiped >= wipe_every(protocol)) {
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)end->slots;
    for (size_t i = 0; i < end->bytes / sizeof *word; i++) {
      atomic_store_explicit(&word[i], 0, memory_order_relaxed);
    }
    end->wiped = end->count;
  }
  end->depth = p->depth;
  end->slot_bytes = p->slot_bytes;
  return true;
}

static inline bool ready(polyccl_protocol protocol, const pccl_prepared *p, pccl_end *end) {
  return __builtin_expect(end->slot_bytes == p->slot_bytes && end->depth == p->depth &&
                              end->count - end->wiped < wipe_every(protocol),
                          1) ||
         drained(protocol, p, end);
}

static inline bool has_credit(polyccl_protocol protocol, const pccl_prepared *p, pccl_end *end) {
  if (!ready(protocol, p, end)) {
    return false;
  }
  if (end->count - end->cached >= p->depth) {
    end->cached = atomic_load_explicit(end->head, memory_order_acquire);
  }
  return end->count - end->cached < p->depth;
}

/* Other steps of this rank that must have ended, for this micro-batch. */
static inline bool waits_ended(const pccl_execution *x, const pccl_tb_state *tb, const pccl_prepared_step *step) {
  const pccl_prepared *p = x->p;
  for (uint32_t i = 0; i < step->waits; i++) {
    const polyccl_wait *wait = &step->wait[i];
    uint64_t index = p->plan->order == POLYCCL_BATCH_MAJOR ? tb->batch * p->tb[wait->tb].steps + (uint64_t)wait->step
                                                           : (uint64_t)wait->step * p->batches + tb->batch;
    if (x->state[wait->tb].done <= index) {
      return false;
    }
  }
  return true;
}

#endif
