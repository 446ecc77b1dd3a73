/* Schedule "best": which order and which thread blocks are best depends on the program, the topology and the size. This
 * tries many and lets the simulator judge each on the very plan:
 *
 *   HPDS         as published, and on finer cuts of the chunks, which overlap the phases of a program
 *   connection   fused steps, micro-batch after micro-batch: what wins where latency counts
 *   list         list scheduling in time (list.c), messages whole or step by step, over cuts, numbers of thread blocks,
 *                priorities, numbers of flows on a link
 *
 * First every kind is tried; then the best list is improved by changing one choice at a time, as long as that helps,
 * then several at random; last, thread blocks are taken away as long as the time stays within a hundredth. Plain HPDS
 * is the first candidate, so the result is never slower there.
 *
 * The search stops after a number of simulated step executions that stands for the time allowed, not at a clock, so
 * that the same call gives the same plan. */
#include <stdlib.h>
#include <string.h>

#include <polyccl/simulator.h>

#include "base/error.h"
#include "base/log.h"
#include "compiler/bound.h"
#include "compiler/flow.h"
#include "compiler/merge.h"
#include "compiler/state.h"

/* What one core does in a second, scheduling and allocation included. */
static const double executions_per_second = 1.5e6;
/* Slower by so much is as good, with fewer thread blocks. */
static const double slack = 1.01;

enum { MOST_NODES = 1 << 20, MOST_CUT = 64, MOST_TBS = 48 };

/* Chains of any length that end at scarce links. */
enum { APART = -1 };

typedef enum trial_kind { TRIAL_HPDS, TRIAL_CONNECTION, TRIAL_LIST } trial_kind;

static const char *const kind_names[] = {"HPDS", "connection", "list"};

typedef struct trial {
  trial_kind kind;
  int32_t instances;
  int32_t hops; /* list: longest chain of fused messages; 1: nothing is fused; 0: no bound; APART */
  int32_t crowd;
  pccl_schedule_rule rule; /* HPDS */
  pccl_list_rule list;
  double time;
  int32_t tbs;
} trial;

typedef struct search {
  const polyccl_program *program;
  const polyccl_compile_options *options;
  uint64_t bytes;
  int32_t wish;                 /* instances of the program as given */
  int32_t most_tbs, device_tbs; /* to offer; resident at once */
  /* The bench: the IR of the trial at hand, with what its kind needs. */
  pccl_ir ir;
  pccl_tasks tasks;
  pccl_flows flows;
  trial built; /* instances 0: none */
  PCCL_VEC(trial) trials;
  pccl_bound bound;
  double budget; /* executions left */
} search;

/* ---- one trial ---- */

static void drop_bench(search *s) {
  if (s->built.instances > 0) {
    pccl_tasks_free(&s->tasks);
    pccl_flows_free(&s->flows);
    pccl_ir_free(&s->ir);
    s->built.instances = 0;
  }
}

/* A trial of HPDS, or of flows of equal chains, leaves the bench fit for the next of its kind. */
static bool bench_fits(const search *s, const trial *t) {
  const trial *b = &s->built;
  return b->instances == t->instances && b->kind == t->kind && t->kind != TRIAL_CONNECTION && b->hops == t->hops &&
         b->crowd == t->crowd;
}

static polyccl_result fill_bench(search *s, const trial *t, bool *fits) {
  PCCL_TRY(pccl_pass_refine(&s->ir, s->options->placement));
  PCCL_TRY(pccl_pass_lower(&s->ir));
  *fits = true;
  if (t->kind == TRIAL_HPDS) {
    return pccl_tasks_build(&s->ir, s->options->topology, &s->tasks);
  }
  if (t->kind == TRIAL_CONNECTION) {
    polyccl_result result = pccl_connection_passes(&s->ir, s->options);
    *fits = result != POLYCCL_ERROR_INVALID && result != POLYCCL_ERROR_LIMIT; /* the author's thread blocks may clash */
    return *fits ? result : POLYCCL_SUCCESS;
  }
  bool cyclic = false;
  if (t->hops == APART) {
    PCCL_TRY(pccl_flows_set_apart(&s->ir, s->options->topology));
    *fits = memchr(s->ir.apart, 1, s->ir.nodes.len) != NULL;
  }
  if (t->hops != 1 && *fits) {
    s->ir.most_hops = t->hops > 0 ? t->hops : 0;
    PCCL_TRY(pccl_pass_fuse(&s->ir));
  }
  if (!*fits) {
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(pccl_flows_build(&s->ir, s->options->topology, s->bytes, t->crowd, &s->flows, &cyclic));
  *fits = !cyclic;
  return POLYCCL_SUCCESS;
}

/* `*fits` false: this program cannot be cut or chained so. */
static polyccl_result build_bench(search *s, const trial *t, bool *fits) {
  *fits = true;
  if (bench_fits(s, t)) {
    return POLYCCL_SUCCESS;
  }
  drop_bench(s);
  s->ir = pccl_ir_of(s->program, t->instances);
  s->tasks = (pccl_tasks){0};
  s->flows = (pccl_flows){0};
  s->built = *t;
  polyccl_result result = fill_bench(s, t, fits);
  s->budget -= (double)s->ir.nodes.len * 0.5;
  if (result != POLYCCL_SUCCESS || !*fits) {
    drop_bench(s);
  }
  return result;
}

/* Leaves the IR ready for emit. */
static polyccl_result schedule(search *s, const trial *t, bool *fits) {
  PCCL_TRY(build_bench(s, t, fits));
  if (!*fits || t->kind == TRIAL_CONNECTION) {
    return POLYCCL_SUCCESS;
  }
  if (t->kind == TRIAL_HPDS) {
    return pccl_state_try(&s->tasks, POLYCCL_SCHEDULE_HPDS, &t->rule, t->rule.max_tbs == 0);
  }
  if (t->list.tbs < s->flows.passes) {
    *fits = false;
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(pccl_schedule_list(&s->flows, &t->list, NULL));
  return pccl_pass_wait(&s->ir);
}

static polyccl_result simulate(search *s, polyccl_plan *plan, trial *t, double *busy) {
  polyccl_sim_options options = POLYCCL_SIM_DEFAULTS;
  polyccl_simulation *simulation = NULL;
  options.bytes = s->bytes;
  if (t->kind == TRIAL_CONNECTION) {
    polyccl_verify_report report;
    PCCL_TRY(polyccl_plan_verify(plan, &report));
    plan->fifo_depth = report.fifo_depth;
  } else {
    plan->fifo_depth = 1; /* what the construction needs; the verifier confirms it for the plan that is chosen */
  }
  PCCL_TRY(polyccl_simulate(plan, s->options->topology, &options, &simulation));
  t->time = simulation->time;
  for (size_t i = 0; busy != NULL && i < simulation->tbs; i++) {
    busy[i] = simulation->tb[i].time[POLYCCL_SIM_BUSY];
  }
  s->budget -= (double)simulation->executions;
  polyccl_simulation_destroy(simulation);
  return POLYCCL_SUCCESS;
}

/* Adds the trial to those that count where it fits; `*fits` says so. */
static polyccl_result try(search *s, trial t, bool *fits) {
  bool possible = false;
  fits = fits != NULL ? fits : &possible;
  PCCL_TRY(schedule(s, &t, fits));
  s->budget -= 1000;
  if (!*fits) {
    return POLYCCL_SUCCESS;
  }
  t.tbs = 0;
  for (int rank = 0; rank < s->ir.spec.ranks; rank++) {
    t.tbs = s->ir.tbs[rank] > t.tbs ? s->ir.tbs[rank] : t.tbs;
  }
  bool allowed = s->options->max_tbs == 0 || t.tbs <= s->options->max_tbs;
  if (s->trials.len > 0 && (!allowed || t.tbs > s->device_tbs)) {
    *fits = false;
    return POLYCCL_SUCCESS;
  }
  polyccl_plan *plan = NULL;
  PCCL_TRY(pccl_pass_emit(&s->ir, &plan));
  polyccl_result result = simulate(s, plan, &t, NULL);
  polyccl_plan_destroy(plan);
  s->budget -= (double)s->ir.nodes.len;
  PCCL_TRY(result);
  PCCL_TRACE(
      "%s: %s x%d: %.1f us, %d thread blocks (chains %d, offered %d, priority %d, overlap %d, window %g, crowd %d)",
      s->program->name, kind_names[t.kind], t.instances, t.time, t.tbs, t.hops, t.list.tbs, (int)t.list.priority,
      (int)t.list.overlap, t.list.window, t.crowd);
  return pccl_vec_push(&s->trials, t) ? POLYCCL_SUCCESS : pccl_no_memory("the search");
}

/* ---- the search ---- */

static double quickest_time(const search *s) {
  double quickest = s->trials.data[0].time;
  for (size_t i = 1; i < s->trials.len; i++) {
    quickest = s->trials.data[i].time < quickest ? s->trials.data[i].time : quickest;
  }
  return quickest;
}

/* As quick as the quickest, and never slower than HPDS as published or any plan of policy "connection". */
static double time_limit(const search *s) {
  double limit = quickest_time(s) * slack;
  for (size_t i = 0; i < s->trials.len; i++) {
    const trial *t = &s->trials.data[i];
    bool published = i == 0 || t->kind == TRIAL_CONNECTION;
    limit = published && t->time < limit ? t->time : limit;
  }
  return limit;
}

/* The quickest; within the slack, the one with fewest thread blocks. */
static const trial *best_of(const search *s) {
  double limit = time_limit(s);
  const trial *best = NULL;
  for (size_t i = 0; i < s->trials.len; i++) {
    const trial *t = &s->trials.data[i];
    if (t->time <= limit && (best == NULL || t->tbs < best->tbs || (t->tbs == best->tbs && t->time < best->time))) {
      best = t;
    }
  }
  return best;
}

/* The quickest list schedule so far; NULL: none. */
static const trial *best_list(const search *s) {
  const trial *best = NULL;
  for (size_t i = 0; i < s->trials.len; i++) {
    const trial *t = &s->trials.data[i];
    if (t->kind == TRIAL_LIST && (best == NULL || t->time < best->time)) {
      best = t;
    }
  }
  return best;
}

static bool cut_fits(const search *s, int32_t cut) {
  const polyccl_program *p = s->program;
  int64_t most = p->input > p->output ? p->input : p->output;
  return cut == 1 || (cut <= MOST_CUT && most * p->refine / p->config.instances * s->wish * cut <= POLYCCL_MAX_CHUNKS &&
                      p->operations.len * (size_t)(s->wish * cut) * 2 <= MOST_NODES);
}

static bool spent(const search *s) { return s->budget <= 0 && s->trials.len > 0; }

static int32_t tbs_to_offer(const search *s) {
  enum { OFFER = 32 };
  int32_t given = s->options->max_tbs, most = s->most_tbs < OFFER ? s->most_tbs : OFFER;
  return given > 0 && given < most ? given : most;
}

static polyccl_result try_lists(search *s, int32_t cut) {
  for (int32_t hops = APART; hops <= 1; hops++) {
    trial t = {.kind = TRIAL_LIST,
               .instances = s->wish * cut,
               .hops = hops,
               .crowd = 1,
               .list = {.tbs = tbs_to_offer(s), .priority = PCCL_LIST_SCARCE, .overlap = hops == 1, .window = 0.5}};
    PCCL_TRY(try(s, t, NULL));
  }
  return POLYCCL_SUCCESS;
}

/* A first look at every kind, whatever it costs: HPDS as published is the measure, policy "connection" must not be
 * missed on any cut (nothing else is tried there), the rest is a start for what follows. */
static polyccl_result try_kinds(search *s) {
  trial hpds = {.instances = s->wish, .rule = {.max_tbs = s->options->max_tbs}};
  PCCL_TRY(try(s, hpds, NULL));
  PCCL_TRY(pccl_bound_of(&s->ir, s->options->topology, s->bytes, s->options->max_tbs, &s->bound));
  static const int32_t copies[] = {1, 2, 4, 8, 16, 24};
  for (size_t i = 0; i < sizeof copies / sizeof copies[0] && cut_fits(s, copies[i]); i++) {
    PCCL_TRY(try(s, (trial){.kind = TRIAL_CONNECTION, .instances = s->wish * copies[i]}, NULL));
  }
  for (int32_t cut = 1; cut_fits(s, cut); cut *= 4) {
    PCCL_TRY(try_lists(s, cut));
    if (cut > 1 && !spent(s)) {
      hpds.instances = s->wish * cut;
      PCCL_TRY(try(s, hpds, NULL));
    }
  }
  return POLYCCL_SUCCESS;
}

static const int32_t tb_steps[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48};
enum { TB_STEPS = sizeof tb_steps / sizeof tb_steps[0] };

/* The variations of a list schedule in one choice; false: no more. */
static bool vary(const search *s, trial *t, int which) {
  static const double windows[] = {0, 0.25, 0.5, 1, 2};
  static const int32_t chains[] = {APART, 0, 1, 2, 4};
  int32_t wish = s->wish;
  enum {
    OVERLAP,
    CROWD,
    COARSER,
    FINER,
    PRIORITY,
    WINDOW = PRIORITY + PCCL_LIST_PRIORITIES,
    CHAIN = WINDOW + 5,
    BLOCKS = CHAIN + 5,
    END = BLOCKS + TB_STEPS
  };
  if (which == OVERLAP) {
    t->list.overlap = !t->list.overlap;
  } else if (which == CROWD) {
    t->crowd = 1 - t->crowd;
  } else if (which == COARSER) {
    t->instances = t->instances > wish ? t->instances / 2 : t->instances;
  } else if (which == FINER) {
    t->instances = cut_fits(s, t->instances / wish * 2) ? t->instances * 2 : t->instances;
  } else if (which < WINDOW) {
    t->list.priority = (pccl_list_priority)(which - PRIORITY);
  } else if (which < CHAIN) {
    t->list.window = windows[which - WINDOW];
  } else if (which < BLOCKS) {
    t->hops = chains[which - CHAIN];
  } else if (which < END) {
    t->list.tbs = tb_steps[which - BLOCKS];
  }
  return which < END;
}

static bool same_choices(const trial *a, const trial *b) {
  return a->kind == b->kind && a->instances == b->instances && a->hops == b->hops && a->crowd == b->crowd &&
         a->list.tbs == b->list.tbs && a->list.priority == b->list.priority && a->list.overlap == b->list.overlap &&
         a->list.window == b->list.window && a->list.shuffle == b->list.shuffle;
}

/* The very same, or the same with more thread blocks offered than are taken anyway. */
static bool tried(const search *s, const trial *t) {
  for (size_t i = 0; i < s->trials.len; i++) {
    const trial *other = &s->trials.data[i];
    trial same = *t;
    if (other->kind == TRIAL_LIST && other->tbs < other->list.tbs && t->list.tbs >= other->tbs) {
      same.list.tbs = other->list.tbs;
    }
    if (same_choices(other, &same)) {
      return true;
    }
  }
  return false;
}

static bool tbs_allowed(const search *s, int32_t tbs) {
  return tbs <= s->most_tbs && (s->options->max_tbs == 0 || tbs <= s->options->max_tbs);
}

/* One choice at a time from the quickest list schedule on, until nothing helps. */
static polyccl_result improve(search *s) {
  for (bool better = true; better && best_list(s) != NULL;) {
    better = false;
    double before = quickest_time(s);
    for (int which = 0; !spent(s); which++) {
      trial t = *best_list(s);
      if (!vary(s, &t, which)) {
        break;
      }
      /* Far fewer thread blocks than now are the last part's business. */
      if (tried(s, &t) || !tbs_allowed(s, t.list.tbs) || 2 * t.list.tbs < best_list(s)->list.tbs) {
        continue;
      }
      PCCL_TRY(try(s, t, NULL));
    }
    better = !spent(s) && quickest_time(s) < before * 0.998;
  }
  return POLYCCL_SUCCESS;
}

/* Two or three choices at once, drawn at random. */
static polyccl_result wander(search *s, double until) {
  enum { CHOICES = 17 + TB_STEPS };
  uint64_t seed = 1;
  for (int failures = 0; s->budget > until && best_list(s) != NULL && failures < 100;) {
    trial t = *best_list(s);
    seed = pccl_mix64(seed);
    vary(s, &t, (int)(seed % CHOICES));
    vary(s, &t, (int)(seed / CHOICES % CHOICES));
    if (seed >> 62 == 0) {
      t.list.shuffle = seed;
    }
    if (tried(s, &t) || !tbs_allowed(s, t.list.tbs) || 2 * t.list.tbs < best_list(s)->list.tbs) {
      failures++;
      continue;
    }
    failures = 0;
    PCCL_TRY(try(s, t, NULL));
  }
  return POLYCCL_SUCCESS;
}

/* Fewer thread blocks at the same time, from few to many, for the quickest ways of chaining. */
static polyccl_result shrink(search *s) {
  if (best_list(s) == NULL) {
    return POLYCCL_SUCCESS;
  }
  trial quickest = *best_list(s);
  double limit = quickest_time(s) * slack;
  for (int hops = 0; hops < 2; hops++) {
    trial t = quickest;
    t.hops = hops == 0 ? quickest.hops : quickest.hops <= 0 ? 1 : 0;
    for (int i = TB_STEPS - 1; i >= 0 && !spent(s); i--) {
      t.list.tbs = tb_steps[i];
      if (t.list.tbs >= best_of(s)->tbs || !tbs_allowed(s, t.list.tbs) || tried(s, &t)) {
        continue;
      }
      size_t count = s->trials.len;
      PCCL_TRY(try(s, t, NULL));
      if (s->trials.len > count && s->trials.data[count].time > limit * 1.05) {
        break;
      }
    }
  }
  return POLYCCL_SUCCESS;
}

/* What merging changes, so that the last merge can be taken back. */
typedef struct blocks {
  int32_t *tb, *channel, *tbs;
} blocks;

static void copy_blocks(pccl_ir *ir, blocks *b, bool back) {
  for (size_t i = 0; i < ir->nodes.len; i++) {
    pccl_node *node = &ir->nodes.data[i];
    *(back ? &node->tb : &b->tb[i]) = back ? b->tb[i] : node->tb;
    *(back ? &node->channel : &b->channel[i]) = back ? b->channel[i] : node->channel;
  }
  memcpy(back ? ir->tbs : b->tbs, back ? b->tbs : ir->tbs, (size_t)ir->spec.ranks * sizeof *ir->tbs);
}

/* Simulates the IR as it is; `busy` (or NULL): what its thread blocks work. */
static polyccl_result time_ir(search *s, trial *t, double *busy) {
  polyccl_plan *plan = NULL;
  PCCL_TRY(pccl_pass_emit(&s->ir, &plan));
  polyccl_result result = simulate(s, plan, t, busy);
  polyccl_plan_destroy(plan);
  return result;
}

/* Up to `count` merges at once; `*done` of them. */
static polyccl_result merge_some(search *s, int32_t count, double *busy, int32_t *done) {
  bool merged = true;
  for (*done = 0; *done < count && merged; *done += merged) {
    PCCL_TRY(pccl_merge_blocks(&s->ir, busy, &merged));
  }
  s->ir.waits.len = 0;
  PCCL_TRY(pccl_channels_of_blocks(&s->ir));
  return pccl_pass_wait(&s->ir);
}

/* Merges thread blocks of the scheduled trial while its time stays: many at once, as many as that goes well, then
 * fewer. */
static polyccl_result merge_while_quick(search *s, trial *t, blocks *b, double *busy) {
  pccl_ir *ir = &s->ir;
  double limit = time_limit(s);
  PCCL_TRY(time_ir(s, t, busy));
  copy_blocks(ir, b, false);
  for (int32_t step = t->tbs / 4 + 1; step > 0 && s->budget > 0;) {
    int32_t done = 0;
    PCCL_TRY(merge_some(s, step, busy, &done));
    trial with = *t;
    polyccl_result result = done > 0 ? time_ir(s, &with, busy) : POLYCCL_SUCCESS;
    bool refused = result == POLYCCL_ERROR_INVALID; /* in batch-major order: a deadlock */
    if (result != POLYCCL_SUCCESS && !refused) {
      return result;
    }
    if (done > 0 && !refused && with.time <= limit) {
      *t = with;
      t->tbs -= done;
      copy_blocks(ir, b, false);
      continue;
    }
    copy_blocks(ir, b, true);
    ir->waits.len = 0;
    PCCL_TRY(pccl_pass_wait(ir));
    step /= 2;
    if (step > 0) {
      PCCL_TRY(time_ir(s, t, busy));
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result merge(search *s, trial *t) {
  if (s->ir.wished != NULL && memchr(s->ir.wished, 1, s->ir.nodes.len) != NULL) {
    return POLYCCL_SUCCESS; /* the author's channels */
  }
  size_t nodes = s->ir.nodes.len, ranks = (size_t)s->ir.spec.ranks, total = 0;
  for (size_t rank = 0; rank < ranks; rank++) {
    total += (size_t)s->ir.tbs[rank];
  }
  blocks b = {pccl_array(nodes, sizeof *b.tb), pccl_array(nodes, sizeof *b.channel), pccl_array(ranks, sizeof *b.tbs)};
  double *busy = pccl_array(total, sizeof *busy);
  polyccl_result result = b.tb != NULL && b.channel != NULL && b.tbs != NULL && busy != NULL
                              ? merge_while_quick(s, t, &b, busy)
                              : pccl_no_memory("the search");
  free(b.tb);
  free(b.channel);
  free(b.tbs);
  free(busy);
  return result;
}

static polyccl_result run(search *s, pccl_ir *ir) {
  double total = s->budget;
  PCCL_TRY(try_kinds(s));
  s->budget = s->budget > total / 2 ? s->budget : total / 2; /* the first look is owed to every program */
  PCCL_TRY(improve(s));
  PCCL_TRY(wander(s, total / 8));
  s->budget = s->budget > total / 8 ? s->budget : total / 8;
  PCCL_TRY(shrink(s));
  trial best = *best_of(s);
  bool fits;
  PCCL_TRY(schedule(s, &best, &fits));
  s->budget = s->budget > total / 8 ? s->budget : total / 8;
  PCCL_TRY(merge(s, &best));
  PCCL_INFO(
      "%s: best of %zu schedules: %.1f us with %d thread blocks per rank (HPDS: %.1f us with %d; no "
      "schedule below %.1f us): %s, instances %d",
      s->program->name, s->trials.len, best.time, best.tbs, s->trials.data[0].time, s->trials.data[0].tbs,
      pccl_bound_time(&s->bound), kind_names[best.kind], best.instances);
  s->ir.times = ir->times;
  *ir = s->ir;
  pccl_tasks_free(&s->tasks);
  pccl_flows_free(&s->flows);
  s->built.instances = 0;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_state_search(pccl_ir *ir, const polyccl_compile_options *options) {
  double seconds = options->seconds > 0 ? options->seconds : 2;
  const polyccl_topology *t = options->topology;
  int32_t most = t->model[t->rank[0].model].max_thread_blocks;
  search s = {.program = ir->program,
              .options = options,
              .wish = options->instances > 0 ? options->instances : ir->program->config.instances,
              .bytes = options->bytes > 0 ? options->bytes : (uint64_t)64 << 20,
              .most_tbs = most < MOST_TBS ? most : MOST_TBS,
              .device_tbs = most,
              .budget = seconds * executions_per_second};
  polyccl_result result = run(&s, ir);
  drop_bench(&s);
  pccl_vec_free(&s.trials);
  return result;
}
