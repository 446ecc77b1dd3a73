/* Rewrites a plan step by step.
 *
 * nop: its waits go to the next step of its thread block that is kept. Who waited for it waits for what it waited for,
 * and for the last kept step before it, which had ended when it began.
 *
 * Fused steps, where the target splits them: what is received goes to the place where it is wanted, the local operand
 * is added there, and what results is sent from there. Scratch is needed where the message would overwrite the local
 * operand before it is added, and for rrs, which stores nothing; a thread block runs its steps one after another, so
 * each has one such place of its own. */
#include "plan/xml_lower.h"

#include <string.h>

#include "base/error.h"
#include "plan/builder.h"
#include "plan/plan.h"

/* Steps looked at to follow waits through nops. */
#define PCCL_XML_MAX_FOLLOWED ((size_t)1 << 28)

typedef struct lowering {
  const pccl_xml_target *target;
  const polyccl_plan *plan;
  pccl_plan_builder builder;
  int32_t *last;             /* [steps]: number in its thread block of the last step that it becomes; -1: none, a nop */
  int32_t *stamp;            /* [steps]: of the step for which a nop was last followed */
  int32_t *awaits;           /* [max thread blocks of a rank]: the step to wait for, or -1 */
  PCCL_VEC(int32_t) touched; /* thread blocks in `awaits` */
  PCCL_VEC(int32_t) nops;    /* to be followed */
  size_t followed;
  int32_t waits; /* of the rank so far; each is an element of the file */
} lowering;

static bool splits_op(const pccl_xml_target *target, uint8_t op) {
  return target->splits_fused && pccl_ops[op].receives && (pccl_ops[op].sends || pccl_ops[op].reduces);
}

static bool needs_lowering(const pccl_xml_target *target, const polyccl_plan *plan) {
  for (size_t s = 0; s < plan->steps; s++) {
    if (!pccl_op_moves(plan->step[s].op) || splits_op(target, plan->step[s].op)) {
      return true;
    }
  }
  return false;
}

/* ---- fused steps ---- */

/* Does the message of this step need scratch? Else it goes to the destination at once. */
static bool needs_scratch(const polyccl_step *step) {
  return !pccl_ops[step->op].writes_dst ||
         (pccl_ops[step->op].reduces && step->src_buf == step->dst_buf &&
          step->src < (int64_t)step->dst + step->count && step->dst < (int64_t)step->src + step->count);
}

static int32_t count_lowered_steps(const pccl_xml_target *target, const polyccl_step *step) {
  if (!pccl_op_moves(step->op)) {
    return 0;
  }
  return splits_op(target, step->op) ? 1 + pccl_ops[step->op].reduces + pccl_ops[step->op].sends : 1;
}

/* Chunks of scratch for the messages of a thread block. */
static int32_t find_scratch_need(const lowering *l, const polyccl_thread_block *tb) {
  int32_t max = 0;
  for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
    polyccl_step step = l->plan->step[s];
    pccl_plan_normalise(l->plan, tb->rank, &step);
    if (splits_op(l->target, step.op) && needs_scratch(&step)) {
      max = step.count > max ? step.count : max;
    }
  }
  return max;
}

static polyccl_result add_lowered_step(lowering *l, const polyccl_step *from, polyccl_step_op op, polyccl_step *part) {
  polyccl_step *made;
  PCCL_TRY(pccl_plan_builder_add_step(&l->builder, &made));
  part->op = (uint8_t)op;
  part->count = from->count;
  part->location = from->location;
  part->flags = 0;
  part->wait = made->wait;
  part->waits = 0;
  *made = *part;
  return POLYCCL_SUCCESS;
}

/* The parts of a fused step after the first, which has received the message at (buffer, at). */
static polyccl_result add_steps_after_receive(lowering *l, const polyccl_step *step, uint8_t buffer, int32_t at) {
  if (pccl_ops[step->op].reduces) {
    bool stores = pccl_ops[step->op].writes_dst;
    bool here = buffer == step->dst_buf && at == step->dst && stores;
    bool from_scratch = !here && stores; /* added to the local operand, which is the destination */
    polyccl_step add = {.recv = -1, .send = -1};
    add.src_buf = from_scratch ? buffer : step->src_buf;
    add.src = from_scratch ? at : step->src;
    add.dst_buf = from_scratch ? step->dst_buf : buffer;
    add.dst = from_scratch ? step->dst : at;
    PCCL_TRY(add_lowered_step(l, step, POLYCCL_STEP_REDUCE, &add));
    buffer = add.dst_buf;
    at = add.dst;
  }
  if (pccl_ops[step->op].sends) {
    polyccl_step send = {.recv = -1, .send = step->send, .src_buf = buffer, .src = at};
    PCCL_TRY(add_lowered_step(l, step, POLYCCL_STEP_SEND, &send));
  }
  return POLYCCL_SUCCESS;
}

/* ---- waits ---- */

static bool await_step(lowering *l, int32_t tb, int32_t step) {
  if (l->awaits[tb] < 0 && !pccl_vec_push(&l->touched, tb)) {
    return false;
  }
  l->awaits[tb] = step > l->awaits[tb] ? step : l->awaits[tb];
  return true;
}

static bool collect_waits(lowering *l, const polyccl_plan_rank *rank, int32_t s, int32_t stamp) {
  const polyccl_step *step = &l->plan->step[s];
  bool kept = true;
  l->followed += 1 + (size_t)step->waits;
  for (int32_t w = step->wait; w < step->wait + step->waits && kept; w++) {
    polyccl_wait wait = l->plan->wait[w];
    int32_t awaited = l->plan->tb[rank->tb + wait.tb].step + wait.step;
    if (l->last[awaited] >= 0) {
      kept = await_step(l, wait.tb, l->last[awaited]);
    } else if (l->stamp[awaited] != stamp) {
      l->stamp[awaited] = stamp;
      kept = pccl_vec_push(&l->nops, awaited);
    }
  }
  return kept;
}

/* The waits of step s, those of the nops before it, and what all nops among them stand for. */
static polyccl_result follow_nops(lowering *l, const polyccl_plan_rank *rank, const polyccl_thread_block *tb,
                                  int32_t s) {
  int32_t stamp = s + 1;
  bool kept = collect_waits(l, rank, s, stamp);
  for (int32_t nop = s - 1; nop >= tb->step && l->last[nop] < 0 && kept; nop--) {
    kept = collect_waits(l, rank, nop, stamp);
  }
  while (l->nops.len > 0 && kept && l->followed <= PCCL_XML_MAX_FOLLOWED) {
    int32_t nop = l->nops.data[--l->nops.len];
    int32_t t = 0; /* the nop's thread block, by bisection: the first that ends behind it */
    for (int32_t high = rank->tbs; t < high;) {
      int32_t middle = (t + high) / 2;
      const polyccl_thread_block *at = &l->plan->tb[rank->tb + middle];
      if (at->step + at->steps > nop) {
        high = middle;
      } else {
        t = middle + 1;
      }
    }
    kept = collect_waits(l, rank, nop, stamp);
    int32_t first = l->plan->tb[rank->tb + t].step;
    while (--nop >= first && kept && l->last[nop] < 0 && l->stamp[nop] != stamp) {
      l->stamp[nop] = stamp;
      kept = collect_waits(l, rank, nop, stamp);
    }
    if (nop >= first && kept && l->last[nop] >= 0) {
      kept = await_step(l, t, l->last[nop]);
    }
  }
  if (!kept) {
    return pccl_no_memory("writing a plan");
  }
  return l->followed <= PCCL_XML_MAX_FOLLOWED
             ? POLYCCL_SUCCESS
             : pccl_fail(POLYCCL_ERROR_LIMIT,
                         "the plan's nops wait for one another over more than %zu steps; %s drops nops: compile the "
                         "plan anew, or keep the plan format",
                         PCCL_XML_MAX_FOLLOWED, l->target->name);
}

static polyccl_result fail_too_many_waits(const lowering *l, int32_t r) {
  return pccl_fail(
      POLYCCL_ERROR_LIMIT,
      "rank %d: with the waits of its nops the plan has more than the %d XML elements that %s takes: compile "
      "it anew, or keep the plan format",
      r, l->target->elements, l->target->name);
}

static polyccl_result add_lowered_waits(lowering *l, const polyccl_plan_rank *rank, const polyccl_thread_block *tb,
                                        int32_t s) {
  polyccl_result result = follow_nops(l, rank, tb, s);
  int32_t own = (int32_t)(tb - l->plan->tb) - rank->tb;
  for (size_t i = 0; i < l->touched.len; i++) {
    int32_t t = l->touched.data[i];
    if (result == POLYCCL_SUCCESS) {
      l->waits += t != own;
      result = l->waits <= l->target->elements ? pccl_plan_builder_add_wait(&l->builder, t, l->awaits[t])
                                               : fail_too_many_waits(l, tb->rank);
    }
    l->awaits[t] = -1;
  }
  l->touched.len = 0;
  return result;
}

/* ---- the plan ---- */

static polyccl_result lower_step(lowering *l, const polyccl_plan_rank *rank, const polyccl_thread_block *tb, int32_t s,
                                 int32_t scratch) {
  polyccl_step step = l->plan->step[s];
  if (!pccl_op_moves(step.op)) {
    return POLYCCL_SUCCESS;
  }
  if (!splits_op(l->target, step.op)) {
    PCCL_TRY(add_lowered_step(l, &l->plan->step[s], (polyccl_step_op)step.op, &step));
    return add_lowered_waits(l, rank, tb, s);
  }
  pccl_plan_normalise(l->plan, tb->rank, &step);
  bool aside = needs_scratch(&step);
  polyccl_step recv = {.recv = step.recv, .send = -1};
  recv.dst_buf = aside ? POLYCCL_BUF_SCRATCH : step.dst_buf;
  recv.dst = aside ? scratch : step.dst;
  PCCL_TRY(add_lowered_step(l, &step, POLYCCL_STEP_RECV, &recv));
  PCCL_TRY(add_lowered_waits(l, rank, tb, s));
  return add_steps_after_receive(l, &step, recv.dst_buf, recv.dst);
}

static polyccl_result lower_rank(lowering *l, int32_t r) {
  const polyccl_plan_rank *rank = &l->plan->rank[r];
  polyccl_plan_rank made = {.input = rank->input, .output = rank->output, .scratch = rank->scratch};
  l->waits = 0;
  for (int32_t t = rank->tb; t < rank->tb + rank->tbs; t++) {
    const polyccl_thread_block *tb = &l->plan->tb[t];
    int32_t scratch = find_scratch_need(l, tb);
    if (scratch > INT32_MAX - made.scratch) {
      return pccl_fail(POLYCCL_ERROR_LIMIT, "rank %d: scratch of more than %d chunks", r, INT32_MAX);
    }
    PCCL_TRY(pccl_plan_builder_add_tb(&l->builder, r));
    for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
      PCCL_TRY(lower_step(l, rank, tb, s, made.scratch));
    }
    made.scratch += scratch;
  }
  return pccl_vec_push(&l->builder.rank, made) ? POLYCCL_SUCCESS : pccl_no_memory("writing a plan");
}

/* Waits are followed by index: they must exist, and the steps of a rank stand in the order of its thread blocks. */
static polyccl_result number_lowered_steps(lowering *l) {
  const polyccl_plan *plan = l->plan;
  for (int32_t r = 0; r < plan->ranks; r++) {
    const polyccl_plan_rank *rank = &plan->rank[r];
    for (int32_t t = rank->tb; t < rank->tb + rank->tbs; t++) {
      const polyccl_thread_block *tb = &plan->tb[t];
      int32_t next = 0;
      if (t > rank->tb && tb->step != tb[-1].step + tb[-1].steps) {
        return pccl_fail(POLYCCL_ERROR_INVALID, "the plan's steps are not in the order of its thread blocks");
      }
      for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
        int32_t parts = count_lowered_steps(l->target, &plan->step[s]);
        next += parts;
        l->last[s] = parts > 0 ? next - 1 : -1;
        PCCL_TRY(pccl_xml_check_waits(plan, t, s - tb->step));
      }
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result lower_plan(lowering *l, polyccl_plan *made) {
  const polyccl_plan *plan = l->plan;
  int32_t max_tbs = 0;
  for (int32_t r = 0; r < plan->ranks; r++) {
    max_tbs = plan->rank[r].tbs > max_tbs ? plan->rank[r].tbs : max_tbs;
  }
  l->last = pccl_array(plan->steps, sizeof *l->last);
  l->stamp = pccl_zeroed(plan->steps, sizeof *l->stamp);
  l->awaits = pccl_array((size_t)max_tbs, sizeof *l->awaits);
  if (l->last == NULL || l->stamp == NULL || l->awaits == NULL) {
    return pccl_no_memory("writing a plan");
  }
  memset(l->awaits, 0xff, (size_t)max_tbs * sizeof *l->awaits);
  PCCL_TRY(number_lowered_steps(l));
  for (int32_t r = 0; r < plan->ranks; r++) {
    PCCL_TRY(lower_rank(l, r));
  }
  pccl_plan_copy_head(plan, made);
  pccl_plan_builder_finish(&l->builder, made);
  return pccl_plan_copy_tables(plan, made);
}

static polyccl_result verify_lowered_plan(const pccl_xml_target *target, polyccl_plan *made) {
  polyccl_verify_report report;
  polyccl_result result = polyccl_plan_verify(made, &report);
  if (result != POLYCCL_SUCCESS) {
    return pccl_prefix(result, "rewritten for %s, the plan is not right: ", target->name);
  }
  made->fifo_depth = report.fifo_depth;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_xml_lower(const pccl_xml_target *target, const polyccl_plan *plan, polyccl_plan **lowered) {
  *lowered = NULL;
  if (!needs_lowering(target, plan)) {
    return POLYCCL_SUCCESS;
  }
  lowering l = {.target = target, .plan = plan};
  polyccl_plan *made;
  PCCL_TRY(polyccl_plan_create(plan->ranks, &made));
  polyccl_result result = lower_plan(&l, made);
  if (result == POLYCCL_SUCCESS) {
    result = verify_lowered_plan(target, made);
  }
  pccl_plan_builder_free(&l.builder);
  free(l.last);
  free(l.stamp);
  free(l.awaits);
  pccl_vec_free(&l.touched);
  pccl_vec_free(&l.nops);
  if (result != POLYCCL_SUCCESS) {
    polyccl_plan_destroy(made);
    return result;
  }
  *lowered = made;
  return POLYCCL_SUCCESS;
}
