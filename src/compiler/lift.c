/* From a plan back to a program: the moves of a verified plan are written again on the builder, so that plans from
 * elsewhere go through the check and every policy.
 *
 * The plan's steps are replayed in one order that its dependencies allow. A message becomes a copy or a reduction when
 * it is received, from the chunk that was sent. A plan can do two things that a program cannot, so they are spelt out:
 *   - a sent chunk that is overwritten before its message is received is kept in scratch ("sent");
 *   - rrs stores nothing. Its sum is stored at its source, since compilers make rrs where the chunk there is not needed
 *     any more. Where the check finds that it is needed, all such sums go to scratch ("sum"). */
#include <stdlib.h>

#include <polyccl/compile.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/plan.h"
#include "program/collective.h"

typedef struct range {
  int32_t rank, buffer, index, size; /* the builder's buffers */
} range;

typedef struct message {
  range from;
  uint64_t clock; /* when it was sent */
  int32_t step;   /* the send */
} message;

typedef struct queue {
  PCCL_VEC(message) sent;
  size_t taken;
} queue;

typedef struct cell {
  uint64_t written; /* clock of the last write */
  uint32_t flying;  /* messages that were sent from here and not yet received */
} cell;

typedef struct lifter {
  const polyccl_plan *plan;
  polyccl_program *program; /* NULL: a rehearsal that finds out which sends must be kept */
  pccl_collective_spec spec;
  queue *queue;    /* [connections] */
  int32_t *next;   /* [tbs] */
  bool *kept;      /* [steps]: the sent chunk waits in scratch */
  cell **cell;     /* [ranks]: of user memory, then of scratch */
  uint64_t clock;  /* steps run so far */
  bool sums_apart; /* rrs in scratch of its own */
  int scratch, sent, sum;
} lifter;

static polyccl_result no_memory_for_lift(void) { return pccl_no_memory("a program from a plan"); }

static cell *cell_of(const lifter *l, range r, int32_t i) {
  int at = r.buffer == l->scratch ? pccl_collective_cells(&l->spec) + r.index + i
                                  : pccl_collective_cell(&l->spec, r.rank, r.buffer == POLYCCL_OUTPUT, r.index + i);
  return &l->cell[r.rank][at];
}

/* The lifter's own scratch is written once and needs no clocks. */
static bool is_own(const lifter *l, range r) { return r.buffer == l->sent || r.buffer == l->sum; }

static void record_write(lifter *l, range r) {
  for (int32_t i = 0; i < r.size && !is_own(l, r); i++) {
    cell_of(l, r, i)->written = l->clock;
  }
}

static bool written_since(const lifter *l, range r, uint64_t clock) {
  for (int32_t i = 0; i < r.size && !is_own(l, r); i++) {
    if (cell_of(l, r, i)->written > clock) {
      return true;
    }
  }
  return false;
}

/* A message leaves from `r` (change 1) or arrives (-1). */
static void count_flight(lifter *l, range r, int change) {
  for (int32_t i = 0; i < r.size && !is_own(l, r); i++) {
    cell_of(l, r, i)->flying += (uint32_t)change;
  }
}

static bool is_flying(const lifter *l, range r) {
  for (int32_t i = 0; i < r.size && !is_own(l, r); i++) {
    if (cell_of(l, r, i)->flying > 0) {
      return true;
    }
  }
  return false;
}

static range range_of_chunks(const lifter *l, int32_t rank, uint8_t buffer, int32_t index, int32_t size) {
  static const int user[] = {[POLYCCL_BUF_INPUT] = POLYCCL_INPUT, [POLYCCL_BUF_OUTPUT] = POLYCCL_OUTPUT};
  return (range){rank, buffer == POLYCCL_BUF_SCRATCH ? l->scratch : user[buffer], index, size};
}

/* True for two names of the same chunks. */
static bool same_chunks(const lifter *l, range a, range b) {
  return a.rank == b.rank && !is_own(l, a) && !is_own(l, b) && cell_of(l, a, 0) == cell_of(l, b, 0);
}

static bool chunks_overlap(const lifter *l, range a, range b) {
  if (a.rank != b.rank || is_own(l, a) || is_own(l, b)) {
    return false;
  }
  const cell *first = cell_of(l, a, 0), *other = cell_of(l, b, 0);
  return first < other + b.size && other < first + a.size;
}

/* ---- operations; nothing happens in a rehearsal ---- */

static polyccl_result reference_range(const lifter *l, range r, polyccl_location at, polyccl_ref *ref) {
  return polyccl_program_chunk(l->program, r.rank, r.buffer, r.index, r.size, at, ref);
}

static polyccl_result copy_range(lifter *l, range from, range *to, polyccl_location at);

/* A program does not move chunks onto themselves, so an operand that overlaps the target is copied to scratch. */
static polyccl_result copy_overlapping_operand(lifter *l, range *operand, range target, polyccl_location at) {
  range own = {operand->rank, l->sum, -1, operand->size};
  if (!chunks_overlap(l, *operand, target)) {
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(copy_range(l, *operand, &own, at));
  *operand = own;
  return POLYCCL_SUCCESS;
}

static polyccl_result copy_range(lifter *l, range from, range *to, polyccl_location at) {
  polyccl_ref ref;
  if (same_chunks(l, from, *to)) {
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(copy_overlapping_operand(l, &from, *to, at));
  record_write(l, *to);
  if (l->program == NULL) {
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(reference_range(l, from, at, &ref));
  PCCL_TRY(polyccl_program_copy(l->program, &ref, to->rank, to->buffer, to->index, POLYCCL_NO_HINTS, at, &ref));
  to->index = ref.index; /* where the builder appended it */
  return POLYCCL_SUCCESS;
}

static polyccl_result reduce_range(lifter *l, range sum, range operand, polyccl_location at) {
  polyccl_ref to, from;
  PCCL_TRY(copy_overlapping_operand(l, &operand, sum, at));
  record_write(l, sum);
  if (l->program == NULL) {
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(reference_range(l, sum, at, &to));
  PCCL_TRY(reference_range(l, operand, at, &from));
  return polyccl_program_reduce(l->program, &to, &from, POLYCCL_NO_HINTS, at, &to);
}

/* ---- steps ---- */

static polyccl_result send_message(lifter *l, const polyccl_step *step, range from, polyccl_location at) {
  int32_t index = (int32_t)(step - l->plan->step);
  if (l->kept[index]) {
    range kept = {from.rank, l->sent, -1, from.size};
    PCCL_TRY(copy_range(l, from, &kept, at));
    from = kept;
  }
  count_flight(l, from, 1);
  message m = {from, l->clock, index};
  return pccl_vec_push(&l->queue[step->send].sent, m) ? POLYCCL_SUCCESS : no_memory_for_lift();
}

/* The chunk that holds the next message, still as it was sent. */
static range receive_message(lifter *l, const polyccl_step *step) {
  queue *q = &l->queue[step->recv];
  message m = q->sent.data[q->taken++];
  count_flight(l, m.from, -1);
  if (l->program == NULL && written_since(l, m.from, m.clock)) {
    l->kept[m.step] = true;
  }
  return m.from;
}

static polyccl_result replay_step(lifter *l, int32_t rank, const polyccl_step *step) {
  polyccl_location at = pccl_step_location(l->plan, step);
  range src = range_of_chunks(l, rank, step->src_buf, step->src, step->count);
  range dst = range_of_chunks(l, rank, step->dst_buf, step->dst, step->count);
  range result = dst, own = {rank, l->sum, -1, step->count};
  l->clock++;
  switch ((polyccl_step_op)step->op) {
    case POLYCCL_STEP_SEND: result = src; break;
    case POLYCCL_STEP_RECV:
    case POLYCCL_STEP_RCS: PCCL_TRY(copy_range(l, receive_message(l, step), &dst, at)); break;
    case POLYCCL_STEP_RRC:
    case POLYCCL_STEP_RRCS: {
      range from = receive_message(l, step);
      PCCL_TRY(copy_range(l, src, &dst, at));
      PCCL_TRY(reduce_range(l, dst, from, at));
      break;
    }
    case POLYCCL_STEP_RRS: {
      range from = receive_message(l, step);
      result = src;
      if (l->sums_apart) {
        PCCL_TRY(copy_range(l, src, &own, at));
        result = own;
      }
      PCCL_TRY(reduce_range(l, result, from, at));
      break;
    }
    case POLYCCL_STEP_COPY: PCCL_TRY(copy_range(l, src, &dst, at)); break;
    case POLYCCL_STEP_REDUCE: PCCL_TRY(reduce_range(l, dst, src, at)); break;
    default: break;
  }
  return step->send >= 0 ? send_message(l, step, result, at) : POLYCCL_SUCCESS;
}

static bool step_is_ready(const lifter *l, int32_t tb) {
  const polyccl_plan *plan = l->plan;
  const polyccl_thread_block *block = &plan->tb[tb];
  if (l->next[tb] == block->steps) {
    return false;
  }
  const polyccl_step *step = &plan->step[block->step + l->next[tb]];
  if (step->recv >= 0 && l->queue[step->recv].taken == l->queue[step->recv].sent.len) {
    return false;
  }
  for (int32_t i = 0; i < step->waits; i++) {
    polyccl_wait wait = plan->wait[step->wait + i];
    if (l->next[plan->rank[block->rank].tb + wait.tb] <= wait.step) {
      return false;
    }
  }
  return true;
}

/* True for a step that overwrites the source of a message in flight; it is better run after the message has arrived. */
static bool overwrites_in_flight(const lifter *l, int32_t tb) {
  const polyccl_thread_block *block = &l->plan->tb[tb];
  const polyccl_step *step = &l->plan->step[block->step + l->next[tb]];
  bool sums = step->op == POLYCCL_STEP_RRS && !l->sums_apart;
  return (pccl_ops[step->op].writes_dst &&
          is_flying(l, range_of_chunks(l, block->rank, step->dst_buf, step->dst, step->count))) ||
         (sums && is_flying(l, range_of_chunks(l, block->rank, step->src_buf, step->src, step->count)));
}

/* Every thread block in turn goes as far as it can, until all are done. A step that overwrites a message in flight runs
 * only where nothing else can. */
static polyccl_result replay_plan(lifter *l) {
  size_t left = l->plan->steps, before;
  bool overwriting = false;
  do {
    before = left;
    for (int32_t tb = 0; tb < (int32_t)l->plan->tbs; tb++) {
      for (; step_is_ready(l, tb) && (overwriting || !overwrites_in_flight(l, tb)); left--, overwriting = false) {
        const polyccl_thread_block *block = &l->plan->tb[tb];
        PCCL_TRY(replay_step(l, block->rank, &l->plan->step[block->step + l->next[tb]]));
        l->next[tb]++;
      }
    }
    if (left == before && overwriting) {
      break;
    }
    overwriting = left == before;
  } while (left > 0);
  return left == 0 ? POLYCCL_SUCCESS
                   : pccl_fail(POLYCCL_ERROR_INVALID, "the plan hangs: %zu of its steps never start", left);
}

static void reset_replay(lifter *l) {
  size_t cells = (size_t)pccl_collective_cells(&l->spec);
  l->clock = 0;
  for (size_t c = 0; c < l->plan->connections; c++) {
    l->queue[c].sent.len = l->queue[c].taken = 0;
  }
  for (size_t t = 0; t < l->plan->tbs; t++) {
    l->next[t] = 0;
  }
  for (int32_t r = 0; r < l->plan->ranks; r++) {
    for (size_t i = 0; i < cells + (size_t)l->plan->rank[r].scratch; i++) {
      l->cell[r][i] = (cell){0};
    }
  }
}

/* ---- the program ---- */

static polyccl_result declare_conditions(const polyccl_plan *plan, polyccl_program *program) {
  for (size_t i = 0; i < plan->absents; i++) {
    PCCL_TRY(polyccl_program_pre(program, plan->absent[i].rank, plan->absent[i].chunk, false));
  }
  for (size_t i = 0; i < plan->posts; i++) {
    const polyccl_post *post = &plan->post[i];
    PCCL_TRY(polyccl_program_post(program, post->rank, post->chunk, plan->leaf + post->leaf, post->leaves));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result build_program(lifter *l) {
  const polyccl_plan *plan = l->plan;
  polyccl_program_config config = {.size = sizeof(polyccl_program_config),
                                   .name = plan->name,
                                   .collective = plan->collective,
                                   .ranks = plan->ranks,
                                   .chunks = plan->chunks,
                                   .chunks_out = plan->collective == POLYCCL_CUSTOM ? plan->chunks_out : 0,
                                   .inplace = plan->inplace,
                                   .root = plan->root,
                                   .peer = plan->peer,
                                   .protocol = plan->protocol,
                                   .instances = 1,
                                   .min_bytes = plan->min_bytes,
                                   .max_bytes = plan->max_bytes};
  PCCL_TRY(polyccl_program_create(&config, &l->program));
  PCCL_TRY(declare_conditions(plan, l->program));
  int scratch, sent, sum;
  PCCL_TRY(polyccl_program_scratch(l->program, "scratch", &scratch));
  PCCL_TRY(polyccl_program_scratch(l->program, "sent", &sent));
  PCCL_TRY(polyccl_program_scratch(l->program, "sum", &sum));
  l->scratch = scratch;
  l->sent = sent;
  l->sum = sum;
  reset_replay(l);
  PCCL_TRY(replay_plan(l));
  return polyccl_program_check(l->program, NULL);
}

static bool has_rrs(const polyccl_plan *plan) {
  for (size_t i = 0; i < plan->steps; i++) {
    if (plan->step[i].op == POLYCCL_STEP_RRS) {
      return true;
    }
  }
  return false;
}

static polyccl_result lift_plan(lifter *l) {
  const polyccl_plan *plan = l->plan;
  size_t cells = (size_t)pccl_collective_cells(&l->spec);
  l->queue = pccl_zeroed(plan->connections, sizeof *l->queue);
  l->next = pccl_zeroed(plan->tbs, sizeof *l->next);
  l->kept = pccl_zeroed(plan->steps, sizeof *l->kept);
  l->cell = pccl_zeroed((size_t)plan->ranks, sizeof *l->cell);
  if (l->queue == NULL || l->next == NULL || l->kept == NULL || l->cell == NULL) {
    return no_memory_for_lift();
  }
  for (int32_t r = 0; r < plan->ranks; r++) {
    l->cell[r] = pccl_zeroed(cells + (size_t)plan->rank[r].scratch, sizeof **l->cell);
    if (l->cell[r] == NULL) {
      return no_memory_for_lift();
    }
  }
  PCCL_TRY(replay_plan(l)); /* the rehearsal */
  polyccl_result result = build_program(l);
  if (result == POLYCCL_ERROR_INVALID && has_rrs(plan)) {
    polyccl_program_destroy(l->program);
    l->program = NULL;
    l->sums_apart = true;
    reset_replay(l);
    PCCL_TRY(replay_plan(l));
    result = build_program(l);
  }
  return result;
}

polyccl_result polyccl_program_from_plan(const polyccl_plan *plan, polyccl_program **program) {
  /* The numbers of buffers for the rehearsal, in the order in which the builder numbers them. */
  lifter l = {.plan = plan,
              .spec = pccl_plan_spec(plan),
              .scratch = POLYCCL_SCRATCH,
              .sent = POLYCCL_SCRATCH + 1,
              .sum = POLYCCL_SCRATCH + 2};
  PCCL_TRY(polyccl_plan_verify(plan, NULL));
  polyccl_result result = lift_plan(&l);
  if (result == POLYCCL_SUCCESS) {
    *program = l.program;
    l.program = NULL;
  }
  polyccl_program_destroy(l.program);
  for (size_t c = 0; l.queue != NULL && c < plan->connections; c++) {
    pccl_vec_free(&l.queue[c].sent);
  }
  for (int32_t r = 0; l.cell != NULL && r < plan->ranks; r++) {
    free(l.cell[r]);
  }
  free(l.queue);
  free(l.next);
  free(l.kept);
  free(l.cell);
  return result;
}
