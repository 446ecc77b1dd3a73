/* The GPUs of NCCL's XML: one device for each rank, several behind one switch where ranks share a GPU. */
#include <string.h>

#include "base/error.h"
#include "topology/nccl_xml.h"

static const double LOCAL_BANDWIDTH =
    5000; /* GB/s from a rank to the GPU that it shares; NCCL's figure, which never limits */

/* "m0.gpu3", with the bus id where another GPU of the host has that number. */
static void name_gpu(const pccl_nccl *n, const pccl_nccl_gpu *gpu, char *name, size_t size) {
  const char *host = n->hosts.data[gpu->host].name, *busid = pccl_nccl_value(n, gpu->pci, "busid");
  bool taken = false;
  for (size_t i = 0; i < n->gpus.len && !taken; i++) {
    const pccl_nccl_gpu *other = &n->gpus.data[i];
    taken = other->host == gpu->host && other->dev == gpu->dev && other->pci != gpu->pci;
  }
  int length = snprintf(name, size, "%s.gpu%ld", host, gpu->dev);
  if (taken) {
    length += snprintf(name + length, size - (size_t)length, ".%zu.%.40s", n->gpus.len, busid != NULL ? busid : "");
  }
  if (gpu->part >= 0 && gpu->parts > 1) {
    snprintf(name + length, size - (size_t)length, ".part%ld", gpu->part);
  }
}

static void link_gpu_to_host(pccl_nccl *n, const pccl_nccl_gpu *gpu) {
  bool bridge = pccl_nccl_at(n, gpu->pci)->bridge;
  int32_t up = pccl_nccl_hang_on(n, bridge ? gpu->pci : pccl_nccl_at(n, gpu->pci)->parent),
          cpu = pccl_nccl_cpu_of(n, gpu->pci);
  double pcie = pccl_nccl_pcie(n, gpu->pci);
  const char *type = NULL;
  double direct = gpu->implied ? 0 : pccl_nccl_to_cpu(n, gpu, &type);
  if (up != pccl_nccl_at(n, cpu)->node) {
    pccl_add_pair(&n->builder, gpu->port, up, "PCIe", pcie, PCCL_PCIE_DEVICE_LATENCY);
    if (direct > 0) {
      pccl_add_pair(&n->builder, gpu->port, pccl_nccl_at(n, cpu)->node, type, direct, PCCL_PCIE_DEVICE_LATENCY);
    }
  } else if (direct > pcie) { /* only one link can join two nodes: the wider one */
    pccl_add_pair(&n->builder, gpu->port, up, type, direct, PCCL_PCIE_DEVICE_LATENCY);
  } else {
    pccl_add_pair(&n->builder, gpu->port, up, "PCIe", pcie, PCCL_PCIE_DEVICE_LATENCY);
  }
}

/* Each rank of a shared GPU is a device of its own, behind a switch that has the links of the GPU. */
static void add_gpu_nodes(pccl_nccl *n, pccl_nccl_gpu *gpu, size_t sharing, size_t before, int32_t shared_port) {
  char name[PCCL_MAX_NAME];
  name_gpu(n, gpu, name, sizeof name);
  int32_t machine = n->hosts.data[gpu->host].machine, model = pccl_nccl_model(n, gpu);
  if (n->result != POLYCCL_SUCCESS) {
    return;
  }
  if (sharing == 1) {
    gpu->node = gpu->port = pccl_add_node(&n->builder, POLYCCL_NODE_DEVICE, machine, model, -1, "%s", name);
    link_gpu_to_host(n, gpu);
    return;
  }
  gpu->port = shared_port;
  if (shared_port < 0) {
    gpu->port = pccl_add_node(&n->builder, POLYCCL_NODE_SWITCH, machine, -1, -1, "%s", name);
    link_gpu_to_host(n, gpu);
  }
  gpu->node = pccl_add_node(&n->builder, POLYCCL_NODE_DEVICE, machine, model, -1, "%s.share%zu", name, before);
  pccl_add_pair(&n->builder, gpu->node, gpu->port, "local", LOCAL_BANDWIDTH, 0);
}

static long part_of(const pccl_nccl *n, int32_t gpu) {
  double part;
  return pccl_nccl_number(n, gpu, "mlopart", 0, 1e6, &part) ? (long)part : -1;
}

/* Counts the partitions in the pci element; returns how many gpu elements are of the same partition. */
static size_t count_siblings(pccl_nccl *n, pccl_nccl_gpu *gpu) {
  size_t count = 0, sharing = 0;
  long parts[PCCL_NCCL_MAX_GPUS_OF_PCI];
  gpu->parts = 0;
  for (int32_t c = pccl_nccl_at(n, gpu->pci)->first_child; c >= 0; c = pccl_nccl_at(n, c)->next) {
    if (pccl_nccl_at(n, c)->kind != PCCL_NCCL_GPU) {
      continue;
    }
    if (count++ >= PCCL_NCCL_MAX_GPUS_OF_PCI) {
      pccl_nccl_refuse(n, c, "one pci element has more than %d gpu elements", PCCL_NCCL_MAX_GPUS_OF_PCI);
      return 1;
    }
    long part = part_of(n, c);
    bool known = false;
    for (int32_t i = 0; i < gpu->parts; i++) {
      known = known || parts[i] == part;
    }
    if (!known) {
      parts[gpu->parts++] = part;
    }
    sharing += part == gpu->part;
  }
  return sharing;
}

static void push_gpu(pccl_nccl *n, pccl_nccl_gpu gpu) {
  size_t sharing = gpu.implied ? 1 : count_siblings(n, &gpu);
  size_t sharing_before = 0;
  int32_t shared_port = -1;
  gpu.primary = true;
  for (size_t i = n->gpus.len; i > 0 && n->gpus.data[i - 1].pci == gpu.pci; i--) {
    const pccl_nccl_gpu *before = &n->gpus.data[i - 1];
    if (before->part == gpu.part) {
      gpu.primary = false;
      sharing_before++;
      shared_port = before->port;
    }
  }
  const char *busid = pccl_nccl_value(n, gpu.pci, "busid");
  gpu.has_busid = pccl_nccl_busid(busid, &gpu.busid);
  if (n->gpus.len >= PCCL_NCCL_MAX_GPUS) {
    pccl_nccl_refuse(n, gpu.element, "the file has more than %d GPUs", PCCL_NCCL_MAX_GPUS);
  }
  if (n->result != POLYCCL_SUCCESS) {
    return;
  }
  add_gpu_nodes(n, &gpu, sharing, sharing_before, shared_port);
  if (pccl_nccl_built(n) && !pccl_vec_push(&n->gpus, gpu)) {
    n->result = pccl_no_memory("GPUs");
  }
}

void pccl_nccl_build_gpu(pccl_nccl *n, int32_t element) {
  pccl_nccl_gpu gpu = {
      .element = element, .host = pccl_nccl_at(n, element)->host, .pci = pccl_nccl_at(n, element)->parent, .parts = 1};
  double number;
  if (gpu.host < 0) {
    pccl_nccl_refuse(n, element, "a gpu element must be inside a cpu element");
    return;
  }
  if (!pccl_nccl_number(n, element, "dev", 0, 1e6, &number)) {
    const char *dev = pccl_nccl_value(n, element, "dev");
    pccl_nccl_assume(n, element, "a gpu element has dev=\"%.20s\"; its place in the file is taken",
                     dev != NULL ? dev : "");
    number = (double)n->gpus.len;
  }
  gpu.dev = (long)number;
  gpu.rank = pccl_nccl_number(n, element, "rank", 0, 1e9, &number) ? (long)number : -1;
  gpu.part = part_of(n, element);
  push_gpu(n, gpu);
}

void pccl_nccl_build_implied_gpu(pccl_nccl *n, int32_t pci) {
  push_gpu(n, (pccl_nccl_gpu){.element = pci,
                              .host = pccl_nccl_at(n, pci)->host,
                              .pci = pci,
                              .parts = 1,
                              .part = -1,
                              .rank = -1,
                              .dev = (long)n->gpus.len,
                              .implied = true});
}
