/* The machines that synthetic strings name, as data: what is in one and how it is joined.
 * machines.c holds the table, synthetic.c reads the string, synthetic_build.c builds the topology. */
#ifndef PCCL_TOPOLOGY_MACHINES_H
#define PCCL_TOPOLOGY_MACHINES_H

#include "topology/topology.h"

typedef enum pccl_fabric {
  PCCL_FABRIC_SWITCH,    /* each device has a port on one switch */
  PCCL_FABRIC_CUBE_MESH, /* DGX-1's hybrid cube mesh of 8; `link` is one of a device's six */
  PCCL_FABRIC_FULL,      /* a link between any two devices */
  PCCL_FABRIC_RING       /* links to the two neighbours */
} pccl_fabric;

typedef struct pccl_shape {
  polyccl_synthetic about;
  const char *model, *link_type;
  pccl_fabric fabric;
  int count,
      max_devices; /* count: machines, where the string gives none; max_devices: a limit of the fabric, 0: none */
  int devices, nics, switches,
      sockets;               /* in a machine; switches: PCIe switches; nics 0: the machine is only a fabric */
  double link, link_latency; /* GB/s and us of a link of the fabric, one direction */
  double pcie, socket, nic;  /* GB/s */
  int host_devices;          /* of a superchip: devices linked directly to one host; 0: no superchip */
  double host_link;          /* GB/s of such a link; only the fabric joins the hosts of superchips */
  int leaf;                  /* machines behind a leaf switch; 0: one switch joins all */
  bool counts_devices;       /* "fully:8": the number counts the devices of the one machine */
} pccl_shape;

extern const pccl_shape pccl_shapes[]; /* ends with a NULL name */

/* One kind of machine in a synthetic string, with what the string sets. */
typedef struct pccl_part {
  pccl_shape shape;
  double latency, spine; /* us of a network link; GB/s from a leaf to the spine, 0: as much as its NICs bring */
  bool host;             /* this machine, found by hwloc */
} pccl_part;

/* Adds the machines of all parts, and the network that joins them, to the builder. The caller abandons the builder on
 * failure. Errors: INVALID, LIMIT, MEMORY, SYSTEM. */
polyccl_result pccl_build_cluster(pccl_builder *builder, const pccl_part *parts, int count);

/* A PCI device that is known by its numbers. */
typedef struct pccl_pci_device {
  int vendor, device;
  const char *name; /* of a GPU: its device model, which need not ship */
  double nic;       /* Gb/s of a NIC; 0: a GPU */
} pccl_pci_device;

const pccl_pci_device *pccl_pci_device_find(int vendor, int device); /* NULL: not known */

/* Gb/s of the NICs of this name, whatever the case; 0: not known. */
double pccl_pci_nic_rate(const char *name);

/* Latencies in us; docs/topology.md says where they come from. */
#define PCCL_SWITCH_LATENCY 0.2      /* GPU - NVSwitch */
#define PCCL_DIRECT_LATENCY 0.4      /* GPU - GPU by NVLink or xGMI */
#define PCCL_MEMORY_LATENCY 0.05     /* core - memory of its socket */
#define PCCL_PCIE_DEVICE_LATENCY 0.4 /* device - PCIe switch */
#define PCCL_PCIE_LATENCY 0.2        /* PCIe switch - NIC, PCIe switch - host */
#define PCCL_SOCKET_LATENCY 0.3      /* socket - socket */
#define PCCL_NETWORK_LATENCY 0.65    /* NIC - network switch */
#define PCCL_SPINE_LATENCY 0.3       /* leaf - spine */

#endif
