/* polyccl calibrate: measures the CPU executor on this machine, writes a topology of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"
#include "calibrate.h"
#include "option.h"
#include "output.h"
#include "run.h"
#include "tools.h"

enum { MIN_BYTES = 1024, MAX_RANKS = 1024, QUICK_CALLS = 20, PASSES = 3 };

typedef struct calibrate_args {
  const char *path;
  int ranks, shared;
  uint64_t max;
  bool quick;
} calibrate_args;

static const pccl_tool_option calibrate_options[] = {
    PCCL_OUTPUT_OPTION(calibrate_args, path),
    {.name = "--ranks",
     .value = "N",
     .help = "Give the topology N ranks. The default is the number of cores.",
     .takes = PCCL_TAKES_NUMBER,
     .at = offsetof(calibrate_args, ranks),
     .min = 1,
     .max = MAX_RANKS},
    {.name = "--alloc",
     .value = "private|shared",
     .help = PCCL_HELP_ALLOC,
     .takes = PCCL_TAKES_WORD,
     .at = offsetof(calibrate_args, shared),
     .words = pccl_alloc_words},
    {.name = "--max",
     .value = "SIZE",
     .help = "Measure calls of up to SIZE bytes (default 64m).",
     .takes = PCCL_TAKES_SIZE,
     .expects = "a number of bytes",
     .at = offsetof(calibrate_args, max),
     .min = MIN_BYTES,
     .max = (uint64_t)MIN_BYTES << 31},
    {.name = "--quick",
     .help = "Make only a few calls for each measurement, to try the command out.",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(calibrate_args, quick)},
    {.name = NULL},
};

/* Measures each size once and keeps the smaller of the new and the previous time. */
static polyccl_result measure_once(const pccl_run_args *run, double *seconds) {
  uint64_t wrong = 0;
  const polyccl_plan *plan = run->plan[0] != NULL ? run->plan[0] : run->plan[1];
  PCCL_TRY(pccl_run_all(run, &wrong));
  if (wrong > 0) {
    return pccl_fail(POLYCCL_ERROR_INTERNAL, "plan \"%s\" computed %llu wrong elements", plan->name,
                     (unsigned long long)wrong);
  }
  int i = 0;
  for (size_t size = run->sizes.min; size <= run->sizes.max; size *= 2, i++) {
    double found = run->seconds[PCCL_RUN_PLACEMENTS * i + plan->inplace];
    seconds[i] = seconds[i] > 0 && seconds[i] < found ? seconds[i] : found;
  }
  return POLYCCL_SUCCESS;
}

/* Measures calls of `plan` from min to max bytes, doubling, and destroys it. Each time is the minimum of several
 * medians, since other work on the machine can only add time. */
static polyccl_result measure_plan(const calibrate_args *args, polyccl_plan *plan, size_t min, size_t max,
                                   double *seconds) {
  size_t bytes = PCCL_RUN_PLACEMENTS * POLYCCL_MAX_RATES * sizeof *seconds;
  double *times = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (times == MAP_FAILED) {
    polyccl_plan_destroy(plan);
    return pccl_fail_errno("no memory shared with the ranks");
  }
  pccl_run_args run = {.sizes = {.min = min, .max = max, .factor = 2},
                       .dtype = POLYCCL_FLOAT32,
                       .op = POLYCCL_SUM,
                       .shared = args->shared != 0,
                       .apart = true,
                       .check = true,
                       .warmup = 2,
                       .size_option = "--max",
                       .iterations = args->quick ? QUICK_CALLS : 0,
                       .seconds = times};
  run.plan[plan->inplace] = plan;
  polyccl_result result = POLYCCL_SUCCESS;
  for (int pass = 0; pass < (args->quick ? 1 : PASSES) && result == POLYCCL_SUCCESS; pass++) {
    result = measure_once(&run, seconds);
  }
  munmap(times, bytes);
  polyccl_plan_destroy(plan);
  return result;
}

static void print_progress(const char *what) {
  if (isatty(STDERR_FILENO)) {
    fprintf(stderr, "measuring %s\n", what);
  }
}

static polyccl_result measure_costs(const calibrate_args *args, pccl_calibration *c) {
  polyccl_plan *plan;
  print_progress("the cost of a call and of a step");
  for (int i = 0; i < 2; i++) {
    PCCL_TRY(pccl_calibrate_copies(i == 0 ? 1 : 1 + PCCL_CALIBRATE_STEPS, &plan));
    PCCL_TRY(measure_plan(args, plan, PCCL_CALIBRATE_BYTES, PCCL_CALIBRATE_BYTES, &c->copies[i]));
  }
  print_progress("latencies");
  for (int p = 0; p < POLYCCL_PROTOCOL_COUNT; p++) {
    PCCL_TRY(pccl_calibrate_hops((polyccl_protocol)p, &plan));
    PCCL_TRY(measure_plan(args, plan, PCCL_CALIBRATE_BYTES, PCCL_CALIBRATE_BYTES, &c->hops[p]));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result measure_rates(const calibrate_args *args, pccl_calibration *c) {
  polyccl_plan *plan;
  for (size_t bytes = MIN_BYTES; bytes <= args->max && c->sizes < POLYCCL_MAX_RATES; bytes *= 2) {
    c->bytes[c->sizes++] = bytes;
  }
  size_t max = c->bytes[c->sizes - 1];
  print_progress("sends");
  for (int p = 0; p < POLYCCL_PROTOCOL_COUNT; p++) {
    PCCL_TRY(pccl_calibrate_transfer((polyccl_protocol)p, false, &plan));
    PCCL_TRY(measure_plan(args, plan, MIN_BYTES, max, c->send[p]));
  }
  print_progress("reductions");
  PCCL_TRY(pccl_calibrate_transfer(POLYCCL_SIMPLE, true, &plan));
  PCCL_TRY(measure_plan(args, plan, MIN_BYTES, max, c->reduce));
  PCCL_TRY(pccl_calibrate_return(&plan));
  PCCL_TRY(measure_plan(args, plan, MIN_BYTES, max, c->forward));
  print_progress("copies");
  PCCL_TRY(pccl_calibrate_copies(1, &plan));
  return measure_plan(args, plan, MIN_BYTES, max, c->local);
}

/* Opens this machine as hwloc sees it. Its links get a bandwidth that never limits, since ranks exchange data through
 * memory, whose limits are in the measured rates. */
static polyccl_result open_host(const calibrate_args *args, polyccl_topology **topology) {
  char spec[32] = "host";
  if (args->ranks > 0) {
    snprintf(spec, sizeof spec, "host:%d", args->ranks);
  }
  PCCL_TRY(polyccl_topology_open(spec, topology));
  polyccl_topology *t = *topology;
  for (size_t i = 0; i < t->links; i++) {
    t->link[i].bandwidth = 10000;
    t->link[i].latency = 0;
  }
  t->model[0].by_reference = args->shared != 0;
  char *source = pccl_strdup("measured by polyccl calibrate, two processes of this machine");
  if (source == NULL) {
    return pccl_no_memory("a topology");
  }
  free(t->source);
  t->source = source;
  return POLYCCL_SUCCESS;
}

static polyccl_result calibrate_topology(const calibrate_args *args, polyccl_topology *t) {
  pccl_calibration c = {0};
  PCCL_TRY(measure_costs(args, &c));
  PCCL_TRY(measure_rates(args, &c));
  print_progress("done; fitting");
  return pccl_calibrate_fit(&c, t);
}

static int calibrate_command(int argc, char **argv) {
  calibrate_args args = {.max = 64 << 20};
  int status = pccl_tool_parse("calibrate", calibrate_options, &args, argc, argv);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  pccl_output output;
  status = pccl_output_open(&output, "calibrate", args.path);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  polyccl_topology *t = NULL;
  polyccl_result result = open_host(&args, &t);
  if (result == POLYCCL_SUCCESS) {
    result = calibrate_topology(&args, t);
  }
  if (result == POLYCCL_SUCCESS) {
    result = polyccl_topology_write_json(t, output.file);
  }
  polyccl_topology_destroy(t);
  return pccl_output_close(&output, result == POLYCCL_SUCCESS ? PCCL_EXIT_OK : pccl_tool_failed("calibrate", result));
}

const pccl_tool pccl_calibrate_tool = {
    .name = "calibrate",
    .usage = "[-o FILE] [--ranks N] [--alloc private|shared] [--max SIZE] [--quick]",
    .summary = "Measure the CPU executor on this machine and write a topology of it.",
    .description =
        "The command measures between two processes what a call and a step cost, the latency of a message"
        " under each protocol, and the rates of sending, reducing and copying at each size. It writes a "
        "topology (JSON) with which polyccl simulate predicts this machine. The measurement takes about "
        "two minutes, during which nothing else should run.",
    .options = calibrate_options,
    .run = calibrate_command,
};
