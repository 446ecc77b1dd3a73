/* What joins the GPUs of NCCL's XML besides PCIe: NVLink, xGMI and C2C; the links between sockets; the network between
 * machines. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "topology/nccl_xml.h"

static const double SWITCH_LATENCY = 0.2, DIRECT_LATENCY = 0.4;
static const double PART_BANDWIDTH = 2618; /* between partitions of one GPU: NCCL's figure */

/* Of one GPU to one other, or to its machine's NVSwitch (to: -1). Indices into gpus. */
typedef struct wire {
  int32_t from, to;
  bool xgmi;
  double bandwidth;
} wire;

typedef PCCL_VEC(wire) wires;

/* GPUs by host and bus id. */
typedef struct address {
  int32_t host, gpu;
  uint64_t busid;
} address;

typedef PCCL_VEC(address) addresses;

static pccl_nccl_kind kind_of(const pccl_nccl *n, int32_t element) { return n->elements.data[element].kind; }

static const char *value_or(const pccl_nccl *n, int32_t element, const char *name, const char *other) {
  const char *value = pccl_nccl_value(n, element, name);
  return value != NULL ? value : other;
}

/* ---- single links ---- */

pccl_nccl_target pccl_nccl_target_of(const pccl_nccl *n, int32_t link) {
  const char *class = pccl_nccl_value(n, link, "tclass");
  if (class == NULL) {
    return pccl_nccl_busid_hidden(pccl_nccl_value(n, link, "target")) ? PCCL_NCCL_TO_SWITCH : PCCL_NCCL_TO_GPU;
  }
  if (strncmp(class, "0x03", 4) == 0 || strncmp(class, "0x12", 4) == 0) {
    return PCCL_NCCL_TO_GPU;
  }
  return strncmp(class, "0x068001", 8) == 0 ? PCCL_NCCL_TO_CPU : PCCL_NCCL_TO_SWITCH;
}

bool pccl_nccl_leaves_host(const pccl_nccl *n, int32_t link) {
  return kind_of(n, link) == PCCL_NCCL_NVLINK && pccl_nccl_target_of(n, link) == PCCL_NCCL_TO_SWITCH &&
         pccl_nccl_busid_hidden(pccl_nccl_value(n, link, "target"));
}

/* GB/s of a link element, of the share that one partition has; 0: none, which has been said. */
static double link_bandwidth(pccl_nccl *n, const pccl_nccl_gpu *gpu, int32_t link) {
  const char *count_text = pccl_nccl_value(n, link, "count");
  double count = 1, bw = 0;
  if (count_text == NULL) {
    pccl_nccl_assume(n, link, "a link element without a count: 1 is taken");
  } else if (!pccl_nccl_number(n, link, "count", 1, 1e6, &count)) {
    pccl_nccl_assume(n, link, "count=\"%.40s\" of a link element: no link", count_text);
    return 0;
  }
  switch (kind_of(n, link)) {
    case PCCL_NCCL_NVLINK: return count * pccl_nccl_nvlink_rate(n, gpu) / gpu->parts;
    case PCCL_NCCL_XGMI: return count * pccl_nccl_xgmi_rate(n, gpu) / gpu->parts;
    default: break;
  }
  if (!pccl_nccl_number(n, link, "bw", 1, 1e9, &bw)) { /* MB/s */
    pccl_nccl_assume(n, link, "bw=\"%.40s\" of a c2c element: no link", value_or(n, link, "bw", ""));
    return 0;
  }
  double share = count * bw / 1000 / gpu->parts;
  return share > PCCL_MIN_BANDWIDTH ? share : PCCL_MIN_BANDWIDTH;
}

double pccl_nccl_to_cpu(pccl_nccl *n, const pccl_nccl_gpu *gpu, const char **type) {
  double bandwidth = 0;
  for (int32_t c = n->elements.data[gpu->element].first_child; c >= 0; c = n->elements.data[c].next) {
    if (kind_of(n, c) == PCCL_NCCL_C2C) {
      bandwidth += link_bandwidth(n, gpu, c);
      *type = "C2C";
    } else if (pccl_nccl_target_of(n, c) == PCCL_NCCL_TO_CPU) {
      bandwidth += link_bandwidth(n, gpu, c);
      *type = kind_of(n, c) == PCCL_NCCL_XGMI ? "xGMI" : "NVLink";
    }
  }
  return bandwidth < PCCL_MAX_BANDWIDTH ? bandwidth : PCCL_MAX_BANDWIDTH;
}

/* ---- what each link leads to ---- */

static int by_address(const void *a, const void *b) {
  const address *x = a, *y = b;
  int order = (x->host > y->host) - (x->host < y->host);
  return order != 0 ? order : (x->busid > y->busid) - (x->busid < y->busid);
}

static bool list_addresses(pccl_nccl *n, addresses *list) {
  for (size_t i = 0; i < n->gpus.len; i++) {
    const pccl_nccl_gpu *gpu = &n->gpus.data[i];
    if (gpu->primary && gpu->has_busid && !pccl_vec_push(list, (address){gpu->host, (int32_t)i, gpu->busid})) {
      return false;
    }
  }
  if (list->len > 0) {
    qsort(list->data, list->len, sizeof *list->data, by_address);
  }
  for (size_t i = 1; i < list->len; i++) {
    const pccl_nccl_gpu *gpu = &n->gpus.data[list->data[i].gpu];
    if (by_address(&list->data[i - 1], &list->data[i]) == 0 && n->gpus.data[list->data[i - 1].gpu].pci != gpu->pci) {
      pccl_nccl_assume(n, gpu->element, "two GPUs of one host (host_hash) have the same bus id: they share its links");
    }
  }
  return true;
}

/* The first of the GPUs with this address, and how many there are (partitions). */
static const address *find_address(const addresses *list, int32_t host, uint64_t busid, size_t *count) {
  address key = {.host = host, .busid = busid};
  const address *found = list->len > 0 ? bsearch(&key, list->data, list->len, sizeof key, by_address) : NULL;
  *count = 0;
  if (found == NULL) {
    return NULL;
  }
  while (found > list->data && by_address(found - 1, &key) == 0) {
    found--;
  }
  while (found + *count < list->data + list->len && by_address(found + *count, &key) == 0) {
    (*count)++;
  }
  return found;
}

static bool push_wire(pccl_nccl *n, wires *all, wire w) {
  if (!pccl_vec_push(all, w)) {
    n->result = pccl_no_memory("NVLinks");
  }
  return n->result == POLYCCL_SUCCESS;
}

/* A link to a GPU of the same host; one that leads to none is said. */
static void follow_to_gpu(pccl_nccl *n, const addresses *list, int32_t from, int32_t link, wires *all) {
  const pccl_nccl_gpu *gpu = &n->gpus.data[from];
  const char *target = value_or(n, link, "target", ""), *type = kind_of(n, link) == PCCL_NCCL_XGMI ? "xGMI" : "NVLink";
  uint64_t busid;
  size_t count = 0;
  const address *found = pccl_nccl_busid(target, &busid) ? find_address(list, gpu->host, busid, &count) : NULL;
  if (found == NULL && pccl_nccl_value(n, link, "tclass") == NULL) {
    pccl_nccl_assume(n, link, "an %s link to %.40s, which is no GPU, without a tclass: to an NVSwitch", type, target);
    double bandwidth = link_bandwidth(n, gpu, link);
    if (bandwidth > 0) {
      push_wire(n, all, (wire){from, -1, kind_of(n, link) == PCCL_NCCL_XGMI, bandwidth});
    }
    return;
  }
  if (found == NULL || n->gpus.data[found->gpu].pci == gpu->pci) {
    pccl_nccl_assume(n, link,
                     found == NULL ? "%s to %.40s: no GPU of its host has this bus id, no link"
                                   : "%s to %.40s: a GPU's link to itself, no link",
                     type, target);
    return;
  }
  double bandwidth = link_bandwidth(n, gpu, link);
  for (size_t i = 0; i < count && bandwidth > 0; i++) {
    if (!push_wire(n, all, (wire){from, found[i].gpu, kind_of(n, link) == PCCL_NCCL_XGMI, bandwidth / (double)count})) {
      return;
    }
  }
}

static void follow_links(pccl_nccl *n, const addresses *list, int32_t from, wires *all) {
  const pccl_nccl_gpu *gpu = &n->gpus.data[from];
  if (!gpu->primary || gpu->implied) {
    return;
  }
  for (int32_t c = n->elements.data[gpu->element].first_child; c >= 0 && n->result == POLYCCL_SUCCESS;
       c = n->elements.data[c].next) {
    pccl_nccl_kind kind = kind_of(n, c);
    pccl_nccl_target target = pccl_nccl_target_of(n, c);
    if ((kind != PCCL_NCCL_NVLINK && kind != PCCL_NCCL_XGMI) || target == PCCL_NCCL_TO_CPU) {
      continue;
    }
    if (target == PCCL_NCCL_TO_GPU) {
      follow_to_gpu(n, list, from, c, all);
      continue;
    }
    if (!pccl_nccl_starts(n, c, "tclass", "0x0680") && pccl_nccl_value(n, c, "tclass") != NULL) {
      pccl_nccl_assume(n, c, "tclass=\"%.20s\" of a link element: to an NVSwitch, as NCCL takes it",
                       value_or(n, c, "tclass", ""));
    }
    double bandwidth = link_bandwidth(n, gpu, c);
    if (bandwidth > 0) {
      push_wire(n, all, (wire){from, -1, kind == PCCL_NCCL_XGMI, bandwidth});
    }
  }
}

/* ---- files without links: the fabric that machines with such GPUs have ---- */

static bool lists_links(const pccl_nccl *n) {
  for (int32_t i = 0; i < (int32_t)n->elements.len; i++) {
    if (kind_of(n, i) == PCCL_NCCL_NVLINK || kind_of(n, i) == PCCL_NCCL_XGMI) {
      return true;
    }
  }
  return false;
}

static void imply_fabric(pccl_nccl *n, int32_t from, wires *all) {
  enum { MAX_MESH = 64 }; /* more GPUs are no mesh of any machine */
  const pccl_nccl_gpu *gpu = &n->gpus.data[from];
  const polyccl_topology *t = n->builder.topology;
  const char *model = t->model[t->node[gpu->node].model].name;
  const pccl_nccl_fabric *fabric = gpu->primary ? pccl_nccl_fabric_of(model) : NULL;
  size_t others = 0;
  for (size_t i = 0; fabric != NULL && i < n->gpus.len; i++) {
    others += n->gpus.data[i].host == gpu->host && n->gpus.data[i].primary && (int32_t)i != from;
  }
  if (others == 0 || (fabric->mesh && others >= MAX_MESH)) {
    return;
  }
  if (!fabric->mesh) {
    pccl_nccl_assume(n, -1, "no NVLinks in the file: each %s has %d of %g GB/s to an NVSwitch", model, fabric->links,
                     fabric->rate);
    push_wire(n, all, (wire){from, -1, false, fabric->links * fabric->rate});
    return;
  }
  pccl_nccl_assume(n, -1, "no xGMI links in the file: each %s has one of %g GB/s to each other", model, fabric->rate);
  for (size_t i = 0; i < n->gpus.len; i++) {
    if (n->gpus.data[i].host == gpu->host && n->gpus.data[i].primary && (int32_t)i != from) {
      push_wire(n, all, (wire){from, (int32_t)i, true, fabric->links * fabric->rate});
    }
  }
}

/* ---- links of the topology ---- */

static int by_ends(const void *a, const void *b) {
  const wire *x = a, *y = b;
  int order = (x->from > y->from) - (x->from < y->from);
  return order != 0 ? order : (x->to > y->to) - (x->to < y->to);
}

/* Adds up the wires between the same two ends. */
static void sum_wires(wires *all) {
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
static void join_switch(pccl_nccl *n, int32_t *switches, const wire *w) {
  const pccl_nccl_gpu *gpu = &n->gpus.data[w->from];
  const pccl_nccl_host *host = &n->hosts.data[gpu->host];
  int32_t *node = &switches[host->machine];
  if (*node < 0) {
    *node = pccl_add_node(&n->builder, POLYCCL_NODE_SWITCH, host->machine, -1, -1, "m%d.nvswitch", (int)host->machine);
    if (*node >= 0 && host->outer_switch && host->arm) {
      int32_t size = pccl_nccl_domain_size(n, gpu);
      n->builder.topology->node[*node].domain = size;
      pccl_nccl_assume(n, -1, "the NVLinks of m%d lead out of the host: copies of it share one NVSwitch, up to %d GPUs",
                       (int)host->machine, (int)size);
    }
  }
  pccl_add_pair(&n->builder, gpu->port, *node, w->xgmi ? "xGMI" : "NVLink", w->bandwidth, SWITCH_LATENCY);
}

static void join_two(pccl_nccl *n, int32_t a, int32_t b, const char *type, double there, double back, double latency) {
  pccl_builder *builder = &n->builder;
  if (builder->result == POLYCCL_SUCCESS) {
    builder->result = pccl_builder_link(builder, a, b, type, there, latency);
  }
  if (builder->result == POLYCCL_SUCCESS) {
    builder->result = pccl_builder_link(builder, b, a, type, back, latency);
  }
}

/* Each direction as its GPU lists it; one that only one GPU lists is taken for both. */
static void join_gpus(pccl_nccl *n, const wires *all, const wire *w) {
  wire key = {.from = w->to, .to = w->from};
  const wire *back = bsearch(&key, all->data, all->len, sizeof key, by_ends);
  if (back != NULL && w->from > w->to) {
    return; /* done from the other end */
  }
  join_two(n, n->gpus.data[w->from].port, n->gpus.data[w->to].port, w->xgmi ? "xGMI" : "NVLink", w->bandwidth,
           back != NULL ? back->bandwidth : w->bandwidth, DIRECT_LATENCY);
}

static void join_wires(pccl_nccl *n, const wires *all) {
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

/* The partitions of a GPU stand side by side. */
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
  addresses list = {0};
  wires all = {0};
  if (!list_addresses(n, &list)) {
    n->result = pccl_no_memory("GPUs");
  }
  bool no_links = n->hints != NULL && n->hints->gpu != NULL && !lists_links(n);
  for (int32_t i = 0; i < (int32_t)n->gpus.len && n->result == POLYCCL_SUCCESS; i++) {
    follow_links(n, &list, i, &all);
    if (n->gpus.data[i].implied || no_links) {
      imply_fabric(n, i, &all);
    }
  }
  if (n->result == POLYCCL_SUCCESS) {
    sum_wires(&all);
    join_wires(n, &all);
    join_parts(n);
  }
  pccl_vec_free(&list);
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

/* A link between any two sockets of a host, each direction at its socket's rate, as NCCL has them. */
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
