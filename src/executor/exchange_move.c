/* The data of exchanges: pieces in slots, and by reference. */
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "executor/exchange_parts.h"

/* Slots of one lane in one visit, so that other lanes go on, too. */
enum { MOST_PIECES = 16 };

/* Where the data of a message begin in its slots. */
static inline size_t data_offset(size_t bytes, size_t slot_bytes) {
  return bytes <= PCCL_INLINE_BYTES && bytes + PCCL_HEAD_BYTES <= slot_bytes ? PCCL_HEAD_BYTES : PCCL_APART_BYTES;
}

static inline bool is_whole(const pccl_part *part) { return part->moved == part->bytes; }

/* ---- sending ---- */

/* What the receiver needs to read the data in our memory; false: it cannot. */
static bool lend(const pccl_end *end, const pccl_transfer *t, const pccl_part *part, pccl_reference *reference) {
  if (part->bytes < PCCL_LEND_BYTES || part->stays || !end->transport->addresses) {
    return false;
  }
  *reference = end->same_process ? (pccl_reference){.address = (uint64_t)(uintptr_t)t->buffer}
                                 : pccl_region_reference(t->buffer, part->bytes);
  return end->same_process || reference->region != 0;
}

static void publish(const pccl_exchange *x, pccl_end *end, pccl_message_head *head) {
  if (x->lines) {
    atomic_store_explicit(&head->flag, pccl_ll128_flag(end->count), memory_order_release);
    end->count++;
    pccl_will_write(pccl_slot_of(end));
  } else {
    atomic_store_explicit(end->tail, ++end->count, memory_order_release);
  }
  pccl_end_flush(x->member, end);
}

static void send_piece(const pccl_exchange *x, pccl_end *end, const pccl_transfer *t, pccl_part *part) {
  pccl_message_head *head = pccl_slot_of(end);
  if (!part->begun) {
    part->begun = true;
    pccl_reference reference;
    bool lends = lend(end, t, part, &reference);
    head->what = pccl_message_what(t->count, t->dtype, x->kind_number) | (uint64_t)(lends ? PCCL_BY_GET : PCCL_BY_SLOT)
                                                                             << PCCL_WAY_SHIFT;
    head->call = x->call;
    head->signature = x->signature;
    if (lends) {
      memcpy((char *)head + PCCL_HEAD_BYTES, &reference, sizeof reference);
      part->moved = part->bytes;
      part->lent = end->count + 1;
      publish(x, end, head);
      return;
    }
  }
  size_t offset = data_offset(part->bytes, end->slot_bytes);
  size_t n = pccl_min_size(end->slot_bytes - offset, part->bytes - part->moved);
  if (n > 0) {
    memcpy((char *)head + offset, (const char *)t->buffer + part->moved, n);
  }
  part->moved += n;
  publish(x, end, head);
}

/* Sends end in their order; those by reference when they have been read. */
static bool settle(pccl_exchange *x, pccl_lane *lane) {
  bool moved = false;
  for (; lane->ending != lane->current; lane->ending = x->part[lane->ending].next) {
    pccl_part *part = &x->part[lane->ending];
    pccl_end *end = lane->end;
    if (part->lent > end->cached) {
      end->cached = atomic_load_explicit(end->head, memory_order_acquire);
      if (part->lent > end->cached) {
        break;
      }
    }
    part->ended = true;
    x->running--;
    moved = true;
  }
  return moved;
}

static bool push(pccl_exchange *x, pccl_lane *lane) {
  bool moved = false;
  for (int pieces = 0; lane->current >= 0 && pieces < MOST_PIECES; pieces++) {
    pccl_part *part = &x->part[lane->current];
    if (!pccl_may_go(x, lane->current) || !pccl_has_slot(lane->end)) {
      break;
    }
    send_piece(x, lane->end, &x->transfer[lane->current], part);
    moved = true;
    if (is_whole(part)) {
      part->posted = true;
      lane->current = part->next;
    }
  }
  return settle(x, lane) || moved;
}

/* ---- receiving ---- */

static void give_back(const pccl_exchange *x, pccl_end *end) {
  atomic_store_explicit(end->head, ++end->count, memory_order_release);
  pccl_end_flush(x->member, end);
}

static void take(const pccl_transfer *t, size_t at, const char *from, size_t n) {
  if (n == 0) {
    return;
  }
  char *to = (char *)t->buffer + at;
  if (t->reduce != NULL) {
    t->reduce(to, to, from, n / polyccl_dtype_size(t->dtype), t->addends);
  } else {
    memcpy(to, from, n);
  }
}

/* Reads the head of a message. */
static polyccl_result open_message(pccl_exchange *x, const pccl_lane *lane, const pccl_transfer *t, pccl_part *part) {
  const pccl_message_head *head = pccl_slot_of(lane->end);
  if (__builtin_expect((head->what & PCCL_WHAT_MASK) != pccl_message_what(t->count, t->dtype, x->kind_number) ||
                           head->call != x->call || head->signature != x->signature,
                       0)) {
    return pccl_exchange_refuse(x, lane, head);
  }
  part->begun = true;
  pccl_way way = (pccl_way)(head->what >> PCCL_WAY_SHIFT);
  if (way == PCCL_BY_SLOT) {
    return POLYCCL_SUCCESS;
  }
  pccl_reference reference;
  memcpy(&reference, (const char *)head + PCCL_HEAD_BYTES, sizeof reference);
  if (way != PCCL_BY_GET) {
    return pccl_fail(POLYCCL_ERROR_INTERNAL, "rank %d sends a message in way %d", lane->end->peer, (int)way);
  }
  char *from = (char *)(uintptr_t)reference.address;
  if (!lane->end->same_process) {
    PCCL_TRY(pccl_region_address(&x->member->regions, x->member->peer[lane->end->peer].pid, reference, &from));
  }
  part->from = from;
  return POLYCCL_SUCCESS;
}

static void get_piece(const pccl_exchange *x, pccl_end *end, const pccl_transfer *t, pccl_part *part) {
  size_t n = pccl_min_size(PCCL_GET_BYTES, part->bytes - part->moved);
  take(t, part->moved, part->from + part->moved, n);
  part->moved += n;
  if (is_whole(part)) {
    give_back(x, end);
  }
}

/* False: what the piece replaces was not sent yet. */
static bool take_piece(const pccl_exchange *x, pccl_end *end, const pccl_transfer *t, pccl_part *part) {
  size_t offset = data_offset(part->bytes, end->slot_bytes);
  size_t n = pccl_min_size(end->slot_bytes - offset, part->bytes - part->moved);
  if (t->replaces >= 0 && x->part[t->replaces].moved < part->moved + n) {
    return false;
  }
  take(t, part->moved, (const char *)pccl_slot_of(end) + offset, n);
  part->moved += n;
  give_back(x, end);
  return true;
}

static bool pull(pccl_exchange *x, pccl_lane *lane) {
  bool moved = false;
  for (int pieces = 0; lane->current >= 0 && pieces < MOST_PIECES; pieces++) {
    const pccl_transfer *t = &x->transfer[lane->current];
    pccl_part *part = &x->part[lane->current];
    if (part->from == NULL && (!pccl_may_go(x, lane->current) || !pccl_slot_arrived(x, lane->end))) {
      break;
    }
    if (!part->begun) {
      polyccl_result result = open_message(x, lane, t, part);
      if (result != POLYCCL_SUCCESS) {
        x->failed = result;
        return false;
      }
    }
    if (part->from != NULL) {
      get_piece(x, lane->end, t, part);
      pieces = MOST_PIECES;
    } else if (!take_piece(x, lane->end, t, part)) {
      break;
    }
    moved = true;
    if (is_whole(part)) {
      part->ended = true;
      x->running--;
      lane->current = lane->ending = part->next;
    }
  }
  return moved;
}

bool pccl_exchange_round(pccl_exchange *x) {
  bool moved = false;
  for (size_t i = 0; i < x->lanes.len && x->failed == POLYCCL_SUCCESS; i++) {
    pccl_lane *lane = &x->lanes.data[i];
    if (lane->ending >= 0) {
      moved |= lane->sends ? push(x, lane) : pull(x, lane);
    }
  }
  return moved;
}
