/* The record of a search: which trials there were, which is best, what is left of the budget. */
#include "compiler/trial.h"

/* One percent is less than what the simulator's estimate of a time is worth, and thread blocks that a plan leaves free
 * are free for the computation beside it. set.c uses the same share. */
static const double slack = 1.01;

double pccl_with_slack(double us) { return us * slack; }

double pccl_record_min_time(const pccl_search *s) {
  double min = s->trials.data[0].time;
  for (size_t i = 1; i < s->trials.len; i++) {
    min = s->trials.data[i].time < min ? s->trials.data[i].time : min;
  }
  return min;
}

double pccl_record_time_limit(const pccl_search *s) {
  double limit = pccl_with_slack(pccl_record_min_time(s));
  for (size_t i = 0; i < s->trials.len; i++) {
    const pccl_trial *t = &s->trials.data[i];
    bool published = i == 0 || t->kind == PCCL_TRIAL_CONNECTION;
    limit = published && t->time < limit ? t->time : limit;
  }
  return limit;
}

const pccl_trial *pccl_record_best(const pccl_search *s) {
  double limit = pccl_record_time_limit(s);
  const pccl_trial *best = NULL;
  for (size_t i = 0; i < s->trials.len; i++) {
    const pccl_trial *t = &s->trials.data[i];
    if (t->time <= limit && (best == NULL || t->tbs < best->tbs || (t->tbs == best->tbs && t->time < best->time))) {
      best = t;
    }
  }
  return best;
}

const pccl_trial *pccl_record_best_list(const pccl_search *s) {
  const pccl_trial *best = NULL;
  for (size_t i = 0; i < s->trials.len; i++) {
    const pccl_trial *t = &s->trials.data[i];
    if (t->kind == PCCL_TRIAL_LIST && (best == NULL || t->time < best->time)) {
      best = t;
    }
  }
  return best;
}

static bool same_choices(const pccl_trial *a, const pccl_trial *b) {
  return a->kind == b->kind && a->instances == b->instances && a->hops == b->hops &&
         a->oversubscribed == b->oversubscribed && a->list.tbs == b->list.tbs && a->list.priority == b->list.priority &&
         a->list.overlap == b->list.overlap && a->list.window == b->list.window && a->list.shuffle == b->list.shuffle;
}

bool pccl_record_has(const pccl_search *s, const pccl_trial *t) {
  for (size_t i = 0; i < s->trials.len; i++) {
    const pccl_trial *other = &s->trials.data[i];
    pccl_trial same = *t;
    if (other->kind == PCCL_TRIAL_LIST && other->tbs < other->list.tbs && t->list.tbs >= other->tbs) {
      same.list.tbs = other->list.tbs;
    }
    if (same_choices(other, &same)) {
      return true;
    }
  }
  return false;
}

bool pccl_search_is_spent(const pccl_search *s) { return s->budget <= 0 && s->trials.len > 0; }

bool pccl_search_allows(const pccl_search *s, int32_t tbs) {
  return tbs <= s->max_tbs && (s->options.max_tbs == 0 || tbs <= s->options.max_tbs);
}
