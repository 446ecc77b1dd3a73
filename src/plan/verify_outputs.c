/* What the symbolic execution leaves: every output chunk is compared with the postcondition, contribution by
 * contribution, and the ranks with one another. */
#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "plan/verify_execution.h"
#include "program/difference.h"

/* `wanted` as for pccl_describe_difference(). */
static polyccl_result report_wrong_output(pccl_execution *e, int32_t rank, int32_t chunk, size_t cell,
                                          const polyccl_leaf *wanted, size_t count) {
  int32_t writer = e->writer[cell] - 1;
  pccl_text text = {0};
  pccl_describe_difference(&e->values, pccl_execution_held(e, rank, cell), wanted, count, e->v->plan->ranks, &text);
  const char *said = text.data != NULL && !text.failed ? text.data : "is wrong (no memory to say how)";
  polyccl_result result;
  if (writer < 0) {
    result = pccl_fail(POLYCCL_ERROR_INVALID, "rank %d output[%d]: %s; no step wrote it", rank, chunk, said);
  } else {
    result = pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_step_location(e->v->plan, &e->v->plan->step[writer]),
                          "rank %d output[%d]: %s; last written by %s", rank, chunk, said,
                          pccl_verify_name(e->v, writer).text);
  }
  pccl_text_free(&text);
  return result;
}

static bool set_wanted_leaves(pccl_execution *e, const polyccl_leaf *leaf, int32_t count) {
  e->wanted.len = 0;
  for (int32_t i = 0; i < count; i++) {
    if (!pccl_vec_push(&e->wanted, leaf[i].rank * e->values.input + leaf[i].chunk)) {
      return false;
    }
  }
  return true;
}

static polyccl_result check_output(pccl_execution *e, int32_t rank, int32_t chunk) {
  const pccl_verify *v = e->v;
  polyccl_leaf leaf;
  size_t cell = v->cell[rank] + (size_t)pccl_verify_cell(v, rank, POLYCCL_BUF_OUTPUT, chunk);
  int32_t value = pccl_execution_held(e, rank, cell);
  switch (pccl_collective_post(&v->spec, rank, chunk, &leaf)) {
    case PCCL_POST_ANY: return POLYCCL_SUCCESS;
    case PCCL_POST_ONE:
      if (value == leaf.rank * e->values.input + leaf.chunk) {
        return POLYCCL_SUCCESS;
      }
      return report_wrong_output(e, rank, chunk, cell, &leaf, 1);
    case PCCL_POST_ALL: break;
  }
  bool right;
  PCCL_TRY(pccl_coverage_ask(&e->coverage, value, leaf.chunk, &right));
  return right ? POLYCCL_SUCCESS : report_wrong_output(e, rank, chunk, cell, &leaf, 1);
}

static polyccl_result check_standard_outputs(pccl_execution *e) {
  const polyccl_plan *plan = e->v->plan;
  for (int32_t r = 0; r < plan->ranks; r++) {
    for (int32_t k = 0; k < plan->rank[r].output; k++) {
      PCCL_TRY(check_output(e, r, k));
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- custom collectives ---- */

static polyccl_result check_custom_output(pccl_execution *e, const polyccl_post *post) {
  const pccl_verify *v = e->v;
  size_t cell = v->cell[post->rank] + (size_t)pccl_verify_cell(v, post->rank, POLYCCL_BUF_OUTPUT, post->chunk);
  int32_t value = pccl_execution_held(e, post->rank, cell);
  if (!set_wanted_leaves(e, v->plan->leaf + post->leaf, post->leaves)) {
    return pccl_verify_no_memory(e->v, "what the outputs must hold");
  }
  bool no_memory = false;
  if (value != PCCL_NOTHING && pccl_value_holds(&e->values, value, e->wanted.data, e->wanted.len, &no_memory)) {
    return POLYCCL_SUCCESS;
  }
  return no_memory
             ? pccl_no_memory("the contributions to an output chunk")
             : report_wrong_output(e, post->rank, post->chunk, cell, v->plan->leaf + post->leaf, (size_t)post->leaves);
}

static polyccl_result check_custom_outputs(pccl_execution *e) {
  for (size_t i = 0; i < e->v->plan->posts; i++) {
    PCCL_TRY(check_custom_output(e, &e->v->plan->post[i]));
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_verify_outputs(pccl_execution *e) {
  PCCL_TRY(check_standard_outputs(e));
  return check_custom_outputs(e);
}

/* ---- identical ---- */

static int32_t find_output_value(const pccl_execution *e, int32_t rank, int32_t chunk) {
  const pccl_verify *v = e->v;
  size_t cell = v->cell[rank] + (size_t)pccl_verify_cell(v, rank, POLYCCL_BUF_OUTPUT, chunk);
  return pccl_execution_held(e, rank, cell);
}

/* Custom: outputs on different ranks that promise the same contributions hold the same tree. They are told by their
 * sorted contributions; a sum of hashes of these finds candidates, and equal trees settle the common case. */
typedef struct promise {
  uint64_t key;
  int32_t value;
} promise;

static int compare_promises(const void *a, const void *b) {
  const promise *x = a, *y = b;
  return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : (x->value > y->value) - (x->value < y->value);
}

static polyccl_result compare_post_values(pccl_execution *e) {
  const polyccl_plan *plan = e->v->plan;
  promise *all = pccl_array(plan->posts, sizeof *all);
  if (all == NULL) {
    return pccl_verify_no_memory(e->v, "what the outputs must hold");
  }
  for (size_t i = 0; i < plan->posts; i++) {
    const polyccl_post *post = &plan->post[i];
    all[i] = (promise){.key = 0, .value = find_output_value(e, post->rank, post->chunk)};
    for (int32_t k = 0; k < post->leaves; k++) {
      const polyccl_leaf *leaf = &plan->leaf[post->leaf + k];
      all[i].key += pccl_mix64((uint64_t)leaf->rank << 32 | (uint64_t)leaf->chunk);
    }
  }
  if (plan->posts > 1) {
    qsort(all, plan->posts, sizeof *all, compare_promises);
  }
  for (size_t i = 1; i < plan->posts; i++) {
    if (all[i].key == all[i - 1].key && all[i].value != all[i - 1].value) {
      e->v->report.identical = false; /* or two promises share a hash: then too little is promised, never too much */
    }
  }
  free(all);
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_verify_identical(pccl_execution *e) {
  const pccl_verify *v = e->v;
  if (v->plan->collective == POLYCCL_CUSTOM) {
    return compare_post_values(e);
  }
  if (v->plan->collective != POLYCCL_ALLREDUCE) {
    return POLYCCL_SUCCESS; /* no two ranks get the same reduction */
  }
  for (int32_t r = 1; r < v->plan->ranks; r++) {
    for (int32_t k = 0; k < v->plan->rank[r].output; k++) {
      if (find_output_value(e, r, k) != find_output_value(e, 0, k)) {
        e->v->report.identical = false;
        return POLYCCL_SUCCESS;
      }
    }
  }
  return POLYCCL_SUCCESS;
}
