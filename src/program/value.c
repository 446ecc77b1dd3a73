#include "program/value.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

/* Two independent streams of 64 bits; the constants only have to differ. */
pccl_sum pccl_sum_of_leaf(polyccl_leaf leaf) {
  uint64_t key = ((uint64_t)(uint32_t)leaf.rank << 32) | (uint32_t)leaf.chunk;
  uint64_t first = pccl_mix64(key ^ 0x6a09e667f3bcc908u);
  return (pccl_sum){first, pccl_mix64(pccl_mix64(key + 0xbb67ae8584caa73bu) ^ first)};
}

pccl_sum pccl_sum_add(pccl_sum a, pccl_sum b) {
  uint64_t low = a.low + b.low;
  return (pccl_sum){low, a.high + b.high + (low < a.low)};
}

static int32_t add(pccl_values *values, pccl_value value) {
  if (values->len >= INT32_MAX || !pccl_vec_push(values, value)) {
    return -1;
  }
  return (int32_t)(values->len - 1);
}

int32_t pccl_value_leaf(pccl_values *values, polyccl_leaf leaf) {
  pccl_sum sum = pccl_sum_of_leaf(leaf);
  return add(values, (pccl_value){.left = -1, .right = -1, .leaf = leaf, .sum = sum, .tree = sum.low});
}

int32_t pccl_value_reduce(pccl_values *values, int32_t left, int32_t right) {
  const pccl_value *a = &values->data[left], *b = &values->data[right];
  uint64_t small = a->tree < b->tree ? a->tree : b->tree, large = a->tree < b->tree ? b->tree : a->tree;
  return add(values, (pccl_value){.left = left,
                                  .right = right,
                                  .sum = pccl_sum_add(a->sum, b->sum),
                                  .tree = pccl_mix64(small * 31 + pccl_mix64(large))});
}

/* ---- messages ---- */

enum { LISTED = 4 };

static int compare(const void *a, const void *b) {
  const polyccl_leaf *x = a, *y = b;
  return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : (x->chunk > y->chunk) - (x->chunk < y->chunk);
}

/* All leaves below `value`, with repetition; false: too many, or no memory. */
static bool expand(const pccl_values *values, int32_t value, pccl_leaves *out) {
  PCCL_VEC(int32_t) stack = {0};
  bool ok = pccl_vec_push(&stack, value);
  while (ok && stack.len > 0) {
    const pccl_value *node = &values->data[stack.data[--stack.len]];
    if (node->right < 0) {
      ok = out->len < PCCL_MAX_LISTED_LEAVES && pccl_vec_push(out, node->leaf);
    } else {
      ok = pccl_vec_push(&stack, node->right) && pccl_vec_push(&stack, node->left);
    }
  }
  pccl_vec_free(&stack);
  return ok;
}

bool pccl_value_leaves(const pccl_values *values, int32_t value, pccl_leaves *out) {
  if (!expand(values, value, out)) {
    pccl_vec_free(out);
    return false;
  }
  qsort(out->data, out->len, sizeof *out->data, compare);
  return true;
}

static size_t run_length(const pccl_leaves *list, size_t at) {
  size_t end = at + 1;
  while (end < list->len && compare(&list->data[end], &list->data[at]) == 0) {
    end++;
  }
  return end - at;
}

/* Merges two sorted multisets and lists where they differ. */
static bool list_differences(const pccl_leaves *has, const pccl_leaves *wants, pccl_text *text) {
  pccl_text lacks = {0}, extra = {0};
  size_t i = 0, j = 0, extras = 0, lacking = 0;
  while (i < has->len || j < wants->len) {
    int order = i == has->len ? 1 : j == wants->len ? -1 : compare(&has->data[i], &wants->data[j]);
    size_t mine = order <= 0 ? run_length(has, i) : 0, theirs = order >= 0 ? run_length(wants, j) : 0;
    polyccl_leaf leaf = order <= 0 ? has->data[i] : wants->data[j];
    if (mine > theirs && extras++ < LISTED) {
      pccl_text_add(&extra, "%s%zux rank %d chunk %d", extra.len > 0 ? " and " : "", mine, leaf.rank, leaf.chunk);
    } else if (mine < theirs && lacking++ < LISTED) {
      pccl_text_add(&lacks, "%srank %d chunk %d", lacks.len > 0 ? " and " : "", leaf.rank, leaf.chunk);
    }
    i += mine;
    j += theirs;
  }
  if (extras > 0) {
    pccl_text_add(text, "has %s%s", extra.data != NULL ? extra.data : "", extras > LISTED ? " and more" : "");
  }
  if (lacking > 0) {
    pccl_text_add(text, "%slacks %s", extras > 0 ? ", " : "", lacks.data != NULL ? lacks.data : "");
    if (lacking > LISTED) {
      pccl_text_add(text, " and %zu more", lacking - LISTED);
    }
  }
  pccl_text_free(&lacks);
  pccl_text_free(&extra);
  return extras > 0 || lacking > 0;
}

bool pccl_value_difference(const pccl_values *values, int32_t value, const polyccl_leaf *wanted, size_t count,
                           int ranks, pccl_text *text) {
  pccl_leaves has = {0}, wants = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < count; i++) {
    if (wanted[i].rank >= 0) {
      ok = pccl_vec_push(&wants, wanted[i]);
      continue;
    }
    for (int rank = 0; ok && rank < ranks; rank++) {
      ok = pccl_vec_push(&wants, (polyccl_leaf){rank, wanted[i].chunk});
    }
  }
  bool different = true;
  if (!ok) {
    pccl_text_add(text, "is wrong (no memory to say how)");
  } else if (value == PCCL_NOTHING) {
    pccl_text_add(text, "holds nothing, ");
    qsort(wants.data, wants.len, sizeof *wants.data, compare);
    different = list_differences(&has, &wants, text);
  } else if (!expand(values, value, &has)) {
    pccl_text_add(text, "has more contributions than can be listed");
  } else {
    qsort(wants.data, wants.len, sizeof *wants.data, compare);
    qsort(has.data, has.len, sizeof *has.data, compare);
    different = list_differences(&has, &wants, text);
  }
  pccl_vec_free(&has);
  pccl_vec_free(&wants);
  return different;
}
