/* Cuts a topology into regions, and checks that every rank can reach every other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"
#include "topology/routes.h"

static const double MESSAGE_BYTES = 65536; /* "the quickest route" is that of a message of this size */

static uint64_t link_cost(const polyccl_link *link) {
  double us = link->latency + MESSAGE_BYTES / (link->bandwidth * 1e3);
  return (uint64_t)llround(us * 1e6) + 1; /* every hop has a cost */
}

static bool crosses_regions(const polyccl_topology *t, const polyccl_link *link) {
  return pccl_region_of(t, link->from) != pccl_region_of(t, link->to);
}

static bool allocate_routes(const polyccl_topology *t, struct pccl_routes *r) {
  size_t n = t->nodes, m = t->links;
  r->cost = pccl_array(m, sizeof *r->cost);
  r->out_first = pccl_zeroed(n + 2, sizeof(int32_t));
  r->in_first = pccl_zeroed(n + 2, sizeof(int32_t));
  r->out = pccl_array(m, sizeof(int32_t));
  r->in = pccl_array(m, sizeof(int32_t));
  r->min_out_cost = pccl_array(n, sizeof(uint64_t));
  r->min_in_cost = pccl_array(n, sizeof(uint64_t));
  r->pos = pccl_array(n, sizeof(int32_t));
  r->turn = pccl_zeroed(n, sizeof(int32_t));
  r->region = pccl_zeroed((size_t)t->machines + 1, sizeof *r->region);
  r->members = pccl_array(n, sizeof(int32_t));
  r->exits = pccl_array(m, sizeof(int32_t));
  r->entries = pccl_array(m, sizeof(int32_t));
  r->to = pccl_zeroed(n, sizeof *r->to);
  return r->cost != NULL && r->out_first != NULL && r->in_first != NULL && r->out != NULL && r->in != NULL &&
         r->min_out_cost != NULL && r->min_in_cost != NULL && r->pos != NULL && r->turn != NULL && r->region != NULL &&
         r->members != NULL && r->exits != NULL && r->entries != NULL && r->to != NULL;
}

/* Indexes the links by their source and by their destination, in the order of the links. */
static void index_links(const polyccl_topology *t, struct pccl_routes *r) {
  for (size_t i = 0; i < t->nodes; i++) {
    r->min_out_cost[i] = r->min_in_cost[i] = PCCL_INFINITE_DISTANCE;
  }
  for (size_t i = 0; i < t->links; i++) {
    uint64_t cost = r->cost[i] = link_cost(&t->link[i]);
    uint64_t *out = &r->min_out_cost[t->link[i].from], *in = &r->min_in_cost[t->link[i].to];
    *out = cost < *out ? cost : *out;
    *in = cost < *in ? cost : *in;
    r->out_first[t->link[i].from + 2]++;
    r->in_first[t->link[i].to + 2]++;
  }
  for (size_t i = 2; i < t->nodes + 2; i++) {
    r->out_first[i] += r->out_first[i - 1];
    r->in_first[i] += r->in_first[i - 1];
  }
  for (size_t i = 0; i < t->links; i++) {
    r->out[r->out_first[t->link[i].from + 1]++] = (int32_t)i;
    r->in[r->in_first[t->link[i].to + 1]++] = (int32_t)i;
  }
}

static void index_regions(const polyccl_topology *t, struct pccl_routes *r) {
  for (size_t i = 0; i < t->nodes; i++) {
    pccl_region *own = &r->region[pccl_region_of(t, (int32_t)i)];
    r->pos[i] = own->nodes++;
  }
  for (size_t i = 0; i < t->links; i++) {
    if (crosses_regions(t, &t->link[i])) {
      r->region[pccl_region_of(t, t->link[i].from)].exits++;
      r->region[pccl_region_of(t, t->link[i].to)].entries++;
    }
  }
  size_t members = 0, exits = 0, entries = 0;
  for (int32_t i = 0; i <= t->machines; i++) {
    pccl_region *own = &r->region[i];
    own->node = r->members + members;
    own->exit = r->exits + exits;
    own->entry = r->entries + entries;
    members += (size_t)own->nodes;
    exits += (size_t)own->exits;
    entries += (size_t)own->entries;
    own->exits = own->entries = 0;
  }
  for (size_t i = 0; i < t->links; i++) {
    if (crosses_regions(t, &t->link[i])) {
      pccl_region *from = &r->region[pccl_region_of(t, t->link[i].from)];
      pccl_region *into = &r->region[pccl_region_of(t, t->link[i].to)];
      from->exit[from->exits++] = (int32_t)i;
      into->entry[into->entries++] = (int32_t)i;
    }
  }
  for (size_t i = 0; i < t->nodes; i++) {
    r->region[pccl_region_of(t, (int32_t)i)].node[r->pos[i]] = (int32_t)i;
  }
}

static void deal_turns(const polyccl_topology *t, struct pccl_routes *r) {
  for (int32_t m = 0; m < t->machines; m++) {
    int32_t next = 0;
    for (int32_t i = 0; i < r->region[m].nodes; i++) {
      int32_t node = r->region[m].node[i];
      r->turn[node] = t->node[node].kind == POLYCCL_NODE_DEVICE ? next++ : 0;
    }
  }
}

polyccl_result pccl_routes_create(const polyccl_topology *topology, pccl_map pairs, struct pccl_routes **routes) {
  struct pccl_routes *r = pccl_zeroed(1, sizeof *r);
  if (r == NULL || pthread_mutex_init(&r->lock, NULL) != 0) {
    free(r);
    pccl_map_free(&pairs);
    return pccl_no_memory("routes");
  }
  r->pairs = pairs;
  if (!allocate_routes(topology, r)) {
    pccl_routes_destroy(r, topology->nodes);
    return pccl_no_memory("routes");
  }
  index_links(topology, r);
  index_regions(topology, r);
  deal_turns(topology, r);
  *routes = r;
  return POLYCCL_SUCCESS;
}

void pccl_routes_destroy(struct pccl_routes *r, size_t nodes) {
  if (r == NULL) {
    return;
  }
  for (size_t i = 0; r->to != NULL && i < nodes; i++) {
    free(atomic_load_explicit(&r->to[i], memory_order_relaxed));
  }
  pthread_mutex_destroy(&r->lock);
  pccl_map_free(&r->pairs);
  free(r->min_out_cost);
  free(r->min_in_cost);
  free(r->cost);
  free(r->out_first);
  free(r->in_first);
  free(r->out);
  free(r->in);
  free(r->pos);
  free(r->turn);
  free(r->region);
  free(r->members);
  free(r->exits);
  free(r->entries);
  free(r->to);
  free(r);
}

/* ---- the check ---- */

/* Marks with `bit` the nodes of the region that `start` reaches (or, backward, that reach it). `queue` has room for all
 * of them. */
static void mark_reachable(const polyccl_topology *t, int32_t start, bool forward, unsigned char bit,
                           unsigned char *mark, int32_t *queue) {
  const struct pccl_routes *r = t->routes;
  const int32_t *first = forward ? r->out_first : r->in_first, *links = forward ? r->out : r->in;
  size_t head = 0, tail = 0;
  queue[tail++] = start;
  mark[start] |= bit;
  while (head < tail) {
    int32_t at = queue[head++];
    if (t->node[at].kind == POLYCCL_NODE_NIC && t->node[at].machine >= 0) {
      continue; /* a NIC is not passed */
    }
    for (int32_t i = first[at]; i < first[at + 1]; i++) {
      int32_t next = forward ? t->link[links[i]].to : t->link[links[i]].from;
      if (!(mark[next] & bit) && pccl_region_of(t, next) == pccl_region_of(t, start)) {
        mark[next] |= bit;
        queue[tail++] = next;
      }
    }
  }
}

enum { FORWARD = 1, BACKWARD = 2, BOTH = 3 };

/* True when the ranks of each machine reach one another inside it. */
static bool machines_are_whole(const polyccl_topology *t, unsigned char *mark, int32_t *queue) {
  bool whole = true;
  for (int32_t m = 0; m < t->machines; m++) {
    const pccl_region *own = &t->routes->region[m];
    int32_t first = -1;
    for (int32_t i = 0; i < own->nodes && first < 0; i++) {
      first = t->node[own->node[i]].rank >= 0 ? own->node[i] : -1;
    }
    if (first >= 0) {
      mark_reachable(t, first, true, FORWARD, mark, queue);
      mark_reachable(t, first, false, BACKWARD, mark, queue);
    }
    for (int32_t i = 0; i < own->nodes; i++) {
      whole = whole && (t->node[own->node[i]].rank < 0 || mark[own->node[i]] == BOTH);
    }
  }
  return whole;
}

/* True when the nodes between machines are one network, and no link joins two machines directly. */
static bool network_is_whole(const polyccl_topology *t, unsigned char *mark, int32_t *queue) {
  const struct pccl_routes *r = t->routes;
  const pccl_region *middle = &r->region[t->machines];
  for (size_t i = 0; i < t->links; i++) {
    if (crosses_regions(t, &t->link[i]) && t->node[t->link[i].from].machine >= 0 &&
        t->node[t->link[i].to].machine >= 0) {
      return false;
    }
  }
  if (middle->nodes > 0) {
    mark_reachable(t, middle->node[0], true, FORWARD, mark, queue);
    mark_reachable(t, middle->node[0], false, BACKWARD, mark, queue);
  }
  for (int32_t i = 0; i < middle->nodes; i++) {
    if (mark[middle->node[i]] != BOTH) {
      return false;
    }
  }
  return middle->nodes > 0;
}

static polyccl_result check_pair(const polyccl_topology *t, int src, int dst) {
  size_t count;
  PCCL_TRY(polyccl_topology_route(t, src, dst, NULL, 0, &count));
  return polyccl_topology_route(t, dst, src, NULL, 0, &count);
}

/* Checks one rank of each machine with a rank of another, which is enough where machines and network are whole. */
static polyccl_result check_machines(const polyccl_topology *t) {
  int other = 0; /* a rank outside rank 0's machine */
  while (other < t->ranks && t->rank[other].machine == t->rank[0].machine) {
    other++;
  }
  unsigned char *tried = pccl_zeroed((size_t)t->machines, 1);
  if (tried == NULL) {
    return pccl_no_memory("routes");
  }
  polyccl_result result = POLYCCL_SUCCESS;
  for (int r = 0; r < t->ranks && other < t->ranks && result == POLYCCL_SUCCESS; r++) {
    if (!tried[t->rank[r].machine]) {
      tried[t->rank[r].machine] = 1;
      result = check_pair(t, r, t->rank[r].machine == t->rank[0].machine ? other : 0);
    }
  }
  free(tried);
  return result;
}

/* Checks every pair, which only a small topology can afford. */
static polyccl_result check_all_pairs(const polyccl_topology *t) {
  enum { MAX_RANKS = 1024 };
  if (t->ranks > MAX_RANKS) {
    return pccl_fail(
        POLYCCL_ERROR_LIMIT,
        "%d ranks are more than %d, the limit where the ranks of a machine are not joined inside it, or the machines "
        "not by one network of switches",
        (int)t->ranks, MAX_RANKS);
  }
  for (int src = 0; src < t->ranks; src++) {
    for (int dst = src + 1; dst < t->ranks; dst++) {
      PCCL_TRY(check_pair(t, src, dst));
    }
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_routes_check(const polyccl_topology *topology) {
  unsigned char *mark = pccl_zeroed(topology->nodes, 1);
  int32_t *queue = pccl_array(topology->nodes, sizeof *queue);
  if (mark == NULL || queue == NULL) {
    free(mark);
    free(queue);
    return pccl_no_memory("routes");
  }
  bool several = false;
  for (int32_t r = 1; r < topology->ranks; r++) {
    several = several || topology->rank[r].machine != topology->rank[0].machine;
  }
  bool whole = machines_are_whole(topology, mark, queue) && (!several || network_is_whole(topology, mark, queue));
  free(mark);
  free(queue);
  return whole ? check_machines(topology) : check_all_pairs(topology);
}
