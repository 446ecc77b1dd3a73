#include "trace/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/map.h"
#include "plan/plan.h"

const char *polyccl_trace_state_name(polyccl_trace_state state) {
  static const char *const names[] = {"busy", "wait data", "wait credit", "wait block"};
  return (unsigned)state < POLYCCL_TRACE_STATE_COUNT ? names[state] : NULL;
}

polyccl_result pccl_trace_new(const char *name, const char *source, polyccl_trace **trace) {
  polyccl_trace *made = pccl_zeroed(1, sizeof *made);
  if (made == NULL) {
    return pccl_no_memory("a trace");
  }
  made->building = pccl_zeroed(1, sizeof *made->building);
  made->name = pccl_strdup(name != NULL ? name : "");
  made->source = pccl_strdup(source != NULL ? source : "");
  if (made->building == NULL || made->name == NULL || made->source == NULL) {
    polyccl_trace_destroy(made);
    return pccl_no_memory("a trace");
  }
  *trace = made;
  return POLYCCL_SUCCESS;
}

static void destroy_building(struct pccl_trace_building *building) {
  if (building != NULL) {
    for (size_t i = 0; i < building->links.len; i++) {
      free(building->links.data[i].name);
    }
    pccl_vec_free(&building->records);
    pccl_vec_free(&building->samples);
    pccl_vec_free(&building->links);
    free(building->rank_block);
    free(building);
  }
}

void polyccl_trace_destroy(polyccl_trace *trace) {
  if (trace == NULL) {
    return;
  }
  destroy_building(trace->building);
  for (size_t i = 0; i < trace->links; i++) {
    free(trace->link[i].name);
  }
  for (size_t i = 0; i < trace->places; i++) {
    free(trace->place[i]);
  }
  free(trace->name);
  free(trace->source);
  free(trace->block);
  free(trace->step);
  free(trace->wait);
  free(trace->record);
  free(trace->link);
  free(trace->sample);
  free(trace->place);
  free(trace);
}

/* ---- from a plan ---- */

/* Texts of the plan's locations, each once. of_location[i]: the place of location i, or -1. */
static polyccl_result copy_places(polyccl_trace *trace, const polyccl_plan *plan, int32_t *of_location) {
  pccl_map seen = {0};
  polyccl_result result = POLYCCL_SUCCESS;
  for (size_t i = 0; i < plan->locations && result == POLYCCL_SUCCESS; i++) {
    const struct polyccl_plan_location *at = &plan->location[i];
    of_location[i] = -1;
    if (at->file < 0 || (size_t)at->file >= plan->files) {
      continue;
    }
    bool is_new = false;
    uint64_t key = (uint64_t)(uint32_t)at->file << 32 | (uint32_t)at->line;
    uint64_t *slot = pccl_map_put(&seen, key, trace->places, &is_new);
    if (slot != NULL && is_new) {
      pccl_text text = {0};
      pccl_text_add(&text, "%s:%d", plan->file[at->file], at->line);
      trace->place[trace->places] = text.data;
      slot = text.failed ? NULL : slot;
      trace->places += text.data != NULL;
    }
    if (slot == NULL) {
      result = pccl_no_memory("a trace's places");
    } else {
      of_location[i] = (int32_t)*slot;
    }
  }
  pccl_map_free(&seen);
  return result;
}

static polyccl_trace_step make_step(const polyccl_plan *plan, const polyccl_step *step, int32_t block, int32_t number,
                                    const int32_t *of_location) {
  const polyccl_connection *from = step->recv >= 0 ? &plan->connection[step->recv] : NULL;
  const polyccl_connection *to = step->send >= 0 ? &plan->connection[step->send] : NULL;
  bool known = step->location >= 0 && (size_t)step->location < plan->locations;
  return (polyccl_trace_step){.block = block,
                              .number = number,
                              .op = step->op,
                              .src_buf = step->src_buf,
                              .dst_buf = step->dst_buf,
                              .src = step->src,
                              .dst = step->dst,
                              .count = step->count,
                              .recv_rank = from != NULL ? from->src : -1,
                              .recv_channel = from != NULL ? from->channel : -1,
                              .send_rank = to != NULL ? to->dst : -1,
                              .send_channel = to != NULL ? to->channel : -1,
                              .wait = step->wait,
                              .waits = step->waits,
                              .place = known ? of_location[step->location] : -1,
                              .message = -1};
}

static void copy_blocks(polyccl_trace *trace, const polyccl_plan *plan, const int32_t *of_location) {
  for (int32_t rank = 0; rank < plan->ranks; rank++) {
    trace->building->rank_block[rank] = (int32_t)trace->blocks;
    for (int32_t tb = 0; tb < plan->rank[rank].tbs; tb++) {
      const polyccl_thread_block *planned = &plan->tb[plan->rank[rank].tb + tb];
      polyccl_trace_block *block = &trace->block[trace->blocks];
      *block = (polyccl_trace_block){.rank = rank, .tb = tb, .step = trace->steps, .steps = (size_t)planned->steps};
      for (int32_t s = 0; s < planned->steps; s++) {
        trace->step[trace->steps++] =
            make_step(plan, &plan->step[planned->step + s], (int32_t)trace->blocks, s, of_location);
      }
      trace->blocks++;
    }
  }
  trace->building->rank_block[plan->ranks] = (int32_t)trace->blocks;
}

static polyccl_result copy_plan(polyccl_trace *trace, const polyccl_plan *plan) {
  trace->building->ranks = plan->ranks;
  trace->building->rank_block = pccl_array((size_t)plan->ranks + 1, sizeof(int32_t));
  trace->block = pccl_zeroed(plan->tbs, sizeof *trace->block);
  trace->step = pccl_array(plan->steps, sizeof *trace->step);
  trace->wait = pccl_array(plan->waits, sizeof *trace->wait);
  trace->place = pccl_zeroed(plan->locations, sizeof *trace->place);
  int32_t *of_location = pccl_array(plan->locations, sizeof *of_location);
  if (trace->building->rank_block == NULL || trace->block == NULL || trace->step == NULL || trace->wait == NULL ||
      trace->place == NULL || of_location == NULL) {
    free(of_location);
    return pccl_no_memory("a trace");
  }
  if (plan->waits > 0) {
    memcpy(trace->wait, plan->wait, plan->waits * sizeof *trace->wait);
  }
  trace->waits = plan->waits;
  polyccl_result result = copy_places(trace, plan, of_location);
  if (result == POLYCCL_SUCCESS) {
    copy_blocks(trace, plan, of_location);
  }
  free(of_location);
  return result;
}

polyccl_result polyccl_trace_create(const polyccl_plan *plan, const char *source, polyccl_trace **trace) {
  polyccl_trace *made = NULL;
  PCCL_TRY(pccl_trace_new(plan->name, source, &made));
  polyccl_result result = copy_plan(made, plan);
  if (result != POLYCCL_SUCCESS) {
    polyccl_trace_destroy(made);
    return result;
  }
  *trace = made;
  return POLYCCL_SUCCESS;
}

/* ---- adding ---- */

static polyccl_result check_open(const polyccl_trace *trace) {
  return trace->finished ? pccl_fail(POLYCCL_ERROR_INVALID, "the trace is finished, so nothing can be added")
                         : POLYCCL_SUCCESS;
}

polyccl_result polyccl_trace_add(polyccl_trace *trace, const polyccl_trace_event *event) {
  PCCL_TRY(check_open(trace));
  const struct pccl_trace_building *building = trace->building;
  if (building->rank_block == NULL || event->rank < 0 || event->rank >= building->ranks || event->tb < 0 ||
      event->tb >= building->rank_block[event->rank + 1] - building->rank_block[event->rank]) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the plan of the trace has no thread block %d on rank %d", event->tb,
                     event->rank);
  }
  const polyccl_trace_block *block = &trace->block[building->rank_block[event->rank] + event->tb];
  if (event->step < 0 || (size_t)event->step >= block->steps) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "in the trace, rank %d, thread block %d has no step %d", event->rank,
                     event->tb, event->step);
  }
  if ((unsigned)event->state >= POLYCCL_TRACE_STATE_COUNT || event->batch < 0 ||
      !(fabs(event->begin) <= PCCL_TRACE_MAX) || !(event->end <= PCCL_TRACE_MAX) || event->end < event->begin) {
    return pccl_fail(
        POLYCCL_ERROR_INVALID,
        "the event of rank %d, thread block %d, step %d is not valid (state %d, micro-batch %d, %g to %g us)",
        event->rank, event->tb, event->step, (int)event->state, event->batch, event->begin, event->end);
  }
  polyccl_trace_record record = {.begin = event->begin,
                                 .end = event->end,
                                 .step = (int32_t)(block->step + (size_t)event->step),
                                 .batch = event->batch,
                                 .message = -1,
                                 .state = (uint8_t)event->state,
                                 .critical = event->critical};
  return pccl_vec_push(&trace->building->records, record) ? POLYCCL_SUCCESS : pccl_no_memory("a trace's records");
}

polyccl_result polyccl_trace_add_link(polyccl_trace *trace, const char *name, double bandwidth, int *link) {
  PCCL_TRY(check_open(trace));
  polyccl_trace_link made = {.name = pccl_strdup(name),
                             .bandwidth = bandwidth > 0 ? fmin(bandwidth, PCCL_TRACE_MAX) : 0};
  if (made.name == NULL || !pccl_vec_push(&trace->building->links, made)) {
    free(made.name);
    return pccl_no_memory("a trace's links");
  }
  *link = (int)trace->building->links.len - 1;
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_trace_add_sample(polyccl_trace *trace, int link, double time, double rate) {
  PCCL_TRY(check_open(trace));
  if (link < 0 || (size_t)link >= trace->building->links.len || !(fabs(time) <= PCCL_TRACE_MAX) ||
      !(rate >= 0 && rate <= PCCL_TRACE_MAX)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the sample of link %d is not valid (%g us, %g GB/s)", link, time, rate);
  }
  polyccl_trace_sample sample = {.time = time, .rate = rate, .link = link};
  return pccl_vec_push(&trace->building->samples, sample) ? POLYCCL_SUCCESS : pccl_no_memory("a trace's samples");
}

/* ---- finishing ---- */

static int by_link(const void *left, const void *right) {
  const polyccl_trace_sample *a = left, *b = right;
  return a->link != b->link ? (a->link < b->link ? -1 : 1) : (a->time > b->time) - (a->time < b->time);
}

static void finish_links(polyccl_trace *trace) {
  if (trace->samples > 0) {
    qsort(trace->sample, trace->samples, sizeof *trace->sample, by_link);
  }
  size_t at = 0;
  for (size_t i = 0; i < trace->links; i++) {
    trace->link[i].sample = at;
    while (at < trace->samples && (size_t)trace->sample[at].link == i) {
      at++;
    }
    trace->link[i].samples = at - trace->link[i].sample;
  }
}

static void finish_blocks(polyccl_trace *trace) {
  size_t at = 0;
  for (size_t i = 0; i < trace->blocks; i++) {
    trace->block[i].record = at;
    while (at < trace->records && (size_t)trace->step[trace->record[at].step].block == i) {
      trace->duration = fmax(trace->duration, trace->record[at].end);
      at++;
    }
    trace->block[i].records = at - trace->block[i].record;
  }
}

polyccl_result polyccl_trace_finish(polyccl_trace *trace) {
  PCCL_TRY(check_open(trace));
  struct pccl_trace_building *building = trace->building;
  if (building->records.len > INT32_MAX || building->samples.len > INT32_MAX) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the trace has more than %d records", INT32_MAX);
  }
  trace->record = building->records.data;
  trace->records = building->records.len;
  trace->sample = building->samples.data;
  trace->samples = building->samples.len;
  trace->link = building->links.data;
  trace->links = building->links.len;
  free(building->rank_block);
  free(building);
  trace->building = NULL;
  trace->finished = true;
  PCCL_TRY(pccl_trace_join(trace));
  finish_blocks(trace);
  finish_links(trace);
  return POLYCCL_SUCCESS;
}
