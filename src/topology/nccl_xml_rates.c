/* The figures that NCCL's files do not give. They are those that NCCL and RCCL take for a link of each generation
 * (src/graph/topo.h), and those of the shipped device models. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "topology/nccl_xml.h"

/* ---- NVLink and xGMI ---- */

static long compute_capability(const pccl_nccl *n, int32_t gpu) {
  double sm;
  return pccl_nccl_number(n, gpu, "sm", 0, 10000, &sm) ? (long)sm : 0;
}

double pccl_nccl_nvlink_rate(pccl_nccl *n, const pccl_nccl_gpu *gpu) {
  static const struct {
    long from;
    double rate;
    const char *name;
  } generations[] = {{100, 40.1, "sm_100"}, {90, 20.6, "sm_90"}, {87, 20, "sm_80"}, {86, 12, "sm_86"},
                     {80, 20, "sm_80"},     {70, 20, "sm_70"},   {60, 18, "sm_60"}, {0, 20, "sm_80"}};
  static const long known[] = {60, 70, 75, 80, 86, 90, 100, 103};
  long sm = compute_capability(n, gpu->element);
  size_t i = 0;
  while (sm < generations[i].from) {
    i++;
  }
  for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
    if (known[k] == sm) {
      return generations[i].rate;
    }
  }
  const char *text = pccl_nccl_value(n, gpu->element, "sm");
  pccl_nccl_assume(n, gpu->element,
                   "a GPU has sm=\"%.20s\", which is not known; its NVLinks have %g GB/s each, the figure of %s",
                   text != NULL ? text : "", generations[i].rate, generations[i].name);
  return generations[i].rate;
}

/* "gfx942:sramecc+" and the numbers that RCCL wrote before: 910 is gfx90a. */
static void read_architecture(const pccl_nccl *n, int32_t gpu, char *name, size_t size) {
  const char *gcn = pccl_nccl_value(n, gpu, "gcn");
  if (gcn == NULL || strcmp(gcn, "0") == 0) {
    name[0] = '\0';
  } else if (strcmp(gcn, "910") == 0) {
    snprintf(name, size, "gfx90a");
  } else if (gcn[0] >= '0' && gcn[0] <= '9') {
    snprintf(name, size, "gfx%.20s", gcn);
  } else {
    snprintf(name, size, "%.*s", (int)strcspn(gcn, ":"), gcn);
  }
}

double pccl_nccl_xgmi_rate(pccl_nccl *n, const pccl_nccl_gpu *gpu) {
  static const struct {
    const char *prefix;
    double rate;
  } generations[] = {{"gfx906", 24}, {"gfx908", 24}, {"gfx90a", 36}, {"gfx94", 48}, {"gfx95", 48}};
  char name[PCCL_NCCL_NAME];
  read_architecture(n, gpu->element, name, sizeof name);
  for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++) {
    if (strncmp(name, generations[i].prefix, strlen(generations[i].prefix)) == 0) {
      return generations[i].rate;
    }
  }
  pccl_nccl_assume(
      n, gpu->element,
      "a GPU has gcn=\"%.20s\", which is not known; its xGMI links have 24 GB/s each, the figure of gfx906", name);
  return 24;
}

int32_t pccl_nccl_domain_size(const pccl_nccl *n, const pccl_nccl_gpu *gpu) {
  long sm = compute_capability(n, gpu->element);
  return sm >= 90 && sm < 100 ? 32 : 72; /* GH200 NVL32; GB200 and GB300 NVL72 */
}

/* ---- sockets ---- */

static bool text_is(const char *value, const char *text) { return value != NULL && strcmp(value, text) == 0; }

static double intel_rate(pccl_nccl *n, int32_t cpu) {
  double family, model;
  if (!pccl_nccl_number(n, cpu, "familyid", 0, 1e6, &family) || !pccl_nccl_number(n, cpu, "modelid", 0, 1e6, &model)) {
    pccl_nccl_assume(
        n, cpu, "an Intel cpu has no familyid or modelid; 6 GB/s to other sockets are taken, the figure of the oldest");
    return 6;
  }
  if (family != 6) {
    return 6;
  }
  return model >= 0xcf ? 40 : model >= 0x8f ? 22 : model >= 0x55 ? 10 : 6; /* Emerald and Sapphire Rapids, Skylake */
}

double pccl_nccl_socket_rate(pccl_nccl *n, int32_t cpu) {
  const char *arch = pccl_nccl_value(n, cpu, "arch"), *vendor = pccl_nccl_value(n, cpu, "vendor");
  if (pccl_nccl_starts(n, cpu, "arch", "ppc64")) {
    return 32;
  }
  if (text_is(arch, "arm64") || text_is(arch, "aarch64")) {
    return 6;
  }
  if (text_is(arch, "x86_64") && text_is(vendor, "GenuineIntel")) {
    return intel_rate(n, cpu);
  }
  if (text_is(arch, "x86_64") && text_is(vendor, "AuthenticAMD")) {
    return 16;
  }
  if (text_is(arch, "x86_64") && (text_is(vendor, "CentaurHauls") || text_is(vendor, "  Shanghai  "))) {
    double family = 0, model = 0;
    return pccl_nccl_number(n, cpu, "familyid", 7, 7, &family) &&
                   pccl_nccl_number(n, cpu, "modelid", 0x5b, 0x5b, &model)
               ? 9
               : 6;
  }
  pccl_nccl_assume(n, cpu,
                   "a cpu has arch=\"%.20s\" vendor=\"%.20s\", which is not known; 16 GB/s to other sockets are taken",
                   arch != NULL ? arch : "", vendor != NULL ? vendor : "");
  return 16;
}

/* ---- what a PCI device is ---- */

static bool read_hex(const char *text, int *number) {
  char *end = NULL;
  unsigned long value = text != NULL ? strtoul(text, &end, 16) : 0;
  *number = (int)value;
  return text != NULL && end != text && *end == '\0' && value <= 0xffff;
}

/* NULL: the device is not in the table, or the element does not name it. */
static const pccl_pci_device *device_of(const pccl_nccl *n, int32_t pci) {
  int vendor, device;
  return read_hex(pccl_nccl_value(n, pci, "vendor"), &vendor) && read_hex(pccl_nccl_value(n, pci, "device"), &device)
             ? pccl_pci_device_find(vendor, device)
             : NULL;
}

/* Gb/s of "ConnectX-7" or "400"; 0: neither. */
static double nic_hint(const char *text) {
  char *end;
  double rate = strtod(text, &end);
  if (end != text && *end == '\0' && rate >= 0.1 && rate <= 1e5) {
    return rate;
  }
  return pccl_pci_nic_rate(text);
}

polyccl_result pccl_nccl_check_hints(const polyccl_topology_hints *hints) {
  if (hints == NULL) {
    return POLYCCL_SUCCESS;
  }
  if (hints->gpu != NULL && pccl_known_model_find(hints->gpu) == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "no shipped model has the name of the gpu, \"%.60s\"", hints->gpu);
  }
  if (hints->nic != NULL && nic_hint(hints->nic) == 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID,
                     "nic \"%.60s\" is neither a model that is known (%s ...) nor a number of Gb/s", hints->nic,
                     "ConnectX-6, ConnectX-7, EFA");
  }
  return POLYCCL_SUCCESS;
}

double pccl_nccl_device_nic_rate(pccl_nccl *n, int32_t pci, double pcie) {
  if (n->hints != NULL && n->hints->nic != NULL) {
    return nic_hint(n->hints->nic) / 8;
  }
  const pccl_pci_device *known = device_of(n, pci);
  if (known != NULL && known->nic > 0) {
    pccl_nccl_assume(n, pci, "a pci element stands for a NIC, by its device number of model %s; %g Gb/s are taken",
                     known->name, known->nic);
    return known->nic / 8;
  }
  pccl_nccl_assume(
      n, pci, "a pci element stands for a NIC of unknown model; the rate of its PCIe link is taken, %g GB/s", pcie);
  return pcie;
}

/* ---- device models ---- */

static const polyccl_device_model *shipped_model(const char *name) {
  return name != NULL ? pccl_known_model_find(name) : NULL;
}

/* The nearest model that ships for each generation and device. `own` is false where it is the model of another device;
 * an assumption says so. */
static const struct {
  const char *generation, *model;
  bool own;
} nearest_models[] = {
    {"70", "V100-SXM2", true},   {"80", "A100-SXM4-40GB", true}, {"90", "H100-SXM5", true},
    {"100", "B200", true},       {"103", "B300", true},          {"103", "B200", false},
    {"gfx940", "MI300X", false}, {"gfx941", "MI300X", false},    {"gfx942", "MI300X", true},
    {"gfx950", "MI350X", true},  {"B300", "B200", false},        {"A100-SXM4-80GB", "A100-SXM4-40GB", false}};

/* NULL: none ships. */
static const polyccl_device_model *nearest_model(pccl_nccl *n, const pccl_nccl_gpu *gpu, const char *generation) {
  for (size_t i = 0; i < sizeof nearest_models / sizeof nearest_models[0]; i++) {
    const polyccl_device_model *model = shipped_model(nearest_models[i].model);
    if (model != NULL && strcmp(nearest_models[i].generation, generation) == 0) {
      if (!nearest_models[i].own) {
        bool number = generation[0] >= '0' && generation[0] <= '9';
        pccl_nccl_assume(n, gpu->element, "no device model ships for %s%s; the figures of %s are taken",
                         number ? "sm_" : "", generation, model->name);
      }
      return model;
    }
  }
  return NULL;
}

/* By hint, by the PCI device, by the generation. NULL: none ships. */
static const polyccl_device_model *find_model(pccl_nccl *n, const pccl_nccl_gpu *gpu, const char *gcn) {
  if (n->hints != NULL && n->hints->gpu != NULL) {
    return shipped_model(n->hints->gpu);
  }
  const pccl_pci_device *known = device_of(n, gpu->pci);
  const char *sm = gpu->implied ? NULL : pccl_nccl_value(n, gpu->element, "sm");
  if (known != NULL && known->nic == 0 && shipped_model(known->name) != NULL) {
    return shipped_model(known->name);
  }
  if (gcn[0] != '\0' || sm != NULL) {
    return nearest_model(n, gpu, gcn[0] != '\0' ? gcn : sm);
  }
  return known != NULL && known->nic == 0 ? nearest_model(n, gpu, known->name) : NULL;
}

int32_t pccl_nccl_model(pccl_nccl *n, const pccl_nccl_gpu *gpu) {
  char made[PCCL_NCCL_NAME], gcn[PCCL_NCCL_NAME] = "";
  const char *sm = gpu->implied ? NULL : pccl_nccl_value(n, gpu->element, "sm");
  if (!gpu->implied) {
    read_architecture(n, gpu->element, gcn, sizeof gcn);
  }
  const polyccl_device_model *found = find_model(n, gpu, gcn);
  polyccl_device_model model = found != NULL ? *found : pccl_known_models[0].model;
  if (found == NULL) {
    bool amd = gcn[0] != '\0' || text_is(pccl_nccl_value(n, gpu->pci, "vendor"), "0x1002");
    const char *kind = amd ? gcn : sm != NULL ? sm : "";
    snprintf(made, sizeof made, "%s%s%.20s", amd ? "AMD" : "NVIDIA",
             kind[0] == '\0' ? " GPU"
             : amd           ? " "
                             : " sm_",
             kind);
    model.name = made;
    model.vendor = amd ? "amd" : "nvidia";
    if (gpu->implied) {
      pccl_nccl_assume(n, gpu->element,
                       "a pci element stands for a GPU of unknown model; generic figures and no NVLink are taken");
    } else {
      pccl_nccl_assume(n, gpu->element, "no device model ships for %s; generic figures are taken", made);
    }
  }
  int32_t index = pccl_add_model(&n->builder, &model);
  pccl_nccl_built(n);
  return index;
}

const pccl_nccl_fabric *pccl_nccl_fabric_of(const char *model) {
  static const pccl_nccl_fabric fabrics[] = {
      {"A100-SXM4", 12, 20, false}, {"H100-SXM", 18, 20.6, false}, {"H200", 18, 20.6, false},
      {"B200", 18, 40.1, false},    {"B300", 18, 40.1, false},     {"GB200", 18, 40.1, false},
      {"GB300", 18, 40.1, false},   {"MI300X", 1, 48, true},       {"MI325X", 1, 48, true},
      {"MI350X", 1, 48, true},      {"MI355X", 1, 48, true},       {NULL, 0, 0, false},
  };
  for (const pccl_nccl_fabric *f = fabrics; f->model != NULL; f++) {
    if (strncasecmp(model, f->model, strlen(f->model)) == 0) {
      return f;
    }
  }
  return NULL;
}
