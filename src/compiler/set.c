/* A set of plans for one program, each for a range of sizes. Which plan is quickest changes with the size: fused steps,
 * micro-batch after micro-batch, win where latency counts, and task after task wins where links must be full.
 * Candidates of several kinds are simulated over the sizes. Neighbouring sizes with the same plan become one range, and
 * candidates that are never chosen are dropped.
 *
 * At each size the quickest candidate is chosen, or the one with the fewest thread blocks of those within a hundredth
 * of it. The plan of the size before stays where it is nearly as quick, but never where the program's plain plan
 * (policy "connection", as written) is quicker. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/compile.h>
#include <polyccl/simulator.h>

#include "base/error.h"
#include "base/log.h"
#include "base/sized.h"
#include "base/vec.h"
#include "compiler/schedule.h"

enum {
  MAX_INSTANCES = 16, /* more copies win only at sizes that schedule "best" is asked for, and it tries them */
  BEST_STEP = 16      /* between the sizes that schedule "best" is asked for: each search takes options.seconds */
};

/* As in record.c: within one percent, fewer thread blocks are worth more than time. */
static const double slack = 1.01;
/* Another plan takes memory on every rank, which a gain of less than 3 % does not pay for. */
static const double inertia = 1.03;
/* Times over size are smooth: a candidate that is slower than the best by this factor is not tried at the next two. */
static const double hopeless = 3;
/* Bytes. Below a quarter of a MiB latency decides, which policy "connection" is best at. */
static const double best_from = 1 << 18;

typedef struct candidate {
  polyccl_plan *plan;
  int32_t tbs;
  double *time; /* [sizes] us, INFINITY: not tried */
} candidate;

typedef struct set {
  const polyccl_program *program;
  polyccl_compile_options options;
  PCCL_VEC(candidate) candidate;
  PCCL_VEC(uint64_t) size;
  int32_t *chosen; /* [sizes] */
} set;

static int32_t max_tbs_of_plan(const polyccl_plan *plan) {
  int32_t max = 0;
  for (int rank = 0; rank < plan->ranks; rank++) {
    max = plan->rank[rank].tbs > max ? plan->rank[rank].tbs : max;
  }
  return max;
}

/* A plan that does not compile (the author's thread blocks clash in more instances), or needs too many thread blocks,
 * is no candidate. The plain plan must compile. */
static polyccl_result add_candidate(set *s, const polyccl_compile_options *how) {
  polyccl_plan *plan = NULL;
  polyccl_result result = polyccl_compile(s->program, how, &plan);
  if (result != POLYCCL_SUCCESS) {
    bool optional = result == POLYCCL_ERROR_INVALID || result == POLYCCL_ERROR_LIMIT;
    return optional && s->candidate.len > 0 ? POLYCCL_SUCCESS : result;
  }
  const polyccl_topology *t = how->topology;
  int32_t tbs = max_tbs_of_plan(plan), device = t->model[t->rank[0].model].max_thread_blocks;
  if ((how->max_tbs > 0 && tbs > how->max_tbs) || tbs > device) {
    polyccl_plan_destroy(plan);
    return POLYCCL_SUCCESS;
  }
  candidate c = {.plan = plan, .tbs = tbs, .time = pccl_array(s->size.len, sizeof *c.time)};
  if (c.time == NULL || !pccl_vec_push(&s->candidate, c)) {
    polyccl_plan_destroy(plan);
    free(c.time);
    return pccl_no_memory("plans");
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result make_candidates(set *s, uint64_t max_bytes) {
  int32_t asked = s->program->config.instances;
  for (int32_t cut = 1; cut <= MAX_INSTANCES; cut *= 2) {
    polyccl_compile_options how = s->options;
    how.policy = POLYCCL_POLICY_CONNECTION;
    how.instances = cut * asked;
    PCCL_TRY(add_candidate(s, &how));
  }
  polyccl_compile_options how = s->options;
  how.policy = POLYCCL_POLICY_STATE;
  how.schedule = POLYCCL_SCHEDULE_HPDS;
  PCCL_TRY(add_candidate(s, &how));
  how.schedule = POLYCCL_SCHEDULE_BEST;
  for (double bytes = (double)max_bytes; bytes >= best_from; bytes /= BEST_STEP) {
    how.bytes = (uint64_t)bytes;
    PCCL_TRY(add_candidate(s, &how));
  }
  return s->candidate.len > 0
             ? POLYCCL_SUCCESS
             : pccl_fail(POLYCCL_ERROR_LIMIT, "%s: no plan has so few thread blocks", s->program->name);
}

static polyccl_result simulate_candidate(set *s, candidate *c, size_t size) {
  polyccl_sim_options how = POLYCCL_SIM_DEFAULTS;
  polyccl_simulation *simulation = NULL;
  how.bytes = s->size.data[size];
  PCCL_TRY(polyccl_simulate(c->plan, s->options.topology, &how, &simulation));
  c->time[size] = simulation->time;
  polyccl_simulation_destroy(simulation);
  return POLYCCL_SUCCESS;
}

static bool is_hopeless(const set *s, const candidate *c, size_t size) {
  if (c == s->candidate.data || size < 2) {
    return false;
  }
  for (size_t i = size - 2; i < size; i++) {
    double best = s->candidate.data[s->chosen[i]].time[i];
    if (!(c->time[i] > hopeless * best) || isinf(c->time[i])) {
      return false; /* after two sizes without a try, it is tried again */
    }
  }
  return true;
}

static polyccl_result choose_plan(set *s, size_t size) {
  double best = INFINITY;
  for (size_t i = 0; i < s->candidate.len; i++) {
    candidate *c = &s->candidate.data[i];
    c->time[size] = INFINITY;
    if (!is_hopeless(s, c, size)) {
      PCCL_TRY(simulate_candidate(s, c, size));
    }
    best = c->time[size] < best ? c->time[size] : best;
  }
  double plain = s->candidate.data[0].time[size];
  int32_t chosen = -1;
  for (size_t i = 0; i < s->candidate.len; i++) {
    const candidate *c = &s->candidate.data[i], *other = chosen >= 0 ? &s->candidate.data[chosen] : NULL;
    if (c->time[size] > best * slack || c->time[size] > plain) {
      continue;
    }
    if (other == NULL || c->tbs < other->tbs || (c->tbs == other->tbs && c->time[size] < other->time[size])) {
      chosen = (int32_t)i;
    }
  }
  if (size > 0) {
    double stay = s->candidate.data[s->chosen[size - 1]].time[size];
    if (stay <= best * inertia && stay <= plain) {
      chosen = s->chosen[size - 1];
    }
  }
  s->chosen[size] = chosen;
  return POLYCCL_SUCCESS;
}

/* Hands out a copy of the chosen plan for each range, with its bytes. */
static polyccl_result hand_out_plans(set *s, polyccl_plan_set *made) {
  size_t sizes = s->size.len;
  made->plan = pccl_zeroed(sizes, sizeof *made->plan);
  if (made->plan == NULL) {
    return pccl_no_memory("plans");
  }
  uint64_t from = 0;
  for (size_t i = 0; i < sizes; i++) {
    if (i + 1 < sizes && s->chosen[i + 1] == s->chosen[i]) {
      continue;
    }
    polyccl_plan *plan;
    PCCL_TRY(pccl_plan_copy(s->candidate.data[s->chosen[i]].plan, &plan));
    made->plan[made->plans++] = plan;
    plan->min_bytes = from;
    /* The geometric mean of both sizes. */
    plan->max_bytes = i + 1 < sizes ? (uint64_t)sqrt((double)s->size.data[i] * (double)s->size.data[i + 1]) : 0;
    from = plan->max_bytes + 1;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_options(const polyccl_compile_options *options, const polyccl_program *program,
                                    uint64_t min_bytes, uint64_t max_bytes) {
  PCCL_TRY(pccl_schedule_check_options(program, options));
  if (min_bytes == 0 || min_bytes > max_bytes || max_bytes > (uint64_t)1 << 40) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "a set is for sizes from 1 byte to 1 TiB, the smaller first");
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result build_set(set *s, uint64_t min_bytes, uint64_t max_bytes, polyccl_plan_set *made) {
  for (uint64_t bytes = min_bytes; bytes <= max_bytes; bytes *= 2) {
    if (!pccl_vec_push(&s->size, bytes)) {
      return pccl_no_memory("sizes");
    }
  }
  s->chosen = pccl_array(s->size.len, sizeof *s->chosen);
  if (s->chosen == NULL) {
    return pccl_no_memory("sizes");
  }
  PCCL_TRY(make_candidates(s, max_bytes));
  for (size_t i = 0; i < s->size.len; i++) {
    PCCL_TRY(choose_plan(s, i));
    const candidate *c = &s->candidate.data[s->chosen[i]];
    PCCL_INFO("%s at %llu bytes: candidate %d of %zu, %.1f us with %d thread blocks (plain: %.1f us)", s->program->name,
              (unsigned long long)s->size.data[i], s->chosen[i], s->candidate.len, c->time[i], c->tbs,
              s->candidate.data[0].time[i]);
  }
  return hand_out_plans(s, made);
}

polyccl_result polyccl_compile_set(const polyccl_program *program, const polyccl_compile_options *options,
                                   uint64_t min_bytes, uint64_t max_bytes, polyccl_plan_set **plans) {
  set s = {.program = program, .options = POLYCCL_COMPILE_DEFAULTS};
  PCCL_TRY(pccl_sized_read("polyccl_compile_options", options, &s.options, sizeof s.options, sizeof s.options));
  PCCL_TRY(check_options(&s.options, program, min_bytes, max_bytes));
  polyccl_plan_set *made = pccl_zeroed(1, sizeof *made);
  polyccl_result result = made != NULL ? build_set(&s, min_bytes, max_bytes, made) : pccl_no_memory("plans");
  for (size_t i = 0; i < s.candidate.len; i++) {
    polyccl_plan_destroy(s.candidate.data[i].plan);
    free(s.candidate.data[i].time);
  }
  pccl_vec_free(&s.candidate);
  pccl_vec_free(&s.size);
  free(s.chosen);
  if (result != POLYCCL_SUCCESS) {
    polyccl_plan_set_destroy(made);
    return result;
  }
  *plans = made;
  return POLYCCL_SUCCESS;
}

void polyccl_plan_set_destroy(polyccl_plan_set *plans) {
  if (plans != NULL) {
    for (size_t i = 0; i < plans->plans; i++) {
      polyccl_plan_destroy(plans->plan[i]);
    }
    free(plans->plan);
    free(plans);
  }
}
