/* speed MACHINE BATCHES PROGRAM [name=value ...]: simulates the program's plan at 64 MiB and prints a row of a table:
 * ranks, steps, step executions, seconds of polyccl_simulate() (laying out included, compiling not), millions of step
 * executions a second, events, whether exact, simulated time, peak memory of the process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <polyccl/compile.h>
#include <polyccl/language.h>
#include <polyccl/simulator.h>

#include "base/clock.h"

enum { MOST_PARAMS = 16 };

static int fail(void) {
  fprintf(stderr, "speed: %s\n", polyccl_last_error());
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 4 || argc - 4 > MOST_PARAMS) {
    fprintf(stderr, "usage: speed MACHINE BATCHES PROGRAM [name=value ...]\n");
    return 2;
  }
  polyccl_param params[MOST_PARAMS];
  for (int i = 4; i < argc; i++) {
    char *equals = strchr(argv[i], '=');
    if (equals == NULL) {
      fprintf(stderr, "speed: \"%s\" is not name=value\n", argv[i]);
      return 2;
    }
    *equals = '\0';
    params[i - 4] = (polyccl_param){argv[i], equals + 1};
  }
  polyccl_topology *topology;
  polyccl_program *program;
  polyccl_plan *plan;
  if (polyccl_topology_open(argv[1], &topology) != POLYCCL_SUCCESS ||
      polyccl_program_load(argv[3], params, (size_t)argc - 4, &program) != POLYCCL_SUCCESS ||
      polyccl_compile(program, &(polyccl_compile_options){.size = sizeof(polyccl_compile_options), .no_verify = true},
                      &plan) != POLYCCL_SUCCESS) {
    return fail();
  }
  polyccl_program_destroy(program);
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  polyccl_sim_options options = POLYCCL_SIM_DEFAULTS;
  options.bytes = (uint64_t)64 << 20;
  options.micro_batches = atoi(argv[2]);
  double start = pccl_now_seconds();
  polyccl_simulation *s;
  if (polyccl_simulate(plan, topology, &options, &s) != POLYCCL_SUCCESS) {
    return fail();
  }
  double seconds = pccl_now_seconds() - start;
  getrusage(RUSAGE_SELF, &after);
  printf("| %s | %d | %zu | %llu | %.3f | %.2f | %llu | %s | %.1f | %.0f | %.0f |\n", plan->name, plan->ranks,
         plan->steps, (unsigned long long)s->executions, seconds, (double)s->executions / seconds / 1e6,
         (unsigned long long)s->events, s->exact ? "yes" : "no", s->time, (double)before.ru_maxrss / 1024,
         (double)after.ru_maxrss / 1024);
  polyccl_simulation_destroy(s);
  polyccl_plan_destroy(plan);
  polyccl_topology_destroy(topology);
  return 0;
}
