/* The curves of polyccl compare: what each compiles and how long it takes at each size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/simulator.h>

#include "base/error.h"
#include "compare.h"
#include "plan_args.h"
#include "tools.h"
#include "workers.h"

enum { ERROR_ROOM = 4096 };

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

/* The label says what distinguishes a series: its program, its parameters, and the words from the lists. */
static void name_series(pccl_series *s) {
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

static int count_choices(const pccl_choices *list) { return list->count > 0 ? list->count : 1; }
static const char *choice_word(const pccl_choices *list, int index) {
  return list->count > 0 ? list->word[index] : NULL;
}

static int make_series(pccl_compare_args *args) {
  int combinations = count_choices(&args->policy) * count_choices(&args->protocol) * count_choices(&args->order) *
                     count_choices(&args->instances);
  if (args->program.len > (size_t)(PCCL_COMPARE_MAX_SERIES / combinations)) {
    return pccl_tool_usage("compare", "%zu programs in %d combinations are more than %d curves", args->program.len,
                           combinations, PCCL_COMPARE_MAX_SERIES);
  }
  for (size_t p = 0; p < args->program.len; p++) {
    for (int c = 0; c < combinations; c++) {
      int rest = c;
      pccl_series *s = &args->series[args->count++];
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

static polyccl_result allocate_results(pccl_compare_args *args) {
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

static polyccl_result override_plan(const pccl_series *s, polyccl_plan *plan) {
  if (s->protocol != NULL) {
    PCCL_TRY(polyccl_protocol_parse(s->protocol, &plan->protocol));
  }
  if (s->order == NULL) {
    return POLYCCL_SUCCESS;
  }
  return pccl_plan_set_order(plan, strcmp(s->order, "task-major") == 0 ? POLYCCL_TASK_MAJOR : POLYCCL_BATCH_MAJOR);
}

static polyccl_result compile_job(void *context, size_t index) {
  pccl_compare_args *args = context;
  pccl_series *s = &args->series[index];
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

/* The largest sizes come first, since they take longest. */
static polyccl_result simulate_job(void *context, size_t index) {
  pccl_compare_args *args = context;
  size_t size = args->size_count - 1 - index / args->count;
  pccl_series *s = &args->series[index % args->count];
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

static int run_jobs(const char *what, size_t count, pccl_job job, pccl_compare_args *args) {
  char error[ERROR_ROOM] = "";
  polyccl_result result = pccl_run_jobs(what, count, job, args, error, sizeof error);
  if (result == POLYCCL_SUCCESS) {
    return PCCL_EXIT_OK;
  }
  (void)pccl_fail(result, "%s", error); /* the message came from another thread */
  return pccl_tool_failed("compare", result);
}

int pccl_compare_run(pccl_compare_args *args) {
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
  return status;
}

void pccl_compare_free(pccl_compare_args *args) {
  for (size_t s = 0; s < args->count; s++) {
    polyccl_plan_destroy(args->series[s].plan);
    free(args->series[s].time);
    free(args->series[s].bus);
  }
  for (size_t p = 0; p < args->program.len; p++) {
    pccl_program_args_free(&args->program.data[p]);
  }
  pccl_choices *lists[] = {&args->policy, &args->protocol, &args->order, &args->instances};
  for (int i = 0; i < 4; i++) {
    free(lists[i]->text);
  }
  pccl_program_args_free(&args->common);
  polyccl_topology_destroy(args->topology);
  free(args->program.data);
  free(args->size);
}
