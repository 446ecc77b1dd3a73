/* Programs compile to the plans of tests/golden, byte by byte: a change of the compiler shows as a difference of plans.
 * Where it is meant: `POLYCCL_UPDATE_GOLDEN=1 build/release/tests/test_golden` writes them anew; look at the diff. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <polyccl/compile.h>
#include <polyccl/language.h>

#include "base/file.h"

enum { MAX_PARAMS = 8 };

/* The plan of "PROGRAM name=value ..." as text; the caller frees it. */
static char *compile_line(char *line, size_t *length) {
  polyccl_param params[MAX_PARAMS];
  size_t count = 0;
  char *rest = NULL;
  const char *path = strtok_r(line, " ", &rest);
  for (char *word = strtok_r(NULL, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
    char *equals = strchr(word, '=');
    assert_non_null(equals);
    assert_true(count < MAX_PARAMS);
    *equals = '\0';
    params[count++] = (polyccl_param){word, equals + 1};
  }
  polyccl_program *program = NULL;
  polyccl_plan *plan = NULL;
  if (polyccl_program_load(path, params, count, &program) != POLYCCL_SUCCESS ||
      polyccl_compile(program, NULL, &plan) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  char *text = NULL;
  FILE *to = open_memstream(&text, length);
  assert_non_null(to);
  assert_int_equal(polyccl_plan_write(plan, POLYCCL_FORMAT_PLAN, to), POLYCCL_SUCCESS);
  fclose(to);
  polyccl_plan_destroy(plan);
  polyccl_program_destroy(program);
  return text;
}

static void update_plan(const char *path, const char *text, size_t length) {
  FILE *to = fopen(path, "w");
  assert_non_null(to);
  assert_int_equal(fwrite(text, 1, length, to), length);
  fclose(to);
}

/* True when equal; else says which line differs first. */
static bool compare_plan(const char *path, const char *text, size_t length) {
  char *golden = NULL;
  size_t golden_length = 0;
  if (pccl_read_file(path, 1 << 24, &golden, &golden_length) != POLYCCL_SUCCESS) {
    fprintf(stderr, "%s\n", polyccl_last_error());
    return false;
  }
  size_t at = 0, line = 1, start = 0;
  while (at < length && at < golden_length && text[at] == golden[at]) {
    if (text[at++] == '\n') {
      line++;
      start = at;
    }
  }
  bool equal = at == length && at == golden_length;
  if (!equal) {
    fprintf(stderr, "%s:%zu: differs\n  golden: %.*s\n  now:    %.*s\n", path, line, (int)strcspn(golden + start, "\n"),
            golden + start, (int)strcspn(text + start, "\n"), text + start);
  }
  free(golden);
  return equal;
}

static void plans_are_as_they_were(void **state) {
  (void)state;
  char *list = NULL, *rest = NULL;
  size_t list_length = 0;
  int plans = 0, differ = 0;
  assert_int_equal(chdir(POLYCCL_SOURCE_DIR), 0);
  assert_int_equal(pccl_read_file("tests/golden/list.txt", 1 << 20, &list, &list_length), POLYCCL_SUCCESS);
  for (char *line = strtok_r(list, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
    if (line[0] == '#') {
      continue;
    }
    char path[256], *space = strchr(line, ' ');
    assert_non_null(space);
    snprintf(path, sizeof path, "tests/golden/%.*s.plan", (int)(space - line), line);
    size_t length = 0;
    char *text = compile_line(space + 1, &length);
    if (getenv("POLYCCL_UPDATE_GOLDEN") != NULL) {
      update_plan(path, text, length);
    }
    differ += !compare_plan(path, text, length);
    free(text);
    plans++;
  }
  free(list);
  assert_true(plans > 10);
  if (differ > 0) {
    fail_msg("%d plans differ; if that is meant: POLYCCL_UPDATE_GOLDEN=1 test_golden, and look at the diff", differ);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(plans_are_as_they_were)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
