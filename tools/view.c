/* polyccl view: draws a plan, a simulation or a trace as a page or a picture. */
#include <stdarg.h>
#include <stdio.h>

#include <polyccl/simulator.h>
#include <polyccl/topology.h>
#include <polyccl/trace.h>

#include "base/error.h"
#include "option.h"
#include "output.h"
#include "plan_args.h"
#include "sizes.h"
#include "tools.h"
#include "view/page.h"
#include "view/pictures.h"
#include "view/simulated.h"

enum { MAX_FACTS = 12 };

typedef struct view_args {
  pccl_program_args program;
  const char *topology, *trace_in, *trace_out, *output;
  uint64_t bytes;
  int protocol; /* -1: the plan's */
  int micro_batches;
  bool svg;
  int chunk, rank; /* -1: not given */
} view_args;

typedef struct viewed {
  polyccl_plan *plan;
  polyccl_topology *topology;
  polyccl_trace *simulated, *measured;
  pccl_fact facts[MAX_FACTS];
  size_t fact_count;
} viewed;

/* ---- arguments ---- */

static const pccl_tool_option view_options[] = {
    PCCL_PROGRAM_OPTIONS(view_args),
    PCCL_TOPOLOGY_OPTION(view_args, topology),
    {.name = "--size",
     .value = "SIZE",
     .help = "Simulate a call of SIZE bytes of a rank's larger buffer (default 1m).",
     .takes = PCCL_TAKES_SIZE,
     .expects = "a number of bytes",
     .at = offsetof(view_args, bytes),
     .max = PCCL_MAX_BYTES},
    {.name = "--protocol",
     .value = "NAME",
     .help = PCCL_HELP_PROTOCOL,
     .takes = PCCL_TAKES_NAME,
     .expects = "Simple, LL or LL128",
     .at = offsetof(view_args, protocol),
     .parse_name = pccl_parse_protocol},
    {.name = "--micro-batches",
     .value = "N",
     .help = PCCL_HELP_MICRO_BATCHES,
     .takes = PCCL_TAKES_NUMBER,
     .at = offsetof(view_args, micro_batches),
     .min = 0,
     .max = INT32_MAX},
    {.name = "--trace-in",
     .value = "FILE",
     .help = "Show a trace that polyccl run --trace or another program wrote as Chrome trace events, beside "
             "the simulation if there is one.",
     .takes = PCCL_TAKES_TEXT,
     .expects = "a file",
     .at = offsetof(view_args, trace_in)},
    {.name = "--trace",
     .value = "FILE",
     .help = "Write the simulation as Chrome trace events.",
     .takes = PCCL_TAKES_TEXT,
     .expects = "a file",
     .at = offsetof(view_args, trace_out)},
    {.name = "--svg",
     .help = "Draw a picture instead of a page.",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(view_args, svg)},
    {.name = "--chunk",
     .value = "N",
     .help = "Draw the way of chunk N of the larger buffer (with --svg).",
     .takes = PCCL_TAKES_NUMBER,
     .at = offsetof(view_args, chunk),
     .min = 0,
     .max = INT32_MAX},
    {.name = "--rank",
     .value = "R",
     .help = "Draw only rank R, in detail (with --svg).",
     .takes = PCCL_TAKES_NUMBER,
     .at = offsetof(view_args, rank),
     .min = 0,
     .max = INT32_MAX},
    PCCL_OUTPUT_OPTION(view_args, output),
    {.name = NULL},
};

/* Checks which options need or exclude each other. */
static int check_args(const view_args *args) {
  if (args->program.path == NULL && args->trace_in == NULL) {
    return pccl_tool_missing("view", "a plan, a program or --trace-in");
  }
  if (args->program.path == NULL && (args->topology != NULL || args->chunk >= 0)) {
    return pccl_tool_usage("view", "%s needs a plan or a program", args->topology != NULL ? "--topology" : "--chunk");
  }
  if (!args->svg && (args->chunk >= 0 || args->rank >= 0)) {
    return pccl_tool_usage("view", "%s needs --svg", args->chunk >= 0 ? "--chunk" : "--rank");
  }
  if (args->chunk >= 0 && args->rank >= 0) {
    return pccl_tool_usage("view", "--chunk and --rank exclude each other");
  }
  if (args->trace_out != NULL && args->topology == NULL) {
    return pccl_tool_usage("view", "--trace writes a simulation; it needs --topology");
  }
  if (!args->svg && args->topology == NULL && args->trace_in == NULL) {
    return pccl_tool_usage("view",
                           "a page shows times; it needs --topology MACHINE or --trace-in FILE "
                           "(--svg draws a plan without times)");
  }
  return PCCL_EXIT_OK;
}

static int parse_view_args(view_args *args, int argc, char **argv) {
  int status = pccl_tool_parse("view", view_options, args, argc, argv);
  return status == PCCL_EXIT_OK ? check_args(args) : status;
}

/* ---- what is shown ---- */

__attribute__((format(printf, 3, 4))) static void add_fact(viewed *v, const char *term, const char *format, ...) {
  if (v->fact_count < MAX_FACTS) {
    pccl_fact *fact = &v->facts[v->fact_count++];
    va_list arguments;
    va_start(arguments, format);
    snprintf(fact->term, sizeof fact->term, "%s", term);
    vsnprintf(fact->text, sizeof fact->text, format, arguments);
    va_end(arguments);
  }
}

static void add_plan_facts(viewed *v, const polyccl_plan *plan) {
  add_fact(v, "collective", "%s", polyccl_collective_name(plan->collective));
  add_fact(v, "ranks", "%d", plan->ranks);
  add_fact(v, "steps", "%zu", plan->steps);
}

typedef struct accept_view_context {
  const view_args *args;
  const polyccl_topology *topology;
} accept_view_context;

static polyccl_result accept_view(const void *context, const polyccl_program_config *config) {
  const accept_view_context *c = context;
  if (c->args->rank >= config->ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the plan has ranks 0 to %d, not %d", config->ranks - 1, c->args->rank);
  }
  return pccl_accept_on(c->topology, config);
}

static int load_inputs(const view_args *args, viewed *v) {
  polyccl_result result = POLYCCL_SUCCESS;
  if (args->topology != NULL && args->chunk < 0) {
    result = polyccl_topology_open(args->topology, &v->topology);
  }
  if (result == POLYCCL_SUCCESS && args->program.path != NULL) {
    pccl_program_args program = args->program;
    accept_view_context context = {args, v->topology};
    program.accept = (pccl_accept){accept_view, &context};
    result = pccl_plan_args_load("view", &program, &v->plan);
    if (result == POLYCCL_SUCCESS) {
      add_plan_facts(v, v->plan);
    }
  }
  if (result == POLYCCL_SUCCESS && args->trace_in != NULL) {
    result = polyccl_trace_read(args->trace_in, &v->measured);
  }
  return result == POLYCCL_SUCCESS ? PCCL_EXIT_OK : pccl_tool_failed("view", result);
}

static void add_simulation_facts(viewed *v, const view_args *args, const polyccl_simulation *s) {
  add_fact(v, "topology", "%s", args->topology);
  char size[32];
  add_fact(v, "size", "%s", pccl_size_text(s->bytes, size, sizeof size));
  add_fact(v, "protocol", "%s", polyccl_protocol_name(s->protocol));
  add_fact(v, "micro-batches", "%d", s->micro_batches);
  add_fact(v, "time", "%.4g \xC2\xB5s", s->time);
  add_fact(v, "algbw", "%.4g GB/s", s->algorithm);
  add_fact(v, "busbw", "%.4g GB/s", s->bus);
}

static polyccl_result simulate_on(const view_args *args, const polyccl_topology *topology, viewed *v) {
  polyccl_sim_options options = POLYCCL_SIM_DEFAULTS;
  options.bytes = args->bytes;
  options.micro_batches = args->micro_batches;
  options.protocol = args->protocol;
  options.keep = POLYCCL_SIM_TIMELINE | POLYCCL_SIM_LINK_USE | POLYCCL_SIM_CRITICAL;
  polyccl_simulation *simulation = NULL;
  polyccl_result result = polyccl_simulate(v->plan, topology, &options, &simulation);
  if (result == POLYCCL_SUCCESS) {
    add_simulation_facts(v, args, simulation);
    result = pccl_trace_of_simulation(simulation, v->plan, topology, &v->simulated);
    polyccl_simulation_destroy(simulation);
  }
  return result;
}

static int simulate_for_view(const view_args *args, viewed *v) {
  polyccl_result result = simulate_on(args, v->topology, v);
  if (result == POLYCCL_SUCCESS) {
    pccl_tool_say_assumptions("view", v->topology);
  }
  return result == POLYCCL_SUCCESS ? PCCL_EXIT_OK : pccl_tool_failed("view", result);
}

/* ---- writing ---- */

static polyccl_result draw_picture(const view_args *args, const viewed *v, pccl_svg *svg) {
  const polyccl_trace *trace = v->simulated != NULL ? v->simulated : v->measured;
  if (args->chunk >= 0) {
    return pccl_picture_route(svg, v->plan, args->chunk);
  }
  return trace != NULL ? pccl_picture_timeline(svg, trace, args->rank) : pccl_picture_plan(svg, v->plan, args->rank);
}

static polyccl_result write_page(const viewed *v, FILE *to) {
  const polyccl_trace *traces[2];
  size_t count = 0;
  if (v->simulated != NULL) {
    traces[count++] = v->simulated;
  }
  if (v->measured != NULL) {
    traces[count++] = v->measured;
  }
  const char *name = v->plan != NULL ? v->plan->name : v->measured->name;
  return pccl_page_write(name != NULL && name[0] != '\0' ? name : "polyccl", v->facts, v->fact_count, traces, count,
                         to);
}

static int write_picture(const view_args *args, const viewed *v) {
  pccl_svg svg = {0};
  polyccl_result result = args->svg ? draw_picture(args, v, &svg) : POLYCCL_SUCCESS;
  pccl_output output;
  int status =
      result == POLYCCL_SUCCESS ? pccl_output_open(&output, "view", args->output) : pccl_tool_failed("view", result);
  if (status == PCCL_EXIT_OK) {
    if (args->svg) {
      fwrite(svg.out.data, 1, svg.out.len, output.file);
    } else {
      result = write_page(v, output.file);
      status = result == POLYCCL_SUCCESS ? PCCL_EXIT_OK : pccl_tool_failed("view", result);
    }
    status = pccl_output_close(&output, status);
  }
  pccl_text_free(&svg.out);
  return status;
}

static int write_trace(const view_args *args, const viewed *v) {
  pccl_output output;
  int status = pccl_output_open(&output, "view", args->trace_out);
  if (status == PCCL_EXIT_OK) {
    polyccl_result result = polyccl_trace_write(v->simulated, output.file);
    status = pccl_output_close(&output, result == POLYCCL_SUCCESS ? PCCL_EXIT_OK : pccl_tool_failed("view", result));
  }
  return status;
}

/* --trace alone writes only the trace. */
static int write_all(const view_args *args, const viewed *v) {
  int status = args->trace_out != NULL ? write_trace(args, v) : PCCL_EXIT_OK;
  bool picture = args->svg || args->output != NULL || args->trace_out == NULL;
  return status == PCCL_EXIT_OK && picture ? write_picture(args, v) : status;
}

static int view_command(int argc, char **argv) {
  view_args args = {.bytes = 1 << 20, .protocol = -1, .chunk = -1, .rank = -1};
  viewed v = {0};
  int status = parse_view_args(&args, argc, argv);
  if (status == PCCL_EXIT_OK) {
    status = load_inputs(&args, &v);
  }
  if (status == PCCL_EXIT_OK && args.topology != NULL && args.chunk < 0) {
    status = simulate_for_view(&args, &v);
  }
  if (status == PCCL_EXIT_OK) {
    status = write_all(&args, &v);
  }
  polyccl_plan_destroy(v.plan);
  polyccl_topology_destroy(v.topology);
  polyccl_trace_destroy(v.simulated);
  polyccl_trace_destroy(v.measured);
  pccl_program_args_free(&args.program);
  return status;
}

const pccl_tool pccl_view_tool = {
    .name = "view",
    .usage =
        "PLAN|PROGRAM [-p NAME=VALUE ...] [--topology MACHINE|FILE [--size SIZE]] [--trace-in FILE] "
        "[--svg [--chunk N|--rank R]] [--trace FILE] [-o FILE]",
    .summary = "Draw a program, a plan, a simulation or a trace as a page or a picture.",
    .description =
        "A page is one HTML file that needs nothing else. It shows the steps of each thread block over "
        "time, what they wait for, and the use of links; it has search, zoom and details under the "
        "pointer. A picture (--svg) shows the timeline or, if no times are given, the plan, one rank, or "
        "the way of a chunk.",
    .options = view_options,
    .run = view_command,
};
