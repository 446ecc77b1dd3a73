/* Schedule "best": which order and which thread blocks are best depends on the program, the topology and the size. The
 * search tries many and lets the simulator judge each on the very plan:
 *
 *   HPDS         as published, and on finer cuts of the chunks, which overlap the phases of a program
 *   connection   fused steps, micro-batch after micro-batch: this wins where latency counts
 *   list         list scheduling in time (list.c), with messages whole or step by step, over cuts, numbers of thread
 *                blocks, priorities and numbers of flows on a link
 *
 * The search tries every kind first. Then it improves the best list by changing one choice at a time, as long as that
 * helps, and several choices at random. Last it takes thread blocks away (shrink.c). Plain HPDS is the first trial, so
 * the result is never slower in the simulator.
 *
 * The search stops after a number of simulated step executions that stands for the time allowed, not at a clock, so
 * that the same call gives the same plan. */
#include "compiler/search.h"

#include "base/error.h"
#include "base/log.h"
#include "compiler/trial.h"

/* A second of options->seconds stands for this many simulated step executions, the unit of the budget. Measured by the
 * processor time of `polyccl compile algorithms/NAME.lua --policy state --topology ndv4:2 --schedule best --seconds
 * 10`: 1.9 s for broadcast_tree to 6.3 s for alltoall_two_step on one core of an Intel Xeon server. So the time
 * allowed is kept on a core that is at least two thirds as fast. */
static const double executions_per_second = 1.5e6;

/* Shares of the budget. The first look at every kind may take all of it; half of it is kept for what follows, and an
 * eighth for each of the two ways to take thread blocks away, which take few trials. */
static const double improve_share = 1.0 / 2, shrink_share = 1.0 / 8;

/* A round over all choices that gains less than 0.2 % is the last, since it costs several tens of trials. */
static const double round_gain = 0.998;

enum {
  MAX_NODES = 1 << 20, /* of a cut program: about 100 MB of IR */
  MAX_CUT = 64,        /* finer cuts only add step costs at the sizes that one call moves */
  MAX_TBS = 48,        /* the last of pccl_tb_steps */
  FIRST_TBS = 32,      /* offered by the first look */
  MAX_FAILURES = 100   /* draws of known choices in a row that end the random part */
};

static bool cut_fits(const pccl_search *s, int32_t cut) {
  const polyccl_program *p = s->program;
  int64_t max = p->input > p->output ? p->input : p->output;
  return cut == 1 ||
         (cut <= MAX_CUT && max * p->refine / p->config.instances * s->instances * cut <= POLYCCL_MAX_CHUNKS &&
          p->operations.len * (size_t)(s->instances * cut) * 2 <= MAX_NODES);
}

/* ---- every kind once ---- */

static int32_t first_tbs(const pccl_search *s) {
  int32_t asked = s->options.max_tbs, max = s->max_tbs < FIRST_TBS ? s->max_tbs : FIRST_TBS;
  return asked > 0 && asked < max ? asked : max;
}

static polyccl_result try_lists(pccl_search *s, int32_t cut) {
  for (int32_t hops = PCCL_HOPS_APART; hops <= 1; hops++) {
    pccl_trial t = {.kind = PCCL_TRIAL_LIST,
                    .instances = s->instances * cut,
                    .hops = hops,
                    .oversubscribed = 1,
                    .list = {.tbs = first_tbs(s), .priority = PCCL_LIST_SCARCE, .overlap = hops == 1, .window = 0.5}};
    PCCL_TRY(pccl_trial_run(s, t));
  }
  return POLYCCL_SUCCESS;
}

/* A first look at every kind, whatever it costs: HPDS as published is the measure, policy "connection" must not be
 * missed on any cut (nothing else is tried there), and the lists are a start for what follows. */
static polyccl_result try_kinds(pccl_search *s) {
  pccl_trial hpds = {.instances = s->instances};
  PCCL_TRY(pccl_trial_run(s, hpds));
  PCCL_TRY(pccl_bound_of(&s->ir, s->options.topology, s->bytes, s->options.max_tbs, &s->bound));
  /* bench/resccl measures against the quickest of up to 24 copies, so that is what must not be missed. */
  static const int32_t copies[] = {1, 2, 4, 8, 16, 24};
  for (size_t i = 0; i < sizeof copies / sizeof copies[0] && cut_fits(s, copies[i]); i++) {
    pccl_trial connection = {.kind = PCCL_TRIAL_CONNECTION, .instances = s->instances * copies[i]};
    PCCL_TRY(pccl_trial_run(s, connection));
  }
  for (int32_t cut = 1; cut_fits(s, cut); cut *= 4) {
    PCCL_TRY(try_lists(s, cut));
    if (cut > 1 && !pccl_search_is_spent(s)) {
      hpds.instances = s->instances * cut;
      PCCL_TRY(pccl_trial_run(s, hpds));
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- variations of a list ---- */

/* Mean durations of a flow: from none to four times the half that docs/scheduling.md found best. */
static const double windows[] = {0, 0.25, 0.5, 1, 2};
static const int32_t chains[] = {PCCL_HOPS_APART, 0, 1, 2, 4};

/* The variations by number: first those of one kind, then the values of each table. */
enum {
  VARY_OVERLAP,
  VARY_OVERSUBSCRIBED,
  VARY_COARSER,
  VARY_FINER,
  VARY_PRIORITY,
  VARY_WINDOW = VARY_PRIORITY + PCCL_LIST_PRIORITIES,
  VARY_CHAIN = VARY_WINDOW + sizeof windows / sizeof windows[0],
  VARY_TBS = VARY_CHAIN + sizeof chains / sizeof chains[0],
  VARIATIONS = VARY_TBS + PCCL_TB_STEPS
};

/* Changes one choice of a list schedule. */
static void vary_trial(const pccl_search *s, pccl_trial *t, int which) {
  if (which == VARY_OVERLAP) {
    t->list.overlap = !t->list.overlap;
  } else if (which == VARY_OVERSUBSCRIBED) {
    t->oversubscribed = 1 - t->oversubscribed;
  } else if (which == VARY_COARSER) {
    t->instances = t->instances > s->instances ? t->instances / 2 : t->instances;
  } else if (which == VARY_FINER) {
    t->instances = cut_fits(s, t->instances / s->instances * 2) ? t->instances * 2 : t->instances;
  } else if (which < VARY_WINDOW) {
    t->list.priority = (pccl_list_priority)(which - VARY_PRIORITY);
  } else if (which < VARY_CHAIN) {
    t->list.window = windows[which - VARY_WINDOW];
  } else if (which < VARY_TBS) {
    t->hops = chains[which - VARY_CHAIN];
  } else {
    t->list.tbs = pccl_tb_steps[which - VARY_TBS];
  }
}

/* Far fewer thread blocks than now are left to shrink.c. */
static bool is_worth_a_trial(const pccl_search *s, const pccl_trial *t) {
  return !pccl_record_has(s, t) && pccl_search_allows(s, t->list.tbs) &&
         2 * t->list.tbs >= pccl_record_best_list(s)->list.tbs;
}

/* Changes one choice at a time from the quickest list schedule on, until nothing helps. */
static polyccl_result improve_list(pccl_search *s) {
  for (bool better = true; better && pccl_record_best_list(s) != NULL;) {
    double before = pccl_record_min_time(s);
    for (int which = 0; which < VARIATIONS && !pccl_search_is_spent(s); which++) {
      pccl_trial t = *pccl_record_best_list(s);
      vary_trial(s, &t, which);
      if (is_worth_a_trial(s, &t)) {
        PCCL_TRY(pccl_trial_run(s, t));
      }
    }
    better = !pccl_search_is_spent(s) && pccl_record_min_time(s) < before * round_gain;
  }
  return POLYCCL_SUCCESS;
}

/* Changes two choices at once, and in one of four trials the order of ties too, drawn from a fixed seed, until the
 * budget has fallen to `until`. */
static polyccl_result improve_at_random(pccl_search *s, double until) {
  uint64_t draw = 1;
  for (int failures = 0; s->budget > until && pccl_record_best_list(s) != NULL && failures < MAX_FAILURES;) {
    pccl_trial t = *pccl_record_best_list(s);
    draw = pccl_mix64(draw);
    vary_trial(s, &t, (int)(draw % VARIATIONS));
    vary_trial(s, &t, (int)(draw / VARIATIONS % VARIATIONS));
    if (draw >> 62 == 0) {
      t.list.shuffle = draw;
    }
    failures++;
    if (is_worth_a_trial(s, &t)) {
      failures = 0;
      PCCL_TRY(pccl_trial_run(s, t));
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- the search ---- */

static void reserve_budget(pccl_search *s, double min) { s->budget = s->budget > min ? s->budget : min; }

static polyccl_result run_search(pccl_search *s) {
  double total = s->budget;
  PCCL_TRY(try_kinds(s));
  reserve_budget(s, total * improve_share);
  PCCL_TRY(improve_list(s));
  PCCL_TRY(improve_at_random(s, total * shrink_share));
  reserve_budget(s, total * shrink_share);
  PCCL_TRY(pccl_shrink_offer(s));
  pccl_trial best = *pccl_record_best(s);
  bool fits;
  PCCL_TRY(pccl_trial_schedule(s, &best, &fits));
  reserve_budget(s, total * shrink_share);
  PCCL_TRY(pccl_shrink_merge(s, &best));
  const pccl_trial *published = &s->trials.data[0];
  PCCL_INFO(
      "%s: best of %zu schedules: %.1f us with %d thread blocks per rank (HPDS: %.1f us with %d; no "
      "schedule below %.1f us): %s, instances %d",
      s->program->name, s->trials.len, best.time, best.tbs, published->time, published->tbs, pccl_bound_time(&s->bound),
      pccl_trial_kind_name(best.kind), best.instances);
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_search_schedule(pccl_ir *ir) {
  const polyccl_compile_options *options = ir->options;
  const polyccl_topology *t = options->topology;
  int32_t max = t->model[t->rank[0].model].max_thread_blocks;
  double seconds = options->seconds > 0 ? options->seconds : 2;
  pccl_search s = {.program = ir->program,
                   .options = *options,
                   .bytes = options->bytes > 0 ? options->bytes : (uint64_t)64 << 20,
                   .instances = options->instances > 0 ? options->instances : ir->program->config.instances,
                   .max_tbs = max < MAX_TBS ? max : MAX_TBS,
                   .max_resident = max,
                   .budget = seconds * executions_per_second};
  s.options.dump = NULL;
  s.options.times = NULL;
  s.options.no_fusion = false; /* the search decides what to fuse */
  polyccl_result result = run_search(&s);
  if (result == POLYCCL_SUCCESS) {
    *ir = s.ir;
    ir->options = options;
    s.ir = (pccl_ir){0};
  }
  pccl_bench_clear(&s);
  pccl_vec_free(&s.trials);
  return result;
}
