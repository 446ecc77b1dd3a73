/* Sharing: max-min fair rates, kept up to date change by change.
 *
 * Every resource l has a level L(l), the largest rate that it lets one flow have (infinite where it limits no flow).
 * The rate of a flow is the minimum of its own cap and the levels of its resources. L(l) solves sum over the flows f of
 * l of min(L(l), the rate that all other limits let f have) = capacity of l. The rates that solve this for all
 * resources at once are exactly the max-min fair ones: each flow has a full resource where nobody gets more. After a
 * change only the resources whose flows' other limits moved across or below their level are solved again, first in
 * first out, until nothing changes. That ends with the fair rates: no level can be below the fair share of the tightest
 * resource, which therefore finds its level as soon as all others have been looked at once; then the next tightest, and
 * so on. */
#include <math.h>

#include "simulator/machine.h"

static const double same = 1e-12; /* a smaller relative difference is rounding, not a change */

static inline double smaller(double a, double b) { return a < b ? a : b; }

static inline double limit_without(const sim *s, const sim_flow *f, int32_t a, int32_t b) {
  double limit = f->cap;
  for (int32_t i = 0; i < f->resources; i++) {
    int32_t r = f->resource[i];
    limit = r != a && r != b ? smaller(limit, s->level[r]) : limit;
  }
  return limit;
}

static void mark_dirty(sim *s, int32_t r) {
  sim_resource *resource = &s->resource[r];
  if (!resource->dirty) {
    resource->dirty = true;
    int32_t at = s->dirty_head + s->dirty_count++;
    s->dirty[at < s->resources ? at : at - s->resources] = r;
  }
}

static void mark_end(sim *s, int32_t r) {
  if (!s->resource[r].end_dirty) {
    s->resource[r].end_dirty = true;
    s->end_dirty[s->end_dirties++] = r;
  }
}

static void set_rate(sim *s, int32_t tb, double rate) {
  sim_flow *f = &s->flow[tb];
  if (s->now > f->since) {
    f->left -= f->rate * (double)(s->now - f->since);
    f->since = s->now;
  }
  if (s->tracing) {
    pccl_sim_trace_use(s, tb, s->now, rate - f->rate, 0);
  }
  f->rate = rate;
  int64_t duration = 0;
  if (f->left > 0) {
    double exact = f->left / rate;
    duration = (int64_t)exact;
    duration += (double)duration < exact;
  }
  f->end = s->now + duration;
  mark_end(s, f->resource[0]);
}

/* Only then can a change here matter to anybody. */
static bool can_fill(const sim_resource *r) { return r->wanted > r->capacity * (1 + same); }

/* What the thread blocks beyond those that fill it cost a link. */
static double capacity_now(const sim_resource *r) {
  if (r->contention <= 0) {
    return r->capacity;
  }
  double fill = ceil(r->capacity * r->flows / r->wanted - 1e-9);
  double excess = r->flows - fill;
  return excess > 0 ? r->capacity / (1 + r->contention * excess) : r->capacity;
}

/* The level of a resource whose flows are let have `other` by all else; `want` is scratch of the same length. */
static double solve(const sim_resource *r, const double *other, double *want) {
  double sum = 0, capacity = capacity_now(r);
  for (int32_t i = 0; i < r->flows; i++) {
    want[i] = other[i];
    sum += other[i];
  }
  if (sum <= capacity * (1 + same)) {
    return INFINITY;
  }
  /* Flows that want less than an equal share leave the rest to the others; again until none does. */
  double share = capacity / r->flows;
  for (int32_t left = r->flows;;) {
    double taken = 0;
    int32_t kept = 0;
    for (int32_t i = 0; i < left; i++) {
      if (want[i] <= share) {
        taken += want[i];
      } else {
        want[kept++] = want[i];
      }
    }
    if (kept == left || kept == 0) {
      return share;
    }
    capacity -= taken;
    left = kept;
    share = capacity / left;
  }
}

static inline bool differs(double a, double b, double tolerance) {
  if (isinf(a) || isinf(b)) {
    return a != b;
  }
  return fabs(a - b) > tolerance * (a > b ? a : b);
}

/* Flow f's limit at `index` went from `before` to `after`: which of its other resources must be solved again? */
static inline void pass_on(sim *s, const sim_flow *f, int32_t index, double before, double after) {
  double lower = smaller(before, after);
  for (int32_t i = 0; i < f->resources; i++) {
    int32_t k = f->resource[i];
    double level = s->level[k];
    if (k == index || lower >= level || !can_fill(&s->resource[k])) {
      continue; /* the flow has its level there, before and after */
    }
    double rest = limit_without(s, f, k, index);
    double was = smaller(rest, before), is = smaller(rest, after);
    if (smaller(was, level) != smaller(is, level) && !(isinf(level) && is < was)) {
      mark_dirty(s, k);
    }
  }
}

static void update(sim *s, int32_t index) {
  if (++s->updates > s->max_exact_updates) {
    s->max_exact_updates = UINT64_MAX;
    s->tolerance = SIM_ROUGH;
  }
  sim_resource *r = &s->resource[index];
  const int32_t *member = &s->member[r->flow];
  double *other = s->other;
  for (int32_t i = 0; i < r->flows; i++) {
    other[i] = limit_without(s, &s->flow[member[i]], index, index);
  }
  double before = s->level[index], after = r->flows > 0 ? solve(r, other, s->other + s->tbs) : INFINITY;
  if (!differs(before, after, s->tolerance > same ? s->tolerance : same)) {
    return;
  }
  s->level[index] = after;
  for (int32_t i = 0; i < r->flows; i++) {
    sim_flow *f = &s->flow[member[i]];
    double rate = smaller(other[i], after);
    if (differs(rate, f->rate, same)) {
      set_rate(s, member[i], rate);
    }
    if (f->resources > 1) {
      pass_on(s, f, index, before, after);
    }
  }
}

void pccl_sim_flow_add(sim *s, int32_t tb, double bytes, double cap, const int32_t *resource, int32_t resources) {
  sim_flow *f = &s->flow[tb];
  *f = (sim_flow){.left = bytes, .cap = cap, .since = s->now, .resource = resource, .resources = resources};
  if (resources <= SIM_INLINE_RESOURCES) {
    for (int32_t i = 0; i < resources; i++) {
      f->inline_resource[i] = resource[i];
    }
    f->resource = f->inline_resource;
  }
  for (int32_t i = 0; i < resources; i++) {
    sim_resource *r = &s->resource[resource[i]];
    s->member[r->flow + r->flows++] = tb;
    r->wanted += cap;
    if (can_fill(r)) {
      mark_dirty(s, resource[i]);
    }
  }
  if (s->tracing) {
    pccl_sim_trace_use(s, tb, s->now, 0, 1);
  }
  set_rate(s, tb, limit_without(s, f, -1, -1));
}

void pccl_sim_flow_remove(sim *s, int32_t tb) {
  sim_flow *f = &s->flow[tb];
  for (int32_t i = 0; i < f->resources; i++) {
    int32_t index = f->resource[i];
    sim_resource *r = &s->resource[index];
    int32_t *member = &s->member[r->flow];
    int32_t at = 0;
    while (member[at] != tb) {
      at++;
    }
    member[at] = member[--r->flows];
    r->wanted = r->flows > 0 ? r->wanted - f->cap : 0;
    if (!isinf(s->level[index])) {
      mark_dirty(s, index);
    }
  }
  if (s->tracing) {
    pccl_sim_trace_use(s, tb, s->now, -f->rate, -1);
  }
  mark_end(s, f->resource[0]);
}

static void update_end(sim *s, int32_t index) {
  sim_resource *r = &s->resource[index];
  int64_t end = INT64_MAX;
  for (int32_t i = 0; i < r->flows; i++) {
    const sim_flow *f = &s->flow[s->member[r->flow + i]];
    if (f->end < end && f->resource[0] == index) {
      end = f->end;
    }
  }
  if (end == INT64_MAX) {
    sim_queue_remove(&s->queue, s->tbs + index);
  } else {
    sim_queue_put(&s->queue, s->tbs + index, end);
  }
}

void pccl_sim_share(sim *s) {
  while (s->dirty_count > 0) {
    int32_t index = s->dirty[s->dirty_head];
    s->dirty_head = s->dirty_head + 1 < s->resources ? s->dirty_head + 1 : 0;
    s->dirty_count--;
    s->resource[index].dirty = false;
    update(s, index);
  }
  for (int32_t i = 0; i < s->end_dirties; i++) {
    s->resource[s->end_dirty[i]].end_dirty = false;
    update_end(s, s->end_dirty[i]);
  }
  s->end_dirties = 0;
}
