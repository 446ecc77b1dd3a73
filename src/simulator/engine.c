/* The engine runs each thread block until it must wait, then takes the next event. */
#include "simulator/machine.h"

static inline void wake_block(sim *s, int32_t t) {
  s->tb[t].blocked = SIM_RUNS;
  s->ready[s->readies++] = t;
}

static inline void suspend_block(sim_tb *tb, sim_blocked why, int32_t on) {
  tb->blocked = (uint8_t)why;
  tb->on = on;
}

static void wait_for(sim *s, int32_t t, int32_t on, int64_t position) {
  sim_tb *tb = &s->tb[t];
  suspend_block(tb, SIM_ON_BLOCK, on);
  tb->begin = position;
  tb->next_waiter = s->tb[on].waiters;
  s->tb[on].waiters = t;
}

/* A step that others wait for has ended: wakes those that waited for this step. */
static void wake_waiters(sim *s, sim_tb *tb) {
  int32_t *waiting = &tb->waiters;
  while (*waiting >= 0) {
    int32_t t = *waiting;
    sim_tb *waiter = &s->tb[t];
    if (waiter->begin < tb->done) {
      *waiting = waiter->next_waiter;
      waiter->next_waiter = -1;
      wake_block(s, t);
    } else {
      waiting = &waiter->next_waiter;
    }
  }
}

static void advance_position(const sim *s, sim_tb *tb) {
  if (s->task_major) {
    if (++tb->batch == s->batches) {
      tb->batch = 0;
      tb->step++;
    }
  } else if (++tb->step == tb->steps) {
    tb->step = 0;
    tb->batch++;
  }
}

static void leave_processor(sim *s, int32_t t);

/* Ends the step of t: its message is sent, its slot is freed, and thread blocks that waited for these are woken. */
static void complete_step(sim *s, int32_t t, int64_t end) {
  sim_tb *tb = &s->tb[t];
  const sim_step *step = sim_current(s, tb);
  s->spent[t][POLYCCL_SIM_BUSY] += end - tb->begin;
  if (s->tracing) {
    pccl_sim_trace_end(s, t, end);
  }
  if (step->recv >= 0) {
    sim_connection *c = &s->connection[step->recv];
    s->slot[c->slot + c->recv_slot] = end + c->credit_latency;
    c->recv_slot = c->recv_slot + 1 < s->slots ? c->recv_slot + 1 : 0;
    c->received++;
    if (c->src_tb >= 0 && s->tb[c->src_tb].blocked == SIM_ON_CREDIT && s->tb[c->src_tb].on == step->recv) {
      wake_block(s, c->src_tb);
    }
  }
  if (step->send >= 0) {
    sim_connection *c = &s->connection[step->send];
    s->slot[c->slot + c->send_slot] = end + c->latency;
    c->send_slot = c->send_slot + 1 < s->slots ? c->send_slot + 1 : 0;
    c->sent++;
    if (c->dst_tb >= 0 && s->tb[c->dst_tb].blocked == SIM_ON_DATA && s->tb[c->dst_tb].on == step->send) {
      wake_block(s, c->dst_tb);
    }
  }
  if (step->target >= 0) {
    *sim_target(s, step->target, tb->batch) = end;
  }
  tb->done++;
  tb->free = end;
  advance_position(s, tb);
  if (step->target >= 0 && tb->waiters >= 0) {
    wake_waiters(s, tb);
  }
  if (tb->serial) {
    leave_processor(s, t);
  }
}

static void queue_event(sim *s, int32_t t, sim_phase phase, int64_t time) {
  s->tb[t].blocked = SIM_QUEUED;
  s->tb[t].phase = (uint8_t)phase;
  sim_queue_put(&s->queue, t, time);
}

/* The connection whose route a step's bytes take; NULL: they stay in the device. */
static inline const sim_connection *step_route(const sim *s, const sim_step *step) {
  return (step->kind & SIM_OUT) != 0  ? &s->connection[step->send]
         : (step->kind & SIM_IN) != 0 ? &s->connection[step->recv]
                                      : NULL;
}

/* The bytes that a step moves; those of a message are counted on the wire, with flags. */
static inline double step_bytes(const sim *s, const sim_step *step, const sim_model *model) {
  double payload = step->count * s->tile;
  return step->recv >= 0 || step->send >= 0 ? payload * model->wire : payload;
}

/* The rate, in bytes per ps, that the step has where it shares nothing. */
static inline double step_cap(const sim *s, const sim_step *step, const sim_model *model) {
  bool reduces = (step->kind & SIM_REDUCES) != 0;
  if (step->recv < 0 && step->send < 0) {
    return reduces ? model->local_reduce_cap : model->local_cap;
  }
  double cap = reduces ? model->reduce_cap : model->copy_cap;
  if ((step->kind & SIM_FORWARDS) != 0 && model->forward_cap < cap) {
    cap = model->forward_cap;
  }
  const sim_connection *route = step_route(s, step);
  return route != NULL && route->cap < cap ? route->cap : cap;
}

static void trace_fixed(sim *s, int32_t t, const sim_step *step, int64_t begin, int64_t duration) {
  if (step_route(s, step) != NULL && duration > 0) {
    double rate = step_bytes(s, step, &s->model[s->tb[t].model]) / (double)duration;
    pccl_sim_trace_use(s, t, begin, rate, 1);
    pccl_sim_trace_use(s, t, begin + duration, -rate, -1);
  }
}

/* Begins the step of t. True: it has ended already; false: an event will end it. */
static bool begin_step(sim *s, int32_t t, int64_t time) {
  sim_tb *tb = &s->tb[t];
  const sim_step *step = sim_current(s, tb);
  const sim_model *model = &s->model[tb->model];
  tb->begin = time;
  int64_t moved = time + (step->send < 0 && step->recv < 0 && (step->kind & SIM_NOP) != 0 ? 0 : model->cost);
  if ((step->kind & SIM_SHARES) != 0) {
    queue_event(s, t, SIM_FLOWS, moved);
    return false;
  }
  int64_t duration = 0;
  if ((step->kind & SIM_NOP) == 0) {
    duration = (int64_t)(step_bytes(s, step, model) / step_cap(s, step, model) + 0.5);
  }
  if (s->tracing) {
    trace_fixed(s, t, step, moved, duration);
  }
  if (tb->serial) {
    queue_event(s, t, SIM_ENDS, moved + duration);
    return false;
  }
  complete_step(s, t, moved + duration);
  return true;
}

/* Finds when the next step of t can start. False: it must wait for something that has not happened yet. */
static inline bool find_start(sim *s, int32_t t, int64_t *start) {
  sim_tb *tb = &s->tb[t];
  const sim_step *step = sim_current(s, tb);
  int64_t blocks = tb->free;
  for (uint32_t w = 0; w < step->waits; w++) {
    const sim_wait *wait = &s->wait[step->wait + (int32_t)w];
    int64_t position = sim_position(s, &s->tb[wait->tb], wait->step, tb->batch);
    if (s->tb[wait->tb].done <= position) {
      wait_for(s, t, wait->tb, position);
      return false;
    }
    int64_t end = *sim_target(s, wait->target, tb->batch);
    blocks = end > blocks ? end : blocks;
  }
  int64_t data = blocks;
  if (step->recv >= 0) {
    const sim_connection *c = &s->connection[step->recv];
    if (c->sent == c->received) {
      suspend_block(tb, SIM_ON_DATA, step->recv);
      return false;
    }
    int64_t arrival = s->slot[c->slot + c->recv_slot];
    data = arrival > data ? arrival : data;
  }
  int64_t credit = data;
  if (step->send >= 0) {
    const sim_connection *c = &s->connection[step->send];
    if (c->sent - c->received >= s->depth) {
      suspend_block(tb, SIM_ON_CREDIT, step->send);
      return false;
    }
    int64_t free = s->slot[c->slot + c->send_slot];
    credit = free > credit ? free : credit;
  }
  s->spent[t][POLYCCL_SIM_WAIT_BLOCKS] += blocks - tb->free;
  s->spent[t][POLYCCL_SIM_WAIT_DATA] += data - blocks;
  s->spent[t][POLYCCL_SIM_WAIT_CREDIT] += credit - data;
  if (s->tracing) {
    pccl_sim_trace_ready(s, t, blocks, data, credit);
  }
  *start = credit;
  return true;
}

static void run_block(sim *s, int32_t t) {
  sim_tb *tb = &s->tb[t];
  for (;;) {
    if (tb->steps == 0 || (s->task_major ? tb->step == tb->steps : tb->batch == s->batches)) {
      tb->blocked = SIM_FINISHED;
      return;
    }
    int64_t start;
    if (!find_start(s, t, &start)) {
      return;
    }
    if (tb->serial) {
      tb->begin = start;
      queue_event(s, t, SIM_READY, start);
      return;
    }
    if (!begin_step(s, t, start)) {
      return;
    }
  }
}

static void run_ready(sim *s) {
  while (s->readies > 0) {
    run_block(s, s->ready[--s->readies]);
  }
}

/* ---- processors ---- */

static void enter_processor(sim *s, int32_t t) {
  sim_tb *tb = &s->tb[t];
  sim_rank *rank = &s->rank[tb->rank];
  if (rank->running < rank->processors) {
    rank->running++;
    (void)begin_step(s, t, s->now);
    return;
  }
  tb->next_waiter = -1; /* in this queue it waits for no thread block, so the field is free */
  if (rank->queue_head < 0) {
    rank->queue_head = t;
  } else {
    s->tb[rank->queue_tail].next_waiter = t;
  }
  rank->queue_tail = t;
}

static void leave_processor(sim *s, int32_t t) {
  sim_rank *rank = &s->rank[s->tb[t].rank];
  int32_t next = rank->queue_head;
  rank->running--;
  if (next < 0) {
    return;
  }
  sim_tb *tb = &s->tb[next];
  rank->queue_head = tb->next_waiter;
  tb->next_waiter = -1;
  s->spent[next][POLYCCL_SIM_WAIT_BLOCKS] += s->now - tb->begin;
  if (s->tracing) {
    pccl_sim_trace_processor(s, next, t);
  }
  rank->running++;
  (void)begin_step(s, next, s->now);
}

/* ---- events ---- */

static void start_flow(sim *s, int32_t t) {
  sim_tb *tb = &s->tb[t];
  const sim_step *step = sim_current(s, tb);
  const sim_model *model = &s->model[tb->model];
  double bytes = step_bytes(s, step, model);
  if (bytes <= 0) {
    complete_step(s, t, s->now);
    wake_block(s, t);
    return;
  }
  double cap = step_cap(s, step, model);
  const sim_connection *route = step_route(s, step);
  if (route != NULL) {
    const sim_way *way = &route->way[(step->kind & SIM_OUT) != 0 ? 0 : 1];
    pccl_sim_flow_add(s, t, bytes, cap, &s->route_resource[way->resource], way->resources);
  } else {
    pccl_sim_flow_add(s, t, bytes, cap, &s->rank[tb->rank].memory, 1);
  }
}

static void end_flows(sim *s, int32_t index) {
  sim_resource *r = &s->resource[index];
  for (int32_t i = 0; i < r->flows;) {
    int32_t t = s->member[r->flow + i];
    if (s->flow[t].resource[0] == index && s->flow[t].end <= s->now) {
      pccl_sim_flow_remove(s, t); /* another flow takes its place in the list */
      complete_step(s, t, s->now);
      wake_block(s, t);
    } else {
      i++;
    }
  }
}

static void handle_event(sim *s, int32_t id) {
  if (id >= s->tbs) {
    end_flows(s, id - s->tbs);
    return;
  }
  switch ((sim_phase)s->tb[id].phase) {
    case SIM_READY: enter_processor(s, id); break;
    case SIM_FLOWS: start_flow(s, id); break;
    case SIM_ENDS:
      complete_step(s, id, s->now);
      wake_block(s, id);
      break;
  }
}

void pccl_sim_run(sim *s) {
  for (int32_t t = s->tbs; t > 0; t--) {
    wake_block(s, t - 1);
  }
  run_ready(s);
  while (s->queue.count > 0 && !s->no_memory) {
    s->now = s->queue.heap[0].time;
    while (s->queue.count > 0 && s->queue.heap[0].time == s->now) {
      int32_t id = s->queue.heap[0].id;
      sim_queue_remove(&s->queue, id);
      s->events++;
      handle_event(s, id);
    }
    pccl_sim_share(s);
    run_ready(s);
  }
}
