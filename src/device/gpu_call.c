/* A call: geometry, launch, watchdog. */
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "base/vec.h"
#include "device/gpu_parts.h"
#include "kernel/reduce.h"
#include "kernel/tiling.h"
#include "plan/plan.h"

enum { MERCY_SECONDS = 5 };
static const uint64_t wipe_every = (uint64_t)1 << 30;

/* ---- geometry ---- */

static polyccl_result check_call(const pccl_gpu *g, const pccl_gpu_call_args *a) {
  const polyccl_plan *plan = g->plan;
  PCCL_TRY(pccl_check_reduction(a->dtype, g->reduces ? a->op : POLYCCL_SUM));
  if (g->reduces && plan->redops != 0 && (plan->redops >> a->op & 1) == 0) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "plan \"%s\" is not for %s", plan->name, polyccl_redop_name(a->op));
  }
  if (g->reduces && a->op == POLYCCL_AVG && plan->collective == POLYCCL_CUSTOM) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "avg is not defined for custom collectives (plan \"%s\")", plan->name);
  }
  if (!g->uneven && a->count % (size_t)plan->chunks != 0) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "plan \"%s\" wants counts that its %d chunks divide, %zu is none",
                     plan->name, plan->chunks, a->count);
  }
  if (a->count > (SIZE_MAX >> 8) / (size_t)(plan->ranks + plan->chunks)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%zu elements are more than memory can hold", a->count);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result grow_scratch(pccl_gpu *g, size_t stride_bytes) {
  size_t bytes = 0;
  for (int r = g->first; r < g->first + g->ranks; r++) {
    bytes += (size_t)g->plan->rank[r].scratch * stride_bytes;
  }
  if (bytes > g->scratch_bytes) {
    void *at = NULL;
    PCCL_TRY(g->driver->alloc(g->device, bytes, &at));
    g->driver->release(g->device, g->scratch);
    g->scratch = at;
    g->scratch_bytes = bytes;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result fill_calls(pccl_gpu *g, const pccl_gpu_call_args *a) {
  size_t element = polyccl_dtype_size(a->dtype);
  size_t stride = pccl_collective_stride(g->plan->chunks, a->count, element);
  pccl_tiling tiling;
  PCCL_TRY(pccl_tiling_find(&(pccl_tiling_input){.protocol = g->plan->protocol,
                                                 .slot_bytes = g->slot_bytes,
                                                 .max_bytes = SIZE_MAX,
                                                 .chunks = (size_t)g->largest,
                                                 .stride = stride,
                                                 .element = element},
                            &tiling));
  PCCL_TRY(grow_scratch(g, stride * element));
  size_t used = 0;
  for (int r = 0; r < g->ranks; r++) {
    pccl_k_call *c = &g->call[r];
    int rank = g->first + r;
    c->buffer[0] = a->input[rank];
    c->buffer[1] = a->output[rank];
    c->buffer[2] = g->scratch + used;
    used += (size_t)g->plan->rank[rank].scratch * stride * element;
    c->count = a->count;
    c->stride = stride;
    c->tile = tiling.tile;
    c->batches = tiling.batches;
    c->element = (uint32_t)element;
    c->dtype = (uint32_t)a->dtype;
    c->redop = (uint32_t)a->op;
  }
  return g->driver->write(g->device, g->calls, g->call, (size_t)g->ranks * sizeof *g->call);
}

/* ---- old flags ---- */

/* LL's flags have 31 bits: before a number comes again, the words that may still carry it are cleared. All processes
 * count alike, so all meet here at the same call. */
static polyccl_result wipe_flags(pccl_gpu *g, uint64_t batches, int repeats) {
  const polyccl_plan *plan = g->plan;
  bool due = false;
  for (size_t i = 0; i < plan->steps; i++) {
    if (plan->step[i].send >= 0) {
      uint64_t *messages = &g->messages[plan->step[i].send];
      *messages += batches * (uint64_t)repeats;
      due = due || *messages >= wipe_every;
    }
  }
  if (!due || plan->protocol != POLYCCL_LL) {
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(pccl_gpu_meet(g));
  for (size_t i = 0; i < plan->connections; i++) {
    g->messages[i] = 0;
    if (pccl_gpu_process_of(g, plan->connection[i].dst) == g->options.process) {
      char *arena = g->arena[g->options.process];
      PCCL_TRY(g->driver->zero(g->device, arena + g->place[i].slots, g->depth * g->slot_bytes));
    }
  }
  bool idle = false;
  while (!idle) {
    PCCL_TRY(g->driver->idle(g->device, &idle));
  }
  return pccl_gpu_meet(g);
}

/* ---- waiting ---- */

static double patience(const pccl_gpu *g) {
  size_t seconds;
  if (g->options.timeout > 0) {
    return g->options.timeout;
  }
  return pccl_option_number("POLYCCL_TIMEOUT", 1, 1000000, &seconds) == POLYCCL_SUCCESS ? (double)seconds : 30;
}

static polyccl_result wait_until(pccl_gpu *g, double end, bool *idle) {
  double begin = pccl_now_seconds();
  for (;;) {
    PCCL_TRY(g->driver->idle(g->device, idle));
    double t = pccl_now_seconds();
    if (*idle || t >= end) {
      return POLYCCL_SUCCESS;
    }
    if (t - begin > 1e-3) { /* short calls are polled for, long ones leave the CPU alone */
      nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
  }
}

/* Which thread block has not ended; the kernel has. */
static polyccl_result name_stuck(pccl_gpu *g, double waited) {
  pccl_k_block *block = pccl_zeroed((size_t)g->tbs, sizeof *block);
  if (block == NULL || g->driver->read(g->device, block, g->blocks, (size_t)g->tbs * sizeof *block) != 0) {
    free(block);
    return pccl_fail(POLYCCL_ERROR_TIMEOUT, "a call of plan \"%s\" did not end in %.3g s", g->plan->name, waited);
  }
  polyccl_result result = POLYCCL_SUCCESS;
  uint64_t batches = g->call[0].batches;
  for (int r = 0, t = 0; r < g->ranks && result == POLYCCL_SUCCESS; r++) {
    const polyccl_plan_rank *rank = &g->plan->rank[g->first + r];
    for (int tb = 0; tb < rank->tbs && result == POLYCCL_SUCCESS; tb++, t++) {
      const polyccl_thread_block *of = &g->plan->tb[rank->tb + tb];
      uint64_t done = block[t].done, steps = (uint64_t)of->steps;
      if (!block[t].ended && done < steps * batches) {
        bool tasks = g->plan->order == POLYCCL_TASK_MAJOR;
        uint64_t step = tasks ? done / batches : done % steps;
        result = pccl_fail(POLYCCL_ERROR_TIMEOUT,
                           "a call of plan \"%s\" did not end in %.3g s: rank %d, thread block %d waits at step %llu "
                           "(%s), micro-batch %llu of %llu",
                           g->plan->name, waited, g->first + r, tb, (unsigned long long)step,
                           polyccl_step_op_name((polyccl_step_op)g->plan->step[of->step + (int32_t)step].op),
                           (unsigned long long)(tasks ? done % batches : done / steps), (unsigned long long)batches);
      }
    }
  }
  free(block);
  return result != POLYCCL_SUCCESS
             ? result
             : pccl_fail(POLYCCL_ERROR_TIMEOUT, "calls of plan \"%s\" did not end in %.3g s", g->plan->name, waited);
}

static polyccl_result wait_for_end(pccl_gpu *g) {
  bool idle = false;
  double seconds = patience(g);
  polyccl_result result = wait_until(g, pccl_now_seconds() + seconds, &idle);
  if (result == POLYCCL_SUCCESS && idle) {
    return POLYCCL_SUCCESS;
  }
  g->broken = true;
  __atomic_store_n(g->stop_here, 1, __ATOMIC_RELEASE);
  PCCL_TRY(result);
  PCCL_TRY(wait_until(g, pccl_now_seconds() + MERCY_SECONDS, &idle));
  return idle ? name_stuck(g, seconds)
              : pccl_fail(POLYCCL_ERROR_TIMEOUT, "the kernel of plan \"%s\" ran %.3g s and does not stop",
                          g->plan->name, seconds + MERCY_SECONDS);
}

polyccl_result pccl_gpu_call(pccl_gpu *g, const pccl_gpu_call_args *a) {
  if (g->broken) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "an earlier call of plan \"%s\" failed", g->plan->name);
  }
  PCCL_TRY(check_call(g, a));
  if (a->count == 0) {
    return POLYCCL_SUCCESS;
  }
  int repeats = a->repeats > 0 ? a->repeats : 1;
  PCCL_TRY(fill_calls(g, a));
  PCCL_TRY(wipe_flags(g, g->call[0].batches, repeats));
  PCCL_TRY(g->driver->write(g->device, g->works, &g->work, sizeof g->work));
  PCCL_TRY(g->driver->mark(g->device, 0));
  for (int i = 0; i < repeats; i++) {
    PCCL_TRY(g->driver->zero(g->device, g->blocks, (size_t)g->tbs * sizeof *g->blocks));
    PCCL_TRY(g->driver->launch(g->device, g->kernel, g->tbs, g->options.threads, g->works, true));
  }
  PCCL_TRY(g->driver->mark(g->device, 1));
  PCCL_TRY(wait_for_end(g));
  if (a->seconds != NULL) {
    PCCL_TRY(g->driver->between(g->device, a->seconds));
  }
  return POLYCCL_SUCCESS;
}
