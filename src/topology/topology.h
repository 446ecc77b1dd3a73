/* What the readers of topologies share. A builder takes models, machines, nodes and links one at a time and refuses a
 * wrong one; the caller adds the place to the message. pccl_builder_finish() checks the whole: ranks are complete,
 * names are unique, and there is a route between any two ranks. */
#ifndef PCCL_TOPOLOGY_TOPOLOGY_H
#define PCCL_TOPOLOGY_TOPOLOGY_H

#include <polyccl/topology.h>

#include "base/file.h"
#include "base/map.h"

/* The bounds of figures in a topology. A figure beyond them is a mistake; within them costs fit into 64 bits. */
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

/* Each returns the index of what it has added. `machine` is -1 between machines; `model` and `rank` are -1 except for
 * devices. Names are copied; they must be printable and have at most PCCL_MAX_NAME bytes. */
polyccl_result pccl_builder_model(pccl_builder *builder, const polyccl_device_model *model, int32_t *index);
polyccl_result pccl_builder_machine(pccl_builder *builder, const char *name, int32_t *index);
polyccl_result pccl_builder_node(pccl_builder *builder, polyccl_node_kind kind, int32_t machine, int32_t model,
                                 int32_t rank, const char *name, int32_t *index);
polyccl_result pccl_builder_link(pccl_builder *builder, int32_t from, int32_t to, const char *type, double bandwidth,
                                 double latency);

/* Adds a sentence that says what was assumed. It must be printable and have at most PCCL_MAX_ASSUMPTION bytes. */
polyccl_result pccl_builder_assume(pccl_builder *builder, const char *text);

/* The pccl_add_ functions keep the first failure in builder->result; later calls do nothing, and return index -1. */
int32_t pccl_add_node(pccl_builder *builder, polyccl_node_kind kind, int32_t machine, int32_t model, int32_t rank,
                      const char *format, ...) __attribute__((format(printf, 6, 7)));
void pccl_add_link(pccl_builder *builder, int32_t from, int32_t to, const char *type, double bandwidth, double latency);
/* A link each way. */
void pccl_add_pair(pccl_builder *builder, int32_t a, int32_t b, const char *type, double bandwidth, double latency);

/* The index of a model that the builder has, by its name; -1: none. */
int32_t pccl_find_model(const pccl_builder *builder, const char *name);
/* The same, but adds a model that the builder does not have. -1 after a failure. */
int32_t pccl_add_model(pccl_builder *builder, const polyccl_device_model *model);

/* ---- device models ---- */

typedef struct pccl_known_model {
  polyccl_device_model model; /* strings are literals */
  const char *source;
} pccl_known_model;

extern const pccl_known_model pccl_known_models[]; /* ends with a NULL name; the first is "generic" */

const polyccl_device_model *pccl_known_model_find(const char *name); /* NULL: none */

/* INVALID, naming the field that is out of its bounds. */
polyccl_result pccl_model_check(const polyccl_device_model *model);

/* ---- sources ---- */

/* True when `spec` begins with the name of a shipped machine. */
bool pccl_synthetic_known(const char *spec);
polyccl_result pccl_synthetic_open(const char *spec, polyccl_topology **topology);

/* The readers, one for each kind of file (base/kind.h); open.c calls the right one. `name` stands for the file in
 * messages. Errors: INVALID with the place, LIMIT, MEMORY. */
polyccl_result pccl_topology_read_json(const char *name, const char *text, size_t length, polyccl_topology **topology);
polyccl_result pccl_topology_read_hwloc(const char *name, const char *text, size_t length, polyccl_topology **topology);
polyccl_result pccl_topology_read_taccl(const char *name, const char *text, size_t length, polyccl_topology **topology);
/* `hints` may be NULL. */
polyccl_result pccl_topology_read_nccl(const char *name, const char *text, size_t length,
                                       const polyccl_topology_hints *hints, polyccl_topology **topology);

/* Adds this machine, found by hwloc, to the builder, with `ranks` devices (0: as many as it has cores). */
polyccl_result pccl_detect_host(pccl_builder *builder, int ranks);

/* Makes a topology of `copies` of the machines of `base`; one network switch joins the NICs of all. */
polyccl_result pccl_topology_repeat(const polyccl_topology *base, int copies, polyccl_topology **topology);

/* Writes the name of a link, "gpu0 -> nvswitch0", cut to `size`; returns `buffer`. */
const char *pccl_link_name(const polyccl_topology *topology, size_t link, char *buffer, size_t size);

/* True when the next link is the reverse of this one and has the same figures. */
bool pccl_link_is_pair(const polyccl_topology *topology, size_t link);

/* Writes a complete text. Errors: MEMORY when the text could not be built, SYSTEM. */
polyccl_result pccl_topology_put(const pccl_text *text, FILE *to);

#endif
