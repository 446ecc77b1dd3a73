/* Reading the topology XML of NCCL and RCCL, in three stages:
 *
 *   nccl_xml_parse.c   text -> elements with their attributes, in the file's order
 *   nccl_xml.c         elements -> machines, hosts, PCIe, NICs; nccl_xml_gpu.c: GPUs
 *   nccl_xml_fabric.c  NVLink and xGMI (nccl_xml_links.c), links between sockets, the network between machines
 *
 * with the attributes' values in nccl_xml_values.c and the figures that the file does not give in nccl_xml_rates.c.
 *
 * A file is refused for its shape only. A value that cannot be used is replaced as NCCL replaces it, and so is one that
 * is missing. pccl_nccl_assume() keeps what was taken instead, and the topology says so. */
#ifndef PCCL_TOPOLOGY_NCCL_XML_H
#define PCCL_TOPOLOGY_NCCL_XML_H

#include "base/vec.h"
#include "topology/machines.h"

enum {
  PCCL_NCCL_MAX_GPUS = 4096,
  PCCL_NCCL_MAX_GPUS_OF_PCI = 64,
  PCCL_NCCL_MAX_SOCKETS = 256, /* of a host: a link joins any two */
  PCCL_NCCL_NAME = 64
};

typedef enum pccl_nccl_kind {
  PCCL_NCCL_SYSTEM,
  PCCL_NCCL_CPU,
  PCCL_NCCL_PCI,
  PCCL_NCCL_GPU,
  PCCL_NCCL_NVLINK,
  PCCL_NCCL_XGMI,
  PCCL_NCCL_C2C,
  PCCL_NCCL_NIC,
  PCCL_NCCL_NET
} pccl_nccl_kind;

/* Children come after their parent. -1: none. */
typedef struct pccl_nccl_element {
  pccl_nccl_kind kind;
  int32_t parent, first_child, last_child, next; /* next: sibling */
  unsigned long line;
  size_t attribute, attributes; /* the first in `attributes` of the file, how many */
  bool bridge;                  /* pci: other pci elements hang on it */
  int32_t nets;                 /* net elements right in it */
  /* set while the topology is built */
  int32_t host, node; /* node: cpu, and pci that became a switch */
  double pcie;        /* pci: GB/s of its link up; 0: not yet asked for */
} pccl_nccl_element;

/* Offsets into `text`. */
typedef struct pccl_nccl_attribute {
  size_t name, value;
} pccl_nccl_attribute;

/* A host is an operating system with its CPUs; a machine of the topology is one host, or all that share a fabric. */
typedef struct pccl_nccl_host {
  char hash[PCCL_NCCL_NAME], name[PCCL_NCCL_NAME]; /* name: what its nodes' names begin with */
  int32_t machine, cpus;
  bool arm, outer_switch; /* outer_switch: NVLinks lead to switches outside the host */
} pccl_nccl_host;

typedef struct pccl_nccl_gpu {
  int32_t element; /* of kind gpu, or the pci element that stands for a GPU */
  int32_t host, pci, node;
  int32_t port;  /* where its links are attached: the node itself, or the switch that the ranks of the GPU share */
  int32_t parts; /* partitions of the GPU, which share its links */
  long part, rank, dev; /* part, rank: -1 none */
  uint64_t busid;
  bool has_busid, primary, implied; /* primary: the first of its partition, whose links count */
} pccl_nccl_gpu;

typedef struct pccl_nccl_nic {
  int32_t node, element;
  double bandwidth; /* GB/s of the network */
} pccl_nccl_nic;

typedef struct pccl_nccl_assumption {
  char *text;
  unsigned long line; /* of the first; 0: of no one place */
  size_t count;
} pccl_nccl_assumption;

typedef struct pccl_nccl {
  const char *file;
  const polyccl_topology_hints *hints;
  pccl_builder builder;
  polyccl_result result; /* sticky */
  PCCL_VEC(pccl_nccl_element) elements;
  PCCL_VEC(pccl_nccl_attribute) attributes;
  PCCL_VEC(char) text;
  PCCL_VEC(pccl_nccl_host) hosts;
  PCCL_VEC(pccl_nccl_gpu) gpus;
  PCCL_VEC(pccl_nccl_nic) nics;
  pccl_map nic_names; /* a hash of host, name and number -> index into nics */
  PCCL_VEC(pccl_nccl_assumption) assumptions;
  size_t more_assumptions; /* that found no room */
} pccl_nccl;

static inline pccl_nccl_element *pccl_nccl_at(pccl_nccl *n, int32_t element) { return &n->elements.data[element]; }

/* ---- nccl_xml_parse.c ---- */

polyccl_result pccl_nccl_parse(pccl_nccl *n, const char *text, size_t length);

/* ---- nccl_xml_values.c ---- */

/* Fails with a message at the line of an element. Only the first failure is kept. */
void pccl_nccl_refuse(pccl_nccl *n, int32_t element, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Keeps a sentence that says what was taken instead of a value. The same text from several elements counts as one. */
void pccl_nccl_assume(pccl_nccl *n, int32_t element, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Hands the assumptions to the topology. */
polyccl_result pccl_nccl_tell_assumptions(pccl_nccl *n);

/* NULL: the element has no such attribute. Values are printable ASCII. */
const char *pccl_nccl_value(const pccl_nccl *n, int32_t element, const char *name);
bool pccl_nccl_starts(const pccl_nccl *n, int32_t element, const char *name, const char *prefix);

/* Reads a number, which text may follow ("16.0 GT/s PCIe"). False: there is none, or it is out of the bounds. */
bool pccl_nccl_number(const pccl_nccl *n, int32_t element, const char *name, double min, double max, double *number);

/* Reads a bus id as NCCL compares them: "0000:0a:00.0" is the number of all its hexadecimal digits. */
bool pccl_nccl_busid(const char *text, uint64_t *id);

/* True for "fffffff:ff:ff.0" and the like, which stand for a switch that the host does not see. */
bool pccl_nccl_busid_hidden(const char *text);

/* GB/s of a pci element's link up. */
double pccl_nccl_pcie(pccl_nccl *n, int32_t pci);

/* ---- nccl_xml_rates.c: docs/topology.md has the tables ---- */

/* GB/s of one NVLink or xGMI link of the GPU. */
double pccl_nccl_nvlink_rate(pccl_nccl *n, const pccl_nccl_gpu *gpu);
double pccl_nccl_xgmi_rate(pccl_nccl *n, const pccl_nccl_gpu *gpu);

/* GB/s from this socket to the other sockets of its host. */
double pccl_nccl_socket_rate(pccl_nccl *n, int32_t cpu);

/* GB/s of a NIC that the file lists only as a PCIe device; `pcie` is the rate of its PCIe link. */
double pccl_nccl_device_nic_rate(pccl_nccl *n, int32_t pci, double pcie);
polyccl_result pccl_nccl_check_hints(const polyccl_topology_hints *hints);

/* The index of the device model of a GPU in the topology; -1 after a failure. */
int32_t pccl_nccl_model(pccl_nccl *n, const pccl_nccl_gpu *gpu);

/* The fabric of machines whose GPUs the file lists only as PCIe devices. */
typedef struct pccl_nccl_fabric {
  const char *model; /* what the model's name begins with; NULL ends the table */
  int links;         /* of a GPU: to the switch, or to each other GPU */
  double rate;       /* GB/s of a link */
  bool mesh;
} pccl_nccl_fabric;

const pccl_nccl_fabric *pccl_nccl_fabric_of(const char *model); /* NULL: not known */

/* The largest number of GPUs in one NVLink domain. */
int32_t pccl_nccl_domain_size(const pccl_nccl *n, const pccl_nccl_gpu *gpu);

/* ---- nccl_xml.c, nccl_xml_gpu.c, nccl_xml_links.c, nccl_xml_fabric.c ---- */

void pccl_nccl_build_gpu(pccl_nccl *n, int32_t gpu);
void pccl_nccl_build_implied_gpu(pccl_nccl *n, int32_t pci);

/* The node that the contents of an element are attached to. It makes switches of pci elements. -1: the element is in no
 * cpu element. */
int32_t pccl_nccl_hang_on(pccl_nccl *n, int32_t element);

bool pccl_nccl_built(pccl_nccl *n); /* true while nothing has failed, neither here nor in the builder */

/* The cpu element that an element is in; -1: none. */
int32_t pccl_nccl_cpu_of(const pccl_nccl *n, int32_t element);

/* What a link element leads to. */
typedef enum pccl_nccl_target { PCCL_NCCL_TO_GPU, PCCL_NCCL_TO_SWITCH, PCCL_NCCL_TO_CPU } pccl_nccl_target;
pccl_nccl_target pccl_nccl_target_of(const pccl_nccl *n, int32_t link);

/* True for a link to NVSwitches that the host does not see. */
bool pccl_nccl_leaves_host(const pccl_nccl *n, int32_t link);

/* GB/s from the GPU to its CPU over C2C or NVLink; 0: none. */
double pccl_nccl_to_cpu(pccl_nccl *n, const pccl_nccl_gpu *gpu, const char **type);

/* NVLinks or xGMI links from one GPU to another, or to its machine's NVSwitch (to: -1). Both are indices into gpus. */
typedef struct pccl_nccl_wire {
  int32_t from, to;
  bool xgmi;
  double bandwidth; /* GB/s */
} pccl_nccl_wire;

typedef PCCL_VEC(pccl_nccl_wire) pccl_nccl_wires;

/* Appends the wires of all GPUs: those that the file lists, else those that machines with such GPUs always have. Sets
 * n->result on failure; the caller frees `all`. */
void pccl_nccl_find_wires(pccl_nccl *n, pccl_nccl_wires *all);

/* Adds the links between sockets, between GPUs and between machines. */
polyccl_result pccl_nccl_join(pccl_nccl *n);

#endif
