#include "program/value.h"

#include <stdlib.h>

#include "base/map.h"

void pccl_values_free(pccl_values *values) {
  pccl_vec_free(&values->sum);
  pccl_vec_free(&values->stack);
  pccl_vec_free(&values->list);
  free(values->table);
  values->table = NULL;
  values->capacity = 0;
}

/* Where the sum of a and b (a <= b) stands in the table, or may be put. */
static size_t find_sum_entry(const pccl_values *values, int32_t a, int32_t b) {
  size_t mask = values->capacity - 1;
  size_t at = (size_t)pccl_mix64((uint64_t)(uint32_t)b << 32 | (uint32_t)a) & mask;
  for (; values->table[at] != 0; at = (at + 1) & mask) {
    const pccl_value_sum *sum = &values->sum.data[values->table[at] - 1];
    if (sum->a == a && sum->b == b) {
      break;
    }
  }
  return at;
}

static bool grow_sum_table(pccl_values *values) {
  enum { FIRST = 64 };
  size_t capacity = values->capacity != 0 ? values->capacity * 2 : FIRST;
  uint32_t *table = pccl_zeroed(capacity, sizeof *table);
  if (table == NULL) {
    return false;
  }
  free(values->table);
  values->table = table;
  values->capacity = capacity;
  for (size_t i = 0; i < values->sum.len; i++) {
    const pccl_value_sum *sum = &values->sum.data[i];
    table[find_sum_entry(values, sum->a, sum->b)] = (uint32_t)i + 1;
  }
  return true;
}

int32_t pccl_value_add(pccl_values *values, int32_t first, int32_t second) {
  int32_t a = first < second ? first : second, b = first < second ? second : first;
  if (values->sum.len * 2 >= values->capacity && !grow_sum_table(values)) {
    return PCCL_NOTHING;
  }
  size_t at = find_sum_entry(values, a, b);
  if (values->table[at] != 0) {
    return values->leaves + (int32_t)(values->table[at] - 1);
  }
  pccl_value_sum sum = {.a = a, .b = b, .place = pccl_value_place(values, a)};
  if (__builtin_add_overflow(pccl_value_leaves(values, a), pccl_value_leaves(values, b), &sum.leaves)) {
    sum.leaves = UINT32_MAX;
  }
  if (sum.place != pccl_value_place(values, b)) {
    sum.place = PCCL_MIXED;
  }
  if (values->sum.len >= (size_t)(INT32_MAX - values->leaves) || !pccl_vec_push(&values->sum, sum)) {
    return PCCL_NOTHING;
  }
  values->table[at] = (uint32_t)values->sum.len;
  return values->leaves + (int32_t)(values->sum.len - 1);
}

bool pccl_value_expand(pccl_values *values, int32_t value) {
  values->list.len = values->stack.len = 0;
  if (!pccl_vec_push(&values->stack, value)) {
    return false;
  }
  while (values->stack.len > 0) {
    int32_t top = values->stack.data[--values->stack.len];
    if (top < values->leaves) {
      if (!pccl_vec_push(&values->list, top)) {
        return false;
      }
      continue;
    }
    pccl_value_sum sum = values->sum.data[top - values->leaves];
    if (!pccl_vec_push(&values->stack, sum.b) || !pccl_vec_push(&values->stack, sum.a)) {
      return false;
    }
  }
  return true;
}

static int compare_leaf_numbers(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

void pccl_sort_leaves(int32_t *leaves, size_t count) {
  if (count > 1) {
    qsort(leaves, count, sizeof *leaves, compare_leaf_numbers);
  }
}

bool pccl_value_holds(pccl_values *values, int32_t value, int32_t *wanted, size_t count, bool *no_memory) {
  if (pccl_value_leaves(values, value) != count) {
    return false;
  }
  if (!pccl_value_expand(values, value)) {
    *no_memory = true;
    return false;
  }
  pccl_sort_leaves(values->list.data, values->list.len);
  pccl_sort_leaves(wanted, count);
  for (size_t i = 0; i < count; i++) {
    if (wanted[i] != values->list.data[i]) {
      return false;
    }
  }
  return true;
}
