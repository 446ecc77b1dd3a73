/* How a value differs from what a chunk must hold, for messages; the contributions of a value, for authors who ask. */
#ifndef PCCL_PROGRAM_DIFFERENCE_H
#define PCCL_PROGRAM_DIFFERENCE_H

#include "base/file.h"
#include "program/value.h"

/* Contributions that are listed; a value may have any number of them. */
#define PCCL_MAX_LISTED_LEAVES ((uint32_t)1 << 22)

typedef PCCL_VEC(polyccl_leaf) pccl_leaves;

/* All leaves of `value`, sorted, with repetition, into `out`, which the caller frees. LIMIT: more than
 * PCCL_MAX_LISTED_LEAVES. */
polyccl_result pccl_value_list(pccl_values *values, int32_t value, pccl_leaves *out);

/* Appends how `value` differs from the wanted leaves, sorted or not: "has 2x rank 1 chunk 2, lacks rank 0 chunk 2". A
 * single wanted leaf with rank -1 means chunk .chunk of each of `ranks` ranks. PCCL_NOTHING as value reads "holds
 * nothing, lacks ...". Only the first few differences are listed. */
void pccl_describe_difference(pccl_values *values, int32_t value, const polyccl_leaf *wanted, size_t count, int ranks,
                              pccl_text *text);

#endif
