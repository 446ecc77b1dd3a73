/* order: one order of all nodes, by depth, then by the longest path behind them. It keeps every dependency and every
 * connection's FIFO: a receive is placed only when its message is the oldest on its connection. Every thread block runs
 * its nodes in this order, so the order itself is an execution, and no deadlock is possible with as many credits as it
 * takes. It takes few: a send waits for a credit while anything else can go on, and a send that starts a route leaves
 * the last credit to those that pass a message on, since a ring of full connections could not move (bubble flow
 * control). Where dependencies contradict the FIFO, the message that is stuck moves to a channel of its own. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/map.h"
#include "compiler/ir.h"

enum {
  MAX_TRIES =
      64, /* each moves a stuck message to another channel; a program that needs more has no order to be found */
  FIRST_CREDITS = 2 /* the shallowest FIFO there is (Simple in MSCCL), and the min for a ring on one channel */
};

/* A node with what orders it. */
typedef struct ranked_node {
  int32_t depth, priority, node;
} ranked_node;

static bool goes_first(const ranked_node *a, const ranked_node *b) {
  if (a->depth != b->depth) {
    return a->depth < b->depth;
  }
  return a->priority != b->priority ? a->priority > b->priority : a->node < b->node;
}

PCCL_HEAP(node_heap, ranked_node, goes_first)

/* The kinds of sends that only lack a credit. Those that pass a message on may take the last credit, and those that
 * start a route may not. So each kind has a heap of its own: while the kind has a credit, its best node is ready. */
enum { STARTS = 0, PASSES_ON = 1, KINDS = 2 };

typedef struct queue {
  int32_t head, tail; /* nodes that receive, linked by next_in_queue; -1: empty */
  int32_t in_flight;
  node_heap held[KINDS];
  bool listed; /* in scheduler.holding */
} queue;

static const queue empty_queue = {.head = -1, .tail = -1};

typedef struct scheduler {
  pccl_ir *ir;
  int32_t *waiting_for; /* [nodes] predecessors and message not yet placed */
  int32_t *first_succ;  /* [nodes + 1] in succ */
  int32_t *succ;
  int32_t *connection;    /* [nodes] of the message that a node receives, or -1 */
  int32_t *next_in_queue; /* [nodes] */
  int32_t credits;        /* of every connection */
  size_t held;            /* nodes that are held */
  PCCL_VEC(queue) queues;
  PCCL_VEC(int32_t) holding; /* queues that may hold nodes */
  node_heap ready;
  pccl_map connections;
} scheduler;

static bool push_node(const scheduler *s, node_heap *heap, int32_t number) {
  const pccl_node *node = &s->ir->nodes.data[number];
  return node_heap_push(heap, (ranked_node){node->depth, node->priority, number});
}

static void drop_queues(scheduler *s) {
  for (size_t i = 0; i < s->queues.len; i++) {
    for (int kind = 0; kind < KINDS; kind++) {
      pccl_vec_free(&s->queues.data[i].held[kind]);
    }
  }
  s->queues.len = 0;
  pccl_map_free(&s->connections);
}

static polyccl_result find_connections(scheduler *s) {
  for (size_t i = 0; i < s->ir->nodes.len; i++) {
    const pccl_node *node = &s->ir->nodes.data[i];
    s->connection[i] = -1;
    if (node->gone || node->from < 0) {
      continue;
    }
    uint64_t key =
        ((uint64_t)node->channel << 32) | ((uint64_t)s->ir->nodes.data[node->from].rank << 16) | (uint64_t)node->rank;
    bool is_new;
    uint64_t *slot = pccl_map_put(&s->connections, key, s->queues.len, &is_new);
    if (slot == NULL || (is_new && !pccl_vec_push(&s->queues, empty_queue))) {
      return pccl_no_memory("the compiler");
    }
    s->connection[i] = (int32_t)*slot;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result find_successors(scheduler *s) {
  const pccl_node *nodes = s->ir->nodes.data;
  size_t count = s->ir->nodes.len;
  memset(s->first_succ, 0, (count + 1) * sizeof *s->first_succ);
  for (size_t i = 0; i < count; i++) {
    for (int32_t k = 0; k < nodes[i].preds && !nodes[i].gone; k++) {
      s->first_succ[s->ir->preds.data[nodes[i].pred + k] + 1]++;
    }
  }
  for (size_t i = 0; i < count; i++) {
    s->first_succ[i + 1] += s->first_succ[i];
  }
  s->succ = pccl_array((size_t)s->first_succ[count], sizeof *s->succ);
  int32_t *fill = pccl_array(count, sizeof *fill);
  if (s->succ == NULL || fill == NULL) {
    free(fill);
    return pccl_no_memory("the compiler");
  }
  memcpy(fill, s->first_succ, count * sizeof *fill);
  for (size_t i = 0; i < count; i++) {
    for (int32_t k = 0; k < nodes[i].preds && !nodes[i].gone; k++) {
      s->succ[fill[s->ir->preds.data[nodes[i].pred + k]]++] = (int32_t)i;
    }
  }
  free(fill);
  return POLYCCL_SUCCESS;
}

static bool is_at_head(const scheduler *s, int32_t node) {
  return s->connection[node] < 0 || s->queues.data[s->connection[node]].head == node;
}

static bool release_node(scheduler *s, int32_t node) {
  return --s->waiting_for[node] > 0 || !is_at_head(s, node) || push_node(s, &s->ready, node);
}

static int send_kind(const pccl_node *node) { return node->from >= 0 ? PASSES_ON : STARTS; }

static bool has_credit(const scheduler *s, const queue *out, int kind) {
  return out->in_flight < (kind == PASSES_ON ? s->credits : s->credits - 1);
}

/* Puts a node aside until its connection has a credit; false: no memory. */
static bool hold_node(scheduler *s, queue *out, int32_t number) {
  if (!out->listed && !pccl_vec_push(&s->holding, (int32_t)(out - s->queues.data))) {
    return false;
  }
  out->listed = true;
  s->held++;
  return push_node(s, &out->held[send_kind(&s->ir->nodes.data[number])], number);
}

/* Makes the best node of a kind ready where it has a credit. The others follow one by one, as those before them are
 * placed. */
static bool release_held(scheduler *s, queue *out, int kind) {
  if (out->held[kind].len == 0 || !has_credit(s, out, kind)) {
    return true;
  }
  s->held--;
  return node_heap_push(&s->ready, node_heap_pop(&out->held[kind]));
}

/* Gives every connection one more credit, when nothing else can go on. */
static bool add_credit(scheduler *s) {
  bool ok = true;
  size_t kept = 0;
  s->credits++;
  for (size_t i = 0; i < s->holding.len && ok; i++) {
    queue *out = &s->queues.data[s->holding.data[i]];
    out->listed = out->held[STARTS].len > 0 || out->held[PASSES_ON].len > 0;
    if (out->listed) {
      s->holding.data[kept++] = s->holding.data[i];
    }
    ok = release_held(s, out, STARTS) && release_held(s, out, PASSES_ON);
  }
  s->holding.len = kept;
  return ok;
}

static bool place_receive(scheduler *s, int32_t number) {
  queue *in = &s->queues.data[s->connection[number]];
  in->head = s->next_in_queue[number];
  in->in_flight--;
  bool ready = in->head >= 0 && s->waiting_for[in->head] == 0;
  return release_held(s, in, STARTS) && release_held(s, in, PASSES_ON) && (!ready || push_node(s, &s->ready, in->head));
}

static bool place_send(scheduler *s, int32_t number) {
  const pccl_node *node = &s->ir->nodes.data[number];
  queue *out = &s->queues.data[s->connection[node->to]];
  s->next_in_queue[node->to] = -1;
  if (out->head < 0) {
    out->head = node->to;
  } else {
    s->next_in_queue[out->tail] = node->to;
  }
  out->tail = node->to;
  out->in_flight++;
  return release_held(s, out, send_kind(node)) && release_node(s, node->to);
}

static bool place_node(scheduler *s, int32_t number) {
  const pccl_node *node = &s->ir->nodes.data[number];
  bool ok = pccl_vec_push(&s->ir->order, number) && (node->from < 0 || place_receive(s, number)) &&
            (node->to < 0 || place_send(s, number));
  for (int32_t k = s->first_succ[number]; ok && k < s->first_succ[number + 1]; k++) {
    ok = release_node(s, s->succ[k]);
  }
  return ok;
}

/* Places the node, or holds it where it lacks a credit. */
static bool place_or_hold(scheduler *s, int32_t number) {
  const pccl_node *node = &s->ir->nodes.data[number];
  queue *out = node->to >= 0 ? &s->queues.data[s->connection[node->to]] : NULL;
  return out == NULL || has_credit(s, out, send_kind(node)) ? place_node(s, number) : hold_node(s, out, number);
}

/* Places all nodes that can be placed; *stuck: some are left. */
static polyccl_result place_all(scheduler *s, bool *stuck) {
  pccl_ir *ir = s->ir;
  size_t live = 0;
  ir->order.len = 0;
  s->ready.len = 0;
  s->holding.len = 0;
  s->credits = FIRST_CREDITS;
  s->held = 0;
  for (size_t i = 0; i < ir->nodes.len; i++) {
    const pccl_node *node = &ir->nodes.data[i];
    s->waiting_for[i] = node->preds + (node->from >= 0);
    if (!node->gone) {
      live++;
      if (s->waiting_for[i] == 0 && !push_node(s, &s->ready, (int32_t)i)) {
        return pccl_no_memory("the compiler");
      }
    }
  }
  while (s->ready.len > 0 || s->held > 0) {
    if (!(s->ready.len > 0 ? place_or_hold(s, node_heap_pop(&s->ready).node) : add_credit(s))) {
      return pccl_no_memory("the compiler");
    }
  }
  *stuck = ir->order.len < live;
  return POLYCCL_SUCCESS;
}

static int32_t route_head(const pccl_ir *ir, int32_t node) {
  while (ir->nodes.data[node].from >= 0) {
    node = ir->nodes.data[node].from;
  }
  return node;
}

static polyccl_result fail_stuck_by_hint(const scheduler *s, int32_t node) {
  const pccl_ir *ir = s->ir;
  int32_t ahead = s->queues.data[s->connection[node]].head;
  polyccl_location other = pccl_ir_location(ir, &ir->nodes.data[ahead]);
  return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_ir_location(ir, &ir->nodes.data[node]),
                      "channel %d from rank %d to rank %d would deadlock: this message is needed before the one of "
                      "%s:%d that is sent ahead of it; give one of them another channel",
                      ir->nodes.data[node].channel / ir->instances, ir->nodes.data[ir->nodes.data[node].from].rank,
                      ir->nodes.data[node].rank, other.file != NULL ? other.file : "?", other.line);
}

/* Messages that are ready but behind another on their connection move, with their whole routes, to new channels above
 * all others of their instance, where no message is in front of them. */
static polyccl_result move_stuck_routes(scheduler *s) {
  pccl_ir *ir = s->ir;
  int32_t top = 0;
  for (size_t i = 0; i < ir->nodes.len; i++) {
    top = !ir->nodes.data[i].gone && ir->nodes.data[i].channel > top ? ir->nodes.data[i].channel : top;
  }
  int32_t base = (top / ir->instances + 1) * ir->instances;
  bool moved = false;
  for (size_t i = 0; i < ir->nodes.len; i++) {
    const pccl_node *node = &ir->nodes.data[i];
    if (node->gone || node->from < 0 || s->waiting_for[i] != 0 || is_at_head(s, (int32_t)i) ||
        s->queues.data[s->connection[i]].head < 0) {
      continue;
    }
    int32_t head = route_head(ir, (int32_t)i);
    if (ir->hinted[head]) {
      return fail_stuck_by_hint(s, (int32_t)i);
    }
    if (ir->nodes.data[head].channel >= base) {
      continue; /* its route has moved in this round */
    }
    if (base + ir->nodes.data[head].instance >= PCCL_MAX_CHANNELS) {
      return pccl_fail_at(POLYCCL_ERROR_LIMIT, pccl_ir_location(ir, node), "more than %d channels are needed",
                          PCCL_MAX_CHANNELS);
    }
    for (int32_t n = head; n >= 0; n = ir->nodes.data[n].to) {
      ir->nodes.data[n].channel = base + ir->nodes.data[head].instance;
    }
    moved = true;
    base += ir->instances; /* each on its own: two moved routes might not fit together */
  }
  return moved ? POLYCCL_SUCCESS
               : pccl_fail(POLYCCL_ERROR_INTERNAL, "%s: the order of its operations has a cycle", ir->program->name);
}

static polyccl_result order_nodes(scheduler *s) {
  PCCL_TRY(find_successors(s));
  for (int tries = 0; tries < MAX_TRIES; tries++) {
    drop_queues(s);
    PCCL_TRY(find_connections(s));
    bool stuck = false;
    PCCL_TRY(place_all(s, &stuck));
    if (!stuck) {
      return POLYCCL_SUCCESS;
    }
    PCCL_TRY(move_stuck_routes(s));
  }
  return pccl_fail(POLYCCL_ERROR_LIMIT, "%s: no order of its messages found in %d tries; set fusion = false",
                   s->ir->program->name, MAX_TRIES);
}

polyccl_result pccl_pass_order(pccl_ir *ir) {
  size_t count = ir->nodes.len;
  scheduler s = {.ir = ir,
                 .waiting_for = pccl_array(count, sizeof *s.waiting_for),
                 .first_succ = pccl_array(count + 1, sizeof *s.first_succ),
                 .connection = pccl_array(count, sizeof *s.connection),
                 .next_in_queue = pccl_array(count, sizeof *s.next_in_queue)};
  polyccl_result result = POLYCCL_ERROR_MEMORY;
  if (s.waiting_for != NULL && s.first_succ != NULL && s.connection != NULL && s.next_in_queue != NULL) {
    result = order_nodes(&s);
  } else {
    result = pccl_no_memory("the compiler");
  }
  free(s.waiting_for);
  free(s.first_succ);
  free(s.succ);
  free(s.connection);
  free(s.next_in_queue);
  drop_queues(&s);
  pccl_vec_free(&s.queues);
  pccl_vec_free(&s.holding);
  pccl_vec_free(&s.ready);
  return result;
}
