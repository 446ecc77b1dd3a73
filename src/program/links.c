/* Programs made for one machine: an operation between two ranks needs a link between them. */
#include "base/error.h"
#include "program/program.h"

polyccl_result polyccl_program_set_topology(polyccl_program *program, const char *spec) {
  if (program->topology != NULL || program->operations.len > 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "a program's topology is set once, before its first operation");
  }
  polyccl_topology *topology = NULL;
  PCCL_TRY(polyccl_topology_open(spec, &topology));
  if (topology->ranks < program->config.ranks) {
    polyccl_result result =
        pccl_fail(POLYCCL_ERROR_INVALID, "topology %s has %d rank%s, but the program has %d", topology->name,
                  topology->ranks, topology->ranks == 1 ? "" : "s", program->config.ranks);
    polyccl_topology_destroy(topology);
    return result;
  }
  program->topology = topology;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_program_check_link(polyccl_program *program, int src, int dst, polyccl_location at) {
  if (program->topology == NULL || src == dst) {
    return POLYCCL_SUCCESS;
  }
  /* A look-up walks the machine: once per pair. */
  bool is_new;
  uint64_t key = (uint64_t)src * (uint64_t)program->config.ranks + (uint64_t)dst;
  uint64_t *linked = pccl_map_put(&program->links, key, 0, &is_new);
  if (linked == NULL) {
    return pccl_no_memory("the links of a topology");
  }
  if (is_new) {
    *linked = polyccl_topology_linked(program->topology, src, dst);
  }
  return *linked ? POLYCCL_SUCCESS
                 : pccl_fail_at(POLYCCL_ERROR_INVALID, at, "rank %d has no link to rank %d in topology %s", src, dst,
                                program->topology->name);
}
