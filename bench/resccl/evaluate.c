/* evaluate: every case of cases.txt on one machine, compiled by every policy and simulated; one line of tab-separated
 * results for each policy and size on standard output. run.sh calls it for its machines and makes tables.
 *
 *   msccl    connection, fused, batch-major; the quickest of 1, 2, 4, 8 instances at that size
 *   strong   connection; the quickest of fused and unfused, 4 to 24 instances, the device's or 8 FIFO slots at that
 * size rr       state, task-major, round-robin; the quickest of 2, 8, 32 instances hpds     the same in HPDS's order
 *   best     schedule best, compiled for that size
 *   NAME@N   at most N thread blocks on a rank */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/compile.h>
#include <polyccl/language.h>
#include <polyccl/simulator.h>

#include "base/error.h"
#include "base/vec.h"
#include "compiler/bound.h"
#include "workers.h"

enum { MOST_PARAMS = 4 };

static const uint64_t sizes[] = {1 << 20, 16 << 20, 256 << 20, 1 << 30};
enum { SIZES = 4, TUNED = 3, BUDGET_SIZE = 2 }; /* the last size takes the winners of the one before */
static const int budgets[] = {8, 16, 32};
enum { BUDGETS = 3 };

typedef struct bench_case {
  char label[64], program[256];
  polyccl_param params[MOST_PARAMS];
  char text[MOST_PARAMS][32];
  int count;
} bench_case;

typedef struct result {
  double time, busy, idle; /* us; mean share of thread blocks' time; the largest share that one does not work */
  int32_t tbs;             /* of the fullest rank */
  char how[64];
} result;

typedef struct evaluation {
  const char *root, *folder, *machine;
  int nodes, gpus;
  double seconds;
  PCCL_VEC(bench_case) cases;
  char **output; /* [cases] */
} evaluation;

/* What a job works with. */
typedef struct bench {
  const evaluation *e;
  const bench_case *c;
  polyccl_topology *topology;
  polyccl_program *program;
  FILE *out;
} bench;

/* ---- one plan ---- */

static int32_t most_tbs(const polyccl_plan *plan) {
  int32_t most = 0;
  for (int rank = 0; rank < plan->ranks; rank++) {
    most = plan->rank[rank].tbs > most ? plan->rank[rank].tbs : most;
  }
  return most;
}

static polyccl_result simulate(const bench *b, const polyccl_plan *plan, uint64_t bytes, int depth, result *r) {
  polyccl_sim_options how = POLYCCL_SIM_DEFAULTS;
  polyccl_simulation *s;
  how.bytes = bytes;
  how.fifo_depth = depth;
  PCCL_TRY(polyccl_simulate(plan, b->topology, &how, &s));
  *r = (result){.time = s->time, .tbs = most_tbs(plan)};
  for (size_t i = 0; i < s->tbs; i++) {
    double busy = s->tb[i].time[POLYCCL_SIM_BUSY] / s->time;
    r->busy += busy / (double)s->tbs;
    r->idle = 1 - busy > r->idle ? 1 - busy : r->idle;
  }
  polyccl_simulation_destroy(s);
  return POLYCCL_SUCCESS;
}

static void print(const bench *b, uint64_t bytes, const char *policy, const result *r, double bound) {
  fprintf(b->out, "%s\t%s\t%llu\t%s\t%.3f\t%d\t%.4f\t%.4f\t%.3f\t%s\n", b->c->label, b->e->machine,
          (unsigned long long)bytes, policy, r->time, (int)r->tbs, r->busy, r->idle, bound, r->how);
}

/* ---- families: a policy with choices that are tuned ---- */

typedef struct variant {
  polyccl_plan *plan;
  int instances, depth;
  bool unfused;
} variant;

typedef PCCL_VEC(variant) variants;

static void free_variants(variants *v) {
  for (size_t i = 0; i < v->len; i++) {
    if (i == 0 || v->data[i].plan != v->data[i - 1].plan) {
      polyccl_plan_destroy(v->data[i].plan);
    }
  }
  pccl_vec_free(v);
}

/* False where that many copies do not fit the program's or the device's limits. */
static bool compile(const bench *b, const polyccl_compile_options *how, polyccl_plan **plan) {
  if (polyccl_compile(b->program, how, plan) != POLYCCL_SUCCESS) {
    return false;
  }
  if (most_tbs(*plan) > b->topology->model[0].max_thread_blocks) {
    polyccl_plan_destroy(*plan);
    return false;
  }
  return true;
}

/* `strong`: the four largest numbers of instances that the device can hold, fused and not, with the device's FIFO slots
 * and with more. */
static void add_connections(const bench *b, bool strong, variants *v) {
  static const int plain[] = {1, 2, 4, 8}, strongest[] = {24, 16, 8, 4, 2, 1};
  enum { PLAIN = 4, STRONGEST = 6, KEPT = 4, DEEP = 8 };
  for (int unfused = 0; unfused <= (strong ? 1 : 0); unfused++) {
    int kept = 0;
    for (int i = 0; i < (strong ? STRONGEST : PLAIN) && kept < KEPT; i++) {
      int instances = strong ? strongest[i] : plain[i];
      polyccl_compile_options how = {
          .size = sizeof(polyccl_compile_options), .instances = instances, .no_fusion = unfused == 1};
      polyccl_plan *plan;
      if (!compile(b, &how, &plan)) {
        continue;
      }
      kept++;
      (void)pccl_vec_push(v, (variant){plan, instances, 0, unfused == 1});
      if (strong) {
        (void)pccl_vec_push(v, (variant){plan, instances, DEEP, unfused == 1});
      }
    }
  }
}

static void add_states(const bench *b, polyccl_schedule schedule, int max_tbs, variants *v) {
  for (int instances = max_tbs > 0 ? 8 : 2; instances <= 32; instances *= max_tbs > 0 ? 2 : 4) {
    polyccl_compile_options how = {.size = sizeof(polyccl_compile_options),
                                   .policy = POLYCCL_POLICY_STATE,
                                   .schedule = schedule,
                                   .topology = b->topology,
                                   .max_tbs = max_tbs,
                                   .instances = instances};
    polyccl_plan *plan;
    if (compile(b, &how, &plan)) {
      (void)pccl_vec_push(v, (variant){plan, instances, 0, false});
    }
  }
}

/* The quickest within `most` thread blocks (0: any); NULL: none. */
static polyccl_result quickest(const bench *b, const variants *v, uint64_t bytes, int most, const variant **winner,
                               result *r) {
  *winner = NULL;
  for (size_t i = 0; i < v->len; i++) {
    result one;
    const variant *at = &v->data[i];
    if (most > 0 && most_tbs(at->plan) > most) {
      continue;
    }
    PCCL_TRY(simulate(b, at->plan, bytes, at->depth, &one));
    if (*winner == NULL || one.time < r->time * 0.999 || (one.time < r->time * 1.001 && one.tbs < r->tbs)) {
      *winner = at;
      *r = one;
      snprintf(r->how, sizeof r->how, "x%d%s%s", at->instances, at->unfused ? " unfused" : "",
               at->depth == 4   ? " depth 4"
               : at->depth == 8 ? " depth 8"
                                : "");
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result run_family(const bench *b, const char *name, const variants *v, const double *bound) {
  const variant *winner = NULL;
  result r;
  for (int i = 0; i < TUNED; i++) {
    PCCL_TRY(quickest(b, v, sizes[i], 0, &winner, &r));
    if (winner != NULL) {
      print(b, sizes[i], name, &r, bound[i]);
    }
  }
  for (int i = TUNED; i < SIZES && winner != NULL; i++) {
    result last = r;
    PCCL_TRY(simulate(b, winner->plan, sizes[i], winner->depth, &last));
    snprintf(last.how, sizeof last.how, "%s", r.how);
    print(b, sizes[i], name, &last, bound[i]);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result run_budget(const bench *b, const char *name, int most, const variants *v, double bound) {
  const variant *winner;
  result r;
  char text[32];
  snprintf(text, sizeof text, "%s@%d", name, most);
  PCCL_TRY(quickest(b, v, sizes[BUDGET_SIZE], most, &winner, &r));
  if (winner != NULL) {
    print(b, sizes[BUDGET_SIZE], text, &r, bound);
  }
  return POLYCCL_SUCCESS;
}

/* ---- one case ---- */

static polyccl_result run_best(const bench *b, int most, int from, const double *bound, double bounded) {
  char name[32] = "best";
  if (most > 0) {
    snprintf(name, sizeof name, "best@%d", most);
  }
  for (int i = from; i < (most > 0 ? from + 1 : SIZES); i++) {
    polyccl_compile_options how = {.size = sizeof(polyccl_compile_options),
                                   .policy = POLYCCL_POLICY_STATE,
                                   .schedule = POLYCCL_SCHEDULE_BEST,
                                   .topology = b->topology,
                                   .max_tbs = most,
                                   .bytes = sizes[i],
                                   .seconds = b->e->seconds};
    polyccl_plan *plan = NULL;
    PCCL_TRY(polyccl_compile(b->program, &how, &plan));
    result r;
    polyccl_result status = simulate(b, plan, sizes[i], 0, &r);
    if (status == POLYCCL_SUCCESS) {
      snprintf(r.how, sizeof r.how, "%s, %d chunks", plan->order == POLYCCL_TASK_MAJOR ? "task-major" : "batch-major",
               plan->chunks);
      print(b, sizes[i], name, &r, most > 0 ? bounded : bound[i]);
    }
    polyccl_plan_destroy(plan);
    PCCL_TRY(status);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result find_bounds(const bench *b, double *bound, double *bounded) {
  pccl_ir ir = pccl_ir_of(b->program, NULL, 1);
  pccl_bound at;
  polyccl_result status = pccl_pass_refine(&ir);
  status = status == POLYCCL_SUCCESS ? pccl_pass_lower(&ir) : status;
  for (int i = 0; i < SIZES && status == POLYCCL_SUCCESS; i++) {
    status = pccl_bound_of(&ir, b->topology, sizes[i], 0, &at);
    bound[i] = pccl_bound_time(&at);
  }
  for (int i = 0; i < BUDGETS && status == POLYCCL_SUCCESS; i++) {
    status = pccl_bound_of(&ir, b->topology, sizes[BUDGET_SIZE], budgets[i], &at);
    bounded[i] = pccl_bound_time(&at);
  }
  pccl_ir_free(&ir);
  return status;
}

static polyccl_result run_case(const bench *b) {
  double bound[SIZES], bounded[BUDGETS];
  PCCL_TRY(find_bounds(b, bound, bounded));
  variants msccl = {0}, strong = {0}, rr = {0}, hpds = {0};
  add_connections(b, false, &msccl);
  add_connections(b, true, &strong);
  add_states(b, POLYCCL_SCHEDULE_ROUND_ROBIN, 0, &rr);
  add_states(b, POLYCCL_SCHEDULE_HPDS, 0, &hpds);
  polyccl_result status = run_family(b, "msccl", &msccl, bound);
  status = status == POLYCCL_SUCCESS ? run_family(b, "strong", &strong, bound) : status;
  status = status == POLYCCL_SUCCESS ? run_family(b, "rr", &rr, bound) : status;
  status = status == POLYCCL_SUCCESS ? run_family(b, "hpds", &hpds, bound) : status;
  status = status == POLYCCL_SUCCESS ? run_best(b, 0, 0, bound, 0) : status;
  for (int i = 0; i < BUDGETS && status == POLYCCL_SUCCESS; i++) {
    variants few = {0};
    add_states(b, POLYCCL_SCHEDULE_HPDS, budgets[i], &few);
    status = run_budget(b, "msccl", budgets[i], &msccl, bounded[i]);
    status = status == POLYCCL_SUCCESS ? run_budget(b, "strong", budgets[i], &strong, bounded[i]) : status;
    status = status == POLYCCL_SUCCESS ? run_budget(b, "hpds", budgets[i], &few, bounded[i]) : status;
    status = status == POLYCCL_SUCCESS ? run_best(b, budgets[i], BUDGET_SIZE, bound, bounded[i]) : status;
    free_variants(&few);
  }
  free_variants(&msccl);
  free_variants(&strong);
  free_variants(&rr);
  free_variants(&hpds);
  return status;
}

/* "@synth": FOLDER/synth_NODESxGPUS.json; "@plan FILE": another's plan of 16 ranks. SUCCESS without a program: the case
 * is not for this machine. */
static polyccl_result load(const evaluation *e, const bench_case *c, polyccl_program **program) {
  char path[600];
  polyccl_param params[MOST_PARAMS];
  char values[MOST_PARAMS][16];
  *program = NULL;
  if (strcmp(c->program, "@synth") == 0) {
    snprintf(path, sizeof path, "%s/synth_%dx%d.json", e->folder, e->nodes, e->gpus);
    return polyccl_program_load(path, NULL, 0, program);
  }
  if (strncmp(c->program, "@plan ", 6) == 0) {
    polyccl_plan *plan;
    PCCL_TRY(polyccl_plan_read(c->program + 6, &plan));
    polyccl_result status = POLYCCL_SUCCESS;
    if (plan->ranks == e->nodes * e->gpus && e->gpus == 8) {
      status = polyccl_program_from_plan(plan, program);
    }
    polyccl_plan_destroy(plan);
    return status;
  }
  bool own = strncmp(c->program, "programs/", 9) == 0;
  snprintf(path, sizeof path, "%s/%s%s", e->root, own ? "bench/resccl/" : "", c->program);
  for (int i = 0; i < c->count; i++) {
    const char *value = c->params[i].value;
    int number = *value == 'R' ? e->nodes * e->gpus : *value == 'N' ? e->nodes : *value == 'G' ? e->gpus : atoi(value);
    snprintf(values[i], sizeof values[i], "%d", number);
    params[i] = (polyccl_param){c->params[i].name, values[i]};
  }
  return polyccl_program_load(path, params, (size_t)c->count, program);
}

static polyccl_result job(void *context, size_t index) {
  evaluation *e = context;
  bench b = {.e = e, .c = &e->cases.data[index]};
  size_t length;
  PCCL_TRY(polyccl_topology_open(e->machine, &b.topology));
  b.out = open_memstream(&e->output[index], &length);
  polyccl_result status = b.out != NULL ? load(e, b.c, &b.program) : pccl_no_memory("results");
  if (status == POLYCCL_SUCCESS && b.program != NULL) {
    status = run_case(&b);
  }
  if (status != POLYCCL_SUCCESS) {
    status = pccl_prefix(status, "%s on %s: ", b.c->label, e->machine);
  }
  if (b.out != NULL) {
    fclose(b.out);
  }
  polyccl_program_destroy(b.program);
  polyccl_topology_destroy(b.topology);
  return status;
}

/* ---- cases ---- */

static char *trim(char *text) {
  text += strspn(text, " \t\n");
  size_t length = strlen(text);
  while (length > 0 && strchr(" \t\n", text[length - 1]) != NULL) {
    text[--length] = '\0';
  }
  return text;
}

static bool parse_case(char *line, bench_case *c) {
  char *save = NULL;
  char *label = strtok_r(line, "|", &save), *program = strtok_r(NULL, "|", &save), *params = strtok_r(NULL, "|", &save);
  if (label == NULL || program == NULL) {
    return false;
  }
  snprintf(c->label, sizeof c->label, "%s", trim(label));
  snprintf(c->program, sizeof c->program, "%s", trim(program));
  save = NULL;
  for (char *word = params != NULL ? strtok_r(params, " \t\n", &save) : NULL; word != NULL && c->count < MOST_PARAMS;
       word = strtok_r(NULL, " \t\n", &save)) {
    snprintf(c->text[c->count], sizeof c->text[0], "%s", word);
    c->count++;
  }
  return true;
}

static bool read_cases(evaluation *e, const char *path) {
  char line[512];
  FILE *file = fopen(path, "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    bench_case c = {0};
    if (line[0] != '#' && parse_case(line, &c) && !pccl_vec_push(&e->cases, c)) {
      break;
    }
  }
  for (size_t i = 0; i < e->cases.len; i++) {
    bench_case *c = &e->cases.data[i];
    for (int k = 0; k < c->count; k++) {
      char *equals = strchr(c->text[k], '=');
      if (equals == NULL) {
        return false;
      }
      *equals = '\0';
      c->params[k] = (polyccl_param){c->text[k], equals + 1};
    }
  }
  return file != NULL && fclose(file) == 0 && e->cases.len > 0;
}

int main(int argc, char **argv) {
  evaluation e = {0};
  char error[4096] = "";
  if (argc != 8 || !read_cases(&e, argv[3])) {
    fprintf(stderr, "usage: evaluate ROOT FOLDER CASES MACHINE NODES GPUS SECONDS\n");
    return 2;
  }
  e.root = argv[1];
  e.folder = argv[2];
  e.machine = argv[4];
  e.nodes = atoi(argv[5]);
  e.gpus = atoi(argv[6]);
  e.seconds = atof(argv[7]);
  size_t jobs = e.cases.len;
  e.output = pccl_zeroed(jobs, sizeof *e.output);
  if (e.output == NULL) {
    return 1;
  }
  polyccl_result status = pccl_run_jobs("evaluating", jobs, job, &e, error, sizeof error);
  for (size_t i = 0; i < jobs; i++) {
    fputs(e.output[i] != NULL ? e.output[i] : "", stdout);
    free(e.output[i]);
  }
  free(e.output);
  pccl_vec_free(&e.cases);
  if (status != POLYCCL_SUCCESS) {
    fprintf(stderr, "evaluate: %s\n", error);
  }
  return status == POLYCCL_SUCCESS ? 0 : 1;
}
