/* Every file under tests/topology. NAME.txt there is what `polyccl topology` prints (NAME.svg: draws) of NAME.json or
 * NAME.xml, else of the spec in its first line; POLYCCL_WRITE_GOLDEN=1 writes them anew. Files in bad/ begin with
 * "expect: MESSAGE" and must be refused so; bad/specs holds lines "SPEC | MESSAGE". */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <polyccl/topology.h>

#include "base/file.h"

static const char folder[] = POLYCCL_SOURCE_DIR "/tests/topology";

enum { MOST = 1 << 24 };

static __attribute__((noinline)) char *read_text(const char *path, size_t *length) {
  char *text = NULL;
  if (pccl_read_file(path, MOST, &text, length) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  return text;
}

static bool ends_with(const char *text, const char *ending) {
  size_t length = strlen(text), tail = strlen(ending);
  return length > tail && strcmp(text + length - tail, ending) == 0;
}

static char *output_of(const polyccl_topology *t, bool svg) {
  char *text = NULL;
  size_t length;
  FILE *to = open_memstream(&text, &length);
  polyccl_result result = svg ? polyccl_topology_write_svg(t, to) : polyccl_topology_write_text(t, to);
  assert_int_equal(result, POLYCCL_SUCCESS);
  fclose(to);
  return text;
}

/* The input that a golden file belongs to: a file of its name, else the synthetic string that its text names. */
static void find_spec(const char *golden, const char *text, char *spec, size_t size) {
  static const char *const endings[] = {"json", "xml"};
  for (int i = 0; i < 2; i++) {
    snprintf(spec, size, "%.*s.%s", (int)(strlen(golden) - strlen(".txt")), golden, endings[i]);
    if (access(spec, R_OK) == 0) {
      return;
    }
  }
  bool svg = ends_with(golden, ".svg");
  const char *start = strstr(text, svg ? "<title>" : "topology "), *end = strstr(text, svg ? "</title>" : ": ");
  assert_true(start != NULL && end > start);
  start += strlen(svg ? "<title>" : "topology ");
  snprintf(spec, size, "%.*s", (int)(end - start), start);
}

static void check_golden(const char *path) {
  char spec[4096];
  size_t length;
  char *expected = read_text(path, &length);
  find_spec(path, expected, spec, sizeof spec);
  polyccl_topology *t = NULL;
  if (polyccl_topology_open(spec, &t) != POLYCCL_SUCCESS) {
    fail_msg("%s: %s", path, polyccl_last_error());
  }
  char *found = output_of(t, ends_with(path, ".svg"));
  if (getenv("POLYCCL_WRITE_GOLDEN") != NULL) {
    FILE *to = fopen(path, "w");
    fputs(found, to);
    fclose(to);
  } else if (strcmp(expected, found) != 0) {
    fail_msg("%s: found\n%s", path, found);
  }
  free(expected);
  free(found);
  polyccl_topology_destroy(t);
}

static void expect_failure(const char *what, polyccl_result result, polyccl_topology *t, const char *message) {
  bool refused = result == POLYCCL_ERROR_INVALID || result == POLYCCL_ERROR_LIMIT;
  if (!refused || strstr(polyccl_last_error(), message) == NULL) {
    fail_msg("%s: result %s, expected\n%s, found\n%s", what, polyccl_result_name(result), message,
             polyccl_last_error());
  }
  assert_null(t);
}

static void check_bad(const char *path) {
  static const char mark[] = "expect: ";
  size_t length;
  char *text = read_text(path, &length), *end = memchr(text, '\n', length), message[1024];
  assert_int_equal(strncmp(text, mark, strlen(mark)), 0);
  snprintf(message, sizeof message, "%.*s", (int)(end - text - (ptrdiff_t)strlen(mark)), text + strlen(mark));
  polyccl_topology *t = NULL;
  polyccl_result result = polyccl_topology_parse(path, end + 1, length - (size_t)(end + 1 - text), &t);
  assert_int_equal(strncmp(polyccl_last_error(), path, strlen(path)), 0);
  expect_failure(path, result, t, message);
  free(text);
}

static int walk(const char *where, const char *ending, void (*check)(const char *path)) {
  struct dirent **entry;
  int count = scandir(where, &entry, NULL, alphasort), checked = 0;
  assert_true(count > 0);
  for (int i = 0; i < count; i++) {
    if (ends_with(entry[i]->d_name, ending)) {
      char *path = NULL;
      assert_true(asprintf(&path, "%s/%s", where, entry[i]->d_name) > 0);
      check(path);
      free(path);
      checked++;
    }
    free(entry[i]);
  }
  free(entry);
  return checked;
}

static void golden_files(void **state) {
  (void)state;
  assert_in_range(walk(folder, ".txt", check_golden), 8, 1000);
  assert_in_range(walk(folder, ".svg", check_golden), 2, 1000);
}

static void bad_files(void **state) {
  (void)state;
  char path[8192];
  snprintf(path, sizeof path, "%s/bad", folder);
  assert_in_range(walk(path, ".txt", check_bad), 50, 1000);
}

static void bad_specs(void **state) {
  (void)state;
  char path[8192], *line, *rest;
  size_t length;
  snprintf(path, sizeof path, "%s/bad/specs", folder);
  char *text = read_text(path, &length);
  int count = 0;
  for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
    char *bar = strstr(line, " | ");
    if (line[0] == '#' || bar == NULL) {
      continue;
    }
    *bar = '\0';
    polyccl_topology *t = NULL;
    expect_failure(line, polyccl_topology_open(line, &t), t, bar + 3);
    count++;
  }
  assert_in_range(count, 30, 1000);
  free(text);
}

/* A million nodes are read, one more is not; names that repeat end in one error. */
static void big_files(void **state) {
  (void)state;
  pccl_text text = {0};
  pccl_text_add(&text, "{\"polyccl_topology\": 1, \"machines\": [\"m\"], \"nodes\": [");
  for (int i = 0; i <= POLYCCL_MAX_NODES; i++) {
    pccl_text_add(&text, "%s{\"name\": \"%d\", \"kind\": \"switch\", \"machine\": \"m\"}", i > 0 ? "," : "", i);
  }
  pccl_text_add(&text, "], \"links\": []}");
  assert_false(text.failed);
  polyccl_topology *t = NULL;
  expect_failure("big", polyccl_topology_parse("big", text.data, text.len, &t), t,
                 "big: nodes[1048576]: the topology has more than 1048576 nodes");
  pccl_text_free(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(golden_files), cmocka_unit_test(bad_files),
                                     cmocka_unit_test(bad_specs), cmocka_unit_test(big_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
