/* Routes, and what can be short on them. A link that one thread block has for itself only bounds that block's rate; a
 * shared link matters only if its users can together want more than it carries; of links with the same users only the
 * narrowest matters. What remains are the resources that share.c looks after; everything else has a fixed rate. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "simulator/machine.h"

typedef struct link_users {
  double wanted; /* bytes per ps, all users at once */
  double last_cap;
  double contention;    /* the worst among them */
  uint64_t connections; /* hash of the set */
  int32_t blocks;       /* users */
  int32_t last_tb, last_rank, on_rank;
  int32_t resource; /* or -1 */
} link_users;

/* The thread block that moves bytes over the connection at end 0 (its sender) or 1 (its receiver); -1: none there. */
static int32_t user_of(const sim_connection *c, int end) {
  return !c->way[end].used ? -1 : end == 0 ? c->src_tb : c->dst_tb;
}

typedef PCCL_VEC(int32_t) int_vec;

static polyccl_result add_route(sim *s, int src, int dst, int_vec *hops, int32_t *first, int32_t *count) {
  size_t length = 0;
  for (size_t room = 16;; room = length) {
    if (!pccl_vec_reserve(hops, room)) {
      return pccl_no_memory("routes");
    }
    PCCL_TRY(polyccl_topology_route(s->topology, src, dst, hops->data + hops->len, room, &length));
    if (length <= room) {
      break;
    }
  }
  if (hops->len + length > INT32_MAX) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the routes of the plan are too many to simulate");
  }
  *first = (int32_t)hops->len;
  *count = (int32_t)length;
  hops->len += length;
  return POLYCCL_SUCCESS;
}

static void connection_latency(sim *s, int32_t index) {
  sim_connection *c = &s->connection[index];
  double links = 0;
  for (int32_t h = 0; h < c->hops; h++) {
    links += s->topology->link[s->hop[c->hop + h]].latency;
  }
  const polyccl_connection *from = &s->plan->connection[index];
  c->credit_latency = (int64_t)(links * SIM_PS_PER_US + 0.5);
  const polyccl_topology_rank *src = &s->topology->rank[from->src], *dst = &s->topology->rank[from->dst];
  const sim_model *model = &s->model[src->model];
  c->latency = c->credit_latency + model->latency + (src->machine != dst->machine ? model->network_latency : 0);
}

static polyccl_result find_routes(sim *s) {
  pccl_map known = {0}; /* pair of ranks -> first connection with it */
  int_vec hops = {0};
  polyccl_result result = POLYCCL_SUCCESS;
  for (size_t i = 0; i < s->plan->connections && result == POLYCCL_SUCCESS; i++) {
    const polyccl_connection *from = &s->plan->connection[i];
    sim_connection *to = &s->connection[i];
    if (to->src_tb < 0 && to->dst_tb < 0) {
      continue;
    }
    bool is_new;
    uint64_t key = (uint64_t)from->src * (uint64_t)s->plan->ranks + (uint64_t)from->dst;
    uint64_t *first = pccl_map_put(&known, key, i, &is_new);
    if (first == NULL) {
      result = pccl_no_memory("routes");
    } else if (is_new) {
      result = add_route(s, from->src, from->dst, &hops, &to->hop, &to->hops);
    } else {
      to->hop = s->connection[*first].hop;
      to->hops = s->connection[*first].hops;
    }
  }
  pccl_map_free(&known);
  s->hop = hops.data;
  PCCL_TRY(result);
  for (size_t i = 0; i < s->plan->connections; i++) {
    connection_latency(s, (int32_t)i);
  }
  return POLYCCL_SUCCESS;
}

/* Connections by the thread block that moves their bytes: `list` from first[tb] to first[tb + 1]. */
static polyccl_result by_user(sim *s, int32_t **first, int32_t **list) {
  size_t count = s->plan->connections;
  PCCL_TRY(SIM_ALLOC(s, *first, (size_t)s->tbs + 2));
  PCCL_TRY(SIM_ALLOC(s, *list, 2 * count));
  for (size_t i = 0; i < 2 * count; i++) {
    int32_t user = user_of(&s->connection[i / 2], i % 2);
    if (user >= 0) {
      (*first)[user + 2]++;
    }
  }
  for (int32_t t = 0; t < s->tbs; t++) {
    (*first)[t + 2] += (*first)[t + 1];
  }
  for (size_t i = 0; i < 2 * count; i++) {
    int32_t user = user_of(&s->connection[i / 2], i % 2);
    if (user >= 0) {
      (*list)[(*first)[user + 1]++] = (int32_t)(i / 2);
    }
  }
  return POLYCCL_SUCCESS;
}

/* Thread blocks contend where they meet the hardware: at ports of devices and NICs, not inside the network. */
static bool is_port(const polyccl_topology *topology, int32_t link) {
  polyccl_node_kind from = topology->node[topology->link[link].from].kind;
  polyccl_node_kind to = topology->node[topology->link[link].to].kind;
  return from == POLYCCL_NODE_DEVICE || from == POLYCCL_NODE_NIC || to == POLYCCL_NODE_DEVICE || to == POLYCCL_NODE_NIC;
}

/* Counts the users of a link: `last_tb` tells apart what one block does over several connections. */
static void count_user(link_users *link, int32_t tb, uint64_t connection) {
  link->connections += pccl_mix64(connection);
  link->blocks += link->last_tb != tb;
  link->last_tb = tb;
}

/* Adds what block `tb` can want of a link: over its connections, the most of one. */
static void add_wish(const sim *s, link_users *link, int32_t tb, double cap) {
  const sim_tb *user = &s->tb[tb];
  if (link->last_rank != user->rank) {
    link->last_rank = user->rank;
    link->on_rank = 0;
  }
  if (link->last_tb != tb) {
    link->last_tb = tb;
    link->last_cap = 0;
    link->on_rank++;
  }
  int32_t processors = s->rank[user->rank].processors;
  if (cap > link->last_cap && (processors == 0 || link->on_rank <= processors)) {
    link->wanted += cap - link->last_cap;
    link->last_cap = cap;
  }
  link->contention = fmax(link->contention, s->model[user->model].contention);
}

static void own_links(sim *s, const link_users *users) {
  for (size_t i = 0; i < s->plan->connections; i++) {
    sim_connection *c = &s->connection[i];
    c->cap = INFINITY;
    for (int32_t h = 0; h < c->hops; h++) {
      int32_t link = s->hop[c->hop + h];
      if (users[link].blocks == 1) {
        c->cap = fmin(c->cap, s->topology->link[link].bandwidth / 1e3);
      }
    }
  }
}

static void walk_users(sim *s, link_users *users, const int32_t *first, const int32_t *list, bool wishes) {
  for (size_t i = 0; i < s->topology->links; i++) {
    users[i].last_tb = users[i].last_rank = -1;
  }
  for (int32_t t = 0; t < s->tbs; t++) {
    for (int32_t i = first[t]; i < first[t + 1]; i++) {
      const sim_connection *c = &s->connection[list[i]];
      double cap = fmin(s->model[s->tb[t].model].copy_cap, c->cap);
      for (int32_t h = 0; h < c->hops; h++) {
        link_users *link = &users[s->hop[c->hop + h]];
        if (wishes) {
          add_wish(s, link, t, cap);
        } else {
          count_user(link, t, (uint64_t)list[i]);
        }
      }
    }
  }
}

static polyccl_result find_users(sim *s, link_users **out) {
  link_users *users = NULL;
  int32_t *first = NULL, *list = NULL;
  polyccl_result result = SIM_ALLOC(s, users, s->topology->links);
  *out = users;
  PCCL_TRY(result);
  for (size_t i = 0; i < s->topology->links; i++) {
    users[i].resource = -1;
  }
  result = by_user(s, &first, &list);
  if (result == POLYCCL_SUCCESS) {
    walk_users(s, users, first, list, false);
    own_links(s, users);
    walk_users(s, users, first, list, true);
  }
  free(first);
  free(list);
  return result;
}

typedef struct candidate {
  uint64_t connections;
  double capacity, contention;
  int32_t link, blocks;
} candidate;

/* Same users together, the narrowest first. */
static int by_connections(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->connections != y->connections) {
    return x->connections < y->connections ? -1 : 1;
  }
  if (x->contention != y->contention) {
    return x->contention < y->contention ? -1 : 1;
  }
  if (x->capacity != y->capacity) {
    return x->capacity < y->capacity ? -1 : 1;
  }
  return x->link < y->link ? -1 : x->link > y->link;
}

static void add_resource(sim *s, double capacity, double contention, int32_t blocks, int32_t *members) {
  s->resource[s->resources++] = (sim_resource){.capacity = capacity, .contention = contention, .flow = *members};
  *members += blocks;
}

static polyccl_result pick_links(sim *s, link_users *users, candidate **candidates, size_t *count) {
  PCCL_TRY(SIM_ALLOC(s, *candidates, s->topology->links));
  for (size_t i = 0; i < s->topology->links; i++) {
    double capacity = s->topology->link[i].bandwidth / 1e3;
    if (users[i].blocks > 1 && users[i].wanted > capacity * (1 + 1e-9)) {
      double contention = is_port(s->topology, (int32_t)i) ? users[i].contention : 0;
      (*candidates)[(*count)++] = (candidate){users[i].connections, capacity, contention, (int32_t)i, users[i].blocks};
    }
  }
  qsort(*candidates, *count, sizeof **candidates, by_connections);
  return POLYCCL_SUCCESS;
}

/* Memories: all that a device's thread blocks move at once. */
static bool memory_matters(const sim *s, int32_t rank) {
  const polyccl_plan_rank *on = &s->plan->rank[rank];
  const sim_model *model = &s->model[s->topology->rank[rank].model];
  int32_t processors = s->rank[rank].processors;
  int32_t blocks = processors > 0 && processors < on->tbs ? processors : on->tbs;
  return blocks * fmax(model->copy_cap, model->local_cap) > model->memory * (1 + 1e-9);
}

static polyccl_result make_resources(sim *s, link_users *users, const candidate *candidates, size_t count) {
  size_t max_resources = count + (size_t)s->plan->ranks;
  PCCL_TRY(SIM_ALLOC(s, s->resource, max_resources));
  int32_t members = 0;
  for (size_t i = 0; i < count; i++) {
    const candidate *c = &candidates[i];
    bool same = i > 0 && c->connections == c[-1].connections && c->contention == c[-1].contention;
    if (!same) {
      users[c->link].resource = s->resources;
      add_resource(s, c->capacity, c->contention, c->blocks, &members);
    }
  }
  for (int32_t r = 0; r < s->plan->ranks; r++) {
    if (memory_matters(s, r)) {
      s->rank[r].memory = s->resources;
      double local = s->model[s->topology->rank[r].model].memory;
      add_resource(s, local, 0, s->plan->rank[r].tbs, &members);
    }
  }
  PCCL_TRY(SIM_ALLOC(s, s->member, (size_t)members));
  PCCL_TRY(SIM_ALLOC(s, s->dirty, (size_t)s->resources + 1));
  PCCL_TRY(SIM_ALLOC(s, s->end_dirty, (size_t)s->resources + 1));
  PCCL_TRY(SIM_ALLOC(s, s->other, 2 * s->plan->tbs));
  PCCL_TRY(SIM_ALLOC(s, s->level, (size_t)s->resources));
  for (int32_t r = 0; r < s->resources; r++) {
    s->level[r] = INFINITY;
  }
  return SIM_ALLOC(s, s->flow, s->plan->tbs);
}

/* The connection's resources for the block at one end that moves its bytes: its memory last. */
static bool add_way(sim *s, const link_users *users, sim_connection *c, int end, int_vec *list) {
  int32_t user = user_of(c, end);
  c->way[end].resource = (int32_t)list->len;
  if (user < 0) {
    return true;
  }
  for (int32_t h = 0; h < c->hops; h++) {
    int32_t resource = users[s->hop[c->hop + h]].resource;
    if (resource >= 0 && !pccl_vec_push(list, resource)) {
      return false;
    }
  }
  int32_t memory = s->rank[s->tb[user].rank].memory;
  if (memory >= 0 && !pccl_vec_push(list, memory)) {
    return false;
  }
  c->way[end].resources = (int32_t)list->len - c->way[end].resource;
  return true;
}

static polyccl_result route_resources(sim *s, const link_users *users) {
  int_vec list = {0};
  for (size_t i = 0; i < 2 * s->plan->connections; i++) {
    if (!add_way(s, users, &s->connection[i / 2], i % 2, &list)) {
      free(list.data);
      return pccl_no_memory("routes");
    }
  }
  s->route_resource = list.data;
  return POLYCCL_SUCCESS;
}

static void mark_steps(sim *s) {
  for (int32_t t = 0; t < s->tbs; t++) {
    bool memory = s->rank[s->tb[t].rank].memory >= 0;
    for (int32_t i = 0; i < s->tb[t].steps; i++) {
      sim_step *step = &s->step[s->tb[t].first + i];
      bool shares = (step->kind & SIM_OUT) != 0  ? s->connection[step->send].way[0].resources > 0
                    : (step->kind & SIM_IN) != 0 ? s->connection[step->recv].way[1].resources > 0
                                                 : memory && (step->kind & SIM_NOP) == 0;
      step->kind |= shares ? SIM_SHARES : 0u;
    }
  }
}

polyccl_result pccl_sim_find_resources(sim *s) {
  PCCL_TRY(find_routes(s));
  link_users *users = NULL;
  candidate *candidates = NULL;
  size_t count = 0;
  polyccl_result result = find_users(s, &users);
  if (result == POLYCCL_SUCCESS) {
    result = pick_links(s, users, &candidates, &count);
  }
  if (result == POLYCCL_SUCCESS) {
    result = make_resources(s, users, candidates, count);
  }
  if (result == POLYCCL_SUCCESS) {
    result = route_resources(s, users);
  }
  if (result == POLYCCL_SUCCESS) {
    mark_steps(s);
  }
  free(users);
  free(candidates);
  return result;
}
