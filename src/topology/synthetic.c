/* Topologies from strings: "ndv4:32", "ndv4:2,nic=12.5", "h100:1+mi300x:1". docs/topology.md has the grammar. */
#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "topology/machines.h"

enum { MAX_SPEC = 1000, MAX_RANKS = 65536, MAX_PARTS = 16 };

/* ---- reading the string ---- */

static bool is_number(const char *text) {
  return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0' && strlen(text) < 10;
}

typedef struct key {
  const char *name, *means;
  double min, max;
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
  if (!plain || !(number >= k->min && number <= k->max) || (k->whole && number != (double)(long)number)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s=%s: %s must be a %snumber within %g .. %g", k->name, text, k->means,
                     k->whole ? "whole " : "", k->min, k->max);
  }
  *value = number;
  return POLYCCL_SUCCESS;
}

static polyccl_result set_key(pccl_part *p, int which, double value) {
  pccl_shape *s = &p->shape;
  bool network =
      which == KEY_NIC || which == KEY_NICS || which == KEY_LATENCY || which == KEY_LEAF || which == KEY_SPINE;
  if ((network || which == KEY_PCIE) && s->nics == 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s has no %s, so it has no setting %s", s->about.name,
                     network ? "NICs" : "PCIe", keys[which].name);
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

static polyccl_result parse_setting(pccl_part *p, char *text, unsigned *seen) {
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
    return p->host ? pccl_fail(POLYCCL_ERROR_INVALID, "\"host\" is measured and has no setting %s", text)
                   : unknown_key(text);
  }
  if (*seen & 1u << which) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s is set twice", text);
  }
  *seen |= 1u << which;
  if (model) {
    const polyccl_device_model *known = pccl_known_model_find(value);
    if (known == NULL) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "no shipped model has the name in model=%s", value);
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

static polyccl_result check_part(const pccl_part *p) {
  const pccl_shape *s = &p->shape;
  if (s->max_devices > 0 && s->devices > s->max_devices) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%d devices are too many: %s has at most %d", s->devices, s->about.name,
                     s->max_devices);
  }
  if ((long)s->devices * s->count > MAX_RANKS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%d machines of %d devices are more than %d ranks", s->count, s->devices,
                     MAX_RANKS);
  }
  return POLYCCL_SUCCESS;
}

/* NAME[:COUNT][,key=value]... */
static polyccl_result parse_part(char *text, pccl_part *p) {
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
  *p = (pccl_part){.shape = *shape, .latency = PCCL_NETWORK_LATENCY, .host = shape == &host_shape};
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

/* ---- the whole string ---- */

static polyccl_result parse_parts(char *text, pccl_part *parts, int *count) {
  long ranks = 0;
  for (*count = 0; text != NULL; (*count)++) {
    char *next = strchr(text, '+');
    if (next != NULL) {
      *next++ = '\0';
    }
    if (*count == MAX_PARTS) {
      return pccl_fail(POLYCCL_ERROR_LIMIT, "the text names more than %d kinds of machines", MAX_PARTS);
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
    return pccl_fail(POLYCCL_ERROR_INVALID, "the text has %zu bytes, more than %d", strlen(spec), MAX_SPEC);
  }
  strcpy(text, spec);
  pccl_part parts[MAX_PARTS];
  int count;
  PCCL_TRY(parse_parts(text, parts, &count));
  for (int i = 0; i < count; i++) {
    size_t at = strlen(source);
    snprintf(source + at, sizeof source - at, "%s%s", i > 0 ? "; " : "", parts[i].shape.about.source);
  }
  pccl_builder builder;
  PCCL_TRY(pccl_builder_start(&builder, spec, source));
  polyccl_result result = pccl_build_cluster(&builder, parts, count);
  if (result != POLYCCL_SUCCESS) {
    pccl_builder_abandon(&builder);
    return result;
  }
  return pccl_builder_finish(&builder, topology);
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
