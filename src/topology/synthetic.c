/* Topologies from strings: "ndv4:32", "ndv4:2,nic=12.5", "h100:1+mi300x:1". docs/topology.md has the grammar. */
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "topology/machines.h"

enum { MAX_SPEC = 1000, MAX_RANKS = 65536 };

/* ---- reading the string ---- */

typedef struct part {
  pccl_shape shape;
  double latency, spine; /* us of a network link; GB/s from a leaf to the spine, 0: as much as its NICs bring */
  bool host;
} part;

static bool is_number(const char *text) {
  return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0' && strlen(text) < 10;
}

typedef struct key {
  const char *name, *means;
  double least, most;
  bool whole;
} key;

enum { KEY_NIC, KEY_LINK, KEY_PCIE, KEY_DEVICES, KEY_NICS, KEY_LATENCY, KEY_LINK_LATENCY, KEY_LEAF, KEY_SPINE, KEYS };

static const key keys[KEYS] = {
    [KEY_NIC] = {"nic", "GB/s of a NIC", PCCL_MIN_BANDWIDTH, PCCL_MAX_BANDWIDTH, false},
    [KEY_LINK] = {"nvlink", "GB/s of a link of the fabric", PCCL_MIN_BANDWIDTH, PCCL_MAX_BANDWIDTH, false},
    [KEY_PCIE] = {"pcie", "GB/s of PCIe, 0: no way between devices by it", 0, PCCL_MAX_BANDWIDTH, false},
    [KEY_DEVICES] = {"gpus", "devices in a machine", 1, MAX_RANKS, true},
    [KEY_NICS] = {"nics", "NICs in a machine", 1, 4096, true},
    [KEY_LATENCY] = {"latency", "us from a NIC to its switch", 0, PCCL_MAX_LATENCY, false},
    [KEY_LINK_LATENCY] = {"nvlink-latency", "us of a link of the fabric", 0, PCCL_MAX_LATENCY, false},
    [KEY_LEAF] = {"leaf", "machines behind a leaf switch, 0: one switch for all", 0, MAX_RANKS, true},
    [KEY_SPINE] = {"spine", "GB/s from a leaf to the spine", PCCL_MIN_BANDWIDTH, PCCL_MAX_BANDWIDTH, false},
};

static polyccl_result unknown_key(const char *name) {
  char known[256] = "";
  for (int i = 0; i < KEYS; i++) {
    size_t at = strlen(known);
    snprintf(known + at, sizeof known - at, "%s%s", i > 0 ? ", " : "", keys[i].name);
  }
  return pccl_fail(POLYCCL_ERROR_INVALID, "\"%s\" is not a setting of a machine (%s, model)", name, known);
}

static polyccl_result parse_value(const key *k, const char *text, double *value) {
  char *end = NULL;
  double number = strtod(text, &end);
  bool plain = text[0] != '\0' && text[strspn(text, "0123456789.eE+-")] == '\0' && *end == '\0';
  if (!plain || !(number >= k->least && number <= k->most) || (k->whole && number != (double)(long)number)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s=%s: %s must be a %snumber within %g .. %g", k->name, text, k->means,
                     k->whole ? "whole " : "", k->least, k->most);
  }
  *value = number;
  return POLYCCL_SUCCESS;
}

static polyccl_result set_key(part *p, int which, double value) {
  pccl_shape *s = &p->shape;
  bool network =
      which == KEY_NIC || which == KEY_NICS || which == KEY_LATENCY || which == KEY_LEAF || which == KEY_SPINE;
  if ((network || which == KEY_PCIE) && s->nics == 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s has no %s, so no setting %s", s->about.name, network ? "NICs" : "PCIe",
                     keys[which].name);
  }
  switch (which) {
    case KEY_NIC: s->nic = value; break;
    case KEY_LINK: s->link = value; break;
    case KEY_PCIE: s->pcie = value; break;
    case KEY_DEVICES: s->devices = (int)value; break;
    case KEY_NICS: s->nics = (int)value; break;
    case KEY_LATENCY: p->latency = value; break;
    case KEY_LINK_LATENCY: s->link_latency = value; break;
    case KEY_LEAF: s->leaf = (int)value; break;
    default: p->spine = value; break;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result parse_setting(part *p, char *text, unsigned *seen) {
  char *value = strchr(text, '=');
  if (value == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "\"%s\" is not a setting such as nic=25", text);
  }
  *value++ = '\0';
  int which = 0;
  while (which < KEYS && strcmp(keys[which].name, text) != 0) {
    which++;
  }
  bool model = strcmp(text, "model") == 0;
  if ((which == KEYS && !model) || p->host) {
    return p->host ? pccl_fail(POLYCCL_ERROR_INVALID, "\"host\" is measured, not set: no setting %s", text)
                   : unknown_key(text);
  }
  if (*seen & 1u << which) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s is set twice", text);
  }
  *seen |= 1u << which;
  if (model) {
    const polyccl_device_model *known = pccl_known_model_find(value);
    if (known == NULL) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "model=%s: no shipped model has this name", value);
    }
    p->shape.model = known->name;
    return POLYCCL_SUCCESS;
  }
  double number = 0;
  PCCL_TRY(parse_value(&keys[which], value, &number));
  return set_key(p, which, number);
}

static const pccl_shape *find_shape(const char *name, size_t length) {
  for (const pccl_shape *shape = pccl_shapes; shape->about.name != NULL; shape++) {
    if (strlen(shape->about.name) == length && strncmp(shape->about.name, name, length) == 0) {
      return shape;
    }
  }
  return NULL;
}

static const pccl_shape host_shape = {.about = {"host", "this machine's cores, found by hwloc",
                                                "hwloc (what there is); the shipped model \"cpu\" (its figures)"},
                                      .model = "cpu",
                                      .count = 0,
                                      .counts_devices = true};

bool pccl_synthetic_known(const char *spec) {
  size_t length = strcspn(spec, ":,+");
  return find_shape(spec, length) != NULL || (length == 4 && strncmp(spec, "host", 4) == 0);
}

static polyccl_result unknown_machine(const char *name) {
  char known[512] = "host";
  for (const pccl_shape *shape = pccl_shapes; shape->about.name != NULL; shape++) {
    size_t at = strlen(known);
    snprintf(known + at, sizeof known - at, ", %s", shape->about.name);
  }
  return pccl_fail(POLYCCL_ERROR_INVALID, "\"%s\" is not a shipped machine (%s)", name, known);
}

static polyccl_result check_part(const part *p) {
  const pccl_shape *s = &p->shape;
  if (s->most_devices > 0 && s->devices > s->most_devices) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%d devices: %s has at most %d", s->devices, s->about.name,
                     s->most_devices);
  }
  if ((long)s->devices * s->count > MAX_RANKS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%d machines of %d devices are more than %d ranks", s->count, s->devices,
                     MAX_RANKS);
  }
  return POLYCCL_SUCCESS;
}

/* NAME[:COUNT][,key=value]... */
static polyccl_result parse_part(char *text, part *p) {
  char *settings = strchr(text, ','), *count = NULL;
  if (settings != NULL) {
    *settings++ = '\0';
  }
  count = strchr(text, ':');
  if (count != NULL) {
    *count++ = '\0';
  }
  const pccl_shape *shape = strcmp(text, "host") == 0 ? &host_shape : find_shape(text, strlen(text));
  if (shape == NULL) {
    return unknown_machine(text);
  }
  *p = (part){.shape = *shape, .latency = PCCL_NETWORK_LATENCY, .host = shape == &host_shape};
  if (count != NULL) {
    int number = is_number(count) ? atoi(count) : 0;
    if (number < 1 || number > MAX_RANKS) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "%s:%s: the number of %s must be within 1 .. %d", text, count,
                       shape->counts_devices ? "devices" : "machines", MAX_RANKS);
    }
    *(shape->counts_devices ? &p->shape.devices : &p->shape.count) = number;
  }
  unsigned seen = 0;
  while (settings != NULL) {
    char *next = strchr(settings, ',');
    if (next != NULL) {
      *next++ = '\0';
    }
    PCCL_TRY(parse_setting(p, settings, &seen));
    settings = next;
  }
  return check_part(p);
}

/* ---- building ---- */

typedef struct cluster {
  pccl_builder builder;
  int32_t network, leaves, ranks;
  int machines; /* in all parts */
} cluster;

/* The model's index in the topology, added on first use. */
static int32_t use_model(pccl_builder *builder, const char *name) {
  for (size_t i = 0; i < builder->topology->models; i++) {
    if (strcmp(builder->topology->model[i].name, name) == 0) {
      return (int32_t)i;
    }
  }
  int32_t index = -1;
  if (builder->result == POLYCCL_SUCCESS) {
    builder->result = pccl_builder_model(builder, pccl_known_model_find(name), &index);
  }
  return index;
}

/* NVLinks between the GPUs of DGX-1 (its system architecture guide): two squares with diagonals, joined corner to
 * corner. */
static void cube_mesh(pccl_builder *b, const pccl_shape *s, const int32_t *device) {
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
    case PCCL_FABRIC_CUBE_MESH: cube_mesh(b, s, device); break;
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

static int32_t add_nic(pccl_builder *b, const part *p, int32_t machine, const char *name, int i, int32_t up) {
  int32_t nic = pccl_add_node(b, POLYCCL_NODE_NIC, machine, -1, -1, "%s.nic%d", name, i);
  if (up >= 0) {
    pccl_add_pair(b, nic, up, "network", p->shape.nic, p->latency);
  }
  return nic;
}

/* pcie=0: NICs at the devices, and no way between devices but the fabric. */
static void build_bare_nics(pccl_builder *b, const part *p, int32_t machine, const char *name, const int32_t *device,
                            int32_t up) {
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
static void build_superchips(pccl_builder *b, const part *p, int32_t machine, const char *name, const int32_t *device,
                             int32_t up) {
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
static void build_io(pccl_builder *b, const part *p, int32_t machine, const char *name, const int32_t *device,
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

static void build_machine(cluster *c, const part *p, int32_t up) {
  pccl_builder *b = &c->builder;
  const pccl_shape *s = &p->shape;
  char name[32];
  snprintf(name, sizeof name, "m%d", (int)b->topology->machines);
  int32_t machine = -1, model = use_model(b, s->model);
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

static void build_part(cluster *c, const part *p) {
  pccl_builder *b = &c->builder;
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

static polyccl_result build(cluster *c, const part *parts, int count) {
  pccl_builder *b = &c->builder;
  for (int i = 0; i < count; i++) {
    c->machines += parts[i].shape.count;
    if (count > 1 && parts[i].shape.nics == 0) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "%s has no NICs to join it with other machines",
                       parts[i].shape.about.name);
    }
  }
  c->network = -1;
  if (c->machines > 1) {
    c->network = pccl_add_node(b, POLYCCL_NODE_SWITCH, -1, -1, -1, "network");
  }
  for (int i = 0; i < count && b->result == POLYCCL_SUCCESS; i++) {
    if (parts[i].host) {
      return pccl_detect_host(b, parts[i].shape.devices);
    }
    build_part(c, &parts[i]);
  }
  return b->result;
}

enum { MAX_PARTS = 16 };

static polyccl_result parse(char *text, part *parts, int *count) {
  long ranks = 0;
  for (*count = 0; text != NULL; (*count)++) {
    char *next = strchr(text, '+');
    if (next != NULL) {
      *next++ = '\0';
    }
    if (*count == MAX_PARTS) {
      return pccl_fail(POLYCCL_ERROR_LIMIT, "more than %d kinds of machines", MAX_PARTS);
    }
    PCCL_TRY(parse_part(text, &parts[*count]));
    ranks += (long)parts[*count].shape.count * parts[*count].shape.devices;
    text = next;
  }
  if (ranks > MAX_RANKS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%ld ranks are more than %d", ranks, MAX_RANKS);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result open_synthetic(const char *spec, polyccl_topology **topology) {
  char text[MAX_SPEC + 1], source[4096] = "";
  if (strlen(spec) > MAX_SPEC) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the text has %zu bytes, at most %d", strlen(spec), MAX_SPEC);
  }
  strcpy(text, spec);
  part parts[MAX_PARTS];
  int count;
  PCCL_TRY(parse(text, parts, &count));
  for (int i = 0; i < count; i++) {
    size_t at = strlen(source);
    snprintf(source + at, sizeof source - at, "%s%s", i > 0 ? "; " : "", parts[i].shape.about.source);
  }
  cluster c = {.network = -1};
  PCCL_TRY(pccl_builder_start(&c.builder, spec, source));
  polyccl_result result = build(&c, parts, count);
  if (result != POLYCCL_SUCCESS) {
    pccl_builder_abandon(&c.builder);
    return result;
  }
  return pccl_builder_finish(&c.builder, topology);
}

polyccl_result pccl_synthetic_open(const char *spec, polyccl_topology **topology) {
  polyccl_result result = open_synthetic(spec, topology);
  return result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "topology \"%.100s\": ", spec);
}

/* ---- the list ---- */

static polyccl_synthetic list[64];
static pthread_once_t list_once = PTHREAD_ONCE_INIT;

static void make_list(void) {
  size_t n = 0;
  for (const pccl_shape *shape = pccl_shapes; shape->about.name != NULL && n + 2 < sizeof list / sizeof list[0];
       shape++) {
    list[n++] = shape->about;
  }
  list[n] = host_shape.about;
}

const polyccl_synthetic *polyccl_topology_synthetic(void) {
  pthread_once(&list_once, make_list);
  return list;
}
