/* Races: any two steps that touch one chunk of memory, one of them writing, are ordered by thread-block order, waits
 * and messages. Micro-batches touch disjoint memory, and what orders two steps within one micro-batch does so in each,
 * so one micro-batch shows it. A race is between steps of one rank, so each rank is looked at by itself.
 *
 * Per cell, in a topological order, the last writer and the readers since are kept: a read must come after the last
 * writer, a write after it and after all readers since. By transitivity this covers every pair, and steps unordered by
 * any path are found whichever topological order is used.
 *
 * "Comes after" is answered in most cases by clocks within the rank: for each thread block t, how many steps of each
 * thread block u have certainly ended before t's next step, by waits. Clocks change at steps that wait, and a snapshot
 * of each change is kept, since others may wait for an earlier step of t than its latest. What clocks do not show may
 * be ordered through messages to other ranks and back: verify_reach.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/verify.h"

enum {
  NO_STEP = -1,
  /* Entries of all clocks of a rank, of their snapshots, and entries looked at in all. Beyond, clocks know less and
   * verify_reach.c does more. */
  CLOCK_LIMIT = 1 << 24,
  SNAPSHOTS_FREE = 1 << 22,
  SNAPSHOTS_PER_STEP = 256,
  SNAPSHOT_LIMIT = 1 << 25,
  CLOCK_WORK = 1 << 28,
  QUERY_LIMIT = 1 << 16 /* open questions that are answered together */
};

typedef struct snapshot {
  int32_t step; /* index in the thread block: valid from its end on */
  size_t row;
} snapshot;

typedef PCCL_VEC(snapshot) snapshots;

typedef struct reader {
  int32_t step, next;
} reader;

typedef struct race {
  const pccl_verify *v;
  int32_t rank;
  size_t tbs, max_tbs, cells;
  int32_t **clock; /* [max tbs] a row of [max tbs] per thread block; NULL: all 0 */
  size_t clocks;   /* rows made */
  size_t work;
  bool *moved;            /* [max tbs] the row is not all 0 */
  snapshots *history;     /* [max tbs] */
  PCCL_VEC(int32_t) rows; /* the snapshots' clocks */
  int32_t *writer;        /* [cells] */
  int32_t *readers;       /* [cells] head of a list in `pool` */
  PCCL_VEC(reader) pool;
  int32_t spare; /* unused entries of `pool` */
  PCCL_VEC(pccl_reach_query) open;
  pccl_reach *reach;
} race;

/* ---- clocks ---- */

/* Does thread block `tb` know that step `index` of thread block `other` has ended? */
static bool clock_shows(const race *r, int32_t tb, int32_t other, int32_t index) {
  return r->clock[tb] != NULL && r->clock[tb][other] > index;
}

static bool raise_clock(int32_t *clock, int32_t value) {
  if (*clock >= value) {
    return false;
  }
  *clock = value;
  return true;
}

/* What had ended before step `step` of `tb` (both local) ended; NULL: nothing but itself and its predecessors. */
static const int32_t *find_snapshot(const race *r, int32_t tb, int32_t step) {
  const snapshots *history = &r->history[tb];
  size_t low = 0, high = history->len;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (history->data[middle].step <= step) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low > 0 ? r->rows.data + history->data[low - 1].row : NULL;
}

static bool join_clock(race *r, int32_t *clock, const polyccl_wait *wait) {
  bool changed = raise_clock(&clock[wait->tb], wait->step + 1);
  const int32_t *row = changed ? find_snapshot(r, wait->tb, wait->step) : NULL;
  r->work += row != NULL ? r->tbs : 1;
  for (size_t u = 0; row != NULL && u < r->tbs; u++) {
    raise_clock(&clock[u], row[u]);
  }
  return changed;
}

static polyccl_result keep_snapshot(race *r, int32_t tb, int32_t index) {
  size_t limit = SNAPSHOTS_FREE + SNAPSHOTS_PER_STEP * r->v->plan->steps;
  if (r->rows.len + r->tbs > (limit < SNAPSHOT_LIMIT ? limit : SNAPSHOT_LIMIT)) {
    return POLYCCL_SUCCESS;
  }
  if (!pccl_vec_reserve(&r->rows, r->tbs) ||
      !pccl_vec_push(&r->history[tb], (snapshot){.step = index, .row = r->rows.len})) {
    return pccl_verify_no_memory(r->v, "finding races");
  }
  memcpy(r->rows.data + r->rows.len, r->clock[tb], r->tbs * sizeof(int32_t));
  r->rows.len += r->tbs;
  r->work += r->tbs;
  return POLYCCL_SUCCESS;
}

/* False: the clocks have become too many, or too much work. */
static polyccl_result make_clock(race *r, int32_t tb, bool *made) {
  *made = r->work <= CLOCK_WORK && (r->clock[tb] != NULL || (r->clocks + 1) * r->max_tbs <= CLOCK_LIMIT);
  if (*made && r->clock[tb] == NULL) {
    r->clock[tb] = pccl_zeroed(r->max_tbs, sizeof(int32_t));
    r->clocks++;
    return r->clock[tb] != NULL ? POLYCCL_SUCCESS : pccl_verify_no_memory(r->v, "finding races");
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result advance_clock(race *r, int32_t s) {
  const polyccl_step *step = &r->v->plan->step[s];
  int32_t tb = r->v->step_tb[s] - r->v->plan->rank[r->rank].tb;
  bool changed = false, made = false;
  if (step->waits > 0) {
    PCCL_TRY(make_clock(r, tb, &made));
  }
  if (!made) {
    return POLYCCL_SUCCESS;
  }
  int32_t *clock = r->clock[tb];
  for (int32_t w = 0; w < step->waits; w++) {
    const polyccl_wait *wait = &r->v->plan->wait[step->wait + w];
    if (wait->tb != tb && join_clock(r, clock, wait)) {
      changed = true;
    }
  }
  if (!changed) {
    return POLYCCL_SUCCESS;
  }
  r->moved[tb] = true;
  return keep_snapshot(r, tb, pccl_verify_index(r->v, (size_t)s));
}

/* ---- accesses ---- */

/* `before` has touched `cell` earlier in the topological order: is it certain to end before `s`? */
static polyccl_result require_order(race *r, int32_t before, int32_t s, int32_t cell) {
  const pccl_verify *v = r->v;
  int32_t first_tb = v->plan->rank[r->rank].tb;
  int32_t from = v->step_tb[before] - first_tb, to = v->step_tb[s] - first_tb;
  if (from == to || clock_shows(r, to, from, pccl_verify_index(v, (size_t)before))) {
    return POLYCCL_SUCCESS;
  }
  if (r->open.len > 0) {
    const pccl_reach_query *last = &r->open.data[r->open.len - 1];
    if (last->before == before && last->after == s) {
      return POLYCCL_SUCCESS;
    }
  }
  return pccl_vec_push(&r->open, (pccl_reach_query){.before = before, .after = s, .cell = cell})
             ? POLYCCL_SUCCESS
             : pccl_verify_no_memory(r->v, "finding races");
}

static polyccl_result add_cell_reader(race *r, int32_t cell, int32_t s) {
  int32_t head = r->readers[cell];
  if (head != NO_STEP && r->v->step_tb[r->pool.data[head].step] == r->v->step_tb[s]) {
    r->pool.data[head].step = s; /* it comes after the other */
    return POLYCCL_SUCCESS;
  }
  int32_t entry = r->spare;
  if (entry != NO_STEP) {
    r->spare = r->pool.data[entry].next;
  } else if (pccl_vec_push(&r->pool, (reader){0})) {
    entry = (int32_t)(r->pool.len - 1);
  } else {
    return pccl_verify_no_memory(r->v, "finding races");
  }
  r->pool.data[entry] = (reader){.step = s, .next = head};
  r->readers[cell] = entry;
  return POLYCCL_SUCCESS;
}

static polyccl_result record_read(race *r, int32_t cell, int32_t s) {
  if (r->writer[cell] != NO_STEP) {
    PCCL_TRY(require_order(r, r->writer[cell], s, cell));
  }
  return add_cell_reader(r, cell, s);
}

static polyccl_result record_write(race *r, int32_t cell, int32_t s) {
  if (r->writer[cell] != NO_STEP) {
    PCCL_TRY(require_order(r, r->writer[cell], s, cell));
  }
  int32_t entry = r->readers[cell];
  while (entry != NO_STEP) {
    if (r->pool.data[entry].step != s) {
      PCCL_TRY(require_order(r, r->pool.data[entry].step, s, cell));
    }
    int32_t next = r->pool.data[entry].next;
    r->pool.data[entry].next = r->spare;
    r->spare = entry;
    entry = next;
  }
  r->readers[cell] = NO_STEP;
  r->writer[cell] = s;
  return POLYCCL_SUCCESS;
}

static polyccl_result record_accesses(race *r, int32_t s) {
  const polyccl_step *step = &r->v->plan->step[s];
  const pccl_op_traits *op = &pccl_ops[step->op];
  if (op->reads_src) {
    int32_t cell = pccl_verify_cell(r->v, r->rank, step->src_buf, step->src);
    for (int32_t i = 0; i < step->count; i++) {
      PCCL_TRY(record_read(r, cell + i, s));
    }
  }
  if (op->writes_dst) { /* reduce reads them too; to write is the stronger claim */
    int32_t cell = pccl_verify_cell(r->v, r->rank, step->dst_buf, step->dst);
    for (int32_t i = 0; i < step->count; i++) {
      PCCL_TRY(record_write(r, cell + i, s));
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- the message ---- */

/* How step `s` touches `cell`: "writes output[3]". */
typedef struct access_name {
  char text[64];
} access_name;

static access_name name_access(const race *r, int32_t s, int32_t cell, bool prefer_write) {
  const polyccl_step *step = &r->v->plan->step[s];
  const pccl_op_traits *op = &pccl_ops[step->op];
  int32_t src = op->reads_src ? cell - pccl_verify_cell(r->v, r->rank, step->src_buf, step->src) : -1;
  int32_t dst = op->writes_dst ? cell - pccl_verify_cell(r->v, r->rank, step->dst_buf, step->dst) : -1;
  bool reads = src >= 0 && src < step->count, writes = dst >= 0 && dst < step->count;
  bool write = writes && (prefer_write || !reads);
  access_name name;
  snprintf(name.text, sizeof name.text, "%s %s[%d]", write ? "writes" : "reads",
           pccl_verify_buffer(write ? step->dst_buf : step->src_buf), write ? step->dst + dst : step->src + src);
  return name;
}

static polyccl_result report_race(const race *r, const pccl_reach_query *query) {
  access_name first = name_access(r, query->before, query->cell, true);
  access_name second = name_access(r, query->after, query->cell, true);
  return pccl_verify_fail(r->v, query->after, "%s and %s %s (one memory), but nothing orders the two: a race",
                          second.text, pccl_verify_name(r->v, query->before).text, first.text);
}

static polyccl_result answer_open_queries(race *r) {
  size_t failed;
  PCCL_TRY(pccl_reach_ask_all(r->reach, r->open.data, r->open.len, &failed));
  if (failed < r->open.len) {
    return report_race(r, &r->open.data[failed]);
  }
  r->open.len = 0;
  return POLYCCL_SUCCESS;
}

/* ---- ranks ---- */

static void reset_race_rank(race *r, int32_t rank) {
  const polyccl_plan_rank *at = &r->v->plan->rank[rank];
  for (size_t t = 0; t < r->tbs; t++) { /* of the rank before */
    r->history[t].len = 0;
    if (r->moved[t]) {
      memset(r->clock[t], 0, r->tbs * sizeof *r->clock[t]);
      r->moved[t] = false;
    }
  }
  r->rank = rank;
  r->tbs = (size_t)at->tbs;
  r->cells = r->v->cell[rank + 1] - r->v->cell[rank];
  r->rows.len = r->pool.len = 0;
  r->spare = NO_STEP;
  for (size_t c = 0; c < r->cells; c++) {
    r->writer[c] = r->readers[c] = NO_STEP;
  }
}

static polyccl_result check_rank_races(race *r, int32_t rank, const int32_t *steps, size_t count) {
  if (count < 2) {
    return POLYCCL_SUCCESS;
  }
  reset_race_rank(r, rank);
  for (size_t i = 0; i < count; i++) {
    PCCL_TRY(advance_clock(r, steps[i]));
    PCCL_TRY(record_accesses(r, steps[i]));
    if (r->open.len >= QUERY_LIMIT) {
      PCCL_TRY(answer_open_queries(r));
    }
  }
  return answer_open_queries(r);
}

static polyccl_result check_all_rank_races(race *r, size_t *first, int32_t *sorted) {
  const polyccl_plan *plan = r->v->plan;
  pccl_verify_sort_by_rank(r->v, first, sorted);
  for (int32_t rank = 0; rank < plan->ranks; rank++) {
    PCCL_TRY(check_rank_races(r, rank, sorted + first[rank], first[rank + 1] - first[rank]));
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_verify_race(const pccl_verify *v) {
  size_t max_cells = pccl_verify_max_cells(v), tbs = (size_t)v->report.max_tbs;
  race r = {.v = v,
            .max_tbs = tbs,
            .clock = pccl_zeroed(tbs, sizeof(int32_t *)),
            .moved = pccl_zeroed(tbs, sizeof(bool)),
            .history = pccl_zeroed(tbs, sizeof(snapshots)),
            .writer = pccl_array(max_cells, sizeof(int32_t)),
            .readers = pccl_array(max_cells, sizeof(int32_t))};
  size_t *first = pccl_array((size_t)v->plan->ranks + 1, sizeof *first);
  int32_t *sorted = pccl_array(v->plan->steps, sizeof *sorted);
  polyccl_result result = POLYCCL_SUCCESS;
  if (r.clock == NULL || r.moved == NULL || r.history == NULL || r.writer == NULL || r.readers == NULL ||
      first == NULL || sorted == NULL) {
    result = pccl_verify_no_memory(v, "finding races");
  } else if ((result = pccl_reach_open(v, &r.reach)) == POLYCCL_SUCCESS) {
    result = check_all_rank_races(&r, first, sorted);
  }
  pccl_reach_close(r.reach);
  for (size_t t = 0; r.history != NULL && t < tbs; t++) {
    pccl_vec_free(&r.history[t]);
  }
  for (size_t t = 0; r.clock != NULL && t < tbs; t++) {
    free(r.clock[t]);
  }
  free(r.clock);
  free(r.moved);
  free(r.history);
  free(r.writer);
  free(r.readers);
  pccl_vec_free(&r.rows);
  pccl_vec_free(&r.pool);
  pccl_vec_free(&r.open);
  free(first);
  free(sorted);
  return result;
}
