/* block: thread blocks. An end is one direction of one connection. Fused nodes and the author's hints tie ends
 * together, and ends that are tied are one thread block, with at most one send peer, one receive peer and one channel.
 * Local nodes join the thread block that made what they read. */
#include <stdlib.h>

#include "base/error.h"
#include "base/map.h"
#include "compiler/ir.h"

typedef struct end {
  int32_t parent;        /* union-find */
  int32_t send, receive; /* of the root: the node that first used this direction, or -1 */
  int32_t hint;          /* of the root: the author's number, or -1 */
  int32_t tb, steps;     /* of the root: the final number, or -1 */
  int32_t rank;
} end;

typedef struct builder {
  pccl_ir *ir;
  PCCL_VEC(end) ends;
  pccl_map by_key;  /* (rank, channel, peer, direction) */
  pccl_map by_hint; /* (rank, hint) */
} builder;

static int32_t find_root(builder *b, int32_t e) {
  end *ends = b->ends.data;
  while (ends[e].parent != e) {
    ends[e].parent = ends[ends[e].parent].parent;
    e = ends[e].parent;
  }
  return e;
}

static int32_t add_end(builder *b, pccl_map *map, uint64_t key, int32_t rank) {
  bool is_new;
  uint64_t *slot = pccl_map_put(map, key, b->ends.len, &is_new);
  int32_t self = (int32_t)b->ends.len;
  if (slot == NULL ||
      (is_new && !pccl_vec_push(
                     &b->ends, (end){.parent = self, .send = -1, .receive = -1, .hint = -1, .tb = -1, .rank = rank}))) {
    return -1;
  }
  return (int32_t)*slot;
}

static int32_t peer_of_direction(const pccl_ir *ir, int32_t node, bool sends) {
  const pccl_node *n = &ir->nodes.data[node];
  return ir->nodes.data[sends ? n->to : n->from].rank;
}

static polyccl_result fail_two_peers(const builder *b, int32_t first, int32_t second, bool sends) {
  const pccl_ir *ir = b->ir;
  polyccl_location at = pccl_ir_location(ir, &ir->nodes.data[first]);
  const pccl_node *node = &ir->nodes.data[second];
  return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_ir_location(ir, node),
                      "thread block %d of rank %d would %s rank %d on channel %d here and rank %d on channel %d at "
                      "%s:%d; a thread block has one %s peer and one channel: give one of them another %s",
                      node->tb >= 0 ? node->tb / ir->instances : 0, node->rank, sends ? "send to" : "receive from",
                      peer_of_direction(ir, second, sends), node->channel / ir->instances,
                      peer_of_direction(ir, first, sends), ir->nodes.data[first].channel / ir->instances,
                      at.file != NULL ? at.file : "?", at.line, sends ? "send" : "receive",
                      sends ? "sendtb" : "recvtb");
}

static polyccl_result fail_two_blocks(const builder *b, int32_t first, int32_t second, bool sends, int32_t hint_first,
                                      int32_t hint_second) {
  const pccl_ir *ir = b->ir;
  polyccl_location at = pccl_ir_location(ir, &ir->nodes.data[first]);
  const pccl_node *node = &ir->nodes.data[second];
  return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_ir_location(ir, node),
                      "rank %d %s rank %d on channel %d in thread block %d here and in thread block %d at %s:%d; a "
                      "connection belongs to one: use the same %s, or another channel",
                      node->rank, sends ? "sends to" : "receives from", peer_of_direction(ir, second, sends),
                      node->channel / ir->instances, hint_second / ir->instances, hint_first / ir->instances,
                      at.file != NULL ? at.file : "?", at.line, sends ? "sendtb" : "recvtb");
}

/* Ties two ends. Error messages name the later node first. */
static polyccl_result tie_ends(builder *b, int32_t x, int32_t y) {
  x = find_root(b, x);
  y = find_root(b, y);
  if (x == y) {
    return POLYCCL_SUCCESS;
  }
  end *into = &b->ends.data[x < y ? x : y], *from = &b->ends.data[x < y ? y : x];
  for (int sends = 0; sends < 2; sends++) {
    int32_t *mine = sends ? &into->send : &into->receive, *theirs = sends ? &from->send : &from->receive;
    if (*mine >= 0 && *theirs >= 0) {
      int32_t first = *mine < *theirs ? *mine : *theirs, second = *mine < *theirs ? *theirs : *mine;
      return fail_two_peers(b, first, second, sends != 0);
    }
    *mine = *mine >= 0 ? *mine : *theirs;
  }
  if (into->send >= 0 && into->receive >= 0 &&
      b->ir->nodes.data[into->send].channel != b->ir->nodes.data[into->receive].channel) {
    const pccl_node *s = &b->ir->nodes.data[into->send], *r = &b->ir->nodes.data[into->receive];
    polyccl_location at = pccl_ir_location(b->ir, r);
    return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_ir_location(b->ir, s),
                        "a thread block of rank %d would send on channel %d here and receive on channel %d at %s:%d; "
                        "it has one channel: use the same ch, or another sendtb",
                        s->rank, s->channel / b->ir->instances, r->channel / b->ir->instances,
                        at.file != NULL ? at.file : "?", at.line);
  }
  if (into->hint >= 0 && from->hint >= 0 && into->hint != from->hint) {
    bool sends = into->send >= 0;
    int32_t node = sends ? into->send : into->receive;
    return fail_two_blocks(b, node, node, sends, into->hint, from->hint);
  }
  into->hint = into->hint >= 0 ? into->hint : from->hint;
  from->parent = into->parent;
  return POLYCCL_SUCCESS;
}

static polyccl_result find_end(builder *b, int32_t number, bool sends, int32_t *out) {
  const pccl_node *node = &b->ir->nodes.data[number];
  int32_t peer = peer_of_direction(b->ir, number, sends);
  uint64_t key = ((uint64_t)node->channel << 33) | ((uint64_t)node->rank << 17) | ((uint64_t)peer << 1) | sends;
  int32_t e = add_end(b, &b->by_key, key, node->rank);
  if (e < 0) {
    return pccl_no_memory("the compiler");
  }
  end *root = &b->ends.data[find_root(b, e)];
  int32_t *first = sends ? &root->send : &root->receive;
  *first = *first >= 0 ? *first : number;
  if (node->tb >= 0) {
    if (root->hint >= 0 && root->hint != node->tb) {
      return fail_two_blocks(b, *first, number, sends, root->hint, node->tb);
    }
    uint64_t hint_key = ((uint64_t)node->rank << 32) | (uint32_t)node->tb;
    int32_t hinted = add_end(b, &b->by_hint, hint_key, node->rank);
    if (hinted < 0) {
      return pccl_no_memory("the compiler");
    }
    b->ends.data[find_root(b, hinted)].hint = node->tb;
    PCCL_TRY(tie_ends(b, e, hinted));
  }
  *out = e;
  return POLYCCL_SUCCESS;
}

static polyccl_result tie_node(builder *b, int32_t number) {
  const pccl_node *node = &b->ir->nodes.data[number];
  int32_t in = -1, out = -1;
  if (node->from >= 0) {
    PCCL_TRY(find_end(b, number, false, &in));
  }
  if (node->to >= 0) {
    PCCL_TRY(find_end(b, number, true, &out));
  }
  if (in >= 0 && out >= 0) {
    PCCL_TRY(tie_ends(b, in, out));
  }
  if (in < 0 && out < 0 && node->tb >= 0) {
    uint64_t key = ((uint64_t)node->rank << 32) | (uint32_t)node->tb;
    int32_t hinted = add_end(b, &b->by_hint, key, node->rank);
    if (hinted < 0) {
      return pccl_no_memory("the compiler");
    }
    b->ends.data[find_root(b, hinted)].hint = node->tb;
  }
  return POLYCCL_SUCCESS;
}

static int32_t number_block(builder *b, int32_t e) {
  end *root = &b->ends.data[find_root(b, e)];
  if (root->tb < 0) {
    root->tb = b->ir->tbs[root->rank]++;
  }
  return find_root(b, e);
}

/* The author's numbers keep their order; other thread blocks follow by first use. */
static int compare_hints(const void *a, const void *b) {
  const end *x = *(const end *const *)a, *y = *(const end *const *)b;
  return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : (x->hint > y->hint) - (x->hint < y->hint);
}

static polyccl_result number_hinted(builder *b) {
  PCCL_VEC(end *) hinted = {0};
  for (size_t i = 0; i < b->ends.len; i++) {
    if (b->ends.data[i].parent == (int32_t)i && b->ends.data[i].hint >= 0 &&
        !pccl_vec_push(&hinted, &b->ends.data[i])) {
      pccl_vec_free(&hinted);
      return pccl_no_memory("the compiler");
    }
  }
  if (hinted.len > 0) {
    qsort(hinted.data, hinted.len, sizeof *hinted.data, compare_hints);
  }
  for (size_t i = 0; i < hinted.len; i++) {
    hinted.data[i]->tb = b->ir->tbs[hinted.data[i]->rank]++;
  }
  pccl_vec_free(&hinted);
  return POLYCCL_SUCCESS;
}

/* A local node goes to the thread block that made its latest operand, or else to the shortest of its rank. */
static int32_t choose_local_home(builder *b, const pccl_node *node, const int32_t *end_of_node,
                                 const int32_t *shortest) {
  int32_t home = -1;
  int32_t latest = -1;
  for (int32_t k = 0; k < node->preds; k++) {
    int32_t pred = b->ir->preds.data[node->pred + k];
    if (end_of_node[pred] >= 0 && b->ir->nodes.data[pred].depth > latest) {
      latest = b->ir->nodes.data[pred].depth;
      home = end_of_node[pred];
    }
  }
  return home >= 0 ? home : shortest[node->rank];
}

static polyccl_result place_local(builder *b, int32_t number, int32_t *end_of_node, int32_t *shortest) {
  const pccl_node *node = &b->ir->nodes.data[number];
  int32_t home = -1;
  if (node->tb >= 0) {
    home = add_end(b, &b->by_hint, ((uint64_t)node->rank << 32) | (uint32_t)node->tb, node->rank);
  } else {
    home = choose_local_home(b, node, end_of_node, shortest);
    if (home < 0) {
      /* No connection has this key, since no rank sends to itself. */
      home = add_end(b, &b->by_key, ((uint64_t)node->rank << 17) | ((uint64_t)node->rank << 1), node->rank);
      shortest[node->rank] = home;
    }
  }
  if (home < 0) {
    return pccl_no_memory("the compiler");
  }
  end_of_node[number] = home;
  return POLYCCL_SUCCESS;
}

static polyccl_result build_blocks(builder *b, int32_t *end_of_node, int32_t *shortest) {
  pccl_ir *ir = b->ir;
  for (size_t i = 0; i < ir->nodes.len; i++) {
    if (!ir->nodes.data[i].gone) {
      PCCL_TRY(tie_node(b, (int32_t)i));
    }
  }
  PCCL_TRY(number_hinted(b));
  for (size_t i = 0; i < ir->nodes.len; i++) {
    const pccl_node *node = &ir->nodes.data[i];
    end_of_node[i] = -1;
    if (!node->gone && (node->from >= 0 || node->to >= 0)) {
      PCCL_TRY(find_end(b, (int32_t)i, node->to >= 0, &end_of_node[i]));
      end_of_node[i] = find_root(b, end_of_node[i]);
      b->ends.data[end_of_node[i]].steps++;
    }
  }
  for (int rank = 0; rank < ir->spec.ranks; rank++) {
    shortest[rank] = -1;
  }
  for (size_t i = 0; i < b->ends.len; i++) {
    end *e = &b->ends.data[i];
    int32_t *best = &shortest[e->rank];
    if (e->parent == (int32_t)i && (*best < 0 || e->steps < b->ends.data[*best].steps)) {
      *best = (int32_t)i;
    }
  }
  for (size_t k = 0; k < ir->order.len; k++) {
    int32_t number = ir->order.data[k];
    if (end_of_node[number] < 0) {
      PCCL_TRY(place_local(b, number, end_of_node, shortest));
    }
    int32_t root = number_block(b, end_of_node[number]);
    ir->nodes.data[number].tb = b->ends.data[root].tb;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_manual_hints(const pccl_ir *ir) {
  for (size_t i = 0; i < ir->nodes.len; i++) {
    const pccl_node *node = &ir->nodes.data[i];
    if (!node->gone && node->tb < 0) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_ir_location(ir, node),
                          "the program assigns thread blocks itself (manual), but this operation has no %s",
                          node->to >= 0 ? "sendtb" : "recvtb");
    }
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_pass_block(pccl_ir *ir) {
  if (ir->program->config.manual) {
    PCCL_TRY(check_manual_hints(ir));
  }
  builder b = {.ir = ir};
  ir->tbs = pccl_zeroed((size_t)ir->spec.ranks, sizeof *ir->tbs);
  int32_t *end_of_node = pccl_array(ir->nodes.len, sizeof *end_of_node);
  int32_t *shortest = pccl_array((size_t)ir->spec.ranks, sizeof *shortest);
  polyccl_result result = ir->tbs != NULL && end_of_node != NULL && shortest != NULL
                              ? build_blocks(&b, end_of_node, shortest)
                              : pccl_no_memory("the compiler");
  free(end_of_node);
  free(shortest);
  pccl_vec_free(&b.ends);
  pccl_map_free(&b.by_key);
  pccl_map_free(&b.by_hint);
  return result;
}
