/* Why a plan cannot end: follows what each thread block waits for until it closes on itself, or meets one that has
 * finished. */
#include <stdio.h>

#include "base/error.h"
#include "base/file.h"
#include "plan/plan.h"
#include "simulator/machine.h"

/* The thread block that the one at `t` waits for; -1: there is none. */
static int32_t waits_for(const sim *s, int32_t t) {
  const sim_tb *tb = &s->tb[t];
  switch ((sim_blocked)tb->blocked) {
    case SIM_ON_BLOCK: return tb->on;
    case SIM_ON_DATA: return s->connection[tb->on].src_tb;
    case SIM_ON_CREDIT: return s->connection[tb->on].dst_tb;
    default: return -1;
  }
}

static void describe_block(const sim *s, int32_t t, pccl_text *text) {
  const sim_tb *tb = &s->tb[t];
  const polyccl_step *step = &s->plan->step[tb->first + tb->step];
  polyccl_location at = pccl_step_location(s->plan, step);
  int32_t first = s->plan->rank[tb->rank].tb;
  pccl_text_add(text, "rank %d, thread block %d, step %d (%s", tb->rank, t - first, tb->step,
                polyccl_step_op_name((polyccl_step_op)step->op));
  if (at.file != NULL) {
    pccl_text_add(text, ", %s:%d", at.file, at.line);
  }
  pccl_text_add(text, s->batches > 1 ? ", micro-batch %d) " : ") ", tb->batch);
  const polyccl_connection *c = tb->blocked == SIM_ON_BLOCK ? NULL : &s->plan->connection[tb->on];
  if (c == NULL) {
    int64_t position = tb->begin;
    int32_t steps = s->tb[tb->on].steps;
    int32_t waited = (int32_t)(s->task_major ? position / s->batches : position % steps);
    pccl_text_add(text, "waits for thread block %d, step %d", tb->on - first, waited);
  } else if (tb->blocked == SIM_ON_DATA) {
    pccl_text_add(text, "waits for a message from rank %d, channel %d", c->src, c->channel);
  } else {
    pccl_text_add(text, "waits for a free slot to rank %d, channel %d (depth %d)", c->dst, c->channel, s->depth);
  }
}

polyccl_result pccl_sim_stuck(const sim *s) {
  int32_t at = 0;
  while (at < s->tbs && s->tb[at].blocked == SIM_FINISHED) {
    at++;
  }
  if (at == s->tbs) {
    return POLYCCL_SUCCESS;
  }
  enum { SHOWN = 8 };
  pccl_text text = {0};
  int32_t next = at;
  for (int32_t i = 0; i <= s->tbs && next >= 0 && s->tb[next].blocked != SIM_FINISHED; i++) {
    at = next; /* after as many hops as there are thread blocks: on the cycle, or at its end */
    next = waits_for(s, at);
  }
  bool ends = next < 0 || s->tb[next].blocked == SIM_FINISHED;
  describe_block(s, at, &text);
  int32_t length = 1;
  for (int32_t t = next; !ends && t != at; t = waits_for(s, t), length++) {
    if (length < SHOWN) {
      pccl_text_add(&text, "; ");
      describe_block(s, t, &text);
    }
  }
  if (length > SHOWN) {
    pccl_text_add(&text, "; and %d more", length - SHOWN);
  }
  polyccl_result result = text.failed ? pccl_no_memory("an error message")
                                      : pccl_fail(POLYCCL_ERROR_INVALID, "the plan cannot end: %s%s", text.data,
                                                  ends ? ", and nobody is left to do that" : " (a cycle)");
  pccl_text_free(&text);
  return result;
}
