/* What routing knows of a topology's shape.
 *
 * A region is the nodes of one machine, or all nodes between machines. A route stays in its machine when it can; else
 * it is a way inside the source's machine to a link that leaves it, a way between machines, and a way inside the
 * destination's. So the tables grow with the nodes of a machine, not with the square of the ranks. A route does not
 * pass through a third machine.
 *
 * Distances are whole picoseconds: ties are exact, and the same everywhere. */
#ifndef PCCL_TOPOLOGY_ROUTES_H
#define PCCL_TOPOLOGY_ROUTES_H

#include <pthread.h>
#include <stdatomic.h>

#include "topology/topology.h"

#define PCCL_INFINITE_DISTANCE UINT64_MAX

typedef struct pccl_region {
  int32_t *node; /* its nodes; pos[] is the reverse */
  int32_t nodes;
  int32_t *exit, *entry; /* machines: links that leave and that come in */
  int32_t exits, entries;
} pccl_region;

struct pccl_routes {
  uint64_t *cost;                /* [links] */
  int32_t *out_first, *in_first; /* [nodes + 1]: each node's links in out[] and in[] */
  int32_t *out, *in;
  pccl_map pairs;                       /* from, to -> link */
  uint64_t *min_out_cost, *min_in_cost; /* [nodes]: cost of the cheapest link that leaves, that comes in */
  int32_t *pos;                         /* [nodes]: place in its region */
  int32_t *turn;                        /* [nodes]: devices: place among its machine's; shares out equal ways */
  pccl_region *region;                  /* [machines + 1]; the last lies between machines */
  int32_t *members, *exits, *entries;   /* what the regions' arrays are slices of */
  _Atomic(uint64_t *) *to;              /* [nodes]: distance from each node of its region; NULL: not yet */
  pthread_mutex_t lock;                 /* held while a table is made */
};

/* Takes `pairs` (from << 32 | to -> link), also on failure. */
polyccl_result pccl_routes_create(const polyccl_topology *topology, pccl_map pairs, struct pccl_routes **routes);
void pccl_routes_destroy(struct pccl_routes *routes, size_t nodes);

/* INVALID naming two ranks that have no way between them. */
polyccl_result pccl_routes_check(const polyccl_topology *topology);
polyccl_result pccl_no_route(const polyccl_topology *topology, int src, int dst);

static inline int32_t pccl_region_of(const polyccl_topology *t, int32_t node) {
  return t->node[node].machine >= 0 ? t->node[node].machine : t->machines;
}

#endif
