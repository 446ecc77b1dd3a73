/* Pictures and the page: well-formed, with what they must show, for hostile names too; what cannot be drawn is an
 * error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <expat.h>
#include <jansson.h>

#include <polyccl/compile.h>
#include <polyccl/language.h>
#include <polyccl/trace.h>

#include "../view/sample.h"
#include "view/page.h"
#include "view/pictures.h"
#include "view/route.h"
#include "view/thin.h"

static polyccl_plan *compile(const char *name, const char *ranks) {
  char path[512];
  snprintf(path, sizeof path, "%s/algorithms/%s.lua", POLYCCL_SOURCE_DIR, name);
  polyccl_param params[] = {{"ranks", ranks}};
  polyccl_program *program = NULL;
  polyccl_plan *plan = NULL;
  assert_int_equal(polyccl_program_load(path, params, 1, &program), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_compile(program, NULL, &plan), POLYCCL_SUCCESS);
  polyccl_program_destroy(program);
  return plan;
}

static polyccl_plan *parse(const char *text) {
  polyccl_plan *plan = NULL;
  assert_int_equal(polyccl_plan_parse("p", text, strlen(text), &plan), POLYCCL_SUCCESS);
  return plan;
}

/* ---- counting in a drawing ---- */

typedef struct census {
  int groups, curves, rects;
  char text[8192];
} census;

static void on_element(void *data, const XML_Char *name, const XML_Char **attributes) {
  census *c = data;
  c->groups += strcmp(name, "g") == 0;
  c->curves += strcmp(name, "path") == 0;
  c->rects += strcmp(name, "rect") == 0;
  for (int i = 0; attributes[i] != NULL; i += 2) { /* every place on the paper is a number */
    assert_null(strstr(attributes[i + 1], "nan"));
  }
}

static void on_text(void *data, const XML_Char *text, int length) {
  census *c = data;
  strncat(c->text, text, (size_t)length < sizeof c->text - strlen(c->text) - 1 ? (size_t)length : 0);
}

static census take(pccl_svg *svg) {
  census c = {0};
  XML_Parser parser = XML_ParserCreate("UTF-8");
  XML_SetUserData(parser, &c);
  XML_SetStartElementHandler(parser, on_element);
  XML_SetCharacterDataHandler(parser, on_text);
  if (XML_Parse(parser, svg->out.data, (int)svg->out.len, 1) != XML_STATUS_OK) {
    fail_msg("line %d: %s", (int)XML_GetCurrentLineNumber(parser), XML_ErrorString(XML_GetErrorCode(parser)));
  }
  XML_ParserFree(parser);
  pccl_text_free(&svg->out);
  return c;
}

/* ---- pictures ---- */

static void a_plan_shows_every_step_message_and_wait(void **state) {
  (void)state;
  polyccl_plan *plan = sample_plan();
  pccl_svg svg = {0};
  assert_int_equal(pccl_picture_plan(&svg, plan, -1), POLYCCL_SUCCESS);
  census c = take(&svg);
  assert_int_equal(c.groups, 8);
  assert_int_equal(c.curves, 4 + 2); /* messages, waits between thread blocks */
  assert_non_null(strstr(c.text, "two </script> \"ranks\""));
  assert_non_null(strstr(c.text, "rank 1, thread block 1, step 0: send o0, to rank 0 channel 1, </script><b>.lua:5"));
  assert_int_equal(pccl_picture_plan(&svg, plan, 1), POLYCCL_SUCCESS);
  c = take(&svg);
  assert_int_equal(c.groups, 4);
  assert_int_equal(c.curves, 1); /* its wait */
  assert_null(strstr(c.text, "rank 0, thread block"));
  assert_int_equal(pccl_picture_plan(&svg, plan, 2), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "the plan has ranks 0 to 1, so it has no rank 2");
  assert_null(svg.out.data);
  polyccl_plan_destroy(plan);
}

static void columns_follow_what_is_waited_for(void **state) {
  (void)state;
  polyccl_plan *plan = sample_plan();
  pccl_schedule schedule;
  assert_int_equal(pccl_schedule_make(plan, &schedule), POLYCCL_SUCCESS);
  static const int expected[] = {0, 1, 2, 3, 0, 1, 2, 3};
  bool seen[8] = {false};
  for (int i = 0; i < 8; i++) {
    assert_int_equal(schedule.level[i], expected[i]);
    assert_false(seen[schedule.order[i]]);
    seen[schedule.order[i]] = true;
    assert_true(schedule.sender[i] < 0 || seen[schedule.sender[i]] ||
                schedule.level[schedule.sender[i]] < schedule.level[i]);
  }
  assert_int_equal(schedule.sender[1], 4);
  assert_int_equal(schedule.sender[7], 2);
  assert_int_equal(schedule.levels, 4);
  pccl_schedule_free(&schedule);
  polyccl_plan_destroy(plan);
}

#define HEAD "polyccl-plan 1\nname \"p\"\ncollective allreduce\nranks 2\nchunks 1\nfile 0 \"x.lua\"\n"

static void plans_that_cannot_end_are_named(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
      {HEAD "rank 0 scratch 0\n tb\n recv o0 x1 from 1.0 at 0:4\n send i0 x1 to 1.0\n"
            "rank 1 scratch 0\n tb\n recv o0 x1 from 0.0\n send i0 x1 to 0.0\n",
       "x.lua:4: rank 0, thread block 0, step 0 (recv) never starts: the plan waits for itself in a circle"},
      {HEAD "rank 0 scratch 0\n tb\n recv o0 x1 from 1.0\nrank 1 scratch 0\n",
       "rank 0, thread block 0, step 0 (recv) receives a message that nobody sends"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    polyccl_plan *plan = parse(cases[i].text);
    pccl_svg svg = {0};
    assert_int_equal(pccl_picture_plan(&svg, plan, -1), POLYCCL_ERROR_INVALID);
    assert_string_equal(polyccl_last_error(), cases[i].message);
    assert_int_equal(pccl_picture_route(&svg, plan, 0), POLYCCL_ERROR_INVALID);
    assert_null(svg.out.data);
    polyccl_plan_destroy(plan);
  }
}

static pccl_route route_of(const polyccl_plan *plan, int chunk) {
  pccl_schedule schedule;
  pccl_route route;
  assert_int_equal(pccl_schedule_make(plan, &schedule), POLYCCL_SUCCESS);
  assert_int_equal(pccl_route_find(plan, &schedule, chunk, &route), POLYCCL_SUCCESS);
  pccl_schedule_free(&schedule);
  return route;
}

/* In the ring chunk c starts on rank c + 1, is complete on rank c and goes round once more. */
static void a_chunk_of_the_ring_goes_round_twice(void **state) {
  (void)state;
  enum { RANKS = 5 };
  polyccl_plan *plan = compile("allreduce_ring", "5");
  for (int chunk = 0; chunk < RANKS; chunk++) {
    pccl_route route = route_of(plan, chunk);
    assert_int_equal(route.stops.len, 2 * RANKS - 1);
    assert_int_equal(route.legs.len, 2 * RANKS - 2);
    int results = 0;
    for (size_t i = 0; i < route.stops.len; i++) {
      const pccl_route_stop *stop = &route.stops.data[i];
      assert_int_equal(stop->rank, (chunk + 1 + stop->column) % RANKS);
      assert_int_equal(stop->step < 0, stop->column == 0);
      assert_int_equal(stop->reduces, stop->column > 0 && stop->column < RANKS);
      assert_int_equal(stop->stays, stop->column >= RANKS - 1);
      results += stop->stays;
    }
    assert_int_equal(results, RANKS);
    for (size_t i = 0; i < route.legs.len; i++) {
      assert_true(route.legs.data[i].message);
      assert_int_equal(route.stops.data[route.legs.data[i].to].column,
                       route.stops.data[route.legs.data[i].from].column + 1);
    }
    pccl_route_free(&route);
  }
  polyccl_plan_destroy(plan);
}

/* Broadcast: everybody gets chunk 0 from the root, nobody reduces; AllGather: chunk c starts on rank c only. */
static void every_rank_is_reached(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int chunk, start;
  } cases[] = {{"broadcast_tree", 0, 0}, {"broadcast_chain", 0, 0}, {"allgather_ring", 3, 3}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    polyccl_plan *plan = compile(cases[k].name, "6");
    pccl_route route = route_of(plan, cases[k].chunk);
    int reached[6] = {0};
    for (size_t i = 0; i < route.stops.len; i++) {
      const pccl_route_stop *stop = &route.stops.data[i];
      assert_false(stop->reduces);
      reached[stop->rank] += stop->stays || stop->step < 0;
      if (stop->step < 0) {
        assert_int_equal(stop->rank, cases[k].start);
      }
    }
    for (int rank = 0; rank < 6; rank++) {
      assert_true(reached[rank] >= 1);
    }
    pccl_route_free(&route);
    polyccl_plan_destroy(plan);
  }
}

static void a_route_is_drawn(void **state) {
  (void)state;
  polyccl_plan *plan = sample_plan();
  pccl_svg svg = {0};
  assert_int_equal(pccl_picture_route(&svg, plan, 0), POLYCCL_SUCCESS);
  census c = take(&svg);
  assert_int_equal(c.groups, 3); /* start on rank 0, rrc on rank 1, recv on rank 0 */
  assert_int_equal(c.curves, 2);
  assert_non_null(strstr(c.text, "the way of chunk 0"));
  assert_int_equal(pccl_picture_route(&svg, plan, 2), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "the plan has chunks 0 to 1, so it has no chunk 2");
  polyccl_plan_destroy(plan);
}

static void a_timeline_is_drawn(void **state) {
  (void)state;
  polyccl_trace *trace = sample_trace();
  pccl_svg svg = {0};
  assert_int_equal(pccl_picture_timeline(&svg, trace, -1), POLYCCL_SUCCESS);
  census c = take(&svg);
  assert_int_equal(c.rects, 1 + 32 + 1 + 5); /* ground, boxes, a link, the legend's */
  assert_non_null(strstr(c.text, "a </script> b"));
  assert_int_equal(pccl_picture_timeline(&svg, trace, 1), POLYCCL_SUCCESS);
  c = take(&svg);
  assert_int_equal(c.rects, 1 + 16 + 1 + 5);
  assert_int_equal(pccl_picture_timeline(&svg, trace, 7), POLYCCL_ERROR_INVALID);
  polyccl_trace_destroy(trace);
}

/* A hundred thousand boxes on one block become at most two per pixel, and no time is lost. */
static void small_boxes_are_merged(void **state) {
  (void)state;
  polyccl_plan *plan = sample_plan();
  polyccl_trace *trace = NULL;
  assert_int_equal(polyccl_trace_create(plan, "measured", &trace), POLYCCL_SUCCESS);
  for (int i = 0; i < 100000; i++) {
    polyccl_trace_event event = {.step = i & 1, .batch = i / 2, .begin = i, .end = i + 0.5};
    assert_int_equal(polyccl_trace_add(trace, &event), POLYCCL_SUCCESS);
  }
  assert_int_equal(polyccl_trace_finish(trace), POLYCCL_SUCCESS);
  pccl_svg svg = {0};
  assert_int_equal(pccl_picture_timeline(&svg, trace, 0), POLYCCL_SUCCESS);
  census c = take(&svg);
  assert_in_range(c.rects, 1 + 1 + 2, 2100);
  polyccl_trace_destroy(trace);
  polyccl_plan_destroy(plan);
}

/* One event of no length: no time to divide by. */
static void a_trace_of_no_length_is_drawn(void **state) {
  (void)state;
  static const char text[] = "[{\"ph\":\"X\",\"name\":\"x\",\"pid\":0,\"tid\":0,\"ts\":5,\"dur\":0}]";
  polyccl_trace *trace = NULL;
  assert_int_equal(polyccl_trace_parse("t", text, sizeof text - 1, &trace), POLYCCL_SUCCESS);
  pccl_svg svg = {0};
  assert_int_equal(pccl_picture_timeline(&svg, trace, -1), POLYCCL_SUCCESS);
  census c = take(&svg);
  assert_non_null(strstr(c.text, "rank 0"));
  polyccl_trace_destroy(trace);
}

/* A thousand samples become at most 128 spans; what the link has carried stays. */
static void thinning_keeps_what_was_carried(void **state) {
  (void)state;
  polyccl_plan *plan = sample_plan();
  polyccl_trace *trace = NULL;
  assert_int_equal(polyccl_trace_create(plan, "measured", &trace), POLYCCL_SUCCESS);
  polyccl_plan_destroy(plan);
  int busy, calm, idle;
  assert_int_equal(polyccl_trace_add_link(trace, "busy", 10, &busy), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_trace_add_link(trace, "idle", 10, &idle), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_trace_add_link(trace, "calm", 10, &calm), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_trace_add(trace, &(polyccl_trace_event){.end = 1000}), POLYCCL_SUCCESS);
  double carried = 0;
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(polyccl_trace_add_sample(trace, busy, i, i % 7), POLYCCL_SUCCESS);
    carried += i % 7;
  }
  assert_int_equal(polyccl_trace_add_sample(trace, calm, 250, 8), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_trace_finish(trace), POLYCCL_SUCCESS);
  pccl_thinned thinned;
  assert_int_equal(pccl_thin_samples(trace, 10, &thinned), POLYCCL_SUCCESS);
  assert_in_range(thinned.first[1], 2, 128);
  assert_int_equal(thinned.first[2], thinned.first[1]);
  assert_int_equal(thinned.first[3], thinned.first[2] + 1);
  assert_true(thinned.samples.data[thinned.first[2]].time == 250 && thinned.samples.data[thinned.first[2]].rate == 8);
  double after = 0;
  for (size_t i = 0; i < thinned.first[1]; i++) {
    double end = i + 1 < thinned.first[1] ? thinned.samples.data[i + 1].time : 1000;
    after += thinned.samples.data[i].rate * (end - thinned.samples.data[i].time);
  }
  assert_true(after > carried * (1 - 1e-9) && after < carried * (1 + 1e-9));
  pccl_thinned_free(&thinned);
  assert_int_equal(pccl_thin_samples(trace, 100000, &thinned), POLYCCL_SUCCESS);
  assert_int_equal(thinned.first[1], 1000); /* few enough: as they were */
  pccl_thinned_free(&thinned);
  polyccl_trace_destroy(trace);
}

/* ---- the page ---- */

static size_t decode(const char *text, unsigned char *bytes) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t count = 0;
  uint32_t bits = 0;
  int held = 0;
  for (; *text != '\0' && *text != '='; text++) {
    bits = bits << 6 | (uint32_t)(strchr(digits, *text) - digits);
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes[count++] = (unsigned char)(bits >> held);
    }
  }
  return count;
}

static void column(const json_t *object, const char *name, const char *type, void *bytes, size_t size) {
  const char *text = json_string_value(json_object_get(object, name));
  assert_non_null(text);
  assert_memory_equal(text, type, 2);
  assert_int_equal(decode(text + 3, bytes), size);
}

static void a_page_holds_the_trace(void **state) {
  (void)state;
  polyccl_trace *trace = sample_trace();
  const polyccl_trace *traces[] = {trace, trace};
  pccl_fact facts[] = {{"program", "</script><script>alert(1)</script>"}};
  char *page = NULL;
  size_t length = 0;
  FILE *to = open_memstream(&page, &length);
  assert_int_equal(pccl_page_write(trace->name, facts, 1, traces, 2, to), POLYCCL_SUCCESS);
  fclose(to);
  static const char open[] = "<script type=\"application/json\" id=\"data\">";
  const char *data = strstr(page, open) + strlen(open), *end = strstr(data, "</script>");
  json_t *root = json_loadb(data, (size_t)(end - data), 0, NULL);
  assert_non_null(root); /* so no name has ended the element early */
  assert_string_equal(json_string_value(json_object_get(root, "title")), trace->name);
  assert_null(strstr(page, "alert(1)</script>"));
  assert_null(strstr(page, "http://"));
  assert_null(strstr(page, "https://"));
  json_t *made = json_array_get(json_object_get(root, "traces"), 1);
  double begin[32];
  int32_t step[32], wait[4];
  uint8_t states[32];
  uint32_t first[5];
  column(json_object_get(made, "record"), "begin", "f8", begin, sizeof begin);
  column(json_object_get(made, "record"), "step", "i4", step, sizeof step);
  column(json_object_get(made, "record"), "state", "u1", states, sizeof states);
  column(json_object_get(made, "block"), "record", "u4", first, sizeof first);
  column(made, "wait", "i4", wait, sizeof wait);
  for (size_t i = 0; i < 32; i++) {
    assert_true(begin[i] == trace->record[i].begin);
    assert_int_equal(step[i], trace->record[i].step);
    assert_int_equal(states[i], trace->record[i].state);
  }
  for (size_t i = 0; i < 5; i++) {
    assert_int_equal(first[i], 8 * i);
  }
  assert_int_equal(wait[0], 0);
  assert_int_equal(wait[1], 1);
  const json_t *place = json_array_get(json_object_get(made, "places"), 0);
  assert_string_equal(json_string_value(place), "</script><b>.lua:3");
  json_decref(root);
  free(page);
  polyccl_trace_destroy(trace);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_plan_shows_every_step_message_and_wait),
      cmocka_unit_test(columns_follow_what_is_waited_for),
      cmocka_unit_test(plans_that_cannot_end_are_named),
      cmocka_unit_test(a_chunk_of_the_ring_goes_round_twice),
      cmocka_unit_test(every_rank_is_reached),
      cmocka_unit_test(a_route_is_drawn),
      cmocka_unit_test(a_timeline_is_drawn),
      cmocka_unit_test(small_boxes_are_merged),
      cmocka_unit_test(a_trace_of_no_length_is_drawn),
      cmocka_unit_test(thinning_keeps_what_was_carried),
      cmocka_unit_test(a_page_holds_the_trace),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
