/* Matching: on each connection the k-th send meets the k-th receive, and both move as many chunks. Each direction is
 * in one thread block, so "k-th" is the order of that thread block and the same in every execution. */
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/verify.h"

/* One direction of all connections. */
typedef struct direction {
  int32_t *tb;    /* [connections] the thread block that uses it, or -1 */
  int32_t *count; /* [connections] */
} direction;

static polyccl_result record_direction_use(const pccl_verify *v, direction *d, int32_t connection, int32_t s,
                                           const char *verb) {
  int32_t tb = v->step_tb[s];
  if (d->tb[connection] != -1 && d->tb[connection] != tb) {
    const polyccl_connection *at = &v->plan->connection[connection];
    int32_t other = d->tb[connection] - v->plan->rank[v->plan->tb[tb].rank].tb;
    return pccl_verify_fail(v, s, "%s on the connection from rank %d to rank %d, channel %d, but so does tb %d", verb,
                            at->src, at->dst, at->channel, other);
  }
  d->tb[connection] = tb;
  d->count[connection]++;
  return POLYCCL_SUCCESS;
}

static polyccl_result count_messages(const pccl_verify *v, direction *sends, direction *receives) {
  const polyccl_plan *plan = v->plan;
  for (size_t s = 0; s < plan->steps; s++) {
    const polyccl_step *step = &plan->step[s];
    if (step->send >= 0) {
      PCCL_TRY(record_direction_use(v, sends, step->send, (int32_t)s, "sends"));
    }
    if (step->recv >= 0) {
      PCCL_TRY(record_direction_use(v, receives, step->recv, (int32_t)s, "receives"));
    }
  }
  for (size_t c = 0; c < plan->connections; c++) {
    if (sends->count[c] != receives->count[c]) {
      const polyccl_connection *at = &plan->connection[c];
      return pccl_fail(POLYCCL_ERROR_INVALID,
                       "the connection from rank %d to rank %d, channel %d, has %d sends but %d receives", at->src,
                       at->dst, at->channel, sends->count[c], receives->count[c]);
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result pair_messages(pccl_verify *v, int32_t *first, int32_t *sends, int32_t *next) {
  const polyccl_plan *plan = v->plan;
  /* A thread block's steps are consecutive, so ascending index is the order in it. */
  for (size_t s = 0; s < plan->steps; s++) {
    int32_t c = plan->step[s].send;
    if (c >= 0) {
      sends[first[c] + next[c]++] = (int32_t)s;
    }
  }
  for (size_t c = 0; c < plan->connections; c++) {
    next[c] = 0;
  }
  for (size_t s = 0; s < plan->steps; s++) {
    int32_t c = plan->step[s].recv;
    if (c < 0) {
      continue;
    }
    int32_t k = next[c]++, sent = sends[first[c] + k];
    if (plan->step[sent].count != plan->step[s].count) {
      return pccl_verify_fail(v, (int32_t)s, "receives %d chunks, but message %d on its connection has %d, from %s",
                              plan->step[s].count, k, plan->step[sent].count, pccl_verify_name(v, sent).text);
    }
    v->from[s] = sent;
    v->to[sent] = (int32_t)s;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result match_connections(pccl_verify *v, int32_t *work, int32_t *sends) {
  size_t n = v->plan->connections;
  direction out = {.tb = work, .count = work + n}, in = {.tb = work + 2 * n, .count = work + 3 * n};
  for (size_t c = 0; c < n; c++) {
    out.tb[c] = in.tb[c] = -1;
  }
  PCCL_TRY(count_messages(v, &out, &in));
  int32_t *first = in.tb, *next = in.count, total = 0;
  for (size_t c = 0; c < n; c++) {
    first[c] = total;
    total += out.count[c];
    next[c] = 0;
  }
  return pair_messages(v, first, sends, next);
}

polyccl_result pccl_verify_match(pccl_verify *v) {
  size_t steps = v->plan->steps;
  v->from = pccl_array(steps, sizeof *v->from);
  v->to = pccl_array(steps, sizeof *v->to);
  int32_t *work = pccl_zeroed(v->plan->connections, 4 * sizeof *work);
  int32_t *sends = pccl_array(steps, sizeof *sends);
  polyccl_result result;
  if (v->from == NULL || v->to == NULL || work == NULL || sends == NULL) {
    result = pccl_verify_no_memory(v, "matching the messages");
  } else {
    for (size_t s = 0; s < steps; s++) {
      v->from[s] = v->to[s] = -1;
    }
    result = match_connections(v, work, sends);
  }
  free(work);
  free(sends);
  return result;
}
