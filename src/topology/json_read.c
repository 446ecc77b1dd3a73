/* Topologies from JSON (docs/topology.md): machines, nodes and links. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/kind.h"
#include "base/vec.h"
#include "topology/json_reader.h"

/* ---- names ---- */

static int compare_names(const void *a, const void *b) {
  return strcmp(((const pccl_json_name *)a)->name, ((const pccl_json_name *)b)->name);
}

static polyccl_result allocate_names(pccl_json_names *index, size_t count) {
  index->data = pccl_array(count, sizeof *index->data);
  index->len = count;
  return index->data != NULL ? POLYCCL_SUCCESS : pccl_no_memory("a topology's names");
}

static polyccl_result index_machines(pccl_json_reader *r) {
  const polyccl_topology *t = r->builder.topology;
  PCCL_TRY(allocate_names(&r->machines, (size_t)t->machines));
  for (int32_t i = 0; i < t->machines; i++) {
    r->machines.data[i] = (pccl_json_name){t->machine[i], i};
  }
  qsort(r->machines.data, r->machines.len, sizeof *r->machines.data, compare_names);
  return POLYCCL_SUCCESS;
}

static polyccl_result index_nodes(pccl_json_reader *r) {
  const polyccl_topology *t = r->builder.topology;
  PCCL_TRY(allocate_names(&r->nodes, t->nodes));
  for (size_t i = 0; i < t->nodes; i++) {
    r->nodes.data[i] = (pccl_json_name){t->node[i].name, (int32_t)i};
  }
  qsort(r->nodes.data, r->nodes.len, sizeof *r->nodes.data, compare_names);
  return POLYCCL_SUCCESS;
}

/* -1: none. */
static int32_t find_index(const pccl_json_names *index, const char *name) {
  pccl_json_name key = {.name = name};
  const pccl_json_name *found = bsearch(&key, index->data, index->len, sizeof key, compare_names);
  return found != NULL ? found->index : -1;
}

/* ---- nodes ---- */

static polyccl_result find_model(pccl_json_reader *r, const char *place, const char *name, int32_t *model) {
  *model = pccl_find_model(&r->builder, name);
  if (*model >= 0) {
    return POLYCCL_SUCCESS;
  }
  const polyccl_device_model *known = pccl_known_model_find(name);
  if (known == NULL) {
    return pccl_json_refuse(r, place, "model \"%.100s\" is neither in \"models\" nor among the shipped models", name);
  }
  return pccl_json_prefix(r, place, pccl_builder_model(&r->builder, known, model));
}

static polyccl_result find_machine(const pccl_json_reader *r, const char *place, const char *name, int32_t *machine) {
  *machine = find_index(&r->machines, name);
  return *machine >= 0 ? POLYCCL_SUCCESS
                       : pccl_json_refuse(r, place, "machine \"%.100s\" is not in \"machines\"", name);
}

static polyccl_result parse_kind(const pccl_json_reader *r, const char *place, const char *text,
                                 polyccl_node_kind *kind) {
  for (int i = 0; i < POLYCCL_NODE_KIND_COUNT; i++) {
    if (strcmp(text, polyccl_node_kind_name((polyccl_node_kind)i)) == 0) {
      *kind = (polyccl_node_kind)i;
      return POLYCCL_SUCCESS;
    }
  }
  return pccl_json_refuse(r, place, "kind \"%.100s\" is not device, switch, nic or host", text);
}

static polyccl_result read_node(pccl_json_reader *r, const char *place, const json_t *object) {
  static const pccl_json_member members[] = {{"name", JSON_STRING, true},     {"kind", JSON_STRING, true},
                                             {"machine", JSON_STRING, false}, {"model", JSON_STRING, false},
                                             {"rank", JSON_INTEGER, false},   {"domain", JSON_INTEGER, false}};
  PCCL_TRY(pccl_json_check(r, place, object, members, sizeof members / sizeof members[0]));
  polyccl_node_kind kind = POLYCCL_NODE_DEVICE;
  PCCL_TRY(parse_kind(r, place, pccl_json_string_or(object, "kind", ""), &kind));
  const char *machine_name = pccl_json_string_or(object, "machine", NULL),
             *model_name = pccl_json_string_or(object, "model", NULL);
  int32_t machine = -1, model = -1, rank = -1, domain = 0, index;
  if (machine_name != NULL) {
    PCCL_TRY(find_machine(r, place, machine_name, &machine));
  }
  if (kind != POLYCCL_NODE_DEVICE && (model_name != NULL || json_object_get(object, "rank") != NULL)) {
    return pccl_json_refuse(r, place, "only a device may have a model and a rank");
  }
  if (kind == POLYCCL_NODE_DEVICE) {
    PCCL_TRY(find_model(r, place, model_name != NULL ? model_name : "generic", &model));
  }
  PCCL_TRY(pccl_json_whole_or(r, place, object, "rank", -1, &rank));
  PCCL_TRY(pccl_json_whole_or(r, place, object, "domain", 0, &domain));
  if (domain > 0 && (kind != POLYCCL_NODE_SWITCH || machine < 0)) {
    return pccl_json_refuse(r, place, "only a switch in a machine may have a domain");
  }
  const char *name = pccl_json_string_or(object, "name", "");
  PCCL_TRY(pccl_json_prefix(r, place, pccl_builder_node(&r->builder, kind, machine, model, rank, name, &index)));
  r->builder.topology->node[index].domain = domain;
  return POLYCCL_SUCCESS;
}

/* ---- links ---- */

static polyccl_result find_node(const pccl_json_reader *r, const char *place, const json_t *name, int32_t *node) {
  const char *text = json_string_value(name);
  if (text == NULL) {
    return pccl_json_refuse(r, place, "the ends of a link must be names of nodes");
  }
  *node = find_index(&r->nodes, text);
  return *node >= 0 ? POLYCCL_SUCCESS : pccl_json_refuse(r, place, "there is no node \"%.100s\"", text);
}

static polyccl_result read_link(pccl_json_reader *r, const char *place, const json_t *object) {
  static const pccl_json_member members[] = {{"from", JSON_STRING, false},   {"to", JSON_STRING, false},
                                             {"between", JSON_ARRAY, false}, {"type", JSON_STRING, false},
                                             {"bandwidth", JSON_REAL, true}, {"latency", JSON_REAL, true}};
  PCCL_TRY(pccl_json_check(r, place, object, members, sizeof members / sizeof members[0]));
  const json_t *between = json_object_get(object, "between"), *from = json_object_get(object, "from"),
               *to = json_object_get(object, "to");
  bool one_way = from != NULL && to != NULL && between == NULL;
  bool both_ways = between != NULL && json_array_size(between) == 2 && from == NULL && to == NULL;
  if (!one_way && !both_ways) {
    return pccl_json_refuse(r, place, "a link needs \"from\" and \"to\" (one way), or \"between\": [a, b] (both ways)");
  }
  int32_t a, b;
  PCCL_TRY(find_node(r, place, one_way ? from : json_array_get(between, 0), &a));
  PCCL_TRY(find_node(r, place, one_way ? to : json_array_get(between, 1), &b));
  double bandwidth = pccl_json_number_or(object, "bandwidth", 0), latency = pccl_json_number_or(object, "latency", 0);
  const char *type = pccl_json_string_or(object, "type", "link");
  PCCL_TRY(pccl_json_prefix(r, place, pccl_builder_link(&r->builder, a, b, type, bandwidth, latency)));
  return both_ways ? pccl_json_prefix(r, place, pccl_builder_link(&r->builder, b, a, type, bandwidth, latency))
                   : POLYCCL_SUCCESS;
}

/* ---- the whole ---- */

static polyccl_result read_list(pccl_json_reader *r, const json_t *root, const char *list,
                                polyccl_result (*read_item)(pccl_json_reader *, const char *, const json_t *)) {
  size_t i;
  json_t *value;
  json_array_foreach(json_object_get(root, list), i, value) {
    char place[64];
    snprintf(place, sizeof place, "%s[%zu]", list, i);
    PCCL_TRY(read_item(r, place, value));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result read_machine(pccl_json_reader *r, const char *place, const json_t *value) {
  if (!json_is_string(value)) {
    return pccl_json_refuse(r, place, "the name of a machine must be a string");
  }
  int32_t index;
  return pccl_json_prefix(r, place, pccl_builder_machine(&r->builder, json_string_value(value), &index));
}

static polyccl_result read_assumption(pccl_json_reader *r, const char *place, const json_t *value) {
  if (!json_is_string(value)) {
    return pccl_json_refuse(r, place, "an assumption must be a string");
  }
  return pccl_json_prefix(r, place, pccl_builder_assume(&r->builder, json_string_value(value)));
}

static polyccl_result read_root(pccl_json_reader *r, const json_t *root) {
  PCCL_TRY(read_list(r, root, "assumed", read_assumption));
  PCCL_TRY(read_list(r, root, "models", pccl_json_read_model));
  PCCL_TRY(read_list(r, root, "machines", read_machine));
  PCCL_TRY(index_machines(r));
  PCCL_TRY(read_list(r, root, "nodes", read_node));
  PCCL_TRY(index_nodes(r));
  return read_list(r, root, "links", read_link);
}

static polyccl_result check_root(const pccl_json_reader *r, const json_t *root) {
  static const pccl_json_member members[] = {{"polyccl_topology", JSON_INTEGER, true},
                                             {"name", JSON_STRING, false},
                                             {"source", JSON_STRING, false},
                                             {"assumed", JSON_ARRAY, false},
                                             {"models", JSON_ARRAY, false},
                                             {"machines", JSON_ARRAY, true},
                                             {"nodes", JSON_ARRAY, true},
                                             {"links", JSON_ARRAY, true}};
  PCCL_TRY(pccl_json_check(r, "the file", root, members, sizeof members / sizeof members[0]));
  json_int_t version = json_integer_value(json_object_get(root, "polyccl_topology"));
  if (version != 1) {
    return pccl_json_refuse(r, "polyccl_topology", "the version is %" JSON_INTEGER_FORMAT ", and only 1 is known",
                            version);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result read_document(const char *file, const json_t *root, polyccl_topology **topology) {
  pccl_json_reader r = {.file = file};
  PCCL_TRY(check_root(&r, root));
  const char *slash = strrchr(file, '/'), *base = slash != NULL ? slash + 1 : file;
  PCCL_TRY(pccl_builder_start(&r.builder, pccl_json_string_or(root, "name", base),
                              pccl_json_string_or(root, "source", "the file does not say")));
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
                              ? read_document(name, root, topology)
                              : pccl_kind_refuse(name, PCCL_KIND_JSON, PCCL_USE_TOPOLOGY);
  json_decref(root);
  return result;
}
