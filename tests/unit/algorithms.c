/* Every program of algorithms/ is right for every number of ranks, with every root, and says so symbolically. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <polyccl/language.h>

#define FOLDER POLYCCL_SOURCE_DIR "/algorithms"

typedef struct question {
  char texts[5][16];
  polyccl_param params[5];
  size_t count;
} question;

static void add_param(question *q, const char *name, int value) {
  snprintf(q->texts[q->count], sizeof q->texts[0], "%d", value);
  q->params[q->count] = (polyccl_param){name, q->texts[q->count]};
  q->count++;
}

typedef struct kinds {
  bool ranks, root, inplace;
} kinds;

/* Which parameters the program has beside instances and protocol, which all have. */
static kinds kinds_of(const char *path) {
  kinds has = {false, false, false};
  polyccl_param_info *infos = NULL;
  size_t count = 0;
  assert_int_equal(polyccl_program_params(path, NULL, 0, &infos, &count), POLYCCL_SUCCESS);
  bool instances = false, protocol = false;
  for (size_t i = 0; i < count; i++) {
    has.ranks = has.ranks || strcmp(infos[i].name, "ranks") == 0;
    has.root = has.root || strcmp(infos[i].name, "root") == 0;
    has.inplace = has.inplace || strcmp(infos[i].name, "inplace") == 0;
    instances = instances || strcmp(infos[i].name, "instances") == 0;
    protocol = protocol || strcmp(infos[i].name, "protocol") == 0;
    if (infos[i].help[0] == '\0') {
      fail_msg("%s: parameter %s has no help", path, infos[i].name);
    }
  }
  free(infos);
  if (!instances || !protocol) {
    fail_msg("%s: instances and protocol are everywhere", path);
  }
  return has;
}

/* Loads and checks; the program's number of ranks must be as asked. */
static void check_program(const char *path, const question *q, int ranks) {
  polyccl_program *program = NULL;
  polyccl_program_summary summary;
  polyccl_result result = polyccl_program_load(path, q->params, q->count, &program);
  if (result == POLYCCL_SUCCESS) {
    result = polyccl_program_check(program, &summary);
  }
  if (result != POLYCCL_SUCCESS) {
    fail_msg("%s on %d ranks: %s", path, ranks, polyccl_last_error());
  }
  assert_int_equal(summary.ranks, ranks);
  assert_true(summary.identical);
  polyccl_program_destroy(program);
}

static void check_all(const char *path) {
  kinds has = kinds_of(path);
  for (int n = 1; n <= 9; n++) {
    for (int m = 1; m <= (has.ranks ? 1 : 5); m++) {
      for (int root = 0; root < (has.root ? n : 1); root++) {
        question q = {.count = 0};
        add_param(&q, has.ranks ? "ranks" : "gpus", n);
        if (!has.ranks) {
          add_param(&q, "nodes", m);
        }
        if (has.root) {
          add_param(&q, "root", root);
        }
        add_param(&q, "instances", 1 + n % 3);
        check_program(path, &q, n * m);
        if (has.inplace) {
          add_param(&q, "inplace", 1);
          check_program(path, &q, n * m);
        }
      }
    }
  }
}

static void every_algorithm_is_right(void **state) {
  (void)state;
  struct dirent **entries;
  int count = scandir(FOLDER, &entries, NULL, alphasort), checked = 0;
  assert_true(count > 0);
  for (int i = 0; i < count; i++) {
    const char *dot = strrchr(entries[i]->d_name, '.');
    if (dot != NULL && strcmp(dot, ".lua") == 0) {
      char path[sizeof FOLDER + 300];
      snprintf(path, sizeof path, "%s/%s", FOLDER, entries[i]->d_name);
      check_all(path);
      checked++;
    }
    free(entries[i]);
  }
  free(entries);
  assert_true(checked >= 16);
}

static polyccl_program_summary summary_of(const char *name, const polyccl_param *params, size_t count) {
  char path[sizeof FOLDER + 300];
  snprintf(path, sizeof path, "%s/%s", FOLDER, name);
  polyccl_program *program = NULL;
  polyccl_program_summary summary;
  assert_int_equal(polyccl_program_load(path, params, count, &program), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_program_check(program, &summary), POLYCCL_SUCCESS);
  polyccl_program_destroy(program);
  return summary;
}

/* The numbers that make each algorithm what it is. */
static void hops_and_messages_are_those_of_the_algorithm(void **state) {
  (void)state;
  const polyccl_param eight = {"ranks", "8"}, six = {"ranks", "6"}, square[] = {{"nodes", "4"}, {"gpus", "4"}};
  polyccl_program_summary s = summary_of("allreduce_ring.lua", &eight, 1);
  assert_int_equal(s.longest, 14);
  assert_int_equal(s.remote, 2 * 8 * 7);
  s = summary_of("allreduce_halving_doubling.lua", &eight, 1);
  assert_int_equal(s.longest, 6);
  assert_int_equal(s.remote, 2 * 3 * 8);
  s = summary_of("allreduce_halving_doubling.lua", &six, 1);
  assert_int_equal(s.longest, 6);
  s = summary_of("allreduce_tree.lua", &eight, 1);
  assert_int_equal(s.remote, 2 * 7);
  s = summary_of("allgather_tree.lua", &eight, 1);
  assert_int_equal(s.longest, 3 + 3);
  s = summary_of("reduce_scatter_tree.lua", &six, 1);
  assert_int_equal(s.remote, 2 * 5);
  s = summary_of("allreduce_oneshot.lua", &eight, 1);
  assert_int_equal(s.remote, 8 * 7);
  s = summary_of("broadcast_tree.lua", &eight, 1);
  assert_int_equal(s.longest, 3);
  assert_int_equal(s.remote, 7);
  s = summary_of("broadcast_chain.lua", &eight, 1);
  assert_int_equal(s.longest, 7);
  s = summary_of("allreduce_hierarchical.lua", square, 2);
  assert_int_equal(s.longest, 3 + 6 + 3);
  s = summary_of("alltoall_two_step.lua", square, 2);
  assert_int_equal(s.longest, 2);
  s = summary_of("alltoall_three_step.lua", square, 2);
  assert_int_equal(s.longest, 3);
}

static void unknown_and_repeated_parameters_are_named(void **state) {
  (void)state;
  polyccl_program *program = NULL;
  polyccl_param wrong[] = {{"rank", "4"}}, twice[] = {{"ranks", "4"}, {"ranks", "5"}};
  assert_int_equal(polyccl_program_load(FOLDER "/allreduce_ring.lua", wrong, 1, &program), POLYCCL_ERROR_INVALID);
  assert_non_null(strstr(polyccl_last_error(),
                         "allreduce_ring.lua: no parameter \"rank\" (known: ranks, channels, instances, protocol)"));
  assert_int_equal(polyccl_program_load(FOLDER "/allreduce_ring.lua", twice, 2, &program), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "parameter ranks is given twice");
  assert_int_equal(polyccl_program_load(FOLDER "/none.lua", NULL, 0, &program), POLYCCL_ERROR_INVALID);
  assert_non_null(strstr(polyccl_last_error(), "none.lua: cannot read: No such file or directory"));
  assert_int_equal(polyccl_program_load(FOLDER, NULL, 0, &program), POLYCCL_ERROR_INVALID);
  assert_int_equal(polyccl_program_load(NULL, NULL, 0, &program), POLYCCL_ERROR_INVALID);
  assert_int_equal(polyccl_program_load(FOLDER "/allreduce_ring.lua", NULL, 1, &program), POLYCCL_ERROR_INVALID);
  assert_null(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_algorithm_is_right),
      cmocka_unit_test(hops_and_messages_are_those_of_the_algorithm),
      cmocka_unit_test(unknown_and_repeated_parameters_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
