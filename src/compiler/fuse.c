/* fuse: a receive and the one send that reads exactly what it stored become a node that does both. An rrcs whose stored
 * value has no other reader, and is overwritten or never needed, need not store it and becomes an rrs. */
#include <stdlib.h>

#include "base/error.h"
#include "compiler/ir.h"

static bool hints_agree(int32_t a, int32_t b) { return a < 0 || b < 0 || a == b; }

static bool can_fuse(const pccl_node *receive, const pccl_node *send) {
  return send->op == POLYCCL_STEP_SEND && (receive->op == POLYCCL_STEP_RECV || receive->op == POLYCCL_STEP_RRC) &&
         receive->dst_buf == send->src_buf && receive->dst == send->src && receive->count == send->count &&
         receive->instance == send->instance && hints_agree(receive->channel, send->channel) &&
         hints_agree(receive->tb, send->tb);
}

/* True when the send waits for nothing but the receive, so that it may happen at the receive's place. Reading exactly
 * what the receive stored, it has only that one predecessor, unless part of it was written by someone else since. */
static bool is_only_pred(const pccl_ir *ir, const pccl_node *send, int32_t receive) {
  return send->preds == 1 && ir->preds.data[send->pred] == receive;
}

static void fuse_pair(pccl_ir *ir, int32_t receive, int32_t send) {
  pccl_node *r = &ir->nodes.data[receive], *s = &ir->nodes.data[send];
  bool reduces = r->op == POLYCCL_STEP_RRC;
  bool unseen = r->reads == r->count && r->kills == r->count;
  r->op = reduces ? (unseen ? POLYCCL_STEP_RRS : POLYCCL_STEP_RRCS) : POLYCCL_STEP_RCS;
  r->to = s->to;
  ir->nodes.data[s->to].from = receive;
  r->channel = r->channel >= 0 ? r->channel : s->channel;
  r->tb = r->tb >= 0 ? r->tb : s->tb;
  s->gone = 1;
  ir->into[send] = receive;
}

/* A hint for a channel binds the whole route, since the messages of a fused chain share one channel. */
static bool chain_accepts(const pccl_ir *ir, const pccl_node *receive, const pccl_node *send) {
  const pccl_node *nodes = ir->nodes.data;
  int32_t before = nodes[receive->from].channel;
  int32_t after = nodes[send->to].channel;
  return hints_agree(before, after) && hints_agree(before, send->channel) && hints_agree(receive->channel, after);
}

/* Replaces predecessors that were fused away by the nodes they live on in; `mark` keeps each from being named twice. */
static void redirect_preds(pccl_ir *ir, int32_t *mark) {
  for (size_t i = 0; i < ir->nodes.len; i++) {
    mark[i] = -1;
  }
  for (size_t i = 0; i < ir->nodes.len; i++) {
    pccl_node *node = &ir->nodes.data[i];
    int32_t kept = 0;
    for (int32_t k = 0; k < node->preds && !node->gone; k++) {
      int32_t pred = ir->into[ir->preds.data[node->pred + k]];
      if (pred != (int32_t)i && mark[pred] != (int32_t)i) {
        mark[pred] = (int32_t)i;
        ir->preds.data[node->pred + kept++] = pred;
      }
    }
    node->preds = kept;
  }
}

/* The ranks that the present chain has passed, and its fused nodes on each, the last one first. */
typedef struct trail {
  int32_t *chain;  /* [ranks] the head of the chain that passed last */
  int32_t *last;   /* [ranks] */
  int32_t *before; /* [nodes] */
} trail;

/* A chain may pass a rank twice, but not with one peer in common: on one channel that would be one thread block with
 * two peers in the other direction. */
static bool fits_trail(const pccl_ir *ir, const trail *t, int32_t head, int32_t receive, int32_t send) {
  const pccl_node *nodes = ir->nodes.data;
  int32_t rank = nodes[receive].rank;
  int32_t from = nodes[nodes[receive].from].rank, to = nodes[nodes[send].to].rank;
  for (int32_t seen = t->chain[rank] == head ? t->last[rank] : -1; seen >= 0; seen = t->before[seen]) {
    int32_t seen_from = nodes[nodes[seen].from].rank, seen_to = nodes[nodes[seen].to].rank;
    if ((seen_from == from) != (seen_to == to)) {
      return false;
    }
    if (seen_from == from) {
      return true; /* the same pair again, which has been compared with all before it */
    }
  }
  return true;
}

static void fuse_chain(pccl_ir *ir, const int32_t *best, trail *t, int32_t send) {
  int32_t head = send, hops = 1;
  for (;;) {
    int32_t receive = ir->nodes.data[send].to;
    int32_t next = best[receive];
    if (next < 0) {
      return;
    }
    const pccl_node *r = &ir->nodes.data[receive];
    bool short_enough = ir->max_hops == 0 || hops < ir->max_hops;
    if (short_enough && chain_accepts(ir, r, &ir->nodes.data[next]) && fits_trail(ir, t, head, receive, next)) {
      hops++;
      fuse_pair(ir, receive, next);
      t->before[receive] = t->chain[r->rank] == head ? t->last[r->rank] : -1;
      t->chain[r->rank] = head;
      t->last[r->rank] = receive;
      send = receive;
    } else {
      head = send = next;
      hops = 1;
    }
  }
}

/* Of several sends of one value, the receive is fused with the one that has the longest path behind it. */
static void choose_sends(const pccl_ir *ir, int32_t *best) {
  for (size_t i = 0; i < ir->nodes.len; i++) {
    const pccl_node *send = &ir->nodes.data[i];
    if (send->op != POLYCCL_STEP_SEND || send->preds != 1) {
      continue;
    }
    int32_t pred = ir->preds.data[send->pred];
    bool apart = ir->apart != NULL && (ir->apart[i] || ir->apart[pred]);
    if (!apart && is_only_pred(ir, send, pred) && can_fuse(&ir->nodes.data[pred], send) &&
        (best[pred] < 0 || ir->nodes.data[best[pred]].priority < send->priority)) {
      best[pred] = (int32_t)i;
    }
  }
}

static void fuse_all(pccl_ir *ir, const int32_t *best, trail *t) {
  for (int rank = 0; rank < ir->spec.ranks; rank++) {
    t->chain[rank] = -1;
  }
  for (size_t i = 0; i < ir->nodes.len; i++) {
    const pccl_node *send = &ir->nodes.data[i];
    bool chosen = send->op == POLYCCL_STEP_SEND && send->preds == 1 && best[ir->preds.data[send->pred]] == (int32_t)i;
    if (send->op == POLYCCL_STEP_SEND && !chosen) {
      fuse_chain(ir, best, t, (int32_t)i);
    }
  }
}

polyccl_result pccl_pass_fuse(pccl_ir *ir) {
  size_t count = ir->nodes.len, ranks = (size_t)ir->spec.ranks;
  ir->into = pccl_array(count, sizeof *ir->into);
  int32_t *best = pccl_array(count, sizeof *best);
  trail t = {pccl_array(ranks, sizeof *t.chain), pccl_array(ranks, sizeof *t.last),
             pccl_array(count, sizeof *t.before)};
  bool ok = ir->into != NULL && best != NULL && t.chain != NULL && t.last != NULL && t.before != NULL;
  if (ok) {
    pccl_ir_depths(ir);
    for (size_t i = 0; i < count; i++) {
      ir->into[i] = (int32_t)i;
      best[i] = -1;
    }
    if (!ir->program->config.no_fusion && !ir->options->no_fusion) {
      choose_sends(ir, best);
      fuse_all(ir, best, &t);
    }
    redirect_preds(ir, best);
    pccl_ir_depths(ir);
  }
  free(best);
  free(t.chain);
  free(t.last);
  free(t.before);
  return ok ? POLYCCL_SUCCESS : pccl_no_memory("the compiler");
}
