#include "plan/verify_value.h"

#include <stdlib.h>

void pccl_verify_values_free(pccl_verify_values *values) {
  pccl_vec_free(&values->sum);
  pccl_vec_free(&values->stack);
  pccl_vec_free(&values->list);
  pccl_map_free(&values->known);
}

uint32_t pccl_verify_value_leaves(const pccl_verify_values *values, int32_t value) {
  return value < values->leaves ? 1 : values->sum.data[value - values->leaves].leaves;
}

int32_t pccl_verify_value_place(const pccl_verify_values *values, int32_t value) {
  return value < values->leaves ? value % values->input % values->chunks
                                : values->sum.data[value - values->leaves].place;
}

int32_t pccl_verify_value_add(pccl_verify_values *values, int32_t a, int32_t b) {
  uint64_t low = (uint64_t)(a < b ? a : b), high = (uint64_t)(a < b ? b : a);
  bool is_new;
  uint64_t *known = pccl_map_put(&values->known, high << 32 | low, values->sum.len, &is_new);
  if (known == NULL) {
    return PCCL_VERIFY_NOTHING;
  }
  if (!is_new) {
    return values->leaves + (int32_t)*known;
  }
  uint32_t leaves;
  if (__builtin_add_overflow(pccl_verify_value_leaves(values, a), pccl_verify_value_leaves(values, b), &leaves)) {
    leaves = UINT32_MAX;
  }
  int32_t place = pccl_verify_value_place(values, a);
  pccl_verify_sum sum = {.a = a,
                         .b = b,
                         .place = place == pccl_verify_value_place(values, b) ? place : PCCL_VERIFY_MIXED,
                         .leaves = leaves};
  return pccl_vec_push(&values->sum, sum) ? values->leaves + (int32_t)(values->sum.len - 1) : PCCL_VERIFY_NOTHING;
}

bool pccl_verify_value_expand(pccl_verify_values *values, int32_t value) {
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
    pccl_verify_sum sum = values->sum.data[top - values->leaves];
    if (!pccl_vec_push(&values->stack, sum.b) || !pccl_vec_push(&values->stack, sum.a)) {
      return false;
    }
  }
  return true;
}
