/* Symbolic values: a leaf, or the sum of two values. Equal sums have equal numbers (hash-consing; the operands of a sum
 * are unordered), so two chunks have the same number exactly when they are the same reduction tree, that is, hold the
 * same bits for any commutative reduction. All are (docs/plan.md, Steps), on NaNs and zeros, too. */
#ifndef PCCL_PLAN_VERIFY_VALUE_H
#define PCCL_PLAN_VERIFY_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

enum { PCCL_VERIFY_NOTHING = -1, PCCL_VERIFY_MIXED = -1 };

/* Numbers below `leaves` are leaves: rank x input + chunk. */
typedef struct pccl_verify_sum {
  int32_t a, b;
  int32_t place;   /* of all its leaves in their blocks, or PCCL_VERIFY_MIXED */
  uint32_t leaves; /* saturates */
} pccl_verify_sum;

typedef struct pccl_verify_values {
  int32_t leaves, input; /* leaves in all, per rank */
  int32_t chunks;        /* per block: a leaf's place is chunk % chunks */
  PCCL_VEC(pccl_verify_sum) sum;
  pccl_map known;
  PCCL_VEC(int32_t) stack, list; /* for pccl_verify_value_expand */
} pccl_verify_values;

void pccl_verify_values_free(pccl_verify_values *values);

int32_t pccl_verify_value_add(pccl_verify_values *values, int32_t a, int32_t b); /* PCCL_VERIFY_NOTHING: no memory */
uint32_t pccl_verify_value_leaves(const pccl_verify_values *values, int32_t value);
int32_t pccl_verify_value_place(const pccl_verify_values *values, int32_t value);

/* The leaves of a value, each as often as it occurs, in values->list; false: no memory. The caller bounds their
 * number by pccl_verify_value_leaves() first. */
bool pccl_verify_value_expand(pccl_verify_values *values, int32_t value);

#endif
