/* Policy "state": the library's algorithms on clusters. Every plan is proved by the verifier; here: the bound on thread
 * blocks holds, data that a task needs was moved in an earlier sub-pipeline, and links admit no more than they feed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <polyccl/language.h>
#include <polyccl/simulator.h>

#include "compiler/bound.h"
#include "compiler/flow.h"
#include "compiler/merge.h"
#include "compiler/task.h"

typedef struct sample {
  const char *program, *topology;
  polyccl_param params[2];
  int count;
} sample;

static const sample samples[] = {
    {"allreduce_ring", "ndv4:2", {{"ranks", "16"}}, 1},
    {"allgather_ring", "dgx-a100:1", {{"ranks", "8"}}, 1},
    {"allreduce_hierarchical", "ndv4:2", {{"nodes", "2"}, {"gpus", "8"}}, 2},
    {"allreduce_halving_doubling", "ndv4:2", {{"ranks", "16"}}, 1},
    {"allreduce_allpairs", "dgx-a100:1", {{"ranks", "8"}}, 1},
    {"alltoall_two_step", "ndv4:2", {{"nodes", "2"}, {"gpus", "8"}}, 2},
    {"broadcast_tree", "ndv4:1", {{"ranks", "7"}}, 1},
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static polyccl_program *load(const sample *s) {
  char path[512];
  snprintf(path, sizeof path, "%s/algorithms/%s.lua", POLYCCL_SOURCE_DIR, s->program);
  polyccl_program *program = NULL;
  if (polyccl_program_load(path, s->params, (size_t)s->count, &program) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  return program;
}

static void bounds_on_thread_blocks_hold(void **state) {
  (void)state;
  static const int bounds[] = {0, 1, 2, 5, 16};
  for (int i = 0; i < SAMPLES; i++) {
    polyccl_topology *topology = NULL;
    assert_int_equal(polyccl_topology_open(samples[i].topology, &topology), POLYCCL_SUCCESS);
    polyccl_program *program = load(&samples[i]);
    for (size_t k = 0; k < sizeof bounds / sizeof bounds[0]; k++) {
      polyccl_compile_options options = {.size = sizeof(polyccl_compile_options),
                                         .policy = POLYCCL_POLICY_STATE,
                                         .topology = topology,
                                         .max_tbs = bounds[k]};
      polyccl_plan *plan = NULL;
      if (polyccl_compile(program, &options, &plan) != POLYCCL_SUCCESS) {
        fail_msg("%s: %s", samples[i].program, polyccl_last_error());
      }
      assert_int_equal(plan->order, POLYCCL_TASK_MAJOR);
      for (int rank = 0; rank < plan->ranks && bounds[k] > 0; rank++) {
        assert_true(plan->rank[rank].tbs <= bounds[k]);
      }
      polyccl_plan_destroy(plan);
    }
    polyccl_program_destroy(program);
    polyccl_topology_destroy(topology);
  }
}

/* Builds the tasks of a sample by the compiler's own passes. */
static void with_tasks(const sample *s, void (*examine)(const pccl_tasks *, const pccl_pipeline *),
                       polyccl_result (*schedule)(const pccl_tasks *, int32_t, pccl_pipeline *)) {
  polyccl_topology *topology = NULL;
  assert_int_equal(polyccl_topology_open(s->topology, &topology), POLYCCL_SUCCESS);
  polyccl_program *program = load(s);
  pccl_ir ir = pccl_ir_of(program, NULL, 0);
  pccl_tasks tasks;
  pccl_pipeline pipeline;
  assert_int_equal(pccl_pass_refine(&ir), POLYCCL_SUCCESS);
  assert_int_equal(pccl_pass_lower(&ir), POLYCCL_SUCCESS);
  assert_int_equal(pccl_tasks_build(&ir, topology, &tasks), POLYCCL_SUCCESS);
  assert_int_equal(schedule(&tasks, 0, &pipeline), POLYCCL_SUCCESS);
  examine(&tasks, &pipeline);
  pccl_pipeline_free(&pipeline);
  pccl_tasks_free(&tasks);
  pccl_ir_free(&ir);
  polyccl_program_destroy(program);
  polyccl_topology_destroy(topology);
}

static void examine_rules(const pccl_tasks *tasks, const pccl_pipeline *pipeline) {
  size_t links = tasks->topology->links;
  int32_t *use = calloc((size_t)pipeline->pipelines * links, sizeof *use);
  bool *seen = calloc(tasks->count, sizeof *seen);
  assert_non_null(use);
  assert_non_null(seen);
  int32_t last = 0;
  for (size_t i = 0; i < tasks->count; i++) {
    int32_t number = pipeline->sequence[i], at = pipeline->of_task[number];
    const pccl_task *task = &tasks->task[number];
    assert_false(seen[number]);
    seen[number] = true;
    assert_true(at >= last && at < pipeline->pipelines);
    last = at;
    for (int32_t k = task->succ; k < task[1].succ; k++) {
      assert_true(pipeline->of_task[tasks->succ[k]] > at);
    }
    for (int32_t k = 0; k < task->links; k++) {
      int32_t link = tasks->route.link.data[task->route + k];
      assert_true(++use[(size_t)at * links + (size_t)link] <= tasks->capacity[link]);
    }
  }
  free(use);
  free(seen);
}

static void sub_pipelines_are_free_of_conflicts(void **state) {
  (void)state;
  for (int i = 0; i < SAMPLES; i++) {
    with_tasks(&samples[i], examine_rules, pccl_schedule_hpds);
    with_tasks(&samples[i], examine_rules, pccl_schedule_round_robin);
  }
}

/* The published rule on a case small enough to know: with one link that admits one task, chunks take turns. */
static void the_chunk_that_moved_fewest_times_goes_first(void **state) {
  (void)state;
  polyccl_program_config config = {.size = sizeof(polyccl_program_config),
                                   .collective = POLYCCL_BROADCAST,
                                   .ranks = 3,
                                   .chunks = 2,
                                   .inplace = true};
  polyccl_program *program = NULL;
  polyccl_topology *topology = NULL;
  assert_int_equal(polyccl_topology_open("fully:3", &topology), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_program_create(&config, &program), POLYCCL_SUCCESS);
  for (int c = 0; c < 2; c++) {
    polyccl_location at = {"t.lua", c + 1};
    polyccl_ref ref;
    assert_int_equal(polyccl_program_chunk(program, 0, POLYCCL_INPUT, c, 1, at, &ref), POLYCCL_SUCCESS);
    for (int to = 1; to < 3; to++) {
      assert_int_equal(polyccl_program_copy(program, &ref, to, -1, -1, POLYCCL_NO_HINTS, at, &ref), POLYCCL_SUCCESS);
    }
  }
  pccl_ir ir = pccl_ir_of(program, NULL, 0);
  pccl_tasks tasks;
  pccl_pipeline pipeline;
  assert_int_equal(pccl_pass_refine(&ir), POLYCCL_SUCCESS);
  assert_int_equal(pccl_pass_lower(&ir), POLYCCL_SUCCESS);
  assert_int_equal(pccl_tasks_build(&ir, topology, &tasks), POLYCCL_SUCCESS);
  assert_int_equal(pccl_schedule_hpds(&tasks, 1, &pipeline), POLYCCL_SUCCESS);
  /* Tasks: 0: chunk 0 to rank 1, 1: chunk 0 to rank 2, 2 and 3: the same of chunk 1. */
  static const int32_t expected[] = {0, 2, 1, 3};
  for (int i = 0; i < 4; i++) {
    assert_int_equal(pipeline.sequence[i], expected[i]);
    assert_int_equal(pipeline.of_task[expected[i]], i);
  }
  pccl_pipeline_free(&pipeline);
  pccl_tasks_free(&tasks);
  pccl_ir_free(&ir);
  polyccl_program_destroy(program);
  polyccl_topology_destroy(topology);
}

static double simulated(const polyccl_plan *plan, const polyccl_topology *topology) {
  polyccl_sim_options options = POLYCCL_SIM_DEFAULTS;
  options.bytes = 16 << 20;
  polyccl_simulation *simulation = NULL;
  assert_int_equal(polyccl_simulate(plan, topology, &options, &simulation), POLYCCL_SUCCESS);
  double time = simulation->time;
  polyccl_simulation_destroy(simulation);
  return time;
}

static void best_is_never_slower_and_always_the_same(void **state) {
  (void)state;
  for (int i = 0; i < SAMPLES; i++) {
    polyccl_topology *topology = NULL;
    assert_int_equal(polyccl_topology_open(samples[i].topology, &topology), POLYCCL_SUCCESS);
    polyccl_program *program = load(&samples[i]);
    polyccl_compile_options options = {.size = sizeof(polyccl_compile_options),
                                       .policy = POLYCCL_POLICY_STATE,
                                       .topology = topology,
                                       .bytes = 16 << 20,
                                       .seconds = 0.05};
    polyccl_plan *hpds = NULL, *best[2] = {NULL, NULL};
    assert_int_equal(polyccl_compile(program, &options, &hpds), POLYCCL_SUCCESS);
    options.schedule = POLYCCL_SCHEDULE_BEST;
    for (int k = 0; k < 2; k++) {
      if (polyccl_compile(program, &options, &best[k]) != POLYCCL_SUCCESS) {
        fail_msg("%s: %s", samples[i].program, polyccl_last_error());
      }
    }
    assert_true(simulated(best[0], topology) <= simulated(hpds, topology));
    assert_int_equal(best[0]->steps, best[1]->steps);
    assert_memory_equal(best[0]->step, best[1]->step, best[0]->steps * sizeof *best[0]->step);
    polyccl_plan_destroy(hpds);
    polyccl_plan_destroy(best[0]);
    polyccl_plan_destroy(best[1]);
    polyccl_program_destroy(program);
    polyccl_topology_destroy(topology);
  }
}

/* Lists of flows: whatever the choices, the verifier accepts the plan, the bound on thread blocks holds, the estimates
 * are possible and nothing is quicker than the lower bound. */
static void check_list(pccl_ir *ir, const polyccl_topology *topology, const pccl_flows *flows, pccl_list_rule rule,
                       double bound) {
  double *start = calloc(flows->count, sizeof *start);
  polyccl_plan *plan = NULL;
  polyccl_verify_report report;
  assert_non_null(start);
  assert_int_equal(pccl_schedule_list(flows, &rule, start), POLYCCL_SUCCESS);
  assert_int_equal(pccl_pass_wait(ir), POLYCCL_SUCCESS);
  assert_int_equal(pccl_pass_emit(ir, &plan), POLYCCL_SUCCESS);
  if (polyccl_plan_verify(plan, &report) != POLYCCL_SUCCESS) {
    fail_msg("%s: %s", plan->name, polyccl_last_error());
  }
  assert_int_equal(report.fifo_depth, 1);
  assert_int_equal(plan->order, POLYCCL_TASK_MAJOR);
  for (int rank = 0; rank < plan->ranks; rank++) {
    assert_true(plan->rank[rank].tbs <= rule.tbs);
  }
  for (size_t i = 0; i < flows->count; i++) {
    for (int32_t e = flows->flow[i].edge; e < flows->flow[i].edge + flows->flow[i].edges; e++) {
      const pccl_flow_edge *edge = &flows->edge.data[e];
      double other = start[edge->flow] + flows->flow[edge->flow].lag * edge->from;
      assert_true(start[i] + flows->flow[i].lag * edge->hop >= other);
    }
  }
  assert_true(simulated(plan, topology) >= bound);
  polyccl_plan_destroy(plan);
  free(start);
}

/* Merging may go on to the last pair of thread blocks that may be one: the plan stays right all the way. */
static void merge_to_the_end(pccl_ir *ir, const pccl_flows *flows) {
  double busy[4096];
  for (int i = 0; i < 4096; i++) {
    busy[i] = i * 7 % 13;
  }
  for (int merges = 0;; merges++) {
    bool merged = false;
    int32_t before = 0, after = 0;
    for (int rank = 0; rank < ir->spec.ranks; rank++) {
      before = ir->tbs[rank] > before ? ir->tbs[rank] : before;
    }
    assert_int_equal(pccl_merge_blocks(ir, busy, &merged), POLYCCL_SUCCESS);
    assert_int_equal(pccl_channels_of_blocks(ir), POLYCCL_SUCCESS);
    assert_int_equal(pccl_pass_wait(ir), POLYCCL_SUCCESS);
    if (!merged) {
      assert_true(before == 1 || flows->passes > 1);
      return;
    }
    for (int rank = 0; rank < ir->spec.ranks; rank++) {
      after = ir->tbs[rank] > after ? ir->tbs[rank] : after;
    }
    assert_int_equal(after, before - 1);
    polyccl_plan *plan = NULL;
    assert_int_equal(pccl_pass_emit(ir, &plan), POLYCCL_SUCCESS);
    if (merges % 4 == 0 && polyccl_plan_verify(plan, NULL) != POLYCCL_SUCCESS) {
      fail_msg("%s after %d merges: %s", plan->name, merges + 1, polyccl_last_error());
    }
    polyccl_plan_destroy(plan);
  }
}

static void lists_are_safe(void **state) {
  (void)state;
  enum { APART = -1 };
  static const int chains[] = {APART, 0, 1, 3};
  static const pccl_list_rule rules[] = {
      {.tbs = 16, .priority = PCCL_LIST_TAIL},
      {.tbs = 2, .priority = PCCL_LIST_SCARCE, .overlap = true},
      {.tbs = 5, .priority = PCCL_LIST_INSTANCE, .overlap = true, .window = 1},
      {.tbs = 7, .priority = PCCL_LIST_SCARCE, .window = 2, .shuffle = 77},
  };
  int checked = 0;
  for (int i = 0; i < SAMPLES * 4; i++) {
    const sample *s = &samples[i / 4];
    polyccl_topology *topology = NULL;
    assert_int_equal(polyccl_topology_open(s->topology, &topology), POLYCCL_SUCCESS);
    polyccl_program *program = load(s);
    pccl_ir ir = pccl_ir_of(program, NULL, 2);
    pccl_bound bound;
    pccl_flows flows;
    bool cyclic = false;
    assert_int_equal(pccl_pass_refine(&ir), POLYCCL_SUCCESS);
    assert_int_equal(pccl_pass_lower(&ir), POLYCCL_SUCCESS);
    assert_int_equal(pccl_bound_of(&ir, topology, 16 << 20, 0, &bound), POLYCCL_SUCCESS);
    if (chains[i % 4] == APART) {
      assert_int_equal(pccl_flows_set_apart(&ir, topology), POLYCCL_SUCCESS);
    }
    if (chains[i % 4] != 1) {
      ir.max_hops = chains[i % 4] > 0 ? chains[i % 4] : 0;
      assert_int_equal(pccl_pass_fuse(&ir), POLYCCL_SUCCESS);
    }
    assert_int_equal(pccl_flows_build(&ir, topology, 16 << 20, i % 2, &flows, &cyclic), POLYCCL_SUCCESS);
    for (size_t k = 0; !cyclic && k < sizeof rules / sizeof rules[0]; k++) {
      if (rules[k].tbs >= flows.passes) {
        check_list(&ir, topology, &flows, rules[k], pccl_bound_time(&bound));
        merge_to_the_end(&ir, &flows);
        checked++;
      }
    }
    if (!cyclic) {
      pccl_flows_free(&flows);
    }
    pccl_ir_free(&ir);
    polyccl_program_destroy(program);
    polyccl_topology_destroy(topology);
  }
  assert_true(checked > 90);
}

/* Two ranks on one link: the bound is known by hand. */
static void the_bound_is_what_the_link_needs(void **state) {
  (void)state;
  polyccl_program_config config = {.size = sizeof(polyccl_program_config),
                                   .collective = POLYCCL_BROADCAST,
                                   .ranks = 2,
                                   .chunks = 1,
                                   .inplace = true};
  polyccl_location at = {"t.lua", 1};
  polyccl_program *program = NULL;
  polyccl_topology *topology = NULL;
  polyccl_ref ref;
  assert_int_equal(polyccl_topology_open("fully:2", &topology), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_program_create(&config, &program), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_program_chunk(program, 0, POLYCCL_INPUT, 0, 1, at, &ref), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_program_copy(program, &ref, 1, -1, -1, POLYCCL_NO_HINTS, at, &ref), POLYCCL_SUCCESS);
  pccl_ir ir = pccl_ir_of(program, NULL, 0);
  assert_int_equal(pccl_pass_refine(&ir), POLYCCL_SUCCESS);
  assert_int_equal(pccl_pass_lower(&ir), POLYCCL_SUCCESS);
  pccl_bound bound;
  assert_int_equal(pccl_bound_of(&ir, topology, 25000000, 4, &bound), POLYCCL_SUCCESS);
  const polyccl_protocol_model *m = &topology->model[0].protocol[POLYCCL_SIMPLE];
  double path = m->launch_cost + 2 * m->step_cost + m->latency + topology->link[0].latency;
  assert_true(bound.path > path - 1e-6 && bound.path < path + 1e-6);
  assert_true(bound.link > path + 1000 - 1e-6 && bound.link < path + 1000 + 1e-6); /* 25 MB at 25 GB/s */
  double blocks = m->launch_cost + 25000.0 / (4 * m->copy_bandwidth);
  assert_true(bound.blocks > blocks - 1e-6 && bound.blocks < blocks + 1e-6);
  pccl_ir_free(&ir);
  polyccl_program_destroy(program);
  polyccl_topology_destroy(topology);
}

/* The text that --dump writes for a sample; NULL where the name is refused. The caller frees it. */
static char *dump_of(const polyccl_topology *topology, polyccl_policy policy, polyccl_schedule schedule,
                     const char *pass) {
  polyccl_program *program = load(&samples[1]);
  polyccl_plan *plan = NULL;
  char *text = NULL;
  size_t length = 0;
  FILE *to = open_memstream(&text, &length);
  assert_non_null(to);
  polyccl_compile_options options = {.size = sizeof(polyccl_compile_options),
                                     .policy = policy,
                                     .schedule = schedule,
                                     .topology = topology,
                                     .seconds = 0.01,
                                     .dump = pass,
                                     .dump_to = to};
  polyccl_result result = polyccl_compile(program, &options, &plan);
  fclose(to);
  polyccl_program_destroy(program);
  if (result != POLYCCL_SUCCESS) {
    free(text);
    return NULL;
  }
  polyccl_plan_destroy(plan);
  return text;
}

/* Every pass of a policy can be dumped, exactly once, and passes of the other policy write nothing. */
static void passes_are_dumped_by_name(void **state) {
  (void)state;
  static const struct {
    const char *name, *connection, *hpds, *best; /* what the dump must contain; NULL: it is empty */
  } passes[] = {
      {"refine", "0: copy 0.", "0: copy 0.", NULL},
      {"lower", "0: rank 0 send", "0: rank 0 send", NULL},
      {"fuse", " rcs ", NULL, NULL},
      {"channel", " ch 0 ", NULL, NULL},
      {"order", "0: rank ", NULL, NULL},
      {"block", " tb 0 ", NULL, NULL},
      {"schedule", NULL, " pipeline 0 ", " tb 0 "},
      {"allocate", NULL, " tb 0 ", " tb 0 "},
      {"wait", " tb 0 ", " tb 0 ", " tb 0 "},
  };
  polyccl_topology *topology = NULL;
  assert_int_equal(polyccl_topology_open(samples[1].topology, &topology), POLYCCL_SUCCESS);
  for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
    const char *wanted[] = {passes[i].connection, passes[i].hpds, passes[i].best};
    for (int way = 0; way < 3; way++) {
      char *text = dump_of(topology, way == 0 ? POLYCCL_POLICY_CONNECTION : POLYCCL_POLICY_STATE,
                           way == 2 ? POLYCCL_SCHEDULE_BEST : POLYCCL_SCHEDULE_HPDS, passes[i].name);
      assert_non_null(text);
      const char *found = wanted[way] != NULL ? strstr(text, wanted[way]) : NULL;
      if (wanted[way] == NULL ? text[0] != '\0' : found == NULL) {
        fail_msg("pass %s, way %d: \"%.200s\"", passes[i].name, way, text);
      }
      const char *first = strstr(text, "0: ");
      assert_true(first == NULL || strstr(first + 1, "\n0: ") == NULL);
      free(text);
    }
  }
  assert_null(dump_of(topology, POLYCCL_POLICY_STATE, POLYCCL_SCHEDULE_HPDS, "nosuch"));
  assert_non_null(strstr(polyccl_last_error(), "unknown pass \"nosuch\" (known: refine, "));
  for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
    assert_non_null(strstr(polyccl_last_error(), passes[i].name));
  }
  polyccl_topology_destroy(topology);
}

/* Options of policy "connection" do not reach the trials of schedule "best". */
static void best_decides_what_is_fused(void **state) {
  (void)state;
  polyccl_topology *topology = NULL;
  assert_int_equal(polyccl_topology_open(samples[1].topology, &topology), POLYCCL_SUCCESS);
  polyccl_program *program = load(&samples[1]);
  polyccl_plan *plan[2] = {NULL, NULL};
  for (int i = 0; i < 2; i++) {
    polyccl_compile_options options = {.size = sizeof(polyccl_compile_options),
                                       .policy = POLYCCL_POLICY_STATE,
                                       .schedule = POLYCCL_SCHEDULE_BEST,
                                       .topology = topology,
                                       .seconds = 0.01,
                                       .no_fusion = i == 1};
    assert_int_equal(polyccl_compile(program, &options, &plan[i]), POLYCCL_SUCCESS);
  }
  assert_int_equal(plan[0]->steps, plan[1]->steps);
  int fused = 0;
  for (size_t i = 0; i < plan[0]->steps; i++) {
    assert_int_equal(plan[0]->step[i].op, plan[1]->step[i].op);
    fused += plan[0]->step[i].op == POLYCCL_STEP_RCS;
  }
  assert_true(fused > 0);
  polyccl_plan_destroy(plan[0]);
  polyccl_plan_destroy(plan[1]);
  polyccl_program_destroy(program);
  polyccl_topology_destroy(topology);
}

static void a_topology_that_does_not_fit_is_refused(void **state) {
  (void)state;
  polyccl_program *program = load(&samples[0]);
  polyccl_compile_options options = {.size = sizeof(polyccl_compile_options), .policy = POLYCCL_POLICY_STATE};
  polyccl_plan *plan = NULL;
  assert_int_equal(polyccl_compile(program, &options, &plan), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "policy state needs a topology");
  polyccl_topology *topology = NULL;
  assert_int_equal(polyccl_topology_open("fully:5", &topology), POLYCCL_SUCCESS);
  options.topology = topology;
  assert_int_equal(polyccl_compile(program, &options, &plan), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "allreduce_ring has 16 ranks, but topology fully:5 has only 5");
  polyccl_topology_destroy(topology);
  polyccl_program_destroy(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bounds_on_thread_blocks_hold),
      cmocka_unit_test(sub_pipelines_are_free_of_conflicts),
      cmocka_unit_test(the_chunk_that_moved_fewest_times_goes_first),
      cmocka_unit_test(best_is_never_slower_and_always_the_same),
      cmocka_unit_test(lists_are_safe),
      cmocka_unit_test(the_bound_is_what_the_link_needs),
      cmocka_unit_test(passes_are_dumped_by_name),
      cmocka_unit_test(best_decides_what_is_fused),
      cmocka_unit_test(a_topology_that_does_not_fit_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
