/* Programs with their expectations inside: tests/programs/NAME.lua, and the examples of docs/language.md and
 * docs/coming-from-msccl-tools.md.
 *
 *     -- param: ranks=3              a parameter
 *     -- env: POLYCCL_LUA_MEMORY=1m  an option
 *     -- expect: steps 12, hops 4    words of the summary; the program is right
 *     -- expect error: ring.lua:7: stale chunk     the message starts so (or, after "...", has this in it)
 *
 * Every right program is compiled too, and its plan verified, so errors of the compiler can be expected as well.
 * "--- case: what it shows" starts a new case in the same file; lines keep their numbers in the file. Files in folders
 * below are for require. A report of a defect becomes a test by dropping the program here. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <polyccl/compile.h>

#include "base/file.h"
#include "language/loader.h"

#define FOLDER POLYCCL_SOURCE_DIR "/tests/programs"

enum { MAX_PARAMS = 8, MAX_EXPECTS = 8, LINE_BYTES = 512 };

typedef struct test_case {
  char name[LINE_BYTES];
  char params[MAX_PARAMS][LINE_BYTES], env[MAX_PARAMS][LINE_BYTES];
  char expects[MAX_EXPECTS][LINE_BYTES], error[LINE_BYTES];
  int param_count, env_count, expect_count;
} test_case;

static int failures;

/* Says what is wrong and goes on with the next case. */
static void report(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void report(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  failures++;
}

/* The text after `key` in a line that starts with it. */
static bool read_value(const char *line, size_t length, const char *key, char *out) {
  size_t skip = strlen(key);
  if (length < skip || strncmp(line, key, skip) != 0) {
    return false;
  }
  while (skip < length && line[skip] == ' ') {
    skip++;
  }
  snprintf(out, LINE_BYTES, "%.*s", (int)(length - skip), line + skip);
  return true;
}

static void read_line(test_case *test, const char *line, size_t length) {
  char text[LINE_BYTES];
  if (read_value(line, length, "-- param:", text)) {
    assert_true(test->param_count < MAX_PARAMS);
    strcpy(test->params[test->param_count++], text);
  } else if (read_value(line, length, "-- env:", text)) {
    assert_true(test->env_count < MAX_PARAMS);
    strcpy(test->env[test->env_count++], text);
  } else if (read_value(line, length, "-- expect:", text)) {
    assert_true(test->expect_count < MAX_EXPECTS);
    strcpy(test->expects[test->expect_count++], text);
  } else if (read_value(line, length, "-- expect error:", text)) {
    strcpy(test->error, text);
  } else if (read_value(line, length, "--- case:", text)) {
    strcpy(test->name, text);
  } else if (length > 9 && strncmp(line, "-- expect", 9) == 0) {
    report("unknown expectation: %.*s", (int)length, line);
  }
}

static void set_env(const test_case *test, bool on) {
  for (int i = 0; i < test->env_count; i++) {
    char text[LINE_BYTES];
    strcpy(text, test->env[i]);
    char *equals = strchr(text, '=');
    assert_non_null(equals);
    *equals = '\0';
    on ? setenv(text, equals + 1, 1) : unsetenv(text);
  }
}

/* The pieces of "steps 12, hops 4" must stand in the summary. */
static void compare_summary(const char *file, const test_case *test, const polyccl_program *program,
                            const polyccl_program_summary *summary) {
  const polyccl_program_config *config = polyccl_program_get_config(program);
  char all[LINE_BYTES];
  snprintf(all, sizeof all,
           ", %s, name %s, ranks %d, chunks %d, instances %d, steps %zu, remote %zu, hops %d, identical %s, "
           "protocol %s, in place %s, root %d, bytes %zu %zu, ",
           polyccl_collective_name(config->collective), config->name, summary->ranks, summary->chunks,
           config->instances, summary->operations, summary->remote, summary->longest, summary->identical ? "yes" : "no",
           polyccl_protocol_name(config->protocol), config->inplace ? "yes" : "no", config->root, config->min_bytes,
           config->max_bytes);
  for (int i = 0; i < test->expect_count; i++) {
    char expects[LINE_BYTES], *rest = NULL;
    strcpy(expects, test->expects[i]);
    for (char *piece = strtok_r(expects, ",", &rest); piece != NULL; piece = strtok_r(NULL, ",", &rest)) {
      char wanted[LINE_BYTES + 8];
      snprintf(wanted, sizeof wanted, ", %s, ", piece + strspn(piece, " "));
      if (strcmp(wanted, ", right, ") != 0 && strstr(all, wanted) == NULL) {
        report("%s (%s): expected \"%s\" in%s", file, test->name, wanted, all);
      }
    }
  }
}

static void compare_error(const char *file, const test_case *test) {
  const char *got = polyccl_last_error();
  bool anywhere = strncmp(test->error, "...", 3) == 0;
  bool same = anywhere ? strstr(got, test->error + 3) != NULL : strncmp(got, test->error, strlen(test->error)) == 0;
  if (!same) {
    report("%s (%s):\n  expected error %s\n  got            %s", file, test->name, test->error, got);
  }
}

static void run_case(const char *file, const test_case *test, const char *text, size_t length) {
  polyccl_param params[MAX_PARAMS];
  char texts[MAX_PARAMS][LINE_BYTES];
  for (int i = 0; i < test->param_count; i++) {
    strcpy(texts[i], test->params[i]);
    char *equals = strchr(texts[i], '=');
    assert_non_null(equals);
    *equals = '\0';
    params[i] = (polyccl_param){texts[i], equals + 1};
  }
  bool expects_error = test->error[0] != '\0';
  if (!expects_error && test->expect_count == 0) {
    report("%s (%s): nothing is expected", file, test->name);
  }
  set_env(test, true);
  polyccl_program *program = NULL;
  polyccl_program_summary summary;
  polyccl_result result =
      pccl_program_load_text(file, text, length, FOLDER, params, (size_t)test->param_count, &program);
  if (result == POLYCCL_SUCCESS) {
    result = polyccl_program_check(program, &summary);
  } else {
    assert_null(program);
  }
  if (result == POLYCCL_SUCCESS) {
    polyccl_plan *plan = NULL;
    result = polyccl_compile(program, NULL, &plan);
    polyccl_plan_destroy(plan);
  }
  set_env(test, false);
  if (expects_error && result == POLYCCL_SUCCESS) {
    report("%s (%s): no error, expected %s", file, test->name, test->error);
  } else if (expects_error) {
    compare_error(file, test);
  } else if (result != POLYCCL_SUCCESS) {
    report("%s (%s): %s", file, test->name, polyccl_last_error());
  } else {
    compare_summary(file, test, program, &summary);
  }
  polyccl_program_destroy(program);
}

/* Runs text[start..end) with the lines before it empty. */
static void run_lines(const char *file, const test_case *test, const char *text, size_t start, size_t end, int line) {
  pccl_text padded = {0};
  for (int i = 1; i < line; i++) {
    pccl_text_bytes(&padded, "\n", 1);
  }
  pccl_text_bytes(&padded, text + start, end - start);
  assert_false(padded.failed);
  run_case(file, test, padded.data, padded.len);
  pccl_text_free(&padded);
}

static int run_file(const char *file) {
  char path[sizeof FOLDER + LINE_BYTES];
  snprintf(path, sizeof path, "%s/%s", FOLDER, file);
  char *text = NULL;
  size_t length = 0;
  assert_int_equal(pccl_read_file(path, 1 << 24, &text, &length), POLYCCL_SUCCESS);
  test_case test = {0};
  int line = 1, first = 1, cases = 0;
  size_t start = 0;
  for (size_t at = 0; at < length;) {
    char *newline = memchr(text + at, '\n', length - at);
    size_t end = newline != NULL ? (size_t)(newline - text) : length;
    if (strncmp(text + at, "--- case:", 9) == 0) {
      if (test.name[0] != '\0') {
        run_lines(file, &test, text, start, at, first);
        cases++;
      }
      test = (test_case){0};
      start = at;
      first = line;
    }
    read_line(&test, text + at, end - at);
    at = end + 1;
    line++;
  }
  run_lines(file, &test, text, start, length, first);
  free(text);
  return cases + 1;
}

/* Every ```lua block of a page is a program; comments before it, <!-- expect: ... -->, say what is expected. */
static void run_examples(const char *page, int min) {
  char path[sizeof POLYCCL_SOURCE_DIR + 128], *text = NULL;
  size_t length = 0, start = 0;
  snprintf(path, sizeof path, "%s/docs/%s", POLYCCL_SOURCE_DIR, page);
  assert_int_equal(pccl_read_file(path, 1 << 24, &text, &length), POLYCCL_SUCCESS);
  test_case test = {.name = "example"};
  int line = 1, first = 0, examples = 0;
  for (size_t at = 0; at < length; line++) {
    char *newline = memchr(text + at, '\n', length - at);
    size_t end = newline != NULL ? (size_t)(newline - text) : length;
    if (end - at > 8 && strncmp(text + at, "<!-- ", 5) == 0 && strncmp(text + end - 4, " -->", 4) == 0) {
      read_line(&test, text + at + 2, end - at - 2 - 4);
    } else if (strncmp(text + at, "```lua\n", 7) == 0) {
      start = end + 1;
      first = line + 1;
    } else if (first > 0 && strncmp(text + at, "```", 3) == 0) {
      snprintf(test.name, sizeof test.name, "the example at line %d", first);
      run_lines(page, &test, text, start, at, first);
      test = (test_case){.name = "example"};
      first = 0;
      examples++;
    }
    at = end + 1;
  }
  free(text);
  print_message("%d examples\n", examples);
  assert_true(examples >= min);
  assert_int_equal(failures, 0);
}

static void examples_of_the_guide_are_right(void **state) {
  (void)state;
  run_examples("language.md", 15);
}

static void examples_for_newcomers_are_right(void **state) {
  (void)state;
  run_examples("coming-from-msccl-tools.md", 2);
}

static void programs_do_as_they_say(void **state) {
  const char *only = *state;
  struct dirent **entries;
  int count = scandir(FOLDER, &entries, NULL, alphasort), cases = 0;
  assert_true(count > 0);
  for (int i = 0; i < count; i++) {
    const char *name = entries[i]->d_name;
    size_t length = strlen(name);
    if (length > 4 && strcmp(name + length - 4, ".lua") == 0 && (only == NULL || strstr(name, only) != NULL)) {
      cases += run_file(name);
    }
    free(entries[i]);
  }
  free(entries);
  print_message("%d cases\n", cases);
  assert_true(cases > 0);
  assert_int_equal(failures, 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(examples_of_the_guide_are_right),
      cmocka_unit_test(examples_for_newcomers_are_right),
      cmocka_unit_test_prestate(programs_do_as_they_say, argc > 1 ? argv[1] : NULL),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
