/* Computes routes on request, from tables of the distances to one target, which are made on first use and kept. */
#include "topology/routes.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/vec.h"

static const uint64_t THROUGH_DEVICE = UINT64_C(1)
                                       << 42; /* more than the cost of any link, so a detour is always better */

static bool is_device(const polyccl_topology *t, int32_t node) { return t->node[node].kind == POLYCCL_NODE_DEVICE; }

/* The cost of passing `node`. A route may leave its machine by a NIC, but not pass through one. */
static uint64_t passing_cost(const polyccl_topology *t, int32_t node) {
  switch (t->node[node].kind) {
    case POLYCCL_NODE_DEVICE: return THROUGH_DEVICE;
    case POLYCCL_NODE_NIC: return t->node[node].machine >= 0 ? PCCL_INFINITE_DISTANCE : 0;
    default: return 0;
  }
}

/* ---- tables of distances ---- */

typedef struct node_entry {
  uint64_t distance;
  int32_t node;
} node_entry;

static bool nearer(const node_entry *a, const node_entry *b) { return a->distance < b->distance; }

PCCL_HEAP(node_heap, node_entry, nearer)

/* Dijkstra's algorithm, backwards from `target` within its region. False: no memory. */
static bool fill_distances(const polyccl_topology *t, int32_t target, uint64_t *distance) {
  const struct pccl_routes *r = t->routes;
  int32_t where = pccl_region_of(t, target);
  for (int32_t i = 0; i < r->region[where].nodes; i++) {
    distance[i] = PCCL_INFINITE_DISTANCE;
  }
  node_heap h = {0};
  distance[r->pos[target]] = 0;
  bool ok = node_heap_push(&h, (node_entry){0, target});
  while (ok && h.len > 0) {
    node_entry item = node_heap_pop(&h);
    uint64_t pass = item.node != target ? passing_cost(t, item.node) : 0;
    if (item.distance > distance[r->pos[item.node]] || pass == PCCL_INFINITE_DISTANCE) {
      continue;
    }
    for (int32_t i = r->in_first[item.node]; ok && i < r->in_first[item.node + 1]; i++) {
      int32_t from = t->link[r->in[i]].from;
      uint64_t through = item.distance + pass + r->cost[r->in[i]];
      if (pccl_region_of(t, from) == where && through < distance[r->pos[from]]) {
        distance[r->pos[from]] = through;
        ok = node_heap_push(&h, (node_entry){through, from});
      }
    }
  }
  pccl_vec_free(&h);
  return ok;
}

/* The table of `target`; NULL: no memory. */
static const uint64_t *distances_to(const polyccl_topology *t, int32_t target) {
  struct pccl_routes *r = t->routes;
  uint64_t *table = atomic_load_explicit(&r->to[target], memory_order_acquire);
  if (table != NULL) {
    return table;
  }
  pthread_mutex_lock(&r->lock);
  table = atomic_load_explicit(&r->to[target], memory_order_relaxed);
  if (table == NULL) {
    table = pccl_array((size_t)r->region[pccl_region_of(t, target)].nodes, sizeof *table);
    if (table != NULL && !fill_distances(t, target, table)) {
      free(table);
      table = NULL;
    }
    atomic_store_explicit(&r->to[target], table, memory_order_release);
  }
  pthread_mutex_unlock(&r->lock);
  return table;
}

/* ---- links that are routes ---- */

static int32_t find_link(const polyccl_topology *t, int32_t from, int32_t to) {
  const uint64_t *link = pccl_map_get(&t->routes->pairs, (uint64_t)(uint32_t)from << 32 | (uint32_t)to);
  return link != NULL ? (int32_t)*link : -1;
}

/* The link from `src` to `dst` if it costs no more than any two links: the quickest way, and no table is needed. */
static int32_t sure_link(const polyccl_topology *t, int32_t src, int32_t dst) {
  const struct pccl_routes *r = t->routes;
  int32_t link = find_link(t, src, dst);
  return link >= 0 && r->cost[link] <= r->min_out_cost[src] + r->min_in_cost[dst] ? link : -1;
}

/* ---- walking ---- */

typedef struct walker {
  const polyccl_topology *t;
  int32_t *links;
  size_t capacity, count;
  int devices;   /* passed on the way */
  uint64_t salt; /* of (src, dst): chooses among equal ways */
} walker;

static void append_link(walker *w, int32_t link) {
  if (w->count < w->capacity) {
    w->links[w->count] = link;
  }
  w->count++;
}

/* Appends a route from `at` to `target` in one region, by links that reduce the distance. The caller has checked that
 * the distance is not infinite. */
static polyccl_result walk_to(walker *w, int32_t at, int32_t target) {
  const polyccl_topology *t = w->t;
  const struct pccl_routes *r = t->routes;
  const uint64_t *distance = distances_to(t, target);
  if (distance == NULL) {
    return pccl_no_memory("routes");
  }
  while (at != target) {
    int32_t equal = 0, chosen = find_link(t, at, target); /* the last link, if it is one of the best ways */
    chosen = chosen >= 0 && r->cost[chosen] == distance[r->pos[at]] ? chosen : -1;
    for (int32_t i = chosen >= 0 ? r->out_first[at + 1] : r->out_first[at]; i < r->out_first[at + 1]; i++) {
      int32_t link = r->out[i], next = t->link[link].to;
      if (pccl_region_of(t, next) != pccl_region_of(t, target) || distance[r->pos[next]] == PCCL_INFINITE_DISTANCE) {
        continue;
      }
      uint64_t pass = next != target ? passing_cost(t, next) : 0;
      if (pass == PCCL_INFINITE_DISTANCE || distance[r->pos[next]] + pass + r->cost[link] != distance[r->pos[at]]) {
        continue;
      }
      equal++; /* each of the equal ways ends up chosen for one share of the pairs */
      if (equal == 1 || pccl_mix64(w->salt ^ ((uint64_t)(uint32_t)at << 32 | (uint32_t)link)) % (uint64_t)equal == 0) {
        chosen = link;
      }
    }
    if (chosen < 0) {
      return pccl_fail(POLYCCL_ERROR_INTERNAL, "the route from \"%s\" to \"%s\" ends at \"%s\"", t->node[at].name,
                       t->node[target].name, t->node[at].name);
    }
    append_link(w, chosen);
    at = t->link[chosen].to;
    w->devices += at != target && is_device(t, at);
  }
  return POLYCCL_SUCCESS;
}

/* ---- between machines ---- */

typedef struct crossing {
  int32_t exit, entry; /* links; entry -1: `exit` leads straight into the destination's machine */
} crossing;

static uint64_t add_distances(uint64_t a, uint64_t b) {
  return a == PCCL_INFINITE_DISTANCE || b == PCCL_INFINITE_DISTANCE ? PCCL_INFINITE_DISTANCE : a + b;
}

/* The cost from `src` through `exit` to its remote end; from the source of `entry` to `dst`. They set `*ok` to false
 * when there is no memory for a table. */
static uint64_t exit_cost(const polyccl_topology *t, int32_t src, int32_t exit, bool *ok) {
  int32_t border = t->link[exit].from;
  const uint64_t *table = distances_to(t, border);
  *ok = *ok && table != NULL;
  uint64_t own = border != src && is_device(t, border) ? THROUGH_DEVICE : 0;
  return table == NULL ? PCCL_INFINITE_DISTANCE
                       : add_distances(table[t->routes->pos[src]], own + t->routes->cost[exit]);
}

static uint64_t entry_cost(const polyccl_topology *t, int32_t entry, int32_t dst, bool *ok) {
  int32_t border = t->link[entry].to;
  const uint64_t *table = distances_to(t, dst);
  *ok = *ok && table != NULL;
  uint64_t own = border != dst && is_device(t, border) ? THROUGH_DEVICE : 0;
  return table == NULL ? PCCL_INFINITE_DISTANCE
                       : add_distances(table[t->routes->pos[border]], own + t->routes->cost[entry]);
}

/* The whole way by exit and entry. */
static uint64_t crossing_cost(const polyccl_topology *t, int32_t src, int32_t dst, crossing c, bool *ok) {
  uint64_t out = exit_cost(t, src, c.exit, ok);
  int32_t a = t->link[c.exit].to;
  if (c.entry < 0) {
    const uint64_t *table = distances_to(t, dst);
    *ok = *ok && table != NULL;
    uint64_t own = a != dst && is_device(t, a) ? THROUGH_DEVICE : 0;
    return table == NULL ? PCCL_INFINITE_DISTANCE : add_distances(out, add_distances(table[t->routes->pos[a]], own));
  }
  uint64_t in = entry_cost(t, c.entry, dst, ok);
  if (out == PCCL_INFINITE_DISTANCE || in == PCCL_INFINITE_DISTANCE) {
    return PCCL_INFINITE_DISTANCE;
  }
  const uint64_t *middle = distances_to(t, t->link[c.entry].from);
  *ok = *ok && middle != NULL;
  return middle == NULL ? PCCL_INFINITE_DISTANCE : add_distances(add_distances(out, in), middle[t->routes->pos[a]]);
}

typedef PCCL_VEC(crossing) crossings;

/* Adds `c` if it is as good as those in `best`, alone if it is better. */
static bool offer_crossing(const polyccl_topology *t, int32_t src, int32_t dst, crossing c, crossings *best,
                           uint64_t *min_cost) {
  bool ok = true;
  uint64_t cost = crossing_cost(t, src, dst, c, &ok);
  if (!ok) {
    return false;
  }
  if (cost < *min_cost) {
    *min_cost = cost;
    best->len = 0;
  }
  return cost == PCCL_INFINITE_DISTANCE || cost > *min_cost || pccl_vec_push(best, c);
}

static bool find_crossings(const polyccl_topology *t, int32_t src, int32_t dst, crossings *best) {
  const pccl_region *from = &t->routes->region[t->node[src].machine], *into = &t->routes->region[t->node[dst].machine];
  uint64_t min_cost = PCCL_INFINITE_DISTANCE;
  for (int32_t i = 0; i < from->exits; i++) {
    int32_t remote_end = t->link[from->exit[i]].to;
    if (t->node[remote_end].machine == t->node[dst].machine) {
      if (!offer_crossing(t, src, dst, (crossing){from->exit[i], -1}, best, &min_cost)) {
        return false;
      }
    }
    for (int32_t k = 0; t->node[remote_end].machine < 0 && k < into->entries; k++) {
      if (t->node[t->link[into->entry[k]].from].machine < 0 &&
          !offer_crossing(t, src, dst, (crossing){from->exit[i], into->entry[k]}, best, &min_cost)) {
        return false;
      }
    }
  }
  return true;
}

/* Equal ways are dealt out to the devices of a machine in turn, at both ends: two GPUs with two NICs use both. `best`
 * is sorted by exit, then by entry. */
static crossing choose_crossing(const polyccl_topology *t, int32_t src, int32_t dst, const crossings *best) {
  size_t exits = 0;
  for (size_t i = 0; i < best->len; i++) {
    exits += i == 0 || best->data[i].exit != best->data[i - 1].exit;
  }
  size_t wanted = (size_t)t->routes->turn[src] % exits, first = 0;
  for (size_t i = 1; i < best->len && wanted > 0; i++) {
    if (best->data[i].exit != best->data[i - 1].exit) {
      first = i;
      wanted--;
    }
  }
  size_t entries = 0;
  while (first + entries < best->len && best->data[first + entries].exit == best->data[first].exit) {
    entries++;
  }
  return best->data[first + (size_t)t->routes->turn[dst] % entries];
}

static polyccl_result walk_crossing(walker *w, int32_t src, int32_t dst, crossing c) {
  const polyccl_topology *t = w->t;
  PCCL_TRY(walk_to(w, src, t->link[c.exit].from));
  w->devices += t->link[c.exit].from != src && is_device(t, t->link[c.exit].from);
  append_link(w, c.exit);
  int32_t at = t->link[c.exit].to;
  if (c.entry >= 0) {
    PCCL_TRY(walk_to(w, at, t->link[c.entry].from));
    append_link(w, c.entry);
    at = t->link[c.entry].to;
  }
  w->devices += at != dst && is_device(t, at);
  return walk_to(w, at, dst);
}

/* `*found` false: there is no way. */
static polyccl_result find_route(walker *w, int src_rank, int dst_rank, bool *found) {
  const polyccl_topology *t = w->t;
  int32_t src = t->rank[src_rank].node, dst = t->rank[dst_rank].node;
  w->salt = pccl_mix64((uint64_t)(uint32_t)src_rank << 32 | (uint32_t)dst_rank);
  *found = true;
  if (src == dst) {
    return POLYCCL_SUCCESS;
  }
  if (t->node[src].machine == t->node[dst].machine) {
    int32_t link = sure_link(t, src, dst);
    if (link >= 0) {
      append_link(w, link);
      return POLYCCL_SUCCESS;
    }
    const uint64_t *distance = distances_to(t, dst);
    if (distance == NULL) {
      return pccl_no_memory("routes");
    }
    if (distance[t->routes->pos[src]] != PCCL_INFINITE_DISTANCE) {
      return walk_to(w, src, dst);
    }
  }
  crossings best = {0};
  polyccl_result result = POLYCCL_SUCCESS;
  if (!find_crossings(t, src, dst, &best)) {
    result = pccl_no_memory("routes");
  } else if (best.len == 0) {
    *found = false;
  } else {
    result = walk_crossing(w, src, dst, choose_crossing(t, src, dst, &best));
  }
  pccl_vec_free(&best);
  return result;
}

polyccl_result pccl_no_route(const polyccl_topology *t, int src, int dst) {
  return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d (\"%s\") cannot reach rank %d (\"%s\"): there is no route of links",
                   src, t->node[t->rank[src].node].name, dst, t->node[t->rank[dst].node].name);
}

polyccl_result polyccl_topology_route(const polyccl_topology *topology, int src, int dst, int32_t *links,
                                      size_t capacity, size_t *count) {
  if (src < 0 || dst < 0 || src >= topology->ranks || dst >= topology->ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "no route from rank %d to rank %d: %s has ranks 0 .. %d", src, dst,
                     topology->name, (int)topology->ranks - 1);
  }
  walker w = {.t = topology, .links = links, .capacity = capacity};
  bool found;
  PCCL_TRY(find_route(&w, src, dst, &found));
  if (!found) {
    return pccl_no_route(topology, src, dst);
  }
  *count = w.count;
  return POLYCCL_SUCCESS;
}

bool polyccl_topology_linked(const polyccl_topology *topology, int src, int dst) {
  if (src < 0 || dst < 0 || src >= topology->ranks || dst >= topology->ranks) {
    return false;
  }
  walker w = {.t = topology};
  bool found;
  return find_route(&w, src, dst, &found) == POLYCCL_SUCCESS && found && w.devices == 0;
}
