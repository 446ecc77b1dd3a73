/* Plans made programs again: every right plan of tests/plans and tests/xml, of the public tools where they are at hand,
 * and of our own compiler. The program is right (polyccl_program_from_plan checks it), and compiles to a right plan. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <polyccl/compile.h>
#include <polyccl/language.h>

static int lifted;

/* The steps of the plan that the lifted program compiles to. */
static size_t lift_and_compile(const char *name, const polyccl_plan *plan, const polyccl_compile_options *options) {
  polyccl_program *program;
  polyccl_plan *again;
  if (polyccl_program_from_plan(plan, &program) != POLYCCL_SUCCESS) {
    fail_msg("%s: %s", name, polyccl_last_error());
  }
  if (polyccl_compile(program, options, &again) != POLYCCL_SUCCESS) {
    fail_msg("%s compiled again: %s", name, polyccl_last_error());
  }
  assert_int_equal(again->collective, plan->collective);
  assert_int_equal(again->inplace, plan->inplace);
  assert_int_equal(again->protocol, plan->protocol);
  assert_int_equal(again->posts, plan->posts);
  size_t steps = again->steps;
  polyccl_plan_destroy(again);
  polyccl_program_destroy(program);
  lifted++;
  return steps;
}

static void lift_file(const char *path) {
  polyccl_plan *plan;
  if (polyccl_plan_read(path, &plan) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  if (polyccl_plan_verify(plan, NULL) == POLYCCL_SUCCESS) {
    lift_and_compile(path, plan, NULL);
  }
  polyccl_plan_destroy(plan);
}

static void lift_folder(const char *folder) {
  struct dirent **entry;
  int count = scandir(folder, &entry, NULL, alphasort);
  if (count < 0) {
    return; /* the corpus is not everywhere */
  }
  for (int i = 0; i < count; i++) {
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
    if (strstr(path, ".plan") != NULL || strstr(path, ".xml") != NULL) {
      lift_file(path);
    }
    free(entry[i]);
  }
  free(entry);
}

static void plans_of_files(void **state) {
  (void)state;
  lifted = 0;
  lift_folder(POLYCCL_SOURCE_DIR "/tests/plans/right");
  lift_folder(POLYCCL_SOURCE_DIR "/tests/plans");
  lift_folder(POLYCCL_SOURCE_DIR "/tests/xml/trips");
  lift_folder(POLYCCL_SOURCE_DIR "/tests/xml");
  assert_true(lifted >= 10);
  lift_folder(POLYCCL_SOURCE_DIR "/../shared/corpus/msccl-xml");
  lift_folder(POLYCCL_SOURCE_DIR "/../../shared/corpus/msccl-xml");
}

/* What was compiled here needs no more steps than before when it is compiled again. */
static void own_plans(void **state) {
  (void)state;
  static const struct {
    const char *file, *name, *value;
  } all[] = {{"allreduce_ring", "ranks", "5"},
             {"allreduce_ring", "instances", "2"},
             {"allreduce_allpairs", "ranks", "4"},
             {"allreduce_halving_doubling", "ranks", "8"},
             {"allreduce_hierarchical", "nodes", "2"},
             {"alltoall_two_step", "nodes", "2"},
             {"alltonext", "nodes", "3"},
             {"broadcast_tree", "ranks", "7"},
             {"reduce_scatter_ring", "ranks", "4"},
             {"sendrecv", "ranks", "2"}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    char path[1024];
    polyccl_program *program;
    polyccl_plan *plan = NULL;
    polyccl_param param = {all[i].name, all[i].value};
    snprintf(path, sizeof path, "%s/algorithms/%s.lua", POLYCCL_SOURCE_DIR, all[i].file);
    if (polyccl_program_load(path, &param, 1, &program) != POLYCCL_SUCCESS ||
        polyccl_compile(program, NULL, &plan) != POLYCCL_SUCCESS) {
      fail_msg("%s", polyccl_last_error());
    }
    size_t steps = lift_and_compile(all[i].file, plan, NULL);
    if (steps > plan->steps) {
      fail_msg("%s has %zu steps, compiled again %zu", all[i].file, plan->steps, steps);
    }
    polyccl_plan_destroy(plan);
    polyccl_program_destroy(program);
  }
}

static polyccl_plan *parse(const char *text) {
  polyccl_plan *plan;
  if (polyccl_plan_parse("text", text, strlen(text), &plan) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  return plan;
}

/* A message outlives the chunk that was sent: rank 0 overwrites its input while the message is on its way. */
static void sent_and_overwritten(void **state) {
  (void)state;
  polyccl_plan *plan = parse(
      "polyccl-plan 1\nname \"swap\"\ncollective custom\nranks 2\nchunks 1\ninplace yes\n"
      "post 0 0 = 1.0\npost 1 0 = 0.0\n"
      "rank 0 scratch 0\ntb\nsend i0 x1 to 1.0\nrecv i0 x1 from 1.0\n"
      "rank 1 scratch 0\ntb\nsend i0 x1 to 0.0\nrecv i0 x1 from 0.0\n");
  lift_and_compile("swap", plan, NULL);
  polyccl_plan_destroy(plan);
}

/* rrs leaves its source alone, and here the source is read again afterwards. */
static void sum_not_stored(void **state) {
  (void)state;
  polyccl_plan *plan = parse(
      "polyccl-plan 1\nname \"rrs\"\ncollective custom\nranks 3\nchunks 1\noutchunks 1\n"
      "post 1 0 = 1.0\npost 2 0 = 0.0 1.0\n"
      "rank 0 scratch 0\ntb\nsend i0 x1 to 1.0\n"
      "rank 1 scratch 0\ntb\nrrs i0 x1 from 0.0 to 2.0\ncopy i0 o0 x1\n"
      "rank 2 scratch 0\ntb\nrecv o0 x1 from 1.0\n");
  lift_and_compile("rrs", plan, NULL);
  polyccl_plan_destroy(plan);
}

static void wrong_plans(void **state) {
  (void)state;
  polyccl_program *program = NULL;
  polyccl_plan *plan = parse(
      "polyccl-plan 1\nname \"hangs\"\ncollective allreduce\nranks 1\nchunks 1\n"
      "rank 0 scratch 0\ntb\ncopy i0 o0 x1 wait 1.0\ntb\nnop wait 0.0\n");
  assert_int_equal(polyccl_program_from_plan(plan, &program), POLYCCL_ERROR_INVALID);
  assert_null(program);
  polyccl_plan_destroy(plan);
}

/* A plan of one policy, compiled by the other. */
static void other_policy(void **state) {
  (void)state;
  polyccl_topology *topology;
  polyccl_plan *plan;
  assert_int_equal(polyccl_plan_read(POLYCCL_SOURCE_DIR "/tests/xml/trips/allgather_inplace.plan", &plan),
                   POLYCCL_SUCCESS);
  assert_int_equal(polyccl_topology_open("ring:2", &topology), POLYCCL_SUCCESS);
  polyccl_compile_options options = {
      .size = sizeof(polyccl_compile_options), .policy = POLYCCL_POLICY_STATE, .topology = topology};
  lift_and_compile("allgather_inplace", plan, &options);
  polyccl_topology_destroy(topology);
  polyccl_plan_destroy(plan);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans_of_files), cmocka_unit_test(own_plans),   cmocka_unit_test(sent_and_overwritten),
      cmocka_unit_test(sum_not_stored), cmocka_unit_test(wrong_plans), cmocka_unit_test(other_policy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
