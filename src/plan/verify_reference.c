/* Messages by reference (docs/plan.md). A mark moves an access in time: by get the receiver reads the place that the
 * sending step leaves, as late as the receive; by put the sender writes the receive's destination, as early as the
 * send. A mark is right when the moved access is still ordered with every other access to the place:
 *
 *   get   every write that comes after the send comes after the end of the receive; a write that is itself a receive,
 *         and so may go by put, comes after it with its own send.
 *   put   every access before the receive ends before the send starts; one that is itself a send by get, with its own
 *         receive.
 *
 * In both, the two steps may be one, when they concern the very same chunks: a fused step takes each element before it
 * stores it. Which of two accesses comes first needs no search: the race check has proved that they are ordered, so the
 * topological order tells. That one comes after the end of another is asked of verify_reach.c, and what a bounded
 * search does not find is taken as no: marking and checking agree, since both are this file.
 *
 * Each cell's accesses are walked once, backwards for get and forwards for put. Of the writes after a send only the
 * next must be asked for, since it comes before the others; of the accesses before a receive, the last write and the
 * reads since. Of the sends of later writes (the receives of earlier sends), which nothing orders, one per thread block
 * is asked for, the first (the last): the others of the thread block follow (go before) it. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "plan/reference.h"
#include "plan/verify.h"

typedef struct access {
  int32_t step;
  bool writes;
} access;

/* One step of each of some thread blocks, kept for all of the thread block. */
typedef struct held_steps {
  PCCL_VEC(int32_t) step;
  int32_t *place; /* [tbs] 1 + the index in `step`, or 0 */
} held_steps;

enum { ASKED = 1 << 12 };

typedef struct marker {
  pccl_verify *v;
  pccl_reach *reach;
  bool *yes;         /* [steps] what is asked of the step's mark, and still holds */
  int32_t *sorted;   /* [steps] the topological order, rank by rank */
  size_t *rank_from; /* [ranks + 1] in sorted */
  int32_t rank;      /* the one whose cells are at hand */
  size_t *first;     /* [cells of a rank + 1] in accesses */
  PCCL_VEC(access) accesses;
  held_steps moved, plain; /* of the cell at hand */
  struct asked {
    int32_t before, after;
    bool yes;
  } asked[ASKED]; /* answers to come back to: neighbouring cells ask the same */
} marker;

typedef struct range {
  int32_t rank, cell, count; /* count 0: none */
} range;

static range find_operand_cells(const pccl_verify *v, int32_t s, uint8_t buffer, int32_t chunk) {
  int32_t rank = pccl_verify_rank(v, (size_t)s);
  return (range){rank, pccl_verify_cell(v, rank, buffer, chunk), v->plan->step[s].count};
}

/* Where the message of sending step `s` stands after it; none for rrs. */
static range find_lent_cells(const pccl_verify *v, int32_t s) {
  const polyccl_step *step = &v->plan->step[s];
  const pccl_op_traits *op = &pccl_ops[step->op];
  if (!op->sends || (op->receives && !op->writes_dst)) {
    return (range){0};
  }
  return op->writes_dst ? find_operand_cells(v, s, step->dst_buf, step->dst)
                        : find_operand_cells(v, s, step->src_buf, step->src);
}

static range find_stored_cells(const pccl_verify *v, int32_t s) {
  return find_operand_cells(v, s, v->plan->step[s].dst_buf, v->plan->step[s].dst);
}

static bool same_cells(range a, range b) { return a.rank == b.rank && a.cell == b.cell && a.count == b.count; }

static bool covers_cell(range r, size_t cell, const pccl_verify *v) {
  return r.count > 0 && cell >= v->cell[r.rank] + (size_t)r.cell &&
         cell < v->cell[r.rank] + (size_t)r.cell + (size_t)r.count;
}

/* `moved` and `other` are one step on the same chunks, or `moved` ends before `other` starts. */
static polyccl_result ends_before(marker *m, int32_t moved, int32_t other, bool same_chunks, bool *yes) {
  if (moved == other) {
    *yes = same_chunks;
    return POLYCCL_SUCCESS;
  }
  uint64_t key = (uint64_t)(uint32_t)moved << 32 | (uint32_t)other;
  struct asked *known = &m->asked[pccl_mix64(key) % ASKED];
  if (known->before != moved || known->after != other) {
    *known = (struct asked){.before = moved, .after = other};
    PCCL_TRY(pccl_reach_ask(m->reach, moved, other, &known->yes));
  }
  *yes = known->yes;
  return POLYCCL_SUCCESS;
}

/* Keeps `step` for its thread block in place of one that it replaces (earlier: of a later one). */
static polyccl_result hold_step(const marker *m, held_steps *held, int32_t step, bool earlier) {
  int32_t *place = &held->place[m->v->step_tb[step]];
  if (*place > 0) {
    int32_t *at = &held->step.data[*place - 1];
    *at = (step < *at) == earlier ? step : *at;
    return POLYCCL_SUCCESS;
  }
  *place = (int32_t)held->step.len + 1;
  return pccl_vec_push(&held->step, step) ? POLYCCL_SUCCESS : pccl_no_memory("marks of messages");
}

static void release_steps(const marker *m, held_steps *held) {
  for (size_t i = 0; i < held->step.len; i++) {
    held->place[m->v->step_tb[held->step.data[i]]] = 0;
  }
  held->step.len = 0;
}

/* ---- get ---- */

/* With what comes later: the next write, and (moved) the sends of writes that may go by put. */
static polyccl_result ask_get_of_send(marker *m, int32_t send, int32_t next_write) {
  const pccl_verify *v = m->v;
  int32_t receive = v->to[send];
  bool *yes = &m->yes[send];
  if (*yes && next_write >= 0) {
    PCCL_TRY(ends_before(m, receive, next_write, false, yes));
  }
  for (size_t i = 0; *yes && i < m->moved.step.len; i++) {
    int32_t source = m->moved.step.data[i];
    PCCL_TRY(ends_before(m, receive, source, same_cells(find_lent_cells(v, send), find_stored_cells(v, v->to[source])),
                         yes));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result ask_gets_of_cell(marker *m, size_t cell) {
  const pccl_verify *v = m->v;
  int32_t next_write = -1;
  release_steps(m, &m->moved);
  for (size_t end = m->first[cell + 1], a = end; end > m->first[cell]; end = a) {
    int32_t s = m->accesses.data[end - 1].step;
    bool writes = false;
    for (a = end; a > m->first[cell] && m->accesses.data[a - 1].step == s; a--) {
      writes = writes || m->accesses.data[a - 1].writes;
    }
    if (m->yes[s] && covers_cell(find_lent_cells(v, s), v->cell[m->rank] + cell, v)) {
      PCCL_TRY(ask_get_of_send(m, s, next_write));
    }
    next_write = writes ? s : next_write;
    if (writes && pccl_op_stores_message(v->plan->step[s].op)) {
      PCCL_TRY(hold_step(m, &m->moved, v->from[s], true));
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- put ---- */

/* With what came earlier: (plain) the last write and the reads since, (moved) the receives of sends by get. */
static polyccl_result ask_put_of_receive(marker *m, int32_t receive) {
  const pccl_verify *v = m->v;
  int32_t send = v->from[receive];
  bool *yes = &m->yes[receive];
  for (size_t i = 0; *yes && i < m->plain.step.len; i++) {
    PCCL_TRY(ends_before(m, m->plain.step.data[i], send, false, yes));
  }
  for (size_t i = 0; *yes && i < m->moved.step.len; i++) {
    int32_t taker = m->moved.step.data[i];
    PCCL_TRY(ends_before(m, taker, send, same_cells(find_lent_cells(v, v->from[taker]), find_stored_cells(v, receive)),
                         yes));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result ask_puts_of_cell(marker *m, size_t cell) {
  const pccl_verify *v = m->v;
  release_steps(m, &m->moved);
  release_steps(m, &m->plain);
  for (size_t from = m->first[cell], a = from; from < m->first[cell + 1]; from = a) {
    int32_t s = m->accesses.data[from].step;
    bool writes = false;
    for (a = from; a < m->first[cell + 1] && m->accesses.data[a].step == s; a++) {
      writes = writes || m->accesses.data[a].writes;
    }
    if (m->yes[s] && writes) {
      PCCL_TRY(ask_put_of_receive(m, s));
    }
    if (writes) {
      release_steps(m, &m->plain);
    }
    PCCL_TRY(hold_step(m, &m->plain, s, false));
    if ((v->plan->step[s].flags & POLYCCL_FLAG_GET) != 0 &&
        covers_cell(find_lent_cells(v, s), v->cell[m->rank] + cell, v)) {
      PCCL_TRY(hold_step(m, &m->moved, v->to[s], false));
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- accesses by cell ---- */

/* Counts the accesses of a range (`enter`: enters them). */
static void list_accesses_of_operand(marker *m, int32_t s, range place, bool writes, bool enter) {
  for (int32_t i = 0; i < place.count; i++) {
    size_t *at = &m->first[place.cell + i + 1];
    if (enter) {
      m->accesses.data[*at] = (access){s, writes};
    }
    ++*at;
  }
}

static void list_accesses_of_steps(marker *m, bool enter) {
  const pccl_verify *v = m->v;
  for (size_t i = m->rank_from[m->rank]; i < m->rank_from[m->rank + 1]; i++) {
    int32_t s = m->sorted[i];
    const polyccl_step *step = &v->plan->step[s];
    if (pccl_ops[step->op].reads_src) {
      list_accesses_of_operand(m, s, find_operand_cells(v, s, step->src_buf, step->src), false, enter);
    }
    if (pccl_ops[step->op].writes_dst) {
      list_accesses_of_operand(m, s, find_stored_cells(v, s), true, enter);
    }
  }
}

/* The accesses of a rank, by cell, in topological order. */
static polyccl_result list_rank_accesses(marker *m) {
  size_t cells = m->v->cell[m->rank + 1] - m->v->cell[m->rank];
  memset(m->first, 0, (cells + 2) * sizeof *m->first);
  m->first++; /* counts at [cell + 1], then running positions; at last [cell] is where a cell's begin */
  list_accesses_of_steps(m, false);
  for (size_t i = 0; i < cells; i++) {
    m->first[i + 1] += m->first[i];
  }
  m->accesses.len = 0;
  bool room = pccl_vec_reserve(&m->accesses, m->first[cells]);
  m->first--;
  if (!room) {
    return pccl_no_memory("the accesses to a rank's memory");
  }
  list_accesses_of_steps(m, true);
  return POLYCCL_SUCCESS;
}

/* Asks, of all steps with `yes`, whether the mark is right; `gets` or puts. */
static polyccl_result ask_all_marks(marker *m, bool gets) {
  const pccl_verify *v = m->v;
  for (m->rank = 0; m->rank < v->plan->ranks; m->rank++) {
    bool any = false;
    for (size_t i = m->rank_from[m->rank]; i < m->rank_from[m->rank + 1]; i++) {
      any = any || m->yes[m->sorted[i]];
    }
    if (!any) {
      continue;
    }
    PCCL_TRY(list_rank_accesses(m));
    for (size_t cell = 0; cell < v->cell[m->rank + 1] - v->cell[m->rank]; cell++) {
      if (m->first[cell + 1] - m->first[cell] > 1) {
        PCCL_TRY(gets ? ask_gets_of_cell(m, cell) : ask_puts_of_cell(m, cell));
      }
    }
  }
  return POLYCCL_SUCCESS;
}

static void close_marker(marker *m) {
  if (m != NULL) {
    pccl_reach_close(m->reach);
    free(m->yes);
    free(m->sorted);
    free(m->rank_from);
    free(m->first);
    pccl_vec_free(&m->accesses);
    pccl_vec_free(&m->moved.step);
    pccl_vec_free(&m->plain.step);
    free(m->moved.place);
    free(m->plain.place);
    free(m);
  }
}

static polyccl_result open_marker(pccl_verify *v, marker **opened) {
  size_t max_cells = pccl_verify_max_cells(v);
  marker *m = *opened = pccl_zeroed(1, sizeof *m);
  if (m == NULL) {
    return pccl_no_memory("marks of messages");
  }
  m->v = v;
  m->yes = pccl_zeroed(v->plan->steps, sizeof *m->yes);
  m->sorted = pccl_array(v->plan->steps, sizeof *m->sorted);
  m->rank_from = pccl_array((size_t)v->plan->ranks + 1, sizeof *m->rank_from);
  m->first = pccl_array(max_cells + 2, sizeof *m->first);
  m->moved.place = pccl_zeroed(v->plan->tbs, sizeof *m->moved.place);
  m->plain.place = pccl_zeroed(v->plan->tbs, sizeof *m->plain.place);
  if (m->moved.place == NULL || m->plain.place == NULL || m->yes == NULL || m->sorted == NULL || m->rank_from == NULL ||
      m->first == NULL) {
    return pccl_no_memory("marks of messages");
  }
  pccl_verify_sort_by_rank(v, m->rank_from, m->sorted);
  return pccl_reach_open(v, &m->reach);
}

/* ---- the two uses ---- */

/* The mark of step `s` was not shown to be right. */
static polyccl_result refuse_mark(const marker *m, int32_t s, const char *what) {
  if (pccl_reach_exhausted(m->reach)) {
    return pccl_fail(POLYCCL_ERROR_LIMIT,
                     "the marks get and put of this plan take more than %zu steps to follow, the verifier's limit; the "
                     "plan is as right without marks",
                     PCCL_VERIFY_MAX_REACH);
  }
  return pccl_verify_fail(m->v, s, "%s", what);
}

/* `flag`: GET or PUT. */
static polyccl_result check_marks(marker *m, uint8_t flag, const char *what) {
  const pccl_verify *v = m->v;
  for (size_t s = 0; s < v->plan->steps; s++) {
    m->yes[s] = (v->plan->step[s].flags & flag) != 0;
    if (m->yes[s] && flag == POLYCCL_FLAG_GET && find_lent_cells(v, (int32_t)s).count == 0) {
      return pccl_verify_fail(v, (int32_t)s, "is marked get, but this op leaves no message in memory");
    }
    if (m->yes[s] && flag == POLYCCL_FLAG_PUT && !pccl_op_stores_message(v->plan->step[s].op)) {
      return pccl_verify_fail(v, (int32_t)s, "is marked put, but only recv and rcs store what they receive as it is");
    }
  }
  PCCL_TRY(ask_all_marks(m, flag == POLYCCL_FLAG_GET));
  for (size_t s = 0; s < v->plan->steps; s++) {
    if ((v->plan->step[s].flags & flag) != 0 && !m->yes[s]) {
      return refuse_mark(m, (int32_t)s, what);
    }
  }
  return POLYCCL_SUCCESS;
}

static bool plan_has_marks(const polyccl_plan *plan) {
  for (size_t s = 0; s < plan->steps; s++) {
    if (plan->step[s].flags != 0) {
      return true;
    }
  }
  return false;
}

polyccl_result pccl_verify_references(pccl_verify *v) {
  if (!plan_has_marks(v->plan)) {
    return POLYCCL_SUCCESS;
  }
  marker *m;
  polyccl_result result = open_marker(v, &m);
  if (result == POLYCCL_SUCCESS) {
    result =
        check_marks(m, POLYCCL_FLAG_GET, "is marked get, but what it sends may be overwritten before it is received");
  }
  if (result == POLYCCL_SUCCESS) {
    result =
        check_marks(m, POLYCCL_FLAG_PUT, "is marked put, but its destination may be in use when the message is sent");
  }
  close_marker(m);
  return result;
}

static void keep_marks(const marker *m, polyccl_plan *plan, uint8_t flag) {
  for (size_t s = 0; s < plan->steps; s++) {
    plan->step[s].flags = (uint8_t)(plan->step[s].flags & (m->yes[s] ? 0xff : ~flag));
  }
}

/* The gets first: puts go round them. */
static polyccl_result restrict_all_marks(marker *m, polyccl_plan *plan) {
  for (size_t s = 0; s < plan->steps; s++) {
    m->yes[s] = (plan->step[s].flags & POLYCCL_FLAG_GET) != 0;
  }
  PCCL_TRY(ask_all_marks(m, true));
  keep_marks(m, plan, POLYCCL_FLAG_GET);
  for (size_t s = 0; s < plan->steps; s++) {
    m->yes[s] = (plan->step[s].flags & POLYCCL_FLAG_PUT) != 0;
  }
  PCCL_TRY(ask_all_marks(m, false));
  keep_marks(m, plan, POLYCCL_FLAG_PUT);
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_verify_restrict_marks(pccl_verify *v, polyccl_plan *plan) {
  if (!plan_has_marks(plan)) {
    return POLYCCL_SUCCESS;
  }
  marker *m;
  polyccl_result result = open_marker(v, &m);
  result = result == POLYCCL_SUCCESS ? restrict_all_marks(m, plan) : result;
  close_marker(m);
  return result;
}

polyccl_result pccl_verify_mark(pccl_verify *v, polyccl_plan *plan) {
  for (size_t s = 0; s < plan->steps; s++) {
    const polyccl_step *step = &plan->step[s];
    bool lends = step->send >= 0 && find_lent_cells(v, (int32_t)s).count > 0;
    bool stores = step->recv >= 0 && pccl_op_stores_message(step->op);
    plan->step[s].flags = (uint8_t)((lends ? POLYCCL_FLAG_GET : 0) | (stores ? POLYCCL_FLAG_PUT : 0));
  }
  return pccl_verify_restrict_marks(v, plan);
}
