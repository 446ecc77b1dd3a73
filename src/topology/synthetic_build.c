/* Building the machines of a synthetic string: devices, their fabric, PCIe, NICs, and the network between machines. */
#include <stdlib.h>

#include "base/error.h"
#include "topology/machines.h"

typedef struct cluster {
  pccl_builder *builder;
  int32_t network, leaves, ranks;
  int machines; /* in all parts */
} cluster;

/* NVLinks between the GPUs of DGX-1 (its system architecture guide): two squares with diagonals, joined corner to
 * corner. */
static void build_cube_mesh(pccl_builder *b, const pccl_shape *s, const int32_t *device) {
  static const struct {
    unsigned char a, b, links;
  } pairs[] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 2},
               {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    if (pairs[i].a < s->devices && pairs[i].b < s->devices) {
      pccl_add_pair(b, device[pairs[i].a], device[pairs[i].b], s->link_type, s->link * pairs[i].links, s->link_latency);
    }
  }
}

static void build_fabric(pccl_builder *b, const pccl_shape *s, int32_t machine, const char *name,
                         const int32_t *device) {
  switch (s->fabric) {
    case PCCL_FABRIC_SWITCH: {
      int32_t hub = pccl_add_node(b, POLYCCL_NODE_SWITCH, machine, -1, -1, "%s.switch", name);
      for (int i = 0; i < s->devices; i++) {
        pccl_add_pair(b, device[i], hub, s->link_type, s->link, s->link_latency);
      }
      break;
    }
    case PCCL_FABRIC_CUBE_MESH: build_cube_mesh(b, s, device); break;
    case PCCL_FABRIC_FULL:
      for (int i = 0; i < s->devices; i++) {
        for (int k = i + 1; k < s->devices; k++) {
          pccl_add_pair(b, device[i], device[k], s->link_type, s->link, s->link_latency);
        }
      }
      break;
    case PCCL_FABRIC_RING:
      for (int i = 0; i + 1 < s->devices || (i + 1 == s->devices && i > 1); i++) {
        pccl_add_pair(b, device[i], device[(i + 1) % s->devices], s->link_type, s->link, s->link_latency);
      }
      break;
  }
}

static int32_t add_nic(pccl_builder *b, const pccl_part *p, int32_t machine, const char *name, int i, int32_t up) {
  int32_t nic = pccl_add_node(b, POLYCCL_NODE_NIC, machine, -1, -1, "%s.nic%d", name, i);
  if (up >= 0) {
    pccl_add_pair(b, nic, up, "network", p->shape.nic, p->latency);
  }
  return nic;
}

/* pcie=0: NICs at the devices, and no way between devices but the fabric. */
static void build_bare_nics(pccl_builder *b, const pccl_part *p, int32_t machine, const char *name,
                            const int32_t *device, int32_t up) {
  const pccl_shape *s = &p->shape;
  int more = s->nics > s->devices ? s->nics : s->devices;
  int32_t nic = -1;
  for (int i = 0; i < more; i++) {
    int at = i * s->nics / more;
    if (i == 0 || at != (i - 1) * s->nics / more) {
      nic = add_nic(b, p, machine, name, at, up);
    }
    pccl_add_pair(b, device[i * s->devices / more], nic, "PCIe", s->nic * s->nics, PCCL_PCIE_DEVICE_LATENCY);
  }
}

/* Superchips: a host with its devices, and its share of the NICs. */
static void build_superchips(pccl_builder *b, const pccl_part *p, int32_t machine, const char *name,
                             const int32_t *device, int32_t up) {
  const pccl_shape *s = &p->shape;
  int hosts = (s->devices + s->host_devices - 1) / s->host_devices, nic = 0;
  for (int i = 0; i < hosts; i++) {
    int32_t host = pccl_add_node(b, POLYCCL_NODE_HOST, machine, -1, -1, "%s.cpu%d", name, i);
    for (int k = i * s->host_devices; k < (i + 1) * s->host_devices && k < s->devices; k++) {
      pccl_add_pair(b, device[k], host, "C2C", s->host_link, PCCL_PCIE_DEVICE_LATENCY);
    }
    for (; (long)nic * hosts / s->nics == i && nic < s->nics; nic++) {
      pccl_add_pair(b, host, add_nic(b, p, machine, name, nic, up), "PCIe", s->pcie, PCCL_PCIE_LATENCY);
    }
  }
}

/* Hosts, PCIe switches and NICs, spread evenly. */
static void build_io(pccl_builder *b, const pccl_part *p, int32_t machine, const char *name, const int32_t *device,
                     int32_t up) {
  enum { MAX_SOCKETS = 8, MAX_SWITCHES = 16 };
  const pccl_shape *s = &p->shape;
  int32_t host[MAX_SOCKETS], sw[MAX_SWITCHES];
  for (int i = 0; i < s->sockets; i++) {
    host[i] = pccl_add_node(b, POLYCCL_NODE_HOST, machine, -1, -1, "%s.cpu%d", name, i);
    if (i > 0) {
      pccl_add_pair(b, host[i - 1], host[i], "socket", s->socket, PCCL_SOCKET_LATENCY);
    }
  }
  for (int i = 0; i < s->switches; i++) {
    sw[i] = pccl_add_node(b, POLYCCL_NODE_SWITCH, machine, -1, -1, "%s.pcie%d", name, i);
    pccl_add_pair(b, sw[i], host[i * s->sockets / s->switches], "PCIe", s->pcie, PCCL_PCIE_LATENCY);
  }
  for (int i = 0; i < s->devices; i++) {
    int at = (int)((long)i * s->switches / s->devices);
    pccl_add_pair(b, device[i], sw[at], "PCIe", s->pcie, PCCL_PCIE_DEVICE_LATENCY);
  }
  for (int i = 0; i < s->nics; i++) {
    int32_t nic = add_nic(b, p, machine, name, i, up);
    pccl_add_pair(b, sw[i * s->switches / s->nics], nic, "PCIe", s->pcie, PCCL_PCIE_LATENCY);
  }
}

static void build_machine(cluster *c, const pccl_part *p, int32_t up) {
  pccl_builder *b = c->builder;
  const pccl_shape *s = &p->shape;
  char name[32];
  snprintf(name, sizeof name, "m%d", (int)b->topology->machines);
  int32_t machine = -1, model = pccl_add_model(b, pccl_known_model_find(s->model));
  int32_t *device = calloc((size_t)s->devices, sizeof *device);
  if (device == NULL) {
    b->result = pccl_no_memory("a machine");
  }
  if (b->result == POLYCCL_SUCCESS) {
    b->result = pccl_builder_machine(b, name, &machine);
  }
  for (int i = 0; i < s->devices && b->result == POLYCCL_SUCCESS; i++) {
    device[i] =
        pccl_add_node(b, POLYCCL_NODE_DEVICE, machine, model, c->ranks++, s->nics > 0 ? "%s.gpu%d" : "%s.d%d", name, i);
  }
  if (b->result == POLYCCL_SUCCESS) {
    build_fabric(b, s, machine, name, device);
    if (s->nics > 0) {
      (s->pcie <= 0          ? build_bare_nics
       : s->host_devices > 0 ? build_superchips
                             : build_io)(b, p, machine, name, device, up);
    }
  }
  free(device);
}

static void build_part(cluster *c, const pccl_part *p) {
  pccl_builder *b = c->builder;
  const pccl_shape *s = &p->shape;
  int32_t up = c->network;
  for (int i = 0; i < s->count && b->result == POLYCCL_SUCCESS; i++) {
    if (s->leaf > 0 && i % s->leaf == 0 && c->network >= 0) {
      int behind = s->count - i < s->leaf ? s->count - i : s->leaf;
      double spine = p->spine > 0 ? p->spine : s->nic * s->nics * behind;
      up = pccl_add_node(b, POLYCCL_NODE_SWITCH, -1, -1, -1, "leaf%d", (int)c->leaves++);
      pccl_add_pair(b, up, c->network, "network", spine, PCCL_SPINE_LATENCY);
    }
    build_machine(c, p, up);
  }
}

polyccl_result pccl_build_cluster(pccl_builder *b, const pccl_part *parts, int count) {
  cluster c = {.builder = b, .network = -1};
  for (int i = 0; i < count; i++) {
    c.machines += parts[i].shape.count;
    if (count > 1 && parts[i].shape.nics == 0) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "%s has no NICs to join it with other machines",
                       parts[i].shape.about.name);
    }
  }
  if (c.machines > 1) {
    c.network = pccl_add_node(b, POLYCCL_NODE_SWITCH, -1, -1, -1, "network");
  }
  for (int i = 0; i < count && b->result == POLYCCL_SUCCESS; i++) {
    if (parts[i].host) {
      return pccl_detect_host(b, parts[i].shape.devices);
    }
    build_part(&c, &parts[i]);
  }
  return b->result;
}
