#include "runtime/placement.h"

#include <stdlib.h>
#include <string.h>

#include <polyccl/memory.h>

#include "base/error.h"
#include "base/size.h"
#include "base/vec.h"

/* ---- staging memory ---- */

enum { STAGE_UNIT = 1 << 16, LINE_BYTES = 64 };

static void free_stage(pccl_stage *stage) {
  if (stage != NULL) {
    polyccl_mem_free(stage->memory);
    free(stage);
  }
}

static polyccl_result take_stage(pccl_stage_pool *pool, size_t bytes, pccl_stage **taken) {
  pccl_stage *stage = atomic_exchange_explicit(&pool->idle, NULL, memory_order_acquire);
  if (stage != NULL && stage->bytes >= bytes) {
    *taken = stage;
    return POLYCCL_SUCCESS;
  }
  free_stage(stage);
  pccl_stage *made = pccl_zeroed(1, sizeof *made);
  if (made == NULL) {
    return pccl_no_memory("a copy of a call's buffer");
  }
  made->bytes = (bytes / STAGE_UNIT + 1) * STAGE_UNIT;
  polyccl_result result = polyccl_mem_alloc(&made->memory, made->bytes);
  if (result != POLYCCL_SUCCESS) {
    free(made);
    return result;
  }
  *taken = made;
  return POLYCCL_SUCCESS;
}

static void give_stage(pccl_stage_pool *pool, pccl_stage *stage) {
  if (stage != NULL) {
    free_stage(atomic_exchange_explicit(&pool->idle, stage, memory_order_acq_rel));
  }
}

void pccl_stage_pool_free(pccl_stage_pool *pool) {
  free_stage(atomic_exchange_explicit(&pool->idle, NULL, memory_order_acquire));
}

/* ---- buffers ---- */

/* A call on one rank. */
typedef struct request {
  pccl_stage_pool *pool;
  const pccl_prepared *p;
  const void *send;
  void *recv;
  bool gives, takes;    /* the collective reads the rank's input, names its output */
  size_t in, out;       /* bytes of the buffers */
  size_t in_at, out_at; /* in place: where they begin in their common memory, in bytes */
} request;

static void find_roles(request *r, int rank) {
  const pccl_collective_spec *spec = &r->p->plan->spec;
  r->gives = r->takes = true;
  switch (spec->kind) {
    case POLYCCL_BROADCAST:
    case POLYCCL_SCATTER: r->gives = rank == spec->root; break;
    case POLYCCL_REDUCE:
    case POLYCCL_GATHER: r->takes = rank == spec->root; break;
    case POLYCCL_SENDRECV:
      r->gives = rank == spec->root;
      r->takes = rank == spec->peer;
      break;
    case POLYCCL_CUSTOM: /* its declarations say it chunk by chunk */
      r->gives = r->send != NULL || r->p->plan->uses[POLYCCL_BUF_INPUT];
      r->takes = r->recv != NULL || r->p->plan->uses[POLYCCL_BUF_OUTPUT];
      break;
    default: break;
  }
}

/* Where the two buffers lie in the memory of a call in place. */
static void find_offsets(request *r, int rank) {
  pccl_collective_spec spec = r->p->plan->spec;
  size_t block = r->p->count * r->p->arithmetic.element;
  spec.inplace = true;
  r->in_at = (size_t)(pccl_collective_cell(&spec, rank, false, 0) / spec.chunks) * block;
  r->out_at = (size_t)(pccl_collective_cell(&spec, rank, true, 0) / spec.chunks) * block;
}

static bool is_in_place(const request *r) {
  return r->send != NULL && r->recv != NULL && r->p->plan->spec.kind != POLYCCL_SENDRECV &&
         (uintptr_t)r->send - r->in_at == (uintptr_t)r->recv - r->out_at;
}

static polyccl_result check_buffers(const request *r, bool inplace) {
  const pccl_loaded *plan = r->p->plan;
  const char *name = polyccl_collective_name(plan->spec.kind);
  bool shared = plan->spec.inplace; /* uses are of one memory, by whichever name */
  if (r->send == NULL && r->gives && (plan->uses[POLYCCL_BUF_INPUT] || shared)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the send buffer of %s is NULL", name);
  }
  if (r->recv == NULL && r->takes && (plan->uses[POLYCCL_BUF_OUTPUT] || shared)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the receive buffer of %s is NULL", name);
  }
  uintptr_t send = (uintptr_t)r->send, recv = (uintptr_t)r->recv;
  bool both = r->send != NULL && r->recv != NULL && r->in > 0 && r->out > 0;
  if (both && !inplace && send < recv + r->out && recv < send + r->in) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: the buffers overlap, and are not in place", name);
  }
  return POLYCCL_SUCCESS;
}

/* A plan that is out of place. `inplace`: the buffers are one, both are wanted, and the plan may not have that. */
static polyccl_result place_apart(const request *r, bool inplace, pccl_placement *placement) {
  const pccl_loaded *plan = r->p->plan;
  placement->send = r->gives ? r->send : NULL;
  placement->recv = r->takes ? r->recv : NULL;
  bool input = plan->uses[POLYCCL_BUF_INPUT] && (placement->send == NULL || inplace);
  bool output = plan->uses[POLYCCL_BUF_OUTPUT] && placement->recv == NULL;
  if (!input && !output) {
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(
      take_stage(r->pool, (input ? pccl_round_up(r->in, LINE_BYTES) : 0) + (output ? r->out : 0), &placement->stage));
  char *memory = placement->stage->memory;
  if (input) {
    placement->before = r->gives ? (pccl_placed_copy){r->send, memory, r->in} : (pccl_placed_copy){0};
    placement->send = memory;
    memory += pccl_round_up(r->in, LINE_BYTES);
  }
  placement->recv = output ? memory : placement->recv;
  return POLYCCL_SUCCESS;
}

/* A plan that is in place, on buffers that are not. */
static polyccl_result place_together(const request *r, pccl_placement *placement) {
  char *memory = r->takes ? r->recv : NULL;
  if (memory == NULL || r->in > r->out) {
    PCCL_TRY(take_stage(r->pool, r->in > r->out ? r->in : r->out, &placement->stage));
    memory = placement->stage->memory;
    placement->after = r->takes ? (pccl_placed_copy){memory + r->out_at, r->recv, r->out} : (pccl_placed_copy){0};
  }
  placement->send = memory + r->in_at;
  placement->recv = memory + r->out_at;
  placement->before = r->gives ? (pccl_placed_copy){r->send, memory + r->in_at, r->in} : (pccl_placed_copy){0};
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_placement_make(pccl_stage_pool *pool, int rank, const pccl_prepared *p, const void *send,
                                   void *recv, pccl_placement *placement) {
  *placement = (pccl_placement){.send = send, .recv = recv};
  if (p->count == 0) {
    return POLYCCL_SUCCESS;
  }
  request r = {.pool = pool,
               .p = p,
               .send = send,
               .recv = recv,
               .in = p->bytes[POLYCCL_BUF_INPUT],
               .out = p->bytes[POLYCCL_BUF_OUTPUT]};
  find_roles(&r, rank);
  find_offsets(&r, rank);
  bool inplace = is_in_place(&r);
  PCCL_TRY(check_buffers(&r, inplace));
  if (p->plan->spec.inplace) {
    return inplace ? POLYCCL_SUCCESS : place_together(&r, placement);
  }
  return place_apart(&r, inplace && r.gives && r.takes && !p->plan->alias_safe, placement);
}

static void copy(const pccl_placed_copy *c) {
  if (c->bytes > 0) {
    memcpy(c->to, c->from, c->bytes);
  }
}

void pccl_placement_begin(const pccl_placement *placement) { copy(&placement->before); }

void pccl_placement_end(pccl_stage_pool *pool, pccl_placement *placement, bool ran) {
  if (ran) {
    copy(&placement->after);
  }
  give_stage(pool, placement->stage);
  placement->stage = NULL;
}
