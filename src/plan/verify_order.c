/* Order: the plan runs to its end with the FIFO depth it names; the least such depth; an order of all steps.
 *
 * The plan is run once, without data, by a machine that starts whatever can start. A step that can start stays so
 * whatever others do (nobody takes its message or its credit away: each direction of a connection has one thread
 * block), so every execution gets as far as every other: this run ends if and only if all do. When it stops early,
 * each unfinished thread block waits for another unfinished one, which gives the cycle to report.
 *
 * Batch-major: thread-block order, waits, messages and credits each lead from micro-batch m to m or a later one, and
 * connections have as many sends as receives, so that within a micro-batch they are the same for each m. A cycle
 * therefore stays in one micro-batch, and one shows it for any number of them.
 *
 * Task-major: verify_tasks.c. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/verify.h"

enum { UNLIMITED = INT32_MAX, NOBODY = -1 };

typedef struct machine {
  const pccl_verify *v;
  int32_t depth;
  int32_t *done;              /* [tbs] steps ended */
  int32_t *awaited;           /* [tbs] waits of the next step that are over */
  int32_t *ready, readies;    /* [tbs] a stack of thread blocks that may go on */
  int32_t *waiting, *next;    /* [steps] first thread block waiting for the step's end; [tbs] the list's next */
  int32_t *sent, *received;   /* [connections] */
  int32_t *sender, *receiver; /* [connections] the thread block waiting for a credit, a message; or NOBODY */
} machine;

typedef enum blockage { NOTHING = 0, A_WAIT, A_MESSAGE, A_CREDIT } blockage;

static void free_machine(machine *m) {
  free(m->done);
  free(m->awaited);
  free(m->ready);
  free(m->waiting);
  free(m->next);
  free(m->sent);
  free(m->received);
  free(m->sender);
  free(m->receiver);
}

static polyccl_result make_machine(machine *m, const pccl_verify *v) {
  size_t tbs = v->plan->tbs, connections = v->plan->connections;
  *m = (machine){.v = v,
                 .done = pccl_array(tbs, sizeof(int32_t)),
                 .awaited = pccl_array(tbs, sizeof(int32_t)),
                 .ready = pccl_array(tbs, sizeof(int32_t)),
                 .waiting = pccl_array(v->plan->steps, sizeof(int32_t)),
                 .next = pccl_array(tbs, sizeof(int32_t)),
                 .sent = pccl_array(connections, sizeof(int32_t)),
                 .received = pccl_array(connections, sizeof(int32_t)),
                 .sender = pccl_array(connections, sizeof(int32_t)),
                 .receiver = pccl_array(connections, sizeof(int32_t))};
  if (m->done == NULL || m->awaited == NULL || m->ready == NULL || m->waiting == NULL || m->next == NULL ||
      m->sent == NULL || m->received == NULL || m->sender == NULL || m->receiver == NULL) {
    free_machine(m);
    return pccl_verify_no_memory(v, "finding an order of the steps");
  }
  return POLYCCL_SUCCESS;
}

static void reset_machine(machine *m, int32_t depth) {
  const polyccl_plan *plan = m->v->plan;
  m->depth = depth;
  m->readies = (int32_t)plan->tbs;
  for (size_t t = 0; t < plan->tbs; t++) {
    m->done[t] = m->awaited[t] = 0;
    m->ready[t] = (int32_t)(plan->tbs - 1 - t);
  }
  for (size_t s = 0; s < plan->steps; s++) {
    m->waiting[s] = NOBODY;
  }
  for (size_t c = 0; c < plan->connections; c++) {
    m->sent[c] = m->received[c] = 0;
    m->sender[c] = m->receiver[c] = NOBODY;
  }
}

/* What keeps step `s`, the next of its thread block, from starting; for A_WAIT also the awaited step. */
static blockage find_blockage(machine *m, int32_t s, int32_t *awaited) {
  const pccl_verify *v = m->v;
  const polyccl_step *step = &v->plan->step[s];
  int32_t rank = pccl_verify_rank(v, (size_t)s);
  for (int32_t w = m->awaited[v->step_tb[s]]; w < step->waits; w++) {
    int32_t b = pccl_verify_awaited(v, rank, &v->plan->wait[step->wait + w]);
    if (m->done[v->step_tb[b]] <= pccl_verify_index(v, (size_t)b)) {
      *awaited = b;
      return A_WAIT;
    }
    m->awaited[v->step_tb[s]] = w + 1;
  }
  if (step->recv >= 0 && m->received[step->recv] == m->sent[step->recv]) {
    return A_MESSAGE;
  }
  if (step->send >= 0 && m->sent[step->send] - m->received[step->send] >= m->depth) {
    return A_CREDIT;
  }
  return NOTHING;
}

static void wake_thread_block(machine *m, int32_t *place) {
  if (*place != NOBODY) {
    m->ready[m->readies++] = *place;
    *place = NOBODY;
  }
}

static void end_step(machine *m, int32_t s) {
  const polyccl_step *step = &m->v->plan->step[s];
  m->done[m->v->step_tb[s]]++;
  m->awaited[m->v->step_tb[s]] = 0;
  if (step->recv >= 0) {
    m->received[step->recv]++;
    wake_thread_block(m, &m->sender[step->recv]);
  }
  if (step->send >= 0) {
    m->sent[step->send]++;
    wake_thread_block(m, &m->receiver[step->send]);
  }
  for (int32_t t = m->waiting[s]; t != NOBODY; t = m->next[t]) {
    m->ready[m->readies++] = t;
  }
}

/* A thread block waits in one place at a time, so it stands in `ready` or in one list at most once. */
static void run_thread_block(machine *m, int32_t t, int32_t *order, size_t *ended) {
  const polyccl_thread_block *tb = &m->v->plan->tb[t];
  while (m->done[t] < tb->steps) {
    int32_t s = tb->step + m->done[t], awaited = -1;
    switch (find_blockage(m, s, &awaited)) {
      case NOTHING: break;
      case A_WAIT:
        m->next[t] = m->waiting[awaited];
        m->waiting[awaited] = t;
        return;
      case A_MESSAGE: m->receiver[m->v->plan->step[s].recv] = t; return;
      case A_CREDIT: m->sender[m->v->plan->step[s].send] = t; return;
    }
    end_step(m, s);
    if (order != NULL) {
      order[*ended] = s;
    }
    ++*ended;
  }
}

/* True when every step ends; `order` (or NULL) gets the steps as they end. */
static bool run_machine(machine *m, int32_t depth, int32_t *order) {
  size_t ended = 0;
  reset_machine(m, depth);
  while (m->readies > 0) {
    run_thread_block(m, m->ready[--m->readies], order, &ended);
  }
  return ended == m->v->plan->steps;
}

/* ---- the message ---- */

/* The receive that frees the slot which the send `s` needs: that of the message `depth` before its own. */
static int32_t find_freeing_receive(const machine *m, int32_t s) {
  const polyccl_step *step = m->v->plan->step;
  int32_t c = step[s].send;
  for (int32_t back = m->depth; back > 0; back--) {
    do {
      s--;
    } while (step[s].send != c);
  }
  return m->v->to[s];
}

static int32_t find_blocking_step(machine *m, int32_t s, blockage *why) {
  int32_t awaited = -1;
  *why = find_blockage(m, s, &awaited);
  switch (*why) {
    case A_MESSAGE: return m->v->from[s];
    case A_CREDIT: return find_freeing_receive(m, s);
    default: return awaited;
  }
}

static int32_t find_next_step(const machine *m, int32_t t) { return m->v->plan->tb[t].step + m->done[t]; }

/* After a run that stopped early: a thread block on a cycle of thread blocks that wait for one another. A walk from
 * one to the next closes it where it comes by a second time; each is looked at once, since what blocks it may be far
 * back in its steps. */
static int32_t find_blocked_cycle(machine *m) {
  const polyccl_plan *plan = m->v->plan;
  int32_t t = 0, *passed = m->next; /* the lists of who waits for what are not needed any more */
  for (size_t i = 0; i < plan->tbs; i++) {
    passed[i] = 0;
  }
  while (m->done[t] == plan->tb[t].steps) {
    t++;
  }
  blockage why;
  while (passed[t] == 0) {
    passed[t] = 1;
    t = m->v->step_tb[find_blocking_step(m, find_next_step(m, t), &why)];
  }
  return t;
}

static polyccl_result report_deadlock(machine *m, const char *remedy) {
  enum { MAX_LISTED = 6 };
  static const char *const reasons[] = {"", "the end of", "a message from", "a free slot, by the receive of"};
  char text[2048];
  size_t at = 0;
  int32_t first = find_blocked_cycle(m), t = first, blocks = 0;
  const pccl_verify *v = m->v;
  do {
    blockage why;
    int32_t s = find_next_step(m, t), b = find_blocking_step(m, s, &why);
    if (blocks < MAX_LISTED) {
      at += (size_t)snprintf(text + at, sizeof text - at, "%s%s waits for %s %s", blocks > 0 ? "; " : "",
                             pccl_verify_name(v, s).text, reasons[why], pccl_verify_name(v, b).text);
      at = at < sizeof text ? at : sizeof text - 1;
    }
    blocks++;
    t = v->step_tb[b];
  } while (t != first);
  char more[48] = "";
  if (blocks > MAX_LISTED) {
    snprintf(more, sizeof more, "; and %d more until the cycle closes", blocks - MAX_LISTED);
  }
  polyccl_location place = pccl_step_location(v->plan, &v->plan->step[find_next_step(m, first)]);
  return pccl_fail_at(POLYCCL_ERROR_INVALID, place, "deadlock%s: %s%s", remedy, text, more);
}

/* ---- depths ---- */

/* The least depth in (bad, good] that lets the plan end; more depth never hurts. */
static int32_t bisect_min_depth(machine *m, int32_t bad, int32_t good) {
  while (good - bad > 1) {
    int32_t middle = bad + (good - bad) / 2;
    if (run_machine(m, middle, NULL)) {
      good = middle;
    } else {
      bad = middle;
    }
  }
  return good;
}

/* On success `order` is one of thread-block order, waits and messages (and perhaps of credits too). */
static polyccl_result find_min_depth(machine *m, int32_t asked, int32_t *order, int32_t *depth) {
  if (run_machine(m, 1, order)) {
    *depth = 1;
    return POLYCCL_SUCCESS;
  }
  if (!run_machine(m, UNLIMITED, order)) {
    return report_deadlock(m, " (with any FIFO depth)");
  }
  int32_t bad = 1, good = 2;
  while (!run_machine(m, good, NULL)) { /* ends: a depth of all the plan's steps is as good as unlimited */
    bad = good;
    good *= 2;
  }
  *depth = bisect_min_depth(m, bad, good);
  if (asked > 0 && asked < *depth) {
    char remedy[64];
    snprintf(remedy, sizeof remedy, " with FIFO depth %d (it needs at least %d)", asked, *depth);
    run_machine(m, asked, NULL);
    return report_deadlock(m, remedy);
  }
  return POLYCCL_SUCCESS;
}

/* ---- what later phases need ---- */

static void find_levels(pccl_verify *v) {
  const polyccl_plan *plan = v->plan;
  int32_t longest = 0;
  for (size_t i = 0; i < plan->steps; i++) {
    int32_t s = v->order[i], level = 0, rank = pccl_verify_rank(v, (size_t)s);
    const polyccl_step *step = &plan->step[s];
    if (s > pccl_verify_tb(v, (size_t)s)->step) {
      level = v->level[s - 1];
    }
    if (v->from[s] >= 0 && v->level[v->from[s]] > level) {
      level = v->level[v->from[s]];
    }
    for (int32_t w = 0; w < step->waits; w++) {
      int32_t b = pccl_verify_awaited(v, rank, &plan->wait[step->wait + w]);
      level = v->level[b] > level ? v->level[b] : level;
    }
    v->level[s] = level + 1;
    longest = v->level[s] > longest ? v->level[s] : longest;
  }
  v->report.longest = (size_t)longest;
}

void pccl_verify_sort_by_rank(const pccl_verify *v, size_t *first, int32_t *sorted) {
  const polyccl_plan *plan = v->plan;
  size_t *end = first + 1; /* while steps are placed: where the next step of the rank goes */
  size_t steps = 0;
  first[0] = 0;
  for (int32_t r = 0; r < plan->ranks; r++) {
    end[r] = steps;
    for (int32_t t = plan->rank[r].tb; t < plan->rank[r].tb + plan->rank[r].tbs; t++) {
      steps += (size_t)plan->tb[t].steps;
    }
  }
  for (size_t i = 0; i < plan->steps; i++) {
    sorted[end[pccl_verify_rank(v, (size_t)v->order[i])]++] = v->order[i];
  }
}

polyccl_result pccl_verify_order(pccl_verify *v) {
  v->order = pccl_array(v->plan->steps, sizeof *v->order);
  v->level = pccl_array(v->plan->steps, sizeof *v->level);
  if (v->order == NULL || v->level == NULL) {
    return pccl_verify_no_memory(v, "finding an order of the steps");
  }
  machine m;
  PCCL_TRY(make_machine(&m, v));
  polyccl_result result;
  if (v->plan->order == POLYCCL_BATCH_MAJOR) {
    result = find_min_depth(&m, v->plan->fifo_depth, v->order, &v->report.fifo_depth);
  } else {
    v->report.fifo_depth = 1;
    result =
        run_machine(&m, UNLIMITED, v->order) ? pccl_verify_tasks(v) : report_deadlock(&m, " (with any FIFO depth)");
  }
  free_machine(&m);
  if (result == POLYCCL_SUCCESS) {
    find_levels(v);
  }
  return result;
}
