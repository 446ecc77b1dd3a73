/* What the parts of the verifier share: one context, built up phase by phase. Each phase may rely on what the phases
 * before it have proved, and on nothing else in the plan:
 *   verify_bounds.c    every index, range and count                    (first: the plan may come from a fuzzer)
 *   verify_cells.c     cells: the memory that steps touch
 *   verify_match.c     the k-th send meets the k-th receive
 *   verify_order.c     no deadlock; the min depth; an order for the phases that follow
 *   verify_tasks.c     no deadlock in task-major order
 *   verify_race.c      conflicting accesses are ordered                 (verify_reach.c: the hard questions)
 *   verify_reference.c get and put leave every pair of accesses ordered
 *   verify_post.c      symbolic execution                               (program/value.h: its values)
 *   verify_outputs.c   what it must leave in the outputs
 * docs/verifier.md says what is proved and why that suffices. */
#ifndef PCCL_PLAN_VERIFY_H
#define PCCL_PLAN_VERIFY_H

#include "plan/plan.h"

/* Bounds on the work and memory that a plan may cause, so that no input can hang the verifier: chunks that all steps
 * together touch, chunks of memory on all ranks together, different reductions. Each is a hundred times what known
 * plans need; the first bounds the time to some seconds. */
#define PCCL_VERIFY_MAX_TOUCHES ((size_t)1 << 27)
#define PCCL_VERIFY_MAX_CELLS ((size_t)1 << 27)
#define PCCL_VERIFY_MAX_SUMS ((size_t)1 << 25)
/* Steps that are visited to answer what clocks do not (verify_reach.c). */
#define PCCL_VERIFY_MAX_REACH ((size_t)1 << 28)

/* A range of scratch chunks that have cells, since steps touch them. Other scratch that a plan declares costs nothing.
 */
typedef struct pccl_scratch_part {
  int32_t first, end; /* chunks */
  int32_t cell;       /* of the first, counted from the rank's first cell of scratch */
} pccl_scratch_part;

typedef struct pccl_verify {
  const polyccl_plan *plan;
  pccl_collective_spec spec;
  int32_t user_cells; /* per rank: chunks of user memory; scratch follows */

  /* bounds */
  int32_t *step_tb;               /* [steps] */
  size_t *cell;                   /* [ranks + 1] number of the first cell of each rank */
  struct pccl_scratch_part *part; /* the scratch that steps touch, by rank and offset */
  size_t *parts;                  /* [ranks + 1] the first part of each rank */
  /* match */
  int32_t *from; /* [steps] the send whose message the step receives, or -1 */
  int32_t *to;   /* [steps] the receive that takes the step's message, or -1 */
  /* order */
  int32_t *order; /* [steps] a topological order of thread-block order, waits and messages */
  int32_t *level; /* [steps] steps on the longest chain that ends here */

  polyccl_verify_report report;
} pccl_verify;

polyccl_result pccl_verify_bounds(pccl_verify *v);
polyccl_result pccl_verify_cells(pccl_verify *v); /* the last part of bounds */
polyccl_result pccl_verify_match(pccl_verify *v);
polyccl_result pccl_verify_order(pccl_verify *v);
polyccl_result pccl_verify_tasks(const pccl_verify *v);
polyccl_result pccl_verify_race(const pccl_verify *v);
polyccl_result pccl_verify_post(pccl_verify *v);

/* The phases that find an order of the steps; all others need them. */
polyccl_result pccl_verify_order_phases(pccl_verify *v);
/* Frees what the phases have made. */
void pccl_verify_free(pccl_verify *v);

/* Answers whether one step certainly ends before another starts, by whatever path. */
typedef struct pccl_reach pccl_reach;
typedef struct pccl_reach_query {
  int32_t before, after;
  int32_t cell; /* for the caller's message */
} pccl_reach_query;

polyccl_result pccl_reach_open(const pccl_verify *v, pccl_reach **reach);
void pccl_reach_close(pccl_reach *reach); /* the reach may be NULL */
/* Sets *failed to the index of the first query whose answer is no, or to `count`. LIMIT: the search is too long. */
polyccl_result pccl_reach_ask_all(pccl_reach *reach, const pccl_reach_query *query, size_t count, size_t *failed);
/* Answers one query by a bounded search; *certain is also false if the search finds no answer. */
polyccl_result pccl_reach_ask(pccl_reach *reach, int32_t before, int32_t after, bool *certain);
/* True if PCCL_VERIFY_MAX_REACH is reached, so that searches find nothing more. */
bool pccl_reach_exhausted(const pccl_reach *reach);

/* verify_reference.c: checks the marks, sets all that are right. */
polyccl_result pccl_verify_references(pccl_verify *v);
polyccl_result pccl_verify_mark(pccl_verify *v, polyccl_plan *plan);
/* Keeps those of the marks that are right. */
polyccl_result pccl_verify_restrict_marks(pccl_verify *v, polyccl_plan *plan);

static inline const polyccl_thread_block *pccl_verify_tb(const pccl_verify *v, size_t step) {
  return &v->plan->tb[v->step_tb[step]];
}

static inline int32_t pccl_verify_rank(const pccl_verify *v, size_t step) { return pccl_verify_tb(v, step)->rank; }

/* The step's index in its thread block. */
static inline int32_t pccl_verify_index(const pccl_verify *v, size_t step) {
  return (int32_t)step - pccl_verify_tb(v, step)->step;
}

/* The waited-for step, as an index into the plan's steps. */
static inline int32_t pccl_verify_awaited(const pccl_verify *v, int32_t rank, const polyccl_wait *wait) {
  return v->plan->tb[v->plan->rank[rank].tb + wait->tb].step + wait->step;
}

/* The topological order, rank by rank: the steps of rank r are sorted[first[r]] up to sorted[first[r + 1]].
 * `first` has [ranks + 1] elements, `sorted` [steps]. */
void pccl_verify_sort_by_rank(const pccl_verify *v, size_t *first, int32_t *sorted);

/* The largest number of cells of a rank. */
size_t pccl_verify_max_cells(const pccl_verify *v);

/* The cell of chunk `index` of scratch, which a step touches, counted on its rank. */
int32_t pccl_verify_scratch_cell(const pccl_verify *v, int32_t rank, int32_t index);

/* The cell of a chunk that a step touches, counted on its rank; names of one memory share it. The chunks of an operand
 * have consecutive cells. */
static inline int32_t pccl_verify_cell(const pccl_verify *v, int32_t rank, uint8_t buffer, int32_t index) {
  if (buffer == POLYCCL_BUF_SCRATCH) {
    return pccl_verify_scratch_cell(v, rank, index);
  }
  return pccl_collective_cell(&v->spec, rank, buffer == POLYCCL_BUF_OUTPUT, index);
}

/* POLYCCL_ERROR_MEMORY: "out of memory for WHAT", and how large the plan is. */
polyccl_result pccl_verify_no_memory(const pccl_verify *v, const char *what) __attribute__((cold));

const char *pccl_verify_buffer(uint8_t buffer); /* "input", "output", "scratch" */

/* "rank 0 tb 1 step 4 (rcs, ring.lua:7)" */
typedef struct pccl_step_name {
  char text[192];
} pccl_step_name;
pccl_step_name pccl_verify_name(const pccl_verify *v, int32_t step);

/* POLYCCL_ERROR_INVALID: "ring.lua:7: rank 0 tb 1 step 4 (rcs): ...". Only after step_tb is known to be right. */
polyccl_result pccl_verify_fail(const pccl_verify *v, int32_t step, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

#endif
