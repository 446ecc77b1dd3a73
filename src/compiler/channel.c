/* channel: a route is the chain of connections that fused nodes tie together, and has one channel from end to end.
 * Equal routes of an instance share a channel. Another route takes the lowest channel on which each of its fused nodes
 * finds its pair (receive peer, send peer) free or already its own, since a thread block has one of each. Instances
 * never share a channel. */
#include <stdlib.h>

#include "base/error.h"
#include "base/map.h"
#include "compiler/ir.h"

typedef struct router {
  pccl_ir *ir;
  pccl_map pairs;  /* (channel, rank, peer, direction) -> partner + 1, node << 32 */
  pccl_map taken;  /* word_key() -> 64 channels of an instance, a bit each */
  pccl_map routes; /* hash of a route -> channel */
} router;

/* Ranks, peers and channels are below 2^16. */
static uint64_t end_key(int32_t channel, int32_t rank, int32_t peer, bool sends) {
  return ((uint64_t)channel << 33) | ((uint64_t)rank << 17) | ((uint64_t)peer << 1) | (sends ? 1 : 0);
}

static int32_t peer_from(const pccl_ir *ir, const pccl_node *node) { return ir->nodes.data[node->from].rank; }
static int32_t peer_to(const pccl_ir *ir, const pccl_node *node) { return ir->nodes.data[node->to].rank; }

/* The node that already holds one end of the pair with another partner; -1: none. */
static int32_t pair_conflict(const router *r, int32_t channel, const pccl_node *node) {
  int32_t from = peer_from(r->ir, node), to = peer_to(r->ir, node);
  uint64_t *in = pccl_map_get(&r->pairs, end_key(channel, node->rank, from, false));
  uint64_t *out = pccl_map_get(&r->pairs, end_key(channel, node->rank, to, true));
  if (in != NULL && (uint32_t)*in != (uint32_t)to + 1) {
    return (int32_t)(*in >> 32);
  }
  if (out != NULL && (uint32_t)*out != (uint32_t)from + 1) {
    return (int32_t)(*out >> 32);
  }
  return -1;
}

/* The next fused node of a route, from its first send on; -1: none. */
static int32_t next_fused(const pccl_ir *ir, int32_t node) {
  int32_t next = ir->nodes.data[node].to;
  return next >= 0 && ir->nodes.data[next].to >= 0 ? next : -1;
}

/* Which channels of an instance are taken by a node's receive peer, by its send peer, by the pair of both: a bit for
 * each channel, 64 in a word. */
typedef enum word_kind { WORD_RECEIVES, WORD_SENDS, WORD_PAIR } word_kind;

enum { WORD = 64 };

static uint64_t word_key(const router *r, int32_t instance, int32_t word, const pccl_node *node, word_kind kind) {
  uint64_t from = kind != WORD_SENDS ? (uint64_t)peer_from(r->ir, node) + 1 : 0;
  uint64_t to = kind != WORD_RECEIVES ? (uint64_t)peer_to(r->ir, node) + 1 : 0;
  uint64_t ends = pccl_mix64((from << 40) | (to << 20) | (uint64_t)node->rank);
  return pccl_mix64(ends ^ ((uint64_t)instance << 32) ^ (uint64_t)word) >> 1;
}

static uint64_t word_of_node(const router *r, int32_t instance, int32_t word, const pccl_node *node, word_kind kind) {
  uint64_t *bits = pccl_map_get(&r->taken, word_key(r, instance, word, node, kind));
  return bits != NULL ? *bits : 0;
}

static bool mark_taken(router *r, int32_t channel, const pccl_node *node) {
  int32_t instance = channel % r->ir->instances, place = channel / r->ir->instances;
  for (int kind = WORD_RECEIVES; kind <= WORD_PAIR; kind++) {
    uint64_t *bits = pccl_map_put(&r->taken, word_key(r, instance, place / WORD, node, (word_kind)kind), 0, NULL);
    if (bits == NULL) {
      return false;
    }
    *bits |= (uint64_t)1 << (place % WORD);
  }
  return true;
}

/* The first channel of the same instance, from `channel` on, that fits the whole route; PCCL_MAX_CHANNELS: none. */
static int32_t first_free_channel(const router *r, int32_t channel, int32_t head) {
  int32_t instances = r->ir->instances, instance = channel % instances, place = channel / instances;
  uint64_t before = ((uint64_t)1 << (place % WORD)) - 1;
  for (int32_t word = place / WORD; (int64_t)word * WORD * instances < PCCL_MAX_CHANNELS; word++) {
    uint64_t taken = before;
    for (int32_t node = next_fused(r->ir, head); node >= 0 && ~taken != 0; node = next_fused(r->ir, node)) {
      const pccl_node *n = &r->ir->nodes.data[node];
      taken |= (word_of_node(r, instance, word, n, WORD_RECEIVES) | word_of_node(r, instance, word, n, WORD_SENDS)) &
               ~word_of_node(r, instance, word, n, WORD_PAIR);
    }
    if (~taken != 0) {
      int64_t found = ((int64_t)word * WORD + __builtin_ctzll(~taken)) * instances + instance;
      return found < PCCL_MAX_CHANNELS ? (int32_t)found : PCCL_MAX_CHANNELS;
    }
    before = 0;
  }
  return PCCL_MAX_CHANNELS;
}

static bool take_pairs(router *r, int32_t channel, int32_t number) {
  const pccl_node *node = &r->ir->nodes.data[number];
  int32_t from = peer_from(r->ir, node), to = peer_to(r->ir, node);
  uint64_t who = (uint64_t)number << 32;
  return mark_taken(r, channel, node) &&
         pccl_map_put(&r->pairs, end_key(channel, node->rank, from, false), who | ((uint32_t)to + 1), NULL) != NULL &&
         pccl_map_put(&r->pairs, end_key(channel, node->rank, to, true), who | ((uint32_t)from + 1), NULL) != NULL;
}

static int32_t route_conflict(const router *r, int32_t channel, int32_t head) {
  for (int32_t node = next_fused(r->ir, head); node >= 0; node = next_fused(r->ir, node)) {
    int32_t other = pair_conflict(r, channel, &r->ir->nodes.data[node]);
    if (other >= 0) {
      return other;
    }
  }
  return -1;
}

static bool assign_route(router *r, int32_t channel, int32_t head) {
  bool ok = true;
  for (int32_t node = head; node >= 0 && ok; node = r->ir->nodes.data[node].to) {
    r->ir->nodes.data[node].channel = channel;
    ok = node == head || r->ir->nodes.data[node].to < 0 || take_pairs(r, channel, node);
  }
  return ok;
}

static uint64_t route_hash(const pccl_ir *ir, int32_t head) {
  uint64_t hash = pccl_mix64((uint64_t)ir->nodes.data[head].instance);
  for (int32_t node = head; node >= 0; node = ir->nodes.data[node].to) {
    hash = pccl_mix64(hash ^ (uint64_t)ir->nodes.data[node].rank);
  }
  return hash >> 1;
}

static int32_t hinted_channel(const pccl_ir *ir, int32_t head) {
  for (int32_t node = head; node >= 0; node = ir->nodes.data[node].to) {
    if (ir->nodes.data[node].channel >= 0) {
      return ir->nodes.data[node].channel;
    }
  }
  return -1;
}

static polyccl_result assign_hinted_route(router *r, int32_t channel, int32_t head) {
  int32_t other = route_conflict(r, channel, head);
  if (other >= 0) {
    polyccl_location at = pccl_ir_location(r->ir, &r->ir->nodes.data[other]);
    return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_ir_location(r->ir, &r->ir->nodes.data[head]),
                        "channel %d cannot carry this route: on rank %d a thread block would need two peers in one "
                        "direction, because of the operation at %s:%d; give one of them another channel, or set "
                        "fusion = false",
                        channel / r->ir->instances, r->ir->nodes.data[other].rank, at.file != NULL ? at.file : "?",
                        at.line);
  }
  return assign_route(r, channel, head) ? POLYCCL_SUCCESS : pccl_no_memory("the compiler");
}

static polyccl_result assign_free_route(router *r, int32_t head) {
  int32_t instance = r->ir->nodes.data[head].instance;
  if (next_fused(r->ir, head) < 0) {
    return assign_route(r, instance, head) ? POLYCCL_SUCCESS : pccl_no_memory("the compiler");
  }
  bool is_new;
  uint64_t *known = pccl_map_put(&r->routes, route_hash(r->ir, head), (uint64_t)instance, &is_new);
  if (known == NULL) {
    return pccl_no_memory("the compiler");
  }
  int32_t channel = (int32_t)*known;
  while (route_conflict(r, channel, head) >= 0) {
    channel = first_free_channel(r, channel + r->ir->instances, head);
    if (channel == PCCL_MAX_CHANNELS) {
      return pccl_fail_at(POLYCCL_ERROR_LIMIT, pccl_ir_location(r->ir, &r->ir->nodes.data[head]),
                          "the routes need more than %d channels", PCCL_MAX_CHANNELS);
    }
  }
  if (is_new) {
    *known = (uint64_t)channel;
  }
  return assign_route(r, channel, head) ? POLYCCL_SUCCESS : pccl_no_memory("the compiler");
}

static polyccl_result assign_all_routes(router *r) {
  /* Hinted routes come first, so that free routes fit around them. */
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < r->ir->nodes.len; i++) {
      const pccl_node *node = &r->ir->nodes.data[i];
      if (node->op != POLYCCL_STEP_SEND || node->gone) {
        continue;
      }
      int32_t hint = pass == 0 ? hinted_channel(r->ir, (int32_t)i) : r->ir->hinted[i] ? 0 : -1;
      if (pass == 0 && hint >= 0) {
        r->ir->hinted[i] = 1;
        PCCL_TRY(assign_hinted_route(r, hint, (int32_t)i));
      } else if (pass == 1 && hint < 0) {
        PCCL_TRY(assign_free_route(r, (int32_t)i));
      }
    }
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_pass_channel(pccl_ir *ir) {
  for (size_t i = 0; i < ir->nodes.len; i++) {
    if (ir->nodes.data[i].channel >= PCCL_MAX_CHANNELS) {
      return pccl_fail_at(POLYCCL_ERROR_LIMIT, pccl_ir_location(ir, &ir->nodes.data[i]),
                          "channel %d is out of range (at most %d with %d instances)",
                          ir->nodes.data[i].channel / ir->instances, PCCL_MAX_CHANNELS / ir->instances - 1,
                          ir->instances);
    }
  }
  ir->hinted = pccl_zeroed(ir->nodes.len, sizeof *ir->hinted);
  if (ir->hinted == NULL) {
    return pccl_no_memory("the compiler");
  }
  router r = {.ir = ir};
  polyccl_result result = assign_all_routes(&r);
  pccl_map_free(&r.pairs);
  pccl_map_free(&r.taken);
  pccl_map_free(&r.routes);
  return result;
}
