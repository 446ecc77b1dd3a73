/* Sets of plans: their ranges leave no gap, every plan is proved, none is slower than the plain one where it is chosen,
 * the same call gives the same set; the phases of a compilation are timed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <polyccl/compile.h>
#include <polyccl/language.h>
#include <polyccl/simulator.h>

static const polyccl_param hierarchical[] = {{"nodes", "2"}, {"gpus", "4"}};

static polyccl_program *load(const char *name, const polyccl_param *params, size_t count) {
  char path[512];
  snprintf(path, sizeof path, "%s/algorithms/%s.lua", POLYCCL_SOURCE_DIR, name);
  polyccl_program *program = NULL;
  if (polyccl_program_load(path, params, count, &program) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  return program;
}

static polyccl_topology *open_topology(const char *spec) {
  polyccl_topology *topology = NULL;
  assert_int_equal(polyccl_topology_open(spec, &topology), POLYCCL_SUCCESS);
  return topology;
}

static double simulated(const polyccl_plan *plan, const polyccl_topology *topology, uint64_t bytes) {
  polyccl_sim_options options = POLYCCL_SIM_DEFAULTS;
  polyccl_simulation *simulation = NULL;
  options.bytes = bytes;
  assert_int_equal(polyccl_simulate(plan, topology, &options, &simulation), POLYCCL_SUCCESS);
  double time = simulation->time;
  polyccl_simulation_destroy(simulation);
  return time;
}

static polyccl_plan_set *compile_set(const polyccl_program *program, const polyccl_compile_options *options) {
  polyccl_plan_set *set = NULL;
  if (polyccl_compile_set(program, options, 1 << 10, 64 << 20, &set) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  return set;
}

static const polyccl_plan *plan_for(const polyccl_plan_set *set, uint64_t bytes) {
  const polyccl_plan *found = NULL;
  for (size_t i = 0; i < set->plans; i++) {
    const polyccl_plan *plan = set->plan[i];
    if (bytes >= plan->min_bytes && (plan->max_bytes == 0 || bytes <= plan->max_bytes)) {
      assert_null(found);
      found = plan;
    }
  }
  assert_non_null(found);
  return found;
}

static void every_size_has_one_plan_and_none_is_slower(void **state) {
  (void)state;
  polyccl_topology *topology = open_topology("a100-roce:2,gpus=4");
  polyccl_program *program = load("allreduce_hierarchical", hierarchical, 2);
  polyccl_compile_options options = {.size = sizeof(polyccl_compile_options), .topology = topology, .seconds = 0.05};
  polyccl_plan *plain = NULL;
  assert_int_equal(polyccl_compile(program, NULL, &plain), POLYCCL_SUCCESS);
  polyccl_plan_set *set = compile_set(program, &options);
  assert_true(set->plans > 1); /* what is best at 1 KiB is not at 64 MiB */
  assert_int_equal(set->plan[0]->min_bytes, 0);
  assert_int_equal(set->plan[set->plans - 1]->max_bytes, 0);
  for (size_t i = 0; i < set->plans; i++) {
    assert_int_equal(polyccl_plan_verify(set->plan[i], NULL), POLYCCL_SUCCESS);
    if (i > 0) {
      assert_int_equal(set->plan[i]->min_bytes, set->plan[i - 1]->max_bytes + 1);
    }
  }
  for (uint64_t bytes = 1 << 10; bytes <= 64 << 20; bytes *= 2) {
    assert_true(simulated(plan_for(set, bytes), topology, bytes) <= simulated(plain, topology, bytes));
  }
  assert_true(simulated(plan_for(set, 64 << 20), topology, 64 << 20) < 0.9 * simulated(plain, topology, 64 << 20));
  polyccl_plan_set *again = compile_set(program, &options);
  assert_int_equal(again->plans, set->plans);
  for (size_t i = 0; i < set->plans; i++) {
    assert_int_equal(again->plan[i]->steps, set->plan[i]->steps);
    assert_int_equal(again->plan[i]->max_bytes, set->plan[i]->max_bytes);
    assert_memory_equal(again->plan[i]->step, set->plan[i]->step, set->plan[i]->steps * sizeof *set->plan[i]->step);
  }
  polyccl_plan_set_destroy(again);
  polyccl_plan_set_destroy(set);
  polyccl_plan_destroy(plain);
  polyccl_program_destroy(program);
  polyccl_topology_destroy(topology);
}

static void a_bound_on_thread_blocks_holds_for_the_set(void **state) {
  (void)state;
  polyccl_topology *topology = open_topology("a100-roce:2,gpus=4");
  polyccl_program *program = load("allreduce_hierarchical", hierarchical, 2);
  polyccl_compile_options options = {
      .size = sizeof(polyccl_compile_options), .topology = topology, .seconds = 0.02, .max_tbs = 3};
  polyccl_plan_set *set = compile_set(program, &options);
  for (size_t i = 0; i < set->plans; i++) {
    for (int rank = 0; rank < set->plan[i]->ranks; rank++) {
      assert_true(set->plan[i]->rank[rank].tbs <= 3);
    }
  }
  polyccl_plan_set_destroy(set);
  polyccl_program_destroy(program);
  polyccl_topology_destroy(topology);
}

static void bad_sets_are_refused(void **state) {
  (void)state;
  polyccl_topology *topology = open_topology("fully:4");
  polyccl_param ranks = {"ranks", "4"};
  polyccl_program *program = load("allreduce_ring", &ranks, 1);
  polyccl_plan_set *set = NULL;
  polyccl_compile_options options = {.size = sizeof(polyccl_compile_options)};
  assert_int_equal(polyccl_compile_set(program, &options, 1, 2, &set), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "policy state needs a topology");
  options.topology = topology;
  assert_int_equal(polyccl_compile_set(program, &options, 2, 1, &set), POLYCCL_ERROR_INVALID);
  assert_int_equal(polyccl_compile_set(program, &options, 0, 1, &set), POLYCCL_ERROR_INVALID);
  assert_null(set);
  polyccl_plan_set_destroy(NULL);
  polyccl_program_destroy(program);
  polyccl_topology_destroy(topology);
}

static void instances_and_fusion_can_be_chosen(void **state) {
  (void)state;
  polyccl_param ranks = {"ranks", "4"};
  polyccl_program *program = load("allreduce_ring", &ranks, 1);
  polyccl_plan *plan = NULL;
  polyccl_compile_times times;
  memset(&times, 0xff, sizeof times);
  polyccl_compile_options options = {
      .size = sizeof(polyccl_compile_options), .instances = 3, .no_fusion = true, .times = &times};
  assert_int_equal(polyccl_compile(program, &options, &plan), POLYCCL_SUCCESS);
  assert_int_equal(plan->chunks, 12);
  assert_int_equal(plan->steps, 3 * 4 * 6 * 2); /* 6 messages from each of 4 ranks, a send and a receive each */
  double all[] = {times.check, times.lower, times.schedule, times.allocate, times.wait, times.emit, times.verify};
  double sum = 0;
  for (int i = 0; i < 7; i++) {
    assert_true(all[i] >= 0);
    sum += all[i];
  }
  assert_true(sum > 0);
  polyccl_plan_destroy(plan);
  plan = NULL;
  options.instances = -1;
  assert_int_equal(polyccl_compile(program, &options, &plan), POLYCCL_ERROR_INVALID);
  assert_null(plan);
  polyccl_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_size_has_one_plan_and_none_is_slower),
      cmocka_unit_test(a_bound_on_thread_blocks_holds_for_the_set),
      cmocka_unit_test(bad_sets_are_refused),
      cmocka_unit_test(instances_and_fusion_can_be_chosen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
