/* wait: numbers the steps of every thread block and turns the dependencies that cross thread blocks into as few waits
 * as possible. It leaves out what the thread block itself, an earlier wait in it, or another wait of the same step
 * implies. It goes rank by rank; `known` of a thread block is a vector clock over the thread blocks of its rank. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/ir.h"

/* Clocks cost a rank the square of its thread blocks. These are the entries of snapshots and of `known` that one rank
 * may have: 64 and 128 MiB. Beyond them what thread blocks know is forgotten, so the plan has more waits than it needs.
 */
static const size_t max_clocks = (size_t)1 << 24, max_known = (size_t)1 << 25;
/* Entries copied or compared on all ranks, for the program and for each node: about a second in all for a large one. */
static const size_t max_work = (size_t)1 << 30, max_work_of_node = 1024;

typedef struct candidate {
  int32_t node, position, pred; /* where it stands in the order of its rank, in the predecessors of the node at hand */
} candidate;

typedef struct waiter {
  pccl_ir *ir;
  int32_t tbs;              /* of the rank at hand */
  int32_t **known;          /* [tbs] by row: [tbs] steps of column known to have ended, NULL: none yet */
  size_t known_len, work;   /* entries of known; left for clocks */
  int32_t *clock_of;        /* [nodes] its snapshot in clocks, -1: none */
  int32_t *position;        /* [nodes] in the order of its rank */
  int32_t *latest;          /* [tbs] snapshot that holds row's present clock, -1: none */
  int32_t *next_step;       /* [tbs] */
  PCCL_VEC(int32_t) clocks; /* snapshots of tbs entries each */
  PCCL_VEC(candidate) candidates;
} waiter;

static bool spend_work(waiter *w) {
  size_t cost = (size_t)w->tbs;
  bool enough = w->work >= cost;
  w->work -= enough ? cost : 0;
  return enough;
}

static bool take_snapshot(waiter *w, int32_t tb) {
  w->latest[tb] = -1;
  if (w->clocks.len + (size_t)w->tbs > max_clocks || !spend_work(w)) {
    return true;
  }
  if (!pccl_vec_reserve(&w->clocks, (size_t)w->tbs)) {
    return false;
  }
  memcpy(w->clocks.data + w->clocks.len, w->known[tb], (size_t)w->tbs * sizeof(int32_t));
  w->latest[tb] = (int32_t)(w->clocks.len / (size_t)w->tbs);
  w->clocks.len += (size_t)w->tbs;
  return true;
}

static void learn_clock(waiter *w, int32_t *known, int32_t node) {
  const pccl_node *n = &w->ir->nodes.data[node];
  if (w->clock_of[node] >= 0 && spend_work(w)) {
    const int32_t *clock = w->clocks.data + (size_t)w->clock_of[node] * (size_t)w->tbs;
    for (int32_t tb = 0; tb < w->tbs; tb++) {
      known[tb] = known[tb] > clock[tb] ? known[tb] : clock[tb];
    }
  }
  known[n->tb] = known[n->tb] > n->step + 1 ? known[n->tb] : n->step + 1;
}

/* The row of a thread block, which is made at its first wait. NULL in *row: no room for it. False: no memory. */
static bool find_known_row(waiter *w, int32_t tb, int32_t **row) {
  if (w->known[tb] == NULL && w->known_len + (size_t)w->tbs <= max_known) {
    w->known[tb] = pccl_zeroed((size_t)w->tbs, sizeof **w->known);
    if (w->known[tb] == NULL) {
      return false;
    }
    w->known_len += (size_t)w->tbs;
  }
  *row = w->known[tb];
  return true;
}

static int compare_latest_first(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  return (x->position < y->position) - (x->position > y->position);
}

static int compare_as_predecessors(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  return (x->pred > y->pred) - (x->pred < y->pred);
}

static bool find_candidates(waiter *w, const pccl_node *node) {
  const int32_t *known = w->known[node->tb];
  w->candidates.len = 0;
  for (int32_t k = 0; k < node->preds; k++) {
    int32_t pred = w->ir->preds.data[node->pred + k];
    const pccl_node *p = &w->ir->nodes.data[pred];
    if (p->tb != node->tb && (known == NULL || known[p->tb] <= p->step) &&
        !pccl_vec_push(&w->candidates, (candidate){pred, w->position[pred], k})) {
      return false;
    }
  }
  if (w->candidates.len > 1) {
    qsort(w->candidates.data, w->candidates.len, sizeof *w->candidates.data, compare_latest_first);
  }
  return true;
}

/* A node that ends later may imply one that ends earlier. So, from the latest on, each candidate is kept that those
 * kept before do not imply. */
static void keep_needed(waiter *w, int32_t *known) {
  size_t kept = 0;
  for (size_t i = 0; i < w->candidates.len; i++) {
    candidate c = w->candidates.data[i];
    const pccl_node *p = &w->ir->nodes.data[c.node];
    if (known == NULL || known[p->tb] <= p->step) {
      w->candidates.data[kept++] = c;
      if (known != NULL) {
        learn_clock(w, known, c.node);
      }
    }
  }
  w->candidates.len = kept;
  if (kept > 1) {
    qsort(w->candidates.data, kept, sizeof *w->candidates.data, compare_as_predecessors);
  }
}

static bool find_waits_of_node(waiter *w, int32_t number) {
  pccl_ir *ir = w->ir;
  pccl_node *node = &ir->nodes.data[number];
  node->step = w->next_step[node->tb]++;
  node->wait = (int32_t)ir->waits.len;
  node->waits = 0;
  if (!find_candidates(w, node)) {
    return false;
  }
  if (w->candidates.len > 0) {
    int32_t *known = NULL;
    if (!find_known_row(w, node->tb, &known)) {
      return false;
    }
    keep_needed(w, known);
    for (size_t i = 0; i < w->candidates.len; i++) {
      const pccl_node *p = &ir->nodes.data[w->candidates.data[i].node];
      if (!pccl_vec_push(&ir->waits, (polyccl_wait){p->tb, p->step})) {
        return false;
      }
      node->waits++;
    }
    if (known != NULL && !take_snapshot(w, node->tb)) {
      return false;
    }
  }
  w->clock_of[number] = w->latest[node->tb];
  return true;
}

static void free_rank(waiter *w) {
  for (int32_t tb = 0; w->known != NULL && tb < w->tbs; tb++) {
    free(w->known[tb]);
  }
  free(w->known);
  free(w->latest);
  free(w->next_step);
  w->known = NULL;
  w->latest = w->next_step = NULL;
  w->known_len = 0;
  w->clocks.len = 0;
}

static bool find_waits_of_rank(waiter *w, int32_t tbs, const int32_t *nodes, size_t count) {
  free_rank(w);
  w->tbs = tbs;
  w->known = pccl_zeroed((size_t)tbs, sizeof *w->known);
  w->latest = pccl_array((size_t)tbs, sizeof *w->latest);
  w->next_step = pccl_zeroed((size_t)tbs, sizeof *w->next_step);
  if (w->known == NULL || w->latest == NULL || w->next_step == NULL) {
    return false;
  }
  memset(w->latest, 0xff, (size_t)tbs * sizeof *w->latest);
  for (size_t i = 0; i < count; i++) {
    w->position[nodes[i]] = (int32_t)i;
  }
  for (size_t i = 0; i < count; i++) {
    if (!find_waits_of_node(w, nodes[i])) {
      return false;
    }
  }
  return true;
}

/* Sorts the order by rank and finds the waits of each rank. */
static bool find_waits(waiter *w, int32_t *by_rank, size_t *first) {
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
    if (!find_waits_of_rank(w, ir->tbs[rank], by_rank + begin, end - begin)) {
      return false;
    }
  }
  return true;
}

polyccl_result pccl_pass_wait(pccl_ir *ir) {
  size_t count = ir->nodes.len;
  ir->waits.len = 0;
  waiter w = {.ir = ir,
              .work = max_work + max_work_of_node * count,
              .clock_of = pccl_array(count, sizeof *w.clock_of),
              .position = pccl_array(count, sizeof *w.position)};
  int32_t *by_rank = pccl_array(ir->order.len, sizeof *by_rank);
  size_t *first = pccl_zeroed((size_t)ir->spec.ranks + 2, sizeof *first);
  bool ok =
      w.clock_of != NULL && w.position != NULL && by_rank != NULL && first != NULL && find_waits(&w, by_rank, first);
  free(by_rank);
  free(first);
  free_rank(&w);
  free(w.clock_of);
  free(w.position);
  pccl_vec_free(&w.clocks);
  pccl_vec_free(&w.candidates);
  return ok ? POLYCCL_SUCCESS : pccl_no_memory("the compiler");
}
