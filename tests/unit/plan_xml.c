/* The limits of what takes MSCCL XML: the largest plan within each is written, one more is refused with a message that
 * names the limit, the target and a remedy. And what the writer adds to a plan: nops, hasdep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <polyccl/plan.h>

#include "base/file.h"

enum { HEAD_CHUNKS = 100 };

static void head(pccl_text *text, const char *collective, int ranks, int chunks, const char *more) {
  pccl_text_add(text, "polyccl-plan 1\nname \"limits\"\ncollective %s\nranks %d\nchunks %d\n%s", collective, ranks,
                chunks, more);
}

/* Parses and frees the text; writes the plan; *written is the XML, or NULL after an error. */
static polyccl_result write_text(pccl_text *text, polyccl_format format, char **written) {
  polyccl_plan *plan;
  size_t length;
  assert_false(text->failed);
  if (polyccl_plan_parse("text", text->data, text->len, &plan) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  pccl_text_free(text);
  *written = NULL;
  FILE *memory = open_memstream(written, &length);
  assert_non_null(memory);
  polyccl_result result = polyccl_plan_write(plan, format, memory);
  fclose(memory);
  polyccl_plan_destroy(plan);
  if (result != POLYCCL_SUCCESS) {
    assert_int_equal(length, 0); /* nothing of a plan that does not fit */
    free(*written);
    *written = NULL;
  }
  return result;
}

static void expect(pccl_text text, polyccl_format format, polyccl_result wanted, const char *message) {
  char *written;
  polyccl_result result = write_text(&text, format, &written);
  if (result != wanted || (message != NULL && strstr(polyccl_last_error(), message) == NULL)) {
    fail_msg("%s: %s; expected %s: %s", polyccl_result_name(result), polyccl_last_error(), polyccl_result_name(wanted),
             message != NULL ? message : "");
  }
  free(written);
}

/* What a limit counts, as a plan with `n` of it. */
typedef pccl_text (*sized)(int n);

static pccl_text tbs(int n) {
  pccl_text text = {0};
  head(&text, "allreduce", 1, HEAD_CHUNKS, "rank 0 scratch 0\n");
  for (int i = 0; i < n; i++) {
    pccl_text_add(&text, "tb\ncopy i0 o%d x1\n", i % HEAD_CHUNKS);
  }
  return text;
}

static pccl_text steps(int n) {
  pccl_text text = {0};
  head(&text, "allreduce", 1, HEAD_CHUNKS, "rank 0 scratch 0\ntb\n");
  for (int i = 0; i < n; i++) {
    pccl_text_add(&text, "copy i0 o%d x1\n", i % HEAD_CHUNKS);
  }
  return text;
}

/* One step with n waits: n elements. */
static pccl_text waits(int n) {
  pccl_text text = {0};
  head(&text, "allreduce", 1, HEAD_CHUNKS, "rank 0 scratch 0\ntb\ncopy i0 o0 x1\ntb\ncopy i1 o1 x1 wait");
  for (int i = 0; i < n; i++) {
    pccl_text_add(&text, " 0.0");
  }
  pccl_text_add(&text, "\n");
  return text;
}

static pccl_text count(int n) {
  pccl_text text = {0};
  head(&text, "allreduce", 1, HEAD_CHUNKS, "file 0 \"a.lua\"\nrank 0 scratch 0\ntb\n");
  pccl_text_add(&text, "copy i0 o0 x%d at 0:7\n", n);
  return text;
}

static pccl_text channels(int n) {
  pccl_text text = {0};
  head(&text, "allreduce", 2, 1, "rank 0 scratch 0\ntb\n");
  pccl_text_add(&text, "send i0 x1 to 1.%d\nrank 1 scratch 0\ntb\nrecv o0 x1 from 0.%d\n", n - 1, n - 1);
  return text;
}

static pccl_text senders(int n) {
  pccl_text text = {0};
  head(&text, "allreduce", n + 1, 1, "rank 0 scratch 0\n");
  for (int i = 1; i <= n; i++) {
    pccl_text_add(&text, "tb\nsend i0 x1 to %d.4\n", i);
  }
  for (int i = 1; i <= n; i++) {
    pccl_text_add(&text, "rank %d scratch 0\ntb\nrecv o0 x1 from 0.4\n", i);
  }
  return text;
}

static pccl_text receivers(int n) {
  pccl_text text = {0};
  head(&text, "allreduce", n + 1, 1, "rank 0 scratch 0\n");
  for (int i = 1; i <= n; i++) {
    pccl_text_add(&text, "tb\nrecv o0 x1 from %d.4\n", i);
  }
  for (int i = 1; i <= n; i++) {
    pccl_text_add(&text, "rank %d scratch 0\ntb\nsend i0 x1 to 0.4\n", i);
  }
  return text;
}

/* The last of n thread blocks is waited for. */
static pccl_text awaited(int n) {
  pccl_text text = {0};
  head(&text, "allreduce", 1, 1, "rank 0 scratch 0\ntb\n");
  pccl_text_add(&text, "copy i0 o0 x1 wait %d.0\n", n - 1);
  for (int i = 1; i < n; i++) {
    pccl_text_add(&text, "tb\ncopy i0 o0 x1\n");
  }
  return text;
}

static pccl_text chunks(int n) {
  pccl_text text = {0};
  head(&text, "allreduce", 1, n, "rank 0 scratch 0\n");
  return text;
}

static pccl_text scratch(int n) {
  pccl_text text = {0};
  head(&text, "allreduce", 1, 1, "");
  pccl_text_add(&text, "rank 0 scratch %d\n", n);
  return text;
}

static pccl_text ranks(int n) {
  pccl_text text = {0};
  head(&text, "allreduce", n, 1, "");
  for (int i = 0; i < n; i++) {
    pccl_text_add(&text, "rank %d scratch 0\n", i);
  }
  return text;
}

/* n elements in all: <algo>, one <gpu>, thread blocks of at most 64 steps. */
static pccl_text elements(int n) {
  pccl_text text = {0};
  head(&text, "allreduce", 1, HEAD_CHUNKS, "rank 0 scratch 0\n");
  for (int i = 2; i < n; i++) {
    pccl_text_add(&text, (i - 2) % 65 == 0 ? "tb\n" : "copy i0 o0 x1\n");
  }
  return text;
}

/* Needs a depth of `n`, says `said` (0: nothing): rank 1 takes the message of another channel first, which rank 0 sends
 * after n others. */
static pccl_text depth_of(const char *protocol, int n, int said) {
  enum { MOST = 16 };
  pccl_text text = {0};
  head(&text, "broadcast", 2, MOST, "inplace yes\nprotocol ");
  pccl_text_add(&text, "%s\n", protocol);
  if (said > 0) {
    pccl_text_add(&text, "depth %d\n", said);
  }
  pccl_text_add(&text, "rank 0 scratch 0\ntb\n");
  for (int i = 0; i < n; i++) {
    pccl_text_add(&text, "send i%d x1 to 1.0\n", i);
  }
  pccl_text_add(&text, "tb\nnop wait 0.%d\nsend i%d x%d to 1.1\n", n - 1, n, MOST - n);
  pccl_text_add(&text, "rank 1 scratch 0\ntb\nnop wait 1.0\n");
  for (int i = 0; i < n; i++) {
    pccl_text_add(&text, "recv o%d x1 from 0.0\n", i);
  }
  pccl_text_add(&text, "tb\nrecv o%d x%d from 0.1\n", n, MOST - n);
  return text;
}

static pccl_text depth_simple(int n) { return depth_of("Simple", n, 0); }
static pccl_text depth_ll(int n) { return depth_of("LL", n, 0); }

/* n fused steps that follow one another along a ring of two ranks: a right plan, which RCCL gets in three parts each.
 */
static pccl_text fused(int n) {
  pccl_text text = {0};
  head(&text, "reduce", 2, n, "depth 1\n");
  pccl_text_add(&text, "rank 0 scratch 0\ntb\n");
  for (int i = 0; i < n; i++) {
    pccl_text_add(&text, "rrcs i%d o%d x1 from 1.0 to 1.0\n", i, i);
  }
  pccl_text_add(&text, "rank 1 scratch 0\ntb\n");
  for (int i = 0; i < n; i++) {
    pccl_text_add(&text, "send i%d x1 to 0.0\n", i);
  }
  pccl_text_add(&text, "tb\n");
  for (int i = 0; i < n; i++) {
    pccl_text_add(&text, "recv o%d x1 from 0.0\n", i);
  }
  return text;
}

/* n thread blocks, a nop that waits for all of them, and 64 steps that wait for the nop. */
static pccl_text nops(int n) {
  pccl_text text = {0};
  head(&text, "allreduce", 1, 1, "inplace yes\n");
  pccl_text_add(&text, "rank 0 scratch %d\ntb\nnop wait", n + 1);
  for (int i = 0; i < n; i++) {
    pccl_text_add(&text, " %d.0", i + 2);
  }
  pccl_text_add(&text, "\ntb\n");
  for (int i = 0; i < 64; i++) {
    pccl_text_add(&text, "copy i0 s%d x1 wait 0.0\n", n);
  }
  for (int i = 0; i < n; i++) {
    pccl_text_add(&text, "tb\ncopy i0 s%d x1\n", i);
  }
  return text;
}

enum { TARGETS = 3 };

static const struct {
  polyccl_format format;
  const char *name;
} targets[TARGETS] = {{POLYCCL_FORMAT_XML, "microsoft/msccl"},
                      {POLYCCL_FORMAT_XML_AZURE, "the Azure executor"},
                      {POLYCCL_FORMAT_XML_RCCL, "RCCL"}};

static void limits(void **state) {
  (void)state;
  static const struct {
    sized make;
    int most[TARGETS]; /* 0: another limit comes first */
    const char *message;
  } all[] = {
      {tbs, {216, 1024, 64}, " thread blocks; "},
      {steps, {256, 64, 64}, "steps, counting one per wait"},
      {waits, {256, 64, 64}, "steps, counting one per wait"},
      {fused, {256, 64, 21}, "steps, counting one per wait"},
      {count, {71, 71, 71}, "a.lua:7: rank 0 thread block 0 has a step with a count of "},
      {channels, {32, 32, 64}, " uses channel "},
      {senders, {32, 32, 32}, "33 peers that it sends to on one channel"},
      {receivers, {32, 32, 32}, "33 peers that it receives from on one channel"},
      {awaited, {128, 128, 0}, "waits for thread block 128"},
      {chunks, {32767, 32767, 32767}, "32768 chunks in a buffer"},
      {scratch, {32767, 32767, 32767}, "32768 chunks in a buffer"},
      {ranks, {1024, 1024, 1024}, "1025 ranks"},
      {elements, {4095, 4095, 4095}, "4096 XML elements"},
      {depth_simple, {2, 2, 2}, "the plan needs a FIFO depth of 3"},
      {depth_ll, {8, 8, 8}, "the plan needs a FIFO depth of 9"},
  };
  for (size_t i = 0; i < TARGETS * sizeof all / sizeof all[0]; i++) {
    int most = all[i / TARGETS].most[i % TARGETS];
    sized make = all[i / TARGETS].make;
    if (most == 0) {
      continue;
    }
    expect(make(most), targets[i % TARGETS].format, POLYCCL_SUCCESS, NULL);
    expect(make(most + 1), targets[i % TARGETS].format, POLYCCL_ERROR_LIMIT, all[i / TARGETS].message);
    assert_non_null(strstr(polyccl_last_error(), targets[i % TARGETS].name));
    char number[32];
    int named = make == channels || make == awaited ? most - 1 : make == fused && most == 21 ? 64 : most;
    snprintf(number, sizeof number, "takes at most %d: ", named);
    if (make == depth_simple || make == depth_ll) {
      snprintf(number, sizeof number, "has %d with ", most);
    }
    const char *found = strstr(polyccl_last_error(), number);
    if (found == NULL || found[strlen(number)] == '\0') { /* the limit, and after it the remedy */
      fail_msg("\"%s\" is not in: %s", number, polyccl_last_error());
    }
  }
}

/* Waits that nops multiply are bounded before they are written out. */
static void waits_of_nops(void **state) {
  (void)state;
  expect(nops(1), POLYCCL_FORMAT_XML, POLYCCL_SUCCESS, NULL);
  expect(nops(10), POLYCCL_FORMAT_XML, POLYCCL_ERROR_LIMIT, "640 steps, counting one per wait");
  expect(nops(64), POLYCCL_FORMAT_XML, POLYCCL_ERROR_LIMIT,
         "with the waits of its nops the plan has more than the 4095 XML elements that microsoft/msccl takes: compile");
}

static pccl_text body(const char *collective, const char *more, const char *rest) {
  pccl_text text = {0};
  head(&text, collective, 3, 1, more);
  pccl_text_add(&text, "%s", rest);
  return text;
}

/* A plan may name more slots than it needs; the target has to have what it needs. */
static void a_depth_said_too_high_is_written(void **state) {
  (void)state;
  expect(depth_of("Simple", 2, 9), POLYCCL_FORMAT_XML, POLYCCL_SUCCESS, NULL);
  expect(depth_of("Simple", 3, 9), POLYCCL_FORMAT_XML, POLYCCL_ERROR_LIMIT, "the plan needs a FIFO depth of 3");
}

static void not_expressible(void **state) {
  (void)state;
  static const char empty[] = "rank 0 scratch 0\nrank 1 scratch 0\nrank 2 scratch 0\n";
  expect(body("gather", "", empty), POLYCCL_FORMAT_XML, POLYCCL_ERROR_UNSUPPORTED, "microsoft/msccl has no gather");
  expect(body("scatter", "", empty), POLYCCL_FORMAT_XML_AZURE, POLYCCL_ERROR_UNSUPPORTED,
         "the Azure executor has no scatter");
  expect(body("custom", "", empty), POLYCCL_FORMAT_XML_AZURE, POLYCCL_ERROR_UNSUPPORTED, "has no custom");
  expect(body("sendrecv", "peer 1\n", empty), POLYCCL_FORMAT_XML, POLYCCL_ERROR_UNSUPPORTED, "has no sendrecv");
  expect(body("custom", "outchunks 2\n", empty), POLYCCL_FORMAT_XML, POLYCCL_ERROR_UNSUPPORTED,
         "input has 1 chunks and output 2");
  expect(body("allreduce", "order task-major\n", empty), POLYCCL_FORMAT_XML, POLYCCL_ERROR_UNSUPPORTED,
         "loop order is task-major");
  expect(
      body("allreduce", "file 0 \"a.lua\"\n",
           "rank 0 scratch 0\ntb\nsend i0 x1 to 1.0\nsend i0 x1 to 2.0 at 0:5\nrank 1 scratch 0\nrank 2 scratch 0\n"),
      POLYCCL_FORMAT_XML, POLYCCL_ERROR_UNSUPPORTED,
      "a.lua:5: rank 0 thread block 0 uses two connections to send: rank 1 channel 0, then rank 2 channel 0");
  expect(body("allreduce", "",
              "rank 0 scratch 0\nrank 1 scratch 0\ntb\nrecv o0 x1 from 2.0\nrecv o0 x1 from 2.1\nrank 2 scratch 0\n"),
         POLYCCL_FORMAT_XML, POLYCCL_ERROR_UNSUPPORTED,
         "rank 1 thread block 0 uses two connections to receive: rank 2 channel 0, then rank 2 channel 1");
  expect(body("allreduce", "",
              "rank 0 scratch 0\ntb\nsend i0 x1 to 1.0\nrecv o0 x1 from 1.3\nrank 1 scratch 0\nrank 2 scratch 0\n"),
         POLYCCL_FORMAT_XML, POLYCCL_ERROR_UNSUPPORTED, "receives on channel 3 and sends on channel 0");
  expect(body("allreduce", "", "rank 0 scratch 0\ntb\ncopy i0 o0 x1 wait 1.0\nrank 1 scratch 0\nrank 2 scratch 0\n"),
         POLYCCL_FORMAT_XML, POLYCCL_ERROR_INVALID, "waits for thread block 1 step 0, which does not exist");
}

/* Waits are spelt out one by one, the last on the step itself; hasdep marks the awaited; one for an earlier step of
 * the same thread block goes without saying; a run of reductions with different counts is broken. */
static void elements_written(void **state) {
  (void)state;
  pccl_text text = {0};
  char *xml;
  head(&text, "allreduce", 1, 4,
       "rank 0 scratch 4\ntb\ncopy i0 s0 x4\ncopy i0 o0 x4\ntb\ncopy i0 s0 x1\ntb\n"
       "reduce s0 o0 x1 wait 0.1 1.0\nreduce s1 o0 x2 wait 2.0\nreduce s2 o0 x2\n");
  assert_int_equal(write_text(&text, POLYCCL_FORMAT_XML, &xml), POLYCCL_SUCCESS);
  static const char *const lines[] = {
      "<step s=\"0\" type=\"cpy\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"s\" dstoff=\"0\" cnt=\"4\" depid=\"-1\" "
      "deps=\"-1\" hasdep=\"0\"/>",
      "<step s=\"1\" type=\"cpy\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"4\" depid=\"-1\" "
      "deps=\"-1\" hasdep=\"1\"/>",
      "<step s=\"0\" type=\"nop\" srcbuf=\"i\" srcoff=\"-1\" dstbuf=\"o\" dstoff=\"-1\" cnt=\"0\" depid=\"0\" "
      "deps=\"1\" hasdep=\"0\"/>",
      "<step s=\"1\" type=\"re\" srcbuf=\"s\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" depid=\"1\" "
      "deps=\"0\" hasdep=\"1\"/>",
      "<step s=\"2\" type=\"re\" srcbuf=\"s\" srcoff=\"1\" dstbuf=\"o\" dstoff=\"0\" cnt=\"2\" depid=\"-1\" "
      "deps=\"-1\" hasdep=\"0\"/>",
      "<step s=\"3\" type=\"re\" srcbuf=\"s\" srcoff=\"2\" dstbuf=\"o\" dstoff=\"0\" cnt=\"2\" depid=\"-1\" "
      "deps=\"-1\" hasdep=\"0\"/>"};
  const char *at = xml;
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    const char *found = strstr(at, lines[i]);
    if (found == NULL) {
      fail_msg("%s is not where it should be in\n%s", lines[i], xml);
    }
    at = found;
  }
  free(xml);
}

/* The two dialects differ in the <algo> element. */
static void dialects(void **state) {
  (void)state;
  pccl_text text = {0};
  char *xml;
  head(&text, "reduce_scatter", 1, 2, "inplace yes\nprotocol LL\nbytes 4 0\nrank 0 scratch 0\n");
  assert_int_equal(write_text(&text, POLYCCL_FORMAT_XML, &xml), POLYCCL_SUCCESS);
  assert_string_equal(xml,
                      "<algo name=\"limits\" proto=\"LL\" nchannels=\"1\" nchunksperloop=\"2\" ngpus=\"1\" "
                      "coll=\"reduce_scatter\" inplace=\"1\" minBytes=\"4\" maxBytes=\"9223372036854775807\">\n"
                      "  <gpu id=\"0\" i_chunks=\"2\" o_chunks=\"0\" s_chunks=\"0\">\n"
                      "    <tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"0\">\n    </tb>\n  </gpu>\n</algo>\n");
  free(xml);
  head(&text, "reduce_scatter", 1, 2, "protocol LL\nbytes 4 8\nrank 0 scratch 0\ntb\n");
  assert_int_equal(write_text(&text, POLYCCL_FORMAT_XML_AZURE, &xml), POLYCCL_SUCCESS);
  assert_string_equal(xml,
                      "<algo name=\"limits\" proto=\"LL\" nchannels=\"1\" nchunksperloop=\"2\" ngpus=\"1\" "
                      "coll=\"reducescatter\" inplace=\"0\" outofplace=\"1\" minBytes=\"4\" maxBytes=\"8\">\n"
                      "  <gpu id=\"0\" i_chunks=\"2\" o_chunks=\"2\" s_chunks=\"0\">\n"
                      "    <tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"0\">\n    </tb>\n  </gpu>\n</algo>\n");
  free(xml);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(limits),
      cmocka_unit_test(waits_of_nops),
      cmocka_unit_test(a_depth_said_too_high_is_written),
      cmocka_unit_test(not_expressible),
      cmocka_unit_test(elements_written),
      cmocka_unit_test(dialects),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
