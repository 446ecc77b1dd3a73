/* The verifier on files: tests/plans/bad/ *.plan begin with "# expect error: MESSAGE" and must be refused so;
 * tests/plans/right/ *.plan begin with "# expect: depth D uneven yes|no identical yes|no" and must be proved so. What
 * the text format cannot say (broken indices) is made here. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <polyccl/compile.h>
#include <polyccl/language.h>
#include <polyccl/plan.h>

#include "base/file.h"

static polyccl_plan *read_plan(const char *path) {
  polyccl_plan *plan = NULL;
  if (polyccl_plan_read(path, &plan) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  return plan;
}

/* The rest of the file's first line after `mark`. */
static void first_line(const char *path, const char *mark, char *line, size_t size) {
  char *text;
  size_t length;
  assert_int_equal(pccl_read_file(path, 1 << 24, &text, &length), POLYCCL_SUCCESS);
  if (strncmp(text, mark, strlen(mark)) != 0) {
    fail_msg("%s does not begin with \"%s\"", path, mark);
  }
  snprintf(line, size, "%.*s", (int)strcspn(text + strlen(mark), "\n"), text + strlen(mark));
  free(text);
}

static int walk(const char *folder, const char *ending, void (*check)(const char *path)) {
  struct dirent **entry;
  int count = scandir(folder, &entry, NULL, alphasort), found = 0;
  for (int i = 0; i < count; i++) {
    char path[1024];
    size_t length = strlen(entry[i]->d_name);
    if (length > strlen(ending) && strcmp(entry[i]->d_name + length - strlen(ending), ending) == 0) {
      snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
      check(path);
      found++;
    }
    free(entry[i]);
  }
  if (count >= 0) {
    free(entry);
  }
  return found;
}

static void check_bad(const char *path) {
  char expected[1024];
  first_line(path, "# expect error: ", expected, sizeof expected);
  polyccl_plan *plan = read_plan(path);
  polyccl_verify_report report = {.fifo_depth = -7};
  polyccl_result result = polyccl_plan_verify(plan, &report);
  if (result != POLYCCL_ERROR_INVALID || strcmp(polyccl_last_error(), expected) != 0) {
    fail_msg("%s: %s, expected\n%s, found\n%s", path, polyccl_result_name(result), expected, polyccl_last_error());
  }
  assert_int_equal(report.fifo_depth, -7);
  polyccl_plan_destroy(plan);
}

static void check_right(const char *path) {
  char expected[1024], found[1024];
  first_line(path, "# expect: ", expected, sizeof expected);
  polyccl_plan *plan = read_plan(path);
  polyccl_verify_report report;
  if (polyccl_plan_verify(plan, &report) != POLYCCL_SUCCESS) {
    fail_msg("%s: %s", path, polyccl_last_error());
  }
  snprintf(found, sizeof found, "depth %d uneven %s identical %s", report.fifo_depth, report.uneven ? "yes" : "no",
           report.identical ? "yes" : "no");
  assert_string_equal(found, expected);
  polyccl_plan_destroy(plan);
}

static void bad_plans_are_refused(void **state) {
  (void)state;
  assert_true(walk(POLYCCL_SOURCE_DIR "/tests/plans/bad", ".plan", check_bad) > 30);
}

static void right_plans_are_proved(void **state) {
  (void)state;
  assert_true(walk(POLYCCL_SOURCE_DIR "/tests/plans/right", ".plan", check_right) > 5);
}

/* ---- plans made by public tools, where they lie beside the repository or its worktrees ---- */

/* The wrong ones; their own texts say "right", or stand in a folder that says "wrong". */
static const struct {
  const char *file, *fault[2];
} wrong_plans[] = {
    {"allgather_recdoubling_4r_2inst_racy.xml",
     {"rank 0 tb 3 step 0 (send) reads output[2] and rank 0 tb 0 step 1 (recv, ", ") writes output[2]"}},
    {"alltonext_forward_3node_1inst.xml", /* one chunk of scratch with two uses at once; half of all runs are wrong */
     {"rank 9 tb 4 step 0 (rcs) writes scratch[0] and rank 9 tb 0 step 0 (recv, ", ") writes scratch[0]"}},
};

static void check_public(const char *path) {
  polyccl_plan *plan = read_plan(path);
  polyccl_result result = polyccl_plan_verify(plan, NULL);
  bool wrong = false;
  for (size_t i = 0; i < sizeof wrong_plans / sizeof wrong_plans[0]; i++) {
    if (strstr(path, wrong_plans[i].file) != NULL) {
      wrong = true;
      assert_int_equal(result, POLYCCL_ERROR_INVALID);
      for (int k = 0; k < 2; k++) {
        if (strstr(polyccl_last_error(), wrong_plans[i].fault[k]) == NULL) {
          fail_msg("%s", polyccl_last_error());
        }
      }
      assert_non_null(strstr(polyccl_last_error(), "a race"));
    }
  }
  if (!wrong && result != POLYCCL_SUCCESS) {
    fail_msg("%s: %s", path, polyccl_last_error());
  }
  polyccl_plan_destroy(plan);
}

static void plans_of_public_tools(void **state) {
  (void)state;
  static const char *const folders[] = {POLYCCL_SOURCE_DIR "/../shared/corpus/msccl-xml",
                                        POLYCCL_SOURCE_DIR "/../../shared/corpus/msccl-xml"};
  int found = 0;
  for (size_t i = 0; i < 2; i++) {
    char wrong[512];
    snprintf(wrong, sizeof wrong, "%s/wrong", folders[i]);
    found += walk(folders[i], ".xml", check_public) + walk(wrong, ".xml", check_public);
  }
  if (found == 0) {
    skip();
  }
}

/* ---- what the text format cannot say ---- */

static const char two_ranks[] =
    "polyccl-plan 1\nname \"x\"\ncollective allreduce\nranks 2\nchunks 1\n"
    "rank 0 scratch 1\n tb\n  send i0 x1 to 1.0\n  rrc i0 o0 x1 from 1.0\n tb\n  copy i0 s0 x1 wait 0.0\n"
    "rank 1 scratch 1\n tb\n  send i0 x1 to 0.0\n  rrc i0 o0 x1 from 0.0\n tb\n  copy i0 s0 x1 wait 0.1\n";

static polyccl_plan *two_rank_plan(void) {
  polyccl_plan *plan = NULL;
  assert_int_equal(polyccl_plan_parse("two", two_ranks, strlen(two_ranks), &plan), POLYCCL_SUCCESS);
  return plan;
}

typedef struct breakage {
  size_t offset; /* of an int32_t in the plan's struct or, with `array`, in its first entry */
  enum { HEAD, RANK, TB, STEP, WAIT, CONNECTION } array;
  size_t entry;
  int32_t value;
  const char *message;
} breakage;

static char *place_of(polyccl_plan *plan, const breakage *b) {
  switch (b->array) {
    case RANK: return (char *)&plan->rank[b->entry] + b->offset;
    case TB: return (char *)&plan->tb[b->entry] + b->offset;
    case STEP: return (char *)&plan->step[b->entry] + b->offset;
    case WAIT: return (char *)&plan->wait[b->entry] + b->offset;
    case CONNECTION: return (char *)&plan->connection[b->entry] + b->offset;
    default: return (char *)plan + b->offset;
  }
}

#define FIELD(type, name) offsetof(type, name)

static const breakage breakages[] = {
    {FIELD(polyccl_plan, chunks), HEAD, 0, 0, "chunks = 0 is out of range"},
    {FIELD(polyccl_plan, chunks), HEAD, 0, 2,
     "rank 0 has 1 input and 1 output chunks, but allreduce on 2 ranks gives 2"},
    {FIELD(polyccl_plan, ranks), HEAD, 0, -1, "ranks = -1 is out of range"},
    {FIELD(polyccl_plan, collective), HEAD, 0, 99, "unknown collective number 99"},
    {FIELD(polyccl_plan, protocol), HEAD, 0, -1, "unknown protocol number -1"},
    {FIELD(polyccl_plan, order), HEAD, 0, 2, "unknown loop order number 2"},
    {FIELD(polyccl_plan, fifo_depth), HEAD, 0, -1, "FIFO depth -1 is negative"},
    {FIELD(polyccl_plan, redops), HEAD, 0, 1 << 30, "unknown reductions in the set 0x40000000"},
    {FIELD(polyccl_plan_rank, input), RANK, 1, 2, "rank 1 has 2 input and 1 output chunks"},
    {FIELD(polyccl_plan_rank, scratch), RANK, 1, -1, "rank 1 has -1 scratch chunks"},
    {FIELD(polyccl_plan_rank, scratch), RANK, 1, INT32_MAX, "rank 1 has 2147483647 scratch chunks"},
    {FIELD(polyccl_plan_rank, tb), RANK, 1, INT32_MAX, "rank 1: its 2 thread blocks from 2147483647 on"},
    {FIELD(polyccl_plan_rank, tb), RANK, 1, -1, "rank 1: its 2 thread blocks from -1 on"},
    {FIELD(polyccl_plan_rank, tb), RANK, 1, 1, "rank 1 tb 0 says that it belongs to rank 0"},
    {FIELD(polyccl_plan_rank, tbs), RANK, 1, 1, "the plan has 4 thread blocks, but its ranks own 3"},
    {FIELD(polyccl_plan_rank, tbs), RANK, 1, INT32_MAX, "rank 1: its 2147483647 thread blocks"},
    {FIELD(polyccl_thread_block, rank), TB, 0, 7, "rank 0 tb 0 says that it belongs to rank 7"},
    {FIELD(polyccl_thread_block, step), TB, 1, -5, "rank 0 tb 1: its steps are not among the plan's 6"},
    {FIELD(polyccl_thread_block, steps), TB, 1, INT32_MAX, "rank 0 tb 1: its steps are not among the plan's 6"},
    {FIELD(polyccl_thread_block, step), TB, 1, 1, "rank 0 tb 1: its step 0 belongs to another thread block too"},
    {FIELD(polyccl_thread_block, steps), TB, 1, 0, "the plan has 6 steps, but its thread blocks own 5"},
    {FIELD(polyccl_connection, src), CONNECTION, 0, 9, "connection 0 (rank 9 to rank 1, channel 0) is out of range"},
    {FIELD(polyccl_connection, dst), CONNECTION, 0, -1, "connection 0 (rank 0 to rank -1, channel 0) is out of range"},
    {FIELD(polyccl_connection, channel), CONNECTION, 0, -1, "connection 0 (rank 0 to rank 1, channel -1) is out"},
    {FIELD(polyccl_step, recv), STEP, 0, 1, "rank 0 tb 0 step 0 (send) has a receive connection, which"},
    {FIELD(polyccl_step, send), STEP, 0, -1, "rank 0 tb 0 step 0 (send) has no send connection (index -1)"},
    {FIELD(polyccl_step, send), STEP, 0, 99, "rank 0 tb 0 step 0 (send) has no send connection (index 99)"},
    {FIELD(polyccl_step, send), STEP, 0, 1,
     "rank 0 tb 0 step 0 (send) uses the connection from rank 1 to rank 0 to send"},
    {FIELD(polyccl_step, recv), STEP, 1, 0,
     "rank 0 tb 0 step 1 (rrc) uses the connection from rank 0 to rank 1 to receive"},
    {FIELD(polyccl_step, count), STEP, 0, 0, "rank 0 tb 0 step 0 (send) has a count of 0 chunks"},
    {FIELD(polyccl_step, count), STEP, 0, INT32_MAX, "rank 0 tb 0 step 0 (send) reads input[0..2147483646]"},
    {FIELD(polyccl_step, src), STEP, 0, -1, "rank 0 tb 0 step 0 (send) reads input[-1..-1]"},
    {FIELD(polyccl_step, dst), STEP, 1, INT32_MAX, "rank 0 tb 0 step 1 (rrc) writes output[2147483647..2147483647]"},
    {FIELD(polyccl_step, waits), STEP, 2, INT32_MAX, "rank 0 tb 1 step 0 (copy) shares its waits with other steps"},
    {FIELD(polyccl_step, waits), STEP, 2, -1, "rank 0 tb 1 step 0 (copy) has waits that are not among the plan's 2"},
    {FIELD(polyccl_step, wait), STEP, 2, 2, "rank 0 tb 1 step 0 (copy) has waits that are not among the plan's 2"},
    {FIELD(polyccl_wait, tb), WAIT, 0, -1, "rank 0 tb 1 step 0 (copy) waits for tb -1, but the rank has 2"},
    {FIELD(polyccl_wait, step), WAIT, 1, 2,
     "rank 1 tb 1 step 0 (copy) waits for tb 0 step 2, but that thread block has 2"},
};

static void broken_indices_are_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof breakages / sizeof breakages[0]; i++) {
    polyccl_plan *plan = two_rank_plan();
    assert_int_equal(polyccl_plan_verify(plan, NULL), POLYCCL_SUCCESS);
    char *place = place_of(plan, &breakages[i]);
    int32_t old;
    memcpy(&old, place, sizeof old);
    memcpy(place, &breakages[i].value, sizeof old);
    polyccl_result result = polyccl_plan_verify(plan, NULL);
    if (result != POLYCCL_ERROR_INVALID ||
        strncmp(polyccl_last_error(), breakages[i].message, strlen(breakages[i].message)) != 0) {
      fail_msg("%s, expected\n%s, found\n%s", polyccl_result_name(result), breakages[i].message, polyccl_last_error());
    }
    memcpy(place, &old, sizeof old);
    polyccl_plan_destroy(plan);
  }
}

static void unknown_ops_and_buffers_are_refused(void **state) {
  (void)state;
  polyccl_plan *plan = two_rank_plan();
  plan->step[0].op = 200;
  assert_int_equal(polyccl_plan_verify(plan, NULL), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "rank 0 tb 0 step 0 (?) has the unknown op number 200");
  plan->step[0].op = POLYCCL_STEP_SEND;
  plan->step[0].src_buf = 3;
  assert_int_equal(polyccl_plan_verify(plan, NULL), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "rank 0 tb 0 step 0 (send) reads buffer number 3, which does not exist");
  plan->step[0].src_buf = 0;
  plan->step[0].flags = 64;
  assert_int_equal(polyccl_plan_verify(plan, NULL), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "rank 0 tb 0 step 0 (send) has unknown flags 0x40");
  assert_int_equal(polyccl_plan_verify(NULL, NULL), POLYCCL_ERROR_INVALID);
  polyccl_plan_destroy(plan);
}

static void a_plan_without_steps_is_right_where_nothing_is_to_do(void **state) {
  (void)state;
  polyccl_plan *plan;
  polyccl_verify_report report;
  assert_int_equal(polyccl_plan_create(1, &plan), POLYCCL_SUCCESS);
  plan->collective = POLYCCL_ALLREDUCE;
  plan->chunks = plan->chunks_out = plan->rank[0].input = plan->rank[0].output = 1;
  assert_int_equal(polyccl_plan_verify(plan, &report), POLYCCL_ERROR_INVALID);
  plan->inplace = true;
  assert_int_equal(polyccl_plan_verify(plan, &report), POLYCCL_SUCCESS);
  assert_int_equal(report.fifo_depth, 1);
  assert_int_equal(report.longest, 0);
  polyccl_plan_destroy(plan);
}

/* Rank 0 sends its chunk round a ring and receives into the same memory from another thread block; only the way round
 * orders the two. Or, `broken`, what comes back was rank 1's own. */
static polyccl_result verify_ring(int ranks, bool broken) {
  char *text = NULL;
  size_t length;
  FILE *to = open_memstream(&text, &length);
  assert_non_null(to);
  fprintf(to, "polyccl-plan 1\nname \"ring\"\ncollective custom\nranks %d\nchunks 1\ninplace yes\n", ranks);
  fprintf(to, "rank 0 scratch 0\n tb\n  send i0 x1 to 1.0\n tb\n  recv o0 x1 from %d.0\n", ranks - 1);
  for (int r = 1; r < ranks; r++) {
    fprintf(to, "rank %d scratch 1\n tb\n", r);
    if (r == 1 && broken) {
      fprintf(to, "  send i0 x1 to 2.0\n  recv s0 x1 from 0.0\n");
    } else {
      fprintf(to, "  rcs s0 x1 from %d.0 to %d.0\n", r - 1, (r + 1) % ranks);
    }
  }
  fclose(to);
  polyccl_plan *plan = NULL;
  assert_int_equal(polyccl_plan_parse("ring", text, length, &plan), POLYCCL_SUCCESS);
  polyccl_result result = polyccl_plan_verify(plan, NULL);
  polyccl_plan_destroy(plan);
  free(text);
  return result;
}

/* Short ways are found by the search of verify_reach.c, long ones by its sweep. */
static void order_through_other_ranks_is_found_however_long(void **state) {
  (void)state;
  for (int ranks = 3; ranks < 10000; ranks = ranks * 4 + 1) {
    if (verify_ring(ranks, false) != POLYCCL_SUCCESS) {
      fail_msg("%d ranks: %s", ranks, polyccl_last_error());
    }
    assert_int_equal(verify_ring(ranks, true), POLYCCL_ERROR_INVALID);
    assert_non_null(strstr(polyccl_last_error(), "rank 0 tb 1 step 0 (recv) writes output[0] and"));
    assert_non_null(strstr(polyccl_last_error(), "a race"));
  }
}

/* In a ring every send is by reference, and every message that is only stored; that a place is free is known from what
 * has gone round the whole ring, however long it is. */
static void marks_of_a_ring_do_not_depend_on_its_length(void **state) {
  (void)state;
  for (int n = 4; n <= 100; n *= 5) {
    char ranks[16];
    snprintf(ranks, sizeof ranks, "%d", n);
    polyccl_param param = {"ranks", ranks};
    polyccl_program *program = NULL;
    polyccl_plan *plan = NULL;
    const char *path = POLYCCL_SOURCE_DIR "/algorithms/allreduce_ring.lua";
    assert_int_equal(polyccl_program_load(path, &param, 1, &program), POLYCCL_SUCCESS);
    assert_int_equal(polyccl_compile(program, NULL, &plan), POLYCCL_SUCCESS);
    int gets = 0, puts = 0;
    for (size_t s = 0; s < plan->steps; s++) {
      gets += (plan->step[s].flags & POLYCCL_FLAG_GET) != 0;
      puts += (plan->step[s].flags & POLYCCL_FLAG_PUT) != 0;
    }
    assert_int_equal(gets, n * n);
    assert_int_equal(puts, n * (n - 1));
    assert_int_equal(polyccl_plan_verify(plan, NULL), POLYCCL_SUCCESS);
    polyccl_plan_destroy(plan);
    polyccl_program_destroy(program);
  }
}

/* Scratch that is declared and not touched has no cells; what is touched is told apart, wherever it lies. */
static void scratch_far_apart_is_told_apart(void **state) {
  (void)state;
  for (int wrong = 0; wrong < 2; wrong++) {
    pccl_text text = {0};
    pccl_text_add(&text, "polyccl-plan 1\nname \"far\"\ncollective broadcast\nranks 2\nchunks 3\ninplace yes\n");
    pccl_text_add(&text, "rank 0 scratch 0\ntb\nsend i0 x3 to 1.0\nrank 1 scratch 1000000\ntb\n");
    pccl_text_add(&text, "recv s999000 x3 from 0.0\ncopy s999001 s7 x2\ncopy s999000 s500000 x1\n");
    pccl_text_add(&text, "copy s7 s999002 x2\ncopy s%d i0 x1\ncopy s999002 i1 x2\n", wrong ? 499999 : 500000);
    polyccl_plan *plan = NULL;
    assert_int_equal(polyccl_plan_parse("far", text.data, text.len, &plan), POLYCCL_SUCCESS);
    polyccl_result result = polyccl_plan_verify(plan, NULL);
    if (wrong) {
      assert_int_equal(result, POLYCCL_ERROR_INVALID);
      assert_string_equal(polyccl_last_error(), "rank 1 tb 0 step 4 (copy) reads scratch[499999], which holds nothing");
    } else if (result != POLYCCL_SUCCESS) {
      fail_msg("%s", polyccl_last_error());
    }
    polyccl_plan_destroy(plan);
    pccl_text_free(&text);
  }
}

static void too_much_work_is_refused(void **state) {
  (void)state;
  polyccl_plan *plan = two_rank_plan();
  plan->collective = POLYCCL_CUSTOM;
  plan->chunks = plan->chunks_out = 1 << 20;
  for (int r = 0; r < 2; r++) {
    plan->rank[r].input = plan->rank[r].output = plan->rank[r].scratch = 1 << 20;
  }
  polyccl_step *more = realloc(plan->step, 300 * sizeof *more);
  assert_non_null(more);
  plan->step = more;
  for (size_t s = plan->steps; s < 300; s++) { /* more steps for the last thread block */
    plan->step[s] = (polyccl_step){.op = POLYCCL_STEP_COPY, .dst_buf = 2, .count = 1 << 20, .recv = -1, .send = -1};
  }
  plan->tb[3].steps += 300 - (int32_t)plan->steps;
  plan->steps = 300;
  assert_int_equal(polyccl_plan_verify(plan, NULL), POLYCCL_ERROR_LIMIT);
  assert_string_equal(polyccl_last_error(), "the steps touch more than 134217728 chunks in all, the verifier's limit");
  polyccl_plan_destroy(plan);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bad_plans_are_refused),
      cmocka_unit_test(right_plans_are_proved),
      cmocka_unit_test(plans_of_public_tools),
      cmocka_unit_test(broken_indices_are_refused),
      cmocka_unit_test(order_through_other_ranks_is_found_however_long),
      cmocka_unit_test(marks_of_a_ring_do_not_depend_on_its_length),
      cmocka_unit_test(scratch_far_apart_is_told_apart),
      cmocka_unit_test(too_much_work_is_refused),
      cmocka_unit_test(unknown_ops_and_buffers_are_refused),
      cmocka_unit_test(a_plan_without_steps_is_right_where_nothing_is_to_do),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
