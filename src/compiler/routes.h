/* Routes between ranks as lists of the topology's links, and how many thread blocks a link feeds. */
#ifndef PCCL_COMPILER_ROUTES_H
#define PCCL_COMPILER_ROUTES_H

#include <polyccl/topology.h>

#include "base/map.h"
#include "base/vec.h"

/* The links of routes, where each route is stored once. */
typedef struct pccl_link_lists {
  PCCL_VEC(int32_t) link;
  pccl_map known; /* (src, dst) -> first link and their number */
} pccl_link_lists;

/* The route from rank `src` to rank `dst`: `*count` links from table->link.data[*first] on. */
polyccl_result pccl_links_between(pccl_link_lists *table, const polyccl_topology *topology, int src, int dst,
                                  int32_t *first, int32_t *count);
void pccl_link_lists_free(pccl_link_lists *table);

/* Thread blocks that fill a link, at least 1: so many tasks or flows may use it at once. This is our reading of
 * ResCCL's "admission by link bandwidth". */
int32_t pccl_link_capacity(const polyccl_topology *topology, int32_t link, polyccl_protocol protocol);

#endif
