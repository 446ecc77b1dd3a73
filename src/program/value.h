/* What a chunk holds, symbolically: a leaf (the input chunk of a rank) or the reduction of two values. Used by the
 * check of programs and by the verifier of plans. A value is a node of a DAG with two hashes: `sum`, of the multiset of
 * its leaves (additive, 128 bits), and `tree`, of the order of the reduction (commutative: a + b and b + a give the
 * same bits). Equal sums mean equal multisets but for a chance of 2^-128 per pair; messages expand the DAG exactly. */
#ifndef PCCL_PROGRAM_VALUE_H
#define PCCL_PROGRAM_VALUE_H

#include <stdbool.h>

#include <polyccl/types.h>

#include "base/file.h"
#include "base/vec.h"

typedef struct pccl_sum {
  uint64_t low, high;
} pccl_sum;

typedef struct pccl_value {
  int32_t left, right; /* nodes; right -1: a leaf, left indexes nothing and `leaf` counts */
  polyccl_leaf leaf;
  pccl_sum sum;
  uint64_t tree;
} pccl_value;

enum { PCCL_NOTHING = -1 }; /* a chunk that was never written */

typedef PCCL_VEC(pccl_value) pccl_values;

pccl_sum pccl_sum_of_leaf(polyccl_leaf leaf);
pccl_sum pccl_sum_add(pccl_sum a, pccl_sum b);
static inline bool pccl_sum_equal(pccl_sum a, pccl_sum b) { return a.low == b.low && a.high == b.high; }

/* New nodes; -1: no memory. */
int32_t pccl_value_leaf(pccl_values *values, polyccl_leaf leaf);
int32_t pccl_value_reduce(pccl_values *values, int32_t left, int32_t right);

typedef PCCL_VEC(polyccl_leaf) pccl_leaves;

enum { PCCL_MAX_LISTED_LEAVES = 1 << 22 };

/* All leaves of `value`, sorted, with repetition; false: more than PCCL_MAX_LISTED_LEAVES, or no memory. The caller
 * frees. */
bool pccl_value_leaves(const pccl_values *values, int32_t value, pccl_leaves *out);

/* Says how `value` differs from the wanted leaves, sorted or not: "has 2x rank 1 chunk 2, lacks rank 0 chunk 2".
 * wanted with rank -1 means chunk .chunk of each of `ranks` ranks (count must be 1 then). Bounded: at most a few
 * differences are listed. value PCCL_NOTHING: "holds nothing". False and no text when they are equal. */
bool pccl_value_difference(const pccl_values *values, int32_t value, const polyccl_leaf *wanted, size_t count,
                           int ranks, pccl_text *text);

#endif
