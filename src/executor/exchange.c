#include "executor/exchange.h"

#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "executor/exchange_parts.h"

static const char *const kinds[] = {"send/recv", "alltoallv", "allgatherv", "reduce_scatterv", "gatherv", "scatterv"};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

const char *pccl_exchange_kind_name(unsigned number) { return number < KINDS ? kinds[number] : "?"; }

/* ---- connections ---- */

enum { LOG2_LARGEST_RING = 18, LOG2_SMALLEST_RING = 12, SHIFTED_SLOT_BYTES = 4096, SHIFT_BYTES = 128 };

/* Slots of the largest rings hold 16 KiB: large enough that what each costs does not count, small enough that both
 * sides work at the same time. */
static polyccl_result open_end(pccl_member *member, const pccl_transfer *t, pccl_end **end) {
  int log2_bytes = LOG2_LARGEST_RING;
  while (log2_bytes > LOG2_SMALLEST_RING && (size_t)member->ranks << log2_bytes > PCCL_EXCHANGE_BYTES) {
    log2_bytes--;
  }
  pccl_connection_key key = {.src = t->sends ? member->rank : t->peer,
                             .dst = t->sends ? t->peer : member->rank,
                             .channel = t->channel,
                             .protocol = member->lines ? POLYCCL_LL128 : POLYCCL_SIMPLE,
                             .log2_bytes = log2_bytes};
  PCCL_TRY(pccl_member_end(member, &key, t->sends, end));
  if ((*end)->depth == 0) {
    (*end)->depth = log2_bytes >= LOG2_LARGEST_RING - 2 ? 16 : 8;
    (*end)->slot_bytes = (*end)->bytes / (*end)->depth;
    if ((*end)->slot_bytes >= SHIFTED_SLOT_BYTES) {
      (*end)->slot_bytes -= SHIFT_BYTES; /* the first lines of slots would meet in one set of the cache */
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result find_lane(pccl_exchange *x, const pccl_transfer *t, pccl_lane **lane) {
  pccl_end *end;
  PCCL_TRY(open_end(x->member, t, &end));
  if (end->lane == 0) {
    if (!pccl_vec_push(&x->lanes,
                       (pccl_lane){.end = end, .sends = t->sends, .current = -1, .ending = -1, .last = -1})) {
      return pccl_no_memory("an exchange");
    }
    end->lane = (uint32_t)x->lanes.len;
  }
  *lane = &x->lanes.data[end->lane - 1];
  return POLYCCL_SUCCESS;
}

/* ---- transfers with oneself ---- */

/* The next transfer with oneself on the channel from `from` on; x->transfers: none. */
static size_t next_own(const pccl_exchange *x, size_t from, bool sends, int channel) {
  size_t i = from;
  while (i < x->transfers && (x->transfer[i].peer != x->member->rank || x->transfer[i].sends != sends ||
                              x->transfer[i].channel != channel)) {
    i++;
  }
  return i;
}

static polyccl_result refuse_own(const pccl_exchange *x, const pccl_transfer *send, const pccl_transfer *recv) {
  int rank = x->member->rank;
  if (send == NULL || recv == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d %s itself without the matching %s in the same group", rank,
                     send != NULL ? "sends to" : "receives from", send != NULL ? "receive" : "send");
  }
  return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d sends %zu %s to itself, but receives %zu %s", rank, send->count,
                   polyccl_dtype_name(send->dtype), recv->count, polyccl_dtype_name(recv->dtype));
}

static void move_own(pccl_exchange *x, size_t send, size_t recv) {
  const pccl_transfer *from = &x->transfer[send], *to = &x->transfer[recv];
  if (to->reduce != NULL) {
    to->reduce(to->buffer, to->buffer, from->buffer, to->count, to->addends);
  } else if (x->part[send].bytes > 0) {
    memmove(to->buffer, from->buffer, x->part[send].bytes);
  }
  x->part[send].ended = x->part[recv].ended = true;
}

/* Checks the transfers with oneself on one channel, or moves them. */
static polyccl_result match_own(pccl_exchange *x, int channel, bool moves) {
  size_t send = next_own(x, 0, true, channel), recv = next_own(x, 0, false, channel);
  while (send < x->transfers || recv < x->transfers) {
    const pccl_transfer *from = send < x->transfers ? &x->transfer[send] : NULL;
    const pccl_transfer *to = recv < x->transfers ? &x->transfer[recv] : NULL;
    if (from == NULL || to == NULL || from->count != to->count || from->dtype != to->dtype) {
      return refuse_own(x, from, to);
    }
    if (moves) {
      move_own(x, send, recv);
    }
    send = next_own(x, send + 1, true, channel);
    recv = next_own(x, recv + 1, false, channel);
  }
  return POLYCCL_SUCCESS;
}

/* ---- beginning ---- */

static polyccl_result reserve(pccl_executor *executor, size_t transfers, pccl_exchange **exchange) {
  if (executor->lease.exchange == NULL) {
    executor->lease.exchange = pccl_zeroed(1, sizeof **exchange);
  }
  pccl_exchange *x = executor->lease.exchange;
  if (x != NULL && x->busy) {
    return pccl_fail(POLYCCL_ERROR_INTERNAL, "two exchanges of one executor at once");
  }
  if (x != NULL && transfers > x->parts) {
    pccl_part *part = pccl_resized(x->part, transfers, sizeof *part);
    if (part != NULL) {
      x->part = part;
      x->parts = transfers;
    }
  }
  if (x == NULL || x->parts < transfers || transfers > INT32_MAX) {
    return pccl_no_memory("an exchange");
  }
  *exchange = x;
  return POLYCCL_SUCCESS;
}

/* Of the call that the rank has left on the board: ranks that do not state it alike must not match. */
static uint32_t sign_call(pccl_member *member) {
  pccl_claim claim;
  if (!pccl_board_claim(member->board, member->rank, member->calls, &claim)) {
    return 0;
  }
  uint64_t mixed = pccl_mix64(claim.count ^ pccl_mix64(claim.plan));
  mixed = pccl_mix64(mixed ^ ((uint64_t)(uint16_t)claim.collective << 48 | (uint64_t)(uint16_t)claim.dtype << 32 |
                              (uint32_t)claim.op));
  mixed = pccl_mix64(mixed ^ ((uint64_t)(uint32_t)claim.root << 32 | (uint32_t)claim.id));
  return (uint32_t)(mixed ^ mixed >> 32);
}

static polyccl_result set_kind(pccl_exchange *x, const char *kind) {
  for (unsigned i = 0; i < KINDS; i++) {
    if (kind == kinds[i] || strcmp(kind, kinds[i]) == 0) {
      x->kind_number = i;
      x->kind = kinds[i];
      x->call = i == 0 ? 0 : (uint32_t)x->member->calls;
      x->signature = i == 0 ? 0 : sign_call(x->member);
      return POLYCCL_SUCCESS;
    }
  }
  return pccl_fail(POLYCCL_ERROR_INTERNAL, "there is no kind of exchange \"%s\"", kind);
}

/* Puts the transfers with others in lanes. *own: some are with oneself. */
static polyccl_result set_lanes(pccl_exchange *x, bool *own) {
  for (size_t i = 0; i < x->transfers; i++) {
    const pccl_transfer *t = &x->transfer[i];
    pccl_part *part = &x->part[i];
    *part = (pccl_part){.next = -1};
    if (t->count >> PCCL_COUNT_BITS != 0 ||
        __builtin_mul_overflow(t->count, polyccl_dtype_size(t->dtype), &part->bytes)) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "%zu elements are more than memory can hold", t->count);
    }
    if (t->peer == x->member->rank) {
      *own = true;
      continue;
    }
    pccl_lane *lane = NULL;
    PCCL_TRY(find_lane(x, t, &lane));
    if (lane->last >= 0) {
      x->part[lane->last].next = (int32_t)i;
    } else {
      lane->current = lane->ending = (int32_t)i;
    }
    lane->last = (int32_t)i;
    x->running++;
  }
  for (size_t i = 0; i < x->transfers; i++) {
    if (x->transfer[i].replaces >= 0) {
      x->part[x->transfer[i].replaces].stays = true;
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result begin(pccl_exchange *x, const char *kind) {
  bool own = false;
  PCCL_TRY(set_kind(x, kind));
  PCCL_TRY(set_lanes(x, &own));
  for (int pass = 0; own && pass < 2; pass++) {
    PCCL_TRY(match_own(x, PCCL_CHANNEL_POINT, pass == 1));
    PCCL_TRY(match_own(x, PCCL_CHANNEL_VECTOR, pass == 1));
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_exchange_begin(pccl_executor *executor, const pccl_transfer *transfer, size_t transfers,
                                   const char *kind, pccl_exchange **exchange) {
  pccl_exchange *x = NULL;
  PCCL_TRY(reserve(executor, transfers, &x));
  x->busy = true;
  x->executor = executor;
  x->member = &executor->member;
  x->transfer = transfer;
  x->transfers = transfers;
  x->running = 0;
  x->lines = executor->member.lines;
  x->lanes.len = 0;
  x->failed = POLYCCL_SUCCESS;
  x->compare_at = 0;
  pccl_region_cache_trim(&x->member->regions);
  polyccl_result result = begin(x, kind);
  if (result != POLYCCL_SUCCESS) {
    pccl_exchange_free(x);
    return result;
  }
  *exchange = x;
  return POLYCCL_SUCCESS;
}

bool pccl_exchange_ended(const pccl_exchange *x) { return x->running == 0; }

void pccl_exchange_free(pccl_exchange *x) {
  if (x != NULL) {
    for (size_t i = 0; i < x->lanes.len; i++) {
      x->lanes.data[i].end->lane = 0;
    }
    x->lanes.len = 0;
    x->busy = false;
  }
}

void pccl_exchange_destroy(pccl_exchange *x) {
  if (x != NULL) {
    pccl_vec_free(&x->lanes);
    free(x->part);
    free(x);
  }
}

polyccl_result pccl_exchange_wait(pccl_exchange *x) {
  pccl_backoff backoff = {0};
  while (!pccl_exchange_ended(x)) {
    if (pccl_exchange_round(x)) {
      pccl_busy(x->member, &backoff);
      continue;
    }
    if (pccl_member_progress(x->member)) {
      continue;
    }
    polyccl_result result = pccl_idle(x->member, &backoff);
    if ((result == POLYCCL_SUCCESS && (backoff.armed || backoff.timed_out)) || x->failed != POLYCCL_SUCCESS) {
      result = pccl_exchange_check(x, backoff.timed_out);
    }
    if (__builtin_expect(result != POLYCCL_SUCCESS, 0)) {
      pccl_busy(x->member, &backoff);
      return result;
    }
  }
  pccl_busy(x->member, &backoff);
  return POLYCCL_SUCCESS;
}
