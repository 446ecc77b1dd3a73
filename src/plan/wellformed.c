/* Indices in range: the first thing to know of a plan from elsewhere. */
#include "base/error.h"
#include "plan/plan.h"

/* True when [first, first + count) lies in an array of `length`. */
static bool is_index_or_none(int32_t index, size_t length) { return index == -1 || pccl_range_fits(index, 1, length); }

static polyccl_result check_head_fields(const polyccl_plan *plan) {
  pccl_collective_spec spec = pccl_plan_spec(plan);
  PCCL_TRY(pccl_collective_validate(&spec));
  if ((unsigned)plan->protocol >= POLYCCL_PROTOCOL_COUNT || (unsigned)plan->order > POLYCCL_TASK_MAJOR ||
      plan->fifo_depth < 0 || plan->redops >> POLYCCL_REDOP_COUNT != 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID,
                     "the plan's protocol %d, loop order %d, FIFO depth %d or reductions 0x%x are out of range",
                     (int)plan->protocol, (int)plan->order, plan->fifo_depth, (unsigned)plan->redops);
  }
  return POLYCCL_SUCCESS;
}

static bool leaf_exists(const polyccl_plan *plan, polyccl_leaf leaf) {
  return leaf.rank >= 0 && leaf.rank < plan->ranks && leaf.chunk >= 0 && leaf.chunk < plan->chunks;
}

static polyccl_result check_custom_fields(const polyccl_plan *plan) {
  int32_t outputs = plan->chunks_out > 0 ? plan->chunks_out : plan->chunks;
  for (size_t i = 0; i < plan->posts; i++) {
    const polyccl_post *post = &plan->post[i];
    if (post->rank < 0 || post->rank >= plan->ranks || post->chunk < 0 || post->chunk >= outputs || post->leaves < 1 ||
        !pccl_range_fits(post->leaf, post->leaves, plan->leaves)) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "postcondition %zu (rank %d, chunk %d) is out of range", i, post->rank,
                       post->chunk);
    }
  }
  for (size_t i = 0; i < plan->leaves + plan->absents; i++) {
    polyccl_leaf leaf = i < plan->leaves ? plan->leaf[i] : plan->absent[i - plan->leaves];
    if (!leaf_exists(plan, leaf)) {
      return pccl_fail(POLYCCL_ERROR_INVALID,
                       "input chunk %d of rank %d, named in the plan's pre- or postcondition, "
                       "does not exist",
                       leaf.chunk, leaf.rank);
    }
  }
  return POLYCCL_SUCCESS;
}

static const char *find_step_fault(const polyccl_plan *plan, const polyccl_step *step) {
  if (step->op >= POLYCCL_STEP_OP_COUNT) {
    return "unknown op";
  }
  if (step->src_buf > POLYCCL_BUF_SCRATCH || step->dst_buf > POLYCCL_BUF_SCRATCH) {
    return "unknown buffer";
  }
  if (step->src < 0 || step->dst < 0 || step->count < 0) {
    return "an offset or count is negative";
  }
  const pccl_op_traits *uses = &pccl_ops[step->op];
  if (!is_index_or_none(step->recv, plan->connections) || !is_index_or_none(step->send, plan->connections)) {
    return "its connection does not exist";
  }
  if (uses->receives != (step->recv >= 0) || uses->sends != (step->send >= 0)) {
    return "it lacks a connection that its op needs, or has one that it does not";
  }
  if (!pccl_range_fits(step->wait, step->waits, plan->waits)) {
    return "its waits are out of range";
  }
  return is_index_or_none(step->location, plan->locations) ? NULL : "its location is out of range";
}

static polyccl_result check_rank_indices(const polyccl_plan *plan, int32_t r) {
  const polyccl_plan_rank *rank = &plan->rank[r];
  if (rank->scratch < 0 || !pccl_range_fits(rank->tb, rank->tbs, plan->tbs)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d: its scratch or thread blocks are out of range", r);
  }
  for (int32_t t = 0; t < rank->tbs; t++) {
    const polyccl_thread_block *tb = &plan->tb[rank->tb + t];
    if (tb->rank != r || !pccl_range_fits(tb->step, tb->steps, plan->steps)) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d thread block %d: its rank or steps are out of range", r, t);
    }
    for (int32_t s = 0; s < tb->steps; s++) {
      const polyccl_step *step = &plan->step[tb->step + s];
      const char *fault = find_step_fault(plan, step);
      if (fault != NULL) {
        return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d thread block %d step %d: %s", r, t, s, fault);
      }
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_table_indices(const polyccl_plan *plan) {
  for (size_t i = 0; i < plan->connections; i++) {
    const polyccl_connection *c = &plan->connection[i];
    if (c->src < 0 || c->src >= plan->ranks || c->dst < 0 || c->dst >= plan->ranks || c->channel < 0) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "connection %zu (rank %d to %d, channel %d) is out of range", i, c->src,
                       c->dst, c->channel);
    }
  }
  for (size_t i = 0; i < plan->waits; i++) {
    if (plan->wait[i].tb < 0 || plan->wait[i].step < 0) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "wait %zu (thread block %d, step %d) is negative", i, plan->wait[i].tb,
                       plan->wait[i].step);
    }
  }
  for (size_t i = 0; i < plan->locations; i++) {
    if (plan->location[i].line < 0 || !pccl_range_fits(plan->location[i].file, 1, plan->files)) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "location %zu (file %d, line %d) is out of range", i,
                       plan->location[i].file, plan->location[i].line);
    }
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_plan_well_formed(const polyccl_plan *plan) {
  PCCL_TRY(check_head_fields(plan));
  PCCL_TRY(check_custom_fields(plan));
  PCCL_TRY(check_table_indices(plan));
  for (int32_t r = 0; r < plan->ranks; r++) {
    PCCL_TRY(check_rank_indices(plan, r));
  }
  return POLYCCL_SUCCESS;
}
