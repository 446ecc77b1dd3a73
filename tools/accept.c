#include "accept.h"

#include <polyccl/polyccl.h>

#include "base/error.h"
#include "plan/xml_target.h"

polyccl_result pccl_accept_local(const void *context, const polyccl_program_config *config) {
  (void)context;
  return config->ranks <= POLYCCL_MAX_LOCAL_RANKS
             ? POLYCCL_SUCCESS
             : pccl_fail(POLYCCL_ERROR_LIMIT, "%d ranks are more than one machine runs (%d)", config->ranks,
                         POLYCCL_MAX_LOCAL_RANKS);
}

polyccl_result pccl_accept_on(const void *context, const polyccl_program_config *config) {
  const polyccl_topology *topology = context;
  return topology == NULL || config->ranks <= topology->ranks
             ? POLYCCL_SUCCESS
             : pccl_fail(POLYCCL_ERROR_INVALID, "%d ranks are wanted, but the topology \"%s\" has %d", config->ranks,
                         topology->name != NULL ? topology->name : "", topology->ranks);
}

polyccl_result pccl_accept_compile(const void *context, const polyccl_program_config *config) {
  const pccl_accept_compile_context *c = context;
  PCCL_TRY(pccl_accept_on(c->options->topology, config));
  if (c->format == POLYCCL_FORMAT_PLAN) {
    return POLYCCL_SUCCESS;
  }
  /* Schedule best may choose either order. */
  bool task_major = c->options->policy == POLYCCL_POLICY_STATE && c->options->schedule != POLYCCL_SCHEDULE_BEST;
  polyccl_program_config cut = *config;
  cut.instances = c->options->instances > 0 ? c->options->instances : config->instances;
  return pccl_xml_target_accepts(pccl_xml_target_of(c->format), &cut,
                                 task_major ? POLYCCL_TASK_MAJOR : POLYCCL_BATCH_MAJOR);
}

polyccl_result pccl_accept_plan(const pccl_accept *accept, const polyccl_plan *plan) {
  polyccl_program_config config = {.size = sizeof(polyccl_program_config),
                                   .collective = plan->collective,
                                   .name = plan->name,
                                   .ranks = plan->ranks,
                                   .chunks = plan->chunks,
                                   .chunks_out = plan->chunks_out,
                                   .inplace = plan->inplace,
                                   .protocol = plan->protocol,
                                   .root = plan->root,
                                   .peer = plan->peer};
  return pccl_accept_program(accept, &config);
}
