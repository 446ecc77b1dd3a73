/* Answers whether a value holds one chunk of every rank, each exactly once. The checks ask this of every output chunk
 * of a reduction.
 *
 * As long as that costs no more than a few visits for each sum, the contributions are visited one by one. After that,
 * each sum of one chunk gets the set of the ranks in it, computed from the sets of its two operands. If the operands
 * overlap, the sum counts a contribution twice. Sums that share parts share the sets, and so do chunks. Both ways give
 * exact answers. */
#ifndef PCCL_PROGRAM_COVERAGE_H
#define PCCL_PROGRAM_COVERAGE_H

#include "program/rank_set.h"
#include "program/value.h"

/* Bounds on the work: the nodes of sets (some 100 bytes each), and beyond them the contributions visited one by one. */
#define PCCL_COVERAGE_MAX_SETS ((size_t)1 << 22)
#define PCCL_COVERAGE_MAX_VISITS ((size_t)1 << 31)

typedef struct pccl_coverage {
  pccl_values *values; /* complete: no sum is added after pccl_coverage_open() */
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

/* Sets *yes to whether `value` holds chunk `chunk` of every rank, each once. LIMIT: too much work. */
polyccl_result pccl_coverage_ask(pccl_coverage *coverage, int32_t value, int32_t chunk, bool *yes);

#endif
