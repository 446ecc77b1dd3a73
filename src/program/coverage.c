#include "program/coverage.h"

#include <stdlib.h>

#include "base/error.h"

typedef struct pccl_covered covered;

enum { NOT_A_SET = -1 };

polyccl_result pccl_coverage_open(pccl_coverage *c, pccl_values *values, int32_t ranks) {
  *c = (pccl_coverage){.values = values, .ranks = ranks, .sets = {.ranks = ranks}};
  c->checked = pccl_zeroed(values->sum.len, sizeof *c->checked);
  c->seen = pccl_zeroed((size_t)ranks, sizeof *c->seen);
  return c->checked != NULL && c->seen != NULL ? POLYCCL_SUCCESS : pccl_no_memory("the sums in the outputs");
}

void pccl_coverage_close(pccl_coverage *c) {
  free(c->checked);
  free(c->seen);
  free(c->single);
  free(c->covered);
  pccl_rank_sets_free(&c->sets);
}

/* ---- one by one ---- */

static polyccl_result visit_contributions(pccl_coverage *c, int32_t value, int32_t chunk, bool *yes) {
  c->visits += (size_t)c->ranks;
  if (!pccl_value_expand(c->values, value)) {
    return pccl_no_memory("the contributions to an output chunk");
  }
  if (++c->generation == INT32_MAX) {
    for (int32_t r = 0; r < c->ranks; r++) {
      c->seen[r] = 0;
    }
    c->generation = 1;
  }
  *yes = false;
  for (size_t i = 0; i < c->values->list.len; i++) {
    polyccl_leaf leaf = pccl_value_leaf(c->values, c->values->list.data[i]);
    if (leaf.chunk != chunk || c->seen[leaf.rank] == c->generation) {
      return POLYCCL_SUCCESS;
    }
    c->seen[leaf.rank] = c->generation;
  }
  *yes = true;
  return POLYCCL_SUCCESS;
}

/* ---- by sets ---- */

static covered find_covered(pccl_coverage *c, int32_t value) {
  if (value >= c->values->leaves) {
    return c->covered[value - c->values->leaves];
  }
  polyccl_leaf leaf = pccl_value_leaf(c->values, value);
  int32_t *set = &c->single[leaf.rank];
  *set = *set != 0 ? *set : pccl_rank_set_of(&c->sets, leaf.rank);
  return (covered){*set, leaf.chunk};
}

static covered unite_covered(pccl_coverage *c, covered a, covered b) {
  if (a.set < 0 || b.set < 0 || a.chunk != b.chunk) {
    return (covered){NOT_A_SET, a.chunk};
  }
  return (covered){pccl_rank_set_unite(&c->sets, a.set, b.set), a.chunk};
}

/* All sums at once: the operands of a sum come before it. */
static polyccl_result cover_sums(pccl_coverage *c) {
  size_t count = c->values->sum.len;
  c->covered = pccl_array(count, sizeof *c->covered);
  c->single = pccl_zeroed((size_t)c->ranks, sizeof *c->single);
  if (c->covered == NULL || c->single == NULL) {
    return pccl_no_memory("the sums in the outputs");
  }
  for (size_t i = 0; i < count && !c->too_many; i++) {
    const pccl_value_sum *sum = &c->values->sum.data[i];
    covered a = find_covered(c, sum->a), b = find_covered(c, sum->b);
    c->covered[i] = unite_covered(c, a, b);
    if (a.set == PCCL_RANK_SET_NO_MEMORY || b.set == PCCL_RANK_SET_NO_MEMORY ||
        c->covered[i].set == PCCL_RANK_SET_NO_MEMORY) {
      return pccl_no_memory("the sums in the outputs");
    }
    c->too_many = c->sets.work > PCCL_COVERAGE_MAX_SETS;
  }
  if (c->too_many) {
    pccl_rank_sets_free(&c->sets);
  }
  return POLYCCL_SUCCESS;
}

/* ---- the question ---- */

static polyccl_result answer_coverage(pccl_coverage *c, int32_t value, int32_t chunk, bool *yes) {
  enum { FREE_VISITS = 1 << 20 };
  if (c->visits <= FREE_VISITS + 4 * c->values->sum.len) {
    return visit_contributions(c, value, chunk, yes);
  }
  if (c->covered == NULL) {
    PCCL_TRY(cover_sums(c));
  }
  if (!c->too_many) {
    covered holds = find_covered(c, value); /* as many leaves as ranks, all different: all ranks */
    *yes = holds.set > 0 && holds.chunk == chunk;
    return POLYCCL_SUCCESS;
  }
  if (c->visits > PCCL_COVERAGE_MAX_VISITS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT,
                     "the outputs are sums of %d ranks in more different orders than can be followed (%zu sums, more "
                     "than %zu contributions to look at); let the ranks reduce in the same order",
                     c->ranks, c->values->sum.len, PCCL_COVERAGE_MAX_VISITS);
  }
  return visit_contributions(c, value, chunk, yes);
}

polyccl_result pccl_coverage_ask(pccl_coverage *c, int32_t value, int32_t chunk, bool *yes) {
  *yes = false;
  if (value == PCCL_NOTHING || pccl_value_leaves(c->values, value) != (uint32_t)c->ranks) {
    return POLYCCL_SUCCESS;
  }
  int32_t *checked = value < c->values->leaves ? NULL : &c->checked[value - c->values->leaves];
  if (checked != NULL && *checked == chunk + 1) {
    *yes = true;
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(answer_coverage(c, value, chunk, yes));
  if (*yes && checked != NULL) {
    *checked = chunk + 1;
  }
  return POLYCCL_SUCCESS;
}
