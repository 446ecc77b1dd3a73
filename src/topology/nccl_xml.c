/* The topology XML that NCCL and RCCL write to NCCL_TOPO_DUMP_FILE: a tree of cpu, pci, gpu, nic and net elements, with
 * the NVLinks of each GPU by the bus id of what they lead to. docs/topology.md says what is taken from it. */
#include <expat.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"
#include "topology/machines.h"

enum { MAX_DEPTH = 64, MAX_GPUS = 4096, MAX_FABRIC_LINKS = 1 << 17, BUSID = 40 };

static const double SOCKET_BANDWIDTH = 40, NVLINK_BANDWIDTH = 25, XGMI_BANDWIDTH = 64, NVLINK_LATENCY = 0.2;

typedef enum element { ELEMENT_SYSTEM, ELEMENT_CPU, ELEMENT_PCI, ELEMENT_GPU, ELEMENT_NIC, ELEMENT_OTHER } element;

/* An open element. `node` is what its children hang on; -1: nothing yet (a pci that has had no child). */
typedef struct frame {
  element what;
  int32_t node, machine;
  double bandwidth; /* pci: of its link up */
  char busid[BUSID];
  bool amd;
} frame;

typedef struct gpu {
  int32_t node, machine;
  long rank, dev;
  char busid[BUSID];
} gpu;

/* NVLinks or xGMI links of one GPU to one target. */
typedef struct fabric_link {
  int32_t gpu; /* index into gpus */
  char target[BUSID];
  bool to_switch, xgmi;
  double bandwidth;
} fabric_link;

typedef struct xml_machine {
  char hash[64];
  int32_t machine, nvswitch, last_host;
  int32_t hosts;
} xml_machine;

typedef struct nic {
  int32_t node;
  double bandwidth; /* of the network */
} nic;

typedef struct reader {
  const char *file;
  XML_Parser parser;
  pccl_builder builder;
  frame stack[MAX_DEPTH];
  int depth, skipped; /* skipped: open elements inside one that is not known */
  PCCL_VEC(gpu) gpus;
  PCCL_VEC(fabric_link) fabric;
  PCCL_VEC(xml_machine) machines;
  PCCL_VEC(nic) nics;
  polyccl_result result;
} reader;

static void stop(reader *r, polyccl_result result) {
  if (r->result == POLYCCL_SUCCESS) {
    r->result = pccl_prefix(result, "%s:%lu: ", r->file, XML_GetCurrentLineNumber(r->parser));
    XML_StopParser(r->parser, XML_FALSE);
  }
}

static void wrong(reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void wrong(reader *r, const char *format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  stop(r, pccl_fail(POLYCCL_ERROR_INVALID, "%s", message));
}

/* A sticky builder call has failed, or not. */
static bool built(reader *r) {
  if (r->builder.result != POLYCCL_SUCCESS) {
    stop(r, r->builder.result);
  }
  return r->result == POLYCCL_SUCCESS;
}

static const char *attribute(const char **attributes, const char *name, const char *preset) {
  for (; attributes[0] != NULL; attributes += 2) {
    if (strcmp(attributes[0], name) == 0) {
      return attributes[1];
    }
  }
  return preset;
}

/* A number within bounds; `preset` when the attribute is absent or empty. */
static double number(reader *r, const char **attributes, const char *name, double preset, double least, double most) {
  const char *text = attribute(attributes, name, "");
  char *end = NULL;
  double value = strtod(text, &end);
  if (text[0] == '\0') {
    return preset;
  }
  if (end == text || *end != '\0' || !(value >= least && value <= most)) {
    wrong(r, "%s=\"%.60s\" is not a number within %g .. %g", name, text, least, most);
    return preset;
  }
  return value;
}

static bool copy_busid(reader *r, char *to, const char *text) {
  if (strlen(text) >= BUSID) {
    wrong(r, "a bus id of %zu bytes", strlen(text));
    return false;
  }
  strcpy(to, text);
  return true;
}

/* ---- machines and hosts ---- */

static xml_machine *machine_of(reader *r, const char *hash) {
  for (size_t i = 0; i < r->machines.len; i++) {
    if (strcmp(r->machines.data[i].hash, hash) == 0) {
      return &r->machines.data[i];
    }
  }
  xml_machine machine = {.nvswitch = -1, .last_host = -1};
  if (strlen(hash) >= sizeof machine.hash || r->machines.len >= 4096) {
    wrong(r, "host_hash of %zu bytes, or more than 4096 of them", strlen(hash));
    return NULL;
  }
  strcpy(machine.hash, hash);
  char name[32];
  snprintf(name, sizeof name, "m%zu", r->machines.len);
  polyccl_result result = pccl_builder_machine(&r->builder, name, &machine.machine);
  if (result == POLYCCL_SUCCESS && !pccl_vec_push(&r->machines, machine)) {
    result = pccl_no_memory("machines");
  }
  if (result != POLYCCL_SUCCESS) {
    stop(r, result);
    return NULL;
  }
  return &r->machines.data[r->machines.len - 1];
}

static void open_cpu(reader *r, frame *f, const char **attributes) {
  xml_machine *machine = machine_of(r, attribute(attributes, "host_hash", ""));
  if (machine == NULL) {
    return;
  }
  f->machine = machine->machine;
  f->node = pccl_add_node(&r->builder, POLYCCL_NODE_HOST, f->machine, -1, -1, "m%d.cpu%d", (int)machine->machine,
                          (int)machine->hosts++);
  if (machine->last_host >= 0) {
    pccl_add_pair(&r->builder, machine->last_host, f->node, "socket", SOCKET_BANDWIDTH, PCCL_SOCKET_LATENCY);
  }
  machine->last_host = f->node;
  built(r);
}

/* ---- PCIe ---- */

/* GB/s of "16.0 GT/s PCIe" by 16 lanes; what a virtual machine hides is taken for PCIe 3.0 x16. */
static double pcie_bandwidth(reader *r, const char **attributes) {
  double speed = strtod(attribute(attributes, "link_speed", ""), NULL);
  double width = number(r, attributes, "link_width", 0, 0, 64);
  if (!(speed >= 1 && speed <= 1000) || width < 1) {
    return 15.75;
  }
  double coding = speed < 8 ? 0.8 : 128.0 / 130.0;
  return speed * width * coding / 8;
}

static void open_pci(reader *r, frame *f, const char **attributes) {
  f->bandwidth = pcie_bandwidth(r, attributes);
  f->amd = strcmp(attribute(attributes, "vendor", ""), "0x1002") == 0;
  copy_busid(r, f->busid, attribute(attributes, "busid", ""));
}

/* The node that the element at `depth` hangs on; pci elements above it become switches. */
static int32_t hang_on(reader *r, int depth) {
  if (depth < 0 || r->stack[depth].what == ELEMENT_SYSTEM) {
    return -1;
  }
  frame *f = &r->stack[depth];
  if (f->what != ELEMENT_PCI) {
    return f->node >= 0 ? f->node : hang_on(r, depth - 1);
  }
  if (f->node < 0) {
    int32_t up = hang_on(r, depth - 1);
    if (up < 0) {
      return -1;
    }
    f->node = pccl_add_node(&r->builder, POLYCCL_NODE_SWITCH, f->machine, -1, -1, "m%d.pci%zu.%s", (int)f->machine,
                            r->builder.topology->nodes, f->busid);
    pccl_add_pair(&r->builder, f->node, up, "PCIe", f->bandwidth, PCCL_PCIE_LATENCY);
  }
  return f->node;
}

/* ---- GPUs ---- */

static int32_t gpu_model(reader *r, const char **attributes, bool amd) {
  const char *sm = attribute(attributes, "sm", ""), *gcn = attribute(attributes, "gcn", "");
  const char *name = strcmp(sm, "70") == 0            ? "V100-SXM2"
                     : strcmp(sm, "80") == 0          ? "A100-SXM4-40GB"
                     : strcmp(sm, "90") == 0          ? "H100-SXM5"
                     : strncmp(gcn, "gfx942", 6) == 0 ? "MI300X"
                     : strcmp(gcn, "942") == 0        ? "MI300X"
                                                      : NULL;
  polyccl_device_model model = pccl_known_models[0].model;
  char made[64];
  if (name != NULL) {
    model = *pccl_known_model_find(name);
  } else {
    amd = amd || gcn[0] != '\0';
    snprintf(made, sizeof made, "%s %s%.20s", amd ? "AMD" : "NVIDIA", amd ? "" : "sm_", amd ? gcn : sm);
    model.name = made;
    model.vendor = amd ? "amd" : "nvidia";
  }
  for (size_t i = 0; i < r->builder.topology->models; i++) {
    if (strcmp(r->builder.topology->model[i].name, model.name) == 0) {
      return (int32_t)i;
    }
  }
  int32_t index = -1;
  polyccl_result result = pccl_builder_model(&r->builder, &model, &index);
  if (result != POLYCCL_SUCCESS) {
    stop(r, result);
  }
  return index;
}

static void open_gpu(reader *r, frame *f, const char **attributes) {
  frame *pci = r->depth > 0 ? &r->stack[r->depth - 1] : NULL;
  if (pci == NULL || pci->what != ELEMENT_PCI) {
    wrong(r, "a gpu that is not in a pci element");
    return;
  }
  if (pci->node >= 0) {
    wrong(r, "a gpu beside other elements in its pci element");
    return;
  }
  gpu g = {.machine = f->machine};
  g.dev = (long)number(r, attributes, "dev", (double)r->gpus.len, 0, 1e6);
  g.rank = (long)number(r, attributes, "rank", -1, -1, 1e6);
  strcpy(g.busid, pci->busid);
  int32_t model = gpu_model(r, attributes, pci->amd), up = hang_on(r, r->depth - 2);
  if (r->result != POLYCCL_SUCCESS) {
    return;
  }
  if (up < 0 || r->gpus.len >= MAX_GPUS) {
    wrong(r, up < 0 ? "a gpu that is in no cpu element" : "too many gpus");
    return;
  }
  g.node = pccl_add_node(&r->builder, POLYCCL_NODE_DEVICE, f->machine, model, -1, "m%d.gpu%ld", (int)f->machine, g.dev);
  pccl_add_pair(&r->builder, g.node, up, "PCIe", pci->bandwidth, PCCL_PCIE_DEVICE_LATENCY);
  pci->node = f->node = g.node;
  if (built(r) && !pccl_vec_push(&r->gpus, g)) {
    stop(r, pccl_no_memory("GPUs"));
  }
}

static void open_fabric_link(reader *r, const char **attributes, bool xgmi) {
  if (r->depth < 1 || r->stack[r->depth - 1].what != ELEMENT_GPU || r->gpus.len == 0) {
    wrong(r, "an nvlink that is not in a gpu element");
    return;
  }
  const char *class = attribute(attributes, "tclass", "");
  if (strncmp(class, "0x03", 4) != 0 && strncmp(class, "0x12", 4) != 0 && strcmp(class, "0x068000") != 0) {
    return; /* to a CPU or a NIC: PCIe is there for that */
  }
  double count = number(r, attributes, "count", 1, 1, 1000);
  fabric_link link = {.gpu = (int32_t)r->gpus.len - 1, .to_switch = strcmp(class, "0x068000") == 0, .xgmi = xgmi};
  link.bandwidth = count * (xgmi ? XGMI_BANDWIDTH : NVLINK_BANDWIDTH);
  if (!copy_busid(r, link.target, attribute(attributes, "target", "")) || r->result != POLYCCL_SUCCESS) {
    return;
  }
  if (r->fabric.len >= MAX_FABRIC_LINKS || !pccl_vec_push(&r->fabric, link)) {
    stop(r, pccl_no_memory("NVLinks"));
  }
}

/* ---- NICs ---- */

static void open_net(reader *r, frame *f, const char **attributes) {
  double speed = number(r, attributes, "speed", 10000, -1, 1e8); /* Mb/s */
  double network = (speed <= 0 ? 10000 : speed) / 8000, pcie = network;
  int at = r->depth - 1; /* the nic element, in a pci element or right in a cpu element */
  if (at >= 0 && r->stack[at].what == ELEMENT_NIC) {
    at--;
  }
  if (at >= 0 && r->stack[at].what == ELEMENT_PCI) {
    pcie = r->stack[at--].bandwidth;
  }
  int32_t up = hang_on(r, at);
  if (up < 0) {
    wrong(r, "a net that is in no cpu element");
    return;
  }
  double bandwidth = pcie < network ? pcie : network;
  int32_t node = pccl_add_node(&r->builder, POLYCCL_NODE_NIC, f->machine, -1, -1, "m%d.nic%zu.%.60s", (int)f->machine,
                               r->nics.len, attribute(attributes, "name", "net"));
  pccl_add_pair(&r->builder, up, node, "PCIe", bandwidth, PCCL_PCIE_LATENCY);
  if (built(r) && !pccl_vec_push(&r->nics, (nic){node, bandwidth})) {
    stop(r, pccl_no_memory("NICs"));
  }
}

/* ---- the walk ---- */

static void XMLCALL start_element(void *user, const char *name, const char **attributes) {
  reader *r = user;
  if (r->skipped > 0 || r->result != POLYCCL_SUCCESS) {
    r->skipped++;
    return;
  }
  if (r->depth >= MAX_DEPTH) {
    wrong(r, "elements more than %d deep", MAX_DEPTH);
    return;
  }
  if ((r->depth == 0) != (strcmp(name, "system") == 0)) {
    wrong(r, "<%.60s>: a topology is one <system> element", name);
    return;
  }
  frame f = {.what = ELEMENT_OTHER, .node = -1, .machine = r->depth > 0 ? r->stack[r->depth - 1].machine : -1};
  if (strcmp(name, "system") == 0) {
    f.what = ELEMENT_SYSTEM;
  } else if (strcmp(name, "cpu") == 0) {
    f.what = ELEMENT_CPU;
    open_cpu(r, &f, attributes);
  } else if (strcmp(name, "pci") == 0) {
    f.what = ELEMENT_PCI;
    open_pci(r, &f, attributes);
  } else if (strcmp(name, "gpu") == 0) {
    f.what = ELEMENT_GPU;
    open_gpu(r, &f, attributes);
  } else if (strcmp(name, "nvlink") == 0 || strcmp(name, "xgmi") == 0) {
    open_fabric_link(r, attributes, name[0] == 'x');
  } else if (strcmp(name, "nic") == 0) {
    f.what = ELEMENT_NIC;
  } else if (strcmp(name, "net") == 0) {
    open_net(r, &f, attributes);
  } else {
    r->skipped = 1;
    return;
  }
  r->stack[r->depth++] = f;
}

static void XMLCALL end_element(void *user, const char *name) {
  (void)name;
  reader *r = user;
  if (r->skipped > 0) {
    r->skipped--;
  } else {
    r->depth--;
  }
}

static void XMLCALL refuse_entity(void *user, const char *name, int parameter, const char *value, int length,
                                  const char *base, const char *system, const char *public, const char *notation) {
  (void)parameter, (void)value, (void)length, (void)base, (void)system, (void)public, (void)notation;
  wrong(user, "entities (\"%.60s\") have no place in a topology", name);
}

/* ---- after the walk ---- */

static int by_number(const void *a, const void *b) {
  const gpu *x = a, *y = b;
  long order = x->rank != y->rank         ? x->rank - y->rank
               : x->machine != y->machine ? x->machine - y->machine
                                          : x->dev - y->dev;
  return order != 0 ? (order > 0) - (order < 0) : (x->node > y->node) - (x->node < y->node);
}

static int32_t find_gpu(const reader *r, int32_t machine, const char *busid) {
  for (size_t i = 0; i < r->gpus.len; i++) {
    if (r->gpus.data[i].machine == machine && strcmp(r->gpus.data[i].busid, busid) == 0) {
      return (int32_t)i;
    }
  }
  return -1;
}

static int by_ends(const void *a, const void *b) {
  const fabric_link *x = a, *y = b;
  int order = (x->gpu > y->gpu) - (x->gpu < y->gpu);
  return order != 0 ? order : strcmp(x->target, y->target);
}

/* All NVSwitches of a machine are one switch, which has the sum of a GPU's links as its port. */
static void join_switch(reader *r, xml_machine *machine, int32_t device, double bandwidth) {
  if (machine->nvswitch < 0) {
    machine->nvswitch = pccl_add_node(&r->builder, POLYCCL_NODE_SWITCH, machine->machine, -1, -1, "m%d.nvswitch",
                                      (int)machine->machine);
  }
  pccl_add_pair(&r->builder, r->gpus.data[device].node, machine->nvswitch, "NVLink", bandwidth, NVLINK_LATENCY);
}

/* Both GPUs list a link between them; one that only one of them lists counts too. */
static void join_gpus(reader *r, const fabric_link *links, size_t first, size_t count) {
  const fabric_link *link = &links[first];
  int32_t other = find_gpu(r, r->gpus.data[link->gpu].machine, link->target);
  if (other < 0 || other == link->gpu) {
    return;
  }
  uint64_t key = (uint64_t)(uint32_t)r->gpus.data[other].node << 32 | (uint32_t)r->gpus.data[link->gpu].node;
  if (pccl_map_get(&r->builder.pairs, key) != NULL) {
    return;
  }
  double bandwidth = 0;
  for (size_t i = first; i < first + count; i++) {
    bandwidth += links[i].bandwidth;
  }
  pccl_add_pair(&r->builder, r->gpus.data[link->gpu].node, r->gpus.data[other].node, link->xgmi ? "xGMI" : "NVLink",
                bandwidth, 2 * NVLINK_LATENCY);
}

static void join_fabric(reader *r) {
  for (size_t i = 0; i < r->fabric.len; i++) { /* switches first: all of a GPU's are one target */
    if (r->fabric.data[i].to_switch) {
      strcpy(r->fabric.data[i].target, "");
    }
  }
  if (r->fabric.len > 0) {
    qsort(r->fabric.data, r->fabric.len, sizeof *r->fabric.data, by_ends);
  }
  for (size_t i = 0; i < r->fabric.len && r->builder.result == POLYCCL_SUCCESS;) {
    size_t count = 1;
    double bandwidth = r->fabric.data[i].bandwidth;
    while (i + count < r->fabric.len && by_ends(&r->fabric.data[i], &r->fabric.data[i + count]) == 0) {
      bandwidth += r->fabric.data[i + count++].bandwidth;
    }
    if (r->fabric.data[i].to_switch) {
      int32_t device = r->fabric.data[i].gpu;
      join_switch(r, &r->machines.data[r->gpus.data[device].machine], device, bandwidth);
    } else {
      join_gpus(r, r->fabric.data, i, count);
    }
    i += count;
  }
}

static void join_machines(reader *r) {
  if (r->machines.len < 2) {
    return;
  }
  int32_t network = pccl_add_node(&r->builder, POLYCCL_NODE_SWITCH, -1, -1, -1, "network");
  for (size_t i = 0; i < r->nics.len && r->builder.result == POLYCCL_SUCCESS; i++) {
    pccl_add_pair(&r->builder, r->nics.data[i].node, network, "network", r->nics.data[i].bandwidth,
                  PCCL_NETWORK_LATENCY);
  }
}

static polyccl_result complete(reader *r) {
  if (r->gpus.len == 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "no gpu element");
  }
  join_fabric(r);
  join_machines(r);
  qsort(r->gpus.data, r->gpus.len, sizeof *r->gpus.data, by_number);
  for (size_t i = 0; i < r->gpus.len; i++) {
    r->builder.topology->node[r->gpus.data[i].node].rank = (int32_t)i;
  }
  return r->builder.result;
}

static polyccl_result read_xml(reader *r, const char *text, size_t length) {
  XML_SetUserData(r->parser, r);
  XML_SetElementHandler(r->parser, start_element, end_element);
  XML_SetEntityDeclHandler(r->parser, refuse_entity);
  enum { PIECE = 1 << 20 };
  for (size_t at = 0; at < length || length == 0; at += PIECE) {
    size_t piece = length - at < PIECE ? length - at : PIECE;
    enum XML_Status status = XML_Parse(r->parser, text + at, (int)piece, at + piece == length);
    if (r->result != POLYCCL_SUCCESS) {
      return r->result;
    }
    if (status != XML_STATUS_OK) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "%s:%lu:%lu: %s", r->file, XML_GetCurrentLineNumber(r->parser),
                       XML_GetCurrentColumnNumber(r->parser) + 1, XML_ErrorString(XML_GetErrorCode(r->parser)));
    }
  }
  polyccl_result result = complete(r);
  return result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "%s: ", r->file);
}

polyccl_result pccl_topology_read_xml(const char *name, const char *text, size_t length, polyccl_topology **topology) {
  reader *r = pccl_zeroed(1, sizeof *r);
  if (r == NULL) {
    return pccl_no_memory("reading a topology");
  }
  r->file = name;
  const char *slash = strrchr(name, '/');
  polyccl_result result = pccl_builder_start(&r->builder, slash != NULL ? slash + 1 : name,
                                             "NCCL's topology dump; shipped device models and latencies");
  r->parser = result == POLYCCL_SUCCESS ? XML_ParserCreate(NULL) : NULL;
  if (result == POLYCCL_SUCCESS) {
    result = r->parser != NULL ? read_xml(r, text, length) : pccl_no_memory("reading a topology");
  }
  if (result == POLYCCL_SUCCESS) {
    result = pccl_builder_finish(&r->builder, topology);
    result = result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "%s: ", name);
  } else if (r->builder.topology != NULL) {
    pccl_builder_abandon(&r->builder);
  }
  if (r->parser != NULL) {
    XML_ParserFree(r->parser);
  }
  pccl_vec_free(&r->gpus);
  pccl_vec_free(&r->fabric);
  pccl_vec_free(&r->machines);
  pccl_vec_free(&r->nics);
  free(r);
  return result;
}
