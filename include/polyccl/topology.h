/* The topology: the machines that a program is made for. Nodes (devices, switches, NICs, hosts) joined by directed
 * links with a bandwidth and a latency; each rank on a device; for each kind of device what the simulator and the
 * scheduler need to know of it. docs/topology.md defines the JSON form and names the source of every shipped figure.
 *
 * A topology is flat arrays, open to read; it is made by the functions below only, which check it, and does not change
 * afterwards: several threads may use one at a time.
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
  POLYCCL_NODE_SWITCH,     /* NVSwitch, PCIe switch, network switch: not a bottleneck itself, its links are its ports */
  POLYCCL_NODE_NIC,
  POLYCCL_NODE_HOST, /* a CPU socket with its memory, as a way between devices and NICs */
  POLYCCL_NODE_KIND_COUNT
} polyccl_node_kind;

typedef struct polyccl_node {
  char *name; /* unique */
  polyccl_node_kind kind;
  int32_t machine; /* -1: between machines (a network switch) */
  int32_t model;   /* devices: index into models; others -1 */
  int32_t rank;    /* devices: the rank on it, or -1; others -1 */
  int32_t domain; /* switches: copies of the machine share it, up to so many devices (NVL72's NVSwitch: 72); others 0 */
} polyccl_node;

/* One direction; what most call a link is two of these. At most one per ordered pair of nodes. */
typedef struct polyccl_link {
  int32_t from, to; /* nodes */
  int32_t type;     /* index into link_type: "NVLink", "PCIe", "network", ... */
  double bandwidth; /* GB/s (10^9 bytes), > 0 */
  double latency;   /* us, >= 0 */
} polyccl_link;

/* What a device does with one protocol. */
typedef struct polyccl_protocol_model {
  double copy_bandwidth;  /* GB/s of payload that one thread block moves */
  double efficiency;      /* payload / bytes on a link, in (0, 1]: LL sends a flag with every word */
  double step_cost;       /* us that a step takes of its thread block besides its bytes */
  double latency;         /* us from the sender's last byte to the receiver's start, besides the links' */
  double network_latency; /* us more where the message leaves the machine */
  double launch_cost;     /* us before the first step of a call */
  uint64_t slot_bytes;    /* payload of a FIFO slot: the most that one message carries */
  int32_t fifo_depth;     /* slots per connection */
} polyccl_protocol_model;

/* A CPU is fast while a call's buffers fit its caches and slow beyond: rates at one size of the call (bytes of the
 * larger buffer), GB/s. */
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
  double reduce_bandwidth;     /* GB/s of payload that one thread block moves where it also reduces */
  double forward_bandwidth;    /* the same where it receives and sends (rcs, rrs, rrcs); 0: no less than without */
  double local_bandwidth;      /* GB/s that all copies and reductions in the device's memory share */
  double contention;           /* a link that n blocks fill gives n + k of them 1 / (1 + k * contention) of itself */
  int32_t max_thread_blocks;   /* per rank, resident at once */
  int32_t max_channels;        /* per connection pair */
  int32_t concurrent_blocks;   /* thread blocks of a rank that truly run at once; 0: all of them */
  int32_t pipeline;            /* an executor cuts its largest step into so many micro-batches ... */
  uint64_t min_tile, max_tile; /* ... of so many bytes; pipeline 0: as few as fit into FIFO slots */
  int32_t rates;               /* entries in use of `rate`, sizes ascending; 0: the rates above hold for every size */
  polyccl_rates rate[POLYCCL_MAX_RATES];
  bool by_reference; /* a receiver copies from the sender's own buffer: a message is moved once, not twice */
} polyccl_device_model;

typedef struct polyccl_topology_rank {
  int32_t node, machine, model;
} polyccl_topology_rank;

typedef struct polyccl_topology {
  char *name;        /* "ndv4:2,nic=25", or what the file says */
  char *source;      /* where its figures come from */
  char **assumption; /* [assumptions] what the source does not say, and what was taken instead, a sentence each */
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

/* `spec` is a synthetic string ("ndv4:2,nic=25"; polyccl_topology_synthetic() lists them; "host" is this machine by
 * hwloc), or the path of a file: JSON, the XML that NCCL writes to NCCL_TOPO_DUMP_FILE, hwloc's XML, TACCL's JSON.
 * "PATH:4" joins four of the machine in the file by a network. What begins with the name of a shipped machine is that
 * machine, all else a path. INVALID: one clear error with its place. */
POLYCCL_API polyccl_result polyccl_topology_open(const char *spec, polyccl_topology **topology);

/* What NCCL's XML leaves open where it lists a virtual machine's PCIe devices only. NULL: not known;
 * POLYCCL_TOPOLOGY_NO_HINTS has none. */
typedef struct polyccl_topology_hints {
  size_t size;     /* sizeof(polyccl_topology_hints) */
  const char *gpu; /* a shipped device model: "H100-SXM5"; it is taken for every GPU of the file */
  const char *nic; /* "ConnectX-7", or Gb/s: "400" */
} polyccl_topology_hints;

#define POLYCCL_TOPOLOGY_NO_HINTS ((polyccl_topology_hints){.size = sizeof(polyccl_topology_hints)})

/* As polyccl_topology_open(), with hints (NULL: none). INVALID where there are hints and `spec` is no file of NCCL's.
 */
POLYCCL_API polyccl_result polyccl_topology_open_hinted(const char *spec, const polyccl_topology_hints *hints,
                                                        polyccl_topology **topology);

/* The same for text of one of these kinds (told apart by the content); `name` stands for it in messages. */
POLYCCL_API polyccl_result polyccl_topology_parse(const char *name, const char *text, size_t length,
                                                  polyccl_topology **topology);
POLYCCL_API void polyccl_topology_destroy(polyccl_topology *topology); /* NULL is fine */

typedef struct polyccl_synthetic {
  const char *name, *help, *source; /* source: of the figures */
} polyccl_synthetic;

/* The machines that synthetic strings know; the list ends with a NULL name. */
POLYCCL_API const polyccl_synthetic *polyccl_topology_synthetic(void);

/* The links that a message takes from rank `src` to rank `dst`, in order: the quickest way for 64 KiB, through other
 * devices only where there is no other way, inside a machine where possible. Equal ways are shared out over (src, dst),
 * always the same. `*count` is the length of the route (0 when src == dst); the first `capacity` links are stored.
 * Errors: a rank out of range, no memory. */
POLYCCL_API polyccl_result polyccl_topology_route(const polyccl_topology *topology, int src, int dst, int32_t *links,
                                                  size_t capacity, size_t *count);

/* True when `src` can send to `dst` without another device on the way (ring:8 links neighbours only); false for ranks
 * out of range. */
POLYCCL_API bool polyccl_topology_linked(const polyccl_topology *topology, int src, int dst);

/* The model for a call of `bytes`: copy, reduce and local bandwidths taken from `rate`, between two sizes in proportion
 * to the logarithms, beyond the ends as at the ends. The strings are the model's. */
POLYCCL_API polyccl_device_model polyccl_device_model_at(const polyccl_device_model *model, uint64_t bytes);

POLYCCL_API const char *polyccl_node_kind_name(polyccl_node_kind kind); /* "device", "switch", "nic", "host" */

/* For people; JSON that reads back equal; a picture. SYSTEM when `to` does not take it. */
POLYCCL_API polyccl_result polyccl_topology_write_text(const polyccl_topology *topology, FILE *to);
POLYCCL_API polyccl_result polyccl_topology_write_json(const polyccl_topology *topology, FILE *to);
POLYCCL_API polyccl_result polyccl_topology_write_svg(const polyccl_topology *topology, FILE *to);

#ifdef __cplusplus
}
#endif

#endif
