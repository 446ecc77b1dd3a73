/* merge: saves thread blocks by a simulated timeline. On every rank that has the largest number, the two that work
 * least become one; shrink.c repeats this while the simulated time stays.
 *
 * The merged thread block runs its nodes in the global order like all others, and two hops of one chain never come into
 * one thread block. In task-major order the plan is as safe as it was. In batch-major order it may need a deeper FIFO,
 * which the verifier finds. */
#include "compiler/merge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"

polyccl_result pccl_channels_of_blocks(pccl_ir *ir) {
  pccl_map channels = {0}, next_channel = {0};
  bool ok = true;
  for (size_t i = 0; i < ir->order.len && ok; i++) {
    pccl_node *node = &ir->nodes.data[ir->order.data[i]];
    if (node->from < 0) {
      continue;
    }
    pccl_node *sender = &ir->nodes.data[node->from];
    uint64_t pair = ((uint64_t)sender->rank << 16) | (uint64_t)node->rank;
    uint64_t key = (pair << 32) | ((uint64_t)sender->tb << 16) | (uint64_t)node->tb;
    bool is_new = false;
    uint64_t *next = pccl_map_put(&next_channel, pair, 0, NULL);
    uint64_t *channel = next != NULL ? pccl_map_put(&channels, key, *next, &is_new) : NULL;
    ok = channel != NULL;
    if (ok) {
      *next += is_new;
      node->channel = (int32_t)*channel;
      sender->channel = sender->from < 0 ? node->channel : sender->channel;
    }
  }
  pccl_map_free(&channels);
  pccl_map_free(&next_channel);
  return ok ? POLYCCL_SUCCESS : pccl_no_memory("thread blocks");
}

typedef struct merger {
  pccl_ir *ir;
  size_t *first;  /* [ranks] a rank's first pair in `apart` */
  uint8_t *apart; /* [pairs of thread blocks of a rank] 1: they have hops of one chain */
  int32_t max;
} merger;

static uint8_t *apart_pair(const merger *m, int rank, int32_t a, int32_t b) {
  return &m->apart[m->first[rank] + (size_t)a * (size_t)m->ir->tbs[rank] + (size_t)b];
}

/* The thread blocks that the present chain has on a rank so far. */
typedef struct passes {
  PCCL_VEC(int32_t) tb;
} passes;

static bool mark_pass(merger *m, passes *seen, int rank, int32_t tb) {
  for (size_t i = 0; i < seen->tb.len; i++) {
    if (seen->tb.data[i] == tb) {
      return true;
    }
  }
  for (size_t i = 0; i < seen->tb.len; i++) {
    *apart_pair(m, rank, tb, seen->tb.data[i]) = *apart_pair(m, rank, seen->tb.data[i], tb) = 1;
  }
  return pccl_vec_push(&seen->tb, tb);
}

static bool find_apart_pairs(merger *m) {
  const pccl_node *nodes = m->ir->nodes.data;
  passes *seen = pccl_zeroed((size_t)m->ir->spec.ranks, sizeof *seen);
  bool ok = seen != NULL;
  for (size_t i = 0; i < m->ir->order.len && ok; i++) {
    int32_t head = m->ir->order.data[i];
    if (nodes[head].from >= 0 || nodes[head].to < 0) {
      continue;
    }
    for (int32_t k = head; k >= 0 && ok; k = nodes[k].to) {
      ok = mark_pass(m, &seen[nodes[k].rank], nodes[k].rank, nodes[k].tb);
    }
    for (int32_t k = head; k >= 0; k = nodes[k].to) {
      seen[nodes[k].rank].tb.len = 0;
    }
  }
  for (int rank = 0; seen != NULL && rank < m->ir->spec.ranks; rank++) {
    pccl_vec_free(&seen[rank].tb);
  }
  free(seen);
  return ok;
}

/* The two thread blocks of a rank that work least and may become one; false: there are none. */
static bool find_pair(const merger *m, int rank, const double *busy, int32_t *a, int32_t *b) {
  double min = INFINITY;
  for (int32_t i = 0; i < m->ir->tbs[rank]; i++) {
    for (int32_t k = 0; k < i; k++) {
      if (!*apart_pair(m, rank, i, k) && busy[i] + busy[k] < min) {
        min = busy[i] + busy[k];
        *a = k;
        *b = i;
      }
    }
  }
  return min < INFINITY;
}

static bool merge_on_ranks(merger *m, double *busy) {
  pccl_ir *ir = m->ir;
  int ranks = ir->spec.ranks;
  int32_t *into =
      pccl_array((size_t)ranks, 2 * sizeof *into); /* [ranks] pairs: the block that goes, the one that takes its work */
  if (into == NULL) {
    return false;
  }
  bool all = true;
  const double *here = busy;
  for (int rank = 0; rank < ranks && all; rank++) {
    into[2 * rank] = -1;
    all = ir->tbs[rank] < m->max || find_pair(m, rank, here, &into[2 * rank + 1], &into[2 * rank]);
    here += ir->tbs[rank];
  }
  for (size_t i = 0; i < ir->order.len && all; i++) {
    pccl_node *node = &ir->nodes.data[ir->order.data[i]];
    int32_t gone = into[2 * node->rank], last = ir->tbs[node->rank] - 1;
    if (gone >= 0) {
      node->tb = node->tb == gone ? into[2 * node->rank + 1] : node->tb == last ? gone : node->tb;
    }
  }
  double *from = busy, *to = busy;
  for (int rank = 0; rank < ranks && all; rank++) {
    int32_t tbs = ir->tbs[rank], gone = into[2 * rank];
    if (gone >= 0) {
      from[into[2 * rank + 1]] += from[gone];
      from[gone] = from[tbs - 1];
      ir->tbs[rank]--;
    }
    memmove(to, from, (size_t)ir->tbs[rank] * sizeof *to);
    from += tbs;
    to += ir->tbs[rank];
  }
  free(into);
  return all;
}

polyccl_result pccl_merge_blocks(pccl_ir *ir, double *busy, bool *merged) {
  size_t ranks = (size_t)ir->spec.ranks, total = 0;
  merger m = {.ir = ir, .first = pccl_array(ranks, sizeof *m.first)};
  if (m.first == NULL) {
    return pccl_no_memory("thread blocks");
  }
  for (size_t rank = 0; rank < ranks; rank++) {
    m.first[rank] = total;
    total += (size_t)ir->tbs[rank] * (size_t)ir->tbs[rank];
    m.max = ir->tbs[rank] > m.max ? ir->tbs[rank] : m.max;
  }
  m.apart = pccl_zeroed(total, sizeof *m.apart);
  if (m.apart == NULL) {
    free(m.first);
    return pccl_no_memory("thread blocks");
  }
  bool ok = find_apart_pairs(&m);
  *merged = ok && m.max > 1 && merge_on_ranks(&m, busy);
  free(m.first);
  free(m.apart);
  return ok ? POLYCCL_SUCCESS : pccl_no_memory("thread blocks");
}
