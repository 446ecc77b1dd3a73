/* Traces: built from a plan, joined, written, read back the same; hostile names; bad files named by their line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include <polyccl/trace.h>

#include "base/error.h"
#include "base/file.h"

#include "../view/sample.h"

static void records_are_sorted_and_joined(void **state) {
  (void)state;
  polyccl_trace *trace = sample_trace();
  assert_int_equal(trace->blocks, 4);
  assert_int_equal(trace->records, 32);
  assert_true(trace->duration == 139.625);
  int joined = 0;
  for (size_t i = 0; i < trace->blocks; i++) {
    const polyccl_trace_block *block = &trace->block[i];
    assert_int_equal(block->rank, i / 2);
    assert_int_equal(block->records, 8);
    for (size_t k = block->record; k < block->record + block->records; k++) {
      const polyccl_trace_record *record = &trace->record[k];
      assert_int_equal(trace->step[record->step].block, i);
      assert_true(k == block->record || record->begin >= record[-1].end);
      if (record->message >= 0) {
        const polyccl_trace_record *sender = &trace->record[record->message];
        const polyccl_trace_step *step = &trace->step[record->step], *from = &trace->step[sender->step];
        assert_int_equal(sender->batch, record->batch);
        assert_int_equal(sender->state, POLYCCL_TRACE_BUSY);
        assert_int_equal(trace->block[from->block].rank, step->recv_rank);
        assert_int_equal(from->send_rank, block->rank);
        assert_int_equal(from->send_channel, step->recv_channel);
        joined++;
      }
    }
  }
  assert_int_equal(joined, 8); /* every receive of both micro-batches */
  assert_int_equal(trace->link[0].samples, 16);
  assert_string_equal(trace->place[trace->step[0].place], "</script><b>.lua:3");
  polyccl_trace_destroy(trace);
}

static void write(const polyccl_trace *trace, char **text, size_t *length) {
  FILE *to = open_memstream(text, length);
  assert_non_null(to);
  assert_int_equal(polyccl_trace_write(trace, to), POLYCCL_SUCCESS);
  fclose(to);
}

static void what_is_written_reads_back(void **state) {
  (void)state;
  polyccl_trace *trace = sample_trace(), *again = NULL;
  char *first = NULL, *second = NULL;
  size_t first_length = 0, second_length = 0;
  write(trace, &first, &first_length);
  assert_null(strstr(first, "</script>"));
  if (polyccl_trace_parse("t.json", first, first_length, &again))
    fail_msg("%s", polyccl_last_error());
  assert_string_equal(again->name, trace->name);
  assert_string_equal(again->source, "simulated");
  assert_int_equal(again->records, trace->records);
  for (size_t i = 0; i < trace->records; i++) {
    assert_true(again->record[i].begin == trace->record[i].begin);
    assert_int_equal(again->record[i].message, trace->record[i].message);
  }
  write(again, &second, &second_length);
  assert_int_equal(first_length, second_length);
  assert_memory_equal(first, second, first_length);
  free(first);
  free(second);
  polyccl_trace_destroy(trace);
  polyccl_trace_destroy(again);
}

static void events_have_what_viewers_need(void **state) {
  (void)state;
  polyccl_trace *trace = sample_trace();
  char *text = NULL;
  size_t length = 0;
  write(trace, &text, &length);
  json_t *root = json_loadb(text, length, 0, NULL), *event;
  assert_non_null(root);
  size_t i, complete = 0, starts = 0, ends = 0, counters = 0;
  json_array_foreach(json_object_get(root, "traceEvents"), i, event) {
    const char *phase = json_string_value(json_object_get(event, "ph"));
    assert_true(json_is_integer(json_object_get(event, "pid")));
    complete += strcmp(phase, "X") == 0;
    starts += strcmp(phase, "s") == 0;
    ends += strcmp(phase, "f") == 0;
    counters += strcmp(phase, "C") == 0;
    if (strcmp(phase, "X") == 0) {
      assert_true(json_number_value(json_object_get(event, "dur")) > 0);
      assert_string_not_equal(json_string_value(json_object_get(json_object_get(event, "args"), "at")), "");
    }
  }
  assert_int_equal(complete, 32);
  assert_int_equal(starts, 8);
  assert_int_equal(ends, 8);
  assert_int_equal(counters, 16);
  json_decref(root);
  free(text);
  polyccl_trace_destroy(trace);
}

static void events_outside_the_plan_are_refused(void **state) {
  (void)state;
  static const struct {
    polyccl_trace_event event;
    const char *message;
  } cases[] = {
      {{.rank = 2}, "the plan of the trace has no thread block 0 on rank 2"},
      {{.rank = -1}, "the plan of the trace has no thread block 0 on rank -1"},
      {{.rank = 1, .tb = 2}, "the plan of the trace has no thread block 2 on rank 1"},
      {{.step = 2}, "in the trace, rank 0, thread block 0 has no step 2"},
      {{.begin = 2, .end = 1},
       "the event of rank 0, thread block 0, step 0 is not valid (state 0, micro-batch 0, 2 to 1 us)"},
      {{.batch = -1}, "the event of rank 0, thread block 0, step 0 is not valid (state 0, micro-batch -1, 0 to 0 us)"},
  };
  polyccl_plan *plan = sample_plan();
  polyccl_trace *trace = NULL;
  assert_int_equal(polyccl_trace_create(plan, "measured", &trace), POLYCCL_SUCCESS);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(polyccl_trace_add(trace, &cases[i].event), POLYCCL_ERROR_INVALID);
    assert_string_equal(polyccl_last_error(), cases[i].message);
  }
  assert_int_equal(polyccl_trace_write(trace, stdout), POLYCCL_ERROR_INVALID); /* not finished */
  assert_int_equal(polyccl_trace_finish(trace), POLYCCL_SUCCESS);
  assert_int_equal(trace->records, 0);
  assert_int_equal(polyccl_trace_add(trace, &(polyccl_trace_event){.end = 1}), POLYCCL_ERROR_INVALID);
  polyccl_trace_destroy(trace);
  polyccl_plan_destroy(plan);
}

static void other_programs_traces_are_shown(void **state) {
  (void)state;
  static const char text[] =
      " [{\"ph\":\"X\",\"name\":\"gemm\",\"pid\":7,\"tid\":3,\"ts\":1000.5,\"dur\":2},\n"
      "{\"ph\":\"X\",\"name\":\"copy\",\"pid\":7,\"tid\":3,\"ts\":1003,\"dur\":1},{\"ph\":\"M\"},\n"
      "{\"ph\":\"X\",\"name\":\"x\",\"pid\":7,\"tid\":\"main\",\"ts\":0,\"dur\":1}]\n";
  polyccl_trace *trace = NULL;
  assert_int_equal(polyccl_trace_parse("other.json", text, sizeof text - 1, &trace), POLYCCL_SUCCESS);
  assert_int_equal(trace->records, 2);
  assert_true(trace->record[0].begin == 0 && trace->record[1].begin == 2.5 && trace->duration == 3.5);
  assert_string_equal(trace->place[trace->step[trace->record[1].step].place], "copy");
  assert_int_equal(trace->step[0].op, POLYCCL_STEP_OP_COUNT);
  polyccl_trace_destroy(trace);
}

static void bad_files_are_named_by_their_line(void **state) {
  (void)state;
#define EVENT(rest) "{\"otherData\":{\"format\":\"polyccl-trace 1\"},\n\"traceEvents\":[\n{\"ph\":\"X\"," rest "}]}"
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"", "t:1: a trace must be a JSON array of events, or a JSON object with \"traceEvents\""},
      {"{}", "t:1: the object has no \"traceEvents\""},
      {"[]", "t: the trace has no complete events (\"ph\": \"X\" with pid, tid, ts, dur)"},
      {"{\"traceEvents\":\n7}", "t:2: \"traceEvents\" must be an array"},
      {"[\n7]", "t:2: event 0: an event must be an object with \"ph\""},
      {"{\"otherData\":{\"format\":\"polyccl-trace 2\"}}", "t:1: the trace is of a later version than polyccl-trace 1"},
      {EVENT("\"pid\":-1,\"tid\":0,\"ts\":0,\"dur\":0"),
       "t:3: event 0: \"pid\" and \"tid\" must be whole numbers from 0"},
      {EVENT("\"pid\":0,\"tid\":0,\"ts\":0,\"dur\":-1"),
       "t:3: event 0: a complete event needs \"ts\" and \"dur\" >= 0"},
      {EVENT("\"pid\":0,\"tid\":0,\"ts\":0,\"dur\":1,\"args\":{\"step\":-1}"),
       "t:3: event 0: \"step\" must be a whole number from 0"},
      {EVENT("\"pid\":0,\"tid\":0,\"ts\":0,\"dur\":1,\"args\":{\"from\":\"1.x\"}"),
       "t:3: event 0: \"from\" and \"to\" must be \"RANK.CHANNEL\""},
      {EVENT("\"pid\":0,\"tid\":0,\"ts\":0,\"dur\":1,\"args\":{\"src\":\"q1\"}"),
       "t:3: event 0: \"src\" and \"dst\" must be the letter of a buffer and an offset, as in \"i0\""},
      {EVENT("\"pid\":0,\"tid\":0,\"ts\":0,\"dur\":1,\"args\":{\"wait\":\"1\"}"),
       "t:3: event 0: \"wait\" must be a list of \"TB.STEP\""},
      {"[{\"ph\":\"M\"}] x", "t:1: there is text after the end of the trace"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    polyccl_trace *trace = NULL;
    assert_int_equal(polyccl_trace_parse("t", cases[i].text, strlen(cases[i].text), &trace), POLYCCL_ERROR_INVALID);
    assert_string_equal(polyccl_last_error(), cases[i].message);
    assert_null(trace);
  }
}

/* Every prefix of a trace is refused, without a crash. */
static void cut_files_are_refused(void **state) {
  (void)state;
  polyccl_trace *trace = sample_trace(), *cut = NULL;
  char *text = NULL;
  size_t length = 0;
  write(trace, &text, &length);
  for (size_t i = 0; i + 2 < length; i += i < 400 ? 1 : 37) {
    char *part = malloc(i + 1); /* of its own, so that a sanitizer sees reads past the end */
    memcpy(part, text, i);
    assert_int_equal(polyccl_trace_parse("cut", part, i, &cut), POLYCCL_ERROR_INVALID);
    free(part);
  }
  free(text);
  polyccl_trace_destroy(trace);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(records_are_sorted_and_joined),   cmocka_unit_test(what_is_written_reads_back),
      cmocka_unit_test(events_have_what_viewers_need),   cmocka_unit_test(events_outside_the_plan_are_refused),
      cmocka_unit_test(other_programs_traces_are_shown), cmocka_unit_test(bad_files_are_named_by_their_line),
      cmocka_unit_test(cut_files_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
