/* allocate: thread blocks by state (ResCCL). An endpoint is a task's send or receive. Endpoints of one rank that stand
 * in different sub-pipelines are never active together, so they may share a thread block, and a rank gets as many
 * thread blocks as its fullest sub-pipeline needs. An endpoint prefers the thread block that last served the same peer
 * in the same direction, which saves connections, and otherwise takes the one that has been idle for longest.
 *
 * The plan is safe for any number of micro-batches: every thread block runs its tasks in one global order, so the first
 * unfinished task of that order always has both of its thread blocks ready, and all it waits for has ended. A
 * connection joins one thread block to one other, so each pair of thread blocks has a channel of its own. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "compiler/ir.h"

enum { SENDS = 0, RECEIVES = 1, LOCAL = 2 };

typedef struct block {
  int32_t pipeline; /* that used it last; -1: none */
  int32_t peer;
  int32_t direction;
} block;

typedef PCCL_VEC(block) blocks;

typedef struct allocator {
  pccl_ir *ir;
  bool directions;       /* true: sends and receives have thread blocks of their own */
  blocks *rank;          /* [ranks] */
  pccl_map channels;     /* (src, dst, their thread blocks) -> channel */
  pccl_map next_channel; /* (src, dst) */
} allocator;

static int32_t choose_block(const allocator *a, int rank, int32_t peer, int32_t direction, int32_t pipeline) {
  const blocks *list = &a->rank[rank];
  int32_t rested = -1;
  for (size_t i = 0; i < list->len; i++) {
    const block *b = &list->data[i];
    if (b->pipeline == pipeline || (a->directions && direction != LOCAL && b->direction != direction)) {
      continue;
    }
    if (b->peer == peer && b->direction == direction) {
      return (int32_t)i;
    }
    if (rested < 0 || b->pipeline < list->data[rested].pipeline) {
      rested = (int32_t)i;
    }
  }
  return rested;
}

/* A local task waits for a busy thread block where no free one is left. */
static int32_t take_block(allocator *a, int rank, int32_t peer, int32_t direction, int32_t pipeline) {
  blocks *list = &a->rank[rank];
  int32_t chosen = choose_block(a, rank, peer, direction, pipeline);
  if (chosen < 0 && direction == LOCAL && list->len > 0) {
    return 0;
  }
  if (chosen < 0) {
    if (!pccl_vec_push(list, (block){-1, -1, direction})) {
      return -1;
    }
    chosen = (int32_t)list->len - 1;
  }
  block *b = &list->data[chosen];
  b->pipeline = pipeline;
  if (direction != LOCAL) {
    b->peer = peer;
    b->direction = direction;
  }
  return chosen;
}

static int32_t channel_of_blocks(allocator *a, const pccl_node *send, const pccl_node *receive) {
  uint64_t pair = ((uint64_t)send->rank << 16) | (uint64_t)receive->rank;
  bool is_new;
  uint64_t *next = pccl_map_put(&a->next_channel, pair, 0, NULL);
  if (next == NULL) {
    return -1;
  }
  uint64_t key = (pair << 32) | ((uint64_t)send->tb << 16) | (uint64_t)receive->tb;
  uint64_t *channel = pccl_map_put(&a->channels, key, *next, &is_new);
  if (channel == NULL) {
    return -1;
  }
  *next += is_new;
  return (int32_t)*channel;
}

/* The receive of a message follows its send in the order and is allocated with it. */
static bool allocate_node(allocator *a, int32_t number) {
  pccl_node *node = &a->ir->nodes.data[number];
  if (node->from >= 0) {
    return true;
  }
  if (node->to < 0) {
    node->channel = -1;
    node->tb = take_block(a, node->rank, node->rank, LOCAL, node->pipeline);
    return node->tb >= 0;
  }
  pccl_node *receive = &a->ir->nodes.data[node->to];
  node->tb = take_block(a, node->rank, receive->rank, SENDS, node->pipeline);
  receive->tb = take_block(a, receive->rank, node->rank, RECEIVES, node->pipeline);
  if (node->tb < 0 || receive->tb < 0 || node->tb > UINT16_MAX || receive->tb > UINT16_MAX) {
    return false;
  }
  node->channel = receive->channel = channel_of_blocks(a, node, receive);
  return node->channel >= 0;
}

polyccl_result pccl_pass_allocate(pccl_ir *ir) {
  size_t ranks = (size_t)ir->spec.ranks;
  allocator a = {.ir = ir, .directions = ir->options->max_tbs == 0, .rank = pccl_zeroed(ranks, sizeof *a.rank)};
  free(ir->tbs);
  ir->tbs = pccl_zeroed(ranks, sizeof *ir->tbs);
  bool ok = a.rank != NULL && ir->tbs != NULL;
  for (size_t i = 0; ok && i < ir->order.len; i++) {
    ok = allocate_node(&a, ir->order.data[i]);
  }
  for (size_t rank = 0; a.rank != NULL && rank < ranks; rank++) {
    if (ir->tbs != NULL) {
      ir->tbs[rank] = (int32_t)a.rank[rank].len;
    }
    free(a.rank[rank].data);
  }
  free(a.rank);
  pccl_map_free(&a.channels);
  pccl_map_free(&a.next_channel);
  return ok ? POLYCCL_SUCCESS : pccl_no_memory("thread blocks");
}
