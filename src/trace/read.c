/* Reads Chrome trace events into a trace. Events are parsed one at a time, so the whole JSON tree is never in memory.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/kind.h"
#include "trace/reader.h"

#define MAX_BYTES ((size_t)2 << 30)

static int line_of(const pccl_reader *r, size_t at) {
  int line = 1;
  for (size_t i = 0; i < at && i < r->length; i++) {
    line += r->text[i] == '\n';
  }
  return line;
}

static polyccl_result refuse_text(const pccl_reader *r, const char *what) {
  return pccl_fail_at(POLYCCL_ERROR_INVALID, (polyccl_location){r->name, line_of(r, r->at)}, "%s", what);
}

polyccl_result pccl_reader_bad_event(const pccl_reader *r, const char *what) {
  return pccl_fail_at(POLYCCL_ERROR_INVALID, (polyccl_location){r->name, line_of(r, r->at)}, "event %zu: %s", r->event,
                      what);
}

static char peek_char(pccl_reader *r) {
  while (r->at < r->length && strchr(" \t\r\n", r->text[r->at]) != NULL && r->text[r->at] != '\0') {
    r->at++;
  }
  return r->at < r->length ? r->text[r->at] : '\0';
}

static bool accept_char(pccl_reader *r, char c) {
  bool found = peek_char(r) == c && c != '\0';
  r->at += found;
  return found;
}

/* Reads the next JSON value. */
static polyccl_result load_value(pccl_reader *r, json_t **value) {
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

/* ---- events ---- */

bool pccl_reader_natural(const json_t *value, int32_t *number) {
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

static polyccl_result read_complete(pccl_reader *r, const json_t *event) {
  const json_t *ts = json_object_get(event, "ts"), *dur = json_object_get(event, "dur");
  const json_t *args = json_object_get(event, "args");
  const char *name = json_string_value(json_object_get(event, "name"));
  int32_t rank, tb, block = 0, batch = 0;
  polyccl_trace_record record = {.message = -1};
  if (!pccl_reader_natural(json_object_get(event, "pid"), &rank) ||
      !pccl_reader_natural(json_object_get(event, "tid"), &tb)) {
    return r->own ? pccl_reader_bad_event(r, "\"pid\" and \"tid\" must be whole numbers from 0") : POLYCCL_SUCCESS;
  }
  if (!json_is_number(ts) || fabs(json_number_value(ts)) > PCCL_TRACE_MAX || !json_is_number(dur) ||
      json_number_value(dur) < 0 || json_number_value(dur) > PCCL_TRACE_MAX) {
    return pccl_reader_bad_event(r, "a complete event needs \"ts\" and \"dur\" >= 0");
  }
  if (json_object_get(args, "batch") != NULL && !pccl_reader_natural(json_object_get(args, "batch"), &batch)) {
    return pccl_reader_bad_event(r, "\"batch\" must be a whole number from 0");
  }
  PCCL_TRY(pccl_reader_block(r, rank, tb, &block));
  PCCL_TRY(pccl_reader_step(r, block, args, name != NULL ? name : "", &record.step));
  record.begin = json_number_value(ts);
  record.end = record.begin + json_number_value(dur);
  record.batch = batch;
  record.state = state_of(json_string_value(json_object_get(event, "cat")));
  record.critical = json_is_true(json_object_get(args, "critical"));
  return pccl_vec_push(&r->trace->building->records, record) ? POLYCCL_SUCCESS : pccl_no_memory("reading a trace");
}

static polyccl_result read_counter(pccl_reader *r, const json_t *event) {
  const json_t *ts = json_object_get(event, "ts");
  const json_t *rate = json_object_get(json_object_get(event, "args"), "GB/s");
  int32_t link;
  if (!r->own || !json_is_number(ts) || !json_is_number(rate) ||
      !pccl_reader_natural(json_object_get(event, "id"), &link)) {
    return POLYCCL_SUCCESS; /* a counter of something else */
  }
  polyccl_result result = polyccl_trace_add_sample(r->trace, link, json_number_value(ts), json_number_value(rate));
  return result != POLYCCL_ERROR_INVALID
             ? result
             : pccl_reader_bad_event(r, "a counter must name a link, and its rate must not be negative");
}

static polyccl_result read_event(pccl_reader *r, const json_t *event) {
  const char *phase = json_string_value(json_object_get(event, "ph"));
  if (phase == NULL) {
    return pccl_reader_bad_event(r, "an event must be an object with \"ph\"");
  }
  return strcmp(phase, "X") == 0   ? read_complete(r, event)
         : strcmp(phase, "C") == 0 ? read_counter(r, event)
                                   : POLYCCL_SUCCESS;
}

static polyccl_result read_events(pccl_reader *r) {
  if (!accept_char(r, '[')) {
    return refuse_text(r, "\"traceEvents\" must be an array");
  }
  for (r->event = 0; peek_char(r) != ']'; r->event++) {
    if (r->event > 0 && !accept_char(r, ',')) {
      return refuse_text(r, "',' or ']' is expected here");
    }
    peek_char(r);
    json_t *event;
    PCCL_TRY(load_value(r, &event));
    polyccl_result result = read_event(r, event);
    json_decref(event);
    PCCL_TRY(result);
  }
  r->at++;
  return POLYCCL_SUCCESS;
}

static polyccl_result replace_text(char **text, const json_t *value) {
  char *copy = json_is_string(value) ? pccl_strdup(json_string_value(value)) : NULL;
  if (json_is_string(value) && copy == NULL) {
    return pccl_no_memory("reading a trace");
  }
  if (copy != NULL) {
    free(*text);
    *text = copy;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result read_header(pccl_reader *r, const json_t *header) {
  const char *format = json_string_value(json_object_get(header, "format"));
  if (format == NULL || strncmp(format, "polyccl-trace ", 14) != 0) {
    return POLYCCL_SUCCESS;
  }
  if (strcmp(format, "polyccl-trace 1") != 0) {
    return refuse_text(r, "the trace is of a later version than polyccl-trace 1");
  }
  r->own = true;
  PCCL_TRY(replace_text(&r->trace->name, json_object_get(header, "name")));
  PCCL_TRY(replace_text(&r->trace->source, json_object_get(header, "source")));
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

static polyccl_result read_member(pccl_reader *r, bool *events) {
  json_t *key, *value;
  PCCL_TRY(load_value(r, &key));
  bool is_events = json_is_string(key) && strcmp(json_string_value(key), "traceEvents") == 0;
  bool is_header = json_is_string(key) && strcmp(json_string_value(key), "otherData") == 0;
  bool is_string = json_is_string(key);
  json_decref(key);
  if (!is_string || !accept_char(r, ':')) {
    return refuse_text(r, "\"name\": value is expected here");
  }
  peek_char(r);
  if (is_events) {
    *events = true;
    return read_events(r);
  }
  PCCL_TRY(load_value(r, &value));
  polyccl_result result = is_header ? read_header(r, value) : POLYCCL_SUCCESS;
  json_decref(value);
  return result;
}

static polyccl_result read_document(pccl_reader *r) {
  bool events = false;
  if (peek_char(r) == '[') {
    return read_events(r);
  }
  if (!accept_char(r, '{')) {
    return refuse_text(r, "a trace must be a JSON array of events, or a JSON object with \"traceEvents\"");
  }
  for (bool first = true; peek_char(r) != '}'; first = false) {
    if (!first && !accept_char(r, ',')) {
      return refuse_text(r, "',' or '}' is expected here");
    }
    peek_char(r);
    PCCL_TRY(read_member(r, &events));
  }
  r->at++;
  return events ? POLYCCL_SUCCESS : refuse_text(r, "the object has no \"traceEvents\"");
}

polyccl_result polyccl_trace_parse(const char *name, const char *text, size_t length, polyccl_trace **trace) {
  pccl_skip_mark(&text, &length);
  PCCL_TRY(pccl_kind_check(name, pccl_kind_of(text, length), PCCL_USE_TRACE));
  pccl_reader r = {.name = name, .text = text, .length = length};
  PCCL_TRY(pccl_trace_new(name, "measured", &r.trace));
  polyccl_result result = read_document(&r);
  if (result == POLYCCL_SUCCESS && peek_char(&r) != '\0') {
    result = refuse_text(&r, "there is text after the end of the trace");
  }
  if (result == POLYCCL_SUCCESS) {
    result = pccl_reader_settle(&r);
  }
  pccl_reader_hand_over(&r);
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
  PCCL_TRY(pccl_read_file(path, MAX_BYTES, &text, &length));
  polyccl_result result = polyccl_trace_parse(path, text, length, trace);
  free(text);
  return result;
}
