/* The tables that routes are computed from.
 *
 * A region is the nodes of one machine, or all nodes between machines. A route stays in its machine when it can.
 * Otherwise it has three parts: inside the source's machine to a link that leaves it, between machines, and inside the
 * destination's machine. So the tables grow with the nodes of a machine, not with the square of the ranks. A route
 * never passes through a third machine.
 *
 * Distances are whole picoseconds, so equal distances are exactly equal on every machine. */
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
  int32_t *turn;       /* [nodes] of a device: its number in its machine, by which equal routes are shared out */
  pccl_region *region; /* [machines + 1]; the last lies between machines */
  int32_t *members, *exits, *entries; /* the arrays of all regions, one after another */
  _Atomic(uint64_t *) *to;            /* [nodes]: distance from each node of its region; NULL: not yet */
  pthread_mutex_t lock;               /* held while a table is made */
};

/* Takes ownership of `pairs` (from << 32 | to -> link), even on failure. */
polyccl_result pccl_routes_create(const polyccl_topology *topology, pccl_map pairs, struct pccl_routes **routes);
void pccl_routes_destroy(struct pccl_routes *routes, size_t nodes);

/* INVALID, naming two ranks without a route between them. */
polyccl_result pccl_routes_check(const polyccl_topology *topology);
polyccl_result pccl_no_route(const polyccl_topology *topology, int src, int dst);

static inline int32_t pccl_region_of(const polyccl_topology *t, int32_t node) {
  return t->node[node].machine >= 0 ? t->node[node].machine : t->machines;
}

#endif
