/* Lays out connections and tables of a plan on a device. */
#include <stdlib.h>

#include <polyccl/codegen.h>

#include "base/error.h"
#include "base/size.h"
#include "base/vec.h"
#include "device/gpu_parts.h"
#include "plan/contributions.h"
#include "plan/plan.h"

/* CUDA shares memory with other processes in blocks of 2 MiB: ours then holds nothing else. */
enum { LINE = 128, SHARED_UNIT = 2 << 20, PRESET_THREADS = 256, PRESET_SLOT = 256 << 10, LEAST_DEPTH = 4 };

polyccl_result pccl_gpu_meet(pccl_gpu *g) {
  if (g->processes == 1) {
    return POLYCCL_SUCCESS;
  }
  char mine = 0, *all = pccl_zeroed((size_t)g->processes, 1);
  polyccl_result result =
      all != NULL ? g->options.exchange(g->options.context, &mine, 1, all) : pccl_no_memory("a meeting");
  free(all);
  return result;
}

void pccl_gpu_close(pccl_gpu *g) {
  if (g == NULL) {
    return;
  }
  const pccl_gpu_driver *driver = g->driver;
  if (g->opened && !g->broken) {
    pccl_gpu_meet(g); /* others may still read here; if one is gone, nothing is lost */
  }
  for (int p = 0; g->arena != NULL && p < g->processes; p++) {
    if (p == g->options.process) {
      driver->release(g->device, g->arena[p]);
    } else {
      driver->detach(g->device, g->arena[p]);
    }
  }
  void *const memory[] = {g->ends,         g->blocks,      g->calls,       g->places,        g->works,
                          g->table_blocks, g->table_steps, g->table_waits, g->table_addends, g->scratch};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
    driver->release(g->device, memory[i]);
  }
  driver->unload(g->device, g->module);
  free(g->place);
  free(g->arena);
  free(g->messages);
  free(g->call);
  free(g);
}

/* ---- shape ---- */

static polyccl_result take_plan(pccl_gpu *g) {
  const polyccl_plan *plan = g->plan;
  polyccl_verify_report report;
  PCCL_TRY(polyccl_plan_verify(plan, &report));
  g->uneven = report.uneven;
  g->depth = LEAST_DEPTH;
  while (g->depth < (size_t)report.fifo_depth || g->depth < (size_t)plan->fifo_depth) {
    g->depth *= 2;
  }
  g->slot_bytes = pccl_round_up(g->options.slot_bytes != 0 ? g->options.slot_bytes : PRESET_SLOT, LINE);
  g->largest = 1;
  for (size_t i = 0; i < plan->steps; i++) {
    const polyccl_step *step = &plan->step[i];
    g->reduces = g->reduces || pccl_ops[step->op].reduces;
    if ((step->recv >= 0 || step->send >= 0) && step->count > g->largest) {
      g->largest = step->count;
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result take_processes(pccl_gpu *g) {
  g->processes = g->options.processes > 0 ? g->options.processes : 1;
  if (g->processes > g->plan->ranks || g->options.process < 0 || g->options.process >= g->processes ||
      (g->processes > 1 && g->options.exchange == NULL)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "process %d of %d cannot hold ranks of a plan for %d", g->options.process,
                     g->processes, g->plan->ranks);
  }
  for (int r = g->plan->ranks - 1; r >= 0; r--) {
    if (pccl_gpu_process_of(g, r) == g->options.process) {
      g->first = r;
      g->ranks++;
      g->tbs += g->plan->rank[r].tbs;
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- code ---- */

static polyccl_result load_code(pccl_gpu *g) {
  const char *image = g->options.image;
  uint64_t identity[3];
  PCCL_TRY(g->driver->load(g->device, image, &g->module));
  PCCL_TRY(g->driver->symbol(g->module, "pccl_k_identity", identity, sizeof identity));
  if (identity[0] != PCCL_K_VERSION || identity[1] != sizeof(pccl_k_call)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: made by another version of polyccl build; build it again", image);
  }
  g->interpreter = identity[2] == 0;
  if (!g->interpreter && identity[2] != polyccl_plan_fingerprint(g->plan)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: made from another plan than \"%s\"; build it again", image,
                     g->plan->name);
  }
  return g->driver->function(g->module, "pccl_k_kernel", &g->kernel);
}

static polyccl_result check_fits(pccl_gpu *g) {
  int each = 0, multiprocessors = g->driver->multiprocessors(g->device);
  PCCL_TRY(g->driver->resident(g->kernel, g->options.threads, &each));
  g->most = each * multiprocessors;
  if (g->tbs > g->most) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED,
                     "plan \"%s\" has %d thread blocks here, all of which must be resident at once; %s holds %d (%d "
                     "multiprocessors, %d each, of %d threads): use fewer threads, fewer ranks a device, or compile "
                     "with fewer thread blocks (--max-tb)",
                     g->plan->name, g->tbs, g->driver->device_name(g->device), g->most, multiprocessors, each,
                     g->options.threads);
  }
  return POLYCCL_SUCCESS;
}

/* ---- connections ---- */

static polyccl_result lay_out(pccl_gpu *g, size_t *bytes) {
  const polyccl_plan *plan = g->plan;
  size_t *used = pccl_zeroed((size_t)g->processes, sizeof *used);
  if (used == NULL) {
    return pccl_no_memory("connections on a device");
  }
  for (size_t i = 0; i < plan->connections; i++) {
    size_t *src = &used[pccl_gpu_process_of(g, plan->connection[i].src)];
    size_t *dst = &used[pccl_gpu_process_of(g, plan->connection[i].dst)];
    g->place[i].head = *src;
    *src += LINE;
    g->place[i].tail = *dst;
    *dst += LINE;
    g->place[i].slots = *dst;
    *dst += g->depth * g->slot_bytes;
  }
  *bytes = pccl_round_up(used[g->options.process] + 1, g->processes > 1 ? SHARED_UNIT : LINE);
  free(used);
  return POLYCCL_SUCCESS;
}

static polyccl_result attach_arenas(pccl_gpu *g) {
  pccl_gpu_handle mine, *all = pccl_zeroed((size_t)g->processes, sizeof *all);
  if (all == NULL) {
    return pccl_no_memory("handles of processes");
  }
  polyccl_result result = g->driver->share(g->device, g->arena[g->options.process], &mine);
  if (result == POLYCCL_SUCCESS) {
    result = g->options.exchange(g->options.context, &mine, sizeof mine, all);
  }
  for (int p = 0; p < g->processes && result == POLYCCL_SUCCESS; p++) {
    if (p != g->options.process) {
      result = g->driver->attach(g->device, &all[p], &g->arena[p]);
    }
  }
  free(all);
  return result;
}

static polyccl_result open_connections(pccl_gpu *g) {
  size_t bytes = 0;
  g->place = pccl_zeroed(g->plan->connections, sizeof *g->place);
  g->arena = pccl_zeroed((size_t)g->processes, sizeof *g->arena);
  g->messages = pccl_zeroed(g->plan->connections, sizeof *g->messages);
  if (g->place == NULL || g->arena == NULL || g->messages == NULL) {
    return pccl_no_memory("connections on a device");
  }
  PCCL_TRY(lay_out(g, &bytes));
  void **arena = &g->arena[g->options.process];
  PCCL_TRY(g->driver->alloc(g->device, bytes, arena));
  PCCL_TRY(g->driver->zero(g->device, *arena, bytes));
  bool idle;
  do { /* others write there as soon as they have it */
    PCCL_TRY(g->driver->idle(g->device, &idle));
  } while (!idle);
  return g->processes > 1 ? attach_arenas(g) : POLYCCL_SUCCESS;
}

/* ---- tables ---- */

static polyccl_result upload(pccl_gpu *g, const void *from, size_t bytes, void **at) {
  PCCL_TRY(g->driver->alloc(g->device, bytes, at));
  return from != NULL ? g->driver->write(g->device, *at, from, bytes) : g->driver->zero(g->device, *at, bytes);
}

static pccl_k_end end_of(const pccl_gpu *g, size_t connection) {
  const polyccl_connection *c = &g->plan->connection[connection];
  const struct place *at = &g->place[connection];
  char *src = g->arena[pccl_gpu_process_of(g, c->src)], *dst = g->arena[pccl_gpu_process_of(g, c->dst)];
  return (pccl_k_end){.tail = (uint64_t *)(void *)(dst + at->tail),
                      .head = (uint64_t *)(void *)(src + at->head),
                      .slots = dst + at->slots};
}

/* A rank's sends, then its receives, each in the plan's order, as the generator numbers them. */
static polyccl_result make_ends(pccl_gpu *g) {
  const polyccl_plan *plan = g->plan;
  pccl_k_end *end = pccl_zeroed(2 * plan->connections, sizeof *end);
  if (end == NULL) {
    return pccl_no_memory("connections on a device");
  }
  size_t ends = 0, *first = pccl_zeroed(2 * (size_t)g->ranks, sizeof *first);
  for (int side = 0; side < 2 * g->ranks && first != NULL; side++) {
    first[side] = ends;
    for (size_t i = 0; i < plan->connections; i++) {
      int32_t owner = side % 2 == 0 ? plan->connection[i].src : plan->connection[i].dst;
      if (owner == g->first + side / 2) {
        end[ends++] = end_of(g, i);
      }
    }
  }
  void *at = NULL;
  polyccl_result result =
      first != NULL ? upload(g, end, ends * sizeof *end, &at) : pccl_no_memory("connections on a device");
  g->ends = at;
  for (int r = 0; r < g->ranks && result == POLYCCL_SUCCESS; r++) {
    g->call[r].send = g->ends + first[2 * r];
    g->call[r].recv = g->ends + first[2 * r + 1];
  }
  free(first);
  free(end);
  return result;
}

static polyccl_result make_places(pccl_gpu *g) {
  pccl_k_place *place = pccl_zeroed((size_t)g->tbs, sizeof *place);
  if (place == NULL) {
    return pccl_no_memory("thread blocks on a device");
  }
  int n = 0;
  for (int r = 0; r < g->ranks; r++) {
    const polyccl_plan_rank *rank = &g->plan->rank[g->first + r];
    for (int32_t tb = 0; tb < rank->tbs; tb++) {
      place[n++] = (pccl_k_place){(uint32_t)(rank->tb + tb), (uint32_t)r, (uint32_t)tb};
    }
  }
  void *at = NULL;
  polyccl_result result = upload(g, place, (size_t)n * sizeof *place, &at);
  g->places = at;
  free(place);
  return result;
}

static void fill_step(const polyccl_step *from, const int32_t *number, pccl_k_step *to) {
  *to = (pccl_k_step){.op = from->op,
                      .recv = from->recv >= 0 ? number[2 * from->recv + 1] : -1,
                      .send = from->send >= 0 ? number[2 * from->send] : -1,
                      .src_buffer = from->src_buf,
                      .src = from->src,
                      .dst_buffer = from->dst_buf,
                      .dst = from->dst,
                      .chunks = pccl_op_moves(from->op) ? from->count : 0,
                      .wait = from->wait,
                      .waits = from->waits};
}

/* The interpreter's tables: of the whole plan, so that numbers stay the plan's. */
static void fill_tables(const pccl_gpu *g, const pccl_contributions *c, int32_t *number, int32_t *next,
                        pccl_k_table_block *block, pccl_k_step *step, pccl_k_table_wait *wait) {
  const polyccl_plan *plan = g->plan;
  for (size_t i = 0; i < plan->connections; i++) {
    number[2 * i] = next[2 * plan->connection[i].src]++;
    number[2 * i + 1] = next[2 * plan->connection[i].dst + 1]++;
  }
  for (size_t t = 0; t < plan->tbs; t++) {
    const polyccl_thread_block *tb = &plan->tb[t];
    block[t] = (pccl_k_table_block){tb->step, tb->steps};
    for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
      fill_step(&plan->step[s], number, &step[s]);
      if (c->first != NULL && pccl_ops[plan->step[s].op].reduces) {
        step[s].addends = c->first[s];
        step[s].every = 1;
      }
      for (int32_t w = plan->step[s].wait; w < plan->step[s].wait + plan->step[s].waits; w++) {
        const polyccl_wait *from = &plan->wait[w];
        wait[w] = (pccl_k_table_wait){from->tb, plan->tb[plan->rank[tb->rank].tb + from->tb].steps, from->step};
      }
    }
  }
}

static polyccl_result make_step_tables(pccl_gpu *g, const pccl_contributions *c) {
  const polyccl_plan *plan = g->plan;
  pccl_k_table_block *block = pccl_zeroed(plan->tbs, sizeof *block);
  pccl_k_step *step = pccl_zeroed(plan->steps, sizeof *step);
  pccl_k_table_wait *wait = pccl_zeroed(plan->waits, sizeof *wait);
  int32_t *number = pccl_zeroed(2 * plan->connections, sizeof *number);
  int32_t *next = pccl_zeroed(2 * (size_t)plan->ranks, sizeof *next);
  polyccl_result result = POLYCCL_SUCCESS;
  void *at[3] = {NULL, NULL, NULL};
  if (block == NULL || step == NULL || wait == NULL || number == NULL || next == NULL) {
    result = pccl_no_memory("a plan's tables");
  } else {
    fill_tables(g, c, number, next, block, step, wait);
    result = upload(g, block, plan->tbs * sizeof *block, &at[0]);
  }
  if (result == POLYCCL_SUCCESS) {
    result = upload(g, step, plan->steps * sizeof *step, &at[1]);
  }
  if (result == POLYCCL_SUCCESS) {
    result = upload(g, wait, plan->waits * sizeof *wait, &at[2]);
  }
  g->table_blocks = at[0];
  g->table_steps = at[1];
  g->table_waits = at[2];
  free(block);
  free(step);
  free(wait);
  free(number);
  free(next);
  return result;
}

/* At least one entry. */
static polyccl_result upload_addends(pccl_gpu *g, const pccl_contributions *c) {
  size_t count = c->first != NULL ? c->first[g->plan->steps] : 0;
  uint64_t *addends = pccl_zeroed(count + 1, sizeof *addends);
  if (addends == NULL) {
    return pccl_no_memory("a plan's tables");
  }
  for (size_t i = 0; i < count; i++) {
    addends[i] = PCCL_K_ADDENDS(c->a[i], c->b[i], pccl_contributions_complete(g->plan, c, i));
  }
  void *at = NULL;
  polyccl_result result = upload(g, addends, (count + 1) * sizeof *addends, &at);
  g->table_addends = at;
  free(addends);
  return result;
}

static polyccl_result make_tables(pccl_gpu *g) {
  pccl_contributions c = {0};
  if (pccl_collective_reduces(g->plan->collective) && g->plan->collective != POLYCCL_CUSTOM) {
    PCCL_TRY(pccl_contributions_find(g->plan, &c));
  }
  polyccl_result result = make_step_tables(g, &c);
  if (result == POLYCCL_SUCCESS) {
    result = upload_addends(g, &c);
  }
  pccl_contributions_free(&c);
  return result;
}

static polyccl_result make_calls(pccl_gpu *g) {
  void *at = NULL;
  PCCL_TRY(upload(g, NULL, (size_t)g->tbs * sizeof *g->blocks, &at));
  g->blocks = at;
  PCCL_TRY(upload(g, NULL, (size_t)g->ranks * sizeof *g->calls, &at));
  g->calls = at;
  PCCL_TRY(upload(g, NULL, sizeof *g->works, &at));
  g->works = at;
  PCCL_TRY(g->driver->flag(g->device, &g->stop_here, &g->stop_there));
  int tb = 0;
  for (int r = 0; r < g->ranks; r++) {
    g->call[r].block = g->blocks + tb;
    g->call[r].stop = g->stop_there;
    g->call[r].slot_bytes = g->slot_bytes;
    g->call[r].depth = g->depth;
    g->call[r].chunks = (uint32_t)g->plan->chunks;
    tb += g->plan->rank[g->first + r].tbs;
  }
  g->work = (pccl_k_work){.calls = g->calls,
                          .place = g->places,
                          .block = g->table_blocks,
                          .step = g->table_steps,
                          .wait = g->table_waits,
                          .addends = g->table_addends,
                          .protocol = (uint32_t)g->plan->protocol,
                          .tasks = g->plan->order == POLYCCL_TASK_MAJOR};
  return POLYCCL_SUCCESS;
}

static polyccl_result open_all(pccl_gpu *g) {
  PCCL_TRY(take_plan(g));
  PCCL_TRY(take_processes(g));
  g->call = pccl_zeroed((size_t)g->ranks, sizeof *g->call);
  if (g->call == NULL) {
    return pccl_no_memory("a device executor");
  }
  PCCL_TRY(load_code(g));
  PCCL_TRY(check_fits(g));
  PCCL_TRY(open_connections(g));
  PCCL_TRY(make_ends(g));
  PCCL_TRY(make_places(g));
  PCCL_TRY(g->interpreter ? make_tables(g) : POLYCCL_SUCCESS);
  return make_calls(g);
}

polyccl_result pccl_gpu_open(const pccl_gpu_driver *driver, pccl_gpu_device *device, const polyccl_plan *plan,
                             const pccl_gpu_options *options, pccl_gpu **gpu) {
  pccl_gpu *g = pccl_zeroed(1, sizeof *g);
  if (g == NULL) {
    return pccl_no_memory("a device executor");
  }
  g->driver = driver;
  g->device = device;
  g->plan = plan;
  g->options = *options;
  g->options.threads = options->threads > 0 ? options->threads : PRESET_THREADS;
  g->processes = 1;
  polyccl_result result = open_all(g);
  if (result != POLYCCL_SUCCESS) {
    pccl_gpu_close(g);
    return result;
  }
  g->opened = true;
  *gpu = g;
  return POLYCCL_SUCCESS;
}

void pccl_gpu_blocks(const pccl_gpu *g, int *blocks, int *most) {
  *blocks = g->tbs;
  *most = g->most;
}
