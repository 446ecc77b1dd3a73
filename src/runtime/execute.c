#include "runtime/execute.h"

#include <stdio.h>

#include "base/error.h"
#include "plan/plan.h"
#include "runtime/step.h"
#include "runtime/wait.h"

/* One call. */
typedef struct call {
  polyccl_comm *comm;
  pccl_prepared *p;
  char *base[PCCL_BUFFERS];
  uint32_t running; /* thread blocks */
} call;

static const uint64_t wipe_every = (uint64_t)1 << 30;

static inline size_t line_payload(polyccl_protocol protocol) {
  return protocol == POLYCCL_LL ? PCCL_LL_PAYLOAD : PCCL_LL128_PAYLOAD;
}

/* Bytes of a message that one run takes. */
static inline size_t run_pitch(polyccl_protocol protocol, size_t bytes) {
  size_t unit = protocol == POLYCCL_SIMPLE ? 64 : line_payload(protocol);
  return (bytes + unit - 1) / unit * unit;
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

static inline bool message_arrived(polyccl_protocol protocol, const pccl_prepared *p, pccl_tb_state *tb,
                                   const pccl_prepared_step *step, size_t bytes) {
  pccl_end *end = step->recv;
  if (protocol == POLYCCL_SIMPLE) {
    if (end->cached <= end->count) {
      end->cached = atomic_load_explicit(&end->ring->tail, memory_order_acquire);
    }
    return end->cached > end->count;
  }
  const char *slot = end->ring->slots + (end->count & (p->depth - 1)) * p->slot_bytes;
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

static inline bool has_credit(polyccl_protocol protocol, const pccl_prepared *p, pccl_end *end) {
  if (__builtin_expect(end->slot_bytes != p->slot_bytes || end->depth != p->depth ||
                           (protocol == POLYCCL_LL && end->count - end->wiped >= wipe_every),
                       0)) {
    return drained(protocol, p, end);
  }
  if (end->count - end->cached >= p->depth) {
    end->cached = atomic_load_explicit(&end->ring->head, memory_order_acquire);
  }
  return end->count - end->cached < p->depth;
}

static inline size_t clip(size_t valid, size_t start, size_t n) {
  return valid <= start ? 0 : pccl_least(valid - start, n);
}

static inline void move_runs(polyccl_protocol protocol, call *c, const pccl_tb_state *tb,
                             const pccl_prepared_step *step, size_t start, size_t n) {
  const pccl_prepared *p = c->p;
  size_t e = p->element, pitch = run_pitch(protocol, n * e);
  const char *in = NULL;
  char *out = NULL;
  pccl_move m = {.n = n};
  if (step->recv != NULL) {
    in = step->recv->ring->slots + (step->recv->count & (p->depth - 1)) * p->slot_bytes;
    m.in_number = step->recv->count;
  }
  if (step->send != NULL) {
    out = step->send->ring->slots + (step->send->count & (p->depth - 1)) * p->slot_bytes;
    m.out_number = step->send->count;
  }
  (void)tb;
  for (uint32_t i = 0; i < step->runs; i++) {
    const pccl_run *run = &step->run[i];
    m.src = c->base[step->src_buf] + run->src + start * e;
    m.dst = c->base[step->dst_buf] + run->dst + start * e;
    m.src_n = clip(run->src_len, start, n);
    m.dst_n = clip(run->dst_len, start, n);
    m.in_n = m.out_n = n;
    m.at = i * pitch;
    if (protocol == POLYCCL_SIMPLE) {
      m.in = in + m.at;
      m.out = out + m.at;
      pccl_move_memory(c->comm->kernels, p, step->op, &m, false);
    } else {
      m.in = in;
      m.out = out;
      pccl_move_lines(protocol, c->comm->kernels, p, step->op, &m);
    }
  }
}

static inline void publish(polyccl_protocol protocol, call *c, const pccl_prepared_step *step) {
  if (c->p->stream) {
    c->comm->kernels->stream_fence();
  }
  if (step->send != NULL) {
    step->send->count++;
    if (protocol == POLYCCL_SIMPLE) {
      atomic_store_explicit(&step->send->ring->tail, step->send->count, memory_order_release);
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

/* False: the step must wait. */
static inline bool try_step(polyccl_protocol protocol, call *c, const pccl_prepared_tb *block, pccl_tb_state *tb) {
  const pccl_prepared *p = c->p;
  const pccl_prepared_step *step = &block->step[tb->step];
  if (!waits_ended(p, tb, step)) {
    return false;
  }
  size_t start = p->batches == 1 ? 0 : tb->batch * p->tile;
  size_t n = p->batches == 1 ? step->len : pccl_least(p->tile, step->len - start);
  if (step->recv != NULL && !message_arrived(protocol, p, tb, step, run_pitch(protocol, n * p->element) * step->runs)) {
    return false;
  }
  if (step->send != NULL && !has_credit(protocol, p, step->send)) {
    return false;
  }
  move_runs(protocol, c, tb, step, start, n);
  publish(protocol, c, step);
  go_on(c, block, tb);
  return true;
}

/* Runs every thread block as far as it goes; true: something moved. */
static inline bool round_of(polyccl_protocol protocol, call *c) {
  bool moved = false;
  for (uint32_t t = 0; t < c->p->plan->tbs; t++) {
    pccl_tb_state *tb = &c->p->state[t];
    while (!tb->ended && try_step(protocol, c, &c->p->tb[t], tb)) {
      moved = true;
      c->running -= tb->ended;
    }
  }
  return moved;
}

/* One loop for each protocol, so that the choice is made once a call. */
static bool round_simple(call *c) { return round_of(POLYCCL_SIMPLE, c); }
static bool round_ll(call *c) { return round_of(POLYCCL_LL, c); }
static bool round_ll128(call *c) { return round_of(POLYCCL_LL128, c); }
static bool (*const rounds[POLYCCL_PROTOCOL_COUNT])(call *) = {
    [POLYCCL_SIMPLE] = round_simple, [POLYCCL_LL] = round_ll, [POLYCCL_LL128] = round_ll128};

/* Whom the call waits for: the first thread block that waits for another rank. */
static int describe(const call *c, char *text, size_t length) {
  const pccl_prepared *p = c->p;
  for (uint32_t t = 0; t < p->plan->tbs; t++) {
    const pccl_tb_state *tb = &p->state[t];
    const pccl_prepared_step *step = tb->ended ? NULL : &p->tb[t].step[tb->step];
    if (step == NULL || !waits_ended(p, tb, step) || (step->recv == NULL && step->send == NULL)) {
      continue;
    }
    bool receives = step->recv != NULL;
    if (receives && step->send != NULL && p->plan->protocol == POLYCCL_SIMPLE) {
      receives = step->recv->cached <= step->recv->count;
    }
    const pccl_end *end = receives ? step->recv : step->send;
    snprintf(text, length,
             "rank %d (thread block %u, step %u %s, micro-batch %llu of %llu, %s channel %d, plan \"%s\")", end->peer,
             t, tb->step, polyccl_step_op_name((polyccl_step_op)step->op), (unsigned long long)tb->batch,
             (unsigned long long)p->batches, receives ? "message on" : "free slot on", end->channel, p->plan->name);
    return end->peer;
  }
  snprintf(text, length, "itself");
  return -1;
}

static polyccl_result give_up(call *c) {
  pccl_segment_header *header = c->comm->segment->header;
  char whom[160];
  describe(c, whom, sizeof whom);
  pccl_segment_abort(header, POLYCCL_ERROR_TIMEOUT, "rank %d waited %llu s for %s", c->comm->rank,
                     (unsigned long long)(c->comm->timeout_ns / 1000000000u), whom);
  return pccl_segment_abort_error(header);
}

/* A rank that has left will send nothing more; what it had sent was looked for in the round before. */
static polyccl_result check_left(call *c) {
  pccl_segment_header *header = c->comm->segment->header;
  char whom[160];
  int peer = describe(c, whom, sizeof whom);
  if (peer >= 0 && atomic_load_explicit(&header->cell[peer].state, memory_order_acquire) == PCCL_RANK_LEFT &&
      !rounds[c->p->plan->protocol](c)) {
    pccl_segment_abort(header, POLYCCL_ERROR_REMOTE, "rank %d left the communicator; rank %d waits for %s", peer,
                       c->comm->rank, whom);
    return pccl_segment_abort_error(header);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result loop(call *c) {
  bool (*round)(call *) = rounds[c->p->plan->protocol];
  pccl_patience patience = {0};
  while (c->running > 0) {
    if (round(c)) {
      pccl_busy(c->comm, &patience);
      continue;
    }
    polyccl_result result = pccl_idle(c->comm, &patience);
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

static void divide_output(const call *c) {
  const pccl_prepared *p = c->p;
  const pccl_collective_spec *spec = &p->plan->spec;
  if (p->op == POLYCCL_AVG && p->plan->reduces && (spec->kind != POLYCCL_REDUCE || spec->root == c->comm->rank)) {
    c->comm->kernels->divide[p->dtype](c->base[POLYCCL_BUF_OUTPUT], p->bytes[POLYCCL_BUF_OUTPUT] / p->element,
                                       c->comm->ranks);
  }
}

polyccl_result pccl_execute(polyccl_comm *comm, pccl_prepared *prepared, const void *send, void *recv) {
  if (prepared->count == 0) {
    return POLYCCL_SUCCESS;
  }
  if (prepared->bytes[POLYCCL_BUF_SCRATCH] > comm->scratch_bytes) {
    PCCL_TRY(grow_scratch(comm, prepared->bytes[POLYCCL_BUF_SCRATCH]));
  }
  call c = {.comm = comm, .p = prepared, .base = {(char *)send, recv, comm->scratch}};
  for (uint32_t t = 0; t < prepared->plan->tbs; t++) {
    prepared->state[t] = (pccl_tb_state){.ended = prepared->tb[t].steps == 0};
    c.running += prepared->tb[t].steps != 0;
  }
  PCCL_TRY(loop(&c));
  divide_output(&c);
  return POLYCCL_SUCCESS;
}
