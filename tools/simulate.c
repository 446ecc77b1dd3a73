/* polyccl simulate: a program or a plan on a modelled machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/simulator.h>
#include <polyccl/topology.h>

#include "option.h"
#include "output.h"
#include "plan_args.h"
#include "sizes.h"
#include "tools.h"

static const char help[] =
    "usage: polyccl simulate PROGRAM|PLAN [-p name=value ...] --topology MACHINE|FILE --size SIZE [options]\n\n"
    "Runs the plan on a modelled machine (polyccl topology --list) and prints the time, bandwidths, what thread "
    "blocks\n"
    "and links do, and the lines of the program on the critical path. With several sizes: one line for each.\n\n"
    "  --size MIN[:MAX[:FACTOR]] bytes of the larger buffer of a rank; +STEP instead of FACTOR adds\n"
    "  --protocol NAME           Simple, LL, LL128 instead of the plan's own\n"
    "  --order NAME              batch-major or task-major instead of the plan's own\n"
    "  --micro-batches N         instead of as few as make messages fit into FIFO slots\n"
    "  --depth N                 FIFO slots per connection instead of the machine's\n"
    "  --contention X            share of a link lost per thread block beyond those that fill it\n"
    "  --tolerance X             changes of a link's share below this are not passed on; 0: exact max-min fairness\n"
    "                            (default: exact while that is cheap, then 0.03)\n"
    "  --timeline FILE           what every thread block does when, and the use of links, tab-separated\n";

typedef struct simulate_args {
  pccl_program_args program;
  const char *topology, *timeline;
  pccl_sizes sizes;
  bool has_sizes;
  polyccl_sim_options options;
} simulate_args;

static bool take_natural(const char *value, int32_t least, int32_t *number) {
  char *end;
  errno = 0;
  long long parsed = strtoll(value, &end, 10);
  if (end == value || *end != '\0' || errno != 0 || parsed < least || parsed > INT32_MAX) {
    return false;
  }
  *number = (int32_t)parsed;
  return true;
}

static bool take_share(const char *value, double *number) {
  char *end;
  double parsed = strtod(value, &end);
  if (end == value || *end != '\0' || !(parsed >= 0 && parsed <= 1)) {
    return false;
  }
  *number = parsed;
  return true;
}

static bool take_topology(void *into, const char *value) {
  simulate_args *args = into;
  args->topology = value;
  return *value != '\0';
}
static bool take_timeline(void *into, const char *value) {
  simulate_args *args = into;
  args->timeline = value;
  return *value != '\0';
}
static bool take_size(void *into, const char *value) {
  simulate_args *args = into;
  args->has_sizes = pccl_sizes_parse(value, &args->sizes);
  return args->has_sizes;
}
static bool take_protocol(void *into, const char *value) {
  simulate_args *args = into;
  polyccl_protocol protocol;
  bool known = polyccl_protocol_parse(value, &protocol) == POLYCCL_SUCCESS;
  args->options.protocol = known ? (int32_t)protocol : -1;
  return known;
}
static bool take_order(void *into, const char *value) {
  simulate_args *args = into;
  args->options.order = strcmp(value, "task-major") == 0 ? POLYCCL_TASK_MAJOR : POLYCCL_BATCH_MAJOR;
  return args->options.order == POLYCCL_TASK_MAJOR || strcmp(value, "batch-major") == 0;
}
static bool take_batches(void *into, const char *value) {
  simulate_args *args = into;
  return take_natural(value, 1, &args->options.micro_batches);
}
static bool take_depth(void *into, const char *value) {
  simulate_args *args = into;
  return take_natural(value, 1, &args->options.fifo_depth);
}
static bool take_contention(void *into, const char *value) {
  simulate_args *args = into;
  return take_share(value, &args->options.contention);
}
static bool take_tolerance(void *into, const char *value) {
  simulate_args *args = into;
  return take_share(value, &args->options.tolerance);
}

static const pccl_tool_option options[] = {
    {"--topology", "a machine or a file", take_topology},
    {"--size", PCCL_SIZES_WANTED, take_size},
    {"--protocol", "Simple, LL or LL128", take_protocol},
    {"--order", "batch-major or task-major", take_order},
    {"--micro-batches", "a number from 1", take_batches},
    {"--depth", "a number of slots from 1", take_depth},
    {"--contention", "a share from 0 to 1", take_contention},
    {"--tolerance", "a share from 0 to 1", take_tolerance},
    {"--timeline", "a file", take_timeline},
    {NULL, NULL, NULL},
};

static int parse(simulate_args *args, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char *error = NULL;
    int taken = pccl_tool_take("simulate", options, args, argc, argv, &i);
    if (taken < 0) {
      return PCCL_EXIT_INVALID;
    }
    if (taken == 0 && !pccl_program_args_take(&args->program, argc, argv, &i, &error)) {
      return pccl_tool_usage("simulate", "unexpected argument \"%s\"", argv[i]);
    }
    if (error != NULL) {
      return pccl_tool_usage("simulate", "%s", error);
    }
  }
  if (args->program.path == NULL || args->topology == NULL || !args->has_sizes) {
    return pccl_tool_usage("simulate", "%s (polyccl simulate PROGRAM|PLAN --topology T --size S, see --help)",
                           args->program.path == NULL ? "which program or plan?"
                           : args->topology == NULL   ? "on which --topology?"
                                                      : "at which --size?");
  }
  bool several = pccl_sizes_count(&args->sizes) > 1;
  return args->timeline != NULL && several ? pccl_tool_usage("simulate", "--timeline is for one size") : PCCL_EXIT_OK;
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

/* The critical path costs 24 bytes per step execution: beyond this many it is left out. */
static const uint64_t most_critical = 20000000;

static int one_size(const simulate_args *args, const polyccl_plan *plan, const polyccl_topology *topology) {
  polyccl_sim_options o = args->options;
  o.bytes = args->sizes.min;
  o.keep = args->timeline != NULL ? POLYCCL_SIM_TIMELINE | POLYCCL_SIM_LINK_USE : 0;
  uint64_t batches = o.micro_batches > 0 ? (uint64_t)o.micro_batches : 1 + o.bytes / (UINT64_C(1) << 19);
  o.keep |= plan->steps * batches <= most_critical ? POLYCCL_SIM_CRITICAL : 0;
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

/* Another loop order is another plan: it needs its own proof, and perhaps a deeper FIFO. */
static polyccl_result adjust(const simulate_args *args, polyccl_plan *plan) {
  if (args->options.order < 0 || args->options.order == (int32_t)plan->order) {
    return POLYCCL_SUCCESS;
  }
  plan->order = (polyccl_loop_order)args->options.order;
  plan->fifo_depth = 0;
  polyccl_verify_report report;
  polyccl_result result = polyccl_plan_verify(plan, &report);
  plan->fifo_depth = result == POLYCCL_SUCCESS ? report.fifo_depth : 0;
  return result;
}

static int simulate(const simulate_args *args) {
  polyccl_topology *topology = NULL;
  polyccl_plan *plan = NULL;
  polyccl_result result = polyccl_topology_open(args->topology, &topology);
  if (result == POLYCCL_SUCCESS) {
    pccl_program_args program = args->program;
    program.accept = (pccl_accept){pccl_accept_on, topology};
    result = pccl_plan_args_load(&program, &plan);
  }
  if (result == POLYCCL_SUCCESS) {
    result = adjust(args, plan);
  }
  int status;
  if (result != POLYCCL_SUCCESS) {
    status = pccl_tool_failed("simulate", result);
  } else if (pccl_sizes_count(&args->sizes) == 1) {
    status = one_size(args, plan, topology);
  } else {
    status = many_sizes(args, plan, topology);
  }
  polyccl_plan_destroy(plan);
  polyccl_topology_destroy(topology);
  return status;
}

int pccl_tool_simulate(int argc, char **argv) {
  if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    fputs(help, stdout);
    return PCCL_EXIT_OK;
  }
  simulate_args args = {.options = POLYCCL_SIM_DEFAULTS};
  int status = parse(&args, argc, argv);
  if (status == PCCL_EXIT_OK) {
    status = simulate(&args);
  }
  pccl_program_args_free(&args.program);
  return status;
}
