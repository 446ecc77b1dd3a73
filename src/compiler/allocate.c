/* allocate: thread blocks by state (ResCCL). An endpoint is a task's send or receive; endpoints of one rank that stand
 * in different sub-pipelines are never active together, so they may share a thread block: as many are made as the
 * fullest sub-pipeline needs. An endpoint prefers the thread block that last served the same peer in the same direction
 * (fewer connections), else the one that has rested longest.
 *
 * Safe for any number of micro-batches by construction: every thread block runs its tasks in one global order, so the
 * first unfinished task of that order always has both of its thread blocks at it and all it waits for behind it.
 * A connection joins one thread block to one other: each pair of thread blocks has a channel of its own. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/task.h"

enum { SENDS = 0, RECEIVES = 1, LOCAL = 2 };

typedef struct block {
  int32_t pipeline; /* last used in; -1: never */
  int32_t peer;
  int32_t direction;
} block;

typedef PCCL_VEC(block) blocks;

typedef struct allocator {
  pccl_ir *ir;
  bool directions;
  blocks *rank;          /* [ranks] */
  pccl_map channels;     /* (src, dst, their thread blocks) -> channel */
  pccl_map next_channel; /* (src, dst) */
} allocator;

static int32_t choose(const allocator *a, int rank, int32_t peer, int32_t direction, int32_t pipeline) {
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

/* A local task waits for a busy thread block rather than make one. */
static int32_t take(allocator *a, int rank, int32_t peer, int32_t direction, int32_t pipeline) {
  blocks *list = &a->rank[rank];
  int32_t chosen = choose(a, rank, peer, direction, pipeline);
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

static int32_t channel_of(allocator *a, const pccl_node *send, const pccl_node *receive) {
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

static bool allocate_task(allocator *a, const pccl_task *task, int32_t pipeline) {
  pccl_node *node = &a->ir->nodes.data[task->node];
  node->pipeline = pipeline;
  if (node->to < 0) {
    node->channel = -1;
    node->tb = take(a, node->rank, node->rank, LOCAL, pipeline);
    return node->tb >= 0 && pccl_vec_push(&a->ir->order, task->node);
  }
  pccl_node *end = &a->ir->nodes.data[node->to];
  end->pipeline = pipeline;
  node->tb = take(a, node->rank, end->rank, SENDS, pipeline);
  end->tb = take(a, end->rank, node->rank, RECEIVES, pipeline);
  if (node->tb < 0 || end->tb < 0 || node->tb > UINT16_MAX || end->tb > UINT16_MAX) {
    return false;
  }
  node->channel = end->channel = channel_of(a, node, end);
  return node->channel >= 0 && pccl_vec_push(&a->ir->order, task->node) && pccl_vec_push(&a->ir->order, node->to);
}

polyccl_result pccl_pass_allocate(const pccl_tasks *tasks, const pccl_pipeline *pipeline, bool directions) {
  pccl_ir *ir = tasks->ir;
  size_t ranks = (size_t)ir->spec.ranks;
  allocator a = {.ir = ir, .directions = directions, .rank = pccl_zeroed(ranks, sizeof *a.rank)};
  free(ir->tbs);
  ir->tbs = pccl_zeroed(ranks, sizeof *ir->tbs);
  ir->order.len = 0;
  ir->waits.len = 0;
  ir->loop = POLYCCL_TASK_MAJOR;
  bool ok = a.rank != NULL && ir->tbs != NULL;
  for (size_t i = 0; ok && i < tasks->count; i++) {
    int32_t task = pipeline->sequence[i];
    ok = allocate_task(&a, &tasks->task[task], pipeline->of_task[task]);
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
