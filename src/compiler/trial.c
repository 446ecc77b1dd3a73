#include "compiler/trial.h"

#include <string.h>

#include <polyccl/simulator.h>

#include "base/error.h"
#include "base/log.h"
#include "compiler/passes.h"
#include "compiler/schedule.h"

/* What the compiler's own work costs in the search's unit, simulated step executions. A node is lowered and fused in
 * about half the time, and emitted in about the time, that the simulator takes for a step; a trial costs that much even
 * for a program of a few steps. */
static const double node_lower_cost = 0.5, node_emit_cost = 1, trial_cost = 1000;

const char *pccl_trial_kind_name(pccl_trial_kind kind) {
  static const char *const names[] = {"HPDS", "connection", "list"};
  return names[kind];
}

/* ---- the bench ---- */

void pccl_bench_clear(pccl_search *s) {
  if (s->built.instances > 0) {
    pccl_tasks_free(&s->tasks);
    pccl_flows_free(&s->flows);
    pccl_ir_free(&s->ir);
    s->built.instances = 0;
  }
}

/* Trials of HPDS, and lists of equal chains, schedule the same tasks or flows again. */
static bool bench_fits(const pccl_search *s, const pccl_trial *t) {
  const pccl_trial *b = &s->built;
  return b->instances == t->instances && b->kind == t->kind && t->kind != PCCL_TRIAL_CONNECTION && b->hops == t->hops &&
         b->oversubscribed == t->oversubscribed;
}

static polyccl_result build_flows(pccl_search *s, const pccl_trial *t, bool *fits) {
  const polyccl_topology *topology = s->options.topology;
  if (t->hops == PCCL_HOPS_APART) {
    PCCL_TRY(pccl_flows_set_apart(&s->ir, topology));
    *fits = memchr(s->ir.apart, 1, s->ir.nodes.len) != NULL;
    if (!*fits) {
      return POLYCCL_SUCCESS; /* without scarce links the chains are those of hops 0 */
    }
  }
  if (t->hops != 1) {
    s->ir.max_hops = t->hops > 0 ? t->hops : 0;
    PCCL_TRY(pccl_pass_fuse(&s->ir));
  }
  bool cyclic = false;
  PCCL_TRY(pccl_flows_build(&s->ir, topology, s->bytes, t->oversubscribed, &s->flows, &cyclic));
  *fits = !cyclic;
  return POLYCCL_SUCCESS;
}

static polyccl_result fill_bench(pccl_search *s, const pccl_trial *t, bool *fits) {
  PCCL_TRY(pccl_passes_run(&s->ir, PCCL_PASSES_LOWERING));
  *fits = true;
  if (t->kind == PCCL_TRIAL_HPDS) {
    return pccl_tasks_build(&s->ir, s->options.topology, &s->tasks);
  }
  if (t->kind == PCCL_TRIAL_LIST) {
    return build_flows(s, t, fits);
  }
  polyccl_result result = pccl_passes_run(&s->ir, PCCL_PASSES_CONNECTION);
  *fits = result != POLYCCL_ERROR_INVALID && result != POLYCCL_ERROR_LIMIT; /* the author's thread blocks may clash */
  return *fits ? result : POLYCCL_SUCCESS;
}

static polyccl_result build_bench(pccl_search *s, const pccl_trial *t, bool *fits) {
  *fits = true;
  if (bench_fits(s, t)) {
    return POLYCCL_SUCCESS;
  }
  pccl_bench_clear(s);
  s->ir = pccl_ir_of(s->program, &s->options, t->instances);
  s->tasks = (pccl_tasks){0};
  s->flows = (pccl_flows){0};
  s->built = *t;
  polyccl_result result = fill_bench(s, t, fits);
  s->budget -= (double)s->ir.nodes.len * node_lower_cost;
  if (result != POLYCCL_SUCCESS || !*fits) {
    pccl_bench_clear(s);
  }
  return result;
}

/* ---- a trial ---- */

polyccl_result pccl_trial_schedule(pccl_search *s, const pccl_trial *t, bool *fits) {
  PCCL_TRY(build_bench(s, t, fits));
  if (!*fits || t->kind == PCCL_TRIAL_CONNECTION) {
    return POLYCCL_SUCCESS;
  }
  if (t->kind == PCCL_TRIAL_HPDS) {
    PCCL_TRY(pccl_schedule_tasks(&s->tasks, POLYCCL_SCHEDULE_HPDS, s->options.max_tbs));
    PCCL_TRY(pccl_pass_allocate(&s->ir));
    return pccl_pass_wait(&s->ir);
  }
  if (t->list.tbs < s->flows.passes) {
    *fits = false;
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(pccl_schedule_list(&s->flows, &t->list, NULL));
  return pccl_pass_wait(&s->ir);
}

static polyccl_result simulate_plan(pccl_search *s, polyccl_plan *plan, pccl_trial *t, double *busy) {
  polyccl_sim_options options = POLYCCL_SIM_DEFAULTS;
  polyccl_simulation *simulation = NULL;
  options.bytes = s->bytes;
  if (t->kind == PCCL_TRIAL_CONNECTION) {
    polyccl_verify_report report;
    PCCL_TRY(polyccl_plan_verify(plan, &report));
    plan->fifo_depth = report.fifo_depth;
  } else {
    plan->fifo_depth = 1; /* what the construction needs; the verifier confirms it for the plan that is chosen */
  }
  PCCL_TRY(polyccl_simulate(plan, s->options.topology, &options, &simulation));
  t->time = simulation->time;
  for (size_t i = 0; busy != NULL && i < simulation->tbs; i++) {
    busy[i] = simulation->tb[i].time[POLYCCL_SIM_BUSY];
  }
  s->budget -= (double)simulation->executions;
  polyccl_simulation_destroy(simulation);
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_trial_simulate(pccl_search *s, pccl_trial *t, double *busy) {
  polyccl_plan *plan = NULL;
  PCCL_TRY(pccl_pass_emit(&s->ir, &plan));
  polyccl_result result = simulate_plan(s, plan, t, busy);
  polyccl_plan_destroy(plan);
  return result;
}

/* The first trial counts whatever it needs, so that there always is one. */
static bool is_allowed(const pccl_search *s, const pccl_trial *t) {
  int32_t asked = s->options.max_tbs;
  return s->trials.len == 0 || ((asked == 0 || t->tbs <= asked) && t->tbs <= s->max_resident);
}

polyccl_result pccl_trial_run(pccl_search *s, pccl_trial t) {
  bool fits = false;
  PCCL_TRY(pccl_trial_schedule(s, &t, &fits));
  s->budget -= trial_cost;
  if (!fits) {
    return POLYCCL_SUCCESS;
  }
  t.tbs = 0;
  for (int rank = 0; rank < s->ir.spec.ranks; rank++) {
    t.tbs = s->ir.tbs[rank] > t.tbs ? s->ir.tbs[rank] : t.tbs;
  }
  if (!is_allowed(s, &t)) {
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(pccl_trial_simulate(s, &t, NULL));
  s->budget -= (double)s->ir.nodes.len * node_emit_cost;
  PCCL_TRACE(
      "%s: %s x%d: %.1f us, %d thread blocks (chains %d, offered %d, priority %d, overlap %d, window %g, "
      "oversubscribed %d)",
      s->program->name, pccl_trial_kind_name(t.kind), t.instances, t.time, t.tbs, t.hops, t.list.tbs,
      (int)t.list.priority, (int)t.list.overlap, t.list.window, t.oversubscribed);
  return pccl_vec_push(&s->trials, t) ? POLYCCL_SUCCESS : pccl_no_memory("the search");
}
