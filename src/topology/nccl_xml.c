/* The topology XML that NCCL and RCCL write to NCCL_TOPO_DUMP_FILE, and the files that clouds give NCCL in
 * NCCL_TOPO_FILE: from elements to machines, hosts, PCIe, GPUs and NICs. docs/topology.md says what is taken. */
#include "topology/nccl_xml.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const double DEFAULT_NET = 10000; /* Mb/s; NCCL takes it for a NIC without a speed */

bool pccl_nccl_built(pccl_nccl *n) {
  n->result = n->result == POLYCCL_SUCCESS ? n->builder.result : n->result;
  return n->result == POLYCCL_SUCCESS;
}

int32_t pccl_nccl_cpu_of(const pccl_nccl *n, int32_t element) {
  while (element >= 0 && n->elements.data[element].kind != PCCL_NCCL_CPU) {
    element = n->elements.data[element].parent;
  }
  return element;
}

/* ---- hosts and machines ---- */

/* Two host hashes that are numbers are compared as numbers. */
static void normal_hash(const char *text, char *hash, size_t size) {
  char *end = NULL;
  unsigned long long value = strtoull(text, &end, 16);
  if (end != text && *end == '\0') {
    snprintf(hash, size, "%llx", value);
  } else {
    snprintf(hash, size, "%.*s", PCCL_NCCL_NAME - 1, text[0] != '\0' ? text : "0");
  }
}

static int32_t host_of(pccl_nccl *n, int32_t cpu) {
  enum { MAX_HOSTS = 4096 };
  const char *text = pccl_nccl_value(n, cpu, "host_hash");
  pccl_nccl_host host = {.machine = -1};
  normal_hash(text != NULL ? text : "", host.hash, sizeof host.hash);
  for (size_t i = 0; i < n->hosts.len; i++) {
    if (strcmp(n->hosts.data[i].hash, host.hash) == 0) {
      return (int32_t)i;
    }
  }
  if (n->hosts.len >= MAX_HOSTS) {
    pccl_nccl_refuse(n, cpu, "the file has more than %d hosts", MAX_HOSTS);
    return -1;
  }
  if (!pccl_vec_push(&n->hosts, host)) {
    n->result = pccl_no_memory("hosts");
    return -1;
  }
  return (int32_t)n->hosts.len - 1;
}

/* Finds the host of each element, and what is known of each host. */
static void find_hosts(pccl_nccl *n) {
  enum { MAX_CPUS = 65536 };
  size_t cpus = 0;
  for (int32_t i = 0; i < (int32_t)n->elements.len && n->result == POLYCCL_SUCCESS; i++) {
    pccl_nccl_element *e = pccl_nccl_at(n, i);
    e->host = e->kind == PCCL_NCCL_CPU ? host_of(n, i) : e->parent >= 0 ? pccl_nccl_at(n, e->parent)->host : -1;
    if (e->host < 0) {
      continue;
    }
    pccl_nccl_host *host = &n->hosts.data[e->host];
    if (e->kind == PCCL_NCCL_CPU) {
      if (++cpus > MAX_CPUS) {
        pccl_nccl_refuse(n, i, "the file has more than %d cpu elements", MAX_CPUS);
      }
      host->arm = host->arm || pccl_nccl_starts(n, i, "arch", "arm") || pccl_nccl_starts(n, i, "arch", "aarch64");
    }
    host->outer_switch = host->outer_switch || pccl_nccl_leaves_host(n, i);
  }
}

/* NCCL writes several hosts into one file only where NVLink joins them: hosts whose NVLinks lead to switches that they
 * do not see are one machine. Each other host is a machine of its own. */
static void make_machines(pccl_nccl *n) {
  int32_t shared = -1;
  size_t sharing = 0, in_shared = 0;
  for (size_t i = 0; i < n->hosts.len; i++) {
    sharing += n->hosts.data[i].outer_switch;
  }
  for (size_t i = 0; i < n->hosts.len && n->result == POLYCCL_SUCCESS; i++) {
    pccl_nccl_host *host = &n->hosts.data[i];
    bool joins = sharing > 1 && host->outer_switch;
    if (joins && shared >= 0) {
      host->machine = shared;
    } else {
      char name[32];
      snprintf(name, sizeof name, "m%d", (int)n->builder.topology->machines);
      n->result = pccl_builder_machine(&n->builder, name, &host->machine);
      shared = joins ? host->machine : shared;
    }
    if (joins) {
      snprintf(host->name, sizeof host->name, "m%d.h%zu", (int)host->machine, in_shared++);
    } else {
      snprintf(host->name, sizeof host->name, "m%d", (int)host->machine);
    }
  }
  if (shared >= 0) {
    pccl_nccl_assume(n, -1,
                     "the NVLinks of %zu hosts lead to switches that no host sees, so these hosts are one NVLink "
                     "domain, machine m%d",
                     sharing, (int)shared);
  }
}

static void build_cpu(pccl_nccl *n, int32_t cpu) {
  pccl_nccl_host *host = &n->hosts.data[pccl_nccl_at(n, cpu)->host];
  if (host->cpus >= PCCL_NCCL_MAX_SOCKETS) {
    pccl_nccl_refuse(n, cpu, "one host has more than %d cpu elements", PCCL_NCCL_MAX_SOCKETS);
    return;
  }
  pccl_nccl_at(n, cpu)->node =
      pccl_add_node(&n->builder, POLYCCL_NODE_HOST, host->machine, -1, -1, "%s.cpu%d", host->name, (int)host->cpus++);
}

/* ---- PCIe ---- */

int32_t pccl_nccl_hang_on(pccl_nccl *n, int32_t element) {
  while (element >= 0 && pccl_nccl_at(n, element)->kind != PCCL_NCCL_PCI &&
         pccl_nccl_at(n, element)->kind != PCCL_NCCL_CPU) {
    element = pccl_nccl_at(n, element)->parent;
  }
  if (element < 0 || pccl_nccl_at(n, element)->kind == PCCL_NCCL_CPU || pccl_nccl_at(n, element)->node >= 0) {
    return element < 0 ? -1 : pccl_nccl_at(n, element)->node;
  }
  int32_t up = pccl_nccl_hang_on(n, pccl_nccl_at(n, element)->parent);
  if (up < 0) {
    return -1;
  }
  const pccl_nccl_host *host = &n->hosts.data[pccl_nccl_at(n, element)->host];
  const char *busid = pccl_nccl_value(n, element, "busid");
  int32_t node = pccl_add_node(&n->builder, POLYCCL_NODE_SWITCH, host->machine, -1, -1, "%s.pci%zu.%.60s", host->name,
                               n->builder.topology->nodes, busid != NULL ? busid : "");
  pccl_add_pair(&n->builder, node, up, "PCIe", pccl_nccl_pcie(n, element), PCCL_PCIE_LATENCY);
  pccl_nccl_at(n, element)->node = node;
  return node;
}

/* ---- NICs ---- */

static double net_bandwidth(pccl_nccl *n, int32_t net) {
  double speed;
  if (pccl_nccl_number(n, net, "speed", PCCL_MIN_BANDWIDTH * 8000, 8e12, &speed)) {
    return speed / 8000;
  }
  const char *text = pccl_nccl_value(n, net, "speed");
  if (n->hints != NULL && n->hints->nic != NULL) {
    return pccl_nccl_device_nic_rate(n, net, 0);
  }
  pccl_nccl_assume(n, net, "a net element has speed=\"%.40s\"; 10 Gb/s are taken, as NCCL does",
                   text != NULL ? text : "");
  return DEFAULT_NET / 8000;
}

static uint64_t hash_text(uint64_t hash, const char *text) {
  for (; *text != '\0'; text++) {
    hash = pccl_mix64(hash ^ (unsigned char)*text);
  }
  return pccl_mix64(hash ^ 256);
}

static bool same_value(const pccl_nccl *n, int32_t a, int32_t b, const char *name) {
  const char *one = pccl_nccl_value(n, a, name), *other = pccl_nccl_value(n, b, name);
  return one != NULL && other != NULL && strcmp(one, other) == 0;
}

/* A NIC that the file lists under several cpus of a host is one NIC. `*same` is its index; -1: it is new, and `index`
 * becomes its index. */
static bool find_nic(pccl_nccl *n, int32_t net, size_t index, int32_t *same) {
  const char *name = pccl_nccl_value(n, net, "name"), *dev = pccl_nccl_value(n, net, "dev");
  *same = -1;
  if (name == NULL || dev == NULL) {
    return true;
  }
  bool is_new;
  uint64_t key = hash_text(hash_text((uint64_t)pccl_nccl_at(n, net)->host, name), dev) >> 1;
  uint64_t *found = pccl_map_put(&n->nic_names, key, index, &is_new);
  if (found == NULL) {
    n->result = pccl_no_memory("NICs");
    return false;
  }
  const pccl_nccl_nic *nic = is_new ? NULL : &n->nics.data[*found];
  if (nic != NULL && pccl_nccl_at(n, nic->element)->host == pccl_nccl_at(n, net)->host &&
      same_value(n, nic->element, net, "name") && same_value(n, nic->element, net, "dev")) {
    *same = (int32_t)*found;
  }
  return true;
}

static void add_nic(pccl_nccl *n, int32_t element, int32_t up, double bandwidth, const char *name) {
  int32_t same = -1;
  if (pccl_nccl_at(n, element)->kind == PCCL_NCCL_NET && !find_nic(n, element, n->nics.len, &same)) {
    return;
  }
  if (same >= 0) {
    int32_t node = n->nics.data[same].node;
    if (pccl_map_get(&n->builder.pairs, (uint64_t)(uint32_t)up << 32 | (uint32_t)node) == NULL) {
      pccl_add_pair(&n->builder, up, node, "PCIe", bandwidth, PCCL_PCIE_LATENCY);
    }
    return;
  }
  const pccl_nccl_host *host = &n->hosts.data[pccl_nccl_at(n, element)->host];
  pccl_nccl_nic nic = {.element = element, .bandwidth = bandwidth};
  nic.node = pccl_add_node(&n->builder, POLYCCL_NODE_NIC, host->machine, -1, -1, "%s.nic%zu.%.60s", host->name,
                           n->nics.len, name);
  pccl_add_pair(&n->builder, up, nic.node, "PCIe", bandwidth, PCCL_PCIE_LATENCY);
  if (pccl_nccl_built(n) && !pccl_vec_push(&n->nics, nic)) {
    n->result = pccl_no_memory("NICs");
  }
}

static void build_net(pccl_nccl *n, int32_t net) {
  const char *name = pccl_nccl_value(n, net, "name");
  double off;
  if (pccl_nccl_number(n, net, "net", 0, 0, &off)) {
    return; /* NCCL lists it for other uses than messages */
  }
  if (pccl_nccl_at(n, net)->host < 0) {
    pccl_nccl_refuse(n, net, "a net element must be inside a cpu element");
    return;
  }
  double bandwidth = net_bandwidth(n, net);
  int32_t parent = pccl_nccl_at(n, net)->parent,
          device = pccl_nccl_at(n, parent)->kind == PCCL_NCCL_NIC ? pccl_nccl_at(n, parent)->parent : parent;
  int32_t hangs = device;
  if (pccl_nccl_at(n, device)->kind == PCCL_NCCL_PCI) {
    double pcie = pccl_nccl_pcie(n, device);
    bandwidth = pcie < bandwidth ? pcie : bandwidth;
    if (!pccl_nccl_at(n, device)->bridge &&
        pccl_nccl_at(n, parent)->nets < 2) { /* the ports of one card share its PCIe link */
      hangs = pccl_nccl_at(n, device)->parent;
    }
  }
  int32_t up = pccl_nccl_hang_on(n, hangs);
  add_nic(n, net, up, bandwidth, name != NULL ? name : "net");
}

/* ---- files without gpu or net elements: what the PCIe devices are ---- */

static void build_implied(pccl_nccl *n, int32_t pci, bool gpus, bool nics) {
  bool display = pccl_nccl_starts(n, pci, "class", "0x0302") || pccl_nccl_starts(n, pci, "class", "0x12") ||
                 (pccl_nccl_starts(n, pci, "class", "0x0380") && pccl_nccl_starts(n, pci, "vendor", "0x1002"));
  bool network = pccl_nccl_starts(n, pci, "class", "0x0207") || pccl_nccl_starts(n, pci, "class", "0x0200");
  if (pccl_nccl_at(n, pci)->host < 0 || pccl_nccl_at(n, pci)->bridge) {
    return;
  }
  if (display && gpus) {
    pccl_nccl_build_implied_gpu(n, pci);
  } else if (network && nics) {
    double pcie = pccl_nccl_pcie(n, pci), rate = pccl_nccl_device_nic_rate(n, pci, pcie);
    const char *busid = pccl_nccl_value(n, pci, "busid");
    add_nic(n, pci, pccl_nccl_hang_on(n, pccl_nccl_at(n, pci)->parent), rate < pcie ? rate : pcie,
            busid != NULL ? busid : "net");
  }
}

static bool has_kind(const pccl_nccl *n, pccl_nccl_kind kind) {
  for (size_t i = 0; i < n->elements.len; i++) {
    if (n->elements.data[i].kind == kind) {
      return true;
    }
  }
  return false;
}

/* ---- the whole ---- */

static void build_elements(pccl_nccl *n) {
  bool no_gpus = !has_kind(n, PCCL_NCCL_GPU), no_nets = !has_kind(n, PCCL_NCCL_NET);
  for (int32_t i = 0; i < (int32_t)n->elements.len && pccl_nccl_built(n); i++) {
    switch (pccl_nccl_at(n, i)->kind) {
      case PCCL_NCCL_CPU: build_cpu(n, i); break;
      case PCCL_NCCL_PCI: build_implied(n, i, no_gpus, no_nets); break;
      case PCCL_NCCL_GPU: pccl_nccl_build_gpu(n, i); break;
      case PCCL_NCCL_NET: build_net(n, i); break;
      default: break;
    }
  }
}

static int by_rank(const void *a, const void *b) {
  const pccl_nccl_gpu *x = a, *y = b;
  long order = x->rank != y->rank ? x->rank - y->rank : x->host != y->host ? x->host - y->host : x->dev - y->dev;
  return order != 0 ? (order > 0) - (order < 0) : (x->node > y->node) - (x->node < y->node);
}

/* Where any GPU has a rank, a GPU without one takes no part. */
static void number_ranks(pccl_nccl *n) {
  bool any = false;
  for (size_t i = 0; i < n->gpus.len; i++) {
    any = any || n->gpus.data[i].rank >= 0;
  }
  qsort(n->gpus.data, n->gpus.len, sizeof *n->gpus.data, by_rank);
  int32_t next = 0;
  for (size_t i = 0; i < n->gpus.len; i++) {
    const pccl_nccl_gpu *gpu = &n->gpus.data[i];
    if (any && gpu->rank < 0) {
      pccl_nccl_assume(n, gpu->element, "a gpu element has no rank while others have one, so no rank is on it");
      continue;
    }
    n->builder.topology->node[gpu->node].rank = next++;
  }
}

static polyccl_result build_topology(pccl_nccl *n) {
  find_hosts(n);
  if (n->result == POLYCCL_SUCCESS) {
    make_machines(n);
  }
  build_elements(n);
  PCCL_TRY(n->result);
  if (n->gpus.len == 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: the file has neither a gpu element nor a pci element of class 0x0302",
                     n->file);
  }
  PCCL_TRY(pccl_nccl_join(n));
  number_ranks(n);
  PCCL_TRY(n->result);
  return pccl_nccl_tell_assumptions(n);
}

static void free_elements(pccl_nccl *n) {
  for (size_t i = 0; i < n->assumptions.len; i++) {
    free(n->assumptions.data[i].text);
  }
  pccl_vec_free(&n->assumptions);
  pccl_vec_free(&n->elements);
  pccl_vec_free(&n->attributes);
  pccl_vec_free(&n->text);
  pccl_vec_free(&n->hosts);
  pccl_vec_free(&n->gpus);
  pccl_vec_free(&n->nics);
  pccl_map_free(&n->nic_names);
}

polyccl_result pccl_topology_read_nccl(const char *name, const char *text, size_t length,
                                       const polyccl_topology_hints *hints, polyccl_topology **topology) {
  pccl_nccl n = {.file = name, .hints = hints};
  polyccl_result hinted = pccl_nccl_check_hints(hints);
  if (hinted != POLYCCL_SUCCESS) {
    return pccl_prefix(hinted, "%s: ", name);
  }
  const char *slash = strrchr(name, '/');
  PCCL_TRY(
      pccl_builder_start(&n.builder, slash != NULL ? slash + 1 : name,
                         "NCCL's topology XML, NCCL's figures for the links; shipped device models and latencies"));
  polyccl_result result = pccl_nccl_parse(&n, text, length);
  if (result == POLYCCL_SUCCESS) {
    result = build_topology(&n);
  }
  if (result == POLYCCL_SUCCESS) {
    result = pccl_builder_finish(&n.builder, topology);
    result = result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "%s: ", name);
  } else {
    pccl_builder_abandon(&n.builder);
  }
  free_elements(&n);
  return result;
}
