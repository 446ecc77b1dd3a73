/* The same plan with the steps cut as the executor cuts them, asked for its min depth. A cycle of waits and credits
 * among larger pieces is one among smaller pieces too: a credit then comes from a later receive. So the smallest pieces
 * need the most slots, and the sizes that are safe are those up to some size. */
#include "plan/xml_pieces.h"

#include "base/error.h"
#include "plan/builder.h"
#include "plan/plan.h"

#define PCCL_XML_MAX_PIECES ((size_t)1 << 23)

static int32_t count_pieces(const polyccl_step *step, int32_t max) {
  bool travels = step->recv >= 0 || step->send >= 0;
  return travels ? (step->count + max - 1) / max : 1;
}

/* The largest count of a step that sends or receives, 1 for none; *pieces: steps, were each cut into chunks. */
static int32_t find_max_count(const polyccl_plan *plan, size_t *pieces) {
  int32_t largest = 1;
  *pieces = 0;
  for (size_t s = 0; s < plan->steps; s++) {
    int32_t count = count_pieces(&plan->step[s], 1);
    largest = count > largest ? count : largest;
    *pieces += (size_t)(count > 0 ? count : 1);
  }
  return largest;
}

static polyccl_result cut_step(pccl_plan_builder *builder, const polyccl_plan *plan, const polyccl_step *step,
                               int32_t max, const int32_t *last, const polyccl_plan_rank *rank) {
  int32_t left = step->count;
  for (int32_t piece = 0; piece < count_pieces(step, max); piece++) {
    polyccl_step *made;
    PCCL_TRY(pccl_plan_builder_add_step(builder, &made));
    int32_t wait = made->wait, done = step->count - left;
    *made = *step;
    made->src += pccl_ops[step->op].reads_src ? done : 0;
    made->dst += pccl_ops[step->op].writes_dst ? done : 0;
    made->count = count_pieces(step, max) == 1 || left < max ? left : max;
    made->wait = wait;
    made->waits = 0;
    made->flags = 0;
    made->location = -1;
    left -= made->count;
    for (int32_t w = step->wait; piece == 0 && w < step->wait + step->waits; w++) {
      const polyccl_wait *on = &plan->wait[w];
      PCCL_TRY(pccl_plan_builder_add_wait(builder, on->tb, last[plan->tb[rank->tb + on->tb].step + on->step]));
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result cut_plan(const polyccl_plan *plan, int32_t max, int32_t *last, pccl_plan_builder *builder) {
  for (size_t t = 0; t < plan->tbs; t++) {
    int32_t next = 0;
    for (int32_t s = plan->tb[t].step; s < plan->tb[t].step + plan->tb[t].steps; s++) {
      next += count_pieces(&plan->step[s], max);
      last[s] = next - 1;
    }
  }
  for (int32_t r = 0; r < plan->ranks; r++) {
    const polyccl_plan_rank *rank = &plan->rank[r];
    if (!pccl_vec_push(&builder->rank, *rank)) {
      return pccl_no_memory("writing a plan");
    }
    for (int32_t t = rank->tb; t < rank->tb + rank->tbs; t++) {
      PCCL_TRY(pccl_plan_builder_add_tb(builder, r));
      for (int32_t s = plan->tb[t].step; s < plan->tb[t].step + plan->tb[t].steps; s++) {
        PCCL_TRY(cut_step(builder, plan, &plan->step[s], max, last, rank));
      }
    }
  }
  for (size_t c = 0; c < plan->connections; c++) {
    const polyccl_connection *from = &plan->connection[c];
    int32_t index;
    PCCL_TRY(pccl_plan_builder_connection(builder, from->src, from->dst, from->channel, &index));
  }
  return POLYCCL_SUCCESS;
}

/* The slots that the plan needs where at most `max` chunks go in a message. */
static polyccl_result find_depth_of_pieces(const polyccl_plan *plan, int32_t max, int32_t *last, int32_t *depth) {
  pccl_plan_builder builder = {0};
  polyccl_plan *cut;
  PCCL_TRY(polyccl_plan_create(plan->ranks, &cut));
  polyccl_result result = cut_plan(plan, max, last, &builder);
  if (result == POLYCCL_SUCCESS) {
    pccl_plan_copy_head(plan, cut);
    cut->order = POLYCCL_BATCH_MAJOR; /* as the executors run it */
    pccl_plan_builder_finish(&builder, cut);
    result = pccl_plan_min_depth(cut, depth);
  }
  pccl_plan_builder_free(&builder);
  polyccl_plan_destroy(cut);
  return result;
}

/* Messages of up to this many bytes are not cut. Reduce and broadcast use a quarter of Simple's. */
static uint64_t find_message_bytes(const pccl_xml_target *target, const polyccl_plan *plan) {
  bool quarter =
      plan->protocol == POLYCCL_SIMPLE && (plan->collective == POLYCCL_REDUCE || plan->collective == POLYCCL_BROADCAST);
  return (uint64_t)target->message[plan->protocol] / (quarter ? 4 : 1);
}

polyccl_result pccl_xml_safe_bytes(const pccl_xml_target *target, const polyccl_plan *plan, uint64_t *bytes) {
  size_t pieces;
  int32_t unsafe = 0, safe = find_max_count(plan, &pieces), slots = target->depth[plan->protocol];
  *bytes = UINT64_MAX;
  if (safe == 1) {
    return POLYCCL_SUCCESS;
  }
  if (pieces > PCCL_XML_MAX_PIECES) {
    return pccl_fail(POLYCCL_ERROR_LIMIT,
                     "the plan's steps are %zu chunks of messages, too many to find out whether %s has slots for them "
                     "when it sends them one by one (at most %zu): keep the plan format",
                     pieces, target->name, PCCL_XML_MAX_PIECES);
  }
  int32_t *last = pccl_array(plan->steps, sizeof *last);
  if (last == NULL) {
    return pccl_no_memory("writing a plan");
  }
  polyccl_result result = POLYCCL_SUCCESS;
  for (int32_t try = 1; result == POLYCCL_SUCCESS && unsafe + 1 < safe; try = (unsafe + safe) / 2) {
    int32_t depth = 0;
    result = find_depth_of_pieces(plan, try, last, &depth);
    *(depth <= slots ? &safe : &unsafe) = try;
  }
  free(last);
  if (result == POLYCCL_SUCCESS && safe > 1) {
    *bytes = find_message_bytes(target, plan) / (uint64_t)safe * (uint64_t)pccl_xml_chunks_per_loop(plan);
  }
  return result;
}
