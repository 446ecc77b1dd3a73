/* Sets of ranks that are each kept once, so that equal sets have equal numbers. A set is a binary tree over the ranks
 * whose leaves are words of 32 ranks. Equal subtrees are kept once, so sets share what they have in common, and the
 * union of two sets is computed once. */
#ifndef PCCL_PROGRAM_RANK_SET_H
#define PCCL_PROGRAM_RANK_SET_H

#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

enum {
  PCCL_RANK_SET_OVERLAP = -1, /* the two have a rank in common */
  PCCL_RANK_SET_NO_MEMORY = -2
};

/* All fields but `ranks` start as 0; set 0 is empty. */
typedef struct pccl_rank_sets {
  int32_t ranks;
  PCCL_VEC(uint64_t) node; /* of number i + 1: a word, or the numbers of two halves */
  pccl_map words, pairs;   /* -> number */
  pccl_map unions;         /* numbers of two sets -> of their union, or that they overlap */
  size_t work;             /* nodes that unions have visited: a bound on time and memory for the caller to keep */
} pccl_rank_sets;

void pccl_rank_sets_free(pccl_rank_sets *sets);

int32_t pccl_rank_set_of(pccl_rank_sets *sets, int32_t rank);
int32_t pccl_rank_set_unite(pccl_rank_sets *sets, int32_t a, int32_t b);

#endif
