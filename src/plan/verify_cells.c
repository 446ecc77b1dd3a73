/* Cells: a number for each chunk of memory that matters, rank by rank: user memory, then the scratch that steps touch.
 * A plan of a few lines may declare a million chunks of scratch on each rank; what no step touches has no cell, so that
 * memory and time go with what stands in the plan. */
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/verify.h"

typedef PCCL_VEC(pccl_scratch_part) scratch_parts;

static int compare_scratch_parts(const void *a, const void *b) {
  const pccl_scratch_part *x = a, *y = b;
  return (x->first > y->first) - (x->first < y->first);
}

static bool add_scratch_of_operand(scratch_parts *parts, uint8_t buffer, int32_t first, int32_t count) {
  return buffer != POLYCCL_BUF_SCRATCH ||
         pccl_vec_push(parts, (pccl_scratch_part){.first = first, .end = first + count});
}

static bool add_scratch_of_step(scratch_parts *parts, const polyccl_step *step) {
  const pccl_op_traits *op = &pccl_ops[step->op];
  return (!op->reads_src || add_scratch_of_operand(parts, step->src_buf, step->src, step->count)) &&
         (!op->writes_dst || add_scratch_of_operand(parts, step->dst_buf, step->dst, step->count));
}

/* Sorts the parts from `from` on and joins those that meet. */
static void merge_scratch_parts(scratch_parts *parts, size_t from) {
  size_t end = from;
  if (parts->len - from > 1) {
    qsort(parts->data + from, parts->len - from, sizeof *parts->data, compare_scratch_parts);
  }
  for (size_t i = from; i < parts->len; i++) {
    pccl_scratch_part *at = &parts->data[i], *last = end > from ? &parts->data[end - 1] : NULL;
    if (last != NULL && at->first <= last->end) {
      last->end = at->end > last->end ? at->end : last->end;
    } else {
      parts->data[end++] = *at;
    }
  }
  parts->len = end;
}

static bool add_scratch_of_rank(const pccl_verify *v, const polyccl_plan_rank *rank, scratch_parts *parts) {
  size_t from = parts->len;
  for (int32_t t = rank->tb; t < rank->tb + rank->tbs; t++) {
    const polyccl_thread_block *tb = &v->plan->tb[t];
    for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
      if (!add_scratch_of_step(parts, &v->plan->step[s])) {
        return false;
      }
    }
  }
  if ((size_t)rank->scratch <= 2 * (parts->len - from)) { /* not worth the sorting */
    parts->len = from;
    return pccl_vec_push(parts, (pccl_scratch_part){.first = 0, .end = rank->scratch});
  }
  merge_scratch_parts(parts, from);
  return true;
}

static polyccl_result number_cells(pccl_verify *v, scratch_parts *parts) {
  for (int32_t r = 0; r < v->plan->ranks; r++) {
    int32_t cells = 0;
    v->parts[r] = parts->len;
    if (!add_scratch_of_rank(v, &v->plan->rank[r], parts)) {
      return pccl_verify_no_memory(v, "the scratch that steps touch");
    }
    for (size_t i = v->parts[r]; i < parts->len; i++) {
      parts->data[i].cell = cells;
      cells += parts->data[i].end - parts->data[i].first;
    }
    v->cell[r + 1] = v->cell[r] + (size_t)v->user_cells + (size_t)cells;
    if (v->cell[r + 1] > PCCL_VERIFY_MAX_CELLS) {
      return pccl_fail(POLYCCL_ERROR_LIMIT,
                       "%d ranks with %d chunks of input and output each, and the scratch that they use, are more than "
                       "%zu chunks, the verifier's limit",
                       v->plan->ranks, v->user_cells, PCCL_VERIFY_MAX_CELLS);
    }
  }
  v->parts[v->plan->ranks] = parts->len;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_verify_cells(pccl_verify *v) {
  v->cell = pccl_zeroed((size_t)v->plan->ranks + 1, sizeof *v->cell);
  v->parts = pccl_array((size_t)v->plan->ranks + 1, sizeof *v->parts);
  if (v->cell == NULL || v->parts == NULL) {
    return pccl_verify_no_memory(v, "the list of ranks");
  }
  v->cell[0] = 0;
  scratch_parts parts = {0};
  polyccl_result result = number_cells(v, &parts);
  v->part = parts.data;
  return result;
}

size_t pccl_verify_max_cells(const pccl_verify *v) {
  size_t max = 0;
  for (int32_t r = 0; r < v->plan->ranks; r++) {
    size_t cells = v->cell[r + 1] - v->cell[r];
    max = cells > max ? cells : max;
  }
  return max;
}

int32_t pccl_verify_scratch_cell(const pccl_verify *v, int32_t rank, int32_t index) {
  const pccl_scratch_part *part = v->part + v->parts[rank];
  size_t low = 0, high = v->parts[rank + 1] - v->parts[rank];
  while (high - low > 1) { /* the last part that begins at or before the chunk */
    size_t middle = low + (high - low) / 2;
    if (part[middle].first <= index) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return v->user_cells + part[low].cell + (index - part[low].first);
}
