#include "interpreter.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

/* An element: a 64-bit number, sums wrap. Inputs are random, so that two different multisets of contributions have
 * the same sum with a chance of 2^-64. Undefined elements are random too, and new at each read. */
typedef struct element {
  uint64_t number;
  bool held;
} element;

/* By reference the message is not in `chunk`: get leaves it where the sending step has it, put has stored it where the
 * receiving step wants it. */
typedef struct message {
  struct message *next;
  int32_t count;
  bool get, put;
  const polyccl_step *sender;
  int32_t from; /* the sender's rank */
  element chunk[];
} message;

typedef struct fifo {
  message *first, *last;
  int32_t slots; /* in use, by messages or by a send that has started */
  int64_t sent;
  const polyccl_step **receive; /* the steps that receive here, in order */
  int32_t receives;
} fifo;

typedef struct worker { /* a thread block */
  int64_t ended;        /* instances of steps */
  bool running;         /* the next has started */
  bool read, stored;
  message *in, *out;
  element *result; /* [count] of the running step */
} worker;

typedef struct machine {
  const polyccl_plan *plan;
  polyccl_plan shared; /* the same in place, for ranks that are */
  interpreter_options options;
  uint64_t random;
  worker *worker;   /* [tbs] */
  fifo *fifo;       /* [connections] */
  element **memory; /* [rank]: cells x M */
  int32_t *priority;
  enum { ANY_ORDER, BY_PRIORITY, BY_FIXED_PRIORITY, MANNERS } manner;
  interpreter_outcome outcome;
  char *why;
  size_t size;
} machine;

static uint64_t next_random(machine *m) {
  m->random ^= m->random << 13;
  m->random ^= m->random >> 7;
  m->random ^= m->random << 17;
  return m->random * 0x2545f4914f6cdd1du;
}

static uint64_t below(machine *m, uint64_t limit) { return (next_random(m) >> 16) % limit; }

__attribute__((format(printf, 3, 4))) static bool failed(machine *m, interpreter_outcome outcome, const char *format,
                                                         ...) {
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

/* Does the element exist in user memory? A block has chunks x M - missing elements. */
static bool exists(const machine *m, uint8_t buffer, int32_t k, int32_t batch) {
  int64_t batches = m->options.micro_batches, count = m->plan->chunks * batches - m->options.missing;
  return buffer == POLYCCL_BUF_SCRATCH || m->options.missing == 0 || (k % m->plan->chunks) * batches + batch < count;
}

static bool inside(const machine *m, int32_t rank, uint8_t buffer, int32_t first, int32_t count) {
  int32_t size = buffer == POLYCCL_BUF_INPUT    ? table_inputs(m->plan)
                 : buffer == POLYCCL_BUF_OUTPUT ? table_outputs(m->plan)
                                                : m->plan->rank[rank].scratch;
  return buffer <= POLYCCL_BUF_SCRATCH && first >= 0 && count >= 1 && (int64_t)first + count <= size;
}

static element *element_at(machine *m, int32_t rank, uint8_t buffer, int32_t k, int32_t batch) {
  const polyccl_plan *p = (m->options.in_place >> rank & 1) != 0 ? &m->shared : m->plan;
  return &m->memory[rank][(size_t)table_cell(p, rank, buffer, k) * (size_t)m->options.micro_batches + (size_t)batch];
}

static bool load(machine *m, int32_t rank, uint8_t buffer, int32_t k, int32_t batch, element *value) {
  if (!exists(m, buffer, k, batch)) {
    *value = (element){.number = next_random(m), .held = true};
    return true;
  }
  *value = *element_at(m, rank, buffer, k, batch);
  return value->held ||
         failed(m, INTERPRETER_WRONG, "rank %d reads chunk %d of buffer %d, which holds nothing", rank, k, buffer);
}

static void store(machine *m, int32_t rank, uint8_t buffer, int32_t k, int32_t batch, element value) {
  if (exists(m, buffer, k, batch)) {
    *element_at(m, rank, buffer, k, batch) = value;
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

static bool receives(uint8_t op) {
  return op == POLYCCL_STEP_RECV || op == POLYCCL_STEP_RCS || op == POLYCCL_STEP_RRC || op == POLYCCL_STEP_RRCS ||
         op == POLYCCL_STEP_RRS;
}

static bool sends(uint8_t op) {
  return op == POLYCCL_STEP_SEND || op == POLYCCL_STEP_RCS || op == POLYCCL_STEP_RRCS || op == POLYCCL_STEP_RRS;
}

static bool uses_source(uint8_t op) {
  return op != POLYCCL_STEP_NOP && op != POLYCCL_STEP_RECV && op != POLYCCL_STEP_RCS;
}

static bool stores(uint8_t op) { return op != POLYCCL_STEP_NOP && op != POLYCCL_STEP_SEND && op != POLYCCL_STEP_RRS; }

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
  if (receives(step->op) && m->fifo[step->recv].first == NULL) {
    return false;
  }
  return !sends(step->op) || m->fifo[step->send].slots < m->options.depth;
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
    return failed(m, INTERPRETER_NO_MEMORY, "no memory");
  }
  if (receives(step->op)) {
    fifo *f = &m->fifo[step->recv];
    w->in = f->first;
    f->first = f->first->next;
    if (w->in->count != step->count) {
      return failed(m, INTERPRETER_BROKEN, "rank %d tb %d step %d: a message of %d chunks, not %d", tb->rank, t, s,
                    w->in->count, step->count);
    }
  }
  if (sends(step->op)) {
    m->fifo[step->send].slots++;
    w->out = malloc(sizeof *w->out + count * sizeof(element));
    if (w->out == NULL) {
      return failed(m, INTERPRETER_NO_MEMORY, "no memory");
    }
    *w->out = (message){.count = step->count, .sender = step, .from = tb->rank};
  }
  return true;
}

/* Element i of the message that the step has taken. */
static bool take(machine *m, int32_t rank, const polyccl_step *step, const message *in, int32_t i, int32_t batch,
                 element *value) {
  if (in->put) { /* where it is: the step may just as well look there */
    return load(m, rank, step->dst_buf, step->dst + i, batch, value);
  }
  if (in->get) {
    const polyccl_step *sender = in->sender;
    return stores(sender->op) ? load(m, in->from, sender->dst_buf, sender->dst + i, batch, value)
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
    if (uses_source(step->op)) {
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
  for (int32_t i = 0; stores(step->op) && i < step->count; i++) {
    store(m, tb->rank, step->dst_buf, step->dst + i, batch, w->result[i]);
  }
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
  if (receive != NULL && (receive->flags & POLYCCL_FLAG_PUT) != 0 && receive->count == step->count &&
      below(m, 3) != 0) {
    out->put = true;
    for (int32_t i = 0; i < step->count; i++) {
      store(m, m->plan->connection[step->send].dst, receive->dst_buf, receive->dst + i, batch, w->result[i]);
    }
  } else {
    out->get = (step->flags & POLYCCL_FLAG_GET) != 0 && below(m, 3) != 0;
  }
  if (f->first == NULL) {
    f->first = out;
  } else {
    f->last->next = out;
  }
  f->last = out;
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
    m->fifo[step->recv].slots--;
    free(w->in);
    w->in = NULL;
  }
  free(w->result);
  w->result = NULL;
  w->running = false;
  w->ended++;
  return true;
}

/* Lets thread block t do one thing. *moved: it could. */
static bool act(machine *m, int32_t t, bool *moved) {
  const polyccl_thread_block *tb = &m->plan->tb[t];
  worker *w = &m->worker[t];
  *moved = true;
  if (w->running) {
    if (!w->read && below(m, 2) == 0) {
      return read_operands(m, t);
    }
    if (w->read && !w->stored && below(m, 2) == 0) {
      store_result(m, t);
      return true;
    }
    return end(m, t);
  }
  if (w->ended == (int64_t)tb->steps * m->options.micro_batches || !may_start(m, t)) {
    *moved = false;
    return true;
  }
  return start(m, t) && (below(m, 2) == 0 || end(m, t));
}

/* ---- a run ---- */

static bool connection_fits(const polyccl_plan *p, int32_t connection, int32_t rank, bool sending) {
  return connection >= 0 && (size_t)connection < p->connections &&
         (sending ? p->connection[connection].src : p->connection[connection].dst) == rank;
}

/* What the run indexes with; the arrays themselves are taken to be whole. */
static bool check_step(machine *m, int32_t rank, const polyccl_step *step) {
  const polyccl_plan *p = m->plan;
  if (step->op >= POLYCCL_STEP_OP_COUNT ||
      (uses_source(step->op) && !inside(m, rank, step->src_buf, step->src, step->count)) ||
      (stores(step->op) && !inside(m, rank, step->dst_buf, step->dst, step->count)) ||
      (step->op != POLYCCL_STEP_NOP && step->count < 1)) {
    return failed(m, INTERPRETER_BROKEN, "rank %d: a step leaves its buffers", rank);
  }
  if (stores(step->op) && step->dst_buf == POLYCCL_BUF_INPUT && !p->inplace) {
    return failed(m, INTERPRETER_BROKEN, "rank %d: a step writes the input out of place", rank);
  }
  if ((receives(step->op) && !connection_fits(p, step->recv, rank, false)) ||
      (sends(step->op) && !connection_fits(p, step->send, rank, true))) {
    return failed(m, INTERPRETER_BROKEN, "rank %d: a step has no such connection", rank);
  }
  for (int32_t w = step->wait; w < step->wait + step->waits; w++) {
    if (p->wait[w].tb < 0 || p->wait[w].tb >= p->rank[rank].tbs || p->wait[w].step < 0 ||
        p->wait[w].step >= p->tb[p->rank[rank].tb + p->wait[w].tb].steps) {
      return failed(m, INTERPRETER_BROKEN, "rank %d: a step waits for none", rank);
    }
  }
  return true;
}

static bool check_head(machine *m) {
  const polyccl_plan *p = m->plan;
  bool pair = p->collective == POLYCCL_SENDRECV;
  if ((table_has_root(p) && (p->root < 0 || p->root >= p->ranks)) || (pair && (p->peer < 0 || p->peer >= p->ranks))) {
    return failed(m, INTERPRETER_BROKEN, "no such root or peer");
  }
  return !(pair && p->inplace) || failed(m, INTERPRETER_BROKEN, "sendrecv in place");
}

static bool check_steps(machine *m) {
  for (int32_t r = 0; r < m->plan->ranks; r++) {
    if (m->plan->rank[r].scratch < 0) {
      return failed(m, INTERPRETER_BROKEN, "rank %d has %d chunks of scratch", r, m->plan->rank[r].scratch);
    }
  }
  for (size_t t = 0; t < m->plan->tbs; t++) {
    const polyccl_thread_block *tb = &m->plan->tb[t];
    for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
      if (!check_step(m, tb->rank, &m->plan->step[s])) {
        return false;
      }
    }
  }
  return true;
}

static bool make_fifos(machine *m) {
  const polyccl_plan *p = m->plan;
  for (size_t s = 0; s < p->steps; s++) {
    if (receives(p->step[s].op)) {
      m->fifo[p->step[s].recv].receives++;
    }
  }
  for (size_t c = 0; c < p->connections; c++) {
    m->fifo[c].receive = calloc((size_t)m->fifo[c].receives + 1, sizeof *m->fifo[c].receive);
    m->fifo[c].receives = 0;
    if (m->fifo[c].receive == NULL) {
      return failed(m, INTERPRETER_NO_MEMORY, "no memory");
    }
  }
  for (size_t t = 0; t < p->tbs; t++) {
    for (int32_t s = p->tb[t].step; s < p->tb[t].step + p->tb[t].steps; s++) {
      if (receives(p->step[s].op)) {
        fifo *f = &m->fifo[p->step[s].recv];
        f->receive[f->receives++] = &p->step[s];
      }
    }
  }
  return true;
}

/* Who marks what cannot go by reference: rrs leaves its message nowhere, rrc and rrcs add before they store. */
static bool check_marks(machine *m) {
  for (size_t s = 0; s < m->plan->steps; s++) {
    const polyccl_step *step = &m->plan->step[s];
    bool get = (step->flags & POLYCCL_FLAG_GET) != 0, put = (step->flags & POLYCCL_FLAG_PUT) != 0;
    if ((get && (!sends(step->op) || step->op == POLYCCL_STEP_RRS)) ||
        (put && step->op != POLYCCL_STEP_RECV && step->op != POLYCCL_STEP_RCS)) {
      return failed(m, INTERPRETER_BROKEN, "step %zu has a mark that its op cannot have", s);
    }
  }
  return true;
}

static bool make(machine *m) {
  const polyccl_plan *p = m->plan;
  size_t batches = (size_t)m->options.micro_batches;
  m->worker = calloc(p->tbs + 1, sizeof *m->worker);
  m->fifo = calloc(p->connections + 1, sizeof *m->fifo);
  m->priority = calloc(p->tbs + 1, sizeof *m->priority);
  m->memory = calloc((size_t)p->ranks, sizeof *m->memory);
  if (m->worker == NULL || m->fifo == NULL || m->priority == NULL || m->memory == NULL) {
    return failed(m, INTERPRETER_NO_MEMORY, "no memory");
  }
  if (!make_fifos(m)) {
    return false;
  }
  for (int32_t r = 0; r < p->ranks; r++) {
    m->memory[r] = calloc((size_t)table_cells(p, r) * batches + 1, sizeof(element));
    if (m->memory[r] == NULL) {
      return failed(m, INTERPRETER_NO_MEMORY, "no memory");
    }
    for (int32_t k = 0; k < table_inputs(p); k++) {
      for (int32_t b = 0; b < m->options.micro_batches; b++) {
        store(m, r, POLYCCL_BUF_INPUT, k, b, (element){.number = table_leaf(&m->options, r, k, b), .held = true});
      }
    }
  }
  for (size_t i = 0; i < p->absents; i++) {
    for (int32_t b = 0; b < m->options.micro_batches; b++) {
      store(m, p->absent[i].rank, POLYCCL_BUF_INPUT, p->absent[i].chunk, b, (element){0});
    }
  }
  return true;
}

/* Extreme orders show more than mild ones: with fixed priorities the last thread block moves only when no other can. */
static void shuffle_priorities(machine *m) {
  for (size_t t = 0; t < m->plan->tbs; t++) {
    size_t other = below(m, t + 1);
    m->priority[t] = m->priority[other];
    m->priority[other] = (int32_t)t;
  }
}

/* Tries thread blocks in the order of the moment until one moves; false: none does, or something failed. */
static bool move(machine *m) {
  size_t tbs = m->plan->tbs, first = m->manner == ANY_ORDER ? below(m, tbs) : 0;
  if (m->manner == BY_PRIORITY && below(m, 64) == 0) {
    shuffle_priorities(m);
  }
  for (size_t i = 0; i < tbs; i++) {
    bool moved;
    if (!act(m, m->priority[(first + i) % tbs], &moved)) {
      return false;
    }
    if (moved) {
      if (m->manner == ANY_ORDER && below(m, 8) == 0) {
        shuffle_priorities(m);
      }
      return true;
    }
  }
  return false;
}

static bool check_outputs(machine *m) {
  const polyccl_plan *p = m->plan;
  for (int32_t r = 0; r < p->ranks; r++) {
    for (int32_t k = 0; k < table_outputs(p); k++) {
      for (int32_t b = 0; b < m->options.micro_batches; b++) {
        uint64_t number;
        const element *found = element_at(m, r, POLYCCL_BUF_OUTPUT, k, b);
        if (exists(m, POLYCCL_BUF_OUTPUT, k, b) && table_wanted(p, &m->options, r, k, b, &number) &&
            (!found->held || found->number != number)) {
          return failed(m, INTERPRETER_WRONG, "rank %d output[%d] is wrong in micro-batch %d", r, k, b);
        }
      }
    }
  }
  return true;
}

static bool check_same_bits(machine *m) {
  const polyccl_plan *p = m->plan;
  for (int32_t r = 1; p->collective == POLYCCL_ALLREDUCE && r < p->ranks; r++) {
    for (int32_t k = 0; k < table_outputs(p); k++) {
      if (element_at(m, r, POLYCCL_BUF_OUTPUT, k, 0)->number != element_at(m, 0, POLYCCL_BUF_OUTPUT, k, 0)->number) {
        return failed(m, INTERPRETER_WRONG, "rank %d output[%d] differs from rank 0's", r, k);
      }
    }
  }
  return true;
}

static bool check_end(machine *m) {
  const polyccl_plan *p = m->plan;
  for (size_t t = 0; t < p->tbs; t++) {
    if (m->worker[t].ended != (int64_t)p->tb[t].steps * m->options.micro_batches) {
      return failed(m, INTERPRETER_DEADLOCK, "rank %d tb %d stopped after %lld steps", p->tb[t].rank,
                    (int)t - p->rank[p->tb[t].rank].tb, (long long)m->worker[t].ended);
    }
  }
  for (size_t c = 0; c < p->connections; c++) {
    if (m->fifo[c].first != NULL) {
      return failed(m, INTERPRETER_BROKEN, "a message from rank %d to rank %d is left over", p->connection[c].src,
                    p->connection[c].dst);
    }
  }
  return m->options.same_bits ? check_same_bits(m) : check_outputs(m);
}

static void dispose(machine *m) {
  for (size_t t = 0; m->worker != NULL && t < m->plan->tbs; t++) {
    free(m->worker[t].in);
    free(m->worker[t].out);
    free(m->worker[t].result);
  }
  for (size_t c = 0; m->fifo != NULL && c < m->plan->connections; c++) {
    while (m->fifo[c].first != NULL) {
      message *next = m->fifo[c].first->next;
      free(m->fifo[c].first);
      m->fifo[c].first = next;
    }
    free(m->fifo[c].receive);
  }
  for (int32_t r = 0; m->memory != NULL && r < m->plan->ranks; r++) {
    free(m->memory[r]);
  }
  free(m->worker);
  free(m->fifo);
  free(m->priority);
  free(m->memory);
}

interpreter_outcome interpret(const polyccl_plan *plan, const interpreter_options *options, char *why, size_t size) {
  machine m = {.plan = plan,
               .shared = *plan,
               .options = *options,
               .random = options->seed * 0x9e3779b97f4a7c15u + 0x1234567u,
               .why = why,
               .size = size};
  m.shared.inplace = true;
  if (check_head(&m) && check_steps(&m) && check_marks(&m) && make(&m)) {
    m.manner = (int)below(&m, MANNERS);
    shuffle_priorities(&m);
    while (plan->tbs > 0 && move(&m)) {
    }
    if (m.outcome == INTERPRETER_RIGHT) {
      check_end(&m);
    }
  }
  dispose(&m);
  return m.outcome;
}
