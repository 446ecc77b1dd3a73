/* Who holds up a call: the rank that it waits for, and whether that rank still comes. */
#include <stdio.h>

#include "base/error.h"
#include "executor/agree.h"
#include "executor/execute.h"
#include "executor/messages.h"
#include "plan/plan.h"

/* What a step that cannot run lacks: its message, or a slot (or the peer's buffers) for what it sends; NULL: neither.
 */
static const pccl_end *lacks(const pccl_execution *x, pccl_tb_state *tb, const pccl_prepared_step *step) {
  const pccl_prepared *p = x->p;
  polyccl_protocol protocol = p->protocol;
  size_t bytes = run_pitch(protocol, tile_elements(p, step, tb->batch) * p->arithmetic.element) * step->runs;
  if (step->recv != NULL && !message_arrived(protocol, x, tb, step, bytes)) {
    return step->recv;
  }
  return step->send;
}

int pccl_execution_awaits(const pccl_execution *x, char *text, size_t length) {
  const pccl_prepared *p = x->p;
  for (uint32_t t = 0; t < p->plan->tbs; t++) {
    pccl_tb_state *tb = &x->state[t];
    const pccl_prepared_step *step = tb->ended ? NULL : &p->tb[t].step[tb->step];
    const pccl_end *end = step != NULL && waits_ended(x, tb, step) ? lacks(x, tb, step) : NULL;
    if (end != NULL) {
      snprintf(text, length,
               "rank %d (thread block %u, step %u %s, micro-batch %llu of %llu, %s channel %d, plan \"%s\")", end->peer,
               t, tb->step, polyccl_step_op_name((polyccl_step_op)step->op), (unsigned long long)tb->batch,
               (unsigned long long)p->batches, end == step->recv ? "message on" : "free slot on", end->channel,
               p->plan->name);
      return end->peer;
    }
  }
  const pccl_end *lent = pccl_execution_lends(x);
  if (lent != NULL) {
    snprintf(text, length, "rank %d to read what was lent to it on channel %d, plan \"%s\"", lent->peer, lent->channel,
             p->plan->name);
    return lent->peer;
  }
  snprintf(text, length, "itself");
  return -1;
}

/* Follows who waits for whom to the rank that holds up all. */
static void describe_chain(const pccl_member *member, int peer, char *text, size_t length) {
  text[0] = '\0';
  int last = peer;
  size_t used = 0;
  for (int hops = 0; last >= 0 && hops < member->ranks && used < length - 1; hops++) {
    int next = atomic_load(&member->board->cell[last].awaits) - 1;
    if (next < 0) {
      snprintf(text + used, length - used, "; rank %d waits for nobody", last);
      return;
    }
    used +=
        (size_t)snprintf(text + used, length - used, "%s rank %d", hops == 0 ? "; it waits for" : ", that for", next);
    if (next == member->rank) {
      return;
    }
    last = next;
  }
}

polyccl_result pccl_give_up(pccl_member *member, int peer, const char *whom) {
  char chain[160];
  describe_chain(member, peer, chain, sizeof chain);
  pccl_board_abort(member->board, POLYCCL_ERROR_TIMEOUT, "rank %d waited %llu s for %s%s", member->rank,
                   (unsigned long long)(member->timeout_ns / 1000000000u), whom, chain);
  return pccl_board_error(member->board);
}

static polyccl_result give_up(const pccl_execution *x) {
  char whom[160];
  int peer = pccl_execution_awaits(x, whom, sizeof whom);
  return pccl_give_up(x->member, peer, whom);
}

/* A rank that has left will send and take nothing more. What it did before is visible once it is seen to have left, so
 * what is lacking in a round after that stays so. */
static polyccl_result check_left(pccl_execution *x) {
  pccl_board *board = x->member->board;
  char whom[160];
  int peer = pccl_execution_awaits(x, whom, sizeof whom);
  atomic_store_explicit(&pccl_member_cell(x->member)->awaits, peer + 1, memory_order_relaxed);
  if (peer < 0 || pccl_board_state(board, peer) != PCCL_RANK_LEFT || pccl_execution_round(x) ||
      pccl_execution_ended(x) || pccl_execution_awaits(x, whom, sizeof whom) != peer) {
    return POLYCCL_SUCCESS;
  }
  pccl_board_abort(board, POLYCCL_ERROR_REMOTE, "rank %d left the communicator; rank %d waits for %s", peer,
                   x->member->rank, whom);
  return pccl_board_error(board);
}

polyccl_result pccl_execution_check(pccl_execution *x, bool timed_out) {
  if (x->failed != POLYCCL_SUCCESS) {
    pccl_board_abort(x->member->board, x->failed, "rank %d: %s", x->member->rank, polyccl_last_error());
    return pccl_board_error(x->member->board);
  }
  PCCL_TRY(pccl_compare_calls(x->member, &x->compare_at, timed_out));
  return timed_out ? give_up(x) : check_left(x);
}
