/* A plan that is right out of place never writes an input, so each of its steps reads there what was there at the
 * start. It is right with any ranks in place if that stays so where they share memory: on each rank, every step that
 * reads a chunk of the input ends before the first step that writes the output chunk with which it shares memory, or is
 * that step and concerns the very same chunks (it takes each element before it stores it). A copy from chunks to those
 * that share their memory reads, but writes nothing.
 *
 * Proof. Take any set of ranks in place, and the steps in a topological order. By induction each step reads what it
 * reads in the plan out of place: from the input by the condition; from output and scratch since the same step wrote
 * there last, which no step reads before (the plan would read what holds nothing); from messages since their senders
 * read the same. So all outputs are the same, too. Accesses by the input's name do not race with those by the output's
 * by the condition, and all others are ordered as out of place. Deadlock does not depend on memory.
 *
 * It is not enough that the verifier accepts both pure forms, everybody in place and nobody: a rank may send back what
 * it reads from its input after it has written it as output, and only a receiver that is out of place ignores that
 * (tests/unit/alias.c has such a plan).
 *
 * Marks (rule 6) speak of accesses to the memory of one rank, the sender's for get and the receiver's for put, in an
 * order that does not depend on placement. So a mark is right for that rank's placement, whatever the others' is. A
 * sender knows its own, and so has marks get for either; it does not know the receiver's, so put must hold for both. */
#include "plan/alias.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/verify.h"

/* The chunks of user memory that a step touches by one name of it, as cells of the plan in place. */
typedef struct touched {
  int32_t cell, count; /* count 0: none */
} touched;

typedef struct checker {
  pccl_verify *v;
  pccl_reach *reach;
  size_t *rank_from;  /* [ranks + 1] in sorted */
  int32_t *sorted;    /* [steps] the topological order, rank by rank */
  int32_t *writer;    /* [cells of user memory] 1 + the first step that writes the output there, or 0 */
  int32_t asked[2];   /* the last question, answered yes: neighbouring chunks ask the same */
  polyccl_plan *plan; /* the verifier's own copy */
} checker;

static touched find_input_read(const pccl_verify *v, int32_t s) {
  const polyccl_step *step = &v->plan->step[s];
  bool reads = pccl_ops[step->op].reads_src && step->src_buf == POLYCCL_BUF_INPUT;
  return reads ? (touched){pccl_verify_cell(v, pccl_verify_rank(v, (size_t)s), step->src_buf, step->src), step->count}
               : (touched){0};
}

static touched find_output_write(const pccl_verify *v, int32_t s) {
  const polyccl_step *step = &v->plan->step[s];
  if (!pccl_ops[step->op].writes_dst || step->dst_buf != POLYCCL_BUF_OUTPUT) {
    return (touched){0};
  }
  touched in = find_input_read(v, s);
  int32_t cell = pccl_verify_cell(v, pccl_verify_rank(v, (size_t)s), step->dst_buf, step->dst);
  bool still = step->op == POLYCCL_STEP_COPY && in.count > 0 && in.cell == cell;
  return still ? (touched){0} : (touched){cell, step->count};
}

static void enter_writers(checker *c, int32_t rank) {
  memset(c->writer, 0, (size_t)c->v->user_cells * sizeof *c->writer);
  for (size_t i = c->rank_from[rank]; i < c->rank_from[rank + 1]; i++) {
    int32_t s = c->sorted[i];
    touched out = find_output_write(c->v, s);
    for (int32_t k = out.cell; k < out.cell + out.count; k++) {
      c->writer[k] = c->writer[k] != 0 ? c->writer[k] : s + 1;
    }
  }
}

static polyccl_result check_read(checker *c, int32_t s, bool *safe) {
  touched in = find_input_read(c->v, s), own = find_output_write(c->v, s);
  for (int32_t k = in.cell; *safe && k < in.cell + in.count; k++) {
    int32_t writer = c->writer[k] - 1;
    if (writer < 0 || (c->asked[0] == s && c->asked[1] == writer)) {
      continue;
    }
    if (writer == s) {
      *safe = own.cell == in.cell;
      continue;
    }
    PCCL_TRY(pccl_reach_ask(c->reach, s, writer, safe));
    c->asked[0] = s;
    c->asked[1] = writer;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_ranks(checker *c, bool *safe) {
  for (int32_t rank = 0; *safe && rank < c->v->plan->ranks; rank++) {
    enter_writers(c, rank);
    for (size_t i = c->rank_from[rank]; *safe && i < c->rank_from[rank + 1]; i++) {
      PCCL_TRY(check_read(c, c->sorted[i], safe));
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- the plan in place ---- */

/* They touch no memory, so marks need not heed them. */
static void drop_still_copies(checker *c) {
  for (size_t s = 0; s < c->plan->steps; s++) {
    polyccl_step *step = &c->plan->step[s];
    bool copies = step->op == POLYCCL_STEP_COPY && step->dst_buf == POLYCCL_BUF_OUTPUT;
    if (copies && find_output_write(c->v, (int32_t)s).count == 0) {
      step->op = POLYCCL_STEP_NOP;
    }
  }
}

/* The phases before this one have seen the plan out of place; the cells are numbered anew. */
static polyccl_result alias_cells(pccl_verify *v) {
  free(v->cell);
  free(v->part);
  free(v->parts);
  v->cell = NULL, v->part = NULL, v->parts = NULL;
  v->spec.inplace = true;
  v->user_cells = pccl_collective_cells(&v->spec);
  return pccl_verify_cells(v);
}

static polyccl_result check_plan(checker *c, bool *safe) {
  pccl_verify *v = c->v;
  PCCL_TRY(pccl_verify_order_phases(v));
  PCCL_TRY(alias_cells(v));
  c->rank_from = pccl_array((size_t)v->plan->ranks + 1, sizeof *c->rank_from);
  c->sorted = pccl_array(v->plan->steps, sizeof *c->sorted);
  c->writer = pccl_array((size_t)v->user_cells, sizeof *c->writer);
  if (c->rank_from == NULL || c->sorted == NULL || c->writer == NULL) {
    return pccl_verify_no_memory(v, "a plan's form in place");
  }
  pccl_verify_sort_by_rank(v, c->rank_from, c->sorted);
  PCCL_TRY(pccl_reach_open(v, &c->reach));
  *safe = true;
  PCCL_TRY(check_ranks(c, safe));
  if (!*safe) {
    return POLYCCL_SUCCESS;
  }
  drop_still_copies(c);
  return pccl_verify_restrict_marks(v, c->plan);
}

static polyccl_step *copy_steps(const polyccl_plan *plan) {
  polyccl_step *step = pccl_array(plan->steps, sizeof *step);
  if (step != NULL && plan->steps > 0) {
    memcpy(step, plan->step, plan->steps * sizeof *step);
  }
  return step;
}

/* `inplace`: the plan with the marks that hold in place. */
static polyccl_result join_marks(const polyccl_plan *plan, const polyccl_plan *inplace, pccl_alias *alias) {
  alias->step = copy_steps(plan);
  if (alias->step == NULL) {
    return pccl_no_memory("a plan's form in place");
  }
  for (size_t s = 0; s < plan->steps; s++) {
    uint8_t get = plan->step[s].flags & POLYCCL_FLAG_GET, held = inplace->step[s].flags;
    alias->step[s].flags =
        (uint8_t)(get | (held & POLYCCL_FLAG_PUT) | ((held & POLYCCL_FLAG_GET) != 0 ? PCCL_FLAG_GET_IN_PLACE : 0));
  }
  alias->safe = true;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_alias_find(const polyccl_plan *plan, pccl_alias *alias) {
  pccl_alias found = {.safe = false};
  if (plan->inplace || plan->collective == POLYCCL_SENDRECV) {
    *alias = found;
    return POLYCCL_SUCCESS;
  }
  polyccl_plan still = *plan; /* but for its steps it is shared */
  still.step = copy_steps(plan);
  if (still.step == NULL) {
    return pccl_no_memory("a plan's form in place");
  }
  pccl_verify v = {.plan = &still};
  checker c = {.v = &v, .plan = &still, .asked = {-1, -1}};
  bool safe = false;
  polyccl_result result = check_plan(&c, &safe);
  if (result == POLYCCL_SUCCESS && safe) {
    result = join_marks(plan, &still, &found);
  }
  pccl_reach_close(c.reach);
  free(c.rank_from);
  free(c.sorted);
  free(c.writer);
  pccl_verify_free(&v);
  free(still.step);
  if (result == POLYCCL_SUCCESS) {
    *alias = found;
  }
  return result;
}

void pccl_alias_free(pccl_alias *alias) {
  free(alias->step);
  *alias = (pccl_alias){.safe = false};
}
