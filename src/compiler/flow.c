#include "compiler/flow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void pccl_flows_free(pccl_flows *flows) {
  free(flows->flow);
  pccl_vec_free(&flows->hop);
  pccl_vec_free(&flows->edge);
  free(flows->succ);
  free(flows->order);
  free(flows->capacity);
  pccl_link_lists_free(&flows->route);
}

static const polyccl_protocol_model *model_of(const pccl_flows *flows, int rank) {
  const polyccl_topology *t = flows->topology;
  return &t->model[t->rank[rank].model].protocol[flows->ir->program->config.protocol];
}

static polyccl_result find_capacities(pccl_flows *flows, int32_t oversubscribed) {
  const polyccl_topology *t = flows->topology;
  flows->capacity = pccl_array(t->links, sizeof *flows->capacity);
  if (flows->capacity == NULL) {
    return pccl_no_memory("the schedule");
  }
  for (size_t i = 0; i < t->links; i++) {
    flows->capacity[i] = pccl_link_capacity(t, (int32_t)i, flows->ir->program->config.protocol) + oversubscribed;
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_flows_set_apart(pccl_ir *ir, const polyccl_topology *topology) {
  pccl_link_lists routes = {0};
  polyccl_result result = POLYCCL_SUCCESS;
  free(ir->apart);
  ir->apart = pccl_zeroed(ir->nodes.len, sizeof *ir->apart);
  if (ir->apart == NULL) {
    return pccl_no_memory("the schedule");
  }
  for (size_t i = 0; i < ir->nodes.len && result == POLYCCL_SUCCESS; i++) {
    const pccl_node *node = &ir->nodes.data[i];
    int32_t first = 0, links = 0;
    if (node->to >= 0) {
      result = pccl_links_between(&routes, topology, node->rank, ir->nodes.data[node->to].rank, &first, &links);
    }
    for (int32_t k = 0; k < links && result == POLYCCL_SUCCESS; k++) {
      if (pccl_link_capacity(topology, routes.link.data[first + k], ir->program->config.protocol) == 1) {
        ir->apart[i] = ir->apart[node->to] = 1;
      }
    }
  }
  pccl_link_lists_free(&routes);
  return result;
}

/* ---- chains ---- */

static polyccl_result add_chain(pccl_flows *flows, int32_t head, int32_t *of_node, int32_t *hop_of) {
  const pccl_ir *ir = flows->ir;
  pccl_flow *flow = &flows->flow[flows->count];
  flow->hop = (int32_t)flows->hop.len;
  flow->instance = ir->nodes.data[head].instance;
  for (int32_t at = head; at >= 0; at = ir->nodes.data[at].to) {
    pccl_flow_hop hop = {.node = at};
    int32_t to = ir->nodes.data[at].to;
    if (to >= 0) {
      PCCL_TRY(pccl_links_between(&flows->route, flows->topology, ir->nodes.data[at].rank, ir->nodes.data[to].rank,
                                  &hop.route, &hop.links));
    }
    of_node[at] = (int32_t)flows->count;
    hop_of[at] = flow->hops++;
    if (!pccl_vec_push(&flows->hop, hop)) {
      return pccl_no_memory("the schedule");
    }
  }
  flows->count++;
  return POLYCCL_SUCCESS;
}

static polyccl_result find_edges(pccl_flows *flows, const int32_t *of_node, const int32_t *hop_of) {
  const pccl_ir *ir = flows->ir;
  for (size_t i = 0; i < flows->count; i++) {
    pccl_flow *flow = &flows->flow[i];
    flow->edge = (int32_t)flows->edge.len;
    for (int32_t h = 0; h < flow->hops; h++) {
      const pccl_node *node = &ir->nodes.data[flows->hop.data[flow->hop + h].node];
      for (int32_t k = 0; k < node->preds; k++) {
        int32_t pred = ir->preds.data[node->pred + k];
        if (of_node[pred] == (int32_t)i) {
          continue;
        }
        flow->edges++;
        if (flows->edge.len >= INT32_MAX ||
            !pccl_vec_push(&flows->edge, (pccl_flow_edge){of_node[pred], hop_of[pred], h})) {
          return pccl_no_memory("the schedule");
        }
      }
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result find_successors(pccl_flows *flows) {
  int32_t *next = pccl_zeroed(flows->count + 1, sizeof *next);
  flows->succ = pccl_array(flows->edge.len, sizeof *flows->succ);
  if (next == NULL || flows->succ == NULL) {
    free(next);
    return pccl_no_memory("the schedule");
  }
  for (size_t e = 0; e < flows->edge.len; e++) {
    next[flows->edge.data[e].flow]++;
  }
  int32_t total = 0;
  for (size_t i = 0; i <= flows->count; i++) {
    flows->flow[i].succ = total;
    total += next[i];
    next[i] = flows->flow[i].succ;
  }
  for (size_t i = 0; i < flows->count; i++) {
    for (int32_t e = flows->flow[i].edge; e < flows->flow[i].edge + flows->flow[i].edges; e++) {
      flows->succ[next[flows->edge.data[e].flow]++] = (int32_t)i;
    }
  }
  free(next);
  return POLYCCL_SUCCESS;
}

/* Kahn's algorithm. Where it does not reach all flows, there is a cycle. */
static polyccl_result sort_flows(pccl_flows *flows, bool *cyclic) {
  int32_t *missing = pccl_array(flows->count, sizeof *missing);
  flows->order = pccl_array(flows->count, sizeof *flows->order);
  if (missing == NULL || flows->order == NULL) {
    free(missing);
    return pccl_no_memory("the schedule");
  }
  size_t head = 0, tail = 0;
  for (size_t i = 0; i < flows->count; i++) {
    missing[i] = flows->flow[i].edges;
    if (missing[i] == 0) {
      flows->order[tail++] = (int32_t)i;
    }
  }
  while (head < tail) {
    const pccl_flow *flow = &flows->flow[flows->order[head++]];
    for (int32_t k = flow->succ; k < flow[1].succ; k++) {
      if (--missing[flows->succ[k]] == 0) {
        flows->order[tail++] = flows->succ[k];
      }
    }
  }
  free(missing);
  *cyclic = tail < flows->count;
  return POLYCCL_SUCCESS;
}

/* ---- estimates ---- */

static void find_tiles(pccl_flows *flows, uint64_t bytes) {
  int input, output;
  pccl_collective_shape(&flows->ir->spec, &input, &output);
  int larger = input > output ? input : output;
  flows->chunk_bytes = (double)bytes / (larger > 0 ? larger : 1);
  int32_t max = 1;
  for (size_t h = 0; h < flows->hop.len; h++) {
    int32_t count = flows->ir->nodes.data[flows->hop.data[h].node].count;
    max = count > max ? count : max;
  }
  double slots = flows->chunk_bytes * max / (double)model_of(flows, 0)->slot_bytes;
  /* Rounded up; what is left of a millionth is a rounding error of the division. */
  flows->batches = slots > 1 ? (double)(int64_t)(slots + 0.999999) : 1;
}

static void estimate_flow(pccl_flows *flows, pccl_flow *flow) {
  const polyccl_topology *t = flows->topology;
  const pccl_flow_hop *hops = &flows->hop.data[flow->hop];
  const pccl_node *first = &flows->ir->nodes.data[hops->node];
  double rate = flow->hops == 1 ? model_of(flows, first->rank)->copy_bandwidth : INFINITY, latency = 0, step = 0;
  for (int32_t h = 0; h < flow->hops; h++) {
    const pccl_node *node = &flows->ir->nodes.data[hops[h].node];
    const polyccl_protocol_model *model = model_of(flows, node->rank);
    const polyccl_device_model *device = &t->model[t->rank[node->rank].model];
    double own = pccl_ops[node->op].reduces && device->reduce_bandwidth < model->copy_bandwidth
                     ? device->reduce_bandwidth
                     : model->copy_bandwidth;
    if (pccl_ops[node->op].receives && node->to >= 0 && device->forward_bandwidth > 0 &&
        device->forward_bandwidth < own) {
      own = device->forward_bandwidth;
    }
    rate = own < rate ? own : rate;
    step = model->step_cost > step ? model->step_cost : step;
    double here = h + 1 < flow->hops ? model->latency : 0;
    int machine = t->rank[node->rank].machine;
    for (int32_t i = 0; i < hops[h].links; i++) {
      int32_t number = flows->route.link.data[hops[h].route + i];
      const polyccl_link *link = &t->link[number];
      double share = link->bandwidth * model->efficiency / flows->capacity[number];
      rate = share < rate ? share : rate;
      here += link->latency;
      flow->scarce = flow->scarce || flows->capacity[number] <= 2; /* one thread block fills it, or two */
    }
    if (h + 1 < flow->hops && t->rank[flows->ir->nodes.data[hops[h + 1].node].rank].machine != machine) {
      here += model->network_latency;
    }
    latency = here > latency ? here : latency;
  }
  double tile = flows->chunk_bytes * first->count / flows->batches / rate * 1e-3 + step; /* GB/s: 1000 bytes a us */
  flow->rate = rate;
  flow->work = tile * flows->batches;
  flow->lag = flow->hops > 1 ? tile + latency : 0;
}

static void find_tails(pccl_flows *flows) {
  for (size_t i = flows->count; i-- > 0;) {
    pccl_flow *flow = &flows->flow[flows->order[i]];
    for (int32_t k = flow->succ; k < flow[1].succ; k++) {
      const pccl_flow *next = &flows->flow[flows->succ[k]];
      flow->tail = next->tail > flow->tail ? next->tail : flow->tail;
      flow->before_scarce = flow->before_scarce || next->scarce || next->before_scarce;
    }
    flow->tail += flow->work + flow->lag * (flow->hops - 1);
  }
}

/* How often a flow passes one rank, at most. */
static polyccl_result find_passes(pccl_flows *flows) {
  int32_t *seen = pccl_zeroed((size_t)flows->ir->spec.ranks, sizeof *seen);
  if (seen == NULL) {
    return pccl_no_memory("the schedule");
  }
  for (size_t i = 0; i < flows->count; i++) {
    const pccl_flow *flow = &flows->flow[i];
    for (int32_t h = 0; h < flow->hops; h++) {
      int32_t passes = ++seen[flows->ir->nodes.data[flows->hop.data[flow->hop + h].node].rank];
      flows->passes = passes > flows->passes ? passes : flows->passes;
    }
    for (int32_t h = 0; h < flow->hops; h++) {
      seen[flows->ir->nodes.data[flows->hop.data[flow->hop + h].node].rank] = 0;
    }
  }
  free(seen);
  return POLYCCL_SUCCESS;
}

static polyccl_result build_flows(pccl_flows *flows, uint64_t bytes, int32_t oversubscribed, int32_t *of_node,
                                  int32_t *hop_of, bool *cyclic) {
  const pccl_ir *ir = flows->ir;
  PCCL_TRY(find_capacities(flows, oversubscribed));
  for (size_t i = 0; i < ir->nodes.len; i++) {
    if (!ir->nodes.data[i].gone && ir->nodes.data[i].from < 0) {
      PCCL_TRY(add_chain(flows, (int32_t)i, of_node, hop_of));
    }
  }
  PCCL_TRY(find_edges(flows, of_node, hop_of));
  PCCL_TRY(find_successors(flows));
  PCCL_TRY(sort_flows(flows, cyclic));
  if (*cyclic) {
    return POLYCCL_SUCCESS;
  }
  find_tiles(flows, bytes);
  for (size_t i = 0; i < flows->count; i++) {
    estimate_flow(flows, &flows->flow[i]);
  }
  find_tails(flows);
  return find_passes(flows);
}

polyccl_result pccl_flows_build(pccl_ir *ir, const polyccl_topology *topology, uint64_t bytes, int32_t oversubscribed,
                                pccl_flows *flows, bool *cyclic) {
  size_t nodes = ir->nodes.len;
  pccl_flows made = {.ir = ir, .topology = topology, .flow = pccl_zeroed(nodes + 1, sizeof *made.flow)};
  int32_t *of_node = pccl_array(nodes, sizeof *of_node), *hop_of = pccl_array(nodes, sizeof *hop_of);
  bool ok = made.flow != NULL && of_node != NULL && hop_of != NULL;
  *cyclic = false;
  polyccl_result result =
      ok ? build_flows(&made, bytes, oversubscribed, of_node, hop_of, cyclic) : pccl_no_memory("the schedule");
  free(of_node);
  free(hop_of);
  if (result != POLYCCL_SUCCESS || *cyclic) {
    pccl_flows_free(&made);
    return result;
  }
  *flows = made;
  return POLYCCL_SUCCESS;
}
