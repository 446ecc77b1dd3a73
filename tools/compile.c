/* polyccl compile: compiles a program, or converts a plan. */
#include <stdio.h>

#include <polyccl/compile.h>

#include "base/clock.h"
#include "base/error.h"
#include "compile.h"
#include "option.h"
#include "output.h"
#include "plan/plan.h"
#include "program_args.h"
#include "sizes.h"
#include "tools.h"

typedef struct compile_args {
  pccl_program_args program;
  polyccl_compile_options options;
  bool tuned; /* an option was given that only the compiler uses */
  polyccl_format format;
  const char *output;   /* NULL: standard output */
  const char *topology; /* NULL: none */
  int policy, seconds;
  bool set, in_place, out_of_place, either_place, timings;
  pccl_sizes sizes; /* min 0: not given */
} compile_args;

enum { POLICY_SET = 2 }; /* an index of policy_words; the others are polyccl_policy's */
static const char *const policy_words[] = {
    [POLYCCL_POLICY_CONNECTION] = "connection", [POLYCCL_POLICY_STATE] = "state", [POLICY_SET] = "set", NULL};

/* Options that only the compiler uses; with one of them a plan is compiled again. */
#define TUNES .given = offsetof(compile_args, tuned)
static const pccl_tool_option compile_options[] = {
    PCCL_PROGRAM_OPTIONS(compile_args),
    PCCL_OUTPUT_OPTION(compile_args, output),
    {.name = "--format",
     .value = "plan|xml|azure|rccl",
     .help = "Write plan text (default), MSCCL XML for microsoft/msccl, XML for the Azure executor, or XML "
             "for RCCL since ROCm 6.1, for which fused steps are split. A plan that exceeds a limit of its "
             "target is an error that names the limit and the remedy. Warnings on standard error say what the"
             " file cannot.",
     .takes = PCCL_TAKES_WORD,
     .at = offsetof(compile_args, format),
     .words = pccl_format_words},
    {.name = "--in-place",
     .help = "Compile for one buffer that is input and output, whatever the program says.",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(compile_args, in_place),
     TUNES},
    {.name = "--out-of-place",
     .help = "Compile for two buffers, whatever the program says.",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(compile_args, out_of_place),
     TUNES},
    {.name = "--either-place",
     .help = "Compile for two buffers, so that a program written in place also runs without a copy on ranks "
             "whose buffers are one.",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(compile_args, either_place),
     TUNES},
    {.name = "--policy",
     .value = "connection|state|set",
     .help = "Choose how thread blocks and channels are assigned. connection assigns them to connections as "
             "MSCCLang does (default). state schedules tasks and shares thread blocks as ResCCL does; it "
             "needs --topology. set compiles in several ways, simulates each over a range of sizes, and "
             "writes the best plan of each range to the folder that -o names (NAME-in-place-0.plan, -1 and so"
             " on), where they replace an earlier set of that name; polyccl run and the library choose among "
             "them by the size of a call.",
     .takes = PCCL_TAKES_WORD,
     .at = offsetof(compile_args, policy),
     .words = policy_words,
     TUNES},
    {.name = "--schedule",
     .value = "hpds|round-robin|best",
     .help = "Choose the order of tasks (policy state). best searches and judges each order with the simulator.",
     .takes = PCCL_TAKES_WORD,
     .at = offsetof(compile_args, options.schedule),
     .words = pccl_schedule_words,
     TUNES},
    {.name = "--topology",
     .value = "MACHINE|FILE",
     .help = "Schedule for this machine (policies state and set). polyccl topology --list prints the machines.",
     .takes = PCCL_TAKES_TEXT,
     .expects = "a machine or a file",
     .at = offsetof(compile_args, topology),
     TUNES},
    {.name = "--max-tb",
     .value = "N",
     .help = "Use at most N thread blocks on a rank (policies state and set).",
     .takes = PCCL_TAKES_NUMBER,
     .at = offsetof(compile_args, options.max_tbs),
     .min = 0,
     .max = 65535,
     TUNES},
    {.name = "--size",
     .value = "MIN[:MAX]",
     .help = "Optimise for a call of MIN bytes (schedule best), or for calls from MIN to MAX bytes (policy "
             "set; default 1k:1g).",
     .takes = PCCL_TAKES_SIZES,
     .at = offsetof(compile_args, sizes),
     TUNES},
    {.name = "--seconds",
     .value = "N",
     .help = "Search for N seconds (schedule best); policy set makes several such searches.",
     .takes = PCCL_TAKES_NUMBER,
     .at = offsetof(compile_args, seconds),
     .min = 0,
     .max = 3600,
     TUNES},
    {.name = "--instances",
     .value = "N",
     .help = "Make N copies of the program, each on its part of the data, whatever the program says.",
     .takes = PCCL_TAKES_NUMBER,
     .at = offsetof(compile_args, options.instances),
     .min = 0,
     .max = 65536,
     TUNES},
    {.name = "--no-fusion",
     .help = "Do not fuse receives with sends (policy connection).",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(compile_args, options.no_fusion),
     TUNES},
    {.name = "--timings",
     .help = "Print the seconds of each phase and the peak memory on standard error.",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(compile_args, timings)},
    {.name = "--dump",
     .value = "PASS",
     .help = "Print the intermediate form after a pass on standard error. The passes are refine, lower, fuse,"
             " channel, order, block, wait and schedule.",
     .takes = PCCL_TAKES_TEXT,
     .expects = "a pass",
     .at = offsetof(compile_args, options.dump),
     TUNES},
    {.name = NULL},
};

static int parse_compile_args(compile_args *args, int argc, char **argv) {
  int status = pccl_tool_parse("compile", compile_options, args, argc, argv);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  if (args->in_place + args->out_of_place + args->either_place > 1) {
    return pccl_tool_usage("compile", "--in-place, --out-of-place and --either-place exclude each other");
  }
  args->set = args->policy == POLICY_SET;
  args->options.policy = args->set ? POLYCCL_POLICY_CONNECTION : (polyccl_policy)args->policy;
  args->options.placement = args->in_place       ? POLYCCL_IN_PLACE
                            : args->out_of_place ? POLYCCL_OUT_OF_PLACE
                            : args->either_place ? POLYCCL_EITHER_PLACE
                                                 : args->options.placement;
  args->options.seconds = args->seconds;
  if (args->set && args->output == NULL) {
    return pccl_tool_usage("compile", "policy set needs a folder (-o FOLDER)");
  }
  if (args->sizes.min != args->sizes.max && !args->set) {
    return pccl_tool_usage("compile", "a range of sizes (--size MIN:MAX) needs --policy set");
  }
  args->options.bytes = args->sizes.min;
  return args->program.path != NULL ? PCCL_EXIT_OK : pccl_tool_missing("compile", "a program or a plan");
}

static void print_caveat(void *context, const char *text) {
  (void)context;
  fprintf(stderr, "polyccl compile: warning: %s\n", text);
}

static int write_out(const polyccl_plan *plan, const compile_args *args) {
  pccl_output output;
  int status = pccl_output_open(&output, "compile", args->output);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  polyccl_result result = polyccl_plan_write(plan, args->format, output.file);
  if (result == POLYCCL_SUCCESS) {
    polyccl_plan_caveats(plan, args->format, print_caveat, NULL);
  }
  return pccl_output_close(&output, result == POLYCCL_SUCCESS ? PCCL_EXIT_OK : pccl_tool_failed("compile", result));
}

/* Verifies a plan and writes it in another format. */
static int convert_plan(const compile_args *args) {
  polyccl_plan *plan = NULL;
  pccl_accept_compile_context context = {args->format, &args->options};
  pccl_accept accept = {pccl_accept_compile, &context};
  polyccl_result result = polyccl_plan_read(args->program.path, &plan);
  result = result == POLYCCL_SUCCESS ? pccl_accept_plan(&accept, plan) : result;
  result = result == POLYCCL_SUCCESS ? polyccl_plan_verify(plan, NULL) : result;
  if (result != POLYCCL_SUCCESS) {
    polyccl_plan_destroy(plan);
    return pccl_tool_failed("compile", result);
  }
  int status = write_out(plan, args);
  polyccl_plan_destroy(plan);
  return status;
}

/* Makes a program of the moves of a plan, to compile it again. */
static polyccl_result program_of_plan(const char *path, const pccl_accept *accept, polyccl_program **program) {
  polyccl_plan *plan = NULL;
  PCCL_TRY(polyccl_plan_read(path, &plan));
  polyccl_result result = pccl_accept_plan(accept, plan);
  result = result == POLYCCL_SUCCESS ? polyccl_program_from_plan(plan, program) : result;
  polyccl_plan_destroy(plan);
  return result;
}

static int compile_program(const compile_args *args, const polyccl_program *program, double load) {
  polyccl_plan *plan = NULL;
  polyccl_compile_options options = args->options;
  polyccl_compile_times times;
  polyccl_result result = POLYCCL_SUCCESS;
  options.times = args->timings ? &times : NULL;
  int status = PCCL_EXIT_OK;
  if (args->set) {
    uint64_t min = args->sizes.min > 0 ? args->sizes.min : 1 << 10;
    uint64_t max = args->sizes.min > 0 ? args->sizes.max : 1 << 30;
    options.times = NULL;
    status = pccl_compile_set(program, &options, min, max, args->output);
  } else {
    result = polyccl_compile(program, &options, &plan);
  }
  if (result == POLYCCL_SUCCESS && options.topology != NULL) {
    pccl_tool_say_assumptions("compile", options.topology);
  }
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("compile", result);
  }
  if (plan == NULL) {
    return status;
  }
  status = write_out(plan, args);
  polyccl_plan_destroy(plan);
  if (args->timings) {
    pccl_compile_print_times(&times, load);
  }
  return status;
}

/* Refuses a program that the format or the topology cannot take before it compiles anything. */
static int load_and_compile(const compile_args *args, bool is_plan) {
  const pccl_program_args *given = &args->program;
  pccl_accept_compile_context context = {args->format, &args->options};
  pccl_accept accept = {pccl_accept_compile, &context};
  double start = pccl_now_seconds();
  polyccl_program *program = NULL;
  polyccl_result result =
      is_plan ? program_of_plan(given->path, &accept, &program)
              : pccl_program_args_load("compile", given->path, given->params, given->count, &accept, &program);
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("compile", result);
  }
  int status = compile_program(args, program, pccl_now_seconds() - start);
  polyccl_program_destroy(program);
  return status;
}

static int compile_file(compile_args *args) {
  bool is_plan;
  polyccl_result result = pccl_is_plan_file(args->program.path, &is_plan);
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("compile", result);
  }
  if (is_plan && args->program.count > 0) {
    return pccl_tool_usage("compile", "%s is a plan; it has no parameters (-p)", args->program.path);
  }
  if (is_plan && !args->tuned) {
    return convert_plan(args);
  }
  polyccl_topology *topology = NULL;
  if (args->topology != NULL) {
    result = polyccl_topology_open(args->topology, &topology);
    if (result != POLYCCL_SUCCESS) {
      return pccl_tool_failed("compile", result);
    }
  }
  args->options.topology = topology;
  int status = load_and_compile(args, is_plan);
  polyccl_topology_destroy(topology);
  return status;
}

static int compile_command(int argc, char **argv) {
  compile_args args = {.options = POLYCCL_COMPILE_DEFAULTS};
  int status = parse_compile_args(&args, argc, argv);
  if (status == PCCL_EXIT_OK) {
    status = compile_file(&args);
  }
  pccl_program_args_free(&args.program);
  return status;
}

const pccl_tool pccl_compile_tool = {
    .name = "compile",
    .usage =
        "PROGRAM|PLAN [-p NAME=VALUE ...] [-o FILE] [--format plan|xml|azure|rccl] [--policy "
        "connection|state|set] [OPTION ...]",
    .summary = "Compile a program to a verified plan.",
    .description =
        "The command compiles a program, verifies the plan and writes it. A plan as input is verified and"
        " written in another format; with an option that marks it as input to the compiler (such as "
        "--policy), its moves are compiled again. Errors name the line of the program.",
    .options = compile_options,
    .run = compile_command,
};
