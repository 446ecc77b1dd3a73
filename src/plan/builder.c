#include "plan/builder.h"

#include "base/error.h"

static polyccl_result fail_no_memory(void) { return pccl_no_memory("a plan"); }

polyccl_result pccl_plan_builder_add_tb(pccl_plan_builder *builder, int32_t rank) {
  polyccl_thread_block tb = {.rank = rank, .step = (int32_t)builder->step.len};
  return pccl_vec_push(&builder->tb, tb) ? POLYCCL_SUCCESS : fail_no_memory();
}

polyccl_result pccl_plan_builder_add_step(pccl_plan_builder *builder, polyccl_step **step) {
  polyccl_step empty = {.recv = -1, .send = -1, .location = -1, .wait = (int32_t)builder->wait.len};
  if (!pccl_vec_push(&builder->step, empty)) {
    return fail_no_memory();
  }
  builder->tb.data[builder->tb.len - 1].steps++;
  *step = &builder->step.data[builder->step.len - 1];
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_plan_builder_add_wait(pccl_plan_builder *builder, int32_t tb, int32_t step) {
  if (!pccl_vec_push(&builder->wait, (polyccl_wait){tb, step})) {
    return fail_no_memory();
  }
  builder->step.data[builder->step.len - 1].waits++;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_plan_builder_connection(pccl_plan_builder *builder, int32_t src, int32_t dst, int32_t channel,
                                            int32_t *index) {
  enum { RANK_BITS = 17, CHANNEL_BITS = 20 };
  uint64_t key = (((uint64_t)src << RANK_BITS | (uint64_t)dst) << CHANNEL_BITS) | (uint64_t)channel;
  bool is_new;
  uint64_t *place = pccl_map_put(&builder->connections, key, builder->connection.len, &is_new);
  if (place == NULL || (is_new && !pccl_vec_push(&builder->connection, (polyccl_connection){src, dst, channel}))) {
    return fail_no_memory();
  }
  *index = (int32_t)*place;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_plan_builder_location(pccl_plan_builder *builder, int32_t file, int32_t line, int32_t *index) {
  uint64_t key = (uint64_t)file << 32 | (uint64_t)line;
  bool is_new;
  uint64_t *place = pccl_map_put(&builder->locations, key, builder->location.len, &is_new);
  if (place == NULL || (is_new && !pccl_vec_push(&builder->location, (pccl_plan_location){file, line}))) {
    return fail_no_memory();
  }
  *index = (int32_t)*place;
  return POLYCCL_SUCCESS;
}

#define MOVE(array, count)                       \
  do {                                           \
    free(plan->array);                           \
    plan->array = builder->array.data;           \
    plan->count = builder->array.len;            \
    builder->array.data = NULL;                  \
    builder->array.len = builder->array.cap = 0; \
  } while (0)

void pccl_plan_builder_finish(pccl_plan_builder *builder, polyccl_plan *plan) {
  for (size_t r = 0; r < builder->rank.len; r++) {
    builder->rank.data[r].tbs = 0;
  }
  for (size_t t = builder->tb.len; t-- > 0;) {
    polyccl_plan_rank *rank = &builder->rank.data[builder->tb.data[t].rank];
    rank->tb = (int32_t)t;
    rank->tbs++;
  }
  free(plan->rank);
  plan->rank = builder->rank.data;
  plan->ranks = (int32_t)builder->rank.len;
  builder->rank.data = NULL;
  builder->rank.len = builder->rank.cap = 0;
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

void pccl_plan_builder_free(pccl_plan_builder *builder) {
  for (size_t i = 0; i < builder->file.len; i++) {
    free(builder->file.data[i]);
  }
  free(builder->rank.data);
  free(builder->tb.data);
  free(builder->step.data);
  free(builder->wait.data);
  free(builder->connection.data);
  free(builder->post.data);
  free(builder->leaf.data);
  free(builder->absent.data);
  free(builder->file.data);
  free(builder->location.data);
  pccl_map_free(&builder->connections);
  pccl_map_free(&builder->locations);
  *builder = (pccl_plan_builder){0};
}
