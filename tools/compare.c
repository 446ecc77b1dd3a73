/* polyccl compare: bandwidth over size for several programs, policies, protocols and instances. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compare.h"
#include "option.h"
#include "output.h"
#include "tools.h"

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

static bool take_list(const char *value, bool (*known)(const char *word), pccl_choices *to) {
  free(to->text);
  *to = (pccl_choices){.text = strdup(value)};
  char *save = NULL;
  for (char *word = to->text == NULL ? NULL : strtok_r(to->text, ",", &save); word != NULL;
       word = strtok_r(NULL, ",", &save)) {
    if (to->count == PCCL_COMPARE_MAX_CHOICES || !known(word)) {
      return false;
    }
    to->word[to->count++] = word;
  }
  return to->count > 0;
}

static bool take_policy(void *into, const char *value) {
  pccl_compare_args *args = into;
  return take_list(value, known_policy, &args->policy);
}
static bool take_protocol(void *into, const char *value) {
  pccl_compare_args *args = into;
  return take_list(value, known_protocol, &args->protocol);
}
static bool take_order(void *into, const char *value) {
  pccl_compare_args *args = into;
  return take_list(value, known_order, &args->order);
}
static bool take_instances(void *into, const char *value) {
  pccl_compare_args *args = into;
  return take_list(value, known_instances, &args->instances);
}
/* A program, or a parameter of the last one (before the first: of all). */
static bool take_program(void *into, const char *path) {
  pccl_compare_args *args = into;
  return pccl_vec_push(&args->program, (pccl_program_args){.path = path});
}
static bool take_parameter(void *into, const char *text) {
  pccl_compare_args *args = into;
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
    PCCL_TOPOLOGY_OPTION(pccl_compare_args, topology_name),
    {.name = "--size",
     .value = "MIN[:MAX[:FACTOR]]",
     .help = "Simulate calls of MIN to MAX bytes of a rank's larger buffer. Each size is FACTOR times the one"
             " before (default 2); +STEP instead of FACTOR adds STEP.",
     .takes = PCCL_TAKES_SIZES,
     .at = offsetof(pccl_compare_args, sizes),
     .given = offsetof(pccl_compare_args, has_sizes)},
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
     .at = offsetof(pccl_compare_args, schedule),
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
     .at = offsetof(pccl_compare_args, times)},
    {.name = "--svg",
     .value = "FILE",
     .help = "Draw a chart.",
     .takes = PCCL_TAKES_TEXT,
     .expects = "a file",
     .at = offsetof(pccl_compare_args, svg)},
    {.name = "--title",
     .value = "TEXT",
     .help = "Set the title of the chart.",
     .takes = PCCL_TAKES_TEXT,
     .expects = "a text",
     .at = offsetof(pccl_compare_args, title)},
    {.name = NULL},
};

static int parse_compare_args(pccl_compare_args *args, int argc, char **argv) {
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

/* ---- results ---- */

static void print_table(const pccl_compare_args *args) {
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

static int write_chart(const pccl_compare_args *args) {
  pccl_curve curve[PCCL_COMPARE_MAX_SERIES];
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

static int compare_command(int argc, char **argv) {
  pccl_compare_args *args = pccl_zeroed(1, sizeof *args);
  if (args == NULL) {
    return pccl_tool_failed("compare", pccl_no_memory("arguments"));
  }
  int status = parse_compare_args(args, argc, argv);
  if (status == PCCL_EXIT_OK) {
    status = pccl_compare_run(args);
  }
  if (status == PCCL_EXIT_OK) {
    print_table(args);
    pccl_tool_say_assumptions("compare", args->topology);
    status = args->svg != NULL ? write_chart(args) : PCCL_EXIT_OK;
  }
  pccl_compare_free(args);
  free(args);
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
