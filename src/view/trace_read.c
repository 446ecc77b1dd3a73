/* Chrome trace events -> a trace. Events are parsed one at a time: the file is in memory once, its tree never. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/map.h"
#include "plan/plan.h"
#include "view/trace.h"

#define MOST_BYTES ((size_t)2 << 30)

typedef struct reader {
  const char *name, *text;
  size_t length, at;
  size_t event; /* number of the event being read */
  polyccl_trace *trace;
  PCCL_VEC(polyccl_trace_lane) lanes;
  PCCL_VEC(polyccl_trace_step) steps;
  PCCL_VEC(polyccl_wait) waits;
  PCCL_VEC(char *) places;
  pccl_map lane_of, step_of, place_of;
  bool own; /* written by polyccl_trace_write(): times are as they should be */
} reader;

static int line_of(const reader *r, size_t at) {
  int line = 1;
  for (size_t i = 0; i < at && i < r->length; i++) {
    line += r->text[i] == '\n';
  }
  return line;
}

static polyccl_result bad(const reader *r, const char *what) {
  return pccl_fail_at(POLYCCL_ERROR_INVALID, (polyccl_location){r->name, line_of(r, r->at)}, "%s", what);
}

static polyccl_result bad_event(const reader *r, const char *what) {
  return pccl_fail_at(POLYCCL_ERROR_INVALID, (polyccl_location){r->name, line_of(r, r->at)}, "event %zu: %s", r->event,
                      what);
}

static char peek(reader *r) {
  while (r->at < r->length && strchr(" \t\r\n", r->text[r->at]) != NULL && r->text[r->at] != '\0') {
    r->at++;
  }
  return r->at < r->length ? r->text[r->at] : '\0';
}

static bool take(reader *r, char c) {
  bool found = peek(r) == c && c != '\0';
  r->at += found;
  return found;
}

/* The next JSON value, whole. */
static polyccl_result load(reader *r, json_t **value) {
  json_error_t error;
  *value = json_loadb(r->text + r->at, r->length - r->at, JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, &error);
  if (*value == NULL) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID,
                        (polyccl_location){r->name, line_of(r, r->at) + (error.line > 0 ? error.line - 1 : 0)}, "%s",
                        error.text);
  }
  r->at += (size_t)error.position;
  return POLYCCL_SUCCESS;
}

/* ---- lanes, steps, places ---- */

static polyccl_result no_memory(void) { return pccl_no_memory("reading a trace"); }

static polyccl_result find_place(reader *r, const char *text, int32_t *place) {
  uint64_t hash = 1469598103934665603u;
  for (const char *c = text; *c != '\0'; c++) {
    hash = (hash ^ (unsigned char)*c) * 1099511628211u;
  }
  for (hash >>= 1;; hash = pccl_mix64(hash) >> 1) { /* texts of one hash take further ones in turn */
    bool is_new = false;
    uint64_t *slot = pccl_map_put(&r->place_of, hash, r->places.len, &is_new);
    if (slot == NULL) {
      return no_memory();
    }
    if (is_new) {
      char *copy = pccl_strdup(text);
      if (copy == NULL || !pccl_vec_push(&r->places, copy)) {
        free(copy);
        return no_memory();
      }
    }
    if (strcmp(r->places.data[*slot], text) == 0) {
      *place = (int32_t)*slot;
      return POLYCCL_SUCCESS;
    }
  }
}

static polyccl_result find_lane(reader *r, int32_t rank, int32_t tb, int32_t *lane) {
  bool is_new = false;
  uint64_t *slot = pccl_map_put(&r->lane_of, (uint64_t)(uint32_t)rank << 32 | (uint32_t)tb, r->lanes.len, &is_new);
  if (slot == NULL || (is_new && !pccl_vec_push(&r->lanes, (polyccl_trace_lane){.rank = rank, .tb = tb}))) {
    return no_memory();
  }
  *lane = (int32_t)*slot;
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

static polyccl_result parse_connection(const reader *r, const json_t *args, const char *key, int32_t *rank,
                                       int32_t *channel) {
  const json_t *value = json_object_get(args, key);
  const char *end = "";
  *rank = *channel = -1;
  if (value != NULL &&
      (!json_is_string(value) || !parse_pair(json_string_value(value), rank, channel, &end) || *end != '\0')) {
    return bad_event(r, "\"from\" and \"to\" are \"RANK.CHANNEL\"");
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result parse_operand(const reader *r, const json_t *args, const char *key, uint8_t *buffer,
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
    return bad_event(r, "\"src\" and \"dst\" are a buffer's letter and an offset, as \"i0\"");
  }
  *buffer = (uint8_t)(letter - "ios");
  *offset = (int32_t)number;
  return POLYCCL_SUCCESS;
}

static polyccl_result parse_waits(reader *r, const json_t *args, polyccl_trace_step *step) {
  const json_t *value = json_object_get(args, "wait");
  step->wait = (int32_t)r->waits.len;
  for (const char *at = json_is_string(value) ? json_string_value(value) : ""; *at != '\0';) {
    polyccl_wait wait;
    if (!parse_pair(at, &wait.tb, &wait.step, &at)) {
      return bad_event(r, "\"wait\" is a list of \"TB.STEP\"");
    }
    if (!pccl_vec_push(&r->waits, wait)) {
      return no_memory();
    }
    step->waits++;
    at += strspn(at, " ");
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result describe_step(reader *r, const json_t *args, const char *name, polyccl_trace_step *step) {
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
static polyccl_result find_step(reader *r, int32_t lane, const json_t *args, const char *name, int32_t *index) {
  const json_t *number = json_object_get(args, "step");
  polyccl_trace_step step = {.lane = lane};
  if (json_is_integer(number) && json_integer_value(number) >= 0 && json_integer_value(number) < INT32_MAX / 2) {
    step.number = (int32_t)json_integer_value(number);
  } else if (number == NULL) {
    int32_t place = 0;
    PCCL_TRY(find_place(r, name, &place));
    step.number = place;
  } else {
    return bad_event(r, "\"step\" is a number from 0");
  }
  bool is_new = false;
  uint64_t *slot =
      pccl_map_put(&r->step_of, (uint64_t)(uint32_t)lane << 32 | (uint32_t)step.number, r->steps.len, &is_new);
  if (slot == NULL) {
    return no_memory();
  }
  *index = (int32_t)*slot;
  if (is_new) {
    PCCL_TRY(describe_step(r, args, name, &step));
    return pccl_vec_push(&r->steps, step) ? POLYCCL_SUCCESS : no_memory();
  }
  return POLYCCL_SUCCESS;
}

/* ---- events ---- */

static bool natural(const json_t *value, int32_t *number) {
  if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) >= INT32_MAX) {
    return false;
  }
  *number = (int32_t)json_integer_value(value);
  return true;
}

static uint8_t state_of(const char *category) {
  uint8_t state = 0;
  while (state < POLYCCL_TRACE_STATE_COUNT &&
         (category == NULL || strcmp(category, polyccl_trace_state_name((polyccl_trace_state)state)) != 0)) {
    state++;
  }
  return state < POLYCCL_TRACE_STATE_COUNT ? state : POLYCCL_TRACE_BUSY;
}

static polyccl_result read_complete(reader *r, const json_t *event) {
  const json_t *ts = json_object_get(event, "ts"), *dur = json_object_get(event, "dur");
  const json_t *args = json_object_get(event, "args");
  const char *name = json_string_value(json_object_get(event, "name"));
  int32_t rank, tb, lane = 0, batch = 0;
  polyccl_trace_record record = {.message = -1};
  if (!natural(json_object_get(event, "pid"), &rank) || !natural(json_object_get(event, "tid"), &tb)) {
    return r->own ? bad_event(r, "\"pid\" and \"tid\" are numbers from 0") : POLYCCL_SUCCESS;
  }
  if (!json_is_number(ts) || !json_is_number(dur) || json_number_value(dur) < 0) {
    return bad_event(r, "a complete event needs \"ts\" and \"dur\" >= 0");
  }
  if (json_object_get(args, "batch") != NULL && !natural(json_object_get(args, "batch"), &batch)) {
    return bad_event(r, "\"batch\" is a number from 0");
  }
  PCCL_TRY(find_lane(r, rank, tb, &lane));
  PCCL_TRY(find_step(r, lane, args, name != NULL ? name : "", &record.step));
  record.begin = json_number_value(ts);
  record.end = record.begin + json_number_value(dur);
  record.batch = batch;
  record.state = state_of(json_string_value(json_object_get(event, "cat")));
  record.critical = json_is_true(json_object_get(args, "critical"));
  return pccl_vec_push(&r->trace->building->records, record) ? POLYCCL_SUCCESS : no_memory();
}

static polyccl_result read_counter(reader *r, const json_t *event) {
  const json_t *ts = json_object_get(event, "ts");
  const json_t *rate = json_object_get(json_object_get(event, "args"), "GB/s");
  int32_t link;
  if (!r->own || !json_is_number(ts) || !json_is_number(rate) || !natural(json_object_get(event, "id"), &link)) {
    return POLYCCL_SUCCESS; /* a counter of something else */
  }
  polyccl_result result = polyccl_trace_add_sample(r->trace, link, json_number_value(ts), json_number_value(rate));
  return result != POLYCCL_ERROR_INVALID ? result : bad_event(r, "a counter of no link, or a negative rate");
}

static polyccl_result read_event(reader *r, const json_t *event) {
  const char *phase = json_string_value(json_object_get(event, "ph"));
  if (phase == NULL) {
    return bad_event(r, "an event is an object with \"ph\"");
  }
  return strcmp(phase, "X") == 0   ? read_complete(r, event)
         : strcmp(phase, "C") == 0 ? read_counter(r, event)
                                   : POLYCCL_SUCCESS;
}

static polyccl_result read_events(reader *r) {
  if (!take(r, '[')) {
    return bad(r, "\"traceEvents\" is an array");
  }
  for (r->event = 0; peek(r) != ']'; r->event++) {
    if (r->event > 0 && !take(r, ',')) {
      return bad(r, "',' or ']' expected");
    }
    peek(r);
    json_t *event;
    PCCL_TRY(load(r, &event));
    polyccl_result result = read_event(r, event);
    json_decref(event);
    PCCL_TRY(result);
  }
  r->at++;
  return POLYCCL_SUCCESS;
}

static polyccl_result replace(char **text, const json_t *value) {
  char *copy = json_is_string(value) ? pccl_strdup(json_string_value(value)) : NULL;
  if (json_is_string(value) && copy == NULL) {
    return no_memory();
  }
  if (copy != NULL) {
    free(*text);
    *text = copy;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result read_header(reader *r, const json_t *header) {
  const char *format = json_string_value(json_object_get(header, "format"));
  if (format == NULL || strncmp(format, "polyccl-trace ", 14) != 0) {
    return POLYCCL_SUCCESS;
  }
  if (strcmp(format, "polyccl-trace 1") != 0) {
    return bad(r, "a trace of a later version (known: polyccl-trace 1)");
  }
  r->own = true;
  PCCL_TRY(replace(&r->trace->name, json_object_get(header, "name")));
  PCCL_TRY(replace(&r->trace->source, json_object_get(header, "source")));
  size_t i;
  json_t *link;
  json_array_foreach(json_object_get(header, "links"), i, link) {
    const char *name = json_string_value(json_object_get(link, "name"));
    int id;
    PCCL_TRY(polyccl_trace_add_link(r->trace, name != NULL ? name : "",
                                    json_number_value(json_object_get(link, "GB/s")), &id));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result read_member(reader *r, bool *events) {
  json_t *key, *value;
  PCCL_TRY(load(r, &key));
  bool is_events = json_is_string(key) && strcmp(json_string_value(key), "traceEvents") == 0;
  bool is_header = json_is_string(key) && strcmp(json_string_value(key), "otherData") == 0;
  bool is_string = json_is_string(key);
  json_decref(key);
  if (!is_string || !take(r, ':')) {
    return bad(r, "\"name\": value expected");
  }
  peek(r);
  if (is_events) {
    *events = true;
    return read_events(r);
  }
  PCCL_TRY(load(r, &value));
  polyccl_result result = is_header ? read_header(r, value) : POLYCCL_SUCCESS;
  json_decref(value);
  return result;
}

static polyccl_result read_document(reader *r) {
  bool events = false;
  if (peek(r) == '[') {
    return read_events(r);
  }
  if (!take(r, '{')) {
    return bad(r, "a trace is JSON: an array of events, or an object with \"traceEvents\"");
  }
  for (bool first = true; peek(r) != '}'; first = false) {
    if (!first && !take(r, ',')) {
      return bad(r, "',' or '}' expected");
    }
    peek(r);
    PCCL_TRY(read_member(r, &events));
  }
  r->at++;
  return events ? POLYCCL_SUCCESS : bad(r, "no \"traceEvents\"");
}

/* ---- the trace's order ---- */

static int lanes_by_rank(const void *left, const void *right) {
  const polyccl_trace_lane *a = left, *b = right;
  return a->rank != b->rank ? (a->rank < b->rank ? -1 : 1) : (a->tb > b->tb) - (a->tb < b->tb);
}

static int steps_by_lane(const void *left, const void *right) {
  const polyccl_trace_step *a = left, *b = right;
  return a->lane != b->lane ? (a->lane < b->lane ? -1 : 1) : (a->number > b->number) - (a->number < b->number);
}

/* Sorts the lanes and the steps; new_step[i] is where step i went. The `message` fields hold the old index. */
static void sort(reader *r, int32_t *new_lane, int32_t *new_step) {
  for (size_t i = 0; i < r->lanes.len; i++) {
    r->lanes.data[i].step = i;
  }
  qsort(r->lanes.data, r->lanes.len, sizeof *r->lanes.data, lanes_by_rank);
  for (size_t i = 0; i < r->lanes.len; i++) {
    new_lane[r->lanes.data[i].step] = (int32_t)i;
  }
  for (size_t i = 0; i < r->steps.len; i++) {
    r->steps.data[i].lane = new_lane[r->steps.data[i].lane];
    r->steps.data[i].message = (int32_t)i;
  }
  qsort(r->steps.data, r->steps.len, sizeof *r->steps.data, steps_by_lane);
  for (size_t i = 0, at = 0; i < r->lanes.len; i++) {
    polyccl_trace_lane *lane = &r->lanes.data[i];
    lane->step = at;
    while (at < r->steps.len && (size_t)r->steps.data[at].lane == i) {
      new_step[r->steps.data[at].message] = (int32_t)at;
      r->steps.data[at++].message = -1;
    }
    lane->steps = at - lane->step;
  }
}

static polyccl_result settle(reader *r) {
  struct pccl_trace_building *building = r->trace->building;
  if (building->records.len == 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: no complete events (\"ph\": \"X\" with pid, tid, ts, dur)", r->name);
  }
  int32_t *new_lane = pccl_array(r->lanes.len, sizeof *new_lane);
  int32_t *new_step = pccl_array(r->steps.len, sizeof *new_step);
  if (new_lane == NULL || new_step == NULL) {
    free(new_lane);
    free(new_step);
    return no_memory();
  }
  sort(r, new_lane, new_step);
  double least = r->own ? 0 : INFINITY;
  for (size_t i = 0; i < building->records.len; i++) {
    building->records.data[i].step = new_step[building->records.data[i].step];
    least = r->own ? 0 : fmin(least, building->records.data[i].begin);
  }
  for (size_t i = 0; i < building->records.len; i++) {
    building->records.data[i].begin -= least;
    building->records.data[i].end -= least;
  }
  free(new_lane);
  free(new_step);
  return POLYCCL_SUCCESS;
}

/* Moves the arrays into the trace. */
static void hand_over(reader *r) {
  polyccl_trace *trace = r->trace;
  trace->lane = r->lanes.data;
  trace->lanes = r->lanes.len;
  trace->step = r->steps.data;
  trace->steps = r->steps.len;
  trace->wait = r->waits.data;
  trace->waits = r->waits.len;
  trace->place = r->places.data;
  trace->places = r->places.len;
  pccl_map_free(&r->lane_of);
  pccl_map_free(&r->step_of);
  pccl_map_free(&r->place_of);
}

polyccl_result polyccl_trace_parse(const char *name, const char *text, size_t length, polyccl_trace **trace) {
  reader r = {.name = name, .text = text, .length = length};
  PCCL_TRY(pccl_trace_new(name, "measured", &r.trace));
  polyccl_result result = read_document(&r);
  if (result == POLYCCL_SUCCESS && peek(&r) != '\0') {
    result = bad(&r, "text after the end");
  }
  if (result == POLYCCL_SUCCESS) {
    result = settle(&r);
  }
  hand_over(&r);
  if (result == POLYCCL_SUCCESS) {
    result = polyccl_trace_finish(r.trace);
  }
  if (result != POLYCCL_SUCCESS) {
    polyccl_trace_destroy(r.trace);
    return result;
  }
  *trace = r.trace;
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_trace_read(const char *path, polyccl_trace **trace) {
  char *text;
  size_t length;
  PCCL_TRY(pccl_read_file(path, MOST_BYTES, &text, &length));
  polyccl_result result = polyccl_trace_parse(path, text, length, trace);
  free(text);
  return result;
}
