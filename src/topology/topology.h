/* What the topology's readers share. A builder takes models, machines, nodes and links one at a time, refuses what is
 * wrong with one of them (the caller adds the place), and pccl_builder_finish() proves the whole: ranks complete,
 * names unique, a way between any two ranks. */
#ifndef PCCL_TOPOLOGY_TOPOLOGY_H
#define PCCL_TOPOLOGY_TOPOLOGY_H

#include <polyccl/topology.h>

#include "base/file.h"
#include "base/map.h"

/* The bounds of figures in a topology; beyond them they are mistakes, and costs stay within 64 bits. */
#define PCCL_MIN_BANDWIDTH 1e-3 /* GB/s */
#define PCCL_MAX_BANDWIDTH 1e9
#define PCCL_MAX_LATENCY 1e6 /* us */
enum {
  PCCL_MAX_NAME = 200,
  PCCL_MAX_MODELS = 4096,
  PCCL_MAX_LINK_TYPES = 4096,
  PCCL_MAX_ASSUMPTION = 1000,
  PCCL_MAX_ASSUMPTIONS = 1000
};

typedef struct pccl_builder {
  polyccl_topology *topology;
  size_t node_cap, link_cap, model_cap, machine_cap, type_cap, assumption_cap;
  pccl_map pairs;        /* from, to -> link */
  polyccl_result result; /* of the sticky calls */
} pccl_builder;

polyccl_result pccl_builder_start(pccl_builder *builder, const char *name, const char *source);
void pccl_builder_abandon(pccl_builder *builder);
/* Takes the topology on success, abandons it on failure. */
polyccl_result pccl_builder_finish(pccl_builder *builder, polyccl_topology **topology);

/* Each gives the index of what it added. `machine` -1: between machines; model and rank: devices only, else -1. The
 * name of a node is copied, at most PCCL_MAX_NAME bytes, printable. */
polyccl_result pccl_builder_model(pccl_builder *builder, const polyccl_device_model *model, int32_t *index);
polyccl_result pccl_builder_machine(pccl_builder *builder, const char *name, int32_t *index);
polyccl_result pccl_builder_node(pccl_builder *builder, polyccl_node_kind kind, int32_t machine, int32_t model,
                                 int32_t rank, const char *name, int32_t *index);
polyccl_result pccl_builder_link(pccl_builder *builder, int32_t from, int32_t to, const char *type, double bandwidth,
                                 double latency);

/* Adds a sentence to what was assumed, at most PCCL_MAX_ASSUMPTION bytes, printable. */
polyccl_result pccl_builder_assume(pccl_builder *builder, const char *text);

/* For generators: the first failure sticks in builder->result and later calls do nothing (index -1). */
int32_t pccl_add_node(pccl_builder *builder, polyccl_node_kind kind, int32_t machine, int32_t model, int32_t rank,
                      const char *format, ...) __attribute__((format(printf, 6, 7)));
void pccl_add_link(pccl_builder *builder, int32_t from, int32_t to, const char *type, double bandwidth, double latency);
/* A link each way. */
void pccl_add_pair(pccl_builder *builder, int32_t a, int32_t b, const char *type, double bandwidth, double latency);

/* The index of a model that the builder has, by its name; -1: none. */
int32_t pccl_find_model(const pccl_builder *builder, const char *name);
/* The same; a model that the builder does not have is added. -1 after a failure, which sticks. */
int32_t pccl_add_model(pccl_builder *builder, const polyccl_device_model *model);

/* ---- device models ---- */

typedef struct pccl_known_model {
  polyccl_device_model model; /* strings are literals */
  const char *source;
} pccl_known_model;

extern const pccl_known_model pccl_known_models[]; /* ends with a NULL name; the first is "generic" */

const polyccl_device_model *pccl_known_model_find(const char *name); /* NULL: none */

/* INVALID with the field and its bounds. */
polyccl_result pccl_model_check(const polyccl_device_model *model);

/* ---- sources ---- */

/* True when `spec` begins with the name of a shipped machine. */
bool pccl_synthetic_known(const char *spec);
polyccl_result pccl_synthetic_open(const char *spec, polyccl_topology **topology);

polyccl_result pccl_topology_read_json(const char *name, const char *text, size_t length, polyccl_topology **topology);
polyccl_result pccl_topology_read_hwloc(const char *name, const char *text, size_t length, polyccl_topology **topology);
polyccl_result pccl_topology_read_taccl(const char *name, const char *text, size_t length, polyccl_topology **topology);
polyccl_result pccl_topology_read_xml(const char *name, const char *text, size_t length, polyccl_topology **topology);
polyccl_result pccl_topology_read_xml_hinted(const char *name, const char *text, size_t length,
                                             const polyccl_topology_hints *hints, polyccl_topology **topology);

/* `ranks` CPUs of this machine (0: as many as it has cores), by hwloc, into the builder. */
polyccl_result pccl_detect_host(pccl_builder *builder, int ranks);

/* `copies` of the machines of `base`, whose NICs all join one network switch. Consumes nothing. */
polyccl_result pccl_topology_repeat(const polyccl_topology *base, int copies, polyccl_topology **topology);

/* A link in words, "gpu0 -> nvswitch0", for messages and pictures; cut to `size`. */
const char *pccl_link_name(const polyccl_topology *topology, size_t link, char *buffer, size_t size);

/* True when the next link is this one's way back, with the same figures. */
bool pccl_link_is_pair(const polyccl_topology *topology, size_t link);

/* Writes text that has been put together; MEMORY or SYSTEM. */
polyccl_result pccl_topology_put(const pccl_text *text, FILE *to);

#endif
