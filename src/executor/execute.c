#include "executor/execute.h"

#include <sched.h>

#include <polyccl/memory.h>

#include "base/clock.h"
#include "base/error.h"
#include "executor/call_trace.h"
#include "executor/generated.h"
#include "executor/messages.h"
#include "executor/references.h"
#include "kernel/step.h"
#include "plan/plan.h"

/* The loops that are made of one source: a protocol, Simple with references, and each of these traced. */
typedef struct mode {
  polyccl_protocol protocol;
  bool lends, traced;
} mode;

bool pccl_end_ready(const pccl_prepared *p, pccl_end *end) { return ready(p->protocol, p, end); }

static inline void move_runs(mode how, pccl_execution *x, const pccl_prepared_step *step, const route *way,
                             size_t start, size_t n) {
  const pccl_prepared *p = x->p;
  size_t e = p->arithmetic.element, pitch = run_pitch(how.protocol, n * e);
  pccl_move m = {.n = n};
  if (how.protocol != POLYCCL_SIMPLE) {
    m.in_number = step->recv != NULL ? stamp_of(how.protocol, step->recv->count, x->signature) : 0;
    m.out_number = step->send != NULL ? stamp_of(how.protocol, step->send->count, x->signature) : 0;
  }
  for (uint32_t i = 0; i < step->runs; i++) {
    const pccl_run *run = &step->run[i];
    size_t shift = start * e;
    m.src = x->base[step->src_buf] + run->src + shift;
    m.dst = x->base[step->dst_buf] + run->dst + shift;
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
    if (how.lends && way->in_way != PCCL_BY_SLOT) {
      bool get = way->in_way == PCCL_BY_GET;
      m.in = get ? way->in_base + run->remote_src + shift : m.dst;
      m.in_n = get ? clip(run->remote_src_len, start, n) : m.dst_n;
    }
    if (how.lends && way->out_way != PCCL_BY_SLOT) {
      bool put = way->out_way == PCCL_BY_PUT;
      m.out = put ? way->out_base + run->remote_dst + shift : NULL;
      m.out_n = put ? clip(run->remote_dst_len, start, n) : 0;
    }
    pccl_move_memory(&p->arithmetic, step->op, &m, how.lends && way->out_way == PCCL_BY_PUT);
  }
}

static inline void publish(mode how, pccl_execution *x, const pccl_prepared_step *step) {
  if (x->p->arithmetic.stream) {
    x->executor->kernels->stream_fence();
  }
  if (step->send != NULL) {
    pccl_end *end = step->send;
    if (how.protocol == POLYCCL_SIMPLE) {
      atomic_store_explicit(&end->signature[end->count & end->signature_mask], x->signature, memory_order_relaxed);
      atomic_store_explicit(end->tail, ++end->count, memory_order_release);
    } else {
      end->count++;
      pccl_will_write(slot_of(x->p, end));
    }
    pccl_end_flush(x->member, end);
  }
  if (step->recv != NULL) {
    atomic_store_explicit(step->recv->head, ++step->recv->count, memory_order_release);
    pccl_end_flush(x->member, step->recv);
  }
}

static inline void go_on(pccl_execution *x, const pccl_prepared_tb *block, pccl_tb_state *tb) {
  tb->done++;
  tb->arrived = 0;
  if (x->p->plan->order == POLYCCL_BATCH_MAJOR) {
    if (++tb->step == block->steps) {
      tb->step = 0;
      tb->batch++;
    }
    tb->ended = tb->batch == x->p->batches;
  } else {
    if (++tb->batch == x->p->batches) {
      tb->batch = 0;
      tb->step++;
    }
    tb->ended = tb->step == block->steps;
  }
}

/* ---- traces ---- */

static void record(pccl_execution *x, const pccl_prepared_tb *block, const pccl_tb_state *tb, uint64_t begin,
                   uint64_t end, polyccl_trace_state state) {
  pccl_call_trace_put(x->executor->trace, (pccl_step_record){.begin = begin,
                                                             .end = end,
                                                             .batch = tb->batch,
                                                             .tb = (uint32_t)(block - x->p->tb),
                                                             .step = tb->step,
                                                             .state = (uint32_t)state});
}

/* The step must wait: notes since when and for what. Always false. */
static inline bool blocked(mode how, pccl_execution *x, const pccl_prepared_tb *block, pccl_tb_state *tb,
                           polyccl_trace_state reason) {
  if (how.traced && (tb->since == 0 || tb->reason != (uint32_t)reason)) {
    uint64_t now = pccl_now();
    if (tb->since != 0) {
      record(x, block, tb, tb->since, now, (polyccl_trace_state)tb->reason);
    }
    tb->since = now;
    tb->reason = (uint32_t)reason;
  }
  return false;
}

/* The step waits no longer; the time. */
static uint64_t unblocked(pccl_execution *x, const pccl_prepared_tb *block, pccl_tb_state *tb) {
  uint64_t now = pccl_now();
  if (tb->since != 0) {
    record(x, block, tb, tb->since, now, (polyccl_trace_state)tb->reason);
    tb->since = 0;
  }
  return now;
}

/* False: the step must wait. */
static inline bool try_step(mode how, pccl_execution *x, const pccl_prepared_tb *block, pccl_tb_state *tb) {
  const pccl_prepared *p = x->p;
  const pccl_prepared_step *step = &block->step[tb->step];
  if (!waits_ended(x, tb, step)) {
    return blocked(how, x, block, tb, POLYCCL_TRACE_WAIT_BLOCK);
  }
  size_t start = p->batches == 1 ? 0 : tb->batch * p->tile;
  size_t n = tile_elements(p, step, tb->batch);
  if (step->recv != NULL &&
      !message_arrived(how.protocol, x, tb, step, run_pitch(how.protocol, n * p->arithmetic.element) * step->runs)) {
    return blocked(how, x, block, tb, POLYCCL_TRACE_WAIT_DATA);
  }
  if (step->send != NULL && !has_credit(how.protocol, p, step->send)) {
    return blocked(how, x, block, tb, POLYCCL_TRACE_WAIT_CREDIT);
  }
  route way = {.in = step->recv != NULL ? slot_of(p, step->recv) : NULL,
               .out = step->send != NULL ? slot_of(p, step->send) : NULL};
  size_t bytes = n * p->arithmetic.element * step->runs;
  if (how.lends && !find_ways(x, step, bytes, &way)) {
    return blocked(how, x, block, tb, POLYCCL_TRACE_WAIT_CREDIT); /* the receiver has not entered the call */
  }
  uint64_t begin = how.traced ? unblocked(x, block, tb) : 0;
  pccl_trial *trial = how.lends ? find_trial(step, way.in_way, bytes) : NULL;
  uint64_t tried = trial != NULL && is_timed(trial) ? pccl_now() : 0;
  bool by_copy = how.lends && way.in_way == PCCL_BY_COPY;
  if (by_copy) {
    if (!pccl_fetch(x, step, start, n, way.in_address)) {
      return false;
    }
    way.in_way = PCCL_BY_PUT; /* the message is in its destination */
  }
  move_runs(how, x, step, &way, start, n);
  if (trial != NULL) {
    pccl_trial_note(step->recv, trial, p, by_copy, bytes, tried != 0 ? pccl_now() - tried : 0);
  }
  publish(how, x, step);
  if (how.traced) {
    record(x, block, tb, begin, pccl_now(), POLYCCL_TRACE_BUSY);
  }
  go_on(x, block, tb);
  return true;
}

/* Runs every thread block as far as it goes; true: something moved. */
static inline bool round_of(mode how, pccl_execution *x) {
  bool moved = false;
  for (uint32_t t = 0; t < x->p->plan->tbs; t++) {
    pccl_tb_state *tb = &x->state[t];
    while (!tb->ended && try_step(how, x, &x->p->tb[t], tb)) {
      moved = true;
      x->running -= tb->ended;
    }
  }
  return moved;
}

/* One loop for each mode, so that the choice is made once a call. */
static bool round_simple(pccl_execution *x) { return round_of((mode){POLYCCL_SIMPLE, false, false}, x); }
static bool round_references(pccl_execution *x) { return round_of((mode){POLYCCL_SIMPLE, true, false}, x); }
static bool round_ll(pccl_execution *x) { return round_of((mode){POLYCCL_LL, false, false}, x); }
static bool round_ll128(pccl_execution *x) { return round_of((mode){POLYCCL_LL128, false, false}, x); }

static bool round_traced(pccl_execution *x) {
  switch (x->p->protocol) {
    case POLYCCL_LL: return round_of((mode){POLYCCL_LL, false, true}, x);
    case POLYCCL_LL128: return round_of((mode){POLYCCL_LL128, false, true}, x);
    default:
      return x->p->lends ? round_of((mode){POLYCCL_SIMPLE, true, true}, x)
                         : round_of((mode){POLYCCL_SIMPLE, false, true}, x);
  }
}

bool pccl_execution_round(pccl_execution *x) {
  if (x->p->plan->generated != NULL) {
    return pccl_generated_round(x);
  }
  if (__builtin_expect(x->executor->trace != NULL, 0)) {
    return round_traced(x);
  }
  switch (x->p->protocol) {
    case POLYCCL_LL: return round_ll(x);
    case POLYCCL_LL128: return round_ll128(x);
    default: return x->p->lends ? round_references(x) : round_simple(x);
  }
}

const pccl_end *pccl_execution_lends(const pccl_execution *x) {
  for (uint32_t i = 0; x->p->lends && i < x->p->senders; i++) {
    pccl_end *end = x->p->sender[i];
    if (end->lent > end->cached) {
      end->cached = atomic_load_explicit(end->head, memory_order_acquire);
    }
    if (end->lent > end->cached) {
      return end;
    }
  }
  return NULL;
}

bool pccl_execution_ended(const pccl_execution *x) { return x->running == 0 && pccl_execution_lends(x) == NULL; }

/* Buffers that share memory are in place: other overlaps were refused. */
static bool overlap(const pccl_execution *x) {
  uintptr_t send = (uintptr_t)x->base[POLYCCL_BUF_INPUT], recv = (uintptr_t)x->base[POLYCCL_BUF_OUTPUT];
  return send != 0 && recv != 0 && send < recv + x->p->bytes[POLYCCL_BUF_OUTPUT] &&
         recv < send + x->p->bytes[POLYCCL_BUF_INPUT];
}

/* Tells the others where our buffers are in this call. We are inside before we look at the notice, so whoever sees the
 * notice and then nobody inside may take its buffers back: nobody begins a call any more. */
static polyccl_result announce(pccl_execution *x) {
  pccl_member *member = x->member;
  pccl_rank_cell *cell = pccl_member_cell(member);
  atomic_store_explicit(&cell->inside, 1, memory_order_relaxed);
  pccl_full_fence();
  if (pccl_board_aborted(member->board)) {
    atomic_store_explicit(&cell->inside, 0, memory_order_release);
    return pccl_board_error(member->board);
  }
  member->announced++;
  pccl_region_cache_trim(&member->regions);
  for (int b = 0; b < PCCL_BUFFERS; b++) {
    x->mine[b] = pccl_region_reference(x->base[b], x->p->bytes[b]);
    cell->buffer[b] = x->mine[b];
  }
  atomic_store_explicit(&cell->call, member->announced, memory_order_release);
  for (uint32_t i = 0; i < x->p->receivers; i++) {
    pccl_end_flush(member, x->p->receiver[i]);
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_execution_leave(pccl_execution *x, polyccl_result result) {
  if (!x->p->lends) {
    return result;
  }
  /* What was read before this look was lent if there is no notice yet. */
  pccl_full_fence();
  if (result == POLYCCL_SUCCESS && pccl_board_aborted(x->member->board)) {
    result = pccl_board_error(x->member->board);
  }
  atomic_store_explicit(&pccl_member_cell(x->member)->inside, 0, memory_order_release);
  return result;
}

bool pccl_execution_quiet(const pccl_execution *x) {
  pccl_board *board = x->member->board;
  pccl_full_fence();
  for (int rank = 0; x->p->lends && rank < x->member->ranks; rank++) {
    if (atomic_load_explicit(&board->cell[rank].inside, memory_order_acquire) != 0 && !pccl_is_dead(x->member, rank)) {
      return false;
    }
  }
  return true;
}

static polyccl_result leave_and_wait(pccl_execution *x, polyccl_result result) {
  result = pccl_execution_leave(x, result);
  uint64_t since = result != POLYCCL_SUCCESS ? pccl_now() : 0;
  while (result != POLYCCL_SUCCESS && !pccl_execution_quiet(x) && pccl_now() - since < PCCL_QUIET_NS) {
    sched_yield();
  }
  return result;
}

static polyccl_result grow_lease(struct pccl_lease *lease, const pccl_prepared *p) {
  if (p->plan->tbs > lease->states) {
    pccl_tb_state *state = pccl_array(p->plan->tbs, sizeof *state);
    if (state == NULL) {
      return pccl_no_memory("the states of thread blocks");
    }
    free(lease->state);
    lease->state = state;
    lease->states = p->plan->tbs;
  }
  if (p->bytes[POLYCCL_BUF_SCRATCH] > lease->scratch_bytes) {
    void *memory;
    PCCL_TRY(polyccl_mem_alloc(&memory, p->bytes[POLYCCL_BUF_SCRATCH]));
    polyccl_mem_free(lease->scratch);
    lease->scratch = memory;
    lease->scratch_bytes = p->bytes[POLYCCL_BUF_SCRATCH];
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_execution_begin(pccl_execution *x, pccl_executor *executor, const pccl_prepared *p,
                                    const void *send, void *recv, uint32_t signature) {
  struct pccl_lease *lease = &executor->lease;
  if (p->plan->tbs > lease->states || p->bytes[POLYCCL_BUF_SCRATCH] > lease->scratch_bytes) {
    PCCL_TRY(grow_lease(lease, p));
  }
  *x = (pccl_execution){.executor = executor,
                        .member = &executor->member,
                        .p = p,
                        .base = {(char *)send, recv, lease->scratch},
                        .state = lease->state,
                        .signature = signature};
  if (__builtin_expect(executor->trace != NULL, 0)) {
    executor->trace->begin = pccl_now();
    executor->trace->count = executor->trace->lost = 0;
  }
  for (uint32_t t = 0; t < p->plan->tbs; t++) {
    x->state[t] = (pccl_tb_state){.ended = p->tb[t].steps == 0};
    x->running += p->tb[t].steps != 0;
  }
  if (p->lends) {
    x->inplace = !p->plan->spec.inplace && overlap(x);
    PCCL_TRY(announce(x));
  }
  return p->plan->generated != NULL ? pccl_generated_begin(x) : POLYCCL_SUCCESS;
}

polyccl_result pccl_execution_wait(pccl_execution *x) {
  pccl_backoff backoff = {0};
  while (!pccl_execution_ended(x)) {
    if (pccl_execution_round(x)) {
      pccl_busy(x->member, &backoff);
      continue;
    }
    if (pccl_member_progress(x->member)) {
      continue;
    }
    polyccl_result result = pccl_idle(x->member, &backoff);
    if ((result == POLYCCL_SUCCESS && (backoff.armed || backoff.timed_out)) || x->failed != POLYCCL_SUCCESS) {
      result = pccl_execution_check(x, backoff.timed_out);
    }
    if (__builtin_expect(result != POLYCCL_SUCCESS, 0)) {
      pccl_busy(x->member, &backoff);
      return leave_and_wait(x, result);
    }
  }
  pccl_busy(x->member, &backoff);
  return leave_and_wait(x, POLYCCL_SUCCESS);
}
