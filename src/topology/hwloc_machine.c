/* Makes a machine of hwloc's objects: packages become hosts, PCI bridges that branch become PCIe switches, and GPUs are
 * ranks in the order of their bus ids. docs/topology.md says what is assumed where the file says nothing. */
#include "base/error.h"
#include "topology/hwloc_xml.h"
#include "topology/machines.h"

/* ---- hosts ---- */

int32_t pccl_hwloc_host_of(const pccl_hwloc *m, int32_t obj) {
  while (obj >= 0 && m->objs.data[obj].type != PCCL_HWLOC_PACKAGE) {
    obj = m->objs.data[obj].parent;
  }
  return m->host[obj >= 0 ? m->objs.data[obj].number % m->hosts : 0];
}

static void add_hosts(pccl_hwloc *m) {
  m->hosts = m->packages < 1 ? 1 : m->packages > PCCL_HWLOC_HOSTS ? PCCL_HWLOC_HOSTS : m->packages;
  for (int i = 0; i < m->hosts; i++) {
    m->host[i] = pccl_add_node(m->b, POLYCCL_NODE_HOST, m->index, -1, -1, "m0.cpu%d", i);
    for (int k = 0; k < i; k++) {
      pccl_add_pair(m->b, m->host[k], m->host[i], "socket", PCCL_HWLOC_SOCKET, PCCL_SOCKET_LATENCY);
    }
  }
}

/* Without GPUs each core is a rank; without cores each processing unit is. */
static void add_cores(pccl_hwloc *m) {
  int32_t model = pccl_hwloc_model(m, "cpu");
  double rate = pccl_known_model_find("cpu")->local_bandwidth;
  pccl_hwloc_type type = m->cores > 0 ? PCCL_HWLOC_CORE : PCCL_HWLOC_PU;
  for (size_t i = 0; i < m->objs.len; i++) {
    if (m->objs.data[i].type == type) {
      int number = m->objs.data[i].number;
      int32_t node = pccl_add_node(m->b, POLYCCL_NODE_DEVICE, m->index, model, number, "m0.core%d", number);
      pccl_add_pair(m->b, node, pccl_hwloc_host_of(m, (int32_t)i), "memory", rate, PCCL_MEMORY_LATENCY);
    }
  }
}

/* ---- PCIe ---- */

static bool has_devices(const pccl_hwloc *m, int32_t obj) {
  if (m->objs.data[obj].device >= 0) {
    return true;
  }
  for (int32_t child = m->objs.data[obj].first_child; child >= 0; child = m->objs.data[child].next) {
    if (has_devices(m, child)) {
      return true;
    }
  }
  return false;
}

static void attach_device(pccl_hwloc *m, const pccl_hwloc_device *d, int32_t up, double rate) {
  const pccl_hwloc_obj *obj = &m->objs.data[d->obj];
  double latency = d->gpu ? PCCL_PCIE_DEVICE_LATENCY : PCCL_PCIE_LATENCY, own = pccl_hwloc_link_rate(m, obj);
  rate = own < rate ? own : rate;
  if (!d->gpu) { /* not wider than its network, since this is the width that joins copies of the machine */
    double network = pccl_hwloc_nic_rate(m, obj);
    rate = network < rate ? network : rate;
  }
  bool same = d->nvlink_host == up; /* two nodes can have one link only; NVLink is the faster */
  pccl_add_pair(m->b, d->node, up, same ? "NVLink" : "PCIe", same ? d->host_nvlink : rate, latency);
  if (d->nvlink_host >= 0 && !same) {
    pccl_add_pair(m->b, d->node, d->nvlink_host, "NVLink", d->host_nvlink, latency);
  }
}

/* A bridge that branches is a switch; any other is a part of a link. `rate` is the lowest on the route from `up`. */
static void attach_io(pccl_hwloc *m, int32_t index, int32_t up, double rate) {
  const pccl_hwloc_obj *obj = &m->objs.data[index];
  if (obj->device >= 0) {
    attach_device(m, &m->devices.data[obj->device], up, rate);
  }
  if (obj->type != PCCL_HWLOC_BRIDGE) {
    return;
  }
  int branches = 0;
  for (int32_t child = obj->first_child; child >= 0; child = m->objs.data[child].next) {
    branches += has_devices(m, child);
  }
  double own = !obj->host_bridge && branches > 0 ? pccl_hwloc_link_rate(m, obj) : PCCL_MAX_BANDWIDTH;
  rate = own < rate ? own : rate;
  if (!obj->host_bridge && branches > 1) {
    int32_t node = pccl_add_node(m->b, POLYCCL_NODE_SWITCH, m->index, -1, -1, "m0.pcie%d", m->switches++);
    pccl_add_pair(m->b, node, up, "PCIe", rate, PCCL_PCIE_LATENCY);
    up = node;
    rate = PCCL_MAX_BANDWIDTH;
  }
  for (int32_t child = obj->first_child; child >= 0 && branches > 0; child = m->objs.data[child].next) {
    attach_io(m, child, up, rate);
  }
}

/* Attaches the devices that hang directly on the CPU. */
static void attach_all(pccl_hwloc *m) {
  for (size_t i = 0; i < m->objs.len; i++) {
    const pccl_hwloc_obj *obj = &m->objs.data[i];
    bool io = obj->type == PCCL_HWLOC_BRIDGE || obj->type == PCCL_HWLOC_PCI;
    bool inside = obj->parent >= 0 && m->objs.data[obj->parent].type >= PCCL_HWLOC_BRIDGE;
    if (io && !inside) {
      attach_io(m, (int32_t)i, pccl_hwloc_host_of(m, (int32_t)i), PCCL_MAX_BANDWIDTH);
    }
  }
}

/* ---- the whole ---- */

static void write_source(const pccl_hwloc *m, pccl_text *source) {
  pccl_text_add(source, "hwloc's XML; shipped device models and latencies");
  if (m->gpus == 0) {
    pccl_text_add(source, "; it has no GPU, so a rank is a core");
  } else if (!m->fabric && m->gpus > 1) {
    pccl_text_add(source,
                  "; it has no NVLink or xGMI (lstopo writes them where it has NVML or ROCm SMI), so GPUs are "
                  "joined by PCIe");
  }
  if (m->unknown_gpu) {
    pccl_text_add(source, "; GPUs of no shipped model are \"generic\"");
  }
  if (m->unknown_rate) {
    pccl_text_add(source, "; PCIe links without a rate are taken as %g GB/s", PCCL_HWLOC_PCIE);
  }
  if (m->unknown_nic) {
    pccl_text_add(source, "; NICs of no known model are taken as %g GB/s", PCCL_HWLOC_NETWORK);
  }
  if (m->hosts > 1) {
    pccl_text_add(source, "; %d GB/s between sockets are assumed", PCCL_HWLOC_SOCKET);
  }
}

polyccl_result pccl_hwloc_machine(pccl_hwloc *m, pccl_text *source) {
  PCCL_TRY(pccl_builder_machine(m->b, "m0", &m->index));
  PCCL_TRY(pccl_hwloc_find_devices(m));
  if (m->gpus == 0 && m->cores == 0 && m->pus == 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the file has neither a GPU nor a core, so there are no ranks");
  }
  add_hosts(m);
  pccl_hwloc_add_devices(m);
  PCCL_TRY(pccl_hwloc_tell_products(m));
  if (m->gpus == 0) {
    add_cores(m);
  }
  PCCL_TRY(pccl_hwloc_add_fabric(m));
  attach_all(m);
  write_source(m, source);
  return m->b->result;
}
