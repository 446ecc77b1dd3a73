#include "view/simulated.h"

#include "base/error.h"
#include "base/file.h"
#include "base/map.h"

/* (thread block of the plan, step, micro-batch) in one number: all steps of a plan are numbered, so two parts do. */
static uint64_t key_of(const polyccl_plan *plan, int32_t rank, int32_t tb, int32_t step, int32_t batch) {
  size_t index = (size_t)(plan->tb[plan->rank[rank].tb + tb].step + step);
  return (uint64_t)index << 32 | (uint32_t)batch;
}

static polyccl_result mark_critical(const polyccl_simulation *simulation, const polyccl_plan *plan, pccl_map *marks) {
  for (size_t i = 0; i < simulation->criticals; i++) {
    const polyccl_sim_critical *at = &simulation->critical[i];
    bool is_new;
    if (pccl_map_put(marks, key_of(plan, at->rank, at->tb, at->step, at->micro_batch), 1, &is_new) == NULL) {
      return pccl_no_memory("a trace");
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result add_records(const polyccl_simulation *simulation, const polyccl_plan *plan,
                                  const pccl_map *critical, polyccl_trace *trace) {
  static const polyccl_trace_state states[POLYCCL_SIM_STATE_COUNT] = {
      [POLYCCL_SIM_BUSY] = POLYCCL_TRACE_BUSY,
      [POLYCCL_SIM_WAIT_BLOCKS] = POLYCCL_TRACE_WAIT_BLOCK,
      [POLYCCL_SIM_WAIT_DATA] = POLYCCL_TRACE_WAIT_DATA,
      [POLYCCL_SIM_WAIT_CREDIT] = POLYCCL_TRACE_WAIT_CREDIT};
  for (size_t i = 0; i < simulation->records; i++) {
    const polyccl_sim_record *record = &simulation->record[i];
    uint64_t key = key_of(plan, record->rank, record->tb, record->step, record->micro_batch);
    bool busy = record->state == POLYCCL_SIM_BUSY;
    PCCL_TRY(polyccl_trace_add(trace, &(polyccl_trace_event){.rank = record->rank,
                                                             .tb = record->tb,
                                                             .step = record->step,
                                                             .batch = record->micro_batch,
                                                             .state = states[record->state],
                                                             .critical = busy && pccl_map_get(critical, key) != NULL,
                                                             .begin = record->start,
                                                             .end = record->end}));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result add_links(const polyccl_simulation *simulation, const polyccl_topology *topology,
                                polyccl_trace *trace) {
  for (size_t i = 0; i < topology->links; i++) {
    const polyccl_link *link = &topology->link[i];
    pccl_text name = {0};
    pccl_text_add(&name, "%s > %s (%s)", topology->node[link->from].name, topology->node[link->to].name,
                  topology->link_type[link->type]);
    int id;
    polyccl_result result = name.failed ? pccl_no_memory("a trace's links")
                                        : polyccl_trace_add_link(trace, name.data, link->bandwidth, &id);
    pccl_text_free(&name);
    PCCL_TRY(result);
  }
  for (size_t i = 0; i < simulation->uses; i++) {
    const polyccl_sim_use *use = &simulation->use[i];
    PCCL_TRY(polyccl_trace_add_sample(trace, use->link, use->time, use->rate));
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_trace_of_simulation(const polyccl_simulation *simulation, const polyccl_plan *plan,
                                        const polyccl_topology *topology, polyccl_trace **trace) {
  polyccl_trace *made = NULL;
  PCCL_TRY(polyccl_trace_create(plan, "simulated", &made));
  pccl_map critical = {0};
  polyccl_result result = mark_critical(simulation, plan, &critical);
  if (result == POLYCCL_SUCCESS) {
    result = add_records(simulation, plan, &critical, made);
  }
  pccl_map_free(&critical);
  if (result == POLYCCL_SUCCESS) {
    result = add_links(simulation, topology, made);
  }
  if (result == POLYCCL_SUCCESS) {
    result = polyccl_trace_finish(made);
  }
  if (result != POLYCCL_SUCCESS) {
    polyccl_trace_destroy(made);
    return result;
  }
  *trace = made;
  return POLYCCL_SUCCESS;
}
