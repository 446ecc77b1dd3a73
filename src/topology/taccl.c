/* TACCL's topology files: one machine, what a chunk costs on its links. docs/topology.md says what is taken from them
 * and what is assumed. */
#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "topology/machines.h"

enum { MAX_GPUS = 1024 };

typedef struct reader {
  const char *file, *name;
  const json_t *root;
  pccl_builder builder;
  int gpus, nics;
  double chunk;   /* bytes that the costs are for */
  double unit;    /* of the costs, in us */
  double latency; /* us, of a link in the machine */
  int32_t machine, device[MAX_GPUS];
} reader;

static polyccl_result refuse_file(const reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static polyccl_result refuse_file(const reader *r, const char *format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return pccl_fail(POLYCCL_ERROR_INVALID, "%s: %s", r->file, message);
}

/* ---- members ---- */

static polyccl_result read_number(const reader *r, const char *name, double min, double *number) {
  const json_t *value = json_object_get(r->root, name);
  *number = json_number_value(value);
  return json_is_number(value) && *number >= min && *number <= PCCL_MAX_LATENCY
             ? POLYCCL_SUCCESS
             : refuse_file(r, "\"%s\" must be a number within %g .. %g", name, min, PCCL_MAX_LATENCY);
}

static polyccl_result read_count(const reader *r, const char *name, int min, int *count) {
  const json_t *value = json_object_get(r->root, name);
  json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
  if (number < min || number > MAX_GPUS) {
    return refuse_file(r, "\"%s\" must be a whole number within %d .. %d", name, min, MAX_GPUS);
  }
  *count = (int)number;
  return POLYCCL_SUCCESS;
}

/* The size of a chunk stands at the end of the name: "NDv2_32KB". */
static double chunk_of(const char *name) {
  static const struct {
    const char *unit;
    double bytes;
  } units[] = {{"KB", 1024}, {"MB", 1048576}, {"GB", 1073741824}};
  size_t length = strlen(name);
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
    size_t digits = 0;
    if (length < 3 || strcasecmp(name + length - 2, units[i].unit) != 0) {
      continue;
    }
    while (digits < 4 && digits + 2 < length && isdigit((unsigned char)name[length - 3 - digits])) {
      digits++;
    }
    double number = 0;
    for (size_t k = length - 2 - digits; k < length - 2; k++) {
      number = number * 10 + (name[k] - '0');
    }
    return number > 0 ? number * units[i].bytes : 0;
  }
  return 0;
}

/* Costs are scaled up for small chunks, by powers of ten, so that the solver's whole numbers can tell them apart. A
 * link's latency tells by how much: in a machine it is below a microsecond. */
static double unit_of(double alpha) {
  double unit = 1;
  while (alpha * unit >= 1) {
    unit /= 10;
  }
  return unit;
}

/* GB/s of what carries a chunk at this cost. */
static double bandwidth_of(const reader *r, double cost) { return r->chunk / (cost * r->unit) / 1e3; }

/* ---- the fabric ---- */

static polyccl_result read_cost(const reader *r, const char *name, const json_t *value, double *cost) {
  *cost = json_number_value(value);
  if (!json_is_number(value) || !(*cost > 0 && *cost <= PCCL_MAX_LATENCY)) {
    return refuse_file(r, "in \"%s\" the cost of a link must be a number above 0 and not above %g", name,
                       PCCL_MAX_LATENCY);
  }
  return POLYCCL_SUCCESS;
}

/* Element (dst, src) of a matrix; NULL: the matrix has another shape. */
static const json_t *matrix_element(const reader *r, const json_t *matrix, int dst, int src) {
  const json_t *row = json_array_get(matrix, (size_t)dst);
  bool right = json_array_size(matrix) == (size_t)r->gpus && json_array_size(row) == (size_t)r->gpus;
  return right ? json_array_get(row, (size_t)src) : NULL;
}

static polyccl_result add_matrix_link(reader *r, const json_t *links, const json_t *betas, int dst, int src) {
  const json_t *count = matrix_element(r, links, dst, src), *beta = matrix_element(r, betas, dst, src);
  if (!json_is_integer(count) || !json_is_number(beta) || json_integer_value(count) < 0) {
    return refuse_file(r, "\"links\" and \"betas\" must be %d lists of %d numbers", r->gpus, r->gpus);
  }
  if (json_integer_value(count) == 0 || src == dst) {
    return POLYCCL_SUCCESS;
  }
  double cost;
  PCCL_TRY(read_cost(r, "betas", beta, &cost));
  polyccl_result result = pccl_builder_link(&r->builder, r->device[src], r->device[dst], "link",
                                            bandwidth_of(r, cost) * (double)json_integer_value(count), r->latency);
  return result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "%s: links[%d][%d]: ", r->file, dst, src);
}

static polyccl_result add_matrix(reader *r) {
  const json_t *links = json_object_get(r->root, "links"), *betas = json_object_get(r->root, "betas");
  for (int dst = 0; dst < r->gpus; dst++) {
    for (int src = 0; src < r->gpus; src++) {
      PCCL_TRY(add_matrix_link(r, links, betas, dst, src));
    }
  }
  return POLYCCL_SUCCESS;
}

/* NDv2's links as TACCL numbers its GPUs; `both`: two NVLinks, which have the first cost, else one. */
static void add_ndv2(reader *r, double two, double one) {
  static const struct {
    unsigned char a, b;
    bool both;
  } pairs[] = {{0, 1, true},  {0, 2, false}, {0, 3, false}, {0, 4, true},  {1, 2, false}, {1, 3, true},
               {1, 5, false}, {2, 3, true},  {2, 6, true},  {3, 7, false}, {4, 5, true},  {4, 6, false},
               {4, 7, false}, {5, 6, false}, {5, 7, true},  {6, 7, true}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    pccl_add_pair(&r->builder, r->device[pairs[i].a], r->device[pairs[i].b], "NVLink",
                  bandwidth_of(r, pairs[i].both ? two : one), r->latency);
  }
}

static void add_switch(reader *r, double cost) {
  int32_t hub = pccl_add_node(&r->builder, POLYCCL_NODE_SWITCH, r->machine, -1, -1, "m0.switch");
  for (int i = 0; i < r->gpus; i++) {
    pccl_add_pair(&r->builder, r->device[i], hub, "link", bandwidth_of(r, cost), r->latency / 2);
  }
}

static polyccl_result add_fabric(reader *r) {
  const json_t *costs = json_object_get(r->root, "node_betas_list");
  if (json_object_get(r->root, "links") != NULL) {
    return add_matrix(r);
  }
  double cost[2];
  size_t count = json_array_size(costs);
  if (count != 1 && !(count == 2 && r->gpus == 8)) {
    return refuse_file(
        r,
        "\"node_betas_list\" must have one cost (all GPUs on a switch), or two for the 8 GPUs of an NDv2; "
        "other machines have \"links\" and \"betas\"");
  }
  for (size_t i = 0; i < count; i++) {
    PCCL_TRY(read_cost(r, "node_betas_list", json_array_get(costs, i), &cost[i]));
  }
  if (count == 1) {
    add_switch(r, cost[0]);
  } else {
    add_ndv2(r, cost[0], cost[1]);
  }
  return POLYCCL_SUCCESS;
}

/* ---- NICs ---- */

/* Spread evenly. The cost between machines is that of the NIC; its latency is from GPU to GPU. */
static polyccl_result add_nics(reader *r) {
  double alpha, beta;
  if (r->nics == 0) {
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(read_number(r, "remote_alpha", 0, &alpha));
  PCCL_TRY(read_cost(r, "remote_beta", json_object_get(r->root, "remote_beta"), &beta));
  double latency = fmax(0, alpha * r->unit / 2 - PCCL_NETWORK_LATENCY), bandwidth = bandwidth_of(r, beta);
  int more = r->nics > r->gpus ? r->nics : r->gpus, last = -1;
  int32_t nic = -1;
  for (int i = 0; i < more; i++) {
    int at = (int)((long)i * r->nics / more);
    if (at != last) {
      nic = pccl_add_node(&r->builder, POLYCCL_NODE_NIC, r->machine, -1, -1, "m0.nic%d", at);
      last = at;
    }
    pccl_add_pair(&r->builder, r->device[(long)i * r->gpus / more], nic, "PCIe", bandwidth, latency);
  }
  return POLYCCL_SUCCESS;
}

/* ---- the whole ---- */

static polyccl_result read_head(reader *r, bool *named) {
  double alpha;
  r->name = json_string_value(json_object_get(r->root, "name"));
  if (r->name == NULL || r->name[0] == '\0') {
    return refuse_file(r, "\"name\" must be a string");
  }
  PCCL_TRY(read_count(r, "gpus_per_node", 1, &r->gpus));
  PCCL_TRY(read_number(r, "alpha", 0, &alpha));
  const json_t *nics = json_object_get(r->root, "nics_per_node");
  if (nics != NULL && json_integer_value(nics) != -1) { /* -1: none, as TACCL has it */
    PCCL_TRY(read_count(r, "nics_per_node", 0, &r->nics));
  }
  r->chunk = chunk_of(r->name);
  *named = r->chunk > 0;
  r->chunk = *named ? r->chunk : 1048576;
  r->unit = unit_of(alpha);
  r->latency = alpha * r->unit;
  return POLYCCL_SUCCESS;
}

static polyccl_result add_devices(reader *r, const polyccl_device_model *model) {
  int32_t index;
  PCCL_TRY(pccl_builder_machine(&r->builder, "m0", &r->machine));
  PCCL_TRY(pccl_builder_model(&r->builder, model, &index));
  for (int i = 0; i < r->gpus; i++) {
    r->device[i] = pccl_add_node(&r->builder, POLYCCL_NODE_DEVICE, r->machine, index, i, "m0.gpu%d", i);
  }
  PCCL_TRY(add_fabric(r));
  return add_nics(r);
}

static polyccl_result read_profile(reader *r, polyccl_topology **topology) {
  bool named = false, known;
  char source[512];
  PCCL_TRY(read_head(r, &named));
  known = strncasecmp(r->name, "NDv2", 4) == 0 || strncasecmp(r->name, "DGX2", 4) == 0;
  const polyccl_device_model *model = pccl_known_model_find(known ? "V100-SXM2" : "generic");
  snprintf(source, sizeof source,
           "TACCL's topology file; costs taken as %g us for a chunk of %g KiB (%s); device model %s (%s); the shipped "
           "latency of a network",
           r->unit, r->chunk / 1024, named ? "the name's" : "the name has no size, 1 MB assumed", model->name,
           known ? "by the name" : "the file has none");
  PCCL_TRY(pccl_builder_start(&r->builder, r->name, source));
  polyccl_result result = add_devices(r, model);
  if (result != POLYCCL_SUCCESS) {
    pccl_builder_abandon(&r->builder);
    return result;
  }
  result = pccl_builder_finish(&r->builder, topology);
  return result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "%s: ", r->file);
}

polyccl_result pccl_topology_read_taccl(const char *name, const char *text, size_t length,
                                        polyccl_topology **topology) {
  json_error_t error;
  json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
  if (root == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s:%d:%d: %s", name, error.line, error.column, error.text);
  }
  reader r = {.file = name, .root = root};
  polyccl_result result = read_profile(&r, topology);
  json_decref(root);
  return result;
}
