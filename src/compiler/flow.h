/* Flows: the unit of the list scheduler. A flow is a local node, or a chain of nodes that one message runs through:
 * from the send over the steps that receive and forward to the last receive. Its hops work at the same time,
 * micro-batch after micro-batch, so a flow is scheduled as a whole, with all its thread blocks and links. Where the
 * pass fuse did not run, a flow is a send and its receive.
 *
 * Durations are estimates from the topology's figures, for one size of the call. */
#ifndef PCCL_COMPILER_FLOW_H
#define PCCL_COMPILER_FLOW_H

#include "compiler/ir.h"
#include "compiler/routes.h"

typedef struct pccl_flow_hop {
  int32_t node;
  int32_t route, links; /* from here to the next hop, in route.link; the last hop has none */
} pccl_flow_hop;

/* Hop `hop` of the flow waits for a hop of an earlier one. */
typedef struct pccl_flow_edge {
  int32_t flow, from, hop; /* the earlier flow, its hop, ours */
} pccl_flow_edge;

typedef struct pccl_flow {
  int32_t hop, hops;   /* in flows->hop */
  int32_t edge, edges; /* in flows->edge: what it waits for */
  int32_t succ;        /* in flows->succ; ends where the next flow's begin */
  int32_t instance;
  bool scarce, before_scarce; /* crosses a link that one or two thread blocks fill; leads to a flow that does */
  double rate;                /* GB/s, where its links are shared as the capacities say */
  double work;                /* us of each hop's thread block */
  double lag;                 /* us from a hop's start to the next one's */
  double tail;                /* us on the longest way to an end, this flow included */
} pccl_flow;

typedef struct pccl_flows {
  pccl_ir *ir;
  const polyccl_topology *topology;
  pccl_flow *flow; /* [count + 1], the last one marks the end of succ */
  size_t count;
  PCCL_VEC(pccl_flow_hop) hop;
  PCCL_VEC(pccl_flow_edge) edge;
  int32_t *succ;
  int32_t *order;    /* [count] a topological order */
  int32_t *capacity; /* [links] flows at once */
  pccl_link_lists route;
  double chunk_bytes;
  double batches; /* micro-batches */
  int32_t passes; /* max hops of one flow on one rank: the min number of thread blocks */
} pccl_flows;

/* Makes the flows of the IR for a call of `bytes`. `oversubscribed`: flows admitted to a link beyond those that its
 * bandwidth feeds at full speed. `*cyclic`: flows wait for each other and cannot be scheduled as wholes; then nothing
 * is made. */
polyccl_result pccl_flows_build(pccl_ir *ir, const polyccl_topology *topology, uint64_t bytes, int32_t oversubscribed,
                                pccl_flows *flows, bool *cyclic);
void pccl_flows_free(pccl_flows *flows);

/* Marks what crosses a link that one thread block fills, so that fuse leaves it apart: such hops then start when the
 * link is free, and need not wait until a whole chain can start. */
polyccl_result pccl_flows_set_apart(pccl_ir *ir, const polyccl_topology *topology);

typedef enum pccl_list_priority {
  PCCL_LIST_TAIL = 0, /* longest remaining path first */
  PCCL_LIST_INSTANCE, /* instances one after the other, then longest path */
  PCCL_LIST_SCARCE,   /* what crosses a scarce link, then what leads to one, then by instance and path */
  PCCL_LIST_PRIORITIES
} pccl_list_priority;

typedef struct pccl_list_rule {
  int32_t tbs; /* thread blocks of a rank, at least flows->passes */
  pccl_list_priority priority;
  bool overlap;     /* a flow may start with the first micro-batch of what it waits for */
  double window;    /* mean durations: starts within one window count as equal, and priority decides; 0: none */
  uint64_t shuffle; /* ties in an order drawn from this; 0: by number */
} pccl_list_rule;

/* List scheduling in time (list.c): thread blocks, channels and the order for emit, as pccl_pass_allocate() does.
 * `starts` NULL, or room for the estimated start of each flow, us. */
polyccl_result pccl_schedule_list(const pccl_flows *flows, const pccl_list_rule *rule, double *starts);

#endif
