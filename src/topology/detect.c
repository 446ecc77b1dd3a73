/* Finds out what this machine is, by hwloc. Each package becomes a host, each core a device of the model "cpu"; links
 * to the host stand for the memory of the package. hwloc knows no rates: they are those of the shipped model, until
 * `polyccl calibrate` measures them. */
#include <hwloc.h>

#include "base/error.h"
#include "topology/machines.h"

static void join_cores(pccl_builder *b, hwloc_topology_t hw, int ranks, const polyccl_device_model *cpu) {
  int32_t machine = -1, model = -1;
  enum { MAX_PACKAGES = 64 };
  int32_t host[MAX_PACKAGES];
  int packages = hwloc_get_nbobjs_by_type(hw, HWLOC_OBJ_PACKAGE), cores = hwloc_get_nbobjs_by_type(hw, HWLOC_OBJ_CORE);
  packages = packages < 1 ? 1 : packages > MAX_PACKAGES ? MAX_PACKAGES : packages;
  cores = cores < 1 ? 1 : cores;
  b->result = pccl_builder_machine(b, "host", &machine);
  if (b->result == POLYCCL_SUCCESS) {
    b->result = pccl_builder_model(b, cpu, &model);
  }
  for (int i = 0; i < packages; i++) {
    host[i] = pccl_add_node(b, POLYCCL_NODE_HOST, machine, -1, -1, "package%d", i);
    for (int k = 0; k < i; k++) {
      pccl_add_pair(b, host[k], host[i], "socket", cpu->local_bandwidth, PCCL_MEMORY_LATENCY);
    }
  }
  for (int r = 0; r < ranks; r++) {
    hwloc_obj_t core = hwloc_get_obj_by_type(hw, HWLOC_OBJ_CORE, (unsigned)(r % cores));
    hwloc_obj_t package = core != NULL ? hwloc_get_ancestor_obj_by_type(hw, HWLOC_OBJ_PACKAGE, core) : NULL;
    unsigned where = package != NULL ? package->logical_index % (unsigned)packages : 0;
    int32_t device = pccl_add_node(b, POLYCCL_NODE_DEVICE, machine, model, r, "cpu%d", r);
    pccl_add_pair(b, device, host[where], "memory", cpu->local_bandwidth, PCCL_MEMORY_LATENCY);
  }
}

polyccl_result pccl_detect_host(pccl_builder *builder, int ranks) {
  hwloc_topology_t hw;
  if (hwloc_topology_init(&hw) != 0) {
    return pccl_fail(POLYCCL_ERROR_SYSTEM, "hwloc could not be initialized");
  }
  if (hwloc_topology_load(hw) != 0) {
    hwloc_topology_destroy(hw);
    return pccl_fail(POLYCCL_ERROR_SYSTEM, "hwloc cannot read this machine");
  }
  int cores = hwloc_get_nbobjs_by_type(hw, HWLOC_OBJ_CORE);
  join_cores(builder, hw, ranks > 0 ? ranks : cores > 0 ? cores : 1, pccl_known_model_find("cpu"));
  hwloc_topology_destroy(hw);
  return builder->result;
}
