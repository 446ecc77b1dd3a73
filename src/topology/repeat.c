/* Several of the machines that a file describes, joined by one network switch at their NICs. */
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "topology/machines.h"

static const double NIC_BANDWIDTH = 25; /* GB/s, where the file's NIC has no link of its own to tell by */

/* What a NIC carries: the widest link it has, else the preset. */
static double nic_bandwidth(const polyccl_topology *base, size_t nic) {
  double widest = 0;
  for (size_t i = 0; i < base->links; i++) {
    if (base->link[i].from == (int32_t)nic && base->link[i].bandwidth > widest) {
      widest = base->link[i].bandwidth;
    }
  }
  return widest > 0 ? widest : NIC_BANDWIDTH;
}

static polyccl_result check_base(const polyccl_topology *base) {
  size_t nics = 0;
  for (size_t i = 0; i < base->nodes; i++) {
    nics += base->node[i].kind == POLYCCL_NODE_NIC;
    if (base->node[i].machine < 0) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "the file has a network of its own (\"%s\"), it is not one machine",
                       base->node[i].name);
    }
  }
  if (nics == 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the machine has no NIC to join several by");
  }
  return POLYCCL_SUCCESS;
}

static void copy_once(pccl_builder *b, const polyccl_topology *base, int copy, int32_t network) {
  int32_t first = (int32_t)b->topology->nodes, first_machine = b->topology->machines;
  for (int32_t i = 0; i < base->machines && b->result == POLYCCL_SUCCESS; i++) {
    char name[PCCL_MAX_NAME + 2];
    int32_t index;
    snprintf(name, sizeof name, "%d.%s", copy, base->machine[i]);
    b->result = pccl_builder_machine(b, name, &index);
  }
  for (size_t i = 0; i < base->nodes && b->result == POLYCCL_SUCCESS; i++) {
    const polyccl_node *node = &base->node[i];
    int32_t rank = node->rank >= 0 ? node->rank + copy * base->ranks : -1;
    pccl_add_node(b, node->kind, first_machine + node->machine, node->model, rank, "%d.%s", copy, node->name);
  }
  for (size_t i = 0; i < base->links && b->result == POLYCCL_SUCCESS; i++) {
    const polyccl_link *link = &base->link[i];
    b->result = pccl_builder_link(b, first + link->from, first + link->to, base->link_type[link->type], link->bandwidth,
                                  link->latency);
  }
  for (size_t i = 0; i < base->nodes && b->result == POLYCCL_SUCCESS; i++) {
    if (base->node[i].kind == POLYCCL_NODE_NIC) {
      pccl_add_pair(b, first + (int32_t)i, network, "network", nic_bandwidth(base, i), PCCL_NETWORK_LATENCY);
    }
  }
}

polyccl_result pccl_topology_repeat(const polyccl_topology *base, int copies, polyccl_topology **topology) {
  PCCL_TRY(check_base(base));
  if ((uint64_t)copies * base->nodes > POLYCCL_MAX_NODES || (uint64_t)copies * base->links > POLYCCL_MAX_LINKS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%d machines of %zu nodes and %zu links are more than %d nodes or %d links",
                     copies, base->nodes, base->links, POLYCCL_MAX_NODES, POLYCCL_MAX_LINKS);
  }
  char name[PCCL_MAX_NAME + 20];
  snprintf(name, sizeof name, "%.*s:%d", PCCL_MAX_NAME, base->name, copies);
  pccl_builder b;
  PCCL_TRY(pccl_builder_start(&b, name, base->source));
  for (size_t i = 0; i < base->models && b.result == POLYCCL_SUCCESS; i++) {
    int32_t index;
    b.result = pccl_builder_model(&b, &base->model[i], &index);
  }
  int32_t network = pccl_add_node(&b, POLYCCL_NODE_SWITCH, -1, -1, -1, "network");
  for (int copy = 0; copy < copies && b.result == POLYCCL_SUCCESS; copy++) {
    copy_once(&b, base, copy, network);
  }
  return pccl_builder_finish(&b, topology);
}
