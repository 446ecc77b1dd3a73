/* The choice among the plans of a folder, by size, reduction and ranks, and the reasons that are logged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "exec_util.h"

static char folder[] = "/tmp/polyccl-choice-XXXXXX";

static void path_of(const char *name, char *path, size_t length) { snprintf(path, length, "%s/%s", folder, name); }

static void put(const char *name, polyccl_plan *plan) {
  char path[256];
  path_of(name, path, sizeof path);
  free(plan->name);
  plan->name = strdup(name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(polyccl_plan_write(plan, POLYCCL_FORMAT_PLAN, file), POLYCCL_SUCCESS);
  assert_int_equal(fclose(file), 0);
  polyccl_plan_destroy(plan);
}

static void drop(const char *name) {
  char path[256];
  path_of(name, path, sizeof path);
  unlink(path);
}

static char *log_text(const char *path) {
  static char text[20000];
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  return text;
}

static void folder_is_chosen_from(void **state) {
  (void)state;
  assert_non_null(mkdtemp(folder));
  char log[256];
  path_of("log.txt", log, sizeof log);
  setenv("POLYCCL_DEBUG", "info", 1);
  setenv("POLYCCL_DEBUG_FILE", log, 1);
  polyccl_plan *small = make_oneshot(1, 1, false, POLYCCL_LL, POLYCCL_BATCH_MAJOR);
  small->max_bytes = 64;
  polyccl_plan *large = make_oneshot(1, 2, false, POLYCCL_SIMPLE, POLYCCL_BATCH_MAJOR);
  large->min_bytes = 65;
  large->redops = 1u << POLYCCL_SUM | 1u << POLYCCL_MAX;
  put("a_small.plan", small);
  put("b_large.plan", large);
  polyccl_plan *inplace = make_ring(1, true, POLYCCL_SIMPLE);
  inplace->redops = 1u << POLYCCL_MIN;
  put("c_inplace.plan", inplace);
  put("d_two.plan", make_ring(2, false, POLYCCL_SIMPLE));
  polyccl_comm *comm;
  int added = -1;
  assert_int_equal(polyccl_comm_init_all(&comm, 1), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_comm_add_folder(comm, "/nowhere", &added), POLYCCL_ERROR_INVALID);
  assert_int_equal(added, -1);
  assert_int_equal(polyccl_comm_add_folder(comm, folder, &added), POLYCCL_SUCCESS);
  assert_int_equal(added, 3);
  float in[100], out[100] = {0};
  for (int i = 0; i < 100; i++) {
    in[i] = (float)i;
  }
  assert_int_equal(polyccl_allreduce(in, out, 16, POLYCCL_FLOAT32, POLYCCL_SUM, comm, NULL), POLYCCL_SUCCESS);
  assert_true(out[15] == 15 && out[16] == 0);
  assert_int_equal(polyccl_allreduce(in, out, 17, POLYCCL_FLOAT32, POLYCCL_SUM, comm, NULL), POLYCCL_SUCCESS);
  assert_true(out[16] == 16);
  assert_int_equal(polyccl_allreduce(in, in, 17, POLYCCL_FLOAT32, POLYCCL_MAX, comm, NULL), POLYCCL_SUCCESS);
  assert_true(in[16] == 16);
  assert_int_equal(polyccl_allreduce(in, out, 17, POLYCCL_FLOAT32, POLYCCL_PROD, comm, NULL),
                   POLYCCL_ERROR_UNSUPPORTED);
  assert_int_equal(polyccl_allreduce(in + 1, out, 17, POLYCCL_FLOAT32, POLYCCL_MIN, comm, NULL), POLYCCL_SUCCESS);
  assert_true(out[16] == 17 && in[17] == 17);
  const char *text = log_text(log);
  assert_non_null(strstr(text, "allreduce of 16 f32: plan 0 \"a_small.plan\", LL"));
  assert_non_null(strstr(text, "allreduce of 16 f32: not plan 1 \"b_large.plan\": not for this size"));
  assert_non_null(strstr(text, "allreduce of 17 f32: plan 1 \"b_large.plan\", Simple"));
  assert_non_null(strstr(text, "allreduce of 17 f32: not plan 1 \"b_large.plan\": not for this reduction"));
  assert_non_null(strstr(text, "allreduce of 17 f32: plan 2 \"c_inplace.plan\", Simple"));
  assert_non_null(strstr(text, "d_two.plan: not loaded: for 2 ranks, not 1"));
  polyccl_comm_destroy(comm);
}

static void wrong_file_is_named(void **state) {
  (void)state;
  char path[256];
  path_of("e_wrong.plan", path, sizeof path);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs("polyccl-plan 1\nnonsense\n", file);
  fclose(file);
  polyccl_comm *comm;
  assert_int_equal(polyccl_comm_init_all(&comm, 1), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_comm_add_folder(comm, folder, NULL), POLYCCL_ERROR_INVALID);
  assert_non_null(strstr(polyccl_last_error(), "e_wrong.plan:2: "));
  polyccl_comm_destroy(comm);
}

static int clean_up(void **state) {
  (void)state;
  static const char *const names[] = {"a_small.plan", "b_large.plan", "c_inplace.plan",
                                      "d_two.plan",   "e_wrong.plan", "log.txt"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    drop(names[i]);
  }
  return rmdir(folder);
}

int main(void) {
  setenv("POLYCCL_BUILTIN", "0", 1); /* what no loaded plan does is an error here */
  const struct CMUnitTest tests[] = {cmocka_unit_test(folder_is_chosen_from), cmocka_unit_test(wrong_file_is_named)};
  return cmocka_run_group_tests(tests, NULL, clean_up);
}
