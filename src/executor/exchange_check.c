/* Exchanges that go wrong: messages that do not match, ranks that are waited for in vain. */
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "executor/agree.h"
#include "executor/exchange_parts.h"
#include "executor/execute.h"

static void name_message(uint64_t what, bool with_kind, char *text, size_t length) {
  uint64_t count = what & (((uint64_t)1 << PCCL_COUNT_BITS) - 1);
  unsigned kind = (unsigned)(what >> (PCCL_COUNT_BITS + PCCL_DTYPE_BITS) & ((1u << PCCL_KIND_BITS) - 1));
  const char *dtype = polyccl_dtype_name((polyccl_dtype)(what >> PCCL_COUNT_BITS & ((1u << PCCL_DTYPE_BITS) - 1)));
  snprintf(text, length, "%llu %s%s%s", (unsigned long long)count, dtype != NULL ? dtype : "?", with_kind ? " of " : "",
           with_kind ? pccl_exchange_kind_name(kind) : "");
}

polyccl_result pccl_exchange_refuse(pccl_exchange *x, const pccl_lane *lane, const pccl_message_head *head) {
  pccl_member *member = x->member;
  const pccl_transfer *t = &x->transfer[lane->current];
  uint64_t wanted = pccl_message_what(t->count, t->dtype, x->kind_number);
  uint64_t sent = head->what & PCCL_WHAT_MASK;
  bool other_kind = (sent ^ wanted) >> (PCCL_COUNT_BITS + PCCL_DTYPE_BITS) != 0;
  if (x->kind_number != 0 && (sent == wanted || other_kind || head->call != x->call)) {
    PCCL_TRY(pccl_find_disagreement(member));
  }
  char there[80], here[80], calls[80] = "";
  name_message(sent, other_kind, there, sizeof there);
  name_message(wanted, other_kind, here, sizeof here);
  if (head->call != x->call) {
    snprintf(calls, sizeof calls, " (calls %lu and %lu)", (unsigned long)head->call, (unsigned long)x->call);
  } else if (sent == wanted) {
    snprintf(calls, sizeof calls, " (the calls differ in their counts, reduction or root)");
  }
  pccl_board_abort(member->board, POLYCCL_ERROR_INVALID, "%s: rank %d sends %s, rank %d receives %s%s", x->kind,
                   lane->end->peer, there, member->rank, here, calls);
  return pccl_board_error(member->board);
}

/* The lane waits for its peer: for a message, a free slot, or that lent data are read; NULL: it does not. */
static const char *lacks(const pccl_exchange *x, const pccl_lane *lane) {
  int32_t current = lane->current;
  if (lane->ending < 0 || (current >= 0 && current == lane->ending && !pccl_may_go(x, current))) {
    return NULL;
  }
  if (!lane->sends) {
    return x->part[current].from == NULL && !pccl_slot_arrived(x, lane->end) ? "to send" : NULL;
  }
  if (current != lane->ending) {
    return x->part[lane->ending].lent > atomic_load_explicit(lane->end->head, memory_order_acquire)
               ? "to read what was lent to it for"
               : NULL;
  }
  return pccl_has_slot(lane->end) ? NULL : "to receive";
}

/* Whom the exchange waits for, from lane *from on; -1: nobody. */
static int awaits(const pccl_exchange *x, size_t *from, char *text, size_t length) {
  for (size_t i = *from; i < x->lanes.len; i++) {
    const pccl_lane *lane = &x->lanes.data[i];
    const char *what = lacks(x, lane);
    if (what != NULL) {
      const pccl_transfer *t = &x->transfer[lane->ending];
      snprintf(text, length, "rank %d %s %zu %s (%s, transfer %d of %zu)", lane->end->peer, what, t->count,
               polyccl_dtype_name(t->dtype), x->kind, (int)lane->ending + 1, x->transfers);
      *from = i;
      return lane->end->peer;
    }
  }
  snprintf(text, length, "itself");
  return -1;
}

static polyccl_result give_up(const pccl_exchange *x) {
  char whom[160];
  size_t from = 0;
  int peer = awaits(x, &from, whom, sizeof whom);
  return pccl_give_up(x->member, peer, whom);
}

/* A rank that has left will send and take nothing more. What it did before is visible once it is seen to have left, so
 * what is lacking in a round after that stays so. */
static polyccl_result check_left(pccl_exchange *x) {
  pccl_member *member = x->member;
  char whom[160];
  size_t from = 0;
  int peer = awaits(x, &from, whom, sizeof whom);
  atomic_store_explicit(&pccl_member_cell(member)->awaits, peer + 1, memory_order_relaxed);
  while (peer >= 0 && pccl_board_state(member->board, peer) != PCCL_RANK_LEFT) {
    from++;
    peer = awaits(x, &from, whom, sizeof whom);
  }
  if (peer < 0 || pccl_exchange_round(x) || x->failed != POLYCCL_SUCCESS) {
    return x->failed;
  }
  pccl_board_abort(member->board, POLYCCL_ERROR_REMOTE, "rank %d left the communicator; rank %d waits for %s", peer,
                   member->rank, whom);
  return pccl_board_error(member->board);
}

polyccl_result pccl_exchange_check(pccl_exchange *x, bool timed_out) {
  if (x->failed != POLYCCL_SUCCESS) {
    return x->failed;
  }
  PCCL_TRY(pccl_compare_calls(x->member, &x->compare_at, timed_out));
  return timed_out ? give_up(x) : check_left(x);
}
