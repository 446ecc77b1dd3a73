/* polyccl compare: bandwidth over size for several programs, policies, protocols and instances. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/simulator.h>
#include <polyccl/topology.h>

#include "base/error.h"
#include "base/vec.h"
#include "compare.h"
#include "option.h"
#include "output.h"
#include "plan_args.h"
#include "sizes.h"
#include "tools.h"
#include "workers.h"

enum { MAX_CHOICES = 16, MAX_SERIES = 64, ERROR_ROOM = 4096 };

/* A list option; without it one choice, NULL: as the program has it. */
typedef struct choices {
  char *text;
  const char *word[MAX_CHOICES];
  int count;
} choices;

typedef struct series {
  pccl_program_args *program;
  const char *policy, *protocol, *order, *instances;
  char label[160];
  polyccl_plan *plan;
  double *time, *bus; /* by size */
} series;

typedef struct compare_args {
  PCCL_VEC(pccl_program_args) program;
  pccl_program_args common;
  choices policy, protocol, order, instances;
  const char *topology_name, *svg, *title;
  polyccl_schedule schedule;
  pccl_sizes sizes;
  bool has_sizes, times;

  polyccl_topology *topology;
  series series[MAX_SERIES];
  size_t count;
  uint64_t *size;
  size_t size_count;
} compare_args;

/* ---- arguments ---- */

static bool known_policy(const char *word) { return strcmp(word, "connection") == 0 || strcmp(word, "state") == 0; }
static bool known_order(const char *word) {
  return strcmp(word, "batch-major") == 0 || strcmp(word, "task-major") == 0;
}
static bool known_protocol(const char *word) {
  polyccl_protocol protocol;
  return polyccl_protocol_parse(word, &protocol) == POLYCCL_SUCCESS;
}
static bool known_instances(const char *word) {
  uint64_t number;
  return pccl_tool_number(word, 1, 65536, &number);
}

static bool take_list(const char *value, bool (*known)(const char *word), choices *to) {
  free(to->text);
  *to = (choices){.text = strdup(value)};
  char *save = NULL;
  for (char *word = to->text == NULL ? NULL : strtok_r(to->text, ",", &save); word != NULL;
       word = strtok_r(NULL, ",", &save)) {
    if (to->count == MAX_CHOICES || !known(word)) {
      return false;
    }
    to->word[to->count++] = word;
  }
  return to->count > 0;
}

static bool take_policy(void *into, const char *value) {
  compare_args *args = into;
  return take_list(value, known_policy, &args->policy);
}
static bool take_protocol(void *into, const char *value) {
  compare_args *args = into;
  return take_list(value, known_protocol, &args->protocol);
}
static bool take_order(void *into, const char *value) {
  compare_args *args = into;
  return take_list(value, known_order, &args->order);
}
static bool take_instances(void *into, const char *value) {
  compare_args *args = into;
  return take_list(value, known_instances, &args->instances);
}
/* A program, or a parameter of the last one (before the first: of all). */
static bool take_program(void *into, const char *path) {
  compare_args *args = into;
  return pccl_vec_push(&args->program, (pccl_program_args){.path = path});
}
static bool take_parameter(void *into, const char *text) {
  compare_args *args = into;
  size_t programs = args->program.len;
  return pccl_program_args_add(programs > 0 ? &args->program.data[programs - 1] : &args->common, text);
}

static const pccl_tool_option compare_options[] = {
    {.name = "-p",
     .value = "NAME=VALUE",
     .help = PCCL_HELP_PARAMETER,
     .takes = PCCL_TAKES_PARAMETER,
     .take = take_parameter},
    {.name = "", .takes = PCCL_TAKES_PATH, .take = take_program},
    PCCL_TOPOLOGY_OPTION(compare_args, topology_name),
    {.name = "--size",
     .value = "MIN[:MAX[:FACTOR]]",
     .help = "Simulate calls of MIN to MAX bytes of a rank's larger buffer. Each size is FACTOR times the one"
             " before (default 2); +STEP instead of FACTOR adds STEP.",
     .takes = PCCL_TAKES_SIZES,
     .at = offsetof(compare_args, sizes),
     .given = offsetof(compare_args, has_sizes)},
    {.name = "--policy",
     .value = "LIST",
     .help = "Compile programs by the policies connection, state or both (see polyccl compile).",
     .takes = PCCL_TAKES_LIST,
     .expects = "connection or state, or both with a comma",
     .take = take_policy},
    {.name = "--schedule",
     .value = "NAME",
     .help = "Use the schedule hpds, round-robin or best (policy state).",
     .takes = PCCL_TAKES_WORD,
     .at = offsetof(compare_args, schedule),
     .words = pccl_schedule_words},
    {.name = "--protocol",
     .value = "LIST",
     .help = "Use the protocols Simple, LL, LL128 instead of the plan's own.",
     .takes = PCCL_TAKES_LIST,
     .expects = "some of Simple, LL, LL128 with commas",
     .take = take_protocol},
    {.name = "--order",
     .value = "LIST",
     .help = "Use the loop orders batch-major, task-major instead of the plan's own.",
     .takes = PCCL_TAKES_LIST,
     .expects = "batch-major or task-major, or both with a comma",
     .take = take_order},
    {.name = "--instances",
     .value = "LIST",
     .help = "Give the program's parameter instances these values.",
     .takes = PCCL_TAKES_LIST,
     .expects = "numbers from 1 to 65536 with commas",
     .take = take_instances},
    {.name = "--time",
     .help = "Print microseconds instead of bandwidths.",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(compare_args, times)},
    {.name = "--svg",
     .value = "FILE",
     .help = "Draw a chart.",
     .takes = PCCL_TAKES_TEXT,
     .expects = "a file",
     .at = offsetof(compare_args, svg)},
    {.name = "--title",
     .value = "TEXT",
     .help = "Set the title of the chart.",
     .takes = PCCL_TAKES_TEXT,
     .expects = "a text",
     .at = offsetof(compare_args, title)},
    {.name = NULL},
};

static int parse_compare_args(compare_args *args, int argc, char **argv) {
  int status = pccl_tool_parse("compare", compare_options, args, argc, argv);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  if (args->program.len == 0 || args->topology_name == NULL || !args->has_sizes) {
    return pccl_tool_missing("compare", args->program.len == 0        ? "a program or a plan"
                                        : args->topology_name == NULL ? "--topology"
                                                                      : "--size");
  }
  return PCCL_EXIT_OK;
}

/* ---- series ---- */

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

static void add_word(char *label, size_t room, const char *word) {
  size_t used = strlen(label);
  if (word != NULL && used < room) {
    snprintf(label + used, room - used, "%s%s", used > 0 ? " " : "", word);
  }
}

/* What tells a series from the others: its program, its parameters, what lists chose. */
static void name_series(series *s) {
  const char *name = base_name(s->program->path);
  snprintf(s->label, sizeof s->label, "%.*s", (int)strcspn(name, "."), name);
  for (size_t i = 0; i < s->program->count; i++) {
    char text[64];
    snprintf(text, sizeof text, "%s=%s", s->program->params[i].name, s->program->params[i].value);
    add_word(s->label, sizeof s->label, text);
  }
  char instances[32];
  snprintf(instances, sizeof instances, "x%s", s->instances != NULL ? s->instances : "");
  add_word(s->label, sizeof s->label, s->instances != NULL ? instances : NULL);
  add_word(s->label, sizeof s->label, s->policy);
  add_word(s->label, sizeof s->label, s->protocol);
  add_word(s->label, sizeof s->label, s->order);
}

static int count_choices(const choices *list) { return list->count > 0 ? list->count : 1; }
static const char *choice_word(const choices *list, int index) { return list->count > 0 ? list->word[index] : NULL; }

static int make_series(compare_args *args) {
  int combinations = count_choices(&args->policy) * count_choices(&args->protocol) * count_choices(&args->order) *
                     count_choices(&args->instances);
  if (args->program.len > (size_t)(MAX_SERIES / combinations)) {
    return pccl_tool_usage("compare", "%zu programs in %d combinations are more than %d curves", args->program.len,
                           combinations, MAX_SERIES);
  }
  for (size_t p = 0; p < args->program.len; p++) {
    for (int c = 0; c < combinations; c++) {
      int rest = c;
      series *s = &args->series[args->count++];
      s->program = &args->program.data[p];
      s->protocol = choice_word(&args->protocol, rest % count_choices(&args->protocol));
      rest /= count_choices(&args->protocol);
      s->order = choice_word(&args->order, rest % count_choices(&args->order));
      rest /= count_choices(&args->order);
      s->instances = choice_word(&args->instances, rest % count_choices(&args->instances));
      rest /= count_choices(&args->instances);
      s->policy = choice_word(&args->policy, rest);
      name_series(s);
    }
  }
  return PCCL_EXIT_OK;
}

static polyccl_result allocate_results(compare_args *args) {
  args->size_count = pccl_sizes_count(&args->sizes);
  args->size = pccl_array(args->size_count, sizeof *args->size);
  if (args->size == NULL) {
    return pccl_no_memory("sizes");
  }
  uint64_t at = args->sizes.min;
  for (size_t i = 0; i < args->size_count; i++, pccl_sizes_next(&args->sizes, &at)) {
    args->size[i] = at;
  }
  for (size_t s = 0; s < args->count; s++) {
    args->series[s].time = pccl_zeroed(args->size_count, sizeof(double));
    args->series[s].bus = pccl_zeroed(args->size_count, sizeof(double));
    if (args->series[s].time == NULL || args->series[s].bus == NULL) {
      return pccl_no_memory("results");
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- jobs ---- */

/* Another protocol or loop order is another plan: it needs its own proof, and perhaps a deeper FIFO. */
static polyccl_result override_plan(const series *s, polyccl_plan *plan) {
  if (s->protocol != NULL) {
    PCCL_TRY(polyccl_protocol_parse(s->protocol, &plan->protocol));
  }
  polyccl_loop_order order = s->order == NULL                      ? plan->order
                             : strcmp(s->order, "task-major") == 0 ? POLYCCL_TASK_MAJOR
                                                                   : POLYCCL_BATCH_MAJOR;
  if (order == plan->order) {
    return POLYCCL_SUCCESS;
  }
  plan->order = order;
  plan->fifo_depth = 0;
  polyccl_verify_report report;
  PCCL_TRY(polyccl_plan_verify(plan, &report));
  plan->fifo_depth = report.fifo_depth;
  return POLYCCL_SUCCESS;
}

static polyccl_result compile_job(void *context, size_t index) {
  compare_args *args = context;
  series *s = &args->series[index];
  size_t common = args->common.count, own = s->program->count;
  polyccl_param *params = pccl_array(common + own + 1, sizeof *params);
  if (params == NULL) {
    return pccl_no_memory("parameters");
  }
  for (size_t i = 0; i < common + own; i++) {
    params[i] = i < common ? args->common.params[i] : s->program->params[i - common];
  }
  if (s->instances != NULL) {
    params[common + own] = (polyccl_param){"instances", s->instances};
  }
  pccl_program_args program = {.path = s->program->path,
                               .params = params,
                               .count = common + own + (s->instances != NULL),
                               .accept = {pccl_accept_on, args->topology}};
  polyccl_compile_options how = {.size = sizeof(polyccl_compile_options),
                                 .schedule = args->schedule,
                                 .topology = args->topology,
                                 .bytes = args->sizes.max};
  how.policy = s->policy != NULL && strcmp(s->policy, "state") == 0 ? POLYCCL_POLICY_STATE : POLYCCL_POLICY_CONNECTION;
  polyccl_result result = pccl_plan_args_compile("compare", &program, &how, &s->plan);
  free(params);
  if (result == POLYCCL_SUCCESS) {
    result = override_plan(s, s->plan);
  }
  return result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "%s: ", s->label);
}

/* The largest sizes take longest: first. */
static polyccl_result simulate_job(void *context, size_t index) {
  compare_args *args = context;
  size_t size = args->size_count - 1 - index / args->count;
  series *s = &args->series[index % args->count];
  polyccl_sim_options how = POLYCCL_SIM_DEFAULTS;
  how.bytes = args->size[size];
  polyccl_simulation *simulation = NULL;
  polyccl_result result = polyccl_simulate(s->plan, args->topology, &how, &simulation);
  if (result != POLYCCL_SUCCESS) {
    return pccl_prefix(result, "%s: ", s->label);
  }
  s->time[size] = simulation->time;
  s->bus[size] = simulation->bus;
  polyccl_simulation_destroy(simulation);
  return POLYCCL_SUCCESS;
}

/* ---- results ---- */

static void print_table(const compare_args *args) {
  printf("# %s on %s\n", args->times ? "time, us" : "bus bandwidth, GB/s", args->topology->name);
  for (size_t s = 0; s < args->count; s++) {
    printf("# %2zu  %s\n", s + 1, args->series[s].label);
  }
  printf("#       size B");
  for (size_t s = 0; s < args->count; s++) {
    printf("  %10zu", s + 1);
  }
  putchar('\n');
  for (size_t i = 0; i < args->size_count; i++) {
    printf("%14llu", (unsigned long long)args->size[i]);
    for (size_t s = 0; s < args->count; s++) {
      printf("  %10.3f", args->times ? args->series[s].time[i] : args->series[s].bus[i]);
    }
    putchar('\n');
  }
}

static int write_chart(const compare_args *args) {
  pccl_curve curve[MAX_SERIES];
  for (size_t s = 0; s < args->count; s++) {
    curve[s] = (pccl_curve){args->series[s].label, args->series[s].time, args->series[s].bus};
  }
  char title[128];
  snprintf(title, sizeof title, "%s on %s", polyccl_collective_name(args->series[0].plan->collective),
           args->topology->name);
  pccl_chart chart = {.title = args->title != NULL ? args->title : title,
                      .curve = curve,
                      .curves = args->count,
                      .size = args->size,
                      .sizes = args->size_count};
  pccl_output output;
  int status = pccl_output_open(&output, "compare", args->svg);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  polyccl_result result = pccl_chart_write(&chart, output.file);
  return pccl_output_close(&output, result == POLYCCL_SUCCESS ? PCCL_EXIT_OK : pccl_tool_failed("compare", result));
}

static int run_jobs(const char *what, size_t count, pccl_job job, compare_args *args) {
  char error[ERROR_ROOM] = "";
  polyccl_result result = pccl_run_jobs(what, count, job, args, error, sizeof error);
  if (result == POLYCCL_SUCCESS) {
    return PCCL_EXIT_OK;
  }
  (void)pccl_fail(result, "%s", error); /* what another thread said is now this one's */
  return pccl_tool_failed("compare", result);
}

static int compare_series(compare_args *args) {
  int status = make_series(args);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  polyccl_result result = polyccl_topology_open(args->topology_name, &args->topology);
  if (result == POLYCCL_SUCCESS) {
    result = allocate_results(args);
  }
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("compare", result);
  }
  status = run_jobs("compiling", args->count, compile_job, args);
  if (status == PCCL_EXIT_OK) {
    status = run_jobs("simulating", args->count * args->size_count, simulate_job, args);
  }
  if (status == PCCL_EXIT_OK) {
    print_table(args);
    pccl_tool_say_assumptions("compare", args->topology);
    status = args->svg != NULL ? write_chart(args) : PCCL_EXIT_OK;
  }
  return status;
}

static void free_args(compare_args *args) {
  for (size_t s = 0; s < args->count; s++) {
    polyccl_plan_destroy(args->series[s].plan);
    free(args->series[s].time);
    free(args->series[s].bus);
  }
  for (size_t p = 0; p < args->program.len; p++) {
    pccl_program_args_free(&args->program.data[p]);
  }
  choices *lists[] = {&args->policy, &args->protocol, &args->order, &args->instances};
  for (int i = 0; i < 4; i++) {
    free(lists[i]->text);
  }
  pccl_program_args_free(&args->common);
  polyccl_topology_destroy(args->topology);
  free(args->program.data);
  free(args->size);
  free(args);
}

static int compare_command(int argc, char **argv) {
  compare_args *args = pccl_zeroed(1, sizeof *args);
  if (args == NULL) {
    return pccl_tool_failed("compare", pccl_no_memory("arguments"));
  }
  int status = parse_compare_args(args, argc, argv);
  if (status == PCCL_EXIT_OK) {
    status = compare_series(args);
  }
  free_args(args);
  return status;
}

const pccl_tool pccl_compare_tool = {
    .name = "compare",
    .usage = "PROGRAM|PLAN [-p NAME=VALUE ...] ... --topology MACHINE|FILE --size MIN[:MAX[:FACTOR]] [OPTION ...]",
    .summary = "Simulate several programs over a range of sizes and print their bandwidths side by side.",
    .description =
        "A parameter belongs to the program before it; a parameter before the first program belongs to "
        "all. A LIST has commas between its words; each program is simulated with every combination of "
        "the lists' words.",
    .options = compare_options,
    .run = compare_command,
};
