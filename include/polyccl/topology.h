/* The topology: the machines that a program is made for. Nodes (devices, switches, NICs, hosts) joined by directed
 * links with a bandwidth and a latency. Each rank is on a device. For each kind of device there is a model with the
 * figures that the simulator and the scheduler need. docs/topology.md defines the JSON form and names the source of
 * every shipped figure.
 *
 * A topology is a set of flat arrays, open to read. Only the functions below make one; they check it, and it does not
 * change afterwards, so several threads may use one at a time. polyccl_topology_destroy() frees it with all its arrays
 * and strings.
 *
 *   polyccl_topology *t;
 *   polyccl_topology_open("ndv4:2,nic=25", &t);
 *   polyccl_topology_route(t, 0, 9, links, 16, &count);
 *   double narrowest = t->link[links[0]].bandwidth; ... */
#ifndef POLYCCL_TOPOLOGY_H
#define POLYCCL_TOPOLOGY_H

#include <stdbool.h>
#include <stdio.h>

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum polyccl_node_kind {
  POLYCCL_NODE_DEVICE = 0, /* holds a rank's memory and thread blocks */
  POLYCCL_NODE_SWITCH, /* NVSwitch, PCIe switch, network switch; it has no limit of its own, its links are its ports */
  POLYCCL_NODE_NIC,
  POLYCCL_NODE_HOST, /* a CPU socket with its memory; routes between devices and NICs may pass it */
  POLYCCL_NODE_KIND_COUNT
} polyccl_node_kind;

typedef struct polyccl_node {
  char *name; /* unique */
  polyccl_node_kind kind;
  int32_t machine; /* -1: between machines (a network switch) */
  int32_t model;   /* devices: index into models; others -1 */
  int32_t rank;    /* devices: the rank on it, or -1; others -1 */
  int32_t domain;  /* switches: how many devices copies of the machine may share it with (72 for NVL72); others 0 */
} polyccl_node;

/* A wire in one direction; a cable is two links. There is at most one link per ordered pair of nodes. */
typedef struct polyccl_link {
  int32_t from, to; /* nodes */
  int32_t type;     /* index into link_type: "NVLink", "PCIe", "network", ... */
  double bandwidth; /* GB/s (10^9 bytes), > 0 */
  double latency;   /* us, >= 0 */
} polyccl_link;

/* The figures of a device with one protocol. */
typedef struct polyccl_protocol_model {
  double copy_bandwidth;  /* GB/s of payload that one thread block moves */
  double efficiency;      /* payload / bytes on a link, in (0, 1]; LL sends a flag with every word */
  double step_cost;       /* us that a step takes of its thread block, besides the time for its bytes */
  double latency;         /* us from the sender's last byte to the receiver's start, besides the latency of the links */
  double network_latency; /* us that are added where the message leaves the machine */
  double launch_cost;     /* us before the first step of a call */
  uint64_t slot_bytes;    /* payload of a FIFO slot, the limit of one message */
  int32_t fifo_depth;     /* slots per connection */
} polyccl_protocol_model;

/* Bandwidths (GB/s) for one size of the call (bytes of the larger buffer). They differ by size on a CPU, which is fast
 * while the buffers fit into its caches. */
typedef struct polyccl_rates {
  uint64_t bytes;
  double copy[POLYCCL_PROTOCOL_COUNT], reduce, forward, local;
} polyccl_rates;

#define POLYCCL_MAX_RATES 32

/* A kind of device. Ranks of one vendor form a subcluster. */
typedef struct polyccl_device_model {
  char *name;   /* "A100-SXM4-40GB" */
  char *vendor; /* "nvidia", "amd", "cpu", ... */
  polyccl_protocol_model protocol[POLYCCL_PROTOCOL_COUNT];
  double reduce_bandwidth;  /* GB/s of payload that one thread block moves where it also reduces */
  double forward_bandwidth; /* the same where it receives and sends (rcs, rrs, rrcs); 0: as without */
  double local_bandwidth;   /* GB/s that all copies and reductions in the memory of the device share */
  double contention; /* a link that n blocks fill gives n + k of them 1 / (1 + k * contention) of its bandwidth */
  int32_t max_thread_blocks;   /* per rank, resident at once */
  int32_t max_channels;        /* per connection pair */
  int32_t concurrent_blocks;   /* thread blocks of a rank that run at the same moment; 0: all */
  int32_t pipeline;            /* the executor cuts its largest step into so many micro-batches ... */
  uint64_t min_tile, max_tile; /* ... of so many bytes each; pipeline 0: as few as fit into FIFO slots */
  int32_t rates; /* entries in use of `rate`, in ascending order of size; 0: the bandwidths above hold for every size */
  polyccl_rates rate[POLYCCL_MAX_RATES];
  bool by_reference; /* a receiver copies from the sender's own buffer, so a message is moved once, not twice */
} polyccl_device_model;

typedef struct polyccl_topology_rank {
  int32_t node, machine, model;
} polyccl_topology_rank;

typedef struct polyccl_topology {
  char *name;        /* "ndv4:2,nic=25", or the name in the file */
  char *source;      /* where the figures come from */
  char **assumption; /* [assumptions] sentences: what the source does not say, and what was taken instead */
  size_t assumptions;
  int32_t ranks, machines;
  polyccl_topology_rank *rank; /* [ranks] */
  char **machine;              /* names, [machines] */
  polyccl_node *node;
  polyccl_link *link;
  polyccl_device_model *model;
  char **link_type;
  size_t nodes, links, models, link_types;
  struct pccl_routes *routes; /* internal */
} polyccl_topology;

#define POLYCCL_MAX_NODES (1 << 20)
#define POLYCCL_MAX_LINKS (1 << 22)

/* Opens a topology. `spec` is one of
 *   - a synthetic string: "ndv4:2,nic=25". polyccl_topology_synthetic() lists the names; "host" is this machine, found
 *     by hwloc. What begins with the name of a shipped machine is always a synthetic string.
 *   - the path of a file: JSON, the XML that NCCL writes to NCCL_TOPO_DUMP_FILE, hwloc's XML, or TACCL's JSON.
 *   - "PATH:4": four copies of the machine in the file, joined by a network.
 * The caller owns `*topology`. Errors: INVALID with the place in the file or string, LIMIT, MEMORY, SYSTEM. Several
 * threads may open topologies at a time. */
POLYCCL_API polyccl_result polyccl_topology_open(const char *spec, polyccl_topology **topology);

/* What NCCL's XML leaves open where it lists only the PCIe devices of a virtual machine. A NULL hint means that it is
 * not known. */
typedef struct polyccl_topology_hints {
  size_t size;     /* sizeof(polyccl_topology_hints) */
  const char *gpu; /* a shipped device model, "H100-SXM5"; every GPU of the file is taken to be one */
  const char *nic; /* a model, "ConnectX-7", or a rate in Gb/s, "400" */
} polyccl_topology_hints;

#define POLYCCL_TOPOLOGY_NO_HINTS ((polyccl_topology_hints){.size = sizeof(polyccl_topology_hints)})

/* The same as polyccl_topology_open(), with hints. `hints` may be NULL; they are not kept. Errors: also INVALID where a
 * hint is given and `spec` is not a file of NCCL's, or where the hint names no known model. */
POLYCCL_API polyccl_result polyccl_topology_open_hinted(const char *spec, const polyccl_topology_hints *hints,
                                                        polyccl_topology **topology);

/* The same as polyccl_topology_open() for the text of a file, `length` bytes. The content tells which kind of file it
 * is. `name` stands for the file in messages, and names the topology where the text does not. Neither is kept. */
POLYCCL_API polyccl_result polyccl_topology_parse(const char *name, const char *text, size_t length,
                                                  polyccl_topology **topology);

/* Frees a topology. NULL is allowed. */
POLYCCL_API void polyccl_topology_destroy(polyccl_topology *topology);

typedef struct polyccl_synthetic {
  const char *name;   /* as in a synthetic string: "ndv4" */
  const char *help;   /* what a machine of this name is */
  const char *source; /* where its figures come from */
} polyccl_synthetic;

/* The machines that synthetic strings may name. The list is static and ends with a NULL name. */
POLYCCL_API const polyccl_synthetic *polyccl_topology_synthetic(void);

/* The route of a message from rank `src` to rank `dst`: indices into `link`, in order. `*count` is set to the length
 * of the route, 0 when src == dst; the first `capacity` of them are stored in `links`, which may be NULL if `capacity`
 * is 0. The route is the quickest for 64 KiB. It passes through other devices only where there is no other route, and
 * stays inside a machine where it can. Equally quick routes are shared out over the pairs (src, dst), always in the
 * same manner. Errors: INVALID for a rank out of range, MEMORY. Several threads may ask at a time. */
POLYCCL_API polyccl_result polyccl_topology_route(const polyccl_topology *topology, int src, int dst, int32_t *links,
                                                  size_t capacity, size_t *count);

/* True when the route from `src` to `dst` passes through no other device: on ring:8 that is so for neighbours only.
 * False for ranks out of range. Several threads may ask at a time. */
POLYCCL_API bool polyccl_topology_linked(const polyccl_topology *topology, int src, int dst);

/* The model with the bandwidths that hold for a call of `bytes`, from `rate`. Between two sizes of `rate` they are
 * interpolated on logarithms; outside of them the nearest size counts. Name and vendor are still owned by `model`. */
POLYCCL_API polyccl_device_model polyccl_device_model_at(const polyccl_device_model *model, uint64_t bytes);

/* "device", "switch", "nic", "host"; static. NULL for another value. */
POLYCCL_API const char *polyccl_node_kind_name(polyccl_node_kind kind);

/* Write the topology as text for people, as JSON that reads back equal, as an SVG picture. The stream is flushed and
 * stays open. Errors: MEMORY; SYSTEM when `to` cannot be written. */
POLYCCL_API polyccl_result polyccl_topology_write_text(const polyccl_topology *topology, FILE *to);
POLYCCL_API polyccl_result polyccl_topology_write_json(const polyccl_topology *topology, FILE *to);
POLYCCL_API polyccl_result polyccl_topology_write_svg(const polyccl_topology *topology, FILE *to);

#ifdef __cplusplus
}
#endif

#endif
