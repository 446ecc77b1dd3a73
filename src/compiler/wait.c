/* wait: numbers the steps of every thread block and turns the dependencies that cross thread blocks into waits, the
 * fewest: what the thread block itself, an earlier wait in it, or another wait of the same step implies is left out.
 * One rank at a time; `known` of a thread block is a vector clock over the thread blocks of its rank. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/ir.h"

/* Beyond this many entries per rank, what other thread blocks knew is forgotten: more waits, never fewer. */
static const size_t most_clocks = (size_t)1 << 24;

typedef struct waiter {
  pccl_ir *ir;
  int32_t tbs;                  /* of the rank at hand */
  int32_t *known;               /* [tbs x tbs] steps of column known to have ended by row */
  int32_t *clock_of;            /* [nodes] its snapshot in clocks, -1: none */
  int32_t *latest;              /* [tbs] snapshot that holds row's present clock, -1: none */
  int32_t *next_step;           /* [tbs] */
  PCCL_VEC(int32_t) clocks;     /* snapshots of tbs entries each */
  PCCL_VEC(int32_t) candidates; /* nodes */
} waiter;

static const int32_t *clock_at(const waiter *w, int32_t node) {
  int32_t clock = w->clock_of[node];
  return clock >= 0 ? w->clocks.data + (size_t)clock * (size_t)w->tbs : NULL;
}

/* True when `other`'s end implies that of `node`. */
static bool implies(const waiter *w, int32_t other, int32_t node) {
  const pccl_node *n = &w->ir->nodes.data[node], *o = &w->ir->nodes.data[other];
  if (n->tb == o->tb) {
    return o->step >= n->step;
  }
  const int32_t *clock = clock_at(w, other);
  return clock != NULL && clock[n->tb] > n->step;
}

static bool snapshot(waiter *w, int32_t tb) {
  if (w->clocks.len + (size_t)w->tbs > most_clocks) {
    w->latest[tb] = -1;
    return true;
  }
  if (!pccl_vec_reserve(&w->clocks, (size_t)w->tbs)) {
    return false;
  }
  memcpy(w->clocks.data + w->clocks.len, w->known + (size_t)tb * (size_t)w->tbs, (size_t)w->tbs * sizeof(int32_t));
  w->latest[tb] = (int32_t)(w->clocks.len / (size_t)w->tbs);
  w->clocks.len += (size_t)w->tbs;
  return true;
}

static void learn(waiter *w, int32_t *known, int32_t node) {
  const pccl_node *n = &w->ir->nodes.data[node];
  const int32_t *clock = clock_at(w, node);
  for (int32_t tb = 0; clock != NULL && tb < w->tbs; tb++) {
    known[tb] = known[tb] > clock[tb] ? known[tb] : clock[tb];
  }
  known[n->tb] = known[n->tb] > n->step + 1 ? known[n->tb] : n->step + 1;
}

static bool wait_for(waiter *w, int32_t number) {
  pccl_ir *ir = w->ir;
  pccl_node *node = &ir->nodes.data[number];
  int32_t *known = w->known + (size_t)node->tb * (size_t)w->tbs;
  node->step = w->next_step[node->tb]++;
  node->wait = (int32_t)ir->waits.len;
  node->waits = 0;
  w->candidates.len = 0;
  for (int32_t k = 0; k < node->preds; k++) {
    int32_t pred = ir->preds.data[node->pred + k];
    const pccl_node *p = &ir->nodes.data[pred];
    if (p->tb == node->tb || known[p->tb] > p->step) {
      continue;
    }
    /* Keep the candidates free of one another. */
    bool implied = false;
    for (size_t i = 0; i < w->candidates.len && !implied; i++) {
      implied = implies(w, w->candidates.data[i], pred);
    }
    if (implied) {
      continue;
    }
    size_t kept = 0;
    for (size_t i = 0; i < w->candidates.len; i++) {
      if (!implies(w, pred, w->candidates.data[i])) {
        w->candidates.data[kept++] = w->candidates.data[i];
      }
    }
    w->candidates.len = kept;
    if (!pccl_vec_push(&w->candidates, pred)) {
      return false;
    }
  }
  for (size_t i = 0; i < w->candidates.len; i++) {
    const pccl_node *p = &ir->nodes.data[w->candidates.data[i]];
    learn(w, known, w->candidates.data[i]);
    if (!pccl_vec_push(&ir->waits, (polyccl_wait){p->tb, p->step})) {
      return false;
    }
    node->waits++;
  }
  if (node->waits > 0 && !snapshot(w, node->tb)) {
    return false;
  }
  w->clock_of[number] = w->latest[node->tb];
  return true;
}

static bool wait_on_rank(waiter *w, const int32_t *nodes, size_t count) {
  size_t tbs = (size_t)w->tbs;
  free(w->known);
  free(w->latest);
  free(w->next_step);
  w->known = pccl_zeroed(tbs * tbs, sizeof *w->known);
  w->latest = pccl_array(tbs, sizeof *w->latest);
  w->next_step = pccl_zeroed(tbs, sizeof *w->next_step);
  w->clocks.len = 0;
  if (w->known == NULL || w->latest == NULL || w->next_step == NULL) {
    return false;
  }
  memset(w->latest, 0xff, tbs * sizeof *w->latest);
  for (size_t i = 0; i < count; i++) {
    if (!wait_for(w, nodes[i])) {
      return false;
    }
  }
  return true;
}

/* The order, rank by rank. */
static bool wait_on_ranks(waiter *w, int32_t *by_rank, size_t *first) {
  pccl_ir *ir = w->ir;
  int ranks = ir->spec.ranks;
  for (size_t i = 0; i < ir->order.len; i++) {
    first[ir->nodes.data[ir->order.data[i]].rank + 1]++;
  }
  for (int rank = 0; rank < ranks; rank++) {
    first[rank + 1] += first[rank];
  }
  for (size_t i = ir->order.len; i-- > 0;) {
    int32_t node = ir->order.data[i];
    by_rank[--first[ir->nodes.data[node].rank + 1]] = node;
  }
  for (int rank = 0; rank < ranks; rank++) {
    size_t begin = first[rank + 1], end = rank + 2 <= ranks ? first[rank + 2] : ir->order.len;
    w->tbs = ir->tbs[rank];
    if (!wait_on_rank(w, by_rank + begin, end - begin)) {
      return false;
    }
  }
  return true;
}

polyccl_result pccl_pass_wait(pccl_ir *ir) {
  waiter w = {.ir = ir, .clock_of = pccl_array(ir->nodes.len, sizeof *w.clock_of)};
  int32_t *by_rank = pccl_array(ir->order.len, sizeof *by_rank);
  size_t *first = pccl_zeroed((size_t)ir->spec.ranks + 2, sizeof *first);
  bool ok = w.clock_of != NULL && by_rank != NULL && first != NULL && wait_on_ranks(&w, by_rank, first);
  free(by_rank);
  free(first);
  free(w.known);
  free(w.latest);
  free(w.next_step);
  free(w.clock_of);
  pccl_vec_free(&w.clocks);
  pccl_vec_free(&w.candidates);
  return ok ? POLYCCL_SUCCESS : pccl_no_memory("the compiler");
}
