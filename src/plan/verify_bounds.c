/* Bounds: every number in the plan is what the phases after this one (and every executor) may index with. */
#include <limits.h>
#include <stdlib.h>

#include <polyccl/program.h>

#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "plan/verify.h"

static polyccl_result check_head_bounds(pccl_verify *v) {
  const polyccl_plan *plan = v->plan;
  if (plan->rank == NULL || (plan->tb == NULL && plan->tbs > 0) || (plan->step == NULL && plan->steps > 0) ||
      (plan->wait == NULL && plan->waits > 0) || (plan->connection == NULL && plan->connections > 0) ||
      (plan->post == NULL && plan->posts > 0) || (plan->leaf == NULL && plan->leaves > 0) ||
      (plan->absent == NULL && plan->absents > 0)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the plan lacks one of its arrays");
  }
  v->spec = pccl_plan_spec(plan);
  PCCL_TRY(pccl_collective_validate(&v->spec));
  if ((unsigned)plan->protocol >= POLYCCL_PROTOCOL_COUNT) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "unknown protocol number %d", (int)plan->protocol);
  }
  if (plan->order != POLYCCL_BATCH_MAJOR && plan->order != POLYCCL_TASK_MAJOR) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "unknown loop order number %d", (int)plan->order);
  }
  if (plan->fifo_depth < 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "FIFO depth %d is negative", plan->fifo_depth);
  }
  if (plan->max_bytes != 0 && plan->min_bytes > plan->max_bytes) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the range of sizes is empty: %llu to %llu bytes",
                     (unsigned long long)plan->min_bytes, (unsigned long long)plan->max_bytes);
  }
  if (plan->redops >> POLYCCL_REDOP_COUNT != 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "unknown reductions in the set 0x%x", plan->redops);
  }
  if (plan->steps > INT32_MAX || plan->tbs > INT32_MAX || plan->connections > INT32_MAX || plan->waits > INT32_MAX) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the plan has more than %d steps, thread blocks, connections or waits",
                     INT32_MAX);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_rank_bounds(pccl_verify *v, int32_t r, size_t *tbs) {
  const polyccl_plan *plan = v->plan;
  const polyccl_plan_rank *rank = &plan->rank[r];
  int32_t input, output;
  polyccl_plan_shape(plan, r, &input, &output);
  if (rank->input != input || rank->output != output) {
    return pccl_fail(POLYCCL_ERROR_INVALID,
                     "rank %d has %d input and %d output chunks, but %s on %d ranks gives %d and %d", r, rank->input,
                     rank->output, polyccl_collective_name(plan->collective), plan->ranks, input, output);
  }
  if (rank->scratch < 0 || rank->scratch > POLYCCL_MAX_CHUNKS) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d has %d scratch chunks, out of range (0 to %d)", r, rank->scratch,
                     POLYCCL_MAX_CHUNKS);
  }
  if (!pccl_range_fits(rank->tb, rank->tbs, plan->tbs)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d: its %d thread blocks from %d on are not among the plan's %zu", r,
                     rank->tbs, rank->tb, plan->tbs);
  }
  for (int32_t t = rank->tb; t < rank->tb + rank->tbs; t++) {
    if (plan->tb[t].rank != r) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d tb %d says that it belongs to rank %d", r, t - rank->tb,
                       plan->tb[t].rank);
    }
  }
  *tbs += (size_t)rank->tbs;
  if (rank->tbs > v->report.max_tbs) {
    v->report.max_tbs = rank->tbs;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_all_rank_bounds(pccl_verify *v) {
  size_t tbs = 0;
  v->user_cells = pccl_collective_cells(&v->spec);
  for (int32_t r = 0; r < v->plan->ranks; r++) {
    PCCL_TRY(check_rank_bounds(v, r, &tbs));
  }
  /* A thread block names one rank, so the ranks' ranges are disjoint, and this makes them cover all. */
  if (tbs != v->plan->tbs) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the plan has %zu thread blocks, but its ranks own %zu", v->plan->tbs, tbs);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_step_owners(pccl_verify *v) {
  const polyccl_plan *plan = v->plan;
  v->step_tb = pccl_array(plan->steps, sizeof *v->step_tb);
  if (v->step_tb == NULL) {
    return pccl_verify_no_memory(v, "checking the numbers");
  }
  for (size_t i = 0; i < plan->steps; i++) {
    v->step_tb[i] = -1;
  }
  size_t steps = 0;
  for (size_t t = 0; t < plan->tbs; t++) {
    const polyccl_thread_block *tb = &plan->tb[t];
    int32_t local = (int32_t)t - plan->rank[tb->rank].tb;
    if (!pccl_range_fits(tb->step, tb->steps, plan->steps)) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d tb %d: its steps are not among the plan's %zu", tb->rank, local,
                       plan->steps);
    }
    for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
      if (v->step_tb[s] >= 0) {
        return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d tb %d: its step %d belongs to another thread block too",
                         tb->rank, local, s - tb->step);
      }
      v->step_tb[s] = (int32_t)t;
    }
    steps += (size_t)tb->steps;
  }
  if (steps != plan->steps) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the plan has %zu steps, but its thread blocks own %zu", plan->steps,
                     steps);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_connection_bounds(pccl_verify *v) {
  const polyccl_plan *plan = v->plan;
  pccl_map seen = {0};
  polyccl_result result = POLYCCL_SUCCESS;
  for (size_t c = 0; c < plan->connections && result == POLYCCL_SUCCESS; c++) {
    const polyccl_connection *at = &plan->connection[c];
    if (at->src < 0 || at->src >= plan->ranks || at->dst < 0 || at->dst >= plan->ranks || at->channel < 0 ||
        at->channel == INT32_MAX) {
      result = pccl_fail(POLYCCL_ERROR_INVALID, "connection %zu (rank %d to rank %d, channel %d) is out of range", c,
                         at->src, at->dst, at->channel);
      break;
    }
    if (at->src == at->dst) {
      result =
          pccl_fail(POLYCCL_ERROR_INVALID, "rank %d sends to itself (channel %d); within a rank use copy or reduce",
                    at->src, at->channel);
      break;
    }
    uint64_t key = (uint64_t)at->src << 48 | (uint64_t)at->dst << 32 | (uint64_t)at->channel;
    bool is_new;
    if (pccl_map_put(&seen, key, 0, &is_new) == NULL) {
      result = pccl_verify_no_memory(v, "checking the numbers");
    } else if (!is_new) {
      result = pccl_fail(POLYCCL_ERROR_INVALID, "the connection from rank %d to rank %d, channel %d, occurs twice",
                         at->src, at->dst, at->channel);
    }
    if (at->channel >= v->report.channels) {
      v->report.channels = at->channel + 1;
    }
  }
  pccl_map_free(&seen);
  return result;
}

static polyccl_result check_step_endpoint(const pccl_verify *v, int32_t s, bool used, int32_t connection, bool sends) {
  const char *what = sends ? "send" : "receive";
  if (!used) {
    return connection == -1 ? POLYCCL_SUCCESS
                            : pccl_verify_fail(v, s, "has a %s connection, which this op does not use", what);
  }
  if (connection < 0 || (size_t)connection >= v->plan->connections) {
    return pccl_verify_fail(v, s, "has no %s connection (index %d)", what, connection);
  }
  const polyccl_connection *at = &v->plan->connection[connection];
  int32_t rank = pccl_verify_rank(v, (size_t)s);
  if ((sends ? at->src : at->dst) != rank) {
    return pccl_verify_fail(v, s, "uses the connection from rank %d to rank %d to %s", at->src, at->dst, what);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_operand_bounds(const pccl_verify *v, int32_t s, uint8_t buffer, int32_t first,
                                           bool writes) {
  const polyccl_plan_rank *rank = &v->plan->rank[pccl_verify_rank(v, (size_t)s)];
  int32_t count = v->plan->step[s].count;
  if (buffer > POLYCCL_BUF_SCRATCH) {
    return pccl_verify_fail(v, s, "%s buffer number %d, which does not exist", writes ? "writes" : "reads", buffer);
  }
  int32_t sizes[] = {rank->input, rank->output, rank->scratch};
  if (first < 0 || (int64_t)first + count > sizes[buffer]) {
    return pccl_verify_fail(v, s, "%s %s[%d..%lld], but the buffer has %d chunks", writes ? "writes" : "reads",
                            pccl_verify_buffer(buffer), first, (long long)first + count - 1, sizes[buffer]);
  }
  if (writes && buffer == POLYCCL_BUF_INPUT && !v->plan->inplace) {
    return pccl_verify_fail(v, s, "writes input[%d], but out of place the input is only read", first);
  }
  return POLYCCL_SUCCESS;
}

/* A number for a chunk, the same for both names of one memory; those of scratch follow. */
static int64_t find_memory_place(const pccl_verify *v, int32_t rank, uint8_t buffer, int32_t index) {
  return buffer == POLYCCL_BUF_SCRATCH ? (int64_t)v->user_cells + index
                                       : pccl_collective_cell(&v->spec, rank, buffer == POLYCCL_BUF_OUTPUT, index);
}

/* Equal or disjoint: how an executor walks through a step's chunks must not matter. */
static polyccl_result check_operand_overlap(const pccl_verify *v, int32_t s) {
  const polyccl_step *step = &v->plan->step[s];
  int32_t rank = pccl_verify_rank(v, (size_t)s);
  int64_t src = find_memory_place(v, rank, step->src_buf, step->src);
  int64_t dst = find_memory_place(v, rank, step->dst_buf, step->dst);
  if (src != dst && llabs(src - dst) < step->count) {
    return pccl_verify_fail(v, s, "reads %s[%d] and writes %s[%d], %d chunks, which overlap",
                            pccl_verify_buffer(step->src_buf), step->src, pccl_verify_buffer(step->dst_buf), step->dst,
                            step->count);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_wait_bounds(const pccl_verify *v, int32_t s) {
  const polyccl_plan *plan = v->plan;
  const polyccl_step *step = &plan->step[s];
  const polyccl_plan_rank *rank = &plan->rank[pccl_verify_rank(v, (size_t)s)];
  for (int32_t w = step->wait; w < step->wait + step->waits; w++) {
    const polyccl_wait *wait = &plan->wait[w];
    if (wait->tb < 0 || wait->tb >= rank->tbs) {
      return pccl_verify_fail(v, s, "waits for tb %d, but the rank has %d", wait->tb, rank->tbs);
    }
    const polyccl_thread_block *tb = &plan->tb[rank->tb + wait->tb];
    if (wait->step < 0 || wait->step >= tb->steps) {
      return pccl_verify_fail(v, s, "waits for tb %d step %d, but that thread block has %d steps", wait->tb, wait->step,
                              tb->steps);
    }
    if (rank->tb + wait->tb == v->step_tb[s] && tb->step + wait->step >= s) {
      return pccl_verify_fail(v, s, "waits for step %d of its own thread block, which does not come before it",
                              wait->step);
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_step_bounds(const pccl_verify *v, int32_t s) {
  const polyccl_step *step = &v->plan->step[s];
  if (step->op >= POLYCCL_STEP_OP_COUNT) {
    return pccl_verify_fail(v, s, "has the unknown op number %d", step->op);
  }
  if ((step->flags & ~(POLYCCL_FLAG_GET | POLYCCL_FLAG_PUT)) != 0) {
    return pccl_verify_fail(v, s, "has unknown flags 0x%x", step->flags);
  }
  const pccl_op_traits *op = &pccl_ops[step->op];
  PCCL_TRY(check_step_endpoint(v, s, op->receives, step->recv, false));
  PCCL_TRY(check_step_endpoint(v, s, op->sends, step->send, true));
  if (pccl_op_moves(step->op) && step->count < 1) {
    return pccl_verify_fail(v, s, "has a count of %d chunks", step->count);
  }
  if (op->reads_src) {
    PCCL_TRY(check_operand_bounds(v, s, step->src_buf, step->src, false));
  }
  if (op->writes_dst) {
    PCCL_TRY(check_operand_bounds(v, s, step->dst_buf, step->dst, true));
  }
  if (op->reads_src && op->writes_dst) {
    PCCL_TRY(check_operand_overlap(v, s));
  }
  if (step->waits != 0 && !pccl_range_fits(step->wait, step->waits, v->plan->waits)) {
    return pccl_verify_fail(v, s, "has waits that are not among the plan's %zu", v->plan->waits);
  }
  return check_wait_bounds(v, s);
}

static polyccl_result check_all_step_bounds(pccl_verify *v) {
  const polyccl_plan *plan = v->plan;
  size_t touches = 0, waits = 0;
  for (size_t s = 0; s < plan->steps; s++) {
    /* Counted before the waits are walked: steps that share waits could ask for steps x waits work. */
    waits += plan->step[s].waits > 0 ? (size_t)plan->step[s].waits : 0;
    if (waits > plan->waits) {
      return pccl_verify_fail(v, (int32_t)s, "shares its waits with other steps: the plan has only %zu", plan->waits);
    }
    PCCL_TRY(check_step_bounds(v, (int32_t)s));
    touches += pccl_op_moves(plan->step[s].op) ? (size_t)plan->step[s].count : 0;
    if (touches > PCCL_VERIFY_MAX_TOUCHES) {
      return pccl_fail(POLYCCL_ERROR_LIMIT, "the steps touch more than %zu chunks in all, the verifier's limit",
                       PCCL_VERIFY_MAX_TOUCHES);
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_leaf_bounds(const pccl_verify *v, const polyccl_leaf *leaf, const char *what) {
  if (leaf->rank < 0 || leaf->rank >= v->plan->ranks || leaf->chunk < 0 || leaf->chunk >= v->plan->chunks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: rank %d chunk %d is out of range", what, leaf->rank, leaf->chunk);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_post_bounds(const pccl_verify *v, pccl_map *seen) {
  const polyccl_plan *plan = v->plan;
  size_t leaves = 0;
  for (size_t i = 0; i < plan->posts; i++) {
    const polyccl_post *post = &plan->post[i];
    if (post->rank < 0 || post->rank >= plan->ranks || post->chunk < 0 ||
        post->chunk >= plan->rank[post->rank].output) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "postcondition: rank %d output[%d] is out of range", post->rank,
                       post->chunk);
    }
    leaves += post->leaves > 0 ? (size_t)post->leaves : 0;
    if (post->leaves < 1 || !pccl_range_fits(post->leaf, post->leaves, plan->leaves) || leaves > plan->leaves) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "postcondition of rank %d output[%d]: its contributions are out of range",
                       post->rank, post->chunk);
    }
    for (int32_t k = post->leaf; k < post->leaf + post->leaves; k++) {
      PCCL_TRY(check_leaf_bounds(v, &plan->leaf[k], "postcondition"));
    }
    bool is_new;
    if (pccl_map_put(seen, (uint64_t)post->rank << 32 | (uint64_t)post->chunk, 0, &is_new) == NULL) {
      return pccl_verify_no_memory(v, "checking the numbers");
    }
    if (!is_new) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d output[%d] has two postconditions", post->rank, post->chunk);
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_custom_bounds(const pccl_verify *v) {
  const polyccl_plan *plan = v->plan;
  if (plan->collective != POLYCCL_CUSTOM && (plan->posts != 0 || plan->absents != 0)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "only custom collectives declare a postcondition or absent chunks, not %s",
                     polyccl_collective_name(plan->collective));
  }
  for (size_t i = 0; i < plan->absents; i++) {
    PCCL_TRY(check_leaf_bounds(v, &plan->absent[i], "absent chunk"));
  }
  pccl_map seen = {0};
  polyccl_result result = check_post_bounds(v, &seen);
  pccl_map_free(&seen);
  return result;
}

polyccl_result pccl_verify_bounds(pccl_verify *v) {
  PCCL_TRY(check_head_bounds(v));
  PCCL_TRY(check_all_rank_bounds(v));
  PCCL_TRY(check_step_owners(v));
  PCCL_TRY(check_connection_bounds(v));
  PCCL_TRY(check_all_step_bounds(v));
  PCCL_TRY(check_custom_bounds(v));
  return pccl_verify_cells(v);
}
