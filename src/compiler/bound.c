/* bound: times that no schedule of this program on this topology can beat, however finely it cuts the data.
 *
 *   path    the latencies and step costs of the longest chain of dependencies. Data takes no time here, since it may be
 *           cut so finely that it flows through all of the chain at once. A send that follows a receive may be one step
 *           with it, so it costs nothing.
 *   link    for every link, the bytes that the program sends over it at the link's bandwidth, between the shortest path
 *           that can lead to it and the shortest that can follow
 *   blocks  where a rank has at most N thread blocks: the larger of the bytes that it sends and receives, at N times
 *           the bandwidth of one thread block (a fused step sends and receives in one pass)
 */
#include "compiler/bound.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "compiler/routes.h"

typedef struct bounds {
  const pccl_ir *ir;
  const polyccl_topology *topology;
  const polyccl_protocol_model *model;
  pccl_link_lists routes;
  double chunk_bytes;
  double *head, *tail;                 /* [nodes] us on the longest path before the node; from its start to an end */
  double *bytes, *min_head, *min_tail; /* [links] */
  double *sent, *received;             /* [ranks] bytes */
} bounds;

static double step_cost_of(const bounds *b, const pccl_node *node) {
  return node->op == POLYCCL_STEP_SEND && node->preds > 0 ? 0 : b->model->step_cost;
}

/* us from the end of the send to the start of its receive. With `count`, its bytes count for ranks and links. */
static polyccl_result cross_links(bounds *b, const pccl_node *send, bool count, double *latency) {
  const pccl_node *receive = &b->ir->nodes.data[send->to];
  const polyccl_topology *t = b->topology;
  int32_t first, links;
  PCCL_TRY(pccl_links_between(&b->routes, t, send->rank, receive->rank, &first, &links));
  *latency = b->model->latency;
  if (t->rank[send->rank].machine != t->rank[receive->rank].machine) {
    *latency += b->model->network_latency;
  }
  size_t number = (size_t)(send - b->ir->nodes.data);
  double bytes = b->chunk_bytes * send->count;
  b->sent[send->rank] += count ? bytes : 0;
  b->received[receive->rank] += count ? bytes : 0;
  for (int32_t i = 0; i < links; i++) {
    int32_t link = b->routes.link.data[first + i];
    *latency += t->link[link].latency;
    if (count) {
      b->bytes[link] += bytes;
      b->min_head[link] = b->head[number] < b->min_head[link] ? b->head[number] : b->min_head[link];
      b->min_tail[link] = b->tail[number] < b->min_tail[link] ? b->tail[number] : b->min_tail[link];
    }
  }
  return POLYCCL_SUCCESS;
}

/* Nodes stand in the order in which they were made, so what a node depends on stands before it. */
static polyccl_result find_paths(bounds *b) {
  const pccl_ir *ir = b->ir;
  for (size_t i = 0; i < ir->nodes.len; i++) {
    const pccl_node *node = &ir->nodes.data[i];
    double head = 0, latency;
    for (int32_t k = 0; k < node->preds; k++) {
      int32_t pred = ir->preds.data[node->pred + k];
      double end = b->head[pred] + step_cost_of(b, &ir->nodes.data[pred]);
      head = end > head ? end : head;
    }
    if (node->from >= 0) {
      const pccl_node *send = &ir->nodes.data[node->from];
      PCCL_TRY(cross_links(b, send, false, &latency));
      double arrival = b->head[node->from] + step_cost_of(b, send) + latency;
      head = arrival > head ? arrival : head;
    }
    b->head[i] = head;
  }
  for (size_t i = ir->nodes.len; i-- > 0;) {
    const pccl_node *node = &ir->nodes.data[i];
    double latency, before = b->tail[i] + step_cost_of(b, node);
    b->tail[i] = before;
    for (int32_t k = 0; k < node->preds; k++) {
      double *tail = &b->tail[ir->preds.data[node->pred + k]];
      *tail = before > *tail ? before : *tail;
    }
    if (node->from >= 0) {
      PCCL_TRY(cross_links(b, &ir->nodes.data[node->from], false, &latency));
      double *tail = &b->tail[node->from];
      *tail = before + latency > *tail ? before + latency : *tail;
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result find_bounds(bounds *b, int32_t max_tbs, pccl_bound *bound) {
  const pccl_ir *ir = b->ir;
  double launch = b->model->launch_cost, latency;
  PCCL_TRY(find_paths(b));
  *bound = (pccl_bound){.path = launch, .busiest = -1};
  for (size_t i = 0; i < ir->nodes.len; i++) {
    double path = launch + b->head[i] + b->tail[i];
    bound->path = path > bound->path ? path : bound->path;
    if (ir->nodes.data[i].to >= 0) {
      PCCL_TRY(cross_links(b, &ir->nodes.data[i], true, &latency));
    }
  }
  for (size_t i = 0; i < b->topology->links; i++) {
    double bandwidth = b->topology->link[i].bandwidth * b->model->efficiency;
    double time = launch + b->min_head[i] + b->bytes[i] / bandwidth * 1e-3 + b->min_tail[i]; /* GB/s: 1000 bytes a us */
    if (b->bytes[i] > 0 && time > bound->link) {
      bound->link = time;
      bound->busiest = (int32_t)i;
    }
  }
  for (int rank = 0; max_tbs > 0 && rank < ir->spec.ranks; rank++) {
    double bytes = b->sent[rank] > b->received[rank] ? b->sent[rank] : b->received[rank];
    double time = launch + bytes / (max_tbs * b->model->copy_bandwidth) * 1e-3;
    bound->blocks = time > bound->blocks ? time : bound->blocks;
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_bound_of(const pccl_ir *ir, const polyccl_topology *topology, uint64_t bytes, int32_t max_tbs,
                             pccl_bound *bound) {
  size_t links = topology->links, ranks = (size_t)ir->spec.ranks, nodes = ir->nodes.len;
  int input, output;
  pccl_collective_shape(&ir->spec, &input, &output);
  int larger = input > output ? input : output;
  bounds b = {.ir = ir,
              .topology = topology,
              .model = &topology->model[topology->rank[0].model].protocol[ir->program->config.protocol],
              .chunk_bytes = (double)bytes / (larger > 0 ? larger : 1),
              .head = pccl_zeroed(nodes, sizeof *b.head),
              .tail = pccl_zeroed(nodes, sizeof *b.tail),
              .bytes = pccl_zeroed(links, sizeof *b.bytes),
              .min_head = pccl_array(links, sizeof *b.min_head),
              .min_tail = pccl_array(links, sizeof *b.min_tail),
              .sent = pccl_zeroed(ranks, sizeof *b.sent),
              .received = pccl_zeroed(ranks, sizeof *b.received)};
  polyccl_result result = POLYCCL_SUCCESS;
  if (b.head == NULL || b.tail == NULL || b.bytes == NULL || b.min_head == NULL || b.min_tail == NULL ||
      b.sent == NULL || b.received == NULL) {
    result = pccl_no_memory("the bound");
  }
  for (size_t i = 0; i < links && result == POLYCCL_SUCCESS; i++) {
    b.min_head[i] = b.min_tail[i] = INFINITY;
  }
  result = result == POLYCCL_SUCCESS ? find_bounds(&b, max_tbs, bound) : result;
  pccl_link_lists_free(&b.routes);
  free(b.head);
  free(b.tail);
  free(b.bytes);
  free(b.min_head);
  free(b.min_tail);
  free(b.sent);
  free(b.received);
  return result;
}
