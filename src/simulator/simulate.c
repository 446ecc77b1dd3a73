/* polyccl_simulate() checks the plan, lays it out, runs it and computes the totals. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/sized.h"
#include "plan/plan.h"
#include "simulator/machine.h"

static double chunk_bytes(const polyccl_plan *plan, uint64_t bytes) {
  int32_t input, output;
  polyccl_plan_shape(plan, 0, &input, &output);
  int32_t larger = input > output ? input : output;
  return larger > 0 ? (double)bytes / larger : 0;
}

/* The bytes of a chunk that `device` moves at a time: as many as let its largest step fit into a slot, or fewer where
 * its executor cuts finer. */
static double tile_bytes(const polyccl_device_model *device, int32_t protocol, double chunk, double largest) {
  double tile = fmin(chunk, (double)device->protocol[protocol].slot_bytes / largest);
  if (device->pipeline > 0) {
    double cut = fmax(chunk / device->pipeline, (double)device->min_tile / largest);
    tile = fmin(tile, fmin(cut, (double)device->max_tile / largest));
  }
  return tile;
}

static polyccl_result default_batches(const sim *s, double chunk, int32_t *batches) {
  const polyccl_plan *plan = s->plan;
  double batch_count = 1;
  int32_t largest = 1; /* chunks of a message */
  for (size_t i = 0; i < plan->steps; i++) {
    largest = plan->step[i].send >= 0 && plan->step[i].count > largest ? plan->step[i].count : largest;
  }
  for (int32_t r = 0; r < plan->ranks && chunk > 0; r++) {
    const polyccl_device_model *device = &s->topology->model[s->topology->rank[r].model];
    batch_count = fmax(batch_count, chunk / tile_bytes(device, s->options.protocol, chunk, largest));
  }
  if (batch_count > 1 << 24) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%llu bytes would need %.0f micro-batches; say how many to use",
                     (unsigned long long)s->options.bytes, ceil(batch_count));
  }
  *batches = (int32_t)ceil(batch_count - 1e-9);
  return POLYCCL_SUCCESS;
}

static polyccl_result default_depth(const sim *s, int32_t *chosen) {
  int32_t depth = INT32_MAX, needed = s->plan->fifo_depth;
  /* Only a plan that neither a reader nor the compiler made has depth 0. Where it is wrong, the simulation will tell.
   */
  if (needed == 0 && pccl_plan_min_depth(s->plan, &needed) == POLYCCL_ERROR_MEMORY) {
    return POLYCCL_ERROR_MEMORY;
  }
  for (int32_t r = 0; r < s->plan->ranks; r++) {
    const polyccl_device_model *device = &s->topology->model[s->topology->rank[r].model];
    int32_t has = device->protocol[s->options.protocol].fifo_depth;
    depth = has < depth ? has : depth;
  }
  depth = depth < needed ? needed : depth;
  *chosen = depth < 1 ? 1 : depth;
  return POLYCCL_SUCCESS;
}

static polyccl_result resolve_options(sim *s) {
  polyccl_sim_options *o = &s->options;
  const polyccl_plan *plan = s->plan;
  o->protocol = o->protocol < 0 ? (int32_t)plan->protocol : o->protocol;
  o->order = o->order < 0 ? (int32_t)plan->order : o->order;
  if (o->protocol >= POLYCCL_PROTOCOL_COUNT || o->order > POLYCCL_TASK_MAJOR || o->micro_batches < 0 ||
      o->fifo_depth < 0 || o->fifo_depth > 4096) {
    return pccl_fail(
        POLYCCL_ERROR_INVALID,
        "a simulation cannot have protocol %d, order %d, %d micro-batches, depth %d: one of them is out of range",
        o->protocol, o->order, o->micro_batches, o->fifo_depth);
  }
  double chunk = chunk_bytes(plan, o->bytes);
  if (o->micro_batches == 0) {
    PCCL_TRY(default_batches(s, chunk, &o->micro_batches));
  }
  s->batches = o->micro_batches;
  s->depth = o->fifo_depth;
  if (s->depth == 0) {
    PCCL_TRY(default_depth(s, &s->depth));
  }
  s->task_major = o->order == POLYCCL_TASK_MAJOR;
  s->tile = chunk / s->batches;
  s->tbs = (int32_t)plan->tbs;
  for (size_t t = 0; t < plan->tbs; t++) {
    s->executions += (uint64_t)plan->tb[t].steps * (uint64_t)s->batches;
  }
  if (s->executions > POLYCCL_SIM_MAX_EXECUTIONS) {
    return pccl_fail(
        POLYCCL_ERROR_LIMIT,
        "%zu steps of %d micro-batches are %llu step executions, more than can be simulated (%llu); use fewer "
        "micro-batches or a smaller size",
        plan->steps, s->batches, (unsigned long long)s->executions, (unsigned long long)POLYCCL_SIM_MAX_EXECUTIONS);
  }
  s->tracing = o->keep != 0;
  if (isnan(o->tolerance) || isnan(o->contention)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the tolerance or the contention of a simulation is not a number");
  }
  s->tolerance = o->tolerance >= 0 ? o->tolerance : 0;
  s->max_exact_updates = o->tolerance >= 0 ? UINT64_MAX : SIM_EXACT_UPDATES;
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_simulate(const polyccl_plan *plan, const polyccl_topology *topology,
                                const polyccl_sim_options *options, polyccl_simulation **simulation) {
  PCCL_TRY(pccl_sim_check(plan, topology));
  sim s = {.plan = plan, .topology = topology};
  s.options = POLYCCL_SIM_DEFAULTS;
  PCCL_TRY(pccl_sized_read("polyccl_sim_options", options, &s.options, sizeof s.options, sizeof s.options));
  PCCL_TRY(resolve_options(&s));
  polyccl_result result = pccl_sim_build(&s);
  if (result == POLYCCL_SUCCESS) {
    pccl_sim_run(&s);
    result = s.no_memory ? pccl_no_memory("the simulation's timeline") : pccl_sim_stuck(&s);
  }
  if (result == POLYCCL_SUCCESS) {
    result = pccl_sim_result(&s, simulation);
  }
  pccl_sim_free(&s);
  return result;
}

void polyccl_simulation_destroy(polyccl_simulation *simulation) {
  if (simulation == NULL) {
    return;
  }
  free(simulation->tb);
  free(simulation->link);
  free(simulation->critical);
  free(simulation->line);
  free(simulation->record);
  free(simulation->use);
  free(simulation);
}

double polyccl_bus_factor(polyccl_collective collective, int ranks) {
  double n = ranks < 1 ? 1 : ranks;
  switch (collective) {
    case POLYCCL_ALLREDUCE: return 2 * (n - 1) / n;
    case POLYCCL_ALLGATHER:
    case POLYCCL_REDUCE_SCATTER:
    case POLYCCL_ALLTOALL:
    case POLYCCL_GATHER:
    case POLYCCL_SCATTER: return (n - 1) / n;
    default: return 1;
  }
}

const char *polyccl_sim_state_name(polyccl_sim_state state) {
  static const char *const names[POLYCCL_SIM_STATE_COUNT] = {"busy", "wait blocks", "wait data", "wait credit", "idle"};
  return (unsigned)state < POLYCCL_SIM_STATE_COUNT ? names[state] : NULL;
}
