/* The last part of the search takes thread blocks away while the simulated time stays: first it offers fewer to the
 * list scheduler, then it merges those that work least by the simulated timeline (merge.c). */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/merge.h"
#include "compiler/trial.h"

/* Every number up to 6, then in steps of a seventh to a third: a step of one thread block matters only where there are
 * few. */
const int32_t pccl_tb_steps[PCCL_TB_STEPS] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48};

/* A trial this much beyond the limit ends the descent: lower numbers are only slower. */
static const double give_up = 1.05;

polyccl_result pccl_shrink_offer(pccl_search *s) {
  if (pccl_record_best_list(s) == NULL) {
    return POLYCCL_SUCCESS;
  }
  pccl_trial quickest = *pccl_record_best_list(s);
  double limit = pccl_with_slack(pccl_record_min_time(s));
  /* With few thread blocks, chains may win where single messages were quickest, or the other way round. */
  int32_t other_hops = quickest.hops <= 0 ? 1 : 0;
  for (int way = 0; way < 2; way++) {
    pccl_trial t = quickest;
    t.hops = way == 0 ? quickest.hops : other_hops;
    for (int i = PCCL_TB_STEPS - 1; i >= 0 && !pccl_search_is_spent(s); i--) {
      t.list.tbs = pccl_tb_steps[i];
      if (t.list.tbs >= pccl_record_best(s)->tbs || !pccl_search_allows(s, t.list.tbs) || pccl_record_has(s, &t)) {
        continue;
      }
      size_t count = s->trials.len;
      PCCL_TRY(pccl_trial_run(s, t));
      if (s->trials.len > count && s->trials.data[count].time > limit * give_up) {
        break;
      }
    }
  }
  return POLYCCL_SUCCESS;
}

/* What merging changes, so that the last merge can be taken back. */
typedef struct saved_blocks {
  int32_t *tb, *channel; /* [nodes] */
  int32_t *tbs;          /* [ranks] */
} saved_blocks;

static void save_blocks(const pccl_ir *ir, saved_blocks *saved) {
  for (size_t i = 0; i < ir->nodes.len; i++) {
    saved->tb[i] = ir->nodes.data[i].tb;
    saved->channel[i] = ir->nodes.data[i].channel;
  }
  memcpy(saved->tbs, ir->tbs, (size_t)ir->spec.ranks * sizeof *ir->tbs);
}

static polyccl_result restore_blocks(pccl_ir *ir, const saved_blocks *saved) {
  for (size_t i = 0; i < ir->nodes.len; i++) {
    ir->nodes.data[i].tb = saved->tb[i];
    ir->nodes.data[i].channel = saved->channel[i];
  }
  memcpy(ir->tbs, saved->tbs, (size_t)ir->spec.ranks * sizeof *ir->tbs);
  return pccl_pass_wait(ir);
}

/* Makes up to `count` merges, `*done` of them, and the channels and waits that follow. */
static polyccl_result merge_count(pccl_ir *ir, int32_t count, double *busy, int32_t *done) {
  bool merged = true;
  for (*done = 0; *done < count && merged; *done += merged) {
    PCCL_TRY(pccl_merge_blocks(ir, busy, &merged));
  }
  PCCL_TRY(pccl_channels_of_blocks(ir));
  return pccl_pass_wait(ir);
}

/* Starts with a quarter of the thread blocks at once and halves the step whenever it made the plan slower. */
static polyccl_result merge_while_quick(pccl_search *s, pccl_trial *t, saved_blocks *saved, double *busy) {
  pccl_ir *ir = &s->ir;
  double limit = pccl_record_time_limit(s);
  PCCL_TRY(pccl_trial_simulate(s, t, busy));
  save_blocks(ir, saved);
  for (int32_t step = t->tbs / 4 + 1; step > 0 && s->budget > 0;) {
    int32_t done = 0;
    PCCL_TRY(merge_count(ir, step, busy, &done));
    pccl_trial merged = *t;
    polyccl_result result = done > 0 ? pccl_trial_simulate(s, &merged, busy) : POLYCCL_SUCCESS;
    bool refused = result == POLYCCL_ERROR_INVALID; /* in batch-major order: a deadlock */
    if (result != POLYCCL_SUCCESS && !refused) {
      return result;
    }
    if (done > 0 && !refused && merged.time <= limit) {
      *t = merged;
      t->tbs -= done;
      save_blocks(ir, saved);
      continue;
    }
    PCCL_TRY(restore_blocks(ir, saved));
    step /= 2;
    if (step > 0) {
      PCCL_TRY(pccl_trial_simulate(s, t, busy));
    }
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_shrink_merge(pccl_search *s, pccl_trial *t) {
  if (s->ir.hinted != NULL && memchr(s->ir.hinted, 1, s->ir.nodes.len) != NULL) {
    return POLYCCL_SUCCESS; /* the author chose channels, and merging would choose others */
  }
  size_t nodes = s->ir.nodes.len, ranks = (size_t)s->ir.spec.ranks, total = 0;
  for (size_t rank = 0; rank < ranks; rank++) {
    total += (size_t)s->ir.tbs[rank];
  }
  saved_blocks saved = {pccl_array(nodes, sizeof *saved.tb), pccl_array(nodes, sizeof *saved.channel),
                        pccl_array(ranks, sizeof *saved.tbs)};
  double *busy = pccl_array(total, sizeof *busy);
  polyccl_result result = saved.tb != NULL && saved.channel != NULL && saved.tbs != NULL && busy != NULL
                              ? merge_while_quick(s, t, &saved, busy)
                              : pccl_no_memory("the search");
  free(saved.tb);
  free(saved.channel);
  free(saved.tbs);
  free(busy);
  return result;
}
