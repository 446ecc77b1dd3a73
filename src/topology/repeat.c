/* Makes several copies of the machine that a file describes. One network switch joins their NICs. Switches with a
 * domain are shared by several copies, which are then one machine (an NVLink domain of several hosts). */
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "topology/machines.h"

static const double NIC_BANDWIDTH = 25; /* GB/s of a NIC without links; an assumption: 200 Gb/s */

/* The bandwidth of a NIC: that of its widest link, else NIC_BANDWIDTH. */
static double nic_bandwidth(const polyccl_topology *base, size_t nic) {
  double widest = 0;
  for (size_t i = 0; i < base->links; i++) {
    if (base->link[i].from == (int32_t)nic && base->link[i].bandwidth > widest) {
      widest = base->link[i].bandwidth;
    }
  }
  return widest > 0 ? widest : NIC_BANDWIDTH;
}

static size_t nics_of(const polyccl_topology *base) {
  size_t nics = 0;
  for (size_t i = 0; i < base->nodes; i++) {
    nics += base->node[i].kind == POLYCCL_NODE_NIC;
  }
  return nics;
}

/* ---- switches that several copies share ---- */

/* How many copies share the switches that have a domain: as many as the smallest domain allows. 1: none is shared. */
static int copies_of_domain(const polyccl_topology *base) {
  int32_t copies = 0;
  for (size_t i = 0; i < base->nodes; i++) {
    int32_t devices = 0;
    for (size_t k = 0; base->node[i].domain > 0 && k < base->links; k++) {
      devices += base->link[k].to == (int32_t)i && base->node[base->link[k].from].kind == POLYCCL_NODE_DEVICE;
    }
    if (devices > 0) {
      int32_t serves = base->node[i].domain / devices;
      copies = copies == 0 || serves < copies ? serves : copies;
    }
  }
  return copies > 1 ? copies : 1;
}

static polyccl_result check_base(const polyccl_topology *base, int copies) {
  for (size_t i = 0; i < base->nodes; i++) {
    if (base->node[i].machine < 0) {
      return pccl_fail(POLYCCL_ERROR_INVALID,
                       "the file has a network of its own (\"%s\"), so it does not describe one machine",
                       base->node[i].name);
    }
  }
  if (nics_of(base) == 0 && copies > copies_of_domain(base)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the machine has no NIC that could join several");
  }
  return POLYCCL_SUCCESS;
}

/* A copy, and the first of the copies that it shares machines and switches with. */
typedef struct copying {
  pccl_builder *b;
  const polyccl_topology *base;
  int32_t *node;    /* [nodes of base]: of this copy */
  int32_t *machine; /* [machines of base]: of this copy's domain */
  int copy, first;
  int32_t network;
} copying;

static void copy_nodes(copying *c) {
  for (size_t i = 0; i < c->base->nodes && c->b->result == POLYCCL_SUCCESS; i++) {
    const polyccl_node *node = &c->base->node[i];
    if (node->domain > 0 && c->copy != c->first) {
      continue; /* the first copy's */
    }
    int32_t rank = node->rank >= 0 ? node->rank + c->copy * c->base->ranks : -1;
    c->node[i] =
        pccl_add_node(c->b, node->kind, c->machine[node->machine], node->model, rank, "%d.%s", c->copy, node->name);
    if (c->node[i] >= 0) {
      c->b->topology->node[c->node[i]].domain = node->domain;
    }
  }
}

static void copy_once(copying *c) {
  pccl_builder *b = c->b;
  const polyccl_topology *base = c->base;
  for (int32_t i = 0; c->copy == c->first && i < base->machines && b->result == POLYCCL_SUCCESS; i++) {
    char name[PCCL_MAX_NAME + 2];
    snprintf(name, sizeof name, "%d.%s", c->copy, base->machine[i]);
    b->result = pccl_builder_machine(b, name, &c->machine[i]);
  }
  copy_nodes(c);
  for (size_t i = 0; i < base->links && b->result == POLYCCL_SUCCESS; i++) {
    const polyccl_link *link = &base->link[i];
    bool shared = base->node[link->from].domain > 0 && base->node[link->to].domain > 0;
    if (!shared || c->copy == c->first) {
      b->result = pccl_builder_link(b, c->node[link->from], c->node[link->to], base->link_type[link->type],
                                    link->bandwidth, link->latency);
    }
  }
  for (size_t i = 0; i < base->nodes && b->result == POLYCCL_SUCCESS; i++) {
    if (base->node[i].kind == POLYCCL_NODE_NIC) {
      pccl_add_pair(b, c->node[i], c->network, "network", nic_bandwidth(base, i), PCCL_NETWORK_LATENCY);
    }
  }
}

static polyccl_result copy_all(pccl_builder *b, const polyccl_topology *base, int copies, int32_t network) {
  int domain = copies_of_domain(base);
  copying c = {.b = b, .base = base, .network = network};
  c.node = pccl_array(base->nodes, sizeof *c.node);
  c.machine = pccl_array((size_t)base->machines, sizeof *c.machine);
  if (c.node == NULL || c.machine == NULL) {
    b->result = pccl_no_memory("copies of a topology");
  }
  for (c.copy = 0; c.copy < copies && b->result == POLYCCL_SUCCESS; c.copy++) {
    c.first = c.copy - c.copy % domain;
    copy_once(&c);
  }
  free(c.node);
  free(c.machine);
  return b->result;
}

static polyccl_result copy_models(pccl_builder *b, const polyccl_topology *base) {
  for (size_t i = 0; i < base->models; i++) {
    int32_t index;
    PCCL_TRY(pccl_builder_model(b, &base->model[i], &index));
  }
  for (size_t i = 0; i < base->assumptions; i++) {
    PCCL_TRY(pccl_builder_assume(b, base->assumption[i]));
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_topology_repeat(const polyccl_topology *base, int copies, polyccl_topology **topology) {
  PCCL_TRY(check_base(base, copies));
  if ((uint64_t)copies * base->nodes > POLYCCL_MAX_NODES || (uint64_t)copies * base->links > POLYCCL_MAX_LINKS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%d machines of %zu nodes and %zu links are more than %d nodes or %d links",
                     copies, base->nodes, base->links, POLYCCL_MAX_NODES, POLYCCL_MAX_LINKS);
  }
  char name[PCCL_MAX_NAME + 20];
  snprintf(name, sizeof name, "%.*s:%d", PCCL_MAX_NAME, base->name, copies);
  pccl_builder b;
  PCCL_TRY(pccl_builder_start(&b, name, base->source));
  b.result = copy_models(&b, base);
  bool joined = copies <= copies_of_domain(base) && nics_of(base) == 0; /* by the shared switch alone */
  int32_t network = joined ? -1 : pccl_add_node(&b, POLYCCL_NODE_SWITCH, -1, -1, -1, "network");
  if (b.result == POLYCCL_SUCCESS) {
    b.result = copy_all(&b, base, copies, network);
  }
  return pccl_builder_finish(&b, topology);
}
