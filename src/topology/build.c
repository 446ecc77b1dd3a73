/* Builds a topology from checked pieces. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"
#include "topology/routes.h"

polyccl_result pccl_builder_start(pccl_builder *builder, const char *name, const char *source) {
  *builder = (pccl_builder){.topology = pccl_zeroed(1, sizeof(polyccl_topology))};
  polyccl_topology *t = builder->topology;
  if (t == NULL || (t->name = pccl_strdup(name)) == NULL || (t->source = pccl_strdup(source)) == NULL) {
    pccl_builder_abandon(builder);
    return pccl_no_memory("a topology");
  }
  return POLYCCL_SUCCESS;
}

void pccl_builder_abandon(pccl_builder *builder) {
  polyccl_topology_destroy(builder->topology);
  pccl_map_free(&builder->pairs);
  builder->topology = NULL;
}

void polyccl_topology_destroy(polyccl_topology *t) {
  if (t == NULL) {
    return;
  }
  for (size_t i = 0; i < t->nodes; i++) {
    free(t->node[i].name);
  }
  for (size_t i = 0; i < t->models; i++) {
    free(t->model[i].name);
    free(t->model[i].vendor);
  }
  for (int32_t i = 0; i < t->machines; i++) {
    free(t->machine[i]);
  }
  for (size_t i = 0; i < t->link_types; i++) {
    free(t->link_type[i]);
  }
  for (size_t i = 0; i < t->assumptions; i++) {
    free(t->assumption[i]);
  }
  pccl_routes_destroy(t->routes, t->nodes);
  free(t->node);
  free(t->model);
  free(t->machine);
  free(t->link_type);
  free(t->link);
  free(t->rank);
  free(t->name);
  free(t->source);
  free(t->assumption);
  free(t);
}

static bool make_room(void **data, size_t *cap, size_t len, size_t element) {
  return len < *cap || pccl_vec_grow(data, cap, len, 1, element);
}

/* Names are put into messages, tables and pictures unchanged, so they must be printable. */
static polyccl_result check_text(const char *what, const char *text, size_t max) {
  size_t length = strlen(text);
  if (length == 0 || length > max) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s must have 1 to %zu bytes, it has %zu", what, max, length);
  }
  for (size_t i = 0; i < length; i++) {
    if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "%s has a control character (byte %zu)", what, i);
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_name(const char *what, const char *name) {
  char of[64];
  snprintf(of, sizeof of, "the name of a %s", what);
  return check_text(of, name, PCCL_MAX_NAME);
}

polyccl_result pccl_builder_assume(pccl_builder *builder, const char *text) {
  polyccl_topology *t = builder->topology;
  PCCL_TRY(check_text("an assumption", text, PCCL_MAX_ASSUMPTION));
  if (t->assumptions >= PCCL_MAX_ASSUMPTIONS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the topology has more than %d assumptions", PCCL_MAX_ASSUMPTIONS);
  }
  char *copy = pccl_strdup(text);
  if (copy == NULL ||
      !make_room((void **)&t->assumption, &builder->assumption_cap, t->assumptions, sizeof *t->assumption)) {
    free(copy);
    return pccl_no_memory("a topology's assumptions");
  }
  t->assumption[t->assumptions++] = copy;
  return POLYCCL_SUCCESS;
}

int32_t pccl_find_model(const pccl_builder *builder, const char *name) {
  for (size_t i = 0; i < builder->topology->models; i++) {
    if (strcmp(builder->topology->model[i].name, name) == 0) {
      return (int32_t)i;
    }
  }
  return -1;
}

polyccl_result pccl_builder_model(pccl_builder *builder, const polyccl_device_model *model, int32_t *index) {
  polyccl_topology *t = builder->topology;
  PCCL_TRY(check_name("model", model->name));
  PCCL_TRY(check_name("vendor", model->vendor));
  PCCL_TRY(pccl_model_check(model));
  if (pccl_find_model(builder, model->name) >= 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "there is already a model \"%s\"", model->name);
  }
  if (t->models >= PCCL_MAX_MODELS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the topology has more than %d models", PCCL_MAX_MODELS);
  }
  polyccl_device_model copy = *model;
  copy.name = pccl_strdup(model->name);
  copy.vendor = pccl_strdup(model->vendor);
  if (copy.name == NULL || copy.vendor == NULL ||
      !make_room((void **)&t->model, &builder->model_cap, t->models, sizeof *t->model)) {
    free(copy.name);
    free(copy.vendor);
    return pccl_no_memory("a topology's models");
  }
  t->model[t->models] = copy;
  *index = (int32_t)t->models++;
  return POLYCCL_SUCCESS;
}

int32_t pccl_add_model(pccl_builder *builder, const polyccl_device_model *model) {
  int32_t index = pccl_find_model(builder, model->name);
  if (index < 0 && builder->result == POLYCCL_SUCCESS) {
    builder->result = pccl_builder_model(builder, model, &index);
  }
  return index;
}

polyccl_result pccl_builder_machine(pccl_builder *builder, const char *name, int32_t *index) {
  polyccl_topology *t = builder->topology;
  PCCL_TRY(check_name("machine", name));
  if (t->machines >= POLYCCL_MAX_NODES) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the topology has more than %d machines", POLYCCL_MAX_NODES);
  }
  char *copy = pccl_strdup(name);
  if (copy == NULL ||
      !make_room((void **)&t->machine, &builder->machine_cap, (size_t)t->machines, sizeof *t->machine)) {
    free(copy);
    return pccl_no_memory("a topology's machines");
  }
  t->machine[t->machines] = copy;
  *index = t->machines++;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_builder_node(pccl_builder *builder, polyccl_node_kind kind, int32_t machine, int32_t model,
                                 int32_t rank, const char *name, int32_t *index) {
  polyccl_topology *t = builder->topology;
  PCCL_TRY(check_name("node", name));
  if (t->nodes >= POLYCCL_MAX_NODES) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the topology has more than %d nodes", POLYCCL_MAX_NODES);
  }
  if (kind == POLYCCL_NODE_DEVICE && machine < 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "device \"%s\" is in no machine", name);
  }
  char *copy = pccl_strdup(name);
  if (copy == NULL || !make_room((void **)&t->node, &builder->node_cap, t->nodes, sizeof *t->node)) {
    free(copy);
    return pccl_no_memory("a topology's nodes");
  }
  t->node[t->nodes] = (polyccl_node){copy, kind, machine, model, rank, 0};
  *index = (int32_t)t->nodes++;
  return POLYCCL_SUCCESS;
}

static polyccl_result find_link_type(pccl_builder *builder, const char *name, int32_t *index) {
  polyccl_topology *t = builder->topology;
  for (size_t i = 0; i < t->link_types; i++) {
    if (strcmp(t->link_type[i], name) == 0) {
      *index = (int32_t)i;
      return POLYCCL_SUCCESS;
    }
  }
  PCCL_TRY(check_name("link type", name));
  if (t->link_types >= PCCL_MAX_LINK_TYPES) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the topology has more than %d link types", PCCL_MAX_LINK_TYPES);
  }
  char *copy = pccl_strdup(name);
  if (copy == NULL || !make_room((void **)&t->link_type, &builder->type_cap, t->link_types, sizeof *t->link_type)) {
    free(copy);
    return pccl_no_memory("a topology's link types");
  }
  t->link_type[t->link_types] = copy;
  *index = (int32_t)t->link_types++;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_builder_link(pccl_builder *builder, int32_t from, int32_t to, const char *type, double bandwidth,
                                 double latency) {
  polyccl_topology *t = builder->topology;
  const char *a = t->node[from].name, *b = t->node[to].name;
  if (from == to) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "a link leads from \"%s\" to itself", a);
  }
  if (!(bandwidth >= PCCL_MIN_BANDWIDTH && bandwidth <= PCCL_MAX_BANDWIDTH)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "link \"%s\" -> \"%s\": the bandwidth is %g GB/s, not within %g .. %g", a,
                     b, bandwidth, PCCL_MIN_BANDWIDTH, PCCL_MAX_BANDWIDTH);
  }
  if (!(latency >= 0 && latency <= PCCL_MAX_LATENCY)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "link \"%s\" -> \"%s\": the latency is %g us, not within 0 .. %g", a, b,
                     latency, PCCL_MAX_LATENCY);
  }
  if (t->links >= POLYCCL_MAX_LINKS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the topology has more than %d links", POLYCCL_MAX_LINKS);
  }
  int32_t type_index = -1;
  PCCL_TRY(find_link_type(builder, type, &type_index));
  bool is_new = false;
  uint64_t key = (uint64_t)(uint32_t)from << 32 | (uint32_t)to;
  if (pccl_map_put(&builder->pairs, key, t->links, &is_new) == NULL ||
      !make_room((void **)&t->link, &builder->link_cap, t->links, sizeof *t->link)) {
    return pccl_no_memory("a topology's links");
  }
  if (!is_new) {
    return pccl_fail(POLYCCL_ERROR_INVALID,
                     "there is already a link \"%s\" -> \"%s\"; give one link the sum of the bandwidths", a, b);
  }
  t->link[t->links++] = (polyccl_link){from, to, type_index, bandwidth, latency};
  return POLYCCL_SUCCESS;
}

int32_t pccl_add_node(pccl_builder *builder, polyccl_node_kind kind, int32_t machine, int32_t model, int32_t rank,
                      const char *format, ...) {
  char name[PCCL_MAX_NAME + 2];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(name, sizeof name, format, arguments);
  va_end(arguments);
  int32_t index = -1;
  if (builder->result == POLYCCL_SUCCESS) {
    builder->result = pccl_builder_node(builder, kind, machine, model, rank, name, &index);
  }
  return index;
}

void pccl_add_link(pccl_builder *builder, int32_t from, int32_t to, const char *type, double bandwidth,
                   double latency) {
  if (builder->result == POLYCCL_SUCCESS) {
    builder->result = pccl_builder_link(builder, from, to, type, bandwidth, latency);
  }
}

void pccl_add_pair(pccl_builder *builder, int32_t a, int32_t b, const char *type, double bandwidth, double latency) {
  pccl_add_link(builder, a, b, type, bandwidth, latency);
  pccl_add_link(builder, b, a, type, bandwidth, latency);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static polyccl_result check_unique(const char *what, char **names, size_t count) {
  qsort(names, count, sizeof *names, by_name);
  for (size_t i = 1; i < count; i++) {
    if (strcmp(names[i - 1], names[i]) == 0) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "two %s are named \"%s\"", what, names[i]);
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_names(const polyccl_topology *t) {
  char **names = pccl_array(t->nodes + (size_t)t->machines, sizeof *names);
  if (names == NULL) {
    return pccl_no_memory("a topology's names");
  }
  for (size_t i = 0; i < t->nodes; i++) {
    names[i] = t->node[i].name;
  }
  polyccl_result result = check_unique("nodes", names, t->nodes);
  if (result == POLYCCL_SUCCESS && t->machines > 0) {
    memcpy(names, t->machine, (size_t)t->machines * sizeof *names);
    result = check_unique("machines", names, (size_t)t->machines);
  }
  free(names);
  return result;
}

/* Fills t->rank. Every number from 0 to the highest must be on exactly one device. */
static polyccl_result number_ranks(polyccl_topology *t) {
  int32_t ranks = 0;
  for (size_t i = 0; i < t->nodes; i++) {
    ranks += t->node[i].rank >= 0;
  }
  if (ranks == 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "no device has a rank");
  }
  t->rank = pccl_array((size_t)ranks, sizeof *t->rank);
  if (t->rank == NULL) {
    return pccl_no_memory("a topology's ranks");
  }
  t->ranks = ranks;
  for (int32_t r = 0; r < ranks; r++) {
    t->rank[r].node = -1;
  }
  for (size_t i = 0; i < t->nodes; i++) {
    const polyccl_node *node = &t->node[i];
    if (node->rank < 0) {
      continue;
    }
    if (node->rank >= ranks) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "device \"%s\" has rank %d, but the %d ranks must be 0 .. %d", node->name,
                       (int)node->rank, (int)ranks, (int)ranks - 1);
    }
    polyccl_topology_rank *rank = &t->rank[node->rank];
    if (rank->node >= 0) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d is on both \"%s\" and \"%s\"", (int)node->rank,
                       t->node[rank->node].name, node->name);
    }
    *rank = (polyccl_topology_rank){(int32_t)i, node->machine, node->model};
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result finish_topology(pccl_builder *builder) {
  polyccl_topology *t = builder->topology;
  pccl_map pairs = builder->pairs;
  PCCL_TRY(check_names(t));
  PCCL_TRY(number_ranks(t));
  builder->pairs = (pccl_map){0};
  PCCL_TRY(pccl_routes_create(t, pairs, &t->routes));
  return pccl_routes_check(t);
}

polyccl_result pccl_builder_finish(pccl_builder *builder, polyccl_topology **topology) {
  polyccl_result result = builder->result == POLYCCL_SUCCESS ? finish_topology(builder) : builder->result;
  if (result == POLYCCL_SUCCESS) {
    *topology = builder->topology;
    builder->topology = NULL;
  }
  pccl_builder_abandon(builder);
  return result;
}

const char *polyccl_node_kind_name(polyccl_node_kind kind) {
  static const char *const names[POLYCCL_NODE_KIND_COUNT] = {"device", "switch", "nic", "host"};
  return (unsigned)kind < POLYCCL_NODE_KIND_COUNT ? names[kind] : NULL;
}

const char *pccl_link_name(const polyccl_topology *topology, size_t link, char *buffer, size_t size) {
  const polyccl_link *l = &topology->link[link];
  snprintf(buffer, size, "%s -> %s", topology->node[l->from].name, topology->node[l->to].name);
  return buffer;
}

bool pccl_link_is_pair(const polyccl_topology *topology, size_t link) {
  if (link + 1 >= topology->links) {
    return false;
  }
  const polyccl_link *a = &topology->link[link], *b = a + 1;
  return a->from == b->to && a->to == b->from && a->type == b->type && a->bandwidth == b->bandwidth &&
         a->latency == b->latency;
}
