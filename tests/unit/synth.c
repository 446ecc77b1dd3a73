/* Synthesisers' files in tests/synth: "expect: COLLECTIVE, N ranks, M chunks" somewhere in a file says what becomes of
 * it. The program is checked, compiled and its plan verified, forwards and backwards. Those in bad say
 * "expect: LINE: MESSAGE" (or " MESSAGE" without a line). */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <polyccl/compile.h>
#include <polyccl/language.h>

#include "base/file.h"
#include "language/text.h"

#define FOLDER POLYCCL_SOURCE_DIR "/tests/synth"

/* The text after "expect" up to the comment's or the JSON string's end. */
static void read_expectation(const char *path, char *expected, size_t size) {
  char *text;
  size_t length;
  assert_int_equal(pccl_read_file(path, 1 << 20, &text, &length), POLYCCL_SUCCESS);
  bool json = strstr(path, ".json") != NULL;
  const char *mark = json ? "\"expect\": \"" : "expect: ";
  const char *at = strstr(text, mark);
  assert_non_null(at);
  size_t n = 0;
  for (at += strlen(mark); *at != '\0' && *at != '\n' && n + 1 < size; at++) {
    if (json && *at == '"') {
      break;
    }
    if (!json && strncmp(at, " -->", 4) == 0) {
      break;
    }
    at += json && *at == '\\' ? 1 : 0;
    expected[n++] = *at;
  }
  expected[n] = '\0';
  free(text);
}

/* Compiles the file as `collective` (NULL: what it says) in and out of place where it can; the plan is right. */
static void check_program(const char *path, const char *collective, const char *instances, char *summary, size_t size) {
  polyccl_param params[2] = {{"instances", instances}, {"collective", collective}};
  polyccl_program *program;
  if (polyccl_program_load(path, params, collective != NULL ? 2 : 1, &program) != POLYCCL_SUCCESS) {
    fail_msg("%s: %s", path, polyccl_last_error());
  }
  const polyccl_program_config *config = polyccl_program_get_config(program);
  snprintf(summary, size, "%s, %d ranks, %d chunks", polyccl_collective_name(config->collective), config->ranks,
           config->chunks);
  if (polyccl_program_check(program, NULL) != POLYCCL_SUCCESS) {
    fail_msg("%s as %s: %s", path, summary, polyccl_last_error());
  }
  for (int place = 0; place < 2; place++) {
    polyccl_compile_options options = {.size = sizeof(polyccl_compile_options),
                                       .placement = place == 0 ? POLYCCL_AS_WRITTEN : POLYCCL_OUT_OF_PLACE};
    polyccl_plan *plan;
    if (polyccl_compile(program, &options, &plan) != POLYCCL_SUCCESS ||
        polyccl_plan_verify(plan, NULL) != POLYCCL_SUCCESS) {
      fail_msg("%s as %s: %s", path, summary, polyccl_last_error());
    }
    polyccl_plan_destroy(plan);
  }
  polyccl_program_destroy(program);
}

static void check_good(const char *path) {
  char expected[256], found[256];
  read_expectation(path, expected, sizeof expected);
  check_program(path, NULL, "1", found, sizeof found);
  assert_string_equal(found, expected);
  check_program(path, NULL, "3", found, sizeof found);
  static const struct {
    const char *from, *to;
  } others[] = {{"allgather", "reduce_scatter"}, {"allgather", "allreduce"}, {"broadcast", "reduce"}};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    if (strncmp(expected, others[i].from, strlen(others[i].from)) == 0) {
      check_program(path, others[i].to, "2", found, sizeof found);
      assert_int_equal(strncmp(found, others[i].to, strlen(others[i].to)), 0);
    }
  }
}

static void check_bad(const char *path) {
  char expected[512], message[1024];
  polyccl_program *program = NULL;
  read_expectation(path, expected, sizeof expected);
  snprintf(message, sizeof message, "%s:%s", path, expected);
  polyccl_result result = polyccl_program_load(path, NULL, 0, &program);
  if (result != POLYCCL_ERROR_INVALID && result != POLYCCL_ERROR_LIMIT) {
    fail_msg("%s: %s", path, polyccl_result_name(result));
  }
  if (strncmp(polyccl_last_error(), message, strlen(message)) != 0) {
    fail_msg("expected\n%s, found\n%s", message, polyccl_last_error());
  }
  assert_null(program);
}

static void check_folder(const char *folder, void (*check)(const char *path)) {
  struct dirent **entry;
  int count = scandir(folder, &entry, NULL, alphasort), seen = 0;
  assert_true(count >= 0);
  for (int i = 0; i < count; i++) {
    char path[8192];
    if (strstr(entry[i]->d_name, ".json") != NULL || strstr(entry[i]->d_name, ".xml") != NULL) {
      snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
      check(path);
      seen++;
    }
    free(entry[i]);
  }
  free(entry);
  assert_true(seen > 0);
}

static void good_files_become_programs(void **state) {
  (void)state;
  check_folder(FOLDER, check_good);
}

static void bad_files_are_refused(void **state) {
  (void)state;
  check_folder(FOLDER "/bad", check_bad);
}

static void expect_error(const char *file, const polyccl_param *params, size_t count, const char *message) {
  polyccl_program *program = NULL;
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", FOLDER, file);
  assert_int_equal(polyccl_program_load(path, params, count, &program), POLYCCL_ERROR_INVALID);
  if (strstr(polyccl_last_error(), message) == NULL) {
    fail_msg("expected %s, found %s", message, polyccl_last_error());
  }
}

static void parameters_are_checked(void **state) {
  (void)state;
  expect_error("tree_alone.xml", &(polyccl_param){"collective", "allreduce"}, 1,
               "a schedule for broadcast cannot be made into allreduce");
  expect_error("tree_alone.xml", &(polyccl_param){"collective", "all"}, 1, "unknown collective \"all\"");
  expect_error("tree_alone.xml", &(polyccl_param){"instances", "0"}, 1,
               "parameter instances must be a number from 1 to 1024, not \"0\"");
  expect_error("tree_alone.xml", &(polyccl_param){"protocol", "Fast"}, 1, "unknown protocol \"Fast\"");
  expect_error("tree_alone.xml", &(polyccl_param){"ranks", "4"}, 1,
               "no parameter \"ranks\" (known: collective, instances, protocol)");
  expect_error("flows_alltoall_parts.json", &(polyccl_param){"pieces", "x"}, 1,
               "parameter pieces must be a number from 0 to 256");
  polyccl_param_info *infos;
  size_t count;
  assert_int_equal(polyccl_program_params(FOLDER "/flows_alltoall_parts.json", NULL, 0, &infos, &count),
                   POLYCCL_SUCCESS);
  assert_int_equal(count, 4);
  assert_string_equal(infos[0].name, "pieces");
  assert_string_equal(infos[1].value, "alltoall");
  free(infos);
}

/* More pieces than needed are as right. */
static void pieces_can_be_chosen(void **state) {
  (void)state;
  polyccl_param params[] = {{"pieces", "7"}};
  polyccl_program *program;
  assert_int_equal(polyccl_program_load(FOLDER "/flows_alltoall_parts.json", params, 1, &program), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_program_get_config(program)->chunks, 7);
  assert_int_equal(polyccl_program_check(program, NULL), POLYCCL_SUCCESS);
  polyccl_program_destroy(program);
}

/* 4096 ranks with 2^20 chunks each: their product is 2^32. */
static void products_past_an_int(void **state) {
  (void)state;
  pccl_text text = {0};
  pccl_text_add(&text, "{\"7-Flows\": [\"Chunk 1048575 from 0 traveled over 0->1 in epoch 0\"");
  for (int node = 0; node < 4096; node++) {
    pccl_text_add(&text, ",\n\"Chunk 0 from %d traveled over %d->%d in epoch 0\"", node, node, (node + 1) % 4096);
  }
  pccl_text_add(&text, "]}");
  assert_false(text.failed);
  const char *const collectives[] = {"allgather", "allreduce"};
  for (int i = 0; i < 2; i++) {
    polyccl_param param = {"collective", collectives[i]};
    polyccl_program *program = NULL;
    assert_int_equal(pccl_program_load_text("wide.json", text.data, text.len, NULL, &param, 1, &program),
                     POLYCCL_ERROR_LIMIT);
    assert_null(program);
    assert_non_null(strstr(polyccl_last_error(), "1048576 chunks on each of 4096 ranks are more than 1048576 in all"));
  }
  pccl_text_free(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_files_become_programs), cmocka_unit_test(bad_files_are_refused),
      cmocka_unit_test(parameters_are_checked),     cmocka_unit_test(pieces_can_be_chosen),
      cmocka_unit_test(products_past_an_int),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
