#include "plan/parts.h"

#include "base/error.h"

static polyccl_result no_memory(void) { return pccl_no_memory("a plan"); }

polyccl_result pccl_parts_tb(pccl_parts *parts, int32_t rank) {
  polyccl_thread_block tb = {.rank = rank, .step = (int32_t)parts->step.len};
  return pccl_vec_push(&parts->tb, tb) ? POLYCCL_SUCCESS : no_memory();
}

polyccl_result pccl_parts_step(pccl_parts *parts, polyccl_step **step) {
  polyccl_step empty = {.recv = -1, .send = -1, .location = -1, .wait = (int32_t)parts->wait.len};
  if (!pccl_vec_push(&parts->step, empty)) {
    return no_memory();
  }
  parts->tb.data[parts->tb.len - 1].steps++;
  *step = &parts->step.data[parts->step.len - 1];
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_parts_wait(pccl_parts *parts, int32_t tb, int32_t step) {
  if (!pccl_vec_push(&parts->wait, (polyccl_wait){tb, step})) {
    return no_memory();
  }
  parts->step.data[parts->step.len - 1].waits++;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_parts_connection(pccl_parts *parts, int32_t src, int32_t dst, int32_t channel, int32_t *index) {
  enum { RANK_BITS = 17, CHANNEL_BITS = 20 };
  uint64_t key = (((uint64_t)src << RANK_BITS | (uint64_t)dst) << CHANNEL_BITS) | (uint64_t)channel;
  bool is_new;
  uint64_t *place = pccl_map_put(&parts->connections, key, parts->connection.len, &is_new);
  if (place == NULL || (is_new && !pccl_vec_push(&parts->connection, (polyccl_connection){src, dst, channel}))) {
    return no_memory();
  }
  *index = (int32_t)*place;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_parts_location(pccl_parts *parts, int32_t file, int32_t line, int32_t *index) {
  uint64_t key = (uint64_t)file << 32 | (uint64_t)line;
  bool is_new;
  uint64_t *place = pccl_map_put(&parts->locations, key, parts->location.len, &is_new);
  if (place == NULL || (is_new && !pccl_vec_push(&parts->location, (pccl_plan_location){file, line}))) {
    return no_memory();
  }
  *index = (int32_t)*place;
  return POLYCCL_SUCCESS;
}

#define MOVE(array, count)                   \
  do {                                       \
    free(plan->array);                       \
    plan->array = parts->array.data;         \
    plan->count = parts->array.len;          \
    parts->array.data = NULL;                \
    parts->array.len = parts->array.cap = 0; \
  } while (0)

void pccl_parts_finish(pccl_parts *parts, polyccl_plan *plan) {
  for (size_t r = 0; r < parts->rank.len; r++) {
    parts->rank.data[r].tbs = 0;
  }
  for (size_t t = parts->tb.len; t-- > 0;) {
    polyccl_plan_rank *rank = &parts->rank.data[parts->tb.data[t].rank];
    rank->tb = (int32_t)t;
    rank->tbs++;
  }
  free(plan->rank);
  plan->rank = parts->rank.data;
  plan->ranks = (int32_t)parts->rank.len;
  parts->rank.data = NULL;
  parts->rank.len = parts->rank.cap = 0;
  MOVE(tb, tbs);
  MOVE(step, steps);
  MOVE(wait, waits);
  MOVE(connection, connections);
  MOVE(post, posts);
  MOVE(leaf, leaves);
  MOVE(absent, absents);
  MOVE(file, files);
  MOVE(location, locations);
}

void pccl_parts_free(pccl_parts *parts) {
  for (size_t i = 0; i < parts->file.len; i++) {
    free(parts->file.data[i]);
  }
  free(parts->rank.data);
  free(parts->tb.data);
  free(parts->step.data);
  free(parts->wait.data);
  free(parts->connection.data);
  free(parts->post.data);
  free(parts->leaf.data);
  free(parts->absent.data);
  free(parts->file.data);
  free(parts->location.data);
  pccl_map_free(&parts->connections);
  pccl_map_free(&parts->locations);
  *parts = (pccl_parts){0};
}
