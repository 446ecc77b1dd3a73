/* Plans written for the executors of MSCCL XML, read back as those executors read them and run by the interpreter: as
 * many slots as the executor has, small messages and large ones, under many interleavings. Nothing of the library's
 * reader takes part. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <polyccl/compile.h>
#include <polyccl/language.h>

#include "base/file.h"
#include "xml_targets.h"

enum { MOST_PARAMS = 4 };

static int check_text(const char *text) {
  polyccl_plan *plan = plan_of(text);
  int written = check_plan("text", plan);
  polyccl_plan_destroy(plan);
  return written;
}

static void algorithms(void **state) {
  (void)state;
  static const struct {
    const char *file;
    polyccl_param params[MOST_PARAMS];
    int written;
  } all[] = {
      {"allgather_allpairs", {{"ranks", "4"}}, 3},
      {"allgather_ring", {{"ranks", "3"}, {"instances", "2"}}, 3},
      {"allreduce_allpairs", {{"ranks", "4"}}, 3},
      {"allreduce_halving_doubling", {{"ranks", "8"}}, 3},
      {"allreduce_hierarchical", {{"nodes", "2"}, {"gpus", "3"}}, 3},
      {"allreduce_oneshot", {{"ranks", "4"}}, 3},
      {"allreduce_ring", {{"ranks", "4"}}, 3},
      {"allreduce_ring", {{"ranks", "3"}, {"channels", "2"}, {"instances", "2"}}, 3},
      {"alltoall", {{"ranks", "4"}}, 3},
      {"alltoall_two_step", {{"nodes", "2"}, {"gpus", "2"}}, 3},
      {"alltoall_three_step", {{"nodes", "2"}, {"gpus", "2"}}, 3},
      {"alltonext", {{"nodes", "2"}, {"gpus", "2"}}, 1},
      {"broadcast_chain", {{"ranks", "4"}, {"root", "1"}}, 3},
      {"broadcast_tree", {{"ranks", "5"}, {"root", "2"}}, 3},
      {"gather", {{"ranks", "4"}, {"root", "2"}, {"instances", "2"}}, 1},
      {"reduce_chain", {{"ranks", "4"}, {"root", "3"}}, 3},
      {"reduce_scatter_allpairs", {{"ranks", "4"}}, 3},
      {"reduce_scatter_ring", {{"ranks", "4"}}, 3},
      {"reduce_tree", {{"ranks", "5"}}, 3},
      {"scatter", {{"ranks", "3"}, {"root", "1"}, {"instances", "2"}}, 1},
  };
  for (size_t i = 0; i < 2 * sizeof all / sizeof all[0]; i++) {
    char path[512];
    int params = 0;
    polyccl_program *program;
    polyccl_plan *plan = NULL;
    polyccl_compile_options options = {.size = sizeof(polyccl_compile_options),
                                       .placement = i % 2 == 0 ? POLYCCL_IN_PLACE : POLYCCL_OUT_OF_PLACE};
    snprintf(path, sizeof path, POLYCCL_SOURCE_DIR "/algorithms/%s.lua", all[i / 2].file);
    while (params < MOST_PARAMS && all[i / 2].params[params].name != NULL) {
      params++;
    }
    if (polyccl_program_load(path, all[i / 2].params, (size_t)params, &program) != POLYCCL_SUCCESS ||
        (polyccl_compile(program, &options, &plan) != POLYCCL_SUCCESS &&
         polyccl_compile(program, NULL, &plan) != POLYCCL_SUCCESS)) {
      fail_msg("%s: %s", path, polyccl_last_error());
    }
    int written = check_plan(path, plan);
    if (written != all[i / 2].written) {
      fail_msg("%s is written for %d targets, not %d: %s", path, written, all[i / 2].written, polyccl_last_error());
    }
    polyccl_plan_destroy(plan);
    polyccl_program_destroy(program);
  }
}

/* Waits for nops, through nops, across thread blocks; nops at the end, in the middle, alone. */
static void nops(void **state) {
  (void)state;
  static const char *const bodies[] = {
      /* the last step of its thread block, waited for */
      "tb\ncopy i0 o0 x2\nnop\ntb\ncopy o0 s0 x1 wait 0.1\n",
      /* the first one: nothing to wait for is left */
      "tb\nnop\ncopy i0 o0 x2\ntb\ncopy i0 s0 x1 wait 0.0\n",
      /* a thread block of nothing else, which waits */
      "tb\ncopy i0 o0 x2\ntb\nnop wait 0.0\nnop\ntb\ncopy o1 s0 x1 wait 1.1\n",
      /* nops that wait for nops, twice over, and for different steps */
      "tb\ncopy i0 o0 x1\nnop wait 1.1\ncopy s1 s2 x1\ntb\ncopy i1 o1 x1\nnop wait 2.1\ncopy o1 s3 x1\ntb\n"
      "copy i0 s1 x1\nnop\ntb\ncopy o0 s0 x1 wait 0.1 1.1\ncopy o1 s0 x1\ntb\nnop wait 0.1\nnop wait 1.1\n"
      "reduce s1 s0 x1 wait 3.1\n",
      /* the waits of nops before a step that has none of its own */
      "tb\ncopy i0 o0 x1\ntb\ncopy i1 o1 x1\ntb\nnop wait 0.0\nnop wait 1.0\ncopy o0 s0 x2\n",
      /* after a nop the steps are numbered on */
      "tb\nnop\ncopy i0 o0 x1\nnop\ncopy i1 o1 x1\ntb\ncopy o1 s0 x1 wait 0.3\n",
  };
  char text[1024];
  for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
    snprintf(text, sizeof text,
             "polyccl-plan 1\nname \"nops\"\ncollective allreduce\nranks 1\nchunks 2\nrank 0 scratch 4\n%s", bodies[i]);
    assert_int_equal(check_text(text), TARGETS);
  }
  assert_int_equal(
      check_text("polyccl-plan 1\nname \"nop1\"\ncollective broadcast\nranks 2\nchunks 2\n"
                 "rank 0 scratch 1\ntb\ncopy i0 o0 x2\nsend i0 x2 to 1.0\nnop\ntb\ncopy i0 s0 x1 wait 0.2\n"
                 "rank 1 scratch 0\ntb\nrecv o0 x2 from 0.0\n"),
      TARGETS);
}

/* Fused steps: local operands at the destination and elsewhere, several in a thread block, of different counts. */
static void fused_steps(void **state) {
  (void)state;
  static const char *const texts[] = {
      "polyccl-plan 1\nname \"rrs\"\ncollective reduce\nranks 3\nchunks 3\nroot 2\n"
      "rank 0 scratch 0\ntb\nsend i0 x2 to 1.0\nsend i2 x1 to 1.0\n"
      "rank 1 scratch 0\ntb\nrrs i0 x2 from 0.0 to 2.0\nrrs i2 x1 from 0.0 to 2.0\n"
      "rank 2 scratch 0\ntb\nrrc i0 o0 x2 from 1.0\nrrc i2 o2 x1 from 1.0\n",
      "polyccl-plan 1\nname \"in place\"\ncollective allreduce\nranks 3\nchunks 1\ninplace yes\n"
      "rank 0 scratch 0\ntb\nsend i0 x1 to 1.0\nrcs i0 x1 from 2.0 to 1.0\n"
      "rank 1 scratch 0\ntb\nrrcs i0 i0 x1 from 0.0 to 2.0\nrecv o0 x1 from 0.0\n"
      "rank 2 scratch 0\ntb\nrrcs i0 o0 x1 from 1.0 to 0.0\n",
      "polyccl-plan 1\nname \"scratch\"\ncollective allreduce\nranks 2\nchunks 2\n"
      "rank 0 scratch 2\ntb\ncopy i0 s0 x2\nrrcs s0 s0 x2 from 1.0 to 1.0\ntb\ncopy s0 o0 x2 wait 0.1\n"
      "rank 1 scratch 0\ntb\nsend i0 x2 to 0.0\nrecv o0 x2 from 0.0\n",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    assert_int_equal(check_text(texts[i]), TARGETS);
  }
}

/* A chain of reductions that is longer than executors keep, and whose counts differ. */
static void chains(void **state) {
  (void)state;
  enum { RANKS = 30, OTHER_COUNT = 20 };
  pccl_text text = {0};
  pccl_text_add(&text,
                "polyccl-plan 1\nname \"chain\"\ncollective reduce\nranks %d\nchunks 2\nrank 0 scratch %d\n"
                "tb\ncopy i0 o0 x2\n",
                RANKS, 2 * RANKS);
  for (int r = 1; r < RANKS; r++) {
    for (int k = 0; k < (r == OTHER_COUNT ? 2 : 1); k++) {
      pccl_text_add(&text, "reduce s%d o%d x%d", 2 * r + k, k, r == OTHER_COUNT ? 1 : 2);
      for (int other = 1; other < RANKS && r == 1; other++) {
        pccl_text_add(&text, "%s %d.0", other == 1 ? " wait" : "", other);
      }
      pccl_text_add(&text, "\n");
    }
  }
  for (int r = 1; r < RANKS; r++) {
    pccl_text_add(&text, "tb\nrecv s%d x2 from %d.0\n", 2 * r, r);
  }
  for (int r = 1; r < RANKS; r++) {
    pccl_text_add(&text, "rank %d scratch 0\ntb\nsend i0 x2 to 0.0\n", r);
  }
  assert_int_equal(check_text(text.data), TARGETS);
  pccl_text_free(&text);
  /* The last adds what the chain has made to itself. */
  assert_int_equal(check_text("polyccl-plan 1\nname \"twice\"\ncollective custom\nranks 1\nchunks 2\n"
                              "post 0 0 = 0.0 0.1 0.0 0.1\nrank 0 scratch 0\ntb\ncopy i0 o0 x2\nreduce o1 o0 x1\n"
                              "reduce o0 o0 x1\n"),
                   1);
}

static void take_caveats(void *context, const char *text) { pccl_text_add(context, "%s\n", text); }

/* Both ranks send four chunks before they receive any: safe while these go in one message, and written for such sizes.
 * That the executors would hang beyond them, the interpreter shows. */
static void large_messages(void **state) {
  (void)state;
  static const char body[] =
      "polyccl-plan 1\nname \"exchange\"\ncollective allgather\nranks 2\nchunks 4\n%s"
      "rank 0 scratch 0\ntb\nsend i0 x4 to 1.0\nrecv o4 x4 from 1.0\ntb\ncopy i0 o0 x4\n"
      "rank 1 scratch 0\ntb\nsend i0 x4 to 0.0\nrecv o0 x4 from 0.0\ntb\ncopy i0 o4 x4\n";
  static const struct {
    const char *head, *written, *refused;
    bool hangs; /* with messages of one chunk */
  } all[] = {
      {"", "maxBytes=\"8388608\"", NULL, true}, /* 1 MiB a chunk: two go in one message, two messages in the slots */
      {"bytes 0 4096\n", "maxBytes=\"4096\"", NULL, true},
      {"bytes 16777216 0\n", NULL, "above 8388608 bytes", false},
      {"protocol LL\n", "maxBytes=\"9223372036854775807\"", NULL, false},
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    char text[1024], why[256], *xml;
    snprintf(text, sizeof text, body, all[i].head);
    polyccl_plan *plan = plan_of(text), *loaded;
    polyccl_result result = write_xml(plan, POLYCCL_FORMAT_XML, &xml);
    if (all[i].refused != NULL) {
      assert_int_equal(result, POLYCCL_ERROR_LIMIT);
      assert_non_null(strstr(polyccl_last_error(), all[i].refused));
    } else {
      pccl_text said = {0};
      polyccl_plan_caveats(plan, POLYCCL_FORMAT_XML, take_caveats, &said);
      assert_int_equal(said.data != NULL && strstr(said.data, "maxBytes is 8388608") != NULL, i == 0);
      pccl_text_free(&said);
      assert_int_equal(result, POLYCCL_SUCCESS);
      assert_non_null(strstr(xml, all[i].written));
      assert_true(runs_right(&msccl_microsoft, xml, plan, why, sizeof why));
      assert_true(msccl_load(&msccl_microsoft, xml, plan, true, &loaded, why, sizeof why));
      interpreter_options options = {.micro_batches = 1, .depth = loaded->fifo_depth, .seed = 1};
      assert_int_equal(interpret(loaded, &options, why, sizeof why),
                       all[i].hangs ? INTERPRETER_DEADLOCK : INTERPRETER_RIGHT);
      polyccl_plan_destroy(loaded);
    }
    free(xml);
    polyccl_plan_destroy(plan);
  }
}

/* What is said of plans that executors would use where they are not right. */
static void caveats(void **state) {
  (void)state;
  static const struct {
    const char *text;
    polyccl_format format;
    const char *said[2]; /* in this order; NULL: no more */
  } all[] = {
      {"collective reduce\nranks 2\nchunks 1\nroot 1\nrank 0 scratch 0\ntb\nsend i0 x1 to 1.0\n"
       "rank 1 scratch 0\ntb\nrrc i0 o0 x1 from 0.0\n",
       POLYCCL_FORMAT_XML_RCCL,
       {"RCCL uses a plan for calls with any root, and this one is right for root 1 alone"}},
      {"collective reduce\nranks 2\nchunks 1\nrank 0 scratch 0\ntb\nrrc i0 o0 x1 from 1.0\n"
       "rank 1 scratch 0\ntb\ncopy i0 o0 x1\nsend o0 x1 to 0.0\n",
       POLYCCL_FORMAT_XML,
       {"right for root 0 alone", "rank 1 uses its output buffer, which callers of a reduce may leave out"}},
      {"collective broadcast\nranks 2\nchunks 1\ninplace yes\nrank 0 scratch 0\ntb\nsend i0 x1 to 1.0\n"
       "rank 1 scratch 0\ntb\nrecv o0 x1 from 0.0\n",
       POLYCCL_FORMAT_XML_AZURE,
       {"right for root 0 alone", "pass the buffers of a broadcast in place on every rank"}},
      {"collective allreduce\nranks 1\nchunks 1\ninplace yes\nrank 0 scratch 0\n",
       POLYCCL_FORMAT_XML,
       {"the plan has 1 rank: in microsoft/msccl each call of it launches a kernel that does nothing"}},
      {"collective allreduce\nranks 1\nchunks 1\nrank 0 scratch 0\ntb\ncopy i0 o0 x1\n",
       POLYCCL_FORMAT_XML,
       {"launches a kernel that only copies"}},
      {"collective allreduce\nranks 1\nchunks 1\nrank 0 scratch 0\ntb\ncopy i0 o0 x1\n", POLYCCL_FORMAT_PLAN, {0}},
      {"collective alltoall\nranks 2\nchunks 1\ninplace yes\n"
       "rank 0 scratch 1\ntb\nsend i1 x1 to 1.0\nrecv i1 x1 from 1.0\n"
       "rank 1 scratch 1\ntb\nsend i0 x1 to 0.0\nrecv i0 x1 from 0.0\n",
       POLYCCL_FORMAT_XML,
       {"microsoft/msccl refuses an alltoall in place"}},
      {"collective allgather\nranks 2\nchunks 1\ninplace yes\nrank 0 scratch 0\ntb\nsend i0 x1 to 1.0\n"
       "recv o1 x1 from 1.0\nrank 1 scratch 0\ntb\nsend i0 x1 to 0.0\nrecv o0 x1 from 0.0\n",
       POLYCCL_FORMAT_XML_RCCL,
       {0}},
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    char text[1024];
    pccl_text said = {0};
    snprintf(text, sizeof text, "polyccl-plan 1\nname \"c\"\n%s", all[i].text);
    polyccl_plan *plan = plan_of(text);
    polyccl_plan_caveats(plan, all[i].format, take_caveats, &said);
    const char *at = said.data != NULL ? said.data : "";
    for (int k = 0; k < 2 && all[i].said[k] != NULL; k++) {
      const char *found = strstr(at, all[i].said[k]);
      if (found == NULL || strchr(at, '\n') < found) {
        fail_msg("case %zu: \"%s\" is not said: %s", i, all[i].said[k], at);
      }
      at = strchr(found, '\n') + 1;
    }
    assert_string_equal(at, "");
    pccl_text_free(&said);
    polyccl_plan_destroy(plan);
  }
}

/* A rank that has nothing to do is a launch of one idle thread block, not of none. */
static void idle_ranks(void **state) {
  (void)state;
  assert_int_equal(check_text("polyccl-plan 1\nname \"one\"\ncollective allreduce\nranks 1\nchunks 1\ninplace yes\n"
                              "rank 0 scratch 0\n"),
                   TARGETS);
  assert_int_equal(check_text("polyccl-plan 1\nname \"idle\"\ncollective custom\nranks 3\nchunks 1\npost 1 0 = 0.0\n"
                              "rank 0 scratch 0\ntb\nsend i0 x1 to 1.0\nrank 1 scratch 0\ntb\nrecv o0 x1 from 0.0\n"
                              "rank 2 scratch 0\n"),
                   1);
}

/* As many elements as a rank reads, in as few thread blocks as they fit; one more is refused (plan_xml.c), and would
 * be. */
static void largest_file(void **state) {
  (void)state;
  pccl_text text = {0};
  pccl_text_add(&text,
                "polyccl-plan 1\nname \"large\"\ncollective allreduce\nranks 1\nchunks 1\ninplace yes\n"
                "rank 0 scratch 63\n");
  for (int i = 2, tb = -1; i < 4095; i++) {
    tb += (i - 2) % 65 == 0;
    if ((i - 2) % 65 == 0) {
      pccl_text_add(&text, "tb\n");
    } else {
      pccl_text_add(&text, "copy i0 s%d x1\n", tb);
    }
  }
  polyccl_plan *plan = plan_of(text.data), *loaded;
  char *xml, why[256];
  assert_int_equal(check_plan("large", plan), TARGETS);
  assert_int_equal(write_xml(plan, POLYCCL_FORMAT_XML, &xml), POLYCCL_SUCCESS);
  char *one_more = malloc(strlen(xml) + 256), *end = strstr(xml, "    </tb>\n  </gpu>");
  assert_true(one_more != NULL && end != NULL);
  sprintf(one_more,
          "%.*s<step s=\"63\" type=\"nop\" srcbuf=\"i\" srcoff=\"-1\" dstbuf=\"o\" dstoff=\"-1\" cnt=\"0\" "
          "depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>%s",
          (int)(end - xml), xml, end);
  assert_false(msccl_load(&msccl_microsoft, one_more, plan, false, &loaded, why, sizeof why));
  assert_non_null(strstr(why, "more nodes of XML than it stores"));
  free(one_more);
  free(xml);
  polyccl_plan_destroy(plan);
  pccl_text_free(&text);
}

static void right_plans(void **state) {
  (void)state;
  struct dirent **entry;
  int count = scandir(POLYCCL_SOURCE_DIR "/tests/plans/right", &entry, NULL, alphasort), written = 0;
  assert_true(count >= 0);
  for (int i = 0; i < count; i++) {
    char path[1024];
    polyccl_plan *plan;
    snprintf(path, sizeof path, POLYCCL_SOURCE_DIR "/tests/plans/right/%s", entry[i]->d_name);
    if (strstr(path, ".plan") != NULL) {
      assert_int_equal(polyccl_plan_read(path, &plan), POLYCCL_SUCCESS);
      written += check_plan(path, plan);
      polyccl_plan_destroy(plan);
    }
    free(entry[i]);
  }
  free(entry);
  assert_true(written > 10);
}

/* What the model holds against files that were written without care. */
static void model(void **state) {
  (void)state;
  static const struct {
    const char *steps, *message;
  } all[] = {
      {"<step s=\"0\" type=\"cpy\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" depid=\"-1\" "
       "deps=\"-1\" "
       "hasdep=\"0\"/>\n",
       NULL},
      {"<step s=\"0\" type=\"nop\" srcbuf=\"i\" srcoff=\"-1\" dstbuf=\"o\" dstoff=\"-1\" cnt=\"0\" depid=\"0\" "
       "deps=\"0\" "
       "hasdep=\"0\"/>\n<step s=\"1\" type=\"cpy\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" "
       "depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n",
       "waits of nops before a step that has none"},
      {"<step s=\"0\" type=\"cpy\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" depid=\"0\" "
       "deps=\"1\" "
       "hasdep=\"0\"/>\n",
       "hangs: nothing announces step 1 of thread block 0"},
      {"<step s=\"0\" type=\"cpy\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"1\" cnt=\"1\" depid=\"-1\" "
       "deps=\"-1\" "
       "hasdep=\"0\"/>\n",
       "chunk 1 of a buffer of 1"},
      {"<step s=\"0\" type=\"cpy\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" depid=\"-1\" deps=\"-1\" "
       "hasdep=\"0\"/>\n",
       "<step> has no cnt"},
  };
  polyccl_plan *meant, *loaded;
  assert_int_equal(polyccl_plan_create(1, &meant), POLYCCL_SUCCESS);
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    char text[2048], why[256];
    snprintf(text, sizeof text,
             "<algo name=\"x\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"1\" ngpus=\"1\" coll=\"allreduce\" "
             "inplace=\"0\">\n<gpu id=\"0\" i_chunks=\"1\" o_chunks=\"1\" s_chunks=\"0\">\n<tb id=\"0\" send=\"-1\" "
             "recv=\"-1\" chan=\"0\">\n%s</tb>\n</gpu>\n</algo>\n",
             all[i].steps);
    bool taken = msccl_load(&msccl_microsoft, text, meant, false, &loaded, why, sizeof why);
    if (taken != (all[i].message == NULL) || (!taken && strstr(why, all[i].message) == NULL)) {
      fail_msg("case %zu: %s", i, why);
    }
    polyccl_plan_destroy(loaded);
  }
  polyccl_plan_destroy(meant);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(model),       cmocka_unit_test(algorithms),     cmocka_unit_test(nops),
      cmocka_unit_test(fused_steps), cmocka_unit_test(chains),         cmocka_unit_test(idle_ranks),
      cmocka_unit_test(right_plans), cmocka_unit_test(large_messages), cmocka_unit_test(largest_file),
      cmocka_unit_test(caveats),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
