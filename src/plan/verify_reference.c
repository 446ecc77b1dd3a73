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
 * search does not find is taken as no: marking and checking agree, since both are this file. */
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/reference.h"
#include "plan/verify.h"

typedef struct access {
  int32_t step;
  bool writes;
} access;

typedef struct marker {
  pccl_verify *v;
  pccl_reach *reach;
  int32_t *position; /* [steps] in the topological order */
  size_t *first;     /* [cells + 1] in accesses */
  access *accesses;
  size_t total;
} marker;

typedef struct range {
  int32_t rank, cell, count; /* count 0: none */
} range;

static range range_of(const pccl_verify *v, int32_t s, uint8_t buffer, int32_t chunk) {
  int32_t rank = pccl_verify_rank(v, (size_t)s);
  return (range){rank, pccl_verify_cell(v, rank, buffer, chunk), v->plan->step[s].count};
}

/* Where the message of sending step `s` stands after it; none for rrs. */
static range lent_by(const pccl_verify *v, int32_t s) {
  const polyccl_step *step = &v->plan->step[s];
  const pccl_op_traits *op = &pccl_ops[step->op];
  if (!op->sends || (op->receives && !op->writes_dst)) {
    return (range){0};
  }
  return op->writes_dst ? range_of(v, s, step->dst_buf, step->dst) : range_of(v, s, step->src_buf, step->src);
}

static range stored_by(const pccl_verify *v, int32_t s) {
  return range_of(v, s, v->plan->step[s].dst_buf, v->plan->step[s].dst);
}

static bool same(range a, range b) { return a.rank == b.rank && a.cell == b.cell && a.count == b.count; }

static bool covers(range r, size_t cell, const pccl_verify *v) {
  return r.count > 0 && cell >= v->cell[r.rank] + (size_t)r.cell &&
         cell < v->cell[r.rank] + (size_t)r.cell + (size_t)r.count;
}

/* A receive that only stores: the sender could do it. */
static bool only_stores(const pccl_verify *v, int32_t s) {
  uint8_t op = v->plan->step[s].op;
  return op == POLYCCL_STEP_RECV || op == POLYCCL_STEP_RCS;
}

/* `moved` and `other` are one step on the same chunks, or `moved` ends before `other` starts. */
static polyccl_result ends_before(marker *m, int32_t moved, int32_t other, bool same_chunks, bool *yes) {
  if (moved == other) {
    *yes = same_chunks;
    return POLYCCL_SUCCESS;
  }
  return pccl_reach_ask(m->reach, moved, other, yes);
}

static polyccl_result write_allows_get(marker *m, int32_t send, int32_t write, bool *yes) {
  const pccl_verify *v = m->v;
  int32_t receive = v->to[send];
  PCCL_TRY(ends_before(m, receive, write, false, yes));
  if (*yes && only_stores(v, write)) {
    int32_t source = v->from[write];
    return ends_before(m, receive, source, same(lent_by(v, send), stored_by(v, write)), yes);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result may_get(marker *m, int32_t send, bool *yes) {
  const pccl_verify *v = m->v;
  range place = lent_by(v, send);
  *yes = place.count > 0;
  for (int32_t i = 0; *yes && i < place.count; i++) {
    size_t cell = v->cell[place.rank] + (size_t)(place.cell + i);
    for (size_t a = m->first[cell]; *yes && a < m->first[cell + 1]; a++) {
      const access *other = &m->accesses[a];
      if (other->writes && m->position[other->step] > m->position[send]) {
        PCCL_TRY(write_allows_get(m, send, other->step, yes));
      }
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result access_allows_put(marker *m, int32_t receive, int32_t before, size_t cell, bool *yes) {
  const pccl_verify *v = m->v;
  int32_t send = v->from[receive];
  PCCL_TRY(ends_before(m, before, send, false, yes));
  bool lends = (v->plan->step[before].flags & POLYCCL_FLAG_GET) != 0 && covers(lent_by(v, before), cell, v);
  if (*yes && lends) {
    return ends_before(m, v->to[before], send, same(lent_by(v, before), stored_by(v, receive)), yes);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result may_put(marker *m, int32_t receive, bool *yes) {
  const pccl_verify *v = m->v;
  *yes = only_stores(v, receive);
  range place = stored_by(v, receive);
  for (int32_t i = 0; *yes && i < place.count; i++) {
    size_t cell = v->cell[place.rank] + (size_t)(place.cell + i);
    for (size_t a = m->first[cell]; *yes && a < m->first[cell + 1]; a++) {
      int32_t other = m->accesses[a].step;
      if (m->position[other] < m->position[receive]) {
        PCCL_TRY(access_allows_put(m, receive, other, cell, yes));
      }
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- accesses by cell ---- */

/* Calls for each cell that step `s` touches: counts it (accesses NULL) or enters it. */
static void touch(marker *m, int32_t s, range place, bool writes) {
  for (int32_t i = 0; i < place.count; i++) {
    size_t cell = m->v->cell[place.rank] + (size_t)(place.cell + i);
    if (m->accesses != NULL) {
      m->accesses[m->first[cell + 1]] = (access){s, writes};
    }
    m->first[cell + 1]++;
  }
}

static void touch_all(marker *m) {
  const pccl_verify *v = m->v;
  for (size_t s = 0; s < v->plan->steps; s++) {
    const polyccl_step *step = &v->plan->step[s];
    if (pccl_ops[step->op].reads_src) {
      touch(m, (int32_t)s, range_of(v, (int32_t)s, step->src_buf, step->src), false);
    }
    if (pccl_ops[step->op].writes_dst) {
      touch(m, (int32_t)s, stored_by(v, (int32_t)s), true);
    }
  }
}

static polyccl_result open_marker(pccl_verify *v, marker *m) {
  size_t cells = v->cell[v->plan->ranks];
  *m = (marker){.v = v};
  m->position = pccl_array(v->plan->steps + 1, sizeof *m->position);
  m->first = pccl_zeroed(cells + 2, sizeof *m->first);
  if (m->position == NULL || m->first == NULL) {
    return pccl_no_memory("the verifier");
  }
  for (size_t i = 0; i < v->plan->steps; i++) {
    m->position[v->order[i]] = (int32_t)i;
  }
  m->first++; /* counts at [cell + 1], then running positions; at last [cell] is where a cell's begin */
  touch_all(m);
  for (size_t i = 0; i < cells; i++) {
    m->first[i + 1] += m->first[i];
  }
  m->total = m->first[cells];
  m->first--;
  access *made = pccl_array(m->total + 1, sizeof *made);
  if (made == NULL) {
    return pccl_no_memory("the verifier");
  }
  m->accesses = made;
  touch_all(m);
  return pccl_reach_open(v, &m->reach);
}

static void close_marker(marker *m) {
  free(m->position);
  free(m->first);
  free(m->accesses);
  pccl_reach_close(m->reach);
}

/* ---- the two uses ---- */

static polyccl_result check_step(marker *m, int32_t s) {
  const pccl_verify *v = m->v;
  const polyccl_step *step = &v->plan->step[s];
  bool yes = true;
  if ((step->flags & POLYCCL_FLAG_GET) != 0) {
    if (lent_by(v, s).count == 0) {
      return pccl_verify_fail(v, s, "marked get, but this op leaves no message in memory");
    }
    PCCL_TRY(may_get(m, s, &yes));
    if (!yes) {
      return pccl_verify_fail(v, s, "marked get, but what it sends may be overwritten before it is received");
    }
  }
  if ((step->flags & POLYCCL_FLAG_PUT) != 0) {
    if (!only_stores(v, s)) {
      return pccl_verify_fail(v, s, "marked put, but only recv and rcs store what they receive as it is");
    }
    PCCL_TRY(may_put(m, s, &yes));
    if (!yes) {
      return pccl_verify_fail(v, s, "marked put, but its destination may be in use when the message is sent");
    }
  }
  return POLYCCL_SUCCESS;
}

static bool is_marked(const polyccl_plan *plan) {
  for (size_t s = 0; s < plan->steps; s++) {
    if (plan->step[s].flags != 0) {
      return true;
    }
  }
  return false;
}

polyccl_result pccl_verify_references(pccl_verify *v) {
  if (!is_marked(v->plan)) {
    return POLYCCL_SUCCESS;
  }
  if (v->plan->steps > PCCL_REFERENCE_MAX_STEPS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "a plan with get and put has at most %d steps, not %zu",
                     PCCL_REFERENCE_MAX_STEPS, v->plan->steps);
  }
  marker m;
  polyccl_result result = open_marker(v, &m);
  for (size_t s = 0; s < v->plan->steps && result == POLYCCL_SUCCESS; s++) {
    result = check_step(&m, (int32_t)s);
  }
  close_marker(&m);
  return result;
}

polyccl_result pccl_verify_mark(pccl_verify *v, polyccl_plan *plan) {
  marker m;
  polyccl_result result = open_marker(v, &m);
  for (size_t s = 0; s < plan->steps && result == POLYCCL_SUCCESS; s++) {
    bool yes = false;
    plan->step[s].flags = 0;
    if (plan->step[s].send >= 0) {
      result = may_get(&m, (int32_t)s, &yes);
      plan->step[s].flags |= yes ? POLYCCL_FLAG_GET : 0;
    }
  }
  for (size_t s = 0; s < plan->steps && result == POLYCCL_SUCCESS; s++) {
    bool yes = false;
    if (plan->step[s].recv >= 0) {
      result = may_put(&m, (int32_t)s, &yes);
      plan->step[s].flags |= yes ? POLYCCL_FLAG_PUT : 0;
    }
  }
  close_marker(&m);
  return result;
}
