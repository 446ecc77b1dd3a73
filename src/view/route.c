#include "view/route.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "plan/plan.h"

/* What a chunk of memory or of a message holds: the stop that put it there, or one of these. */
enum { OTHER = -1, OWN = -2 }; /* other data; the rank's own chunk, which has no stop until a step uses it */

typedef struct tracer {
  const polyccl_plan *plan;
  const pccl_schedule *schedule;
  pccl_collective_spec spec;
  int chunk;
  int32_t *cells;  /* [ranks][cells of input and output, then scratch] */
  size_t *base;    /* [ranks] */
  int32_t *sent;   /* per step and chunk of its message */
  size_t *message; /* [steps]: first entry in sent */
  int user_cells;
  pccl_route *route;
} tracer;

void pccl_route_free(pccl_route *route) {
  pccl_vec_free(&route->stops);
  pccl_vec_free(&route->legs);
  route->columns = 0;
}

static int32_t *cell_of(const tracer *t, int rank, uint8_t buffer, int32_t offset) {
  size_t index = buffer == POLYCCL_BUF_SCRATCH
                     ? (size_t)t->user_cells + (size_t)offset
                     : (size_t)pccl_collective_cell(&t->spec, rank, buffer == POLYCCL_BUF_OUTPUT, offset);
  return &t->cells[t->base[rank] + index];
}

/* The number that leaf (rank, chunk) has in the larger buffer. */
static int global_chunk(const polyccl_plan *plan, int rank, int chunk) {
  bool gathers = plan->collective == POLYCCL_ALLGATHER || plan->collective == POLYCCL_GATHER;
  return gathers ? rank * plan->chunks + chunk : chunk;
}

static polyccl_result add_stop(tracer *t, pccl_route_stop stop, int32_t *index) {
  if (!pccl_vec_push(&t->route->stops, stop)) {
    return pccl_no_memory("a chunk's way");
  }
  *index = (int32_t)t->route->stops.len - 1;
  return POLYCCL_SUCCESS;
}

/* Makes a stop for what a rank held from the start, when a step first uses it, and keeps it in the cell. */
static polyccl_result settle_cell(tracer *t, int rank, int32_t *held) {
  return *held == OWN ? add_stop(t, (pccl_route_stop){.rank = rank, .step = -1}, held) : POLYCCL_SUCCESS;
}

static polyccl_result add_leg(tracer *t, int32_t from, int32_t to, bool message) {
  const pccl_route_stop *a = &t->route->stops.data[from];
  pccl_route_stop *b = &t->route->stops.data[to];
  b->column = b->column > a->column + 1 ? b->column : a->column + 1;
  for (size_t i = t->route->legs.len; i-- > 0 && t->route->legs.data[i].to == to;) {
    if (t->route->legs.data[i].from == from) {
      return POLYCCL_SUCCESS;
    }
  }
  return pccl_vec_push(&t->route->legs, (pccl_leg){from, to, message}) ? POLYCCL_SUCCESS
                                                                       : pccl_no_memory("a chunk's way");
}

/* One chunk of a step that receives, copies or reduces: `arrived` from a message or memory meets `there`. */
static polyccl_result merge_chunk(tracer *t, size_t step, int32_t arrived, int32_t there, bool message, int32_t *stop) {
  const polyccl_thread_block *tb = &t->plan->tb[t->schedule->block[step]];
  if (arrived < 0 && there < 0) {
    return POLYCCL_SUCCESS; /* the step moves other chunks only */
  }
  if (*stop < 0) {
    PCCL_TRY(add_stop(t, (pccl_route_stop){.rank = tb->rank, .step = (int32_t)step}, stop));
  }
  t->route->stops.data[*stop].reduces |= there != OTHER;
  if (arrived >= 0) {
    PCCL_TRY(add_leg(t, arrived, *stop, message));
  }
  return there >= 0 ? add_leg(t, there, *stop, false) : POLYCCL_SUCCESS;
}

static polyccl_result trace_send(tracer *t, size_t i) {
  const polyccl_step *step = &t->plan->step[i];
  int rank = t->plan->tb[t->schedule->block[i]].rank;
  for (int32_t c = 0; c < step->count; c++) {
    int32_t *held = cell_of(t, rank, step->src_buf, step->src + c);
    PCCL_TRY(settle_cell(t, rank, held));
    t->sent[t->message[i] + (size_t)c] = *held;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result trace_step(tracer *t, size_t i) {
  const polyccl_step *step = &t->plan->step[i];
  const pccl_op_traits *op = &pccl_ops[step->op];
  int rank = t->plan->tb[t->schedule->block[i]].rank;
  int32_t stop = -1;
  for (int32_t c = 0; c < step->count; c++) {
    int32_t *src = op->reads_src ? cell_of(t, rank, step->src_buf, step->src + c) : NULL;
    int32_t *dst = op->writes_dst ? cell_of(t, rank, step->dst_buf, step->dst + c) : NULL;
    int32_t arrived, there = OTHER;
    if (op->receives) {
      arrived = t->sent[t->message[t->schedule->sender[i]] + (size_t)c];
      there = src != NULL ? *src : OTHER;
    } else {
      if (*src == OWN && (dst == NULL || !op->reads_dst)) { /* a copy of what was there from the start is no stop */
        *dst = OWN;
        continue;
      }
      PCCL_TRY(settle_cell(t, rank, src));
      arrived = *src;
      there = op->reads_dst ? *dst : OTHER;
    }
    PCCL_TRY(merge_chunk(t, i, arrived, there, op->receives, &stop));
    int32_t now =
        arrived >= 0 || there >= 0 ? stop : there; /* its own data may have been joined with other data only */
    if (dst != NULL) {
      *dst = now;
    }
    if (op->sends) {
      t->sent[t->message[i] + (size_t)c] = now;
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result prepare_tracer(tracer *t) {
  const polyccl_plan *plan = t->plan;
  int input, output;
  pccl_collective_shape(&t->spec, &input, &output);
  int larger = input > output ? input : output;
  if (t->chunk < 0 || t->chunk >= larger) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the plan has chunks 0 to %d, so it has no chunk %d", larger - 1, t->chunk);
  }
  t->user_cells = pccl_collective_cells(&t->spec);
  size_t cells = 0, messages = 0;
  t->base = pccl_array((size_t)plan->ranks, sizeof *t->base);
  t->message = pccl_array(plan->steps, sizeof *t->message);
  for (int rank = 0; rank < plan->ranks && t->base != NULL; rank++) {
    t->base[rank] = cells;
    cells += (size_t)t->user_cells + (size_t)plan->rank[rank].scratch;
  }
  for (size_t i = 0; i < plan->steps && t->message != NULL; i++) {
    t->message[i] = messages;
    messages += plan->step[i].send >= 0 ? (size_t)plan->step[i].count : 0;
  }
  t->cells = pccl_array(cells, sizeof *t->cells);
  t->sent = pccl_array(messages, sizeof *t->sent);
  if (t->base == NULL || t->message == NULL || t->cells == NULL || t->sent == NULL) {
    return pccl_no_memory("a chunk's way");
  }
  for (size_t i = 0; i < cells; i++) {
    t->cells[i] = OTHER;
  }
  for (int rank = 0; rank < plan->ranks; rank++) {
    for (int c = 0; c < input; c++) {
      if (global_chunk(plan, rank, c) == t->chunk) {
        *cell_of(t, rank, POLYCCL_BUF_INPUT, c) = OWN;
      }
    }
  }
  return POLYCCL_SUCCESS;
}

static void mark_results(const tracer *t) {
  int input, output;
  pccl_collective_shape(&t->spec, &input, &output);
  for (int rank = 0; rank < t->plan->ranks; rank++) {
    for (int c = 0; c < output; c++) {
      int32_t held = *cell_of(t, rank, POLYCCL_BUF_OUTPUT, c);
      if (held >= 0) {
        t->route->stops.data[held].stays = true;
      }
    }
  }
}

static polyccl_result trace_chunk(tracer *t) {
  PCCL_TRY(prepare_tracer(t));
  for (size_t i = 0; i < t->plan->steps; i++) {
    size_t at = (size_t)t->schedule->order[i];
    uint8_t op = t->plan->step[at].op;
    if (op == POLYCCL_STEP_SEND) {
      PCCL_TRY(trace_send(t, at));
    } else if (pccl_op_moves(op)) {
      PCCL_TRY(trace_step(t, at));
    }
  }
  mark_results(t);
  for (size_t i = 0; i < t->route->stops.len; i++) {
    int32_t columns = t->route->stops.data[i].column + 1;
    t->route->columns = columns > t->route->columns ? columns : t->route->columns;
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_route_find(const polyccl_plan *plan, const pccl_schedule *schedule, int chunk, pccl_route *route) {
  pccl_route found = {0};
  tracer t = {.plan = plan, .schedule = schedule, .spec = pccl_plan_spec(plan), .chunk = chunk, .route = &found};
  polyccl_result result = trace_chunk(&t);
  free(t.cells);
  free(t.base);
  free(t.sent);
  free(t.message);
  if (result != POLYCCL_SUCCESS) {
    pccl_route_free(&found);
    return result;
  }
  *route = found;
  return POLYCCL_SUCCESS;
}
