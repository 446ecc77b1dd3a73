/* hwloc's own XML, as lstopo writes it. hwloc_xml.c reads the file into a tree of objects (by expat: libhwloc's import
 * trusts its input, and knows no later version's files), hwloc_machine.c makes a machine of it, with the devices of
 * hwloc_devices.c and the links between them of hwloc_fabric.c. */
#ifndef PCCL_TOPOLOGY_HWLOC_XML_H
#define PCCL_TOPOLOGY_HWLOC_XML_H

#include "base/vec.h"
#include "topology/topology.h"

enum { PCCL_HWLOC_HOSTS = 256 };

#define PCCL_HWLOC_SOCKET 40    /* GB/s between packages: NCCL's figure for recent Intel processors */
#define PCCL_HWLOC_PCIE 15.75   /* GB/s of a link without a rate: PCIe 3.0 x16 */
#define PCCL_HWLOC_NETWORK 12.5 /* GB/s of an unknown NIC: 100 Gb/s */

typedef enum pccl_hwloc_type {
  PCCL_HWLOC_OTHER,
  PCCL_HWLOC_PACKAGE,
  PCCL_HWLOC_CORE,
  PCCL_HWLOC_PU,
  PCCL_HWLOC_BRIDGE,
  PCCL_HWLOC_PCI,
  PCCL_HWLOC_OSDEV
} pccl_hwloc_type;

/* A product whose name contains `part`, and the shipped model that has its figures. */
typedef struct pccl_hwloc_product {
  const char *part, *model;
  bool own; /* false: the model is of another product, whose figures are taken */
} pccl_hwloc_product;

/* Objects are known by their index; -1: none. */
typedef struct pccl_hwloc_obj {
  pccl_hwloc_type type;
  int32_t parent, first_child, last_child, next;
  int32_t number;                  /* of a package, a core or a PU, from 0 */
  int32_t device;                  /* of a PCI device: index into devices */
  int class_id, vendor, device_id; /* PCI: devices and bridges */
  int64_t bus;                     /* the bus id as a number */
  double link;                     /* GB/s of the link up, 0: unknown */
  bool host_bridge, nvswitch, rdma;
  const pccl_hwloc_product *product; /* the product that the object names, or NULL */
} pccl_hwloc_obj;

typedef struct pccl_hwloc_matrix {
  PCCL_VEC(int32_t) objs;
  PCCL_VEC(uint64_t) values; /* [from][to] */
} pccl_hwloc_matrix;

typedef enum pccl_hwloc_link { PCCL_HWLOC_NVLINK, PCCL_HWLOC_XGMI, PCCL_HWLOC_HOPS, PCCL_HWLOC_LINKS } pccl_hwloc_link;

typedef struct pccl_hwloc_device {
  int32_t obj, node;
  bool gpu;            /* else a NIC */
  int32_t nvlink_host; /* the host that it has NVLinks to, or -1 */
  double host_nvlink, switch_nvlink;
  int32_t in_matrix; /* the object that stands for it in a matrix of links, or -1 */
} pccl_hwloc_device;

typedef struct pccl_hwloc {
  pccl_builder *b;
  PCCL_VEC(pccl_hwloc_obj) objs; /* parents before children */
  int32_t packages, cores, pus;
  pccl_hwloc_matrix matrix[PCCL_HWLOC_LINKS];
  int32_t index;                       /* of the machine in the builder */
  PCCL_VEC(pccl_hwloc_device) devices; /* GPUs, then NICs, by bus id */
  int32_t host[PCCL_HWLOC_HOSTS];
  int32_t nvswitch; /* -1: none */
  int hosts, gpus, switches;
  bool unknown_rate, unknown_nic, unknown_gpu; /* a default was taken */
  bool fabric;                                 /* there are NVLinks or xGMI links */
} pccl_hwloc;

/* Builds the machine: GPUs, NICs, the PCIe between them and their links; cores where there are no GPUs. Appends to
 * `source` what was taken and what was assumed. */
polyccl_result pccl_hwloc_machine(pccl_hwloc *m, pccl_text *source);

/* The product whose name is in `text`; NULL: none. */
const pccl_hwloc_product *pccl_hwloc_find_product(const char *text);

/* Adds an assumption for each product that has the figures of another. */
polyccl_result pccl_hwloc_tell_products(pccl_hwloc *m);

/* Fill m->devices; add these devices as nodes. */
polyccl_result pccl_hwloc_find_devices(pccl_hwloc *m);
void pccl_hwloc_add_devices(pccl_hwloc *m);

/* The device of a PCI object, or of a system's device below it; NULL: none. */
pccl_hwloc_device *pccl_hwloc_device_of(pccl_hwloc *m, int32_t obj);

/* GB/s of a PCIe link; of the port of a NIC. */
double pccl_hwloc_link_rate(pccl_hwloc *m, const pccl_hwloc_obj *obj);
double pccl_hwloc_nic_rate(pccl_hwloc *m, const pccl_hwloc_obj *obj);

/* The index in the builder of a shipped model. */
int32_t pccl_hwloc_model(pccl_hwloc *m, const char *name);

int32_t pccl_hwloc_host_of(const pccl_hwloc *m, int32_t obj);

/* Adds NVLinks and xGMI links; keeps those to hosts in the devices, for the PCIe links. */
polyccl_result pccl_hwloc_add_fabric(pccl_hwloc *m);

#endif
