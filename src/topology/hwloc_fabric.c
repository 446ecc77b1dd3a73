/* NVLink and xGMI links, from hwloc's matrices: the bandwidth between two devices in MB/s, in one direction. */
#include <string.h>

#include "base/error.h"
#include "topology/hwloc_xml.h"
#include "topology/machines.h"

static double rate_at(const pccl_hwloc_matrix *matrix, size_t i, size_t k) {
  double rate = (double)matrix->values.data[i * matrix->objs.len + k] / 1e3;
  return rate > PCCL_MAX_BANDWIDTH ? PCCL_MAX_BANDWIDTH : rate;
}

/* The GPU of an object of the matrix. NULL: it is no GPU, or another object stands for the same GPU already. */
static pccl_hwloc_device *gpu_at(pccl_hwloc *m, const pccl_hwloc_matrix *matrix, size_t i) {
  pccl_hwloc_device *d = pccl_hwloc_device_of(m, matrix->objs.data[i]);
  if (d == NULL || !d->gpu) {
    return NULL;
  }
  d->in_matrix = d->in_matrix >= 0 ? d->in_matrix : (int32_t)i;
  return d->in_matrix == (int32_t)i ? d : NULL;
}

static void add_link(pccl_hwloc *m, int32_t from, int32_t to, const char *type, double rate, double latency) {
  if (rate >= PCCL_MIN_BANDWIDTH) {
    pccl_add_link(m->b, from, to, type, rate, latency);
    m->fabric = true;
  }
}

/* ---- NVLink ---- */

/* Adds the links of one GPU to others, and sums up those to switches. */
static void add_nvlinks(pccl_hwloc *m, const pccl_hwloc_matrix *matrix, size_t i, pccl_hwloc_device *d) {
  for (size_t k = 0; k < matrix->objs.len; k++) {
    double rate = rate_at(matrix, i, k);
    int32_t obj = matrix->objs.data[k];
    if (k == i || obj < 0 || rate < PCCL_MIN_BANDWIDTH) {
      continue;
    }
    const pccl_hwloc_device *other = gpu_at(m, matrix, k);
    if (other != NULL) {
      add_link(m, d->node, other->node, "NVLink", rate, PCCL_DIRECT_LATENCY);
    } else if (m->objs.data[obj].nvswitch) {
      d->switch_nvlink += rate;
    } else if (m->objs.data[obj].type == PCCL_HWLOC_PACKAGE) { /* a processor with NVLinks */
      d->nvlink_host = pccl_hwloc_host_of(m, obj);
      d->host_nvlink = rate;
    }
  }
}

/* All NVSwitches of a machine are one switch. */
static void add_nvswitch(pccl_hwloc *m, const pccl_hwloc_device *d) {
  double rate = d->switch_nvlink < PCCL_MAX_BANDWIDTH ? d->switch_nvlink : PCCL_MAX_BANDWIDTH;
  if (rate < PCCL_MIN_BANDWIDTH) {
    return;
  }
  if (m->nvswitch < 0) {
    m->nvswitch = pccl_add_node(m->b, POLYCCL_NODE_SWITCH, m->index, -1, -1, "m0.nvswitch");
  }
  add_link(m, d->node, m->nvswitch, "NVLink", rate, PCCL_SWITCH_LATENCY);
  add_link(m, m->nvswitch, d->node, "NVLink", rate, PCCL_SWITCH_LATENCY);
}

static void add_nvlink_matrix(pccl_hwloc *m, const pccl_hwloc_matrix *matrix) {
  for (size_t i = 0; i < matrix->objs.len; i++) {
    pccl_hwloc_device *d = gpu_at(m, matrix, i);
    if (d != NULL) {
      add_nvlinks(m, matrix, i, d);
    }
  }
  for (size_t i = 0; i < m->devices.len; i++) {
    add_nvswitch(m, &m->devices.data[i]);
  }
}

/* ---- xGMI ---- */

/* hwloc writes 100 GB/s for a link of any generation; these models have the rates of their data sheets. */
static double xgmi_rate(const pccl_hwloc *m, const pccl_hwloc_device *d, double rate) {
  const pccl_hwloc_product *product = m->objs.data[d->obj].product;
  const char *model = product != NULL ? product->model : "";
  return strcmp(model, "MI300X") == 0 ? 64 : strcmp(model, "MI350X") == 0 ? 76.8 : rate;
}

/* Where the file has the matrix `hops`, only neighbours have a link. */
static void add_xgmi_matrix(pccl_hwloc *m, const pccl_hwloc_matrix *matrix, const pccl_hwloc_matrix *hops) {
  bool told = hops->objs.len == matrix->objs.len;
  for (size_t i = 0; i < matrix->objs.len && m->b->result == POLYCCL_SUCCESS; i++) {
    const pccl_hwloc_device *d = gpu_at(m, matrix, i);
    for (size_t k = 0; k < matrix->objs.len && d != NULL; k++) {
      const pccl_hwloc_device *other = k == i ? NULL : gpu_at(m, matrix, k);
      double rate = rate_at(matrix, i, k);
      bool neighbour = !told || hops->values.data[i * matrix->objs.len + k] == 1;
      if (other != NULL && rate > 0 && neighbour) {
        add_link(m, d->node, other->node, "xGMI", xgmi_rate(m, d, rate), PCCL_DIRECT_LATENCY);
      }
    }
  }
}

polyccl_result pccl_hwloc_add_fabric(pccl_hwloc *m) {
  if (m->b->result != POLYCCL_SUCCESS) {
    return m->b->result;
  }
  if (m->matrix[PCCL_HWLOC_NVLINK].objs.len > 0) {
    add_nvlink_matrix(m, &m->matrix[PCCL_HWLOC_NVLINK]);
  } else {
    add_xgmi_matrix(m, &m->matrix[PCCL_HWLOC_XGMI], &m->matrix[PCCL_HWLOC_HOPS]);
  }
  return m->b->result;
}
