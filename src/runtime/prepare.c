/* A loaded plan for one count and type: places become bytes, chunks become tiles. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "kernel/lines.h"
#include "plan/plan.h"
#include "runtime/execute.h"
#include "runtime/plans.h"
#include "runtime/select.h"

enum { MOST_PREPARED = 256, ALIGNMENT = 64, LEAST_REFERENCE_BYTES = 4096 };

/* What the places of one prepared plan follow from. */
typedef struct geometry {
  const pccl_loaded *plan;
  size_t count, stride, element; /* elements, elements, bytes */
} geometry;

/* Offset in bytes and valid elements of a chunk (plan.md, Counts that chunks do not divide). */
static void locate(const geometry *g, int32_t buffer, int32_t chunk, size_t *offset, size_t *valid) {
  if (buffer == POLYCCL_BUF_SCRATCH) {
    *offset = (size_t)chunk * g->stride * g->element;
    *valid = g->stride;
    return;
  }
  size_t block = (size_t)(chunk / g->plan->spec.chunks), within = (size_t)(chunk % g->plan->spec.chunks);
  size_t start = within * g->stride < g->count ? within * g->stride : g->count;
  *offset = (block * g->count + start) * g->element;
  *valid = g->count - start < g->stride ? g->count - start : g->stride;
}

static polyccl_result check_call(const pccl_loaded *plan, size_t count, polyccl_dtype dtype, polyccl_redop op) {
  PCCL_TRY(pccl_check_reduction(dtype, plan->reduces ? op : POLYCCL_SUM));
  if (plan->reduces && plan->redops != 0 && (plan->redops >> op & 1) == 0) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "plan \"%s\" is not for %s", plan->name, polyccl_redop_name(op));
  }
  if (plan->reduces && op == POLYCCL_AVG && plan->spec.kind == POLYCCL_CUSTOM) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "avg is not defined for custom collectives (plan \"%s\")", plan->name);
  }
  if (!plan->uneven && count % (size_t)plan->spec.chunks != 0) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "plan \"%s\" wants counts that its %d chunks divide, %zu is none",
                     plan->name, plan->spec.chunks, count);
  }
  return POLYCCL_SUCCESS;
}

/* Bytes of the three buffers; all later products are smaller. */
static polyccl_result size_buffers(const geometry *g, pccl_prepared *p) {
  for (int b = 0; b < PCCL_BUFFERS; b++) {
    size_t chunks = (size_t)g->plan->chunks[b];
    size_t blocks =
        b == POLYCCL_BUF_SCRATCH ? chunks : (chunks + (size_t)g->plan->spec.chunks - 1) / (size_t)g->plan->spec.chunks;
    size_t unit = b == POLYCCL_BUF_SCRATCH ? g->stride : g->count;
    if (b != POLYCCL_BUF_SCRATCH && chunks % (size_t)g->plan->spec.chunks != 0) {
      blocks = chunks; /* custom: chunks of output that are no whole blocks */
      unit = g->stride;
    }
    if (__builtin_mul_overflow(blocks, unit, &p->bytes[b]) ||
        __builtin_mul_overflow(p->bytes[b], g->element, &p->bytes[b]) || p->bytes[b] > SIZE_MAX / 4) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "%zu elements of %s are more than memory can hold", g->count,
                       polyccl_dtype_name(p->dtype));
    }
  }
  return POLYCCL_SUCCESS;
}

/* Payload of a slot. */
static size_t slot_payload(polyccl_protocol protocol, size_t slot_bytes) {
  switch (protocol) {
    case POLYCCL_LL: return slot_bytes / 2;
    case POLYCCL_LL128: return slot_bytes / PCCL_LL128_BYTES * PCCL_LL128_PAYLOAD;
    default: return slot_bytes;
  }
}

static size_t tile_unit(polyccl_protocol protocol) {
  return protocol == POLYCCL_LL128 ? PCCL_LL128_PAYLOAD : ALIGNMENT;
}

/* Small calls gain nothing by reference; what is compared is the same on all ranks. */
static bool wants_references(const pccl_loaded *plan, const geometry *g) {
  return plan->references && plan->protocol == POLYCCL_SIMPLE && g->count * g->element >= LEAST_REFERENCE_BYTES;
}

static polyccl_result choose_tile(const geometry *g, pccl_prepared *p) {
  const pccl_loaded *plan = g->plan;
  size_t ring = (size_t)1 << plan->log2_ring;
  p->depth = plan->depth;
  p->slot_bytes = ring / plan->depth;
  size_t stride = g->stride * g->element, largest = (size_t)plan->largest;
  size_t unit = tile_unit(plan->protocol);
  size_t payload = slot_payload(plan->protocol, p->slot_bytes) - (p->references ? sizeof(pccl_note) : 0);
  size_t most = payload / largest / unit * unit;
  size_t wanted = pccl_min_size(PCCL_TILE_MAX / largest, pccl_pipelined_tile(stride, largest));
  wanted = wanted < most ? pccl_round_up(wanted, unit) : most;
  size_t bytes = wanted < stride ? wanted : stride;
  p->tile = stride == bytes ? g->stride : bytes / g->element;
  p->batches = g->stride == 0 ? 1 : (g->stride + p->tile - 1) / p->tile;
  return POLYCCL_SUCCESS;
}

/* Chunk ranges that lie end to end on every side need one run. Both ends of a message must see it alike. */
static bool merges(const pccl_prepared *p, const geometry *g) {
  bool alike = p->op != POLYCCL_AVG || !g->plan->averages || g->plan->uniform;
  return p->batches == 1 && g->count == g->stride * (size_t)g->plan->spec.chunks && alike;
}

static void fill_run(const geometry *g, const pccl_loaded_step *s, int32_t k, pccl_run *run) {
  if (g->plan->averages && pccl_ops[s->op].reduces) {
    run->addends = g->plan->addends[s->addends + (size_t)k];
  }
  if (s->src.buffer >= 0) {
    locate(g, s->src.buffer, s->src.chunk + k, &run->src, &run->src_len);
  }
  if (s->dst.buffer >= 0) {
    locate(g, s->dst.buffer, s->dst.chunk + k, &run->dst, &run->dst_len);
  }
  if (s->far_src.buffer >= 0) {
    locate(g, s->far_src.buffer, s->far_src.chunk + k, &run->far_src, &run->far_src_len);
  }
  if (s->far_dst.buffer >= 0) {
    locate(g, s->far_dst.buffer, s->far_dst.chunk + k, &run->far_dst, &run->far_dst_len);
  }
}

static void fill_step(const geometry *g, const pccl_prepared *p, const pccl_loaded_step *from, pccl_end *const *ends,
                      pccl_run **next, pccl_prepared_step *to) {
  bool merged = merges(p, g);
  *to = (pccl_prepared_step){.op = from->op,
                             .src_buf = (uint8_t)(from->src.buffer >= 0 ? from->src.buffer : 0),
                             .dst_buf = (uint8_t)(from->dst.buffer >= 0 ? from->dst.buffer : 0),
                             .far_src_buf = (uint8_t)(from->far_src.buffer >= 0 ? from->far_src.buffer : 0),
                             .far_dst_buf = (uint8_t)(from->far_dst.buffer >= 0 ? from->far_dst.buffer : 0),
                             .may_get = (from->flags & POLYCCL_FLAG_GET) != 0,
                             .may_put = from->far_dst.buffer >= 0,
                             .put_first = pccl_ops[from->op].reduces,
                             .lent_buf = (uint8_t)(pccl_ops[from->op].writes_dst ? from->dst.buffer : from->src.buffer),
                             .waits = (uint32_t)from->waits,
                             .runs = merged ? 1 : (uint32_t)from->count,
                             .wait = p->plan->wait + from->wait,
                             .run = *next,
                             .len = merged ? g->stride * (size_t)from->count : g->stride,
                             .recv = from->recv >= 0 ? ends[2 * from->recv + 1] : NULL,
                             .send = from->send >= 0 ? ends[2 * from->send] : NULL};
  if (!pccl_op_moves(from->op)) {
    to->runs = 0;
    return;
  }
  for (uint32_t k = 0; k < to->runs; k++) {
    fill_run(g, from, (int32_t)k, &(*next)[k]);
  }
  if (merged) {
    pccl_run *run = *next;
    run->src_len = run->dst_len = run->far_src_len = run->far_dst_len = to->len;
  }
  *next += to->runs;
}

static polyccl_result open_ends(polyccl_comm *comm, const pccl_loaded *plan, pccl_end ***ends) {
  pccl_end **opened = pccl_zeroed(2 * (size_t)plan->links, sizeof *opened);
  if (opened == NULL) {
    return pccl_no_memory("a plan's connections");
  }
  for (uint32_t i = 0; i < plan->links; i++) {
    const pccl_link *link = &plan->link[i];
    polyccl_result result = POLYCCL_SUCCESS;
    if (link->src == comm->rank) {
      result = pccl_comm_end(comm, link->src, link->dst, link->channel, plan->protocol, plan->log2_ring, true,
                             &opened[2 * i]);
    }
    if (result == POLYCCL_SUCCESS && link->dst == comm->rank) {
      result = pccl_comm_end(comm, link->src, link->dst, link->channel, plan->protocol, plan->log2_ring, false,
                             &opened[2 * i + 1]);
    }
    if (result != POLYCCL_SUCCESS) {
      free(opened);
      return result;
    }
  }
  *ends = opened;
  return POLYCCL_SUCCESS;
}

static polyccl_result fill(polyccl_comm *comm, const geometry *g, pccl_prepared *p) {
  const pccl_loaded *plan = g->plan;
  size_t runs = 0;
  for (uint32_t i = 0; i < plan->steps; i++) {
    runs += merges(p, g) ? 1 : (size_t)plan->step[i].count;
  }
  p->tb = pccl_zeroed(plan->tbs, sizeof *p->tb);
  p->step = pccl_zeroed(plan->steps, sizeof *p->step);
  p->run = pccl_zeroed(runs, sizeof *p->run);
  p->state = pccl_zeroed(plan->tbs, sizeof *p->state);
  p->sender = pccl_zeroed(plan->links, sizeof(pccl_end *));
  p->receiver = pccl_zeroed(plan->links, sizeof(pccl_end *));
  if (p->tb == NULL || p->step == NULL || p->run == NULL || p->state == NULL || p->sender == NULL ||
      p->receiver == NULL) {
    return pccl_no_memory("a prepared plan");
  }
  pccl_end **ends = NULL;
  PCCL_TRY(open_ends(comm, plan, &ends));
  pccl_run *next = p->run;
  for (uint32_t i = 0; i < plan->steps; i++) {
    fill_step(g, p, &plan->step[i], ends, &next, &p->step[i]);
  }
  for (uint32_t i = 0; i < plan->links; i++) {
    if (ends[2 * i] != NULL) {
      p->sender[p->senders++] = ends[2 * i];
    }
    if (ends[2 * i + 1] != NULL) {
      p->receiver[p->receivers++] = ends[2 * i + 1];
    }
  }
  free(ends);
  for (uint32_t t = 0; t < plan->tbs; t++) {
    p->tb[t] = (pccl_prepared_tb){p->step + plan->tb[t].step, plan->tb[t].steps};
  }
  return POLYCCL_SUCCESS;
}

static void prepared_free(pccl_prepared *p) {
  free(p->tb);
  free(p->step);
  free(p->run);
  free(p->state);
  free(p->sender);
  free(p->receiver);
  free(p);
}

static polyccl_result prepare(polyccl_comm *comm, const pccl_loaded *plan, size_t count, polyccl_dtype dtype,
                              polyccl_redop op, pccl_prepared *p) {
  PCCL_TRY(check_call(plan, count, dtype, op));
  geometry g = {.plan = plan, .count = count, .element = polyccl_dtype_size(dtype)};
  g.stride = pccl_collective_stride(plan->spec.chunks, count, g.element);
  *p = (pccl_prepared){.plan = plan,
                       .count = count,
                       .dtype = dtype,
                       .op = op,
                       .stride = g.stride,
                       .arithmetic = {.kernels = comm->kernels, .element = g.element}};
  PCCL_TRY(size_buffers(&g, p));
  p->references = wants_references(plan, &g);
  PCCL_TRY(choose_tile(&g, p));
  p->arithmetic.reduce = comm->kernels->reduce[dtype][plan->reduces ? op : POLYCCL_SUM];
  /* Once the buffers of all ranks do not fit the last-level cache, results go past it. */
  size_t all = (p->bytes[POLYCCL_BUF_INPUT] + p->bytes[POLYCCL_BUF_OUTPUT]) / 4 * (size_t)comm->ranks;
  p->arithmetic.stream = all > comm->cache_bytes / 4;
  return fill(comm, &g, p);
}

/* Drops the prepared plans from the n-th on. */
static void forget(polyccl_comm *comm, size_t keep) {
  pccl_prepared **at = &comm->recent;
  for (size_t i = 0; i < keep && *at != NULL; i++) {
    at = &(*at)->next;
  }
  while (*at != NULL) {
    pccl_prepared *gone = *at;
    *at = gone->next;
    prepared_free(gone);
    comm->prepared--;
  }
}

polyccl_result pccl_prepare(polyccl_comm *comm, const pccl_loaded *plan, size_t count, polyccl_dtype dtype,
                            polyccl_redop op, pccl_prepared **prepared) {
  for (pccl_prepared **at = &comm->recent; *at != NULL; at = &(*at)->next) {
    pccl_prepared *p = *at;
    if (p->count == count && p->plan == plan && p->dtype == dtype && (p->op == op || !plan->reduces)) {
      *at = p->next;
      p->next = comm->recent;
      comm->recent = p;
      *prepared = p;
      return POLYCCL_SUCCESS;
    }
  }
  pccl_prepared *made = pccl_zeroed(1, sizeof *made);
  if (made == NULL) {
    return pccl_no_memory("a prepared plan");
  }
  polyccl_result result = prepare(comm, plan, count, dtype, op, made);
  if (result != POLYCCL_SUCCESS) {
    prepared_free(made);
    return result;
  }
  made->next = comm->recent;
  comm->recent = made;
  if (++comm->prepared > MOST_PREPARED) {
    pccl_choices_free(comm); /* they may point to what goes */
    forget(comm, MOST_PREPARED / 2);
  }
  *prepared = made;
  return POLYCCL_SUCCESS;
}

void pccl_plans_free(polyccl_comm *comm) {
  forget(comm, 0);
  for (size_t i = 0; i < comm->plans.len; i++) {
    pccl_loaded_free(comm->plans.data[i]);
  }
  pccl_vec_free(&comm->plans);
}
