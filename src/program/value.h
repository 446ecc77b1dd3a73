/* What a chunk holds, symbolically: a leaf (the input chunk of a rank) or the sum of two values. Used by the check of
 * programs and by the verifier of plans. Equal sums have equal numbers (hash-consing; the operands of a sum are
 * unordered), so two chunks have the same number exactly when they are the same reduction tree, that is, hold the same
 * bits (up to the bits of a NaN) for any commutative reduction. Sums share their parts: a value has at most as many
 * nodes as there were additions, however many contributions it has. */
#ifndef PCCL_PROGRAM_VALUE_H
#define PCCL_PROGRAM_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include <polyccl/types.h>

#include "base/vec.h"

enum { PCCL_NOTHING = -1 }; /* a chunk that was never written; also: no memory */
enum { PCCL_MIXED = -1 };

typedef struct pccl_value_sum {
  int32_t a, b;
  int32_t place;   /* of all its leaves in their blocks, or PCCL_MIXED */
  uint32_t leaves; /* with repetition; saturates */
} pccl_value_sum;

/* Numbers below `leaves` are leaves: rank x input + chunk. The caller sets the first three; all else starts as 0. */
typedef struct pccl_values {
  int32_t leaves, input; /* in all, per rank */
  int32_t chunks;        /* per block: a leaf's place is chunk % chunks */
  PCCL_VEC(pccl_value_sum) sum;
  uint32_t *table; /* [capacity] index + 1 of the sum with these operands; 0: empty */
  size_t capacity;
  PCCL_VEC(int32_t) stack, list; /* for pccl_value_expand */
} pccl_values;

void pccl_values_free(pccl_values *values);

int32_t pccl_value_add(pccl_values *values, int32_t a, int32_t b); /* PCCL_NOTHING: no memory, or too many */

static inline uint32_t pccl_value_leaves(const pccl_values *values, int32_t value) {
  return value < values->leaves ? 1 : values->sum.data[value - values->leaves].leaves;
}

static inline int32_t pccl_value_place(const pccl_values *values, int32_t value) {
  return value < values->leaves ? value % values->input % values->chunks
                                : values->sum.data[value - values->leaves].place;
}

static inline polyccl_leaf pccl_value_leaf(const pccl_values *values, int32_t leaf) {
  return (polyccl_leaf){leaf / values->input, leaf % values->input};
}

/* The leaves of a value, each as often as it occurs, in values->list, not sorted; false: no memory. The work is in
 * proportion to their number, which the caller bounds by pccl_value_leaves() first. */
bool pccl_value_expand(pccl_values *values, int32_t value);

/* True if the leaves of the value are exactly `wanted`, each as often as there. Sorts `wanted`. If there is no memory,
 * returns false and sets *no_memory. */
bool pccl_value_holds(pccl_values *values, int32_t value, int32_t *wanted, size_t count, bool *no_memory);

void pccl_sort_leaves(int32_t *leaves, size_t count);

#endif
