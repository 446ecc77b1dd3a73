/* Computes the totals of a simulation that has ended. */
#include <stdlib.h>

#include "base/error.h"
#include "simulator/machine.h"

static polyccl_result sum_link_bytes(const sim *s, polyccl_simulation *result) {
  result->links = s->topology->links;
  result->link = pccl_zeroed(result->links, sizeof *result->link);
  if (result->link == NULL) {
    return pccl_no_memory("the links' totals");
  }
  for (int32_t t = 0; t < s->tbs; t++) {
    double wire = s->model[s->tb[t].model].wire;
    for (int32_t i = 0; i < s->tb[t].steps; i++) {
      const sim_step *step = &s->step[s->tb[t].first + i];
      if ((step->kind & (SIM_OUT | SIM_IN)) == 0) {
        continue;
      }
      const sim_connection *c = &s->connection[(step->kind & SIM_OUT) != 0 ? step->send : step->recv];
      double bytes = step->count * s->tile * s->batches * wire;
      for (int32_t h = 0; h < c->hops; h++) {
        result->link[s->hop[c->hop + h]].bytes += bytes;
      }
    }
  }
  for (size_t l = 0; l < result->links && result->time > 0; l++) {
    result->link[l].utilisation = result->link[l].bytes / (s->topology->link[l].bandwidth * 1e3 * result->time);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result sum_block_times(const sim *s, polyccl_simulation *result, int64_t end) {
  result->tbs = s->plan->tbs;
  result->tb = pccl_zeroed(result->tbs, sizeof *result->tb);
  if (result->tb == NULL) {
    return pccl_no_memory("the thread blocks' times");
  }
  for (size_t t = 0; t < result->tbs; t++) {
    int64_t idle = end;
    for (int state = 0; state < POLYCCL_SIM_IDLE; state++) {
      result->tb[t].time[state] = (double)s->spent[t][state] / SIM_PS_PER_US;
      idle -= s->spent[t][state];
    }
    result->tb[t].time[POLYCCL_SIM_IDLE] = (double)idle / SIM_PS_PER_US;
  }
  return POLYCCL_SUCCESS;
}

static void sum_totals(const sim *s, polyccl_simulation *result, int64_t end) {
  int64_t launch = INT64_MAX;
  for (int32_t r = 0; r < s->plan->ranks; r++) {
    int64_t own = s->model[s->topology->rank[r].model].launch;
    launch = own < launch ? own : launch;
  }
  result->time = (double)end / SIM_PS_PER_US;
  result->launch = (double)launch / SIM_PS_PER_US;
  result->bytes = s->options.bytes;
  result->algorithm = result->time > 0 ? (double)result->bytes / result->time / 1e3 : 0;
  result->bus_factor = polyccl_bus_factor(s->plan->collective, s->plan->ranks);
  result->bus = result->algorithm * result->bus_factor;
  result->protocol = (polyccl_protocol)s->options.protocol;
  result->order = (polyccl_loop_order)s->options.order;
  result->micro_batches = s->batches;
  result->fifo_depth = s->depth;
  result->executions = s->executions;
  result->events = s->events;
  result->exact = s->tolerance <= 0;
}

polyccl_result pccl_sim_result(sim *s, polyccl_simulation **simulation) {
  int64_t end = 0;
  for (int32_t r = 0; r < s->plan->ranks; r++) {
    int64_t launch = s->model[s->topology->rank[r].model].launch;
    end = launch > end ? launch : end;
  }
  for (int32_t t = 0; t < s->tbs; t++) {
    end = s->tb[t].free > end ? s->tb[t].free : end;
  }
  polyccl_simulation *made = pccl_zeroed(1, sizeof *made);
  if (made == NULL) {
    return pccl_no_memory("a simulation");
  }
  sum_totals(s, made, end);
  polyccl_result result = sum_link_bytes(s, made);
  if (result == POLYCCL_SUCCESS) {
    result = sum_block_times(s, made, end);
  }
  if (result == POLYCCL_SUCCESS) {
    result = pccl_sim_trace_result(s, made);
  }
  if (result != POLYCCL_SUCCESS) {
    polyccl_simulation_destroy(made);
    return result;
  }
  *simulation = made;
  return POLYCCL_SUCCESS;
}
