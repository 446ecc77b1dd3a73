/* Lays out the machine: device models in bytes per picosecond, steps, waits, connections. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "plan/plan.h"
#include "simulator/machine.h"

polyccl_result pccl_sim_alloc(sim *s, size_t count, size_t element, void **array) {
  if (element != 0 && count > (POLYCCL_SIM_MAX_MEMORY - s->memory) / element) {
    return pccl_fail(POLYCCL_ERROR_LIMIT,
                     "the simulation would need more than %zu GiB of memory (%llu step executions); use fewer "
                     "micro-batches, or keep less",
                     POLYCCL_SIM_MAX_MEMORY >> 30, (unsigned long long)s->executions);
  }
  void *memory = pccl_zeroed(count, element);
  if (memory == NULL) {
    return pccl_fail(POLYCCL_ERROR_MEMORY,
                     "out of memory for the simulation: %zu MiB more for %d thread blocks, %llu step executions",
                     count * element >> 20, s->tbs, (unsigned long long)s->executions);
  }
  s->memory += count * element;
  *array = memory;
  return POLYCCL_SUCCESS;
}

void pccl_sim_free(sim *s) {
  void *arrays[] = {s->model,       s->step,        s->wait,       s->tb,    s->connection,     s->slot,
                    s->spent,       s->rank,        s->target_end, s->hop,   s->route_resource, s->resource,
                    s->member,      s->flow,        s->other,      s->level, s->dirty,          s->end_dirty,
                    s->queue.heap,  s->queue.place, s->ready,      s->exec,  s->slot_exec,      s->moments,
                    s->record.data, s->change.data};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
    free(arrays[i]);
  }
}

/* 1 GB/s is 1 byte per ns. */
static sim_model model_of(const polyccl_device_model *device, polyccl_protocol protocol, double contention) {
  const polyccl_protocol_model *p = &device->protocol[protocol];
  double slower = p->copy_bandwidth < device->reduce_bandwidth ? p->copy_bandwidth : device->reduce_bandwidth;
  /* Without a message no flags are written: local steps run at the plain copy rate. */
  double local = device->protocol[POLYCCL_SIMPLE].copy_bandwidth;
  double local_reduce = local < device->reduce_bandwidth ? local : device->reduce_bandwidth;
  double forward = device->forward_bandwidth > 0 ? device->forward_bandwidth : INFINITY;
  return (sim_model){.forward_cap = forward / p->efficiency / 1e3,
                     .copy_cap = p->copy_bandwidth / p->efficiency / 1e3,
                     .reduce_cap = slower / p->efficiency / 1e3,
                     .local_cap = local / 1e3,
                     .local_reduce_cap = local_reduce / 1e3,
                     .wire = 1 / p->efficiency,
                     .memory = device->local_bandwidth / 1e3,
                     .contention = contention >= 0 ? contention : device->contention,
                     .cost = (int64_t)(p->step_cost * SIM_PS_PER_US + 0.5),
                     .latency = (int64_t)(p->latency * SIM_PS_PER_US + 0.5),
                     .network_latency = (int64_t)(p->network_latency * SIM_PS_PER_US + 0.5),
                     .launch = (int64_t)(p->launch_cost * SIM_PS_PER_US + 0.5)};
}

static polyccl_result build_models(sim *s, polyccl_protocol protocol) {
  PCCL_TRY(SIM_ALLOC(s, s->model, s->topology->models));
  if (s->topology->models > UINT8_MAX) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%zu device models are too many to simulate; the limit is %d",
                     s->topology->models, UINT8_MAX);
  }
  for (size_t m = 0; m < s->topology->models; m++) {
    polyccl_device_model device = polyccl_device_model_at(&s->topology->model[m], s->options.bytes);
    s->model[m] = model_of(&device, protocol, s->options.contention);
  }
  return POLYCCL_SUCCESS;
}

static bool may_refer(const sim *s, const polyccl_connection *c) {
  const polyccl_topology_rank *src = &s->topology->rank[c->src], *dst = &s->topology->rank[c->dst];
  return s->options.protocol == POLYCCL_SIMPLE && src->machine == dst->machine &&
         s->topology->model[src->model].by_reference && s->topology->model[dst->model].by_reference;
}

/* Slots that no message can use need no memory: a plan may name any depth. */
static polyccl_result count_slots(sim *s) {
  const polyccl_plan *plan = s->plan;
  int32_t *uses = pccl_zeroed(2 * plan->connections, sizeof *uses), max = 1;
  if (uses == NULL) {
    return pccl_no_memory("the connections of a simulation");
  }
  for (size_t i = 0; i < plan->steps; i++) {
    const polyccl_step *step = &plan->step[i];
    int32_t sends = step->send >= 0 ? ++uses[2 * step->send] : 0;
    int32_t receives = step->recv >= 0 ? ++uses[2 * step->recv + 1] : 0;
    max = sends > max ? sends : max;
    max = receives > max ? receives : max;
  }
  free(uses);
  s->slots = (int64_t)max * s->batches < s->depth ? max * s->batches : s->depth;
  return POLYCCL_SUCCESS;
}

static polyccl_result build_connections(sim *s) {
  const polyccl_plan *plan = s->plan;
  PCCL_TRY(SIM_ALLOC(s, s->connection, plan->connections));
  PCCL_TRY(count_slots(s));
  int64_t slots = (int64_t)plan->connections * s->slots;
  if (slots > INT32_MAX) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the slots of %zu connections of depth %d are too many to simulate",
                     plan->connections, s->slots);
  }
  PCCL_TRY(SIM_ALLOC(s, s->slot, (size_t)slots));
  if (s->tracing) {
    PCCL_TRY(SIM_ALLOC(s, s->slot_exec, (size_t)slots));
  }
  for (size_t i = 0; i < plan->connections; i++) {
    sim_connection *c = &s->connection[i];
    c->src_tb = c->dst_tb = -1;
    c->slot = (int32_t)i * s->slots;
    c->direct = may_refer(s, &plan->connection[i]);
  }
  return POLYCCL_SUCCESS;
}

/* One thread block per connection and direction (docs/plan.md): the engine's counters rely on it. */
static polyccl_result own(const sim *s, int32_t *owner, int32_t tb, int32_t connection, const char *direction) {
  if (*owner >= 0 && *owner != tb) {
    const polyccl_connection *c = &s->plan->connection[connection];
    int32_t first = s->plan->rank[s->plan->tb[tb].rank].tb;
    return pccl_fail(POLYCCL_ERROR_INVALID,
                     "thread blocks %d and %d of rank %d both %s on the connection from rank %d to %d, channel %d",
                     *owner - first, tb - first, s->plan->tb[tb].rank, direction, c->src, c->dst, c->channel);
  }
  *owner = tb;
  return POLYCCL_SUCCESS;
}

/* ---- by reference ---- */

enum { BY_SLOT = 0, BY_GET, BY_PUT };

typedef struct sim_reference {
  uint8_t in, out; /* how the step's messages go */
} sim_reference;

/* The sender's choice, where its marks and the receiver's allow one: get, but put after a reduction, which then stores
 * twice what it has worked out once. */
static uint8_t choose(const polyccl_step *sender, const polyccl_step *receiver) {
  bool get = (sender->flags & POLYCCL_FLAG_GET) != 0, put = (receiver->flags & POLYCCL_FLAG_PUT) != 0;
  if (get && !(put && pccl_ops[sender->op].reduces)) {
    return BY_GET;
  }
  return put ? BY_PUT : BY_SLOT;
}

/* The k-th send of a connection meets its k-th receive: lists both and compares. */
static void pair_messages(const sim *s, int32_t *first, int32_t *send, sim_reference *reference) {
  const polyccl_plan *plan = s->plan;
  for (size_t i = 0; i < plan->steps; i++) {
    if (plan->step[i].send >= 0) {
      first[plan->step[i].send + 2]++;
    }
  }
  for (size_t c = 0; c < plan->connections; c++) {
    first[c + 2] += first[c + 1];
  }
  for (size_t i = 0; i < plan->steps; i++) {
    if (plan->step[i].send >= 0) {
      send[first[plan->step[i].send + 1]++] = (int32_t)i;
    }
  }
  for (size_t c = plan->connections; c > 0; c--) { /* ends back to starts */
    first[c] = first[c - 1];
  }
  first[0] = 0;
  for (size_t i = 0; i < plan->steps; i++) {
    int32_t c = plan->step[i].recv;
    if (c < 0 || first[c + 1] >= first[c + 2] || !s->connection[c].direct) {
      continue;
    }
    int32_t sender = send[first[c + 1]++];
    reference[i].in = reference[sender].out = choose(&plan->step[sender], &plan->step[i]);
  }
}

static polyccl_result find_references(sim *s, sim_reference **reference) {
  PCCL_TRY(SIM_ALLOC(s, *reference, s->plan->steps));
  bool any = false;
  for (size_t c = 0; c < s->plan->connections; c++) {
    any = any || s->connection[c].direct;
  }
  if (!any) {
    return POLYCCL_SUCCESS;
  }
  int32_t *first = NULL, *send = NULL;
  polyccl_result result = SIM_ALLOC(s, first, s->plan->connections + 3);
  if (result == POLYCCL_SUCCESS) {
    result = SIM_ALLOC(s, send, s->plan->steps);
  }
  if (result == POLYCCL_SUCCESS) {
    pair_messages(s, first, send, *reference);
  }
  free(first);
  free(send);
  return result;
}

/* What moves a step's bytes: it brings its message to the receiver, fetches its own from the sender, moves it inside
 * the device, or nothing. */
static uint32_t movement(sim *s, const polyccl_step *step, sim_reference reference) {
  if (step->send >= 0 && reference.out != BY_GET) {
    s->connection[step->send].way[0].used = true;
    return SIM_OUT;
  }
  if (step->recv >= 0 && reference.in == BY_GET) {
    s->connection[step->recv].way[1].used = true;
    return SIM_IN;
  }
  bool in_place = step->recv >= 0 ? reference.in == BY_PUT : step->send >= 0;
  return in_place ? SIM_NOP : 0u;
}

static polyccl_result build_step(sim *s, int32_t t, int32_t index, const sim_reference *reference, size_t *waits,
                                 int32_t *target) {
  const polyccl_thread_block *tb = &s->plan->tb[t];
  const polyccl_step *from = &s->plan->step[tb->step + index];
  const pccl_op_traits *op = &pccl_ops[from->op];
  sim_step *to = &s->step[tb->step + index];
  uint32_t kind = (pccl_op_moves(from->op) ? 0u : SIM_NOP) | (op->reduces ? SIM_REDUCES : 0u) |
                  (op->receives && op->sends ? SIM_FORWARDS : 0u);
  if (op->receives) {
    PCCL_TRY(own(s, &s->connection[from->recv].dst_tb, t, from->recv, "receive"));
  }
  if (op->sends) {
    PCCL_TRY(own(s, &s->connection[from->send].src_tb, t, from->send, "send"));
  }
  kind |= movement(s, from, reference[tb->step + index]);
  if (from->waits >= 1 << 24) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "a step has %d waits, too many to simulate", from->waits);
  }
  *to = (sim_step){from->recv, from->send, (int32_t)*waits, -1, from->count, 0, kind & 0xff};
  int32_t first = s->plan->rank[tb->rank].tb;
  for (int32_t w = from->wait; w < from->wait + from->waits; w++) {
    const polyccl_wait *wait = &s->plan->wait[w];
    int32_t on = first + wait->tb;
    if (on == t && wait->step < index) {
      continue; /* its own past */
    }
    int32_t *place = &target[s->plan->tb[on].step + wait->step];
    if (*place < 0) {
      *place = (int32_t)s->targets++;
    }
    s->wait[(*waits)++] = (sim_wait){on, wait->step, *place};
    to->waits++;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result build_steps(sim *s) {
  const polyccl_plan *plan = s->plan;
  PCCL_TRY(SIM_ALLOC(s, s->step, plan->steps));
  size_t named = 0; /* steps may name the same waits */
  for (size_t i = 0; i < plan->steps; i++) {
    named += (size_t)plan->step[i].waits;
  }
  if (named > INT32_MAX) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the %zu waits of the plan are too many to simulate", named);
  }
  PCCL_TRY(SIM_ALLOC(s, s->wait, named));
  int32_t *target = NULL;
  sim_reference *reference = NULL;
  PCCL_TRY(SIM_ALLOC(s, target, plan->steps));
  for (size_t i = 0; i < plan->steps; i++) {
    target[i] = -1;
  }
  polyccl_result result = find_references(s, &reference);
  size_t waits = 0;
  for (int32_t t = 0; t < s->tbs && result == POLYCCL_SUCCESS; t++) {
    for (int32_t i = 0; i < plan->tb[t].steps && result == POLYCCL_SUCCESS; i++) {
      result = build_step(s, t, i, reference, &waits, target);
    }
  }
  for (size_t i = 0; i < plan->steps; i++) {
    s->step[i].target = target[i];
  }
  free(target);
  free(reference);
  PCCL_TRY(result);
  s->target_stride = s->task_major ? (size_t)s->batches : 1;
  s->batch_stride = s->task_major ? 1 : s->targets;
  size_t ends;
  if (__builtin_mul_overflow(s->targets, (size_t)s->batches, &ends)) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%d micro-batches are too many to simulate", s->batches);
  }
  return SIM_ALLOC(s, s->target_end, ends);
}

static polyccl_result build_blocks(sim *s) {
  PCCL_TRY(SIM_ALLOC(s, s->tb, s->plan->tbs));
  PCCL_TRY(SIM_ALLOC(s, s->spent, s->plan->tbs));
  PCCL_TRY(SIM_ALLOC(s, s->ready, s->plan->tbs));
  PCCL_TRY(SIM_ALLOC(s, s->rank, (size_t)s->plan->ranks));
  for (int r = 0; r < s->plan->ranks; r++) {
    const polyccl_plan_rank *rank = &s->plan->rank[r];
    int32_t model = s->topology->rank[r].model, processors = s->topology->model[model].concurrent_blocks;
    s->rank[r] = (sim_rank){.processors = processors, .queue_head = -1, .queue_tail = -1, .memory = -1};
    for (int32_t t = rank->tb; t < rank->tb + rank->tbs; t++) {
      s->tb[t] = (sim_tb){.free = s->model[model].launch,
                          .first = s->plan->tb[t].step,
                          .steps = s->plan->tb[t].steps,
                          .rank = r,
                          .waiters = -1,
                          .next_waiter = -1,
                          .model = (uint8_t)model,
                          .serial = processors > 0 && processors < rank->tbs};
    }
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_sim_build(sim *s) {
  polyccl_protocol protocol = (polyccl_protocol)s->options.protocol;
  PCCL_TRY(build_models(s, protocol));
  PCCL_TRY(build_connections(s));
  PCCL_TRY(build_steps(s));
  PCCL_TRY(build_blocks(s));
  PCCL_TRY(pccl_sim_find_resources(s));
  size_t ids = (size_t)s->tbs + (size_t)s->resources;
  PCCL_TRY(SIM_ALLOC(s, s->queue.heap, ids));
  PCCL_TRY(SIM_ALLOC(s, s->queue.place, ids));
  for (size_t i = 0; i < ids; i++) {
    s->queue.place[i] = -1;
  }
  if ((s->options.keep & POLYCCL_SIM_CRITICAL) != 0) {
    PCCL_TRY(SIM_ALLOC(s, s->exec, s->executions));
  }
  if (s->tracing) {
    PCCL_TRY(SIM_ALLOC(s, s->moments, s->plan->tbs));
  }
  return POLYCCL_SUCCESS;
}
