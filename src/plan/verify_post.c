/* The postcondition, by symbolic execution. With no race, each step reads the same values in every execution, so one
 * execution, in the order found before, stands for all; with disjoint micro-batches it stands for every number of
 * them. What each output chunk holds at the end is then compared, contribution by contribution.
 *
 * `uneven` (docs/plan.md, Counts that chunks do not divide). A chunk at place p of its block has len(p) elements, and
 * what lies beyond is undefined. Claim: if every value that is stored in user memory consists of leaves of the place
 * where it is stored, nothing undefined reaches a user's buffer. By induction over the steps, each value all of whose
 * leaves have place p is right in its first len(p) elements wherever it is: leaves are so at the start; scratch and
 * messages carry whole strides; user memory at place p keeps exactly len(p) elements, and by the condition holds such
 * values only at place p; a sum of two is right where both are. So what a step stores at place p of user memory, the
 * first len(p) elements of a value of place p, is right. Values of mixed places may exist, in scratch and messages. */
#include <stdlib.h>

#include "base/error.h"
#include "plan/verify_execution.h"

/* ---- steps ---- */

static void check_stored_place(pccl_execution *e, int32_t value, int32_t place) {
  if (pccl_value_place(&e->values, value) != place) {
    e->v->report.uneven = false;
  }
}

typedef struct operands {
  int32_t rank;
  size_t src, dst;        /* first cells */
  const int32_t *message; /* NULL: none */
  int32_t *sends;         /* NULL: none */
  int32_t place;          /* of dst in its block; -1: scratch */
} operands;

static polyccl_result execute_chunk(pccl_execution *e, int32_t s, const operands *at, int32_t i) {
  const polyccl_step *step = &e->v->plan->step[s];
  const pccl_op_traits *op = &pccl_ops[step->op];
  int32_t value = op->receives ? at->message[i] : PCCL_NOTHING;
  if (op->reads_src) {
    int32_t source = pccl_execution_held(e, at->rank, at->src + (size_t)i);
    if (source == PCCL_NOTHING) {
      return pccl_verify_fail(e->v, s, "reads %s[%d], which holds nothing", pccl_verify_buffer(step->src_buf),
                              step->src + i);
    }
    value = op->receives ? pccl_value_add(&e->values, source, value) : source;
  }
  if (op->reads_dst) {
    int32_t old = pccl_execution_held(e, at->rank, at->dst + (size_t)i);
    if (old == PCCL_NOTHING) {
      return pccl_verify_fail(e->v, s, "reads %s[%d], which holds nothing", pccl_verify_buffer(step->dst_buf),
                              step->dst + i);
    }
    value = pccl_value_add(&e->values, old, value);
  }
  if (value == PCCL_NOTHING) {
    return pccl_verify_no_memory(e->v, "what the chunks hold");
  }
  if (op->writes_dst) {
    e->value[at->dst + (size_t)i] = value + 1;
    e->writer[at->dst + (size_t)i] = s + 1;
    if (at->place >= 0) {
      check_stored_place(e, value, (at->place + i) % e->values.chunks);
    }
  }
  if (op->sends) {
    at->sends[i] = value;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result execute_step(pccl_execution *e, int32_t s) {
  const pccl_verify *v = e->v;
  const polyccl_step *step = &v->plan->step[s];
  const pccl_op_traits *op = &pccl_ops[step->op];
  if (!pccl_op_moves(step->op)) {
    return POLYCCL_SUCCESS;
  }
  operands at = {.rank = pccl_verify_rank(v, (size_t)s), .place = -1};
  size_t first = v->cell[at.rank];
  if (op->reads_src) {
    at.src = first + (size_t)pccl_verify_cell(v, at.rank, step->src_buf, step->src);
  }
  if (op->writes_dst) {
    at.dst = first + (size_t)pccl_verify_cell(v, at.rank, step->dst_buf, step->dst);
    at.place = step->dst_buf != POLYCCL_BUF_SCRATCH ? step->dst % e->values.chunks : -1;
  }
  if (op->sends) {
    if (!pccl_vec_reserve(&e->sent, (size_t)step->count)) {
      return pccl_verify_no_memory(e->v, "what the chunks hold");
    }
    e->message[s] = e->sent.len;
    e->sent.len += (size_t)step->count;
    at.sends = e->sent.data + e->message[s];
  }
  if (op->receives) {
    at.message = e->sent.data + e->message[v->from[s]];
  }
  for (int32_t i = 0; i < step->count; i++) {
    PCCL_TRY(execute_chunk(e, s, &at, i));
  }
  if (e->values.sum.len > PCCL_VERIFY_MAX_SUMS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the plan has more than %zu different reductions, the verifier's limit",
                     PCCL_VERIFY_MAX_SUMS);
  }
  return POLYCCL_SUCCESS;
}

static void clear_absent_inputs(pccl_execution *e) {
  const pccl_verify *v = e->v;
  for (size_t i = 0; i < v->plan->absents; i++) {
    const polyccl_leaf *leaf = &v->plan->absent[i];
    e->value[v->cell[leaf->rank] + (size_t)pccl_verify_cell(v, leaf->rank, POLYCCL_BUF_INPUT, leaf->chunk)] = -1;
  }
}

/* ---- the phase ---- */

static polyccl_result execute_plan(pccl_execution *e) {
  clear_absent_inputs(e);
  for (size_t i = 0; i < e->v->plan->steps; i++) {
    PCCL_TRY(execute_step(e, e->v->order[i]));
  }
  PCCL_TRY(pccl_coverage_open(&e->coverage, &e->values, e->v->plan->ranks));
  PCCL_TRY(pccl_verify_outputs(e));
  return pccl_verify_identical(e);
}

static void free_execution(pccl_execution *e) {
  pccl_values_free(&e->values);
  free(e->value);
  free(e->writer);
  free(e->message);
  pccl_coverage_close(&e->coverage);
  pccl_vec_free(&e->sent);
  pccl_vec_free(&e->wanted);
}

polyccl_result pccl_verify_post(pccl_verify *v) {
  const polyccl_plan *plan = v->plan;
  size_t cells = v->cell[plan->ranks];
  bool custom = plan->collective == POLYCCL_CUSTOM;
  int32_t input = plan->rank[0].input;
  pccl_execution e = {.v = v,
                      .values = {.leaves = plan->ranks * input, .input = input, .chunks = plan->chunks},
                      .value = pccl_zeroed(cells, sizeof(int32_t)),
                      .writer = pccl_zeroed(cells, sizeof(int32_t)),
                      .message = pccl_array(plan->steps, sizeof(size_t))};
  /* With blocks of unequal size a place is no part of a count. */
  v->report.uneven = !custom || plan->chunks_out == 0 || plan->chunks_out == plan->chunks;
  v->report.identical = true;
  polyccl_result result;
  if (e.value == NULL || e.writer == NULL || e.message == NULL) {
    result = pccl_verify_no_memory(v, "what the chunks hold");
  } else {
    result = execute_plan(&e);
  }
  free_execution(&e);
  return result;
}
