/* list: list scheduling in time. HPDS counts sub-pipelines as if they were equally long. This scheduler estimates when
 * thread blocks and links are free, and places the flow that can start first. Among flows that can start in the same
 * window of time, priority decides. A rank's thread blocks are resources like its links, so any number of them can be
 * scheduled for.
 *
 * A flow takes one thread block for each of its hops, at the time its message gets there, and a place on each link, so
 * flows that share a saturated NIC go one after the other. Of the free thread blocks it takes those that are already
 * connected, which saves connections, and otherwise those that have been idle for the shortest time.
 *
 * The plan is safe for any number of micro-batches: flows are placed in an order that dependencies allow, every thread
 * block runs its hops in that order, and a flow never has two hops in one thread block. So the first unfinished flow
 * always has all its thread blocks ready, all it waits for has ended, and one FIFO slot is enough between its hops. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "compiler/flow.h"
#include "compiler/merge.h"

typedef struct ready_flow {
  double start; /* us, the earliest possible */
  double turn;  /* the window that the start falls into */
  double order; /* by the rule's priority; the smaller goes first within a turn */
  uint64_t tie;
  int32_t flow, group;
} ready_flow;

static bool goes_first(const ready_flow *a, const ready_flow *b) {
  if (a->turn != b->turn) {
    return a->turn < b->turn;
  }
  return a->order != b->order ? a->order < b->order : a->tie != b->tie ? a->tie < b->tie : a->flow < b->flow;
}

PCCL_HEAP(flow_heap, ready_flow, goes_first)

/* Ready flows of one route and pace wait for the same resources. Their earliest starts differ only by the data that
 * they wait for, so only the best of them is looked at when a resource changes hands. */
typedef struct group {
  flow_heap later;   /* those whose data comes after the resources are free */
  flow_heap now;     /* the others, which are of one turn; their turns are stored as 0 */
  ready_flow queued; /* the flow that stands for the group in lister.ready; flow -1: none */
} group;

typedef struct list_block {
  double free;
  int32_t to_rank, to_tb; /* where its last message went */
  int32_t flow;           /* that uses it at the moment of choosing */
} list_block;

typedef struct lister {
  const pccl_flows *flows;
  const pccl_list_rule *rule;
  double *start, *stretch; /* [flows] us; us that hops end later than their own work, since predecessors are slower */
  int32_t *missing;        /* [flows] */
  size_t *first_place;     /* [links + 1] */
  double *place;           /* when each place on a link is free */
  list_block *block;       /* [ranks x tbs] */
  int32_t *used;           /* [ranks] thread blocks used at all */
  flow_heap ready;         /* the best flow of each group, as it was when last looked at */
  PCCL_VEC(group) groups;
  pccl_map group_of; /* hash of a route and pace -> group */
  double window;     /* us */
} lister;

/* ---- the earliest start ---- */

static const pccl_node *node_of_hop(const lister *l, const pccl_flow *flow, int32_t hop) {
  return &l->flows->ir->nodes.data[l->flows->hop.data[flow->hop + hop].node];
}

static double end_of_hop(const lister *l, int32_t number, int32_t hop) {
  const pccl_flow *flow = &l->flows->flow[number];
  return l->start[number] + flow->lag * hop + flow->work + l->stretch[number];
}

/* us: when the data that the flow waits for is there. All its predecessors are placed. */
static double data_start(const lister *l, const pccl_flow *flow) {
  double start = 0;
  for (int32_t e = flow->edge; e < flow->edge + flow->edges; e++) {
    const pccl_flow_edge *edge = &l->flows->edge.data[e];
    const pccl_flow *other = &l->flows->flow[edge->flow];
    double tile = other->work / l->flows->batches;
    double at = l->rule->overlap ? l->start[edge->flow] + other->lag * edge->from + tile
                                 : end_of_hop(l, edge->flow, edge->from);
    at -= flow->lag * edge->hop;
    start = at > start ? at : start;
  }
  return start;
}

static size_t earliest_place(const lister *l, int32_t link) {
  size_t best = l->first_place[link];
  for (size_t p = best + 1; p < l->first_place[link + 1]; p++) {
    best = l->place[p] < l->place[best] ? p : best;
  }
  return best;
}

/* us: when `passes` thread blocks of the rank are free. */
static double blocks_free(const lister *l, int rank, int32_t passes) {
  const list_block *blocks = &l->block[(size_t)rank * (size_t)l->rule->tbs];
  double bound = -1;
  for (int32_t got = 0; got < passes;) {
    double next = INFINITY;
    int32_t equal = 0;
    for (int32_t i = 0; i < l->rule->tbs; i++) {
      if (blocks[i].free > bound && blocks[i].free <= next) {
        equal = blocks[i].free < next ? 1 : equal + 1;
        next = blocks[i].free;
      }
    }
    bound = next;
    got += equal;
  }
  return bound;
}

static double resource_start(const lister *l, const pccl_flow *flow) {
  double start = 0;
  for (int32_t h = 0; h < flow->hops; h++) {
    const pccl_flow_hop *hop = &l->flows->hop.data[flow->hop + h];
    int rank = node_of_hop(l, flow, h)->rank;
    int32_t passes = 1; /* earlier hops on this rank need a thread block each, too */
    for (int32_t k = 0; l->flows->passes > 1 && k < h; k++) {
      passes += node_of_hop(l, flow, k)->rank == rank;
    }
    double at = blocks_free(l, rank, passes) - flow->lag * h;
    start = at > start ? at : start;
    for (int32_t i = 0; i < hop->links; i++) {
      at = l->place[earliest_place(l, l->flows->route.link.data[hop->route + i])] - flow->lag * h;
      start = at > start ? at : start;
    }
  }
  return start;
}

/* Rounds up to 1/1024 us, small against every cost, so that times that are equal in the model compare as equal. */
static double round_time(double us) { return ceil(us * 1024) / 1024; }

static double turn_of_start(const lister *l, double start) { return l->window > 0 ? floor(start / l->window) : start; }

/* The flow with the start that its data alone allows. */
static ready_flow ready_flow_of(const lister *l, int32_t number) {
  const pccl_flow *flow = &l->flows->flow[number];
  /* us and instances stay far below the factors, so that each criterion outweighs all that come after it. */
  static const double by_scarcity = 1e15, by_instance = 1e9;
  double order = -flow->tail;
  if (l->rule->priority == PCCL_LIST_SCARCE) {
    order = (flow->scarce ? 0 : flow->before_scarce ? 1 : 2) * by_scarcity + flow->instance * by_instance - flow->tail;
  } else if (l->rule->priority == PCCL_LIST_INSTANCE) {
    order = flow->instance * by_instance - flow->tail;
  }
  double start = round_time(data_start(l, flow));
  return (ready_flow){.start = start,
                      .turn = turn_of_start(l, start),
                      .order = order,
                      .tie = l->rule->shuffle != 0 ? pccl_mix64((uint64_t)number ^ l->rule->shuffle) : 0,
                      .flow = number};
}

/* ---- groups ---- */

static uint64_t group_key(const lister *l, const pccl_flow *flow) {
  uint64_t key = 0;
  memcpy(&key, &flow->lag, sizeof key);
  key = pccl_mix64(key ^ (uint64_t)flow->hops);
  for (int32_t h = 0; h < flow->hops; h++) {
    key = pccl_mix64(key ^ (uint64_t)node_of_hop(l, flow, h)->rank);
  }
  return key >> 1;
}

/* Queues the group by this ready_flow, which replaces what stood for it. */
static bool queue_group(lister *l, ready_flow e) {
  l->groups.data[e.group].queued = e;
  return flow_heap_push(&l->ready, e);
}

static bool add_ready(lister *l, int32_t number) {
  bool is_new;
  uint64_t *g = pccl_map_put(&l->group_of, group_key(l, &l->flows->flow[number]), l->groups.len, &is_new);
  if (g == NULL || (is_new && !pccl_vec_push(&l->groups, (group){.queued = {.flow = -1}}))) {
    return false;
  }
  ready_flow e = ready_flow_of(l, number);
  e.group = (int32_t)*g;
  group *of = &l->groups.data[*g];
  if (!flow_heap_push(&of->later, e)) {
    return false;
  }
  /* The start may be too early for the resources; then it is corrected when the group's turn comes. */
  return (of->queued.flow >= 0 && !goes_first(&e, &of->queued)) || queue_group(l, e);
}

/* The best flow of the group as its resources are now. False: the group is empty, or memory ran out (*ok false). */
static bool best_of_group(lister *l, int32_t number, ready_flow *best, bool *ok) {
  group *g = &l->groups.data[number];
  if (g->later.len + g->now.len == 0) {
    return false;
  }
  int32_t any = g->now.len > 0 ? g->now.data[0].flow : g->later.data[0].flow;
  double resources = round_time(resource_start(l, &l->flows->flow[any])), turn = turn_of_start(l, resources);
  while (*ok && g->later.len > 0 && g->later.data[0].turn <= turn) {
    ready_flow e = flow_heap_pop(&g->later);
    e.turn = 0;
    *ok = flow_heap_push(&g->now, e);
  }
  *best = g->now.len > 0 ? g->now.data[0] : g->later.data[0];
  best->turn = g->now.len > 0 ? turn : best->turn;
  best->start = best->start > resources ? best->start : resources;
  return *ok;
}

/* ---- placing ---- */

/* Among the thread blocks that are free at `at`: `wanted` (-1: none), or else one whose last message went to `peer`, or
 * else the one that has been idle for the shortest time. */
static int32_t choose_block(const lister *l, int rank, double at, int32_t wanted, int32_t peer, int32_t flow) {
  const list_block *blocks = &l->block[(size_t)rank * (size_t)l->rule->tbs];
  int32_t best = -1, connected = -1;
  for (int32_t i = 0; i < l->rule->tbs; i++) {
    if (blocks[i].free > at || blocks[i].flow == flow) {
      continue;
    }
    if (i == wanted) {
      return i;
    }
    if (peer >= 0 && blocks[i].to_rank == peer && (connected < 0 || blocks[i].free > blocks[connected].free)) {
      connected = i;
    }
    if (best < 0 || blocks[i].free > blocks[best].free) {
      best = i;
    }
  }
  return connected >= 0 ? connected : best;
}

static polyccl_result place_hop(lister *l, int32_t number, int32_t h, list_block **previous) {
  const pccl_flow *flow = &l->flows->flow[number];
  pccl_ir *ir = l->flows->ir;
  const pccl_flow_hop *hop = &l->flows->hop.data[flow->hop + h];
  pccl_node *node = &ir->nodes.data[hop->node];
  int32_t wanted = *previous != NULL && (*previous)->to_rank == node->rank ? (*previous)->to_tb : -1;
  int32_t peer = node->to >= 0 ? ir->nodes.data[node->to].rank : -1;
  double at = l->start[number] + flow->lag * h;
  /* A millionth of a us forgives rounding errors of sums of starts and lags. */
  node->tb = choose_block(l, node->rank, at + 1e-6, wanted, peer, number);
  if (node->tb < 0) {
    return pccl_fail(POLYCCL_ERROR_INTERNAL, "no thread block of rank %d is free", node->rank);
  }
  list_block *block = &l->block[(size_t)node->rank * (size_t)l->rule->tbs + (size_t)node->tb];
  block->flow = number;
  block->free = end_of_hop(l, number, h);
  node->channel = -1;
  if (h > 0) {
    (*previous)->to_rank = node->rank;
    (*previous)->to_tb = node->tb;
  }
  for (int32_t i = 0; i < hop->links; i++) {
    l->place[earliest_place(l, l->flows->route.link.data[hop->route + i])] = end_of_hop(l, number, h);
  }
  l->used[node->rank] = node->tb + 1 > l->used[node->rank] ? node->tb + 1 : l->used[node->rank];
  *previous = block;
  return pccl_vec_push(&ir->order, hop->node) ? POLYCCL_SUCCESS : pccl_no_memory("thread blocks");
}

static polyccl_result place_flow(lister *l, const ready_flow *e, size_t turn) {
  const pccl_flow *flow = &l->flows->flow[e->flow];
  l->start[e->flow] = e->start;
  l->stretch[e->flow] = 0;
  for (int32_t k = flow->edge; l->rule->overlap && k < flow->edge + flow->edges; k++) {
    const pccl_flow_edge *edge = &l->flows->edge.data[k];
    double end = end_of_hop(l, edge->flow, edge->from) + flow->work / l->flows->batches;
    double late = end - end_of_hop(l, e->flow, edge->hop);
    l->stretch[e->flow] += late > 0 ? late : 0;
  }
  list_block *previous = NULL;
  for (int32_t h = 0; h < flow->hops; h++) {
    l->flows->ir->nodes.data[l->flows->hop.data[flow->hop + h].node].pipeline = (int32_t)turn;
    PCCL_TRY(place_hop(l, e->flow, h, &previous));
  }
  for (int32_t k = flow->succ; k < flow[1].succ; k++) {
    int32_t next = l->flows->succ[k];
    if (--l->missing[next] == 0 && !add_ready(l, next)) {
      return pccl_no_memory("the schedule");
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result place_next(lister *l, size_t turn, bool *placed) {
  ready_flow e = flow_heap_pop(&l->ready), best;
  group *g = &l->groups.data[e.group];
  bool ok = true;
  if (e.flow != g->queued.flow || e.turn != g->queued.turn) {
    return POLYCCL_SUCCESS; /* another flow stands for the group now */
  }
  g->queued.flow = -1;
  if (best_of_group(l, e.group, &best, &ok)) {
    *placed = !goes_first(&e, &best);
    if (*placed) {
      (void)flow_heap_pop(g->now.len > 0 ? &g->now : &g->later);
      PCCL_TRY(place_flow(l, &best, turn));
    }
    ok = !*placed || best_of_group(l, e.group, &best, &ok) ? queue_group(l, best) : ok;
  }
  return ok ? POLYCCL_SUCCESS : pccl_no_memory("the schedule");
}

/* Places all flows. A start that was right when it was estimated may have become too early; then the flow is queued
 * again. */
static polyccl_result run_list(lister *l) {
  for (size_t i = 0; i < l->flows->count; i++) {
    l->missing[i] = l->flows->flow[i].edges;
    if (l->missing[i] == 0 && !add_ready(l, (int32_t)i)) {
      return pccl_no_memory("the schedule");
    }
  }
  for (size_t turn = 0; l->ready.len > 0;) {
    bool placed = false;
    PCCL_TRY(place_next(l, turn, &placed));
    turn += placed;
  }
  return POLYCCL_SUCCESS;
}

static bool allocate_lister(lister *l) {
  size_t links = l->flows->topology->links, ranks = (size_t)l->flows->ir->spec.ranks, count = l->flows->count;
  l->start = pccl_array(count, sizeof *l->start);
  l->stretch = pccl_array(count, sizeof *l->stretch);
  l->missing = pccl_array(count, sizeof *l->missing);
  l->first_place = pccl_array(links + 1, sizeof *l->first_place);
  l->block = pccl_zeroed(ranks * (size_t)l->rule->tbs, sizeof *l->block);
  l->used = pccl_zeroed(ranks, sizeof *l->used);
  if (l->start == NULL || l->stretch == NULL || l->missing == NULL || l->first_place == NULL || l->block == NULL ||
      l->used == NULL) {
    return false;
  }
  for (size_t i = 0; i < ranks * (size_t)l->rule->tbs; i++) {
    l->block[i] = (list_block){.to_rank = -1, .flow = -1};
  }
  /* No more places than flows can use at once. */
  size_t total = 0, max = ranks * (size_t)l->rule->tbs;
  for (size_t i = 0; i < links; i++) {
    l->first_place[i] = total;
    total += (size_t)l->flows->capacity[i] < max ? (size_t)l->flows->capacity[i] : max;
  }
  l->first_place[links] = total;
  l->place = pccl_zeroed(total, sizeof *l->place);
  return l->place != NULL;
}

polyccl_result pccl_schedule_list(const pccl_flows *flows, const pccl_list_rule *rule, double *starts) {
  pccl_ir *ir = flows->ir;
  lister l = {.flows = flows, .rule = rule};
  for (size_t i = 0; i < flows->count; i++) {
    l.window += flows->flow[i].work * rule->window / (double)flows->count;
  }
  polyccl_result result;
  if (rule->tbs < flows->passes) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "a flow passes a rank %d times, it has only %d thread blocks",
                     flows->passes, rule->tbs);
  }
  if (allocate_lister(&l)) {
    ir->order.len = 0;
    ir->loop = POLYCCL_TASK_MAJOR;
    result = run_list(&l);
    if (starts != NULL && result == POLYCCL_SUCCESS) {
      memcpy(starts, l.start, flows->count * sizeof *starts);
    }
  } else {
    result = pccl_no_memory("the schedule");
  }
  free(l.start);
  free(l.stretch);
  free(l.missing);
  free(l.first_place);
  free(l.place);
  free(l.block);
  pccl_vec_free(&l.ready);
  for (size_t i = 0; i < l.groups.len; i++) {
    pccl_vec_free(&l.groups.data[i].later);
    pccl_vec_free(&l.groups.data[i].now);
  }
  pccl_vec_free(&l.groups);
  pccl_map_free(&l.group_of);
  if (result != POLYCCL_SUCCESS) {
    free(l.used);
    return result;
  }
  free(ir->tbs);
  ir->tbs = l.used;
  return pccl_channels_of_blocks(ir);
}
