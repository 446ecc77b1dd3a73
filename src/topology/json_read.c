/* Topologies from JSON (docs/topology.md). Every member is known, of the right type and in its bounds; messages name
 * the member: "cluster.json: links[3].bandwidth: ...". */
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/kind.h"
#include "base/vec.h"
#include "topology/topology.h"

/* Names in order, for looking them up. */
typedef struct name_entry {
  const char *name;
  int32_t index;
} name_entry;

typedef struct name_index {
  name_entry *data;
  size_t len;
} name_index;

typedef struct reader {
  const char *file;
  pccl_builder builder;
  name_index machines, nodes; /* once they are complete */
} reader;

typedef struct member {
  const char *name;
  json_type type; /* JSON_REAL: any number */
  bool required;
} member;

static polyccl_result wrong(const reader *r, const char *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static polyccl_result wrong(const reader *r, const char *place, const char *format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return pccl_fail(POLYCCL_ERROR_INVALID, "%s: %s: %s", r->file, place, message);
}

static polyccl_result at_place(const reader *r, const char *place, polyccl_result result) {
  return result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "%s: %s: ", r->file, place);
}

static const char *type_name(json_type type) {
  switch (type) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "a whole number";
    case JSON_REAL: return "a number";
    case JSON_NULL: return "null";
    default: return "true or false";
  }
}

static bool has_type(const json_t *value, json_type type) {
  return type == JSON_REAL   ? json_is_number(value)
         : type == JSON_TRUE ? json_is_boolean(value)
                             : json_typeof(value) == type;
}

/* `object` has the members it must have, of their types, and no others. */
static polyccl_result check_members(const reader *r, const char *place, const json_t *object, const member *members,
                                    size_t count) {
  if (!json_is_object(object)) {
    return wrong(r, place, "must be an object");
  }
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)object, key, value) {
    size_t i = 0;
    while (i < count && strcmp(members[i].name, key) != 0) {
      i++;
    }
    if (i == count) {
      return wrong(r, place, "unknown member \"%.100s\"", key);
    }
    if (!has_type(value, members[i].type)) {
      return wrong(r, place, "\"%s\" must be %s", key, type_name(members[i].type));
    }
  }
  for (size_t i = 0; i < count; i++) {
    if (members[i].required && json_object_get(object, members[i].name) == NULL) {
      return wrong(r, place, "\"%s\" is missing", members[i].name);
    }
  }
  return POLYCCL_SUCCESS;
}

static double number_or(const json_t *object, const char *key, double preset) {
  const json_t *value = json_object_get(object, key);
  return value != NULL ? json_number_value(value) : preset;
}

static const char *string_or(const json_t *object, const char *key, const char *preset) {
  const json_t *value = json_object_get(object, key);
  return value != NULL ? json_string_value(value) : preset;
}

/* A whole number of 32 bits; `preset` if absent. */
static polyccl_result whole_or(const reader *r, const char *place, const json_t *object, const char *key,
                               int32_t preset, int32_t *number) {
  const json_t *value = json_object_get(object, key);
  json_int_t given = value != NULL ? json_integer_value(value) : preset;
  if (value != NULL && (given < 0 || given > INT32_MAX)) {
    return wrong(r, place, "\"%s\" is %" JSON_INTEGER_FORMAT ", not within 0 .. %d", key, given, INT32_MAX);
  }
  *number = (int32_t)given;
  return POLYCCL_SUCCESS;
}

/* ---- models ---- */

static polyccl_result read_protocol(const reader *r, const char *place, const json_t *object,
                                    polyccl_protocol_model *p) {
  static const member members[] = {{"copy_bandwidth", JSON_REAL, false},  {"efficiency", JSON_REAL, false},
                                   {"step_cost", JSON_REAL, false},       {"latency", JSON_REAL, false},
                                   {"network_latency", JSON_REAL, false}, {"launch_cost", JSON_REAL, false},
                                   {"slot_bytes", JSON_INTEGER, false},   {"fifo_depth", JSON_INTEGER, false}};
  PCCL_TRY(check_members(r, place, object, members, sizeof members / sizeof members[0]));
  p->copy_bandwidth = number_or(object, "copy_bandwidth", p->copy_bandwidth);
  p->efficiency = number_or(object, "efficiency", p->efficiency);
  p->step_cost = number_or(object, "step_cost", p->step_cost);
  p->latency = number_or(object, "latency", p->latency);
  p->network_latency = number_or(object, "network_latency", p->network_latency);
  p->launch_cost = number_or(object, "launch_cost", p->launch_cost);
  const json_t *slot = json_object_get(object, "slot_bytes");
  if (slot != NULL && json_integer_value(slot) < 1) {
    return wrong(r, place, "\"slot_bytes\" must be at least 1");
  }
  p->slot_bytes = slot != NULL ? (uint64_t)json_integer_value(slot) : p->slot_bytes;
  return whole_or(r, place, object, "fifo_depth", p->fifo_depth, &p->fifo_depth);
}

static polyccl_result read_protocols(const reader *r, const char *place, const json_t *object,
                                     polyccl_device_model *model) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)object, key, value) {
    char where[256];
    snprintf(where, sizeof where, "%s.protocols.%.40s", place, key);
    polyccl_protocol protocol;
    PCCL_TRY(at_place(r, where, polyccl_protocol_parse(key, &protocol)));
    PCCL_TRY(read_protocol(r, where, value, &model->protocol[protocol]));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result read_tiles(const reader *r, const char *place, const json_t *object,
                                 polyccl_device_model *model) {
  static const member members[] = {
      {"pipeline", JSON_INTEGER, true}, {"min", JSON_INTEGER, true}, {"max", JSON_INTEGER, true}};
  char where[256];
  snprintf(where, sizeof where, "%s.tiles", place);
  PCCL_TRY(check_members(r, where, object, members, sizeof members / sizeof members[0]));
  int32_t min = 0, max = 0;
  PCCL_TRY(whole_or(r, where, object, "pipeline", 0, &model->pipeline));
  if (model->pipeline < 1) {
    return wrong(r, where, "\"pipeline\" must be at least 1");
  }
  PCCL_TRY(whole_or(r, where, object, "min", 0, &min));
  PCCL_TRY(whole_or(r, where, object, "max", 0, &max));
  model->min_tile = (uint64_t)min;
  model->max_tile = (uint64_t)max;
  return POLYCCL_SUCCESS;
}

static polyccl_result read_rates(const reader *r, const char *place, const json_t *list, polyccl_device_model *model) {
  static const member members[] = {{"bytes", JSON_INTEGER, true}, {"Simple", JSON_REAL, true},
                                   {"LL", JSON_REAL, true},       {"LL128", JSON_REAL, true},
                                   {"reduce", JSON_REAL, true},   {"forward", JSON_REAL, true},
                                   {"local", JSON_REAL, true}};
  model->rates = 0;
  size_t i;
  json_t *value;
  json_array_foreach((json_t *)list, i, value) {
    char where[256];
    snprintf(where, sizeof where, "%s.rates[%zu]", place, i);
    if (i >= POLYCCL_MAX_RATES) {
      return wrong(r, where, "more than %d sizes", POLYCCL_MAX_RATES);
    }
    PCCL_TRY(check_members(r, where, value, members, sizeof members / sizeof members[0]));
    polyccl_rates *rate = &model->rate[model->rates++];
    json_int_t bytes = json_integer_value(json_object_get(value, "bytes"));
    rate->bytes = bytes > 0 ? (uint64_t)bytes : 0;
    for (int p = 0; p < POLYCCL_PROTOCOL_COUNT; p++) {
      rate->copy[p] = number_or(value, polyccl_protocol_name((polyccl_protocol)p), 0);
    }
    rate->reduce = number_or(value, "reduce", 0);
    rate->forward = number_or(value, "forward", 0);
    rate->local = number_or(value, "local", 0);
  }
  return POLYCCL_SUCCESS;
}

/* What the file does not say is the shipped model's of that name, else the generic one's. */
static polyccl_result read_model(reader *r, const char *place, const json_t *object) {
  static const member members[] = {{"name", JSON_STRING, true},
                                   {"vendor", JSON_STRING, false},
                                   {"reduce_bandwidth", JSON_REAL, false},
                                   {"forward_bandwidth", JSON_REAL, false},
                                   {"local_bandwidth", JSON_REAL, false},
                                   {"contention", JSON_REAL, false},
                                   {"max_thread_blocks", JSON_INTEGER, false},
                                   {"max_channels", JSON_INTEGER, false},
                                   {"concurrent_blocks", JSON_INTEGER, false},
                                   {"by_reference", JSON_TRUE, false},
                                   {"tiles", JSON_OBJECT, false},
                                   {"rates", JSON_ARRAY, false},
                                   {"protocols", JSON_OBJECT, false}};
  PCCL_TRY(check_members(r, place, object, members, sizeof members / sizeof members[0]));
  const char *name = string_or(object, "name", "");
  const polyccl_device_model *base = pccl_known_model_find(name);
  polyccl_device_model model = base != NULL ? *base : pccl_known_models[0].model;
  const char *vendor = string_or(object, "vendor", model.vendor);
  char name_copy[PCCL_MAX_NAME + 2], vendor_copy[PCCL_MAX_NAME + 2];
  snprintf(name_copy, sizeof name_copy, "%s", name);
  snprintf(vendor_copy, sizeof vendor_copy, "%s", vendor);
  model.name = name_copy;
  model.vendor = vendor_copy;
  model.reduce_bandwidth = number_or(object, "reduce_bandwidth", model.reduce_bandwidth);
  model.forward_bandwidth = number_or(object, "forward_bandwidth", model.forward_bandwidth);
  model.local_bandwidth = number_or(object, "local_bandwidth", model.local_bandwidth);
  model.contention = number_or(object, "contention", model.contention);
  PCCL_TRY(whole_or(r, place, object, "max_thread_blocks", model.max_thread_blocks, &model.max_thread_blocks));
  PCCL_TRY(whole_or(r, place, object, "max_channels", model.max_channels, &model.max_channels));
  PCCL_TRY(whole_or(r, place, object, "concurrent_blocks", model.concurrent_blocks, &model.concurrent_blocks));
  const json_t *by_reference = json_object_get(object, "by_reference");
  model.by_reference = by_reference != NULL ? json_is_true(by_reference) : model.by_reference;
  const json_t *protocols = json_object_get(object, "protocols");
  if (protocols != NULL) {
    PCCL_TRY(read_protocols(r, place, protocols, &model));
  }
  const json_t *tiles = json_object_get(object, "tiles"), *rates = json_object_get(object, "rates");
  if (tiles != NULL) {
    PCCL_TRY(read_tiles(r, place, tiles, &model));
  }
  if (rates != NULL) {
    PCCL_TRY(read_rates(r, place, rates, &model));
  }
  int32_t index;
  return at_place(r, place, pccl_builder_model(&r->builder, &model, &index));
}

/* ---- names ---- */

static int by_name(const void *a, const void *b) {
  return strcmp(((const name_entry *)a)->name, ((const name_entry *)b)->name);
}

static polyccl_result allocate_names(name_index *index, size_t count) {
  index->data = pccl_array(count, sizeof *index->data);
  index->len = count;
  return index->data != NULL ? POLYCCL_SUCCESS : pccl_no_memory("a topology's names");
}

static polyccl_result index_machines(reader *r) {
  const polyccl_topology *t = r->builder.topology;
  PCCL_TRY(allocate_names(&r->machines, (size_t)t->machines));
  for (int32_t i = 0; i < t->machines; i++) {
    r->machines.data[i] = (name_entry){t->machine[i], i};
  }
  qsort(r->machines.data, r->machines.len, sizeof *r->machines.data, by_name);
  return POLYCCL_SUCCESS;
}

static polyccl_result index_nodes(reader *r) {
  const polyccl_topology *t = r->builder.topology;
  PCCL_TRY(allocate_names(&r->nodes, t->nodes));
  for (size_t i = 0; i < t->nodes; i++) {
    r->nodes.data[i] = (name_entry){t->node[i].name, (int32_t)i};
  }
  qsort(r->nodes.data, r->nodes.len, sizeof *r->nodes.data, by_name);
  return POLYCCL_SUCCESS;
}

/* -1: none. */
static int32_t find_name(const name_index *index, const char *name) {
  name_entry key = {.name = name};
  const name_entry *found = bsearch(&key, index->data, index->len, sizeof key, by_name);
  return found != NULL ? found->index : -1;
}

/* ---- nodes ---- */

static polyccl_result find_model(reader *r, const char *place, const char *name, int32_t *model) {
  const polyccl_topology *t = r->builder.topology;
  for (size_t i = 0; i < t->models; i++) {
    if (strcmp(t->model[i].name, name) == 0) {
      *model = (int32_t)i;
      return POLYCCL_SUCCESS;
    }
  }
  const polyccl_device_model *known = pccl_known_model_find(name);
  if (known == NULL) {
    return wrong(r, place, "model \"%.100s\" is neither in \"models\" nor shipped", name);
  }
  return at_place(r, place, pccl_builder_model(&r->builder, known, model));
}

static polyccl_result find_machine(const reader *r, const char *place, const char *name, int32_t *machine) {
  *machine = find_name(&r->machines, name);
  return *machine >= 0 ? POLYCCL_SUCCESS : wrong(r, place, "machine \"%.100s\" is not in \"machines\"", name);
}

static polyccl_result parse_kind(const reader *r, const char *place, const char *text, polyccl_node_kind *kind) {
  for (int i = 0; i < POLYCCL_NODE_KIND_COUNT; i++) {
    if (strcmp(text, polyccl_node_kind_name((polyccl_node_kind)i)) == 0) {
      *kind = (polyccl_node_kind)i;
      return POLYCCL_SUCCESS;
    }
  }
  return wrong(r, place, "kind \"%.100s\" is not device, switch, nic or host", text);
}

static polyccl_result read_node(reader *r, const char *place, const json_t *object) {
  static const member members[] = {{"name", JSON_STRING, true},     {"kind", JSON_STRING, true},
                                   {"machine", JSON_STRING, false}, {"model", JSON_STRING, false},
                                   {"rank", JSON_INTEGER, false},   {"domain", JSON_INTEGER, false}};
  PCCL_TRY(check_members(r, place, object, members, sizeof members / sizeof members[0]));
  polyccl_node_kind kind = POLYCCL_NODE_DEVICE;
  PCCL_TRY(parse_kind(r, place, string_or(object, "kind", ""), &kind));
  const char *machine_name = string_or(object, "machine", NULL), *model_name = string_or(object, "model", NULL);
  int32_t machine = -1, model = -1, rank = -1, domain = 0, index;
  if (machine_name != NULL) {
    PCCL_TRY(find_machine(r, place, machine_name, &machine));
  }
  if (kind != POLYCCL_NODE_DEVICE && (model_name != NULL || json_object_get(object, "rank") != NULL)) {
    return wrong(r, place, "only a device has a model and a rank");
  }
  if (kind == POLYCCL_NODE_DEVICE) {
    PCCL_TRY(find_model(r, place, model_name != NULL ? model_name : "generic", &model));
  }
  PCCL_TRY(whole_or(r, place, object, "rank", -1, &rank));
  PCCL_TRY(whole_or(r, place, object, "domain", 0, &domain));
  if (domain > 0 && (kind != POLYCCL_NODE_SWITCH || machine < 0)) {
    return wrong(r, place, "only a switch in a machine has a domain");
  }
  const char *name = string_or(object, "name", "");
  PCCL_TRY(at_place(r, place, pccl_builder_node(&r->builder, kind, machine, model, rank, name, &index)));
  r->builder.topology->node[index].domain = domain;
  return POLYCCL_SUCCESS;
}

/* ---- links ---- */

static polyccl_result find_node(const reader *r, const char *place, const json_t *name, int32_t *node) {
  const char *text = json_string_value(name);
  if (text == NULL) {
    return wrong(r, place, "the ends of a link must be names of nodes");
  }
  *node = find_name(&r->nodes, text);
  return *node >= 0 ? POLYCCL_SUCCESS : wrong(r, place, "unknown node \"%.100s\"", text);
}

static polyccl_result read_link(reader *r, const char *place, const json_t *object) {
  static const member members[] = {{"from", JSON_STRING, false},   {"to", JSON_STRING, false},
                                   {"between", JSON_ARRAY, false}, {"type", JSON_STRING, false},
                                   {"bandwidth", JSON_REAL, true}, {"latency", JSON_REAL, true}};
  PCCL_TRY(check_members(r, place, object, members, sizeof members / sizeof members[0]));
  const json_t *between = json_object_get(object, "between"), *from = json_object_get(object, "from"),
               *to = json_object_get(object, "to");
  bool one_way = from != NULL && to != NULL && between == NULL;
  bool both_ways = between != NULL && json_array_size(between) == 2 && from == NULL && to == NULL;
  if (!one_way && !both_ways) {
    return wrong(r, place, "needs \"from\" and \"to\" (one way), or \"between\": [a, b] (both ways)");
  }
  int32_t a, b;
  PCCL_TRY(find_node(r, place, one_way ? from : json_array_get(between, 0), &a));
  PCCL_TRY(find_node(r, place, one_way ? to : json_array_get(between, 1), &b));
  double bandwidth = number_or(object, "bandwidth", 0), latency = number_or(object, "latency", 0);
  const char *type = string_or(object, "type", "link");
  PCCL_TRY(at_place(r, place, pccl_builder_link(&r->builder, a, b, type, bandwidth, latency)));
  return both_ways ? at_place(r, place, pccl_builder_link(&r->builder, b, a, type, bandwidth, latency))
                   : POLYCCL_SUCCESS;
}

/* ---- the whole ---- */

static polyccl_result read_list(reader *r, const json_t *root, const char *list,
                                polyccl_result (*read)(reader *, const char *, const json_t *)) {
  size_t i;
  json_t *value;
  json_array_foreach(json_object_get(root, list), i, value) {
    char place[64];
    snprintf(place, sizeof place, "%s[%zu]", list, i);
    PCCL_TRY(read(r, place, value));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result read_machine(reader *r, const char *place, const json_t *value) {
  if (!json_is_string(value)) {
    return wrong(r, place, "must be a string, the machine's name");
  }
  int32_t index;
  return at_place(r, place, pccl_builder_machine(&r->builder, json_string_value(value), &index));
}

static polyccl_result read_assumption(reader *r, const char *place, const json_t *value) {
  if (!json_is_string(value)) {
    return wrong(r, place, "must be a string");
  }
  return at_place(r, place, pccl_builder_assume(&r->builder, json_string_value(value)));
}

static polyccl_result read_root(reader *r, const json_t *root) {
  PCCL_TRY(read_list(r, root, "assumed", read_assumption));
  PCCL_TRY(read_list(r, root, "models", read_model));
  PCCL_TRY(read_list(r, root, "machines", read_machine));
  PCCL_TRY(index_machines(r));
  PCCL_TRY(read_list(r, root, "nodes", read_node));
  PCCL_TRY(index_nodes(r));
  return read_list(r, root, "links", read_link);
}

static polyccl_result check_root(const reader *r, const json_t *root) {
  static const member members[] = {{"polyccl_topology", JSON_INTEGER, true},
                                   {"name", JSON_STRING, false},
                                   {"source", JSON_STRING, false},
                                   {"assumed", JSON_ARRAY, false},
                                   {"models", JSON_ARRAY, false},
                                   {"machines", JSON_ARRAY, true},
                                   {"nodes", JSON_ARRAY, true},
                                   {"links", JSON_ARRAY, true}};
  PCCL_TRY(check_members(r, "the file", root, members, sizeof members / sizeof members[0]));
  json_int_t version = json_integer_value(json_object_get(root, "polyccl_topology"));
  if (version != 1) {
    return wrong(r, "polyccl_topology", "version %" JSON_INTEGER_FORMAT " is not 1", version);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result build(const char *file, const json_t *root, polyccl_topology **topology) {
  reader r = {.file = file};
  PCCL_TRY(check_root(&r, root));
  const char *slash = strrchr(file, '/'), *base = slash != NULL ? slash + 1 : file;
  PCCL_TRY(pccl_builder_start(&r.builder, string_or(root, "name", base),
                              string_or(root, "source", "the file does not say")));
  polyccl_result result = read_root(&r, root);
  free(r.machines.data);
  free(r.nodes.data);
  if (result != POLYCCL_SUCCESS) {
    pccl_builder_abandon(&r.builder);
    return result;
  }
  result = pccl_builder_finish(&r.builder, topology);
  return result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "%s: ", file);
}

polyccl_result pccl_topology_read_json(const char *name, const char *text, size_t length, polyccl_topology **topology) {
  json_error_t error;
  json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
  if (root == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s:%d:%d: %s", name, error.line, error.column, error.text);
  }
  polyccl_result result = json_object_get(root, "polyccl_topology") != NULL
                              ? build(name, root, topology)
                              : pccl_kind_refuse(name, PCCL_KIND_JSON, PCCL_USE_TOPOLOGY);
  json_decref(root);
  return result;
}
