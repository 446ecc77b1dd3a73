/* What joins the GPUs of NCCL's XML, except PCIe: NVLink and xGMI, the links between sockets, the network between
 * machines. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "topology/nccl_xml.h"

static const double PART_BANDWIDTH = 2618; /* GB/s between partitions of one GPU, NCCL's figure */

/* ---- links of the topology ---- */

static int by_ends(const void *a, const void *b) {
  const pccl_nccl_wire *x = a, *y = b;
  int order = (x->from > y->from) - (x->from < y->from);
  return order != 0 ? order : (x->to > y->to) - (x->to < y->to);
}

/* Adds up the wires between the same two ends. */
static void sum_wires(pccl_nccl_wires *all) {
  if (all->len == 0) {
    return;
  }
  qsort(all->data, all->len, sizeof *all->data, by_ends);
  size_t kept = 0;
  for (size_t i = 1; i < all->len; i++) {
    if (by_ends(&all->data[kept], &all->data[i]) == 0) {
      double sum = all->data[kept].bandwidth + all->data[i].bandwidth;
      all->data[kept].bandwidth = sum < PCCL_MAX_BANDWIDTH ? sum : PCCL_MAX_BANDWIDTH;
    } else {
      all->data[++kept] = all->data[i];
    }
  }
  all->len = kept + 1;
}

/* All NVSwitches of a machine are one switch, which has the sum of a GPU's links as its port. A switch outside the host
 * serves copies of the file too, except in a virtual machine, which does not see those of its own host. */
static void join_switch(pccl_nccl *n, int32_t *switches, const pccl_nccl_wire *w) {
  const pccl_nccl_gpu *gpu = &n->gpus.data[w->from];
  const pccl_nccl_host *host = &n->hosts.data[gpu->host];
  int32_t *node = &switches[host->machine];
  if (*node < 0) {
    *node = pccl_add_node(&n->builder, POLYCCL_NODE_SWITCH, host->machine, -1, -1, "m%d.nvswitch", (int)host->machine);
    if (*node >= 0 && host->outer_switch && host->arm) {
      int32_t size = pccl_nccl_domain_size(n, gpu);
      n->builder.topology->node[*node].domain = size;
      pccl_nccl_assume(n, -1,
                       "the NVLinks of m%d lead out of the host, so copies of it share one NVSwitch, up to %d GPUs",
                       (int)host->machine, (int)size);
    }
  }
  pccl_add_pair(&n->builder, gpu->port, *node, w->xgmi ? "xGMI" : "NVLink", w->bandwidth, PCCL_SWITCH_LATENCY);
}

static void join_two(pccl_nccl *n, int32_t a, int32_t b, const char *type, double there, double back, double latency) {
  pccl_add_link(&n->builder, a, b, type, there, latency);
  pccl_add_link(&n->builder, b, a, type, back, latency);
}

/* Each direction has what its GPU lists. A link that only one GPU lists has the same rate in both directions. */
static void join_gpus(pccl_nccl *n, const pccl_nccl_wires *all, const pccl_nccl_wire *w) {
  pccl_nccl_wire key = {.from = w->to, .to = w->from};
  const pccl_nccl_wire *back = bsearch(&key, all->data, all->len, sizeof key, by_ends);
  if (back != NULL && w->from > w->to) {
    return; /* the other end has added it */
  }
  join_two(n, n->gpus.data[w->from].port, n->gpus.data[w->to].port, w->xgmi ? "xGMI" : "NVLink", w->bandwidth,
           back != NULL ? back->bandwidth : w->bandwidth, PCCL_DIRECT_LATENCY);
}

static void join_wires(pccl_nccl *n, const pccl_nccl_wires *all) {
  size_t machines = (size_t)n->builder.topology->machines;
  int32_t *switches = pccl_array(machines, sizeof *switches);
  if (switches == NULL) {
    n->result = pccl_no_memory("NVSwitches");
    return;
  }
  for (size_t i = 0; i < machines; i++) {
    switches[i] = -1;
  }
  for (size_t i = 0; i < all->len && pccl_nccl_built(n); i++) {
    if (all->data[i].to < 0) {
      join_switch(n, switches, &all->data[i]);
    } else {
      join_gpus(n, all, &all->data[i]);
    }
  }
  free(switches);
}

/* Links each partition of a GPU to the partitions before it. */
static void join_parts(pccl_nccl *n) {
  for (size_t i = 0; i < n->gpus.len && pccl_nccl_built(n); i++) {
    const pccl_nccl_gpu *gpu = &n->gpus.data[i];
    for (size_t k = i; gpu->parts > 1 && gpu->primary && k > 0 && n->gpus.data[k - 1].pci == gpu->pci; k--) {
      if (n->gpus.data[k - 1].primary) {
        pccl_add_pair(&n->builder, n->gpus.data[k - 1].port, gpu->port, "local", PART_BANDWIDTH, 0);
      }
    }
  }
}

static void join_fabric(pccl_nccl *n) {
  pccl_nccl_wires all = {0};
  pccl_nccl_find_wires(n, &all);
  if (n->result == POLYCCL_SUCCESS) {
    sum_wires(&all);
    join_wires(n, &all);
    join_parts(n);
  }
  pccl_vec_free(&all);
}

/* ---- sockets and network ---- */

typedef struct cpu_socket {
  int32_t host, node;
  double rate;
} cpu_socket;

static int by_host(const void *a, const void *b) {
  const cpu_socket *x = a, *y = b;
  int order = (x->host > y->host) - (x->host < y->host);
  return order != 0 ? order : (x->node > y->node) - (x->node < y->node);
}

/* Links any two sockets of a host, each direction at the rate of its socket, as NCCL does. */
static void join_sockets(pccl_nccl *n) {
  PCCL_VEC(cpu_socket) sockets = {0};
  for (int32_t i = 0; i < (int32_t)n->elements.len && n->result == POLYCCL_SUCCESS; i++) {
    const pccl_nccl_element *e = &n->elements.data[i];
    if (e->kind == PCCL_NCCL_CPU && n->hosts.data[e->host].cpus > 1 &&
        !pccl_vec_push(&sockets, (cpu_socket){e->host, e->node, pccl_nccl_socket_rate(n, i)})) {
      n->result = pccl_no_memory("sockets");
    }
  }
  if (sockets.len > 0) {
    qsort(sockets.data, sockets.len, sizeof *sockets.data, by_host);
  }
  for (size_t i = 0; i < sockets.len && pccl_nccl_built(n); i++) {
    const cpu_socket *one = &sockets.data[i];
    for (size_t k = i + 1; k < sockets.len && sockets.data[k].host == one->host; k++) {
      join_two(n, one->node, sockets.data[k].node, "socket", one->rate, sockets.data[k].rate, PCCL_SOCKET_LATENCY);
    }
  }
  pccl_vec_free(&sockets);
}

static void join_machines(pccl_nccl *n) {
  if (n->builder.topology->machines < 2) {
    return;
  }
  int32_t network = pccl_add_node(&n->builder, POLYCCL_NODE_SWITCH, -1, -1, -1, "network");
  for (size_t i = 0; i < n->nics.len && pccl_nccl_built(n); i++) {
    pccl_add_pair(&n->builder, n->nics.data[i].node, network, "network", n->nics.data[i].bandwidth,
                  PCCL_NETWORK_LATENCY);
  }
}

polyccl_result pccl_nccl_join(pccl_nccl *n) {
  join_sockets(n);
  if (n->result == POLYCCL_SUCCESS) {
    join_fabric(n);
  }
  if (n->result == POLYCCL_SUCCESS) {
    join_machines(n);
  }
  pccl_nccl_built(n);
  return n->result;
}
