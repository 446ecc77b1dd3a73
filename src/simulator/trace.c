/* Keeps what was asked for: the critical path, the records, the use of links. */
#include <stdlib.h>

#include "base/error.h"
#include "base/map.h"
#include "plan/plan.h"
#include "simulator/machine.h"

static uint64_t execution_at(const sim *s, const sim_tb *tb, int64_t position) {
  int32_t step = (int32_t)(s->task_major ? position / s->batches : position % tb->steps);
  int32_t batch = (int32_t)(s->task_major ? position % s->batches : position / tb->steps);
  return sim_execution(s, tb, step, batch);
}

static uint64_t encode_cause(uint64_t execution, polyccl_sim_state state) { return (execution + 1) << 3 | state; }

static uint64_t find_cause(const sim *s, int32_t t, int64_t blocks, int64_t data, int64_t credit) {
  const sim_tb *tb = &s->tb[t];
  const sim_step *step = sim_current(s, tb);
  if (credit > data) {
    const sim_connection *c = &s->connection[step->send];
    return encode_cause(s->slot_exec[c->slot + c->send_slot], POLYCCL_SIM_WAIT_CREDIT);
  }
  if (data > blocks) {
    const sim_connection *c = &s->connection[step->recv];
    return encode_cause(s->slot_exec[c->slot + c->recv_slot], POLYCCL_SIM_WAIT_DATA);
  }
  for (uint32_t w = 0; w < step->waits && blocks > tb->free; w++) {
    const sim_wait *wait = &s->wait[step->wait + (int32_t)w];
    if (*sim_target(s, wait->target, tb->batch) == blocks) {
      return encode_cause(sim_execution(s, &s->tb[wait->tb], wait->step, tb->batch), POLYCCL_SIM_WAIT_BLOCKS);
    }
  }
  return tb->done > 0 ? encode_cause(execution_at(s, tb, tb->done - 1), POLYCCL_SIM_BUSY) : 0;
}

void pccl_sim_trace_ready(sim *s, int32_t t, int64_t blocks, int64_t data, int64_t credit) {
  s->moments[t] = (sim_moments){blocks, data, credit};
  if (s->exec != NULL) {
    const sim_tb *tb = &s->tb[t];
    s->exec[sim_execution(s, tb, tb->step, tb->batch)].cause = find_cause(s, t, blocks, data, credit);
  }
}

void pccl_sim_trace_processor(sim *s, int32_t t, int32_t released_by) {
  const sim_tb *tb = &s->tb[t], *by = &s->tb[released_by];
  if (s->exec != NULL && s->now > tb->begin) {
    s->exec[sim_execution(s, tb, tb->step, tb->batch)].cause =
        encode_cause(execution_at(s, by, by->done - 1), POLYCCL_SIM_WAIT_BLOCKS);
  }
}

static void add_record(sim *s, int32_t t, int64_t start, int64_t end, polyccl_sim_state state) {
  if (end <= start) {
    return;
  }
  const sim_tb *tb = &s->tb[t];
  polyccl_sim_record record = {.start = (double)start / SIM_PS_PER_US,
                               .end = (double)end / SIM_PS_PER_US,
                               .rank = tb->rank,
                               .tb = t - s->plan->rank[tb->rank].tb,
                               .step = tb->step,
                               .micro_batch = tb->batch,
                               .state = (int32_t)state};
  if (s->record.len >= POLYCCL_SIM_MAX_MEMORY / sizeof record || !pccl_vec_push(&s->record, record)) {
    s->no_memory = true;
  }
}

void pccl_sim_trace_end(sim *s, int32_t t, int64_t end) {
  const sim_tb *tb = &s->tb[t];
  const sim_step *step = sim_current(s, tb);
  uint64_t execution = sim_execution(s, tb, tb->step, tb->batch);
  if (s->exec != NULL) {
    s->exec[execution].begin = tb->begin;
    s->exec[execution].end = end;
  }
  if (step->recv >= 0) {
    s->slot_exec[s->connection[step->recv].slot + s->connection[step->recv].recv_slot] = execution;
  }
  if (step->send >= 0) {
    s->slot_exec[s->connection[step->send].slot + s->connection[step->send].send_slot] = execution;
  }
  if ((s->options.keep & POLYCCL_SIM_TIMELINE) != 0) {
    const sim_moments *m = &s->moments[t];
    add_record(s, t, tb->free, m->blocks, POLYCCL_SIM_WAIT_BLOCKS);
    add_record(s, t, m->blocks, m->data, POLYCCL_SIM_WAIT_DATA);
    add_record(s, t, m->data, m->credit, POLYCCL_SIM_WAIT_CREDIT);
    add_record(s, t, m->credit, tb->begin, POLYCCL_SIM_WAIT_BLOCKS);
    add_record(s, t, tb->begin, end, POLYCCL_SIM_BUSY);
  }
}

void pccl_sim_trace_use(sim *s, int32_t t, int64_t time, double rate, int flows) {
  const sim_step *step = sim_current(s, &s->tb[t]);
  if ((s->options.keep & POLYCCL_SIM_LINK_USE) == 0 || (step->kind & (SIM_OUT | SIM_IN)) == 0) {
    return;
  }
  const sim_connection *c = &s->connection[(step->kind & SIM_OUT) != 0 ? step->send : step->recv];
  for (int32_t h = 0; h < c->hops; h++) {
    sim_change change = {time, s->hop[c->hop + h], flows, rate};
    if (s->change.len >= POLYCCL_SIM_MAX_MEMORY / sizeof change || !pccl_vec_push(&s->change, change)) {
      s->no_memory = true;
    }
  }
}

/* ---- results ---- */

/* The records of each thread block are in order already, so one counting pass puts the thread blocks in order. */
static polyccl_result sort_records(sim *s, polyccl_simulation *result) {
  size_t *first = pccl_zeroed((size_t)s->tbs + 1, sizeof *first);
  polyccl_sim_record *sorted = pccl_array(s->record.len, sizeof *sorted);
  if (first == NULL || sorted == NULL) {
    free(first);
    free(sorted);
    return pccl_no_memory("the timeline");
  }
  for (size_t i = 0; i < s->record.len; i++) {
    const polyccl_sim_record *r = &s->record.data[i];
    first[s->plan->rank[r->rank].tb + r->tb + 1]++;
  }
  for (int32_t t = 0; t < s->tbs; t++) {
    first[t + 1] += first[t];
  }
  for (size_t i = 0; i < s->record.len; i++) {
    const polyccl_sim_record *r = &s->record.data[i];
    sorted[first[s->plan->rank[r->rank].tb + r->tb]++] = *r;
  }
  free(first);
  result->record = sorted;
  result->records = s->record.len;
  return POLYCCL_SUCCESS;
}

static int by_link_and_time(const void *a, const void *b) {
  const sim_change *x = a, *y = b;
  if (x->link != y->link) {
    return x->link < y->link ? -1 : 1;
  }
  if (x->time != y->time) {
    return x->time < y->time ? -1 : 1;
  }
  return x->rate < y->rate ? -1 : x->rate > y->rate;
}

static polyccl_result sum_use(sim *s, polyccl_simulation *result) {
  const sim_change *change = s->change.data;
  if (s->change.len > 0) {
    qsort(s->change.data, s->change.len, sizeof *change, by_link_and_time);
  }
  result->use = pccl_array(s->change.len, sizeof *result->use);
  if (result->use == NULL) {
    return pccl_no_memory("the links' use");
  }
  double rate = 0;
  int64_t flows = 0;
  for (size_t i = 0; i < s->change.len; i++) {
    bool new_link = i == 0 || change[i].link != change[i - 1].link;
    rate = (new_link ? 0 : rate) + change[i].rate;
    flows = (new_link ? 0 : flows) + change[i].flows;
    if (i + 1 < s->change.len && change[i + 1].link == change[i].link && change[i + 1].time == change[i].time) {
      continue;
    }
    rate = flows == 0 ? 0 : rate;
    result->use[result->uses++] = (polyccl_sim_use){(double)change[i].time / SIM_PS_PER_US, rate * 1e3, change[i].link};
  }
  return POLYCCL_SUCCESS;
}

static int32_t block_of(const sim *s, uint64_t execution) {
  int64_t step = (int64_t)(execution / (uint64_t)s->batches);
  int32_t low = 0, high = s->tbs - 1; /* the last block that starts at or before the step */
  while (low < high) {
    int32_t middle = low + (high - low + 1) / 2;
    if (s->tb[middle].first <= step) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

typedef PCCL_VEC(polyccl_sim_critical) path;

static polyccl_result walk_back(const sim *s, path *found) {
  uint64_t at = 0, none = UINT64_MAX;
  int64_t latest = -1;
  for (int32_t t = 0; t < s->tbs; t++) {
    if (s->tb[t].done > 0 && s->tb[t].free > latest) {
      latest = s->tb[t].free;
      at = execution_at(s, &s->tb[t], s->tb[t].done - 1);
    }
  }
  for (at = latest < 0 ? none : at; at != none;) {
    const sim_exec *exec = &s->exec[at];
    int32_t t = block_of(s, at), step = (int32_t)(at / (uint64_t)s->batches) - s->tb[t].first;
    polyccl_sim_critical piece = {.start = (double)exec->begin / SIM_PS_PER_US,
                                  .end = (double)exec->end / SIM_PS_PER_US,
                                  .rank = s->tb[t].rank,
                                  .tb = t - s->plan->rank[s->tb[t].rank].tb,
                                  .step = step,
                                  .micro_batch = (int32_t)(at % (uint64_t)s->batches),
                                  .cause = (int32_t)(exec->cause & 7)};
    if (!pccl_vec_push(found, piece)) {
      return pccl_no_memory("the critical path");
    }
    at = exec->cause >> 3 == 0 ? none : (exec->cause >> 3) - 1;
  }
  for (size_t i = 0, j = found->len; i + 1 < j; i++) {
    polyccl_sim_critical last = found->data[--j];
    found->data[j] = found->data[i];
    found->data[i] = last;
  }
  return POLYCCL_SUCCESS;
}

static int32_t location_of(const sim *s, const polyccl_sim_critical *piece) {
  const polyccl_thread_block *tb = &s->plan->tb[s->plan->rank[piece->rank].tb + piece->tb];
  int32_t location = s->plan->step[tb->step + piece->step].location;
  return location >= 0 && (size_t)location < s->plan->locations ? location : -1;
}

static int by_time(const void *a, const void *b) {
  const polyccl_sim_line *x = a, *y = b;
  if (x->time != y->time) {
    return x->time > y->time ? -1 : 1;
  }
  return x->at.line < y->at.line ? -1 : x->at.line > y->at.line;
}

/* Joins the locations that name one line. Entry 1 + location of by_location becomes the list of lines, at its front. */
static polyccl_result join_lines(const sim *s, polyccl_sim_line *by_location, size_t *lines) {
  pccl_map known = {0}; /* file and line -> the place in front */
  bool ok = true;
  *lines = 0;
  for (size_t i = 0; ok && i <= s->plan->locations; i++) {
    polyccl_sim_line line = by_location[i];
    if (line.steps == 0) {
      continue;
    }
    const polyccl_step named = {.location = (int32_t)i - 1};
    line.at = pccl_step_location(s->plan, &named);
    size_t at = *lines;
    if (line.at.file != NULL) {
      uint64_t key = (uint64_t)s->plan->location[i - 1].file << 32 | (uint32_t)line.at.line;
      const uint64_t *place = pccl_map_put(&known, key, *lines, NULL);
      ok = place != NULL;
      at = ok ? (size_t)*place : at;
    }
    if (at < *lines) {
      by_location[at].time += line.time;
      by_location[at].steps += line.steps;
    } else {
      by_location[(*lines)++] = line;
    }
  }
  pccl_map_free(&known);
  return ok ? POLYCCL_SUCCESS : pccl_no_memory("the lines of the critical path");
}

/* Sums the time by location; locations that name one line count as one. */
static polyccl_result sum_lines(const sim *s, polyccl_simulation *result) {
  polyccl_sim_line *by_location = pccl_zeroed(s->plan->locations + 1, sizeof *by_location);
  if (by_location == NULL) {
    return pccl_no_memory("the lines of the critical path");
  }
  double before = result->launch;
  for (size_t i = 0; i < result->criticals; i++) {
    const polyccl_sim_critical *piece = &result->critical[i];
    polyccl_sim_line *line = &by_location[location_of(s, piece) + 1];
    line->time += piece->end - before;
    line->steps++;
    before = piece->end;
  }
  size_t lines;
  polyccl_result joined = join_lines(s, by_location, &lines);
  if (joined != POLYCCL_SUCCESS) {
    free(by_location);
    return joined;
  }
  qsort(by_location, lines, sizeof *by_location, by_time);
  result->line = by_location;
  result->lines = lines;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_sim_trace_result(sim *s, polyccl_simulation *result) {
  if ((s->options.keep & POLYCCL_SIM_TIMELINE) != 0) {
    PCCL_TRY(sort_records(s, result));
  }
  if ((s->options.keep & POLYCCL_SIM_LINK_USE) != 0) {
    PCCL_TRY(sum_use(s, result));
  }
  if (s->exec != NULL) {
    path found = {0};
    polyccl_result walked = walk_back(s, &found);
    result->critical = found.data;
    result->criticals = found.len;
    PCCL_TRY(walked);
    PCCL_TRY(sum_lines(s, result));
  }
  return POLYCCL_SUCCESS;
}
