/* The tables of a trace while it is read: blocks, steps, places. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "plan/plan.h"
#include "trace/reader.h"

/* ---- blocks, steps, places ---- */

static polyccl_result out_of_memory(void) { return pccl_no_memory("reading a trace"); }

static polyccl_result find_place(pccl_reader *r, const char *text, int32_t *place) {
  uint64_t hash = 1469598103934665603u;
  for (const char *c = text; *c != '\0'; c++) {
    hash = (hash ^ (unsigned char)*c) * 1099511628211u;
  }
  for (hash >>= 1;; hash = pccl_mix64(hash) >> 1) { /* a text whose hash is taken tries the next one */
    bool is_new = false;
    uint64_t *slot = pccl_map_put(&r->place_of, hash, r->places.len, &is_new);
    if (slot == NULL) {
      return out_of_memory();
    }
    if (is_new) {
      char *copy = pccl_strdup(text);
      if (copy == NULL || !pccl_vec_push(&r->places, copy)) {
        free(copy);
        return out_of_memory();
      }
    }
    if (strcmp(r->places.data[*slot], text) == 0) {
      *place = (int32_t)*slot;
      return POLYCCL_SUCCESS;
    }
  }
}

polyccl_result pccl_reader_block(pccl_reader *r, int32_t rank, int32_t tb, int32_t *block) {
  bool is_new = false;
  uint64_t *slot = pccl_map_put(&r->block_of, (uint64_t)(uint32_t)rank << 32 | (uint32_t)tb, r->blocks.len, &is_new);
  if (slot == NULL || (is_new && !pccl_vec_push(&r->blocks, (polyccl_trace_block){.rank = rank, .tb = tb}))) {
    return out_of_memory();
  }
  *block = (int32_t)*slot;
  return POLYCCL_SUCCESS;
}

/* "3.1" */
static bool parse_pair(const char *text, int32_t *first, int32_t *second, const char **end) {
  char *after;
  long a = strtol(text, &after, 10);
  if (after == text || *after != '.' || a < 0 || a > INT32_MAX) {
    return false;
  }
  const char *rest = after + 1;
  long b = strtol(rest, &after, 10);
  if (after == rest || b < 0 || b > INT32_MAX) {
    return false;
  }
  *first = (int32_t)a;
  *second = (int32_t)b;
  *end = after;
  return true;
}

static polyccl_result parse_connection(const pccl_reader *r, const json_t *args, const char *key, int32_t *rank,
                                       int32_t *channel) {
  const json_t *value = json_object_get(args, key);
  const char *end = "";
  *rank = *channel = -1;
  if (value != NULL &&
      (!json_is_string(value) || !parse_pair(json_string_value(value), rank, channel, &end) || *end != '\0')) {
    return pccl_reader_bad_event(r, "\"from\" and \"to\" must be \"RANK.CHANNEL\"");
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result parse_operand(const pccl_reader *r, const json_t *args, const char *key, uint8_t *buffer,
                                    int32_t *offset) {
  const json_t *value = json_object_get(args, key);
  if (value == NULL) {
    return POLYCCL_SUCCESS;
  }
  const char *text = json_is_string(value) ? json_string_value(value) : "";
  const char *letter = *text != '\0' ? strchr("ios", *text) : NULL;
  char *end = NULL;
  long number = letter != NULL ? strtol(text + 1, &end, 10) : -1;
  if (letter == NULL || end == text + 1 || *end != '\0' || number < 0 || number > INT32_MAX) {
    return pccl_reader_bad_event(r, "\"src\" and \"dst\" must be the letter of a buffer and an offset, as in \"i0\"");
  }
  *buffer = (uint8_t)(letter - "ios");
  *offset = (int32_t)number;
  return POLYCCL_SUCCESS;
}

static polyccl_result parse_waits(pccl_reader *r, const json_t *args, polyccl_trace_step *step) {
  const json_t *value = json_object_get(args, "wait");
  step->wait = (int32_t)r->waits.len;
  for (const char *at = json_is_string(value) ? json_string_value(value) : ""; *at != '\0';) {
    polyccl_wait wait;
    if (!parse_pair(at, &wait.tb, &wait.step, &at)) {
      return pccl_reader_bad_event(r, "\"wait\" must be a list of \"TB.STEP\"");
    }
    if (!pccl_vec_push(&r->waits, wait)) {
      return out_of_memory();
    }
    step->waits++;
    at += strspn(at, " ");
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result describe_step(pccl_reader *r, const json_t *args, const char *name, polyccl_trace_step *step) {
  const char *op = json_string_value(json_object_get(args, "op"));
  const char *at = json_string_value(json_object_get(args, "at"));
  const json_t *count = json_object_get(args, "count");
  step->op = 0;
  while (step->op < POLYCCL_STEP_OP_COUNT && (op == NULL || strcmp(op, pccl_ops[step->op].name) != 0)) {
    step->op++;
  }
  if (step->op == POLYCCL_STEP_OP_COUNT && at == NULL) {
    at = name;
  }
  step->place = step->message = -1;
  step->count = json_is_integer(count) && json_integer_value(count) > 0 && json_integer_value(count) <= INT32_MAX
                    ? (int32_t)json_integer_value(count)
                    : 0;
  PCCL_TRY(parse_operand(r, args, "src", &step->src_buf, &step->src));
  PCCL_TRY(parse_operand(r, args, "dst", &step->dst_buf, &step->dst));
  PCCL_TRY(parse_connection(r, args, "from", &step->recv_rank, &step->recv_channel));
  PCCL_TRY(parse_connection(r, args, "to", &step->send_rank, &step->send_channel));
  PCCL_TRY(parse_waits(r, args, step));
  return at != NULL ? find_place(r, at, &step->place) : POLYCCL_SUCCESS;
}

/* Steps without a number (of other programs) are told apart by their names. */
polyccl_result pccl_reader_step(pccl_reader *r, int32_t block, const json_t *args, const char *name, int32_t *index) {
  const json_t *number = json_object_get(args, "step");
  polyccl_trace_step step = {.block = block};
  if (json_is_integer(number) && json_integer_value(number) >= 0 && json_integer_value(number) < INT32_MAX / 2) {
    step.number = (int32_t)json_integer_value(number);
  } else if (number == NULL) {
    int32_t place = 0;
    PCCL_TRY(find_place(r, name, &place));
    step.number = place;
  } else {
    return pccl_reader_bad_event(r, "\"step\" must be a whole number from 0");
  }
  bool is_new = false;
  uint64_t *slot =
      pccl_map_put(&r->step_of, (uint64_t)(uint32_t)block << 32 | (uint32_t)step.number, r->steps.len, &is_new);
  if (slot == NULL) {
    return out_of_memory();
  }
  *index = (int32_t)*slot;
  if (is_new) {
    PCCL_TRY(describe_step(r, args, name, &step));
    return pccl_vec_push(&r->steps, step) ? POLYCCL_SUCCESS : out_of_memory();
  }
  return POLYCCL_SUCCESS;
}

/* ---- the trace's order ---- */

static int blocks_by_rank(const void *left, const void *right) {
  const polyccl_trace_block *a = left, *b = right;
  return a->rank != b->rank ? (a->rank < b->rank ? -1 : 1) : (a->tb > b->tb) - (a->tb < b->tb);
}

static int steps_by_block(const void *left, const void *right) {
  const polyccl_trace_step *a = left, *b = right;
  return a->block != b->block ? (a->block < b->block ? -1 : 1) : (a->number > b->number) - (a->number < b->number);
}

/* Sorts the blocks and the steps; new_step[i] is the new index of step i. Meanwhile `message` holds the old index. */
static void sort_tables(pccl_reader *r, int32_t *new_block, int32_t *new_step) {
  for (size_t i = 0; i < r->blocks.len; i++) {
    r->blocks.data[i].step = i;
  }
  qsort(r->blocks.data, r->blocks.len, sizeof *r->blocks.data, blocks_by_rank);
  for (size_t i = 0; i < r->blocks.len; i++) {
    new_block[r->blocks.data[i].step] = (int32_t)i;
  }
  for (size_t i = 0; i < r->steps.len; i++) {
    r->steps.data[i].block = new_block[r->steps.data[i].block];
    r->steps.data[i].message = (int32_t)i;
  }
  qsort(r->steps.data, r->steps.len, sizeof *r->steps.data, steps_by_block);
  for (size_t i = 0, at = 0; i < r->blocks.len; i++) {
    polyccl_trace_block *block = &r->blocks.data[i];
    block->step = at;
    while (at < r->steps.len && (size_t)r->steps.data[at].block == i) {
      new_step[r->steps.data[at].message] = (int32_t)at;
      r->steps.data[at++].message = -1;
    }
    block->steps = at - block->step;
  }
}

polyccl_result pccl_reader_settle(pccl_reader *r) {
  struct pccl_trace_building *building = r->trace->building;
  if (building->records.len == 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID,
                     "%s: the trace has no complete events (\"ph\": \"X\" with pid, tid, ts, dur)", r->name);
  }
  int32_t *new_block = pccl_array(r->blocks.len, sizeof *new_block);
  int32_t *new_step = pccl_array(r->steps.len, sizeof *new_step);
  if (new_block == NULL || new_step == NULL) {
    free(new_block);
    free(new_step);
    return out_of_memory();
  }
  sort_tables(r, new_block, new_step);
  double earliest = r->own ? 0 : INFINITY;
  for (size_t i = 0; i < building->records.len; i++) {
    building->records.data[i].step = new_step[building->records.data[i].step];
    earliest = r->own ? 0 : fmin(earliest, building->records.data[i].begin);
  }
  for (size_t i = 0; i < building->records.len; i++) {
    building->records.data[i].begin -= earliest;
    building->records.data[i].end -= earliest;
  }
  free(new_block);
  free(new_step);
  return POLYCCL_SUCCESS;
}

/* Moves the arrays into the trace. */
void pccl_reader_hand_over(pccl_reader *r) {
  polyccl_trace *trace = r->trace;
  trace->block = r->blocks.data;
  trace->blocks = r->blocks.len;
  trace->step = r->steps.data;
  trace->steps = r->steps.len;
  trace->wait = r->waits.data;
  trace->waits = r->waits.len;
  trace->place = r->places.data;
  trace->places = r->places.len;
  pccl_map_free(&r->block_of);
  pccl_map_free(&r->step_of);
  pccl_map_free(&r->place_of);
}
