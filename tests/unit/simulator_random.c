/* Plans with random faults, which no verifier has seen: the simulator ends, says what is wrong or gives a time, and
 * touches nothing that is not its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <polyccl/compile.h>
#include <polyccl/language.h>
#include <polyccl/simulator.h>

#include "base/map.h"

enum { MUTANTS = 1500 };

static polyccl_plan *compile(const char *program) {
  char path[512];
  snprintf(path, sizeof path, POLYCCL_SOURCE_DIR "/algorithms/%s", program);
  polyccl_program *built = NULL;
  polyccl_plan *plan = NULL;
  assert_int_equal(polyccl_program_load(path, NULL, 0, &built), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_compile(built, NULL, &plan), POLYCCL_SUCCESS);
  polyccl_program_destroy(built);
  return plan;
}

static uint32_t draw(uint64_t *seed, uint32_t below) { return (uint32_t)(pccl_mix64((*seed)++) >> 33) % below; }

static void mutate(polyccl_plan *plan, uint64_t *seed) {
  polyccl_step *step = &plan->step[draw(seed, (uint32_t)plan->steps)];
  int32_t value = (int32_t)draw(seed, 12) - 2;
  switch (draw(seed, 9)) {
    case 0: step->op = (uint8_t)draw(seed, POLYCCL_STEP_OP_COUNT + 1); break;
    case 1: step->recv = value; break;
    case 2: step->send = value; break;
    case 3: step->count = value; break;
    case 4: step->waits = value; break;
    case 5: step->wait = value; break;
    case 6:
      if (plan->waits > 0) {
        plan->wait[draw(seed, (uint32_t)plan->waits)].step = value;
      }
      break;
    case 7: plan->connection[draw(seed, (uint32_t)plan->connections)].dst = value; break;
    default: plan->tb[draw(seed, (uint32_t)plan->tbs)].steps += value / 4; break;
  }
}

static void faults_are_errors(void **state) {
  (void)state;
  static const char *const programs[] = {"allreduce_ring.lua", "allreduce_hierarchical.lua", "alltoall_two_step.lua"};
  static const char *const machines[] = {"ndv4:1", "ndv4:2,gpus=4,nics=1", "switch:8,model=cpu"};
  int ended = 0, refused = 0;
  for (int p = 0; p < 3; p++) {
    polyccl_plan *plan = compile(programs[p]);
    polyccl_topology *t = NULL;
    if (polyccl_topology_open(machines[p], &t) != POLYCCL_SUCCESS) {
      fail_msg("%s", polyccl_last_error());
    }
    size_t bytes = plan->steps * sizeof *plan->step;
    polyccl_step *steps = malloc(bytes);
    polyccl_wait *waits = malloc(plan->waits * sizeof *waits + 1);
    polyccl_connection *connections = malloc(plan->connections * sizeof *connections);
    polyccl_thread_block *tbs = malloc(plan->tbs * sizeof *tbs);
    memcpy(steps, plan->step, bytes);
    memcpy(waits, plan->wait, plan->waits * sizeof *waits);
    memcpy(connections, plan->connection, plan->connections * sizeof *connections);
    memcpy(tbs, plan->tb, plan->tbs * sizeof *tbs);
    for (uint64_t m = 0; m < MUTANTS; m++) {
      uint64_t seed = m * 1000 + (uint64_t)p;
      for (uint32_t faults = 1 + draw(&seed, 2); faults > 0; faults--) {
        mutate(plan, &seed);
      }
      polyccl_sim_options options = POLYCCL_SIM_DEFAULTS;
      options.bytes = 1 << 16;
      options.micro_batches = 1 + (int32_t)draw(&seed, 3);
      options.order = (int32_t)draw(&seed, 2);
      options.keep = draw(&seed, 8);
      polyccl_simulation *s = NULL;
      polyccl_result result = polyccl_simulate(plan, t, &options, &s);
      if (result == POLYCCL_SUCCESS) {
        assert_true(s->time > 0);
        ended++;
      } else {
        assert_int_equal(result, POLYCCL_ERROR_INVALID);
        assert_null(s);
        refused++;
      }
      polyccl_simulation_destroy(s);
      memcpy(plan->step, steps, bytes);
      memcpy(plan->wait, waits, plan->waits * sizeof *waits);
      memcpy(plan->connection, connections, plan->connections * sizeof *connections);
      memcpy(plan->tb, tbs, plan->tbs * sizeof *tbs);
    }
    free(steps);
    free(waits);
    free(connections);
    free(tbs);
    polyccl_topology_destroy(t);
    polyccl_plan_destroy(plan);
  }
  assert_true(ended > 100 && refused > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(faults_are_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
