#include "program/difference.h"

#include <stdlib.h>

#include "base/error.h"

enum { LISTED = 4 };

static int compare_leaves(const void *a, const void *b) {
  const polyccl_leaf *x = a, *y = b;
  return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : (x->chunk > y->chunk) - (x->chunk < y->chunk);
}

static bool list_value_leaves(pccl_values *values, int32_t value, pccl_leaves *out) {
  if (!pccl_value_expand(values, value) || !pccl_vec_reserve(out, values->list.len)) {
    return false;
  }
  pccl_sort_leaves(values->list.data, values->list.len);
  for (size_t i = 0; i < values->list.len; i++) {
    out->data[out->len++] = pccl_value_leaf(values, values->list.data[i]);
  }
  return true;
}

polyccl_result pccl_value_list(pccl_values *values, int32_t value, pccl_leaves *out) {
  uint32_t leaves = pccl_value_leaves(values, value);
  if (leaves > PCCL_MAX_LISTED_LEAVES) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the chunk has %s%u contributions; at most %u can be listed",
                     leaves == UINT32_MAX ? "at least " : "", leaves, PCCL_MAX_LISTED_LEAVES);
  }
  return list_value_leaves(values, value, out) ? POLYCCL_SUCCESS : pccl_no_memory("the contributions to a chunk");
}

static size_t count_equal_leaves(const pccl_leaves *list, size_t at) {
  size_t end = at + 1;
  while (end < list->len && compare_leaves(&list->data[end], &list->data[at]) == 0) {
    end++;
  }
  return end - at;
}

/* Adds an item to a list that shows the first few. */
static void list_leaf(pccl_text *text, size_t number, size_t times, polyccl_leaf leaf) {
  if (number >= LISTED) {
    return;
  }
  pccl_text_add(text, number > 0 ? " and " : "");
  if (times > 1) {
    pccl_text_add(text, "%zux ", times);
  }
  pccl_text_add(text, "rank %d chunk %d", leaf.rank, leaf.chunk);
}

static void add_list(pccl_text *text, const char *verb, const pccl_text *list, size_t count) {
  if (count > 0) {
    pccl_text_add(text, "%s %s", verb, list->data != NULL ? list->data : "");
  }
  if (count > LISTED) {
    pccl_text_add(text, " and %zu more", count - LISTED);
  }
}

/* Merges two sorted multisets and lists where they differ. */
static void list_differences(const pccl_leaves *has, const pccl_leaves *wants, pccl_text *text) {
  pccl_text lacks = {0}, extra = {0};
  size_t i = 0, j = 0, extras = 0, lacking = 0;
  while (i < has->len || j < wants->len) {
    int order = i == has->len ? 1 : j == wants->len ? -1 : compare_leaves(&has->data[i], &wants->data[j]);
    size_t held = order <= 0 ? count_equal_leaves(has, i) : 0, wanted = order >= 0 ? count_equal_leaves(wants, j) : 0;
    polyccl_leaf leaf = order <= 0 ? has->data[i] : wants->data[j];
    if (held > wanted) {
      list_leaf(&extra, extras++, held, leaf);
    } else if (held < wanted) {
      list_leaf(&lacks, lacking++, wanted - held, leaf);
    }
    i += held;
    j += wanted;
  }
  add_list(text, "has", &extra, extras);
  pccl_text_add(text, extras > 0 && lacking > 0 ? ", " : "");
  add_list(text, "lacks", &lacks, lacking);
  pccl_text_free(&lacks);
  pccl_text_free(&extra);
}

static bool list_wanted_leaves(const polyccl_leaf *wanted, size_t count, int ranks, pccl_leaves *wants) {
  bool ok = true;
  for (size_t i = 0; ok && i < count; i++) {
    if (wanted[i].rank >= 0) {
      ok = pccl_vec_push(wants, wanted[i]);
      continue;
    }
    for (int rank = 0; ok && rank < ranks; rank++) {
      ok = pccl_vec_push(wants, (polyccl_leaf){rank, wanted[i].chunk});
    }
  }
  if (wants->len > 1) {
    qsort(wants->data, wants->len, sizeof *wants->data, compare_leaves);
  }
  return ok;
}

void pccl_describe_difference(pccl_values *values, int32_t value, const polyccl_leaf *wanted, size_t count, int ranks,
                              pccl_text *text) {
  pccl_leaves has = {0}, wants = {0};
  if (value != PCCL_NOTHING && pccl_value_leaves(values, value) > PCCL_MAX_LISTED_LEAVES) {
    pccl_text_add(text, "has more than %u contributions", PCCL_MAX_LISTED_LEAVES);
  } else if (!list_wanted_leaves(wanted, count, ranks, &wants) ||
             (value != PCCL_NOTHING && !list_value_leaves(values, value, &has))) {
    pccl_text_add(text, "is wrong (no memory to say how)");
  } else {
    pccl_text_add(text, value == PCCL_NOTHING ? "holds nothing, " : "");
    list_differences(&has, &wants, text);
  }
  pccl_vec_free(&has);
  pccl_vec_free(&wants);
}
