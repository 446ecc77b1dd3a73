/* polyccl simulate: how long a program or a plan takes on a modelled machine. */
#include <stdio.h>
#include <stdlib.h>

#include <polyccl/simulator.h>
#include <polyccl/topology.h>

#include "option.h"
#include "output.h"
#include "plan_args.h"
#include "sizes.h"
#include "tools.h"

typedef struct simulate_args {
  pccl_program_args program;
  const char *topology, *timeline;
  pccl_sizes sizes;
  bool has_sizes;
  polyccl_sim_options options;
} simulate_args;

static const pccl_tool_option simulate_options[] = {
    PCCL_PROGRAM_OPTIONS(simulate_args),
    PCCL_TOPOLOGY_OPTION(simulate_args, topology),
    {.name = "--size",
     .value = "MIN[:MAX[:FACTOR]]",
     .help = "Simulate calls of MIN to MAX bytes of a rank's larger buffer. Each size is FACTOR times the one"
             " before (default 2); +STEP instead of FACTOR adds STEP.",
     .takes = PCCL_TAKES_SIZES,
     .at = offsetof(simulate_args, sizes),
     .given = offsetof(simulate_args, has_sizes)},
    {.name = "--protocol",
     .value = "NAME",
     .help = PCCL_HELP_PROTOCOL,
     .takes = PCCL_TAKES_NAME,
     .expects = "Simple, LL or LL128",
     .at = offsetof(simulate_args, options.protocol),
     .parse_name = pccl_parse_protocol},
    {.name = "--order",
     .value = "NAME",
     .help = PCCL_HELP_ORDER,
     .takes = PCCL_TAKES_WORD,
     .at = offsetof(simulate_args, options.order),
     .words = pccl_order_words},
    {.name = "--micro-batches",
     .value = "N",
     .help = PCCL_HELP_MICRO_BATCHES,
     .takes = PCCL_TAKES_NUMBER,
     .at = offsetof(simulate_args, options.micro_batches),
     .min = 1,
     .max = INT32_MAX},
    {.name = "--depth",
     .value = "N",
     .help = "Give each connection N FIFO slots instead of the machine's number.",
     .takes = PCCL_TAKES_NUMBER,
     .expects = "a number of slots",
     .at = offsetof(simulate_args, options.fifo_depth),
     .min = 1,
     .max = 4096},
    {.name = "--contention",
     .value = "X",
     .help = "Take the share X of a link's bandwidth away for each thread block beyond those that fill it.",
     .takes = PCCL_TAKES_SHARE,
     .at = offsetof(simulate_args, options.contention)},
    {.name = "--tolerance",
     .value = "X",
     .help = "Ignore changes of a link's share that are smaller than X; 0 is exact max-min fairness. The "
             "default is exact for small plans and 0.03 for large ones.",
     .takes = PCCL_TAKES_SHARE,
     .at = offsetof(simulate_args, options.tolerance)},
    {.name = "--timeline",
     .value = "FILE",
     .help = "Write what every thread block does at which time and the use of links, separated by tabs.",
     .takes = PCCL_TAKES_TEXT,
     .expects = "a file",
     .at = offsetof(simulate_args, timeline)},
    {.name = NULL},
};

static int parse_simulate_args(simulate_args *args, int argc, char **argv) {
  int status = pccl_tool_parse("simulate", simulate_options, args, argc, argv);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  if (args->program.path == NULL || args->topology == NULL || !args->has_sizes) {
    return pccl_tool_missing("simulate", args->program.path == NULL ? "a program or a plan"
                                         : args->topology == NULL   ? "--topology"
                                                                    : "--size");
  }
  bool several = pccl_sizes_count(&args->sizes) > 1;
  return args->timeline != NULL && several
             ? pccl_tool_usage("simulate", "--timeline needs a single --size, not a range")
             : PCCL_EXIT_OK;
}

static int write_timeline(const simulate_args *args, const polyccl_simulation *s, const polyccl_plan *plan) {
  pccl_output output;
  int status = pccl_output_open(&output, "simulate", args->timeline);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  polyccl_result result = polyccl_simulation_write_timeline(s, plan, output.file);
  return pccl_output_close(&output, result == POLYCCL_SUCCESS ? PCCL_EXIT_OK : pccl_tool_failed("simulate", result));
}

/* The critical path needs 24 bytes for each executed step; it is left out beyond this many (480 MB). */
static const uint64_t max_critical = 20000000;

static int one_size(const simulate_args *args, const polyccl_plan *plan, const polyccl_topology *topology) {
  polyccl_sim_options o = args->options;
  o.bytes = args->sizes.min;
  o.keep = args->timeline != NULL ? POLYCCL_SIM_TIMELINE | POLYCCL_SIM_LINK_USE : 0;
  uint64_t batches = o.micro_batches > 0 ? (uint64_t)o.micro_batches : 1 + o.bytes / (UINT64_C(1) << 19);
  o.keep |= plan->steps * batches <= max_critical ? POLYCCL_SIM_CRITICAL : 0;
  polyccl_simulation *s = NULL;
  polyccl_result result = polyccl_simulate(plan, topology, &o, &s);
  int status = PCCL_EXIT_OK;
  if (result == POLYCCL_SUCCESS && args->timeline != NULL) {
    status = write_timeline(args, s, plan);
  }
  if (result == POLYCCL_SUCCESS && status == PCCL_EXIT_OK) {
    result = polyccl_simulation_write(s, plan, topology, stdout);
  }
  polyccl_simulation_destroy(s);
  return result == POLYCCL_SUCCESS ? status : pccl_tool_failed("simulate", result);
}

static void print_row(const polyccl_simulation *s) {
  double busy = 0;
  for (size_t t = 0; t < s->tbs; t++) {
    busy += s->tb[t].time[POLYCCL_SIM_BUSY];
  }
  double whole = s->time * (double)s->tbs;
  printf("%14llu  %12.3f  %10.3f  %10.3f  %7d  %7.1f %%\n", (unsigned long long)s->bytes, s->time, s->algorithm, s->bus,
         s->micro_batches, whole > 0 ? 100 * busy / whole : 0);
}

static int many_sizes(const simulate_args *args, const polyccl_plan *plan, const polyccl_topology *topology) {
  printf("# %s on %s\n", plan->name != NULL ? plan->name : args->program.path, topology->name);
  printf("#       size B       time us  algbw GB/s  busbw GB/s  batches  blocks busy\n");
  polyccl_sim_options o = args->options;
  uint64_t at = args->sizes.min;
  do {
    polyccl_simulation *s = NULL;
    o.bytes = at;
    polyccl_result result = polyccl_simulate(plan, topology, &o, &s);
    if (result != POLYCCL_SUCCESS) {
      return pccl_tool_failed("simulate", result);
    }
    print_row(s);
    polyccl_simulation_destroy(s);
  } while (pccl_sizes_next(&args->sizes, &at));
  return PCCL_EXIT_OK;
}

static int simulate_plan(const simulate_args *args) {
  polyccl_topology *topology = NULL;
  polyccl_plan *plan = NULL;
  polyccl_result result = polyccl_topology_open(args->topology, &topology);
  if (result == POLYCCL_SUCCESS) {
    pccl_program_args program = args->program;
    program.accept = (pccl_accept){pccl_accept_on, topology};
    result = pccl_plan_args_load("simulate", &program, &plan);
  }
  if (result == POLYCCL_SUCCESS && args->options.order >= 0) {
    result = pccl_plan_set_order(plan, (polyccl_loop_order)args->options.order);
  }
  int status;
  if (result != POLYCCL_SUCCESS) {
    status = pccl_tool_failed("simulate", result);
  } else if (pccl_sizes_count(&args->sizes) == 1) {
    status = one_size(args, plan, topology);
  } else {
    status = many_sizes(args, plan, topology);
  }
  if (status == PCCL_EXIT_OK) {
    pccl_tool_say_assumptions("simulate", topology);
  }
  polyccl_plan_destroy(plan);
  polyccl_topology_destroy(topology);
  return status;
}

static int simulate_command(int argc, char **argv) {
  simulate_args args = {.options = POLYCCL_SIM_DEFAULTS};
  int status = parse_simulate_args(&args, argc, argv);
  if (status == PCCL_EXIT_OK) {
    status = simulate_plan(&args);
  }
  pccl_program_args_free(&args.program);
  return status;
}

const pccl_tool pccl_simulate_tool = {
    .name = "simulate",
    .usage = "PROGRAM|PLAN [-p NAME=VALUE ...] --topology MACHINE|FILE --size MIN[:MAX[:FACTOR]] [OPTION ...]",
    .summary = "Simulate a plan on a modelled machine.",
    .description =
        "For one size the command prints the time, the bandwidths, what thread blocks and links do, and "
        "the lines of the program on the critical path. For several sizes it prints one line each.",
    .options = simulate_options,
    .run = simulate_command,
};
