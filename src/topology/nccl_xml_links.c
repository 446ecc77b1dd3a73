/* The link elements of NCCL's XML (nvlink, xgmi, c2c): what each leads to, and what it carries. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "topology/nccl_xml.h"

/* GPUs by host and bus id. */
typedef struct address {
  int32_t host, gpu;
  uint64_t busid;
} address;

typedef PCCL_VEC(address) addresses;

static pccl_nccl_kind kind_of(const pccl_nccl *n, int32_t element) { return n->elements.data[element].kind; }

static const char *value_or(const pccl_nccl *n, int32_t element, const char *name, const char *other) {
  const char *value = pccl_nccl_value(n, element, name);
  return value != NULL ? value : other;
}

/* ---- single links ---- */

pccl_nccl_target pccl_nccl_target_of(const pccl_nccl *n, int32_t link) {
  const char *class = pccl_nccl_value(n, link, "tclass");
  if (class == NULL) {
    return pccl_nccl_busid_hidden(pccl_nccl_value(n, link, "target")) ? PCCL_NCCL_TO_SWITCH : PCCL_NCCL_TO_GPU;
  }
  if (strncmp(class, "0x03", 4) == 0 || strncmp(class, "0x12", 4) == 0) {
    return PCCL_NCCL_TO_GPU;
  }
  return strncmp(class, "0x068001", 8) == 0 ? PCCL_NCCL_TO_CPU : PCCL_NCCL_TO_SWITCH;
}

bool pccl_nccl_leaves_host(const pccl_nccl *n, int32_t link) {
  return kind_of(n, link) == PCCL_NCCL_NVLINK && pccl_nccl_target_of(n, link) == PCCL_NCCL_TO_SWITCH &&
         pccl_nccl_busid_hidden(pccl_nccl_value(n, link, "target"));
}

/* GB/s that a link element gives one partition of the GPU; 0: no link, and an assumption says why. */
static double link_bandwidth(pccl_nccl *n, const pccl_nccl_gpu *gpu, int32_t link) {
  const char *count_text = pccl_nccl_value(n, link, "count");
  double count = 1, bw = 0;
  if (count_text == NULL) {
    pccl_nccl_assume(n, link, "a link element has no count; 1 is taken");
  } else if (!pccl_nccl_number(n, link, "count", 1, 1e6, &count)) {
    pccl_nccl_assume(n, link, "a link element has count=\"%.40s\"; no link is made", count_text);
    return 0;
  }
  switch (kind_of(n, link)) {
    case PCCL_NCCL_NVLINK: return count * pccl_nccl_nvlink_rate(n, gpu) / gpu->parts;
    case PCCL_NCCL_XGMI: return count * pccl_nccl_xgmi_rate(n, gpu) / gpu->parts;
    default: break;
  }
  if (!pccl_nccl_number(n, link, "bw", 1, 1e9, &bw)) { /* MB/s */
    pccl_nccl_assume(n, link, "a c2c element has bw=\"%.40s\"; no link is made", value_or(n, link, "bw", ""));
    return 0;
  }
  double share = count * bw / 1000 / gpu->parts;
  return share > PCCL_MIN_BANDWIDTH ? share : PCCL_MIN_BANDWIDTH;
}

double pccl_nccl_to_cpu(pccl_nccl *n, const pccl_nccl_gpu *gpu, const char **type) {
  double bandwidth = 0;
  for (int32_t c = n->elements.data[gpu->element].first_child; c >= 0; c = n->elements.data[c].next) {
    if (kind_of(n, c) == PCCL_NCCL_C2C) {
      bandwidth += link_bandwidth(n, gpu, c);
      *type = "C2C";
    } else if (pccl_nccl_target_of(n, c) == PCCL_NCCL_TO_CPU) {
      bandwidth += link_bandwidth(n, gpu, c);
      *type = kind_of(n, c) == PCCL_NCCL_XGMI ? "xGMI" : "NVLink";
    }
  }
  return bandwidth < PCCL_MAX_BANDWIDTH ? bandwidth : PCCL_MAX_BANDWIDTH;
}

/* ---- what each link leads to ---- */

static int by_address(const void *a, const void *b) {
  const address *x = a, *y = b;
  int order = (x->host > y->host) - (x->host < y->host);
  return order != 0 ? order : (x->busid > y->busid) - (x->busid < y->busid);
}

static bool list_addresses(pccl_nccl *n, addresses *list) {
  for (size_t i = 0; i < n->gpus.len; i++) {
    const pccl_nccl_gpu *gpu = &n->gpus.data[i];
    if (gpu->primary && gpu->has_busid && !pccl_vec_push(list, (address){gpu->host, (int32_t)i, gpu->busid})) {
      return false;
    }
  }
  if (list->len > 0) {
    qsort(list->data, list->len, sizeof *list->data, by_address);
  }
  for (size_t i = 1; i < list->len; i++) {
    const pccl_nccl_gpu *gpu = &n->gpus.data[list->data[i].gpu];
    if (by_address(&list->data[i - 1], &list->data[i]) == 0 && n->gpus.data[list->data[i - 1].gpu].pci != gpu->pci) {
      pccl_nccl_assume(n, gpu->element,
                       "two GPUs of one host (host_hash) have the same bus id, so they share its links");
    }
  }
  return true;
}

/* The first of the GPUs with this address, and how many there are (partitions). */
static const address *find_address(const addresses *list, int32_t host, uint64_t busid, size_t *count) {
  address key = {.host = host, .busid = busid};
  const address *found = list->len > 0 ? bsearch(&key, list->data, list->len, sizeof key, by_address) : NULL;
  *count = 0;
  if (found == NULL) {
    return NULL;
  }
  while (found > list->data && by_address(found - 1, &key) == 0) {
    found--;
  }
  while (found + *count < list->data + list->len && by_address(found + *count, &key) == 0) {
    (*count)++;
  }
  return found;
}

static bool push_wire(pccl_nccl *n, pccl_nccl_wires *all, pccl_nccl_wire w) {
  if (!pccl_vec_push(all, w)) {
    n->result = pccl_no_memory("NVLinks");
  }
  return n->result == POLYCCL_SUCCESS;
}

/* Follows a link to a GPU of the same host. An assumption tells of a link that leads to none. */
static void follow_to_gpu(pccl_nccl *n, const addresses *list, int32_t from, int32_t link, pccl_nccl_wires *all) {
  const pccl_nccl_gpu *gpu = &n->gpus.data[from];
  const char *target = value_or(n, link, "target", ""), *type = kind_of(n, link) == PCCL_NCCL_XGMI ? "xGMI" : "NVLink";
  uint64_t busid;
  size_t count = 0;
  const address *found = pccl_nccl_busid(target, &busid) ? find_address(list, gpu->host, busid, &count) : NULL;
  if (found == NULL && pccl_nccl_value(n, link, "tclass") == NULL) {
    pccl_nccl_assume(n, link, "a link (%s) without a tclass leads to %.40s, which is no GPU; an NVSwitch is taken",
                     type, target);
    double bandwidth = link_bandwidth(n, gpu, link);
    if (bandwidth > 0) {
      push_wire(n, all, (pccl_nccl_wire){from, -1, kind_of(n, link) == PCCL_NCCL_XGMI, bandwidth});
    }
    return;
  }
  if (found == NULL || n->gpus.data[found->gpu].pci == gpu->pci) {
    pccl_nccl_assume(n, link,
                     found == NULL
                         ? "a link (%s) leads to %.40s, and no GPU of its host has this bus id; no link is made"
                         : "a link (%s) leads from a GPU to itself, %.40s; no link is made",
                     type, target);
    return;
  }
  double bandwidth = link_bandwidth(n, gpu, link);
  for (size_t i = 0; i < count && bandwidth > 0; i++) {
    if (!push_wire(
            n, all,
            (pccl_nccl_wire){from, found[i].gpu, kind_of(n, link) == PCCL_NCCL_XGMI, bandwidth / (double)count})) {
      return;
    }
  }
}

static void follow_links(pccl_nccl *n, const addresses *list, int32_t from, pccl_nccl_wires *all) {
  const pccl_nccl_gpu *gpu = &n->gpus.data[from];
  if (!gpu->primary || gpu->implied) {
    return;
  }
  for (int32_t c = n->elements.data[gpu->element].first_child; c >= 0 && n->result == POLYCCL_SUCCESS;
       c = n->elements.data[c].next) {
    pccl_nccl_kind kind = kind_of(n, c);
    pccl_nccl_target target = pccl_nccl_target_of(n, c);
    if ((kind != PCCL_NCCL_NVLINK && kind != PCCL_NCCL_XGMI) || target == PCCL_NCCL_TO_CPU) {
      continue;
    }
    if (target == PCCL_NCCL_TO_GPU) {
      follow_to_gpu(n, list, from, c, all);
      continue;
    }
    if (!pccl_nccl_starts(n, c, "tclass", "0x0680") && pccl_nccl_value(n, c, "tclass") != NULL) {
      pccl_nccl_assume(n, c, "a link element has tclass=\"%.20s\"; an NVSwitch is taken, as NCCL does",
                       value_or(n, c, "tclass", ""));
    }
    double bandwidth = link_bandwidth(n, gpu, c);
    if (bandwidth > 0) {
      push_wire(n, all, (pccl_nccl_wire){from, -1, kind == PCCL_NCCL_XGMI, bandwidth});
    }
  }
}

/* ---- files without links: the fabric that machines with such GPUs have ---- */

static bool lists_links(const pccl_nccl *n) {
  for (int32_t i = 0; i < (int32_t)n->elements.len; i++) {
    if (kind_of(n, i) == PCCL_NCCL_NVLINK || kind_of(n, i) == PCCL_NCCL_XGMI) {
      return true;
    }
  }
  return false;
}

static void imply_fabric(pccl_nccl *n, int32_t from, pccl_nccl_wires *all) {
  enum { MAX_MESH = 64 }; /* no machine has a mesh of more GPUs */
  const pccl_nccl_gpu *gpu = &n->gpus.data[from];
  const polyccl_topology *t = n->builder.topology;
  const char *model = t->model[t->node[gpu->node].model].name;
  const pccl_nccl_fabric *fabric = gpu->primary ? pccl_nccl_fabric_of(model) : NULL;
  size_t others = 0;
  for (size_t i = 0; fabric != NULL && i < n->gpus.len; i++) {
    others += n->gpus.data[i].host == gpu->host && n->gpus.data[i].primary && (int32_t)i != from;
  }
  if (others == 0 || (fabric->mesh && others >= MAX_MESH)) {
    return;
  }
  if (!fabric->mesh) {
    pccl_nccl_assume(n, -1, "the file has no NVLinks; each %s is taken to have %d of %g GB/s to an NVSwitch", model,
                     fabric->links, fabric->rate);
    push_wire(n, all, (pccl_nccl_wire){from, -1, false, fabric->links * fabric->rate});
    return;
  }
  pccl_nccl_assume(n, -1, "the file has no xGMI links; each %s is taken to have one of %g GB/s to each other", model,
                   fabric->rate);
  for (size_t i = 0; i < n->gpus.len; i++) {
    if (n->gpus.data[i].host == gpu->host && n->gpus.data[i].primary && (int32_t)i != from) {
      push_wire(n, all, (pccl_nccl_wire){from, (int32_t)i, true, fabric->links * fabric->rate});
    }
  }
}

void pccl_nccl_find_wires(pccl_nccl *n, pccl_nccl_wires *all) {
  addresses list = {0};
  if (!list_addresses(n, &list)) {
    n->result = pccl_no_memory("GPUs");
  }
  bool no_links = n->hints != NULL && n->hints->gpu != NULL && !lists_links(n);
  for (int32_t i = 0; i < (int32_t)n->gpus.len && n->result == POLYCCL_SUCCESS; i++) {
    follow_links(n, &list, i, all);
    if (n->gpus.data[i].implied || no_links) {
      imply_fabric(n, i, all);
    }
  }
  pccl_vec_free(&list);
}
