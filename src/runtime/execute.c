#include "runtime/execute.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "kernel/step.h"
#include "plan/plan.h"
#include "runtime/call_trace.h"
#include "runtime/generated.h"
#include "runtime/wait.h"

/* One call. */
typedef struct call {
  polyccl_comm *comm;
  pccl_prepared *p;
  char *base[PCCL_BUFFERS];
  uint32_t running; /* thread blocks */
  /* References: our buffers as others may know them. */
  pccl_reference mine[PCCL_BUFFERS];
  polyccl_result failed;
} call;

/* The loops that are made of one source: a protocol, Simple with references, and each of these traced. */
typedef struct mode {
  polyccl_protocol protocol;
  bool references, traced;
} mode;

static const uint64_t wipe_every = (uint64_t)1 << 30;

static inline size_t line_payload(polyccl_protocol protocol) {
  return protocol == POLYCCL_LL ? PCCL_LL_PAYLOAD : PCCL_LL128_PAYLOAD;
}

/* Bytes of a message that one run takes. */
static inline size_t run_pitch(polyccl_protocol protocol, size_t bytes) {
  size_t unit = protocol == POLYCCL_SIMPLE ? 64 : line_payload(protocol);
  return (bytes + unit - 1) / unit * unit;
}

static inline size_t tile_elements(const pccl_prepared *p, const pccl_prepared_step *step, uint64_t batch) {
  return p->batches == 1 ? step->len : pccl_min_size(p->tile, step->len - batch * p->tile);
}

/* Other steps of this rank that must have ended, for this micro-batch. */
static inline bool waits_ended(const pccl_prepared *p, const pccl_tb_state *tb, const pccl_prepared_step *step) {
  for (uint32_t i = 0; i < step->waits; i++) {
    const polyccl_wait *wait = &step->wait[i];
    uint64_t index = p->plan->order == POLYCCL_BATCH_MAJOR ? tb->batch * p->tb[wait->tb].steps + (uint64_t)wait->step
                                                           : (uint64_t)wait->step * p->batches + tb->batch;
    if (p->state[wait->tb].done <= index) {
      return false;
    }
  }
  return true;
}

static inline char *slot_of(const pccl_prepared *p, const pccl_end *end) {
  return end->ring->slots + (end->count & (p->depth - 1)) * p->slot_bytes;
}

static inline bool message_arrived(polyccl_protocol protocol, const pccl_prepared *p, pccl_tb_state *tb,
                                   const pccl_prepared_step *step, size_t bytes) {
  pccl_end *end = step->recv;
  if (protocol == POLYCCL_SIMPLE) {
    if (end->cached <= end->count) {
      end->cached = atomic_load_explicit(&end->ring->tail, memory_order_acquire);
    }
    return end->cached > end->count;
  }
  const char *slot = slot_of(p, end);
  return protocol == POLYCCL_LL ? pccl_ll_arrived(slot, &tb->arrived, bytes, end->count)
                                : pccl_ll128_arrived(slot, &tb->arrived, bytes, end->count);
}

/* The ring is empty and may change its geometry, or have old flags wiped out. */
static bool drained(polyccl_protocol protocol, const pccl_prepared *p, pccl_end *end) {
  end->cached = atomic_load_explicit(&end->ring->head, memory_order_acquire);
  if (end->cached != end->count) {
    return false;
  }
  if (protocol == POLYCCL_LL && end->count - end->wiped >= wipe_every) {
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)end->ring->slots;
    for (size_t i = 0; i < end->bytes / sizeof *word; i++) {
      atomic_store_explicit(&word[i], 0, memory_order_relaxed);
    }
    end->wiped = end->count;
  }
  end->depth = p->depth;
  end->slot_bytes = p->slot_bytes;
  return true;
}

static inline bool ready(polyccl_protocol protocol, const pccl_prepared *p, pccl_end *end) {
  return __builtin_expect(end->slot_bytes == p->slot_bytes && end->depth == p->depth &&
                              (protocol != POLYCCL_LL || end->count - end->wiped < wipe_every),
                          1) ||
         drained(protocol, p, end);
}

bool pccl_end_ready(polyccl_protocol protocol, const pccl_prepared *p, pccl_end *end) {
  return ready(protocol, p, end);
}

static inline bool has_credit(polyccl_protocol protocol, const pccl_prepared *p, pccl_end *end) {
  if (!ready(protocol, p, end)) {
    return false;
  }
  if (end->count - end->cached >= p->depth) {
    end->cached = atomic_load_explicit(&end->ring->head, memory_order_acquire);
  }
  return end->count - end->cached < p->depth;
}

static inline size_t clip(size_t valid, size_t start, size_t n) {
  return valid <= start ? 0 : pccl_min_size(valid - start, n);
}

/* ---- by reference ---- */

static inline bool same_process(const call *c, const pccl_end *end) { return end->peer_cell->pid == c->comm->pid; }

/* Our buffer can be named to the peer. */
static inline bool lends(const call *c, const pccl_end *end, uint8_t buffer) {
  return c->mine[buffer].region != 0 || same_process(c, end);
}

/* Where `reference` of the peer is here. A peer in this process may name any memory. */
static polyccl_result address_of(call *c, const pccl_end *end, pccl_reference reference, char **address) {
  if (same_process(c, end)) {
    *address = reference.region == 0 ? (char *)(uintptr_t)reference.offset : pccl_region_local(reference);
    return POLYCCL_SUCCESS;
  }
  *address = NULL;
  return reference.region == 0 ? POLYCCL_SUCCESS
                               : pccl_region_address(&c->comm->regions, end->peer_cell->pid, reference, address);
}

/* The peer's buffers; false: it has not entered the call. It cannot be past it, since it waits for our message. */
static bool view_peer(call *c, const pccl_end *end, pccl_view **view) {
  *view = &c->comm->view[end->peer];
  if ((*view)->call == c->comm->calls) {
    return true;
  }
  if (atomic_load_explicit(&end->peer_cell->call, memory_order_acquire) != c->comm->calls) {
    return false;
  }
  for (int b = 0; b < PCCL_BUFFERS; b++) {
    polyccl_result result = address_of(c, end, end->peer_cell->buffer[b], &(*view)->base[b]);
    if (result != POLYCCL_SUCCESS) {
      c->failed = result;
      return false;
    }
  }
  (*view)->call = c->comm->calls;
  return true;
}

/* False: it is not known yet. */
static inline bool choose_way(call *c, const pccl_prepared_step *step, pccl_way *way, char **far_base) {
  *way = PCCL_BY_SLOT;
  bool get = step->may_get && lends(c, step->send, step->lent_buf);
  if (get && !(step->may_put && step->put_first)) {
    *way = PCCL_BY_GET;
    return true;
  }
  if (step->may_put) {
    pccl_view *view;
    if (!view_peer(c, step->send, &view)) {
      return false;
    }
    *far_base = view->base[step->far_dst_buf];
    *way = *far_base != NULL ? PCCL_BY_PUT : get ? PCCL_BY_GET : PCCL_BY_SLOT;
  }
  return true;
}

/* What the sender wrote at the start of the slot; false: its memory cannot be reached. */
static inline bool read_note(call *c, pccl_end *end, const pccl_note *note, char **far_base) {
  if (note->way == PCCL_BY_GET) {
    if (end->noted_at == NULL || end->noted_generation != c->comm->regions.generation ||
        end->noted.region != note->buffer.region || end->noted.offset != note->buffer.offset) {
      polyccl_result result = address_of(c, end, note->buffer, &end->noted_at);
      if (result != POLYCCL_SUCCESS) {
        c->failed = result;
        return false;
      }
      end->noted = note->buffer;
      end->noted_generation = c->comm->regions.generation;
    }
    *far_base = end->noted_at;
  }
  return true;
}

/* ---- steps ---- */

/* Where a step's message comes from and goes to. */
typedef struct route {
  char *in, *out; /* slots' payload */
  char *in_base, *out_base;
  pccl_way in_way, out_way;
} route;

static inline void move_runs(mode how, call *c, const pccl_prepared_step *step, const route *way, size_t start,
                             size_t n) {
  const pccl_prepared *p = c->p;
  size_t e = p->arithmetic.element, pitch = run_pitch(how.protocol, n * e);
  pccl_move m = {.n = n};
  if (how.protocol != POLYCCL_SIMPLE) {
    m.in_number = step->recv != NULL ? step->recv->count : 0;
    m.out_number = step->send != NULL ? step->send->count : 0;
  }
  for (uint32_t i = 0; i < step->runs; i++) {
    const pccl_run *run = &step->run[i];
    size_t shift = start * e;
    m.src = c->base[step->src_buf] + run->src + shift;
    m.dst = c->base[step->dst_buf] + run->dst + shift;
    m.src_n = clip(run->src_len, start, n);
    m.dst_n = clip(run->dst_len, start, n);
    m.in_n = m.out_n = n;
    m.at = i * pitch;
    m.addends = run->addends;
    m.in = way->in;
    m.out = way->out;
    if (how.protocol != POLYCCL_SIMPLE) {
      pccl_move_lines(how.protocol, &p->arithmetic, step->op, &m);
      continue;
    }
    m.in = m.in != NULL ? m.in + m.at : NULL;
    m.out = m.out != NULL ? m.out + m.at : NULL;
    if (how.references && way->in_way != PCCL_BY_SLOT) {
      bool get = way->in_way == PCCL_BY_GET;
      m.in = get ? way->in_base + run->far_src + shift : m.dst;
      m.in_n = get ? clip(run->far_src_len, start, n) : m.dst_n;
    }
    if (how.references && way->out_way != PCCL_BY_SLOT) {
      bool put = way->out_way == PCCL_BY_PUT;
      m.out = put ? way->out_base + run->far_dst + shift : NULL;
      m.out_n = put ? clip(run->far_dst_len, start, n) : 0;
    }
    pccl_move_memory(&p->arithmetic, step->op, &m, how.references && way->out_way == PCCL_BY_PUT);
  }
}

static inline void publish(mode how, call *c, const pccl_prepared_step *step) {
  if (c->p->arithmetic.stream) {
    c->comm->kernels->stream_fence();
  }
  if (step->send != NULL) {
    step->send->count++;
    if (how.protocol == POLYCCL_SIMPLE) {
      atomic_store_explicit(&step->send->ring->tail, step->send->count, memory_order_release);
    } else {
      pccl_will_write(slot_of(c->p, step->send));
    }
    pccl_notify(c->comm, step->send->peer_cell);
  }
  if (step->recv != NULL) {
    step->recv->count++;
    atomic_store_explicit(&step->recv->ring->head, step->recv->count, memory_order_release);
    pccl_notify(c->comm, step->recv->peer_cell);
  }
}

static inline void go_on(call *c, const pccl_prepared_tb *block, pccl_tb_state *tb) {
  tb->done++;
  tb->arrived = 0;
  if (c->p->plan->order == POLYCCL_BATCH_MAJOR) {
    if (++tb->step == block->steps) {
      tb->step = 0;
      tb->batch++;
    }
    tb->ended = tb->batch == c->p->batches;
  } else {
    if (++tb->batch == c->p->batches) {
      tb->batch = 0;
      tb->step++;
    }
    tb->ended = tb->step == block->steps;
  }
}

/* References: finds the ways in and out, writes the note of what goes out. False: the step must wait. */
static inline bool find_ways(call *c, const pccl_prepared_step *step, route *way) {
  if (step->recv != NULL) {
    const pccl_note *note = (const pccl_note *)(const void *)way->in;
    way->in_way = (pccl_way)note->way;
    if (!read_note(c, step->recv, note, &way->in_base)) {
      return false;
    }
    way->in += sizeof *note;
  }
  if (step->send != NULL) {
    if (!choose_way(c, step, &way->out_way, &way->out_base)) {
      return false;
    }
    pccl_note *note = (pccl_note *)(void *)way->out;
    note->way = way->out_way;
    if (way->out_way == PCCL_BY_GET) {
      note->buffer = c->mine[step->lent_buf];
      step->send->lent = step->send->count + 1;
    }
    way->out += sizeof *note;
  }
  return true;
}

/* ---- traces ---- */

static void record(call *c, const pccl_prepared_tb *block, const pccl_tb_state *tb, uint64_t begin, uint64_t end,
                   polyccl_trace_state state) {
  pccl_call_trace_put(c->comm->trace, (pccl_call_record){.begin = begin,
                                                         .end = end,
                                                         .batch = tb->batch,
                                                         .tb = (uint32_t)(block - c->p->tb),
                                                         .step = tb->step,
                                                         .state = (uint32_t)state});
}

/* The step must wait: notes since when and for what. Always false. */
static inline bool blocked(mode how, call *c, const pccl_prepared_tb *block, pccl_tb_state *tb,
                           polyccl_trace_state reason) {
  if (how.traced && (tb->since == 0 || tb->reason != (uint32_t)reason)) {
    uint64_t now = pccl_now();
    if (tb->since != 0) {
      record(c, block, tb, tb->since, now, (polyccl_trace_state)tb->reason);
    }
    tb->since = now;
    tb->reason = (uint32_t)reason;
  }
  return false;
}

/* The step waits no longer; the time. */
static uint64_t unblocked(call *c, const pccl_prepared_tb *block, pccl_tb_state *tb) {
  uint64_t now = pccl_now();
  if (tb->since != 0) {
    record(c, block, tb, tb->since, now, (polyccl_trace_state)tb->reason);
    tb->since = 0;
  }
  return now;
}

/* False: the step must wait. */
static inline bool try_step(mode how, call *c, const pccl_prepared_tb *block, pccl_tb_state *tb) {
  const pccl_prepared *p = c->p;
  const pccl_prepared_step *step = &block->step[tb->step];
  if (!waits_ended(p, tb, step)) {
    return blocked(how, c, block, tb, POLYCCL_TRACE_WAIT_BLOCK);
  }
  size_t start = p->batches == 1 ? 0 : tb->batch * p->tile;
  size_t n = tile_elements(p, step, tb->batch);
  if (step->recv != NULL &&
      !message_arrived(how.protocol, p, tb, step, run_pitch(how.protocol, n * p->arithmetic.element) * step->runs)) {
    return blocked(how, c, block, tb, POLYCCL_TRACE_WAIT_DATA);
  }
  if (step->send != NULL && !has_credit(how.protocol, p, step->send)) {
    return blocked(how, c, block, tb, POLYCCL_TRACE_WAIT_CREDIT);
  }
  route way = {.in = step->recv != NULL ? slot_of(p, step->recv) : NULL,
               .out = step->send != NULL ? slot_of(p, step->send) : NULL};
  if (how.references && !find_ways(c, step, &way)) {
    return blocked(how, c, block, tb, POLYCCL_TRACE_WAIT_CREDIT); /* the receiver has not entered the call */
  }
  uint64_t begin = how.traced ? unblocked(c, block, tb) : 0;
  move_runs(how, c, step, &way, start, n);
  publish(how, c, step);
  if (how.traced) {
    record(c, block, tb, begin, pccl_now(), POLYCCL_TRACE_BUSY);
  }
  go_on(c, block, tb);
  return true;
}

/* Runs every thread block as far as it goes; true: something moved. */
static inline bool round_of(mode how, call *c) {
  bool moved = false;
  for (uint32_t t = 0; t < c->p->plan->tbs; t++) {
    pccl_tb_state *tb = &c->p->state[t];
    while (!tb->ended && try_step(how, c, &c->p->tb[t], tb)) {
      moved = true;
      c->running -= tb->ended;
    }
  }
  return moved;
}

/* One loop for each mode, so that the choice is made once a call. */
static bool round_simple(call *c) { return round_of((mode){POLYCCL_SIMPLE, false, false}, c); }
static bool round_references(call *c) { return round_of((mode){POLYCCL_SIMPLE, true, false}, c); }
static bool round_ll(call *c) { return round_of((mode){POLYCCL_LL, false, false}, c); }
static bool round_ll128(call *c) { return round_of((mode){POLYCCL_LL128, false, false}, c); }

static bool round_traced(call *c) {
  switch (c->p->plan->protocol) {
    case POLYCCL_LL: return round_of((mode){POLYCCL_LL, false, true}, c);
    case POLYCCL_LL128: return round_of((mode){POLYCCL_LL128, false, true}, c);
    default:
      return c->p->references ? round_of((mode){POLYCCL_SIMPLE, true, true}, c)
                              : round_of((mode){POLYCCL_SIMPLE, false, true}, c);
  }
}

static bool one_round(call *c) {
  if (c->p->plan->generated != NULL) {
    return pccl_generated_round(c->comm, c->p->plan->generated, c->p, &c->running);
  }
  if (__builtin_expect(c->comm->trace != NULL, 0)) {
    return round_traced(c);
  }
  switch (c->p->plan->protocol) {
    case POLYCCL_LL: return round_ll(c);
    case POLYCCL_LL128: return round_ll128(c);
    default: return c->p->references ? round_references(c) : round_simple(c);
  }
}

/* A sender whose message may still be read in our buffers; NULL: they are the caller's again. */
static const pccl_end *still_lent(const call *c) {
  for (uint32_t i = 0; c->p->references && i < c->p->senders; i++) {
    pccl_end *end = c->p->sender[i];
    if (end->lent > end->cached) {
      end->cached = atomic_load_explicit(&end->ring->head, memory_order_acquire);
    }
    if (end->lent > end->cached) {
      return end;
    }
  }
  return NULL;
}

/* Tells the others where our buffers are in this call. */
static void announce(call *c) {
  pccl_rank_cell *cell = c->comm->cell;
  c->comm->calls++;
  pccl_region_cache_trim(&c->comm->regions);
  for (int b = 0; b < PCCL_BUFFERS; b++) {
    c->mine[b] = pccl_region_reference(c->base[b], c->p->bytes[b]);
    cell->buffer[b] = c->mine[b];
  }
  atomic_store_explicit(&cell->call, c->comm->calls, memory_order_release);
  for (uint32_t i = 0; i < c->p->receivers; i++) {
    pccl_notify(c->comm, c->p->receiver[i]->peer_cell);
  }
}

/* What a step that cannot run lacks: its message, or a slot (or the peer's buffers) for what it sends; NULL: neither.
 */
static const pccl_end *lacks(const pccl_prepared *p, pccl_tb_state *tb, const pccl_prepared_step *step) {
  polyccl_protocol protocol = p->plan->protocol;
  size_t bytes = run_pitch(protocol, tile_elements(p, step, tb->batch) * p->arithmetic.element) * step->runs;
  if (step->recv != NULL && !message_arrived(protocol, p, tb, step, bytes)) {
    return step->recv;
  }
  return step->send;
}

/* Whom the call waits for: the first thread block that waits for another rank. */
static int describe(const call *c, char *text, size_t length) {
  const pccl_prepared *p = c->p;
  for (uint32_t t = 0; t < p->plan->tbs; t++) {
    pccl_tb_state *tb = &p->state[t];
    const pccl_prepared_step *step = tb->ended ? NULL : &p->tb[t].step[tb->step];
    const pccl_end *end = step != NULL && waits_ended(p, tb, step) ? lacks(p, tb, step) : NULL;
    if (end != NULL) {
      snprintf(text, length,
               "rank %d (thread block %u, step %u %s, micro-batch %llu of %llu, %s channel %d, plan \"%s\")", end->peer,
               t, tb->step, polyccl_step_op_name((polyccl_step_op)step->op), (unsigned long long)tb->batch,
               (unsigned long long)p->batches, end == step->recv ? "message on" : "free slot on", end->channel,
               p->plan->name);
      return end->peer;
    }
  }
  const pccl_end *lent = still_lent(c);
  if (lent != NULL) {
    snprintf(text, length, "rank %d to read what was lent to it on channel %d, plan \"%s\"", lent->peer, lent->channel,
             p->plan->name);
    return lent->peer;
  }
  snprintf(text, length, "itself");
  return -1;
}

/* Follows who waits for whom to the rank that holds up all. */
static void describe_chain(const call *c, int peer, char *text, size_t length) {
  pccl_segment_header *header = c->comm->segment->header;
  text[0] = '\0';
  int last = peer;
  size_t used = 0;
  for (int hops = 0; last >= 0 && hops < c->comm->ranks && used < length - 1; hops++) {
    int next = atomic_load(&header->cell[last].awaits) - 1;
    if (next < 0) {
      snprintf(text + used, length - used, "; rank %d waits for nobody", last);
      return;
    }
    used +=
        (size_t)snprintf(text + used, length - used, "%s rank %d", hops == 0 ? "; it waits for" : ", that for", next);
    if (next == c->comm->rank) {
      return;
    }
    last = next;
  }
}

static polyccl_result give_up(call *c) {
  pccl_segment_header *header = c->comm->segment->header;
  char whom[160], chain[160];
  int peer = describe(c, whom, sizeof whom);
  describe_chain(c, peer, chain, sizeof chain);
  pccl_segment_abort(header, POLYCCL_ERROR_TIMEOUT, "rank %d waited %llu s for %s%s", c->comm->rank,
                     (unsigned long long)(c->comm->timeout_ns / 1000000000u), whom, chain);
  return pccl_segment_abort_error(header);
}

/* A rank that has left will send and take nothing more. What it did before is visible once it is seen to have left, so
 * what is lacking in a round after that stays so. */
static polyccl_result check_left(call *c) {
  pccl_segment_header *header = c->comm->segment->header;
  char whom[160];
  int peer = describe(c, whom, sizeof whom);
  atomic_store_explicit(&c->comm->cell->awaits, peer + 1, memory_order_relaxed);
  if (peer < 0 || atomic_load_explicit(&header->cell[peer].state, memory_order_acquire) != PCCL_RANK_LEFT ||
      one_round(c) || (c->running == 0 && still_lent(c) == NULL) || describe(c, whom, sizeof whom) != peer) {
    return POLYCCL_SUCCESS;
  }
  pccl_segment_abort(header, POLYCCL_ERROR_REMOTE, "rank %d left the communicator; rank %d waits for %s", peer,
                     c->comm->rank, whom);
  return pccl_segment_abort_error(header);
}

static polyccl_result loop(call *c) {
  pccl_patience patience = {0};
  while (c->running > 0 || still_lent(c) != NULL) {
    if (one_round(c)) {
      pccl_busy(c->comm, &patience);
      continue;
    }
    polyccl_result result = c->failed != POLYCCL_SUCCESS ? c->failed : pccl_idle(c->comm, &patience);
    if (result == POLYCCL_SUCCESS && patience.armed) {
      result = check_left(c);
    }
    if (__builtin_expect(result != POLYCCL_SUCCESS, 0)) {
      bool silent = result == POLYCCL_ERROR_TIMEOUT && !pccl_segment_aborted(c->comm->segment->header);
      pccl_busy(c->comm, &patience);
      return silent ? give_up(c) : result;
    }
  }
  pccl_busy(c->comm, &patience);
  return POLYCCL_SUCCESS;
}

static polyccl_result grow_scratch(polyccl_comm *comm, size_t bytes) {
  if (bytes > comm->scratch_bytes) {
    void *memory;
    PCCL_TRY(polyccl_mem_alloc(&memory, bytes));
    polyccl_mem_free(comm->scratch);
    comm->scratch = memory;
    comm->scratch_bytes = bytes;
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_execute(polyccl_comm *comm, pccl_prepared *prepared, const void *send, void *recv) {
  if (prepared->count == 0) {
    return POLYCCL_SUCCESS;
  }
  if (prepared->bytes[POLYCCL_BUF_SCRATCH] > comm->scratch_bytes) {
    PCCL_TRY(grow_scratch(comm, prepared->bytes[POLYCCL_BUF_SCRATCH]));
  }
  call c = {.comm = comm, .p = prepared, .base = {(char *)send, recv, comm->scratch}};
  if (comm->trace != NULL) {
    comm->trace->begin = pccl_now();
    comm->trace->count = comm->trace->lost = 0;
  }
  for (uint32_t t = 0; t < prepared->plan->tbs; t++) {
    prepared->state[t] = (pccl_tb_state){.ended = prepared->tb[t].steps == 0};
    c.running += prepared->tb[t].steps != 0;
  }
  if (prepared->references) {
    announce(&c);
  }
  if (prepared->plan->generated != NULL) {
    pccl_generated_begin(prepared->plan->generated, prepared, c.base);
  }
  return loop(&c);
}
