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
#include "base/file.h"
#include "plan/verify.h"
#include "plan/verify_value.h"

enum { DESCRIBED_LEAVES = 1 << 20 }; /* a wrong value with more leaves is not listed */

typedef struct execution {
  pccl_verify *v;
  pccl_verify_values values;
  int32_t *value;           /* [cells] */
  int32_t *writer;          /* [cells] the last step that wrote it, or -1 */
  size_t *message;          /* [steps] where a send's values start in `sent` */
  PCCL_VEC(int32_t) sent;   /* the values of all messages */
  PCCL_VEC(int32_t) wanted; /* leaves that an output chunk must hold */
  int32_t *checked;         /* [sums] 1 + the chunk over all ranks that the sum is known to be; 0: unknown */
  PCCL_VEC(int32_t) seen;   /* [ranks] generation in which a rank's leaf was last met */
  int32_t generation;
} execution;

/* ---- steps ---- */

static void note_place(execution *e, int32_t value, int32_t place) {
  if (pccl_verify_value_place(&e->values, value) != place) {
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

static polyccl_result run_chunk(execution *e, int32_t s, const operands *at, int32_t i) {
  const polyccl_step *step = &e->v->plan->step[s];
  const pccl_op_traits *op = &pccl_ops[step->op];
  int32_t value = op->receives ? at->message[i] : PCCL_VERIFY_NOTHING;
  if (op->reads_src) {
    int32_t source = e->value[at->src + (size_t)i];
    if (source == PCCL_VERIFY_NOTHING) {
      return pccl_verify_fail(e->v, s, "reads %s[%d], which holds nothing", pccl_verify_buffer(step->src_buf),
                              step->src + i);
    }
    value = op->receives ? pccl_verify_value_add(&e->values, source, value) : source;
  }
  if (op->reads_dst) {
    int32_t old = e->value[at->dst + (size_t)i];
    if (old == PCCL_VERIFY_NOTHING) {
      return pccl_verify_fail(e->v, s, "reads %s[%d], which holds nothing", pccl_verify_buffer(step->dst_buf),
                              step->dst + i);
    }
    value = pccl_verify_value_add(&e->values, old, value);
  }
  if (value == PCCL_VERIFY_NOTHING) {
    return pccl_no_memory("the verifier");
  }
  if (op->writes_dst) {
    e->value[at->dst + (size_t)i] = value;
    e->writer[at->dst + (size_t)i] = s;
    if (at->place >= 0) {
      note_place(e, value, (at->place + i) % e->values.chunks);
    }
  }
  if (op->sends) {
    at->sends[i] = value;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result run_step(execution *e, int32_t s) {
  const pccl_verify *v = e->v;
  const polyccl_step *step = &v->plan->step[s];
  const pccl_op_traits *op = &pccl_ops[step->op];
  if (step->op == POLYCCL_STEP_NOP) {
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
      return pccl_no_memory("the verifier");
    }
    e->message[s] = e->sent.len;
    e->sent.len += (size_t)step->count;
    at.sends = e->sent.data + e->message[s];
  }
  if (op->receives) {
    at.message = e->sent.data + e->message[v->from[s]];
  }
  for (int32_t i = 0; i < step->count; i++) {
    PCCL_TRY(run_chunk(e, s, &at, i));
  }
  return POLYCCL_SUCCESS;
}

static void fill_inputs(execution *e) {
  const pccl_verify *v = e->v;
  const polyccl_plan *plan = v->plan;
  for (size_t c = 0; c < v->cell[plan->ranks]; c++) {
    e->value[c] = PCCL_VERIFY_NOTHING;
    e->writer[c] = -1;
  }
  for (int32_t r = 0; r < plan->ranks; r++) {
    size_t first = v->cell[r] + (size_t)pccl_verify_cell(v, r, POLYCCL_BUF_INPUT, 0);
    for (int32_t k = 0; k < e->values.input; k++) {
      e->value[first + (size_t)k] = r * e->values.input + k;
    }
  }
  for (size_t i = 0; i < plan->absents; i++) {
    const polyccl_leaf *leaf = &plan->absent[i];
    e->value[v->cell[leaf->rank] + (size_t)pccl_verify_cell(v, leaf->rank, POLYCCL_BUF_INPUT, leaf->chunk)] =
        PCCL_VERIFY_NOTHING;
  }
}

/* ---- outputs ---- */

static int compare(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

static void sort(int32_t *numbers, size_t count) {
  if (count > 1) {
    qsort(numbers, count, sizeof *numbers, compare);
  }
}

static size_t run_length(const int32_t *sorted, size_t at, size_t length, int32_t leaf) {
  size_t end = at;
  while (end < length && sorted[end] == leaf) {
    end++;
  }
  return end - at;
}

/* One more item of a list of which only the first few are said. */
static void list_leaf(const execution *e, pccl_text *text, size_t number, size_t times, int32_t leaf) {
  enum { LISTED = 4 };
  if (number > LISTED) {
    return;
  }
  pccl_text_add(text, number > 0 ? " and " : "");
  if (number == LISTED) {
    pccl_text_add(text, "more");
    return;
  }
  if (times > 1) {
    pccl_text_add(text, "%zux ", times);
  }
  pccl_text_add(text, "rank %d chunk %d", leaf / e->values.input, leaf % e->values.input);
}

/* "has 2x rank 1 chunk 2, lacks rank 0 chunk 2"; both lists sorted. */
static void describe_difference(const execution *e, pccl_text *text) {
  const int32_t *has = e->values.list.data, *wants = e->wanted.data;
  size_t holds = e->values.list.len, asks = e->wanted.len, extras = 0, missing = 0;
  pccl_text extra = {0}, lacks = {0};
  for (size_t i = 0, j = 0; i < holds || j < asks;) {
    int32_t leaf = j == asks || (i < holds && has[i] < wants[j]) ? has[i] : wants[j];
    size_t held = run_length(has, i, holds, leaf), wanted = run_length(wants, j, asks, leaf);
    if (held > wanted) {
      list_leaf(e, &extra, extras++, held, leaf);
    } else if (held < wanted) {
      list_leaf(e, &lacks, missing++, wanted - held, leaf);
    }
    i += held;
    j += wanted;
  }
  pccl_text_add(text, "%s%s%s%s%s", extras > 0 ? "has " : "", extras > 0 && extra.data != NULL ? extra.data : "",
                extras > 0 && missing > 0 ? ", " : "", missing > 0 ? "lacks " : "",
                missing > 0 && lacks.data != NULL ? lacks.data : "");
  pccl_text_free(&extra);
  pccl_text_free(&lacks);
}

static polyccl_result describe(execution *e, int32_t value, pccl_text *text) {
  e->values.list.len = 0;
  if (value == PCCL_VERIFY_NOTHING) {
    pccl_text_add(text, "holds nothing, ");
  } else if (pccl_verify_value_leaves(&e->values, value) > DESCRIBED_LEAVES) {
    pccl_text_add(text, "has more than %d contributions instead of %zu", DESCRIBED_LEAVES, e->wanted.len);
    return POLYCCL_SUCCESS;
  } else if (!pccl_verify_value_expand(&e->values, value)) {
    return pccl_no_memory("the verifier");
  }
  sort(e->values.list.data, e->values.list.len);
  sort(e->wanted.data, e->wanted.len);
  describe_difference(e, text);
  return POLYCCL_SUCCESS;
}

static polyccl_result report_wrong(execution *e, int32_t rank, int32_t chunk, size_t cell) {
  int32_t writer = e->writer[cell];
  pccl_text text = {0};
  polyccl_result result = describe(e, e->value[cell], &text);
  const char *said = text.data != NULL && !text.failed ? text.data : "is wrong (no memory to say how)";
  if (result == POLYCCL_SUCCESS && writer < 0) {
    result = pccl_fail(POLYCCL_ERROR_INVALID, "rank %d output[%d]: %s; no step wrote it", rank, chunk, said);
  } else if (result == POLYCCL_SUCCESS) {
    result = pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_step_location(e->v->plan, &e->v->plan->step[writer]),
                          "rank %d output[%d]: %s; last written by %s", rank, chunk, said,
                          pccl_verify_name(e->v, writer).text);
  }
  pccl_text_free(&text);
  return result;
}

/* Is the value the sum of chunk `chunk` over all ranks? */
static polyccl_result sums_all_ranks(execution *e, int32_t value, int32_t chunk, bool *yes) {
  int32_t ranks = e->v->plan->ranks;
  *yes = false;
  if (value == PCCL_VERIFY_NOTHING || pccl_verify_value_leaves(&e->values, value) != (uint32_t)ranks) {
    return POLYCCL_SUCCESS;
  }
  int32_t sum = value - e->values.leaves;
  if (sum >= 0 && e->checked[sum] == chunk + 1) {
    *yes = true;
    return POLYCCL_SUCCESS;
  }
  if (!pccl_verify_value_expand(&e->values, value)) {
    return pccl_no_memory("the verifier");
  }
  e->generation++;
  for (size_t i = 0; i < e->values.list.len; i++) {
    int32_t leaf = e->values.list.data[i], rank = leaf / e->values.input;
    if (leaf % e->values.input != chunk || e->seen.data[rank] == e->generation) {
      return POLYCCL_SUCCESS;
    }
    e->seen.data[rank] = e->generation;
  }
  if (sum >= 0) {
    e->checked[sum] = chunk + 1;
  }
  *yes = true;
  return POLYCCL_SUCCESS;
}

static bool want(execution *e, const polyccl_leaf *leaf, int32_t count) {
  e->wanted.len = 0;
  for (int32_t i = 0; i < count; i++) {
    if (!pccl_vec_push(&e->wanted, leaf[i].rank * e->values.input + leaf[i].chunk)) {
      return false;
    }
  }
  return true;
}

static polyccl_result check_output(execution *e, int32_t rank, int32_t chunk) {
  const pccl_verify *v = e->v;
  polyccl_leaf leaf;
  size_t cell = v->cell[rank] + (size_t)pccl_verify_cell(v, rank, POLYCCL_BUF_OUTPUT, chunk);
  int32_t value = e->value[cell];
  switch (pccl_collective_post(&v->spec, rank, chunk, &leaf)) {
    case PCCL_POST_ANY: return POLYCCL_SUCCESS;
    case PCCL_POST_ONE:
      if (value == leaf.rank * e->values.input + leaf.chunk) {
        return POLYCCL_SUCCESS;
      }
      return want(e, &leaf, 1) ? report_wrong(e, rank, chunk, cell) : pccl_no_memory("the verifier");
    case PCCL_POST_ALL: break;
  }
  bool right;
  PCCL_TRY(sums_all_ranks(e, value, leaf.chunk, &right));
  if (right) {
    return POLYCCL_SUCCESS;
  }
  e->wanted.len = 0;
  for (int32_t r = 0; r < v->plan->ranks; r++) {
    if (!pccl_vec_push(&e->wanted, r * e->values.input + leaf.chunk)) {
      return pccl_no_memory("the verifier");
    }
  }
  return report_wrong(e, rank, chunk, cell);
}

static polyccl_result check_outputs(execution *e) {
  const polyccl_plan *plan = e->v->plan;
  for (int32_t r = 0; r < plan->ranks; r++) {
    for (int32_t k = 0; k < plan->rank[r].output; k++) {
      PCCL_TRY(check_output(e, r, k));
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- custom collectives ---- */

static polyccl_result check_post(execution *e, const polyccl_post *post) {
  const pccl_verify *v = e->v;
  size_t cell = v->cell[post->rank] + (size_t)pccl_verify_cell(v, post->rank, POLYCCL_BUF_OUTPUT, post->chunk);
  int32_t value = e->value[cell];
  if (!want(e, v->plan->leaf + post->leaf, post->leaves)) {
    return pccl_no_memory("the verifier");
  }
  if (value == PCCL_VERIFY_NOTHING || pccl_verify_value_leaves(&e->values, value) != (uint32_t)post->leaves) {
    return report_wrong(e, post->rank, post->chunk, cell);
  }
  if (!pccl_verify_value_expand(&e->values, value)) {
    return pccl_no_memory("the verifier");
  }
  sort(e->values.list.data, e->values.list.len);
  sort(e->wanted.data, e->wanted.len);
  for (size_t i = 0; i < e->wanted.len; i++) {
    if (e->wanted.data[i] != e->values.list.data[i]) {
      return report_wrong(e, post->rank, post->chunk, cell);
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_posts(execution *e) {
  for (size_t i = 0; i < e->v->plan->posts; i++) {
    PCCL_TRY(check_post(e, &e->v->plan->post[i]));
  }
  return POLYCCL_SUCCESS;
}

/* ---- identical ---- */

static size_t output_cell(const pccl_verify *v, int32_t rank, int32_t chunk) {
  return v->cell[rank] + (size_t)pccl_verify_cell(v, rank, POLYCCL_BUF_OUTPUT, chunk);
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

static polyccl_result compare_posts(execution *e) {
  const polyccl_plan *plan = e->v->plan;
  promise *all = pccl_array(plan->posts, sizeof *all);
  if (all == NULL) {
    return pccl_no_memory("the verifier");
  }
  for (size_t i = 0; i < plan->posts; i++) {
    const polyccl_post *post = &plan->post[i];
    all[i] = (promise){.key = 0, .value = e->value[output_cell(e->v, post->rank, post->chunk)]};
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

static polyccl_result compare_ranks(execution *e) {
  const pccl_verify *v = e->v;
  if (v->plan->collective == POLYCCL_CUSTOM) {
    return compare_posts(e);
  }
  if (v->plan->collective != POLYCCL_ALLREDUCE) {
    return POLYCCL_SUCCESS; /* no two ranks get the same reduction */
  }
  for (int32_t r = 1; r < v->plan->ranks; r++) {
    for (int32_t k = 0; k < v->plan->rank[r].output; k++) {
      if (e->value[output_cell(v, r, k)] != e->value[output_cell(v, 0, k)]) {
        e->v->report.identical = false;
        return POLYCCL_SUCCESS;
      }
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- the phase ---- */

static polyccl_result execute(execution *e) {
  fill_inputs(e);
  for (size_t i = 0; i < e->v->plan->steps; i++) {
    PCCL_TRY(run_step(e, e->v->order[i]));
  }
  e->checked = pccl_zeroed(e->values.sum.len, sizeof *e->checked);
  if (e->checked == NULL) {
    return pccl_no_memory("the verifier");
  }
  PCCL_TRY(check_outputs(e));
  PCCL_TRY(check_posts(e));
  return compare_ranks(e);
}

static void execution_free(execution *e) {
  pccl_verify_values_free(&e->values);
  free(e->value);
  free(e->writer);
  free(e->message);
  free(e->checked);
  pccl_vec_free(&e->sent);
  pccl_vec_free(&e->wanted);
  pccl_vec_free(&e->seen);
}

polyccl_result pccl_verify_post(pccl_verify *v) {
  const polyccl_plan *plan = v->plan;
  size_t cells = v->cell[plan->ranks];
  bool custom = plan->collective == POLYCCL_CUSTOM;
  int32_t input = plan->rank[0].input;
  execution e = {.v = v,
                 .values = {.leaves = plan->ranks * input, .input = input, .chunks = plan->chunks},
                 .value = pccl_array(cells, sizeof(int32_t)),
                 .writer = pccl_array(cells, sizeof(int32_t)),
                 .message = pccl_array(plan->steps, sizeof(size_t))};
  /* With blocks of unequal size a place is no part of a count. */
  v->report.uneven = !custom || plan->chunks_out == 0 || plan->chunks_out == plan->chunks;
  v->report.identical = true;
  polyccl_result result;
  if (e.value == NULL || e.writer == NULL || e.message == NULL || !pccl_vec_reserve(&e.seen, (size_t)plan->ranks)) {
    result = pccl_no_memory("the verifier");
  } else {
    for (int32_t r = 0; r < plan->ranks; r++) {
      e.seen.data[r] = 0;
    }
    result = execute(&e);
  }
  execution_free(&e);
  return result;
}
