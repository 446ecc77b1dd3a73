/* A loaded plan for one count and type: places become bytes, chunks become tiles. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/memory.h>

#include "base/error.h"
#include "base/map.h"
#include "base/options.h"
#include "base/size.h"
#include "executor/exchange.h"
#include "executor/generated.h"
#include "executor/plans.h"
#include "kernel/tiling.h"
#include "plan/alias.h"
#include "plan/plan.h"

enum { MAX_PREPARED = 256, MIN_LENT_BYTES = 4096, MAX_COPIED_BYTES = 4 << 20 };

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

/* Small calls gain nothing by reference; what is compared is the same on all ranks. */
static bool wants_to_lend(const pccl_loaded *plan, const geometry *g) {
  return plan->lends && plan->protocol == POLYCCL_SIMPLE && g->count * g->element >= MIN_LENT_BYTES;
}

/* When ranks share cores, a sender whose buffer is read has to wait for its reader's turn; and what does not lie in
 * caches goes faster by slots. This rank decides for what it sends, and the notes tell the others. */
static bool may_copy(const pccl_executor *executor, const pccl_prepared *p) {
  const pccl_member *member = &executor->member;
  bool gains =
      !member->oversubscribed && p->bytes[POLYCCL_BUF_INPUT] + p->bytes[POLYCCL_BUF_OUTPUT] <= MAX_COPIED_BYTES;
  return p->lends && (member->kernel_copy == PCCL_COPY_ALWAYS || (member->kernel_copy == PCCL_COPY_AUTO && gains));
}

static polyccl_result choose_tile(const geometry *g, pccl_prepared *p) {
  const pccl_loaded *plan = g->plan;
  p->depth = plan->depth;
  p->slot_bytes = ((size_t)1 << plan->log2_ring) / plan->depth;
  pccl_tiling tiling;
  PCCL_TRY(pccl_tiling_find(&(pccl_tiling_input){.protocol = p->protocol,
                                                 .slot_bytes = p->slot_bytes,
                                                 .note_bytes = p->lends ? sizeof(pccl_note) : 0,
                                                 .max_bytes = PCCL_TILE_MAX,
                                                 .chunks = (size_t)plan->largest,
                                                 .stride = g->stride,
                                                 .element = g->element},
                            &tiling));
  p->tile = tiling.tile;
  p->batches = tiling.batches;
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
  if (s->remote_src.buffer >= 0) {
    locate(g, s->remote_src.buffer, s->remote_src.chunk + k, &run->remote_src, &run->remote_src_len);
  }
  if (s->remote_dst.buffer >= 0) {
    locate(g, s->remote_dst.buffer, s->remote_dst.chunk + k, &run->remote_dst, &run->remote_dst_len);
  }
}

static void fill_step(const geometry *g, const pccl_prepared *p, const pccl_loaded_step *from, pccl_end *const *ends,
                      pccl_run **next, pccl_prepared_step *to) {
  bool merged = merges(p, g);
  *to = (pccl_prepared_step){.op = from->op,
                             .src_buf = (uint8_t)(from->src.buffer >= 0 ? from->src.buffer : 0),
                             .dst_buf = (uint8_t)(from->dst.buffer >= 0 ? from->dst.buffer : 0),
                             .remote_src_buf = (uint8_t)(from->remote_src.buffer >= 0 ? from->remote_src.buffer : 0),
                             .remote_dst_buf = (uint8_t)(from->remote_dst.buffer >= 0 ? from->remote_dst.buffer : 0),
                             .may_get = (from->flags & POLYCCL_FLAG_GET) != 0,
                             .may_get_in_place = (from->flags & PCCL_FLAG_GET_IN_PLACE) != 0,
                             .may_put = from->remote_dst.buffer >= 0,
                             .may_copy = p->copies && (from->flags & POLYCCL_FLAG_GET) != 0 && !from->remote_reduces &&
                                         !pccl_ops[from->op].reduces,
                             .may_fetch = from->remote_src.buffer >= 0 && !pccl_ops[from->op].reduces,
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
    run->src_len = run->dst_len = run->remote_src_len = run->remote_dst_len = to->len;
  }
  *next += to->runs;
}

polyccl_result pccl_plan_end(pccl_executor *executor, const pccl_loaded *plan, const pccl_link *link, bool sender,
                             pccl_end **end) {
  pccl_connection_key key = {.src = link->src,
                             .dst = link->dst,
                             .channel = link->channel,
                             .protocol = executor->member.lines ? plan->protocol : POLYCCL_SIMPLE,
                             .log2_bytes = plan->log2_ring,
                             .log2_depth = __builtin_ctz(plan->depth)};
  if (plan->generated != NULL) { /* its LL flags are of another kind */
    key.channel += PCCL_MAX_PLAN_CHANNEL + 1;
  }
  return pccl_member_end(&executor->member, &key, sender, end);
}

static polyccl_result open_ends(pccl_executor *executor, const pccl_loaded *plan, pccl_end **opened) {
  for (uint32_t i = 0; i < plan->links; i++) {
    const pccl_link *link = &plan->link[i];
    if (link->src == executor->member.rank) {
      PCCL_TRY(pccl_plan_end(executor, plan, link, true, &opened[2 * i]));
    }
    if (link->dst == executor->member.rank) {
      PCCL_TRY(pccl_plan_end(executor, plan, link, false, &opened[2 * i + 1]));
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result fill_steps(pccl_executor *executor, const geometry *g, pccl_end **ends, pccl_prepared *p) {
  const pccl_loaded *plan = g->plan;
  PCCL_TRY(open_ends(executor, plan, ends));
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
  for (uint32_t t = 0; t < plan->tbs; t++) {
    p->tb[t] = (pccl_prepared_tb){p->step + plan->tb[t].step, plan->tb[t].steps};
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result fill(pccl_executor *executor, const geometry *g, pccl_prepared *p) {
  const pccl_loaded *plan = g->plan;
  size_t runs = 0;
  for (uint32_t i = 0; i < plan->steps; i++) {
    runs += merges(p, g) ? 1 : (size_t)plan->step[i].count;
  }
  p->tb = pccl_zeroed(plan->tbs, sizeof *p->tb);
  p->step = pccl_zeroed(plan->steps, sizeof *p->step);
  p->run = pccl_zeroed(runs, sizeof *p->run);
  p->sender = pccl_zeroed(plan->links, sizeof(pccl_end *));
  p->receiver = pccl_zeroed(plan->links, sizeof(pccl_end *));
  pccl_end **ends = pccl_zeroed(2 * (size_t)plan->links, sizeof *ends);
  polyccl_result result =
      p->tb != NULL && p->step != NULL && p->run != NULL && p->sender != NULL && p->receiver != NULL && ends != NULL
          ? fill_steps(executor, g, ends, p)
          : pccl_no_memory("a prepared plan");
  free(ends);
  return result;
}

/* Ranks whose values differ would cut messages differently or mean something else by them. */
static uint32_t sign(const pccl_prepared *p) {
  uint64_t mixed = pccl_mix64(p->plan->fingerprint ^ pccl_mix64(p->count));
  mixed = pccl_mix64(mixed ^ ((uint64_t)p->dtype << 40 | (uint64_t)(p->plan->reduces ? p->op : 0)));
  mixed = pccl_mix64(mixed ^ (p->slot_bytes << 8 | p->depth));
  return (uint32_t)(mixed ^ mixed >> 32);
}

static polyccl_result prepare(pccl_executor *executor, pccl_loaded *plan, size_t count, polyccl_dtype dtype,
                              polyccl_redop op, pccl_prepared *p) {
  PCCL_TRY(check_call(plan, count, dtype, op));
  geometry g = {.plan = plan, .count = count, .element = polyccl_dtype_size(dtype)};
  g.stride = pccl_collective_stride(plan->spec.chunks, count, g.element);
  p->count = count;
  p->dtype = dtype;
  p->op = op;
  p->protocol = executor->member.lines ? plan->protocol : POLYCCL_SIMPLE;
  p->stride = g.stride;
  p->arithmetic = (pccl_arithmetic){.kernels = executor->kernels, .element = g.element};
  PCCL_TRY(size_buffers(&g, p));
  p->lends = wants_to_lend(plan, &g);
  p->copies = may_copy(executor, p);
  PCCL_TRY(choose_tile(&g, p));
  p->signature = sign(p);
  p->arithmetic.reduce = executor->kernels->reduce[dtype][plan->reduces ? op : POLYCCL_SUM];
  /* Once the buffers of all ranks take half of the last-level cache, results go past it (docs/executor.md, Cache). */
  size_t all = (p->bytes[POLYCCL_BUF_INPUT] + p->bytes[POLYCCL_BUF_OUTPUT]) / 4 * (size_t)executor->member.ranks;
  p->arithmetic.stream = all > executor->cache_bytes / 8;
  return fill(executor, &g, p);
}

pccl_prepared *pccl_prepared_keep(pccl_prepared *prepared) {
  atomic_fetch_add_explicit(&prepared->references, 1, memory_order_relaxed);
  return prepared;
}

void pccl_prepared_release(pccl_prepared *prepared) {
  if (prepared != NULL && atomic_fetch_sub_explicit(&prepared->references, 1, memory_order_acq_rel) == 1) {
    pccl_loaded_release(prepared->plan);
    free(prepared->tb);
    free(prepared->step);
    free(prepared->run);
    free(prepared->sender);
    free(prepared->receiver);
    free(prepared);
  }
}

/* Drops the prepared plans from the n-th on. */
static void forget(pccl_executor *executor, size_t keep) {
  pccl_prepared **at = &executor->recent;
  for (size_t i = 0; i < keep && *at != NULL; i++) {
    at = &(*at)->next;
  }
  while (*at != NULL) {
    pccl_prepared *gone = *at;
    *at = gone->next;
    pccl_prepared_release(gone);
    executor->prepared--;
  }
}

polyccl_result pccl_prepare(pccl_executor *executor, pccl_loaded *plan, size_t count, polyccl_dtype dtype,
                            polyccl_redop op, pccl_prepared **prepared) {
  for (pccl_prepared **at = &executor->recent; *at != NULL; at = &(*at)->next) {
    pccl_prepared *p = *at;
    if (p->count == count && p->plan == plan && p->dtype == dtype && (p->op == op || !plan->reduces)) {
      *at = p->next;
      p->next = executor->recent;
      executor->recent = p;
      *prepared = p;
      return POLYCCL_SUCCESS;
    }
  }
  pccl_prepared *made = pccl_zeroed(1, sizeof *made);
  if (made == NULL) {
    return pccl_no_memory("a prepared plan");
  }
  atomic_init(&made->references, 1);
  made->plan = pccl_loaded_keep(plan);
  polyccl_result result = prepare(executor, plan, count, dtype, op, made);
  if (result != POLYCCL_SUCCESS) {
    pccl_prepared_release(made);
    return result;
  }
  made->next = executor->recent;
  executor->recent = made;
  if (++executor->prepared > MAX_PREPARED) {
    forget(executor, MAX_PREPARED / 2);
  }
  *prepared = made;
  return POLYCCL_SUCCESS;
}

/* Of one instance of the last level, as the kernel describes it; virtual machines tell sysconf() stories. */
static size_t last_cache_bytes(void) {
  char text[32] = "";
  uint64_t bytes = 0;
  FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
  if (file != NULL) {
    if (fgets(text, sizeof text, file) != NULL) {
      text[strcspn(text, "\n")] = '\0';
    }
    fclose(file);
  }
  return pccl_parse_size(text, &bytes) && bytes > 0 && bytes < SIZE_MAX ? (size_t)bytes : (size_t)32 << 20;
}

void pccl_executor_init(pccl_executor *executor) {
  executor->kernels = pccl_reduce_kernels();
  executor->cache_bytes = last_cache_bytes();
}

void pccl_executor_free(pccl_executor *executor) {
  forget(executor, 0);
  pccl_generated_run_free(executor->lease.generated);
  pccl_exchange_destroy(executor->lease.exchange);
  free(executor->lease.state);
  polyccl_mem_free(executor->lease.scratch);
}
