/* Tells which devices of a machine are GPUs and NICs, which model they are, and what their links carry. */
#include <string.h>

#include "base/error.h"
#include "topology/hwloc_xml.h"
#include "topology/machines.h"

enum { MAX_DEVICES = 4096, NVIDIA = 0x10de, AMD = 0x1002 };

/* ---- what a PCI device is ---- */

/* Display controllers and processing accelerators of the makers of GPUs. */
static bool is_gpu(const pccl_hwloc_obj *obj) {
  int class = obj->class_id >> 8;
  return (obj->vendor == NVIDIA || obj->vendor == AMD) && (class == 0x03 || class == 0x12);
}

/* True for InfiniBand, and for Ethernet with RDMA. */
static bool is_rdma_nic(const pccl_hwloc *m, const pccl_hwloc_obj *obj) {
  if (obj->class_id == 0x0207) {
    return true;
  }
  for (int32_t child = obj->first_child; child >= 0 && obj->class_id >> 8 == 0x02; child = m->objs.data[child].next) {
    if (m->objs.data[child].rdma) {
      return true;
    }
  }
  return false;
}

const pccl_hwloc_product *pccl_hwloc_find_product(const char *text) {
  /* The first part that the name contains. A variant that has no model of its own takes that of its kind. */
  static const pccl_hwloc_product products[] = {
      {"B300", "B200", false},
      {"B200", "B200", true},
      {"H200 NVL", "H200-SXM", false},
      {"H200", "H200-SXM", true},
      {"H100 PCIe", "H100-SXM5", false},
      {"H100 NVL", "H100-SXM5", false},
      {"H100", "H100-SXM5", true},
      {"A100-SXM4-40GB", "A100-SXM4-40GB", true},
      {"A100 SXM4 40GB", "A100-SXM4-40GB", true}, /* as the list of PCI ids writes it */
      {"A100-SXM4-80GB", "A100-SXM4-40GB", false},
      {"A100", "A100-SXM4-40GB", false},
      {"V100-SXM2", "V100-SXM2", true},
      {"V100 SXM2", "V100-SXM2", true},
      {"V100", "V100-SXM2", false},
      {"MI300X", "MI300X", true},
      {"MI350X", "MI350X", true},
  };
  for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
    if (strstr(text, products[i].part) != NULL) {
      return &products[i];
    }
  }
  return NULL;
}

polyccl_result pccl_hwloc_tell_products(pccl_hwloc *m) {
  const pccl_hwloc_product *told = NULL;
  for (size_t i = 0; i < m->devices.len; i++) {
    const pccl_hwloc_product *product = m->objs.data[m->devices.data[i].obj].product;
    if (product == NULL || product->own || product == told) {
      continue;
    }
    char text[160];
    snprintf(text, sizeof text, "no device model ships for %s; the figures of %s are taken", product->part,
             product->model);
    PCCL_TRY(pccl_builder_assume(m->b, text));
    told = product;
  }
  return POLYCCL_SUCCESS;
}

double pccl_hwloc_nic_rate(pccl_hwloc *m, const pccl_hwloc_obj *obj) {
  const pccl_pci_device *known = pccl_pci_device_find(obj->vendor, obj->device_id);
  if (known != NULL && known->nic > 0) {
    return known->nic / 8;
  }
  m->unknown_nic = true;
  return PCCL_HWLOC_NETWORK;
}

double pccl_hwloc_link_rate(pccl_hwloc *m, const pccl_hwloc_obj *obj) {
  m->unknown_rate = m->unknown_rate || obj->link <= 0;
  return obj->link > 0 ? obj->link : PCCL_HWLOC_PCIE;
}

/* ---- finding them ---- */

static polyccl_result record_device(pccl_hwloc *m, size_t obj, bool gpu) {
  if (m->devices.len == MAX_DEVICES) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the file has more than %d GPUs and NICs", MAX_DEVICES);
  }
  m->gpus += gpu;
  m->objs.data[obj].device = (int32_t)m->devices.len;
  pccl_hwloc_device found = {.obj = (int32_t)obj, .node = -1, .gpu = gpu, .nvlink_host = -1, .in_matrix = -1};
  return pccl_vec_push(&m->devices, found) ? POLYCCL_SUCCESS : pccl_no_memory("a machine");
}

static void swap_devices(pccl_hwloc *m, size_t i, size_t k) {
  pccl_hwloc_device moved = m->devices.data[i];
  m->devices.data[i] = m->devices.data[k];
  m->devices.data[k] = moved;
}

/* GPUs come before NICs, each in the order of bus ids. There are few devices, and most are in order. */
static void sort_devices(pccl_hwloc *m) {
  const pccl_hwloc_obj *objs = m->objs.data;
  for (size_t i = 1; i < m->devices.len; i++) {
    for (size_t k = i; k > 0; k--) {
      const pccl_hwloc_device *a = &m->devices.data[k - 1], *b = &m->devices.data[k];
      bool in_order = a->gpu != b->gpu ? a->gpu : objs[a->obj].bus <= objs[b->obj].bus;
      if (in_order) {
        break;
      }
      swap_devices(m, k - 1, k);
    }
  }
  for (size_t i = 0; i < m->devices.len; i++) {
    m->objs.data[m->devices.data[i].obj].device = (int32_t)i;
  }
}

/* A machine with neither InfiniBand nor RDMA has Ethernet as its NICs. */
polyccl_result pccl_hwloc_find_devices(pccl_hwloc *m) {
  bool rdma = false;
  for (size_t i = 0; i < m->objs.len; i++) {
    const pccl_hwloc_obj *obj = &m->objs.data[i];
    bool gpu = is_gpu(obj), nic = !gpu && is_rdma_nic(m, obj);
    rdma = rdma || (obj->type == PCCL_HWLOC_PCI && nic);
    if (obj->type == PCCL_HWLOC_PCI && (gpu || nic)) {
      PCCL_TRY(record_device(m, i, gpu));
    }
  }
  for (size_t i = 0; i < m->objs.len && !rdma; i++) {
    if (m->objs.data[i].type == PCCL_HWLOC_PCI && m->objs.data[i].class_id == 0x0200) {
      PCCL_TRY(record_device(m, i, false));
    }
  }
  sort_devices(m);
  return POLYCCL_SUCCESS;
}

pccl_hwloc_device *pccl_hwloc_device_of(pccl_hwloc *m, int32_t obj) {
  while (obj >= 0 && m->objs.data[obj].type == PCCL_HWLOC_OSDEV) {
    obj = m->objs.data[obj].parent;
  }
  return obj >= 0 && m->objs.data[obj].device >= 0 ? &m->devices.data[m->objs.data[obj].device] : NULL;
}

/* ---- as nodes ---- */

int32_t pccl_hwloc_model(pccl_hwloc *m, const char *name) { return pccl_add_model(m->b, pccl_known_model_find(name)); }

void pccl_hwloc_add_devices(pccl_hwloc *m) {
  int gpu = 0, nic = 0;
  for (size_t i = 0; i < m->devices.len; i++) {
    pccl_hwloc_device *d = &m->devices.data[i];
    if (!d->gpu) {
      d->node = pccl_add_node(m->b, POLYCCL_NODE_NIC, m->index, -1, -1, "m0.nic%d", nic++);
      continue;
    }
    const pccl_hwloc_product *product = m->objs.data[d->obj].product;
    m->unknown_gpu = m->unknown_gpu || product == NULL;
    int32_t index = pccl_hwloc_model(m, product != NULL ? product->model : "generic");
    d->node = pccl_add_node(m->b, POLYCCL_NODE_DEVICE, m->index, index, gpu, "m0.gpu%d", gpu);
    gpu++;
  }
}
