#include "view/schedule.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/plan.h"

void pccl_schedule_free(pccl_schedule *schedule) {
  free(schedule->level);
  free(schedule->order);
  free(schedule->sender);
  free(schedule->block);
  *schedule = (pccl_schedule){0};
}

static polyccl_result fail_step(const polyccl_plan *plan, const pccl_schedule *schedule, size_t step,
                                const char *what) {
  const polyccl_thread_block *tb = &plan->tb[schedule->block[step]];
  return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_step_location(plan, &plan->step[step]),
                      "rank %d, thread block %d, step %d (%s) %s", tb->rank,
                      schedule->block[step] - plan->rank[tb->rank].tb, (int32_t)step - tb->step,
                      pccl_ops[plan->step[step].op].name, what);
}

/* The k-th send of a connection is for its k-th receive. */
static polyccl_result match_messages(const polyccl_plan *plan, pccl_schedule *schedule) {
  int32_t *next = pccl_zeroed(plan->connections + 1, sizeof *next); /* first send of each connection in `sends` */
  int32_t *sends = pccl_array(plan->steps, sizeof *sends), *taken = pccl_zeroed(plan->connections, sizeof *taken);
  polyccl_result result = POLYCCL_SUCCESS;
  if (next == NULL || sends == NULL || taken == NULL) {
    result = pccl_no_memory("a schedule");
  } else {
    for (size_t i = 0; i < plan->steps; i++) {
      next[plan->step[i].send >= 0 ? (size_t)plan->step[i].send + 1 : 0]++;
    }
    next[0] = 0;
    for (size_t i = 0; i < plan->connections; i++) {
      next[i + 1] += next[i];
    }
    for (size_t i = 0; i < plan->steps; i++) {
      int32_t connection = plan->step[i].send;
      if (connection >= 0) {
        sends[next[connection] + taken[connection]++] = (int32_t)i;
      }
    }
    for (size_t i = 0; i < plan->connections; i++) {
      taken[i] = 0;
    }
  }
  for (size_t i = 0; i < plan->steps && result == POLYCCL_SUCCESS; i++) {
    int32_t connection = plan->step[i].recv;
    schedule->sender[i] = -1;
    if (connection >= 0) {
      int32_t at = next[connection] + taken[connection]++;
      if (at >= next[connection + 1]) {
        result = fail_step(plan, schedule, i, "receives a message that nobody sends");
      } else if (plan->step[sends[at]].count != plan->step[i].count) {
        result = fail_step(plan, schedule, i, "receives a message of another length");
      } else {
        schedule->sender[i] = sends[at];
      }
    }
  }
  free(next);
  free(sends);
  free(taken);
  return result;
}

/* The k-th step that step i needs to have ended, k in [0, 2 + waits), or -1. */
static int32_t needed_step(const polyccl_plan *plan, const pccl_schedule *s, size_t i, int32_t k) {
  const polyccl_thread_block *own = &plan->tb[s->block[i]];
  if (k == 0) {
    return (int32_t)i > own->step ? (int32_t)i - 1 : -1;
  }
  if (k == 1) {
    return s->sender[i];
  }
  const polyccl_wait *wait = &plan->wait[plan->step[i].wait + k - 2];
  return plan->tb[plan->rank[own->rank].tb + wait->tb].step + wait->step;
}

/* The reverse: after[first[i + 1]] .. after[first[i + 2] - 1] need step i. missing[i]: how many steps i needs. */
static void reverse_needs(const polyccl_plan *plan, const pccl_schedule *s, int32_t *first, int32_t *after,
                          int32_t *missing) {
  for (size_t i = 0; i < plan->steps; i++) {
    for (int32_t k = 0; k < 2 + plan->step[i].waits; k++) {
      int32_t needed = needed_step(plan, s, i, k);
      missing[i] += needed >= 0;
      first[needed + 1] += needed >= 0;
    }
  }
  for (size_t i = 0; i < plan->steps; i++) {
    first[i + 1] += first[i];
  }
  first[plan->steps + 1] = first[plan->steps];
  for (size_t i = plan->steps; i-- > 0;) {
    for (int32_t k = 0; k < 2 + plan->step[i].waits; k++) {
      int32_t needed = needed_step(plan, s, i, k);
      if (needed >= 0) {
        after[--first[needed + 1]] = (int32_t)i; /* its list is filled from its end */
      }
    }
  }
}

/* Kahn's algorithm. */
static polyccl_result order_steps(const polyccl_plan *plan, pccl_schedule *s, int32_t *first, int32_t *after,
                                  int32_t *missing) {
  size_t ready = 0;
  reverse_needs(plan, s, first, after, missing);
  for (size_t i = 0; i < plan->steps; i++) {
    s->level[i] = 0;
    if (missing[i] == 0) {
      s->order[ready++] = (int32_t)i;
    }
  }
  for (size_t done = 0; done < ready; done++) {
    int32_t at = s->order[done];
    s->levels = s->level[at] + 1 > s->levels ? s->level[at] + 1 : s->levels;
    for (int32_t k = first[at + 1]; k < first[at + 2]; k++) {
      int32_t next = after[k];
      s->level[next] = s->level[at] + 1 > s->level[next] ? s->level[at] + 1 : s->level[next];
      if (--missing[next] == 0) {
        s->order[ready++] = next;
      }
    }
  }
  for (size_t i = 0; i < plan->steps; i++) {
    if (missing[i] > 0) {
      return fail_step(plan, s, i, "never starts: the plan waits for itself in a circle");
    }
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_schedule_make(const polyccl_plan *plan, pccl_schedule *schedule) {
  size_t steps = plan->steps, edges = 2 * steps + plan->waits;
  pccl_schedule s = {.level = pccl_array(steps, sizeof(int32_t)),
                     .order = pccl_array(steps, sizeof(int32_t)),
                     .sender = pccl_array(steps, sizeof(int32_t)),
                     .block = pccl_array(steps, sizeof(int32_t))};
  int32_t *first = pccl_zeroed(steps + 2, sizeof *first), *after = pccl_array(edges, sizeof *after);
  int32_t *missing = pccl_zeroed(steps, sizeof *missing);
  polyccl_result result;
  if (s.level == NULL || s.order == NULL || s.sender == NULL || s.block == NULL || first == NULL || after == NULL ||
      missing == NULL) {
    result = pccl_no_memory("a schedule");
  } else {
    for (size_t b = 0; b < plan->tbs; b++) {
      for (int32_t k = 0; k < plan->tb[b].steps; k++) {
        s.block[plan->tb[b].step + k] = (int32_t)b;
      }
    }
    result = match_messages(plan, &s);
    result = result == POLYCCL_SUCCESS ? order_steps(plan, &s, first, after, missing) : result;
  }
  free(first);
  free(after);
  free(missing);
  if (result != POLYCCL_SUCCESS) {
    pccl_schedule_free(&s);
    return result;
  }
  *schedule = s;
  return POLYCCL_SUCCESS;
}
