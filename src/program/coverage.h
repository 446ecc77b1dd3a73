/* Does a value hold one chunk of every rank, each exactly once? That is asked of every output chunk of a reduction.
 *
 * While it costs no more than the values have sums, the contributions are visited one by one. Values that share their
 * parts are then told by sets of ranks: each sum of one chunk is given the set of the ranks in it, found from those of
 * its two operands, and an operand that overlaps the other is a contribution too many. Sums that share parts share the
 * sets, and so do the chunks. Both answers are exact. */
#ifndef PCCL_PROGRAM_COVERAGE_H
#define PCCL_PROGRAM_COVERAGE_H

#include "program/rank_set.h"
#include "program/value.h"

/* Bounds on the work: nodes of sets (some 100 bytes each), and where that does not do,
 * contributions visited one by one. */
#define PCCL_COVERAGE_MAX_SETS ((size_t)1 << 22)
#define PCCL_COVERAGE_MAX_VISITS ((size_t)1 << 31)

typedef struct pccl_coverage {
  pccl_values *values; /* no sum is added any more */
  int32_t ranks;
  int32_t *checked; /* [sums] 1 + the chunk over all ranks that the sum is known to be; 0: unknown */
  int32_t *seen;    /* [ranks] generation in which a rank's leaf was last met */
  int32_t generation;
  size_t visits; /* contributions visited so far */
  pccl_rank_sets sets;
  int32_t *single; /* [ranks] the set of one rank; 0: not yet made */
  struct pccl_covered {
    int32_t set;   /* of ranks, or negative: not one chunk of different ranks */
    int32_t chunk; /* of all leaves */
  } * covered;     /* [sums]; NULL: not yet needed */
  bool too_many;   /* sets */
} pccl_coverage;

polyccl_result pccl_coverage_open(pccl_coverage *coverage, pccl_values *values, int32_t ranks);
void pccl_coverage_close(pccl_coverage *coverage);

/* LIMIT: too much work. */
polyccl_result pccl_coverage_ask(pccl_coverage *coverage, int32_t value, int32_t chunk, bool *yes);

#endif
