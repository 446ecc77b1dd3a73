/* Lower bounds of the completion time of a program on a topology. */
#ifndef PCCL_COMPILER_BOUND_H
#define PCCL_COMPILER_BOUND_H

#include <polyccl/topology.h>

#include "compiler/ir.h"

typedef struct pccl_bound {
  double path;     /* us: latencies and step costs on the longest chain of dependencies */
  double link;     /* us: the bytes of the busiest link, and the shortest paths before and after */
  double blocks;   /* us: what a rank's thread blocks move; 0 where their number is not bounded */
  int32_t busiest; /* the busiest link, -1: none */
} pccl_bound;

/* The bounds of a lowered IR (before fuse) for a call of `bytes`. max_tbs 0: any number of thread blocks. */
polyccl_result pccl_bound_of(const pccl_ir *ir, const polyccl_topology *topology, uint64_t bytes, int32_t max_tbs,
                             pccl_bound *bound);

static inline double pccl_bound_time(const pccl_bound *b) {
  double max = b->path > b->link ? b->path : b->link;
  return max > b->blocks ? max : b->blocks;
}

#endif
