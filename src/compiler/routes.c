#include "compiler/routes.h"

#include "base/error.h"

void pccl_link_lists_free(pccl_link_lists *table) {
  pccl_vec_free(&table->link);
  pccl_map_free(&table->known);
}

polyccl_result pccl_links_between(pccl_link_lists *table, const polyccl_topology *topology, int src, int dst,
                                  int32_t *first, int32_t *count) {
  enum { ROOM = 64 };
  bool is_new;
  uint64_t *slot = pccl_map_put(&table->known, ((uint64_t)src << 32) | (uint64_t)dst, 0, &is_new);
  if (slot == NULL || !pccl_vec_reserve(&table->link, ROOM)) {
    return pccl_no_memory("the schedule");
  }
  if (is_new) {
    size_t links = 0;
    PCCL_TRY(polyccl_topology_route(topology, src, dst, table->link.data + table->link.len, ROOM, &links));
    if (links > ROOM || table->link.len > INT32_MAX - ROOM) {
      return pccl_fail(POLYCCL_ERROR_LIMIT, "the route from rank %d to rank %d has %zu links (at most %d)", src, dst,
                       links, ROOM);
    }
    *slot = ((uint64_t)table->link.len << 8) | links;
    table->link.len += links;
  }
  *first = (int32_t)(*slot >> 8);
  *count = (int32_t)(*slot & 0xff);
  return POLYCCL_SUCCESS;
}

int32_t pccl_link_capacity(const polyccl_topology *t, int32_t link, polyccl_protocol protocol) {
  enum { MAX = 1 << 20 }; /* more than all thread blocks of a cluster, and far from overflow */
  const polyccl_protocol_model *model = &t->model[t->rank[0].model].protocol[protocol];
  double fill = t->link[link].bandwidth * model->efficiency / model->copy_bandwidth;
  return fill < 1 ? 1 : fill > MAX ? MAX : (int32_t)fill;
}
