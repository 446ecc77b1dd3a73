#include "machine.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

uint64_t machine_random(machine *m) {
  m->random ^= m->random << 13;
  m->random ^= m->random >> 7;
  m->random ^= m->random << 17;
  return m->random * 0x2545f4914f6cdd1du;
}

uint64_t machine_below(machine *m, uint64_t limit) { return (machine_random(m) >> 16) % limit; }

bool machine_failed(machine *m, interpreter_outcome outcome, const char *format, ...) {
  if (m->outcome == INTERPRETER_RIGHT) {
    m->outcome = outcome;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(m->why, m->size, format, arguments);
    va_end(arguments);
  }
  return false;
}

/* ---- memory ---- */

bool machine_exists(const machine *m, uint8_t buffer, int32_t k, int32_t batch) {
  int64_t batches = m->options.micro_batches, count = m->plan->chunks * batches - m->options.missing;
  return buffer == POLYCCL_BUF_SCRATCH || m->options.missing == 0 || (k % m->plan->chunks) * batches + batch < count;
}

element *machine_element(machine *m, int32_t rank, uint8_t buffer, int32_t k, int32_t batch) {
  polyccl_plan shared = *m->plan; /* the same in place, for ranks that are */
  shared.inplace = true;
  const polyccl_plan *p = (m->options.in_place >> rank & 1) != 0 ? &shared : m->plan;
  return &m->memory[rank][(size_t)table_cell(p, rank, buffer, k) * (size_t)m->options.micro_batches + (size_t)batch];
}

static bool load(machine *m, int32_t rank, uint8_t buffer, int32_t k, int32_t batch, element *value) {
  if (!machine_exists(m, buffer, k, batch)) {
    *value = (element){.number = machine_random(m), .held = true};
    return true;
  }
  *value = *machine_element(m, rank, buffer, k, batch);
  return value->held || machine_failed(m, INTERPRETER_WRONG, "rank %d reads chunk %d of buffer %d, which holds nothing",
                                       rank, k, buffer);
}

void machine_store(machine *m, int32_t rank, uint8_t buffer, int32_t k, int32_t batch, element value) {
  if (machine_exists(m, buffer, k, batch)) {
    *machine_element(m, rank, buffer, k, batch) = value;
  }
}

/* ---- steps ---- */

/* Which step and micro-batch the thread block's instance number `i` is. */
static void instance(const machine *m, const polyccl_thread_block *tb, int64_t i, int32_t *step, int32_t *batch) {
  if (m->plan->order == POLYCCL_BATCH_MAJOR) {
    *step = (int32_t)(i % tb->steps);
    *batch = (int32_t)(i / tb->steps);
  } else {
    *step = (int32_t)(i / m->options.micro_batches);
    *batch = (int32_t)(i % m->options.micro_batches);
  }
}

static bool has_ended(const machine *m, int32_t tb, int32_t step, int32_t batch) {
  int64_t number = m->plan->order == POLYCCL_BATCH_MAJOR ? (int64_t)batch * m->plan->tb[tb].steps + step
                                                         : (int64_t)step * m->options.micro_batches + batch;
  return m->worker[tb].ended > number;
}

static bool has_slot(const machine *m, const ring *r) {
  return r->slots < m->options.depth && (r->slots == 0 || r->depth == m->options.depth || m->reshapes);
}

static bool may_start(machine *m, int32_t t) {
  const polyccl_thread_block *tb = &m->plan->tb[t];
  int32_t s, batch;
  instance(m, tb, m->worker[t].ended, &s, &batch);
  const polyccl_step *step = &m->plan->step[tb->step + s];
  for (int32_t w = step->wait; w < step->wait + step->waits; w++) {
    const polyccl_wait *wait = &m->plan->wait[w];
    if (!has_ended(m, m->plan->rank[tb->rank].tb + wait->tb, wait->step, batch)) {
      return false;
    }
  }
  if (op_receives(step->op) && m->fifo[step->recv].ring->first == NULL) {
    return false;
  }
  return !op_sends(step->op) || has_slot(m, m->fifo[step->send].ring);
}

static bool start(machine *m, int32_t t) {
  const polyccl_thread_block *tb = &m->plan->tb[t];
  worker *w = &m->worker[t];
  int32_t s, batch;
  instance(m, tb, w->ended, &s, &batch);
  const polyccl_step *step = &m->plan->step[tb->step + s];
  size_t count = step->op == POLYCCL_STEP_NOP ? 0 : (size_t)step->count;
  w->running = true;
  w->read = w->stored = false;
  w->in = w->out = NULL;
  w->result = malloc((count + 1) * sizeof *w->result);
  if (w->result == NULL) {
    return machine_failed(m, INTERPRETER_NO_MEMORY, "no memory");
  }
  if (op_receives(step->op)) {
    ring *f = m->fifo[step->recv].ring;
    w->in = f->first;
    f->first = f->first->next;
    if (w->in->call != m) {
      return machine_failed(m, INTERPRETER_BROKEN, "rank %d tb %d step %d: a message of another call", tb->rank, t, s);
    }
    if (w->in->count != step->count) {
      return machine_failed(m, INTERPRETER_BROKEN, "rank %d tb %d step %d: a message of %d chunks, not %d", tb->rank, t,
                            s, w->in->count, step->count);
    }
  }
  if (op_sends(step->op)) {
    ring *f = m->fifo[step->send].ring;
    f->slots++;
    f->depth = m->options.depth;
    w->out = malloc(sizeof *w->out + count * sizeof(element));
    if (w->out == NULL) {
      return machine_failed(m, INTERPRETER_NO_MEMORY, "no memory");
    }
    *w->out = (message){.call = m, .count = step->count, .sender = step, .from = tb->rank};
  }
  return true;
}

/* Element i of the message that the step has taken. */
static bool take(machine *m, int32_t rank, const polyccl_step *step, const message *in, int32_t i, int32_t batch,
                 element *value) {
  if (in->overwritten) {
    return machine_failed(m, INTERPRETER_BROKEN, "rank %d: the slot of a message was overwritten", rank);
  }
  if (in->put) { /* where it is: the step may just as well look there */
    return load(m, rank, step->dst_buf, step->dst + i, batch, value);
  }
  if (in->get) {
    const polyccl_step *sender = in->sender;
    return op_stores(sender->op) ? load(m, in->from, sender->dst_buf, sender->dst + i, batch, value)
                                 : load(m, in->from, sender->src_buf, sender->src + i, batch, value);
  }
  *value = in->chunk[i];
  return true;
}

/* The call's reduction. */
static uint64_t reduce(const machine *m, uint64_t a, uint64_t b) {
  uint64_t x = table_reduce(m->options.reduction, a, b);
  if (m->options.same_bits &&
      m->options.reduction == INTERPRETER_ADD) { /* commutative still, but no longer associative */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
  }
  return x;
}

/* Computes the running step's result from what memory holds now. */
static bool read_operands(machine *m, int32_t t) {
  const polyccl_thread_block *tb = &m->plan->tb[t];
  worker *w = &m->worker[t];
  int32_t s, batch;
  instance(m, tb, w->ended, &s, &batch);
  const polyccl_step *step = &m->plan->step[tb->step + s];
  w->read = true;
  for (int32_t i = 0; step->op != POLYCCL_STEP_NOP && i < step->count; i++) {
    element value = {0}, other = {0};
    if (w->in != NULL && !take(m, tb->rank, step, w->in, i, batch, &value)) {
      return false;
    }
    if (op_uses_source(step->op)) {
      if (!load(m, tb->rank, step->src_buf, step->src + i, batch, &other)) {
        return false;
      }
      value.number = w->in != NULL ? reduce(m, value.number, other.number) : other.number;
    }
    if (step->op == POLYCCL_STEP_REDUCE) {
      if (!load(m, tb->rank, step->dst_buf, step->dst + i, batch, &other)) {
        return false;
      }
      value.number = reduce(m, value.number, other.number);
    }
    value.held = true;
    w->result[i] = value;
  }
  return true;
}

static void store_result(machine *m, int32_t t) {
  const polyccl_thread_block *tb = &m->plan->tb[t];
  worker *w = &m->worker[t];
  int32_t s, batch;
  instance(m, tb, w->ended, &s, &batch);
  const polyccl_step *step = &m->plan->step[tb->step + s];
  w->stored = true;
  if (w->in != NULL && w->in->put) {
    return;
  }
  for (int32_t i = 0; op_stores(step->op) && i < step->count; i++) {
    machine_store(m, tb->rank, step->dst_buf, step->dst + i, batch, w->result[i]);
  }
}

/* A message's slot is the part [i / depth, (i + 1) / depth) of the ring's memory. */
static void overwrite_slots(ring *r, const message *out) {
  int64_t d = out->depth, i = out->number % d;
  for (message *old = r->first; old != NULL; old = old->next) {
    int64_t e = old->depth, j = old->number % e;
    old->overwritten = old->overwritten || (i * e < (j + 1) * d && j * d < (i + 1) * e);
  }
}

static void append(machine *m, ring *r, message *out) {
  out->number = r->sent++;
  out->depth = m->options.depth;
  overwrite_slots(r, out);
  if (r->first == NULL) {
    r->first = out;
  } else {
    r->last->next = out;
  }
  r->last = out;
}

/* Sends the running step's message, by a way that its marks and those of the receiving step allow. */
static void send_result(machine *m, worker *w, const polyccl_step *step, int32_t batch) {
  fifo *f = &m->fifo[step->send];
  message *out = w->out;
  memcpy(out->chunk, w->result, (size_t)step->count * sizeof(element));
  int64_t number = m->plan->order == POLYCCL_BATCH_MAJOR ? f->sent % (f->receives > 0 ? f->receives : 1)
                                                         : f->sent / m->options.micro_batches;
  f->sent++;
  const polyccl_step *receive = number < f->receives ? f->receive[number] : NULL;
  int32_t dst = m->plan->connection[step->send].dst;
  bool may_put = receive != NULL && (receive->flags & POLYCCL_FLAG_PUT) != 0 && receive->count == step->count;
  if (may_put && (m->entered[dst] || m->puts_early) && machine_below(m, 3) != 0) {
    out->put = true;
    for (int32_t i = 0; i < step->count; i++) {
      machine_store(m, dst, receive->dst_buf, receive->dst + i, batch, w->result[i]);
    }
  } else {
    out->get = (step->flags & POLYCCL_FLAG_GET) != 0 && machine_below(m, 3) != 0;
  }
  m->lent[out->from] += out->get;
  append(m, f->ring, out);
  w->out = NULL;
}

static bool end(machine *m, int32_t t) {
  const polyccl_thread_block *tb = &m->plan->tb[t];
  worker *w = &m->worker[t];
  int32_t s, batch;
  instance(m, tb, w->ended, &s, &batch);
  const polyccl_step *step = &m->plan->step[tb->step + s];
  if (!w->read && !read_operands(m, t)) {
    return false;
  }
  if (!w->stored) {
    store_result(m, t);
  }
  if (w->out != NULL) {
    send_result(m, w, step, batch);
  }
  if (w->in != NULL) {
    m->fifo[step->recv].ring->slots--;
    m->lent[w->in->from] -= w->in->get;
    free(w->in);
    w->in = NULL;
  }
  free(w->result);
  w->result = NULL;
  w->running = false;
  w->ended++;
  return true;
}

bool machine_block_ended(const machine *m, int32_t t) {
  return m->worker[t].ended == (int64_t)m->plan->tb[t].steps * m->options.micro_batches;
}

bool machine_act(machine *m, int32_t t, bool *moved) {
  worker *w = &m->worker[t];
  *moved = true;
  if (w->running) {
    if (!w->read && machine_below(m, 2) == 0) {
      return read_operands(m, t);
    }
    if (w->read && !w->stored && machine_below(m, 2) == 0) {
      store_result(m, t);
      return true;
    }
    return end(m, t);
  }
  if (machine_block_ended(m, t) || !may_start(m, t)) {
    *moved = false;
    return true;
  }
  return start(m, t) && (machine_below(m, 2) == 0 || end(m, t));
}
