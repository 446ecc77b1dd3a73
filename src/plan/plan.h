/* What users of plans inside the library share: the collective of a plan, the traits of ops, copies. */
#ifndef PCCL_PLAN_PLAN_H
#define PCCL_PLAN_PLAN_H

#include <polyccl/plan.h>

#include "program/collective.h"

pccl_collective_spec pccl_plan_spec(const polyccl_plan *plan);

/* *plan is true for what polyccl_plan_parse() accepts by its beginning, plan text or MSCCL XML, and false for programs
 * (Lua, and the JSON and XML of synthesisers). Fails for a file that is neither. */
polyccl_result pccl_is_plan_file(const char *path, bool *plan);

/* What each op uses (docs/plan.md, Steps). All that depends on an op alone is read from here. */
typedef struct pccl_op_traits {
  const char *name, *xml;
  bool receives, sends;
  bool reads_src, writes_dst; /* memory */
  bool reads_dst;             /* reduce */
  bool reduces;
} pccl_op_traits;

extern const pccl_op_traits pccl_ops[POLYCCL_STEP_OP_COUNT];

/* True if steps of the op move chunks. Other steps (nop) only wait, and have no count. */
static inline bool pccl_op_moves(uint8_t op) { return pccl_ops[op].reads_src || pccl_ops[op].writes_dst; }

/* True if the op stores its message as it is (recv, rcs), so that the sender could store it instead. */
static inline bool pccl_op_stores_message(uint8_t op) {
  return pccl_ops[op].receives && pccl_ops[op].writes_dst && !pccl_ops[op].reduces;
}

/* The words for a step's flags in the text format, in the order in which they are written; a NULL word ends them. */
typedef struct pccl_flag_word {
  const char *word;
  uint8_t flag;
} pccl_flag_word;

extern const pccl_flag_word pccl_step_flags[];

/* True if [first, first + count) are indices of an array of `length` elements. */
static inline bool pccl_range_fits(int32_t first, int32_t count, size_t length) {
  return first >= 0 && count >= 0 && (size_t)first + (size_t)count <= length;
}

/* INVALID if an index of one array into another, or a number that must not be negative, is out of range. Every user of
 * a plan from outside calls this first. */
polyccl_result pccl_plan_well_formed(const polyccl_plan *plan);

/* Finds the min FIFO depth with which the plan cannot deadlock, for any number of micro-batches. Fails as the verifier
 * does for a plan whose bounds or messages are wrong or that deadlocks with every depth. */
polyccl_result pccl_plan_min_depth(const polyccl_plan *plan, int32_t *depth);

/* In place, one memory has two names. Gives the step's ranges the name that the formats use, which is that of the
 * buffer with more blocks, or input if they are equal. Ranges out of bounds keep their names. */
void pccl_plan_normalise(const polyccl_plan *plan, int rank, polyccl_step *step);

/* The author's place of a step; {NULL, 0} when unknown. */
polyccl_location pccl_step_location(const polyccl_plan *plan, const polyccl_step *step);

/* Copies the fields that are no arrays, but for the name, the ranks and the FIFO depth. */
void pccl_plan_copy_head(const polyccl_plan *from, polyccl_plan *to);

/* Copies all that the steps do not determine into a plan that has none of it: the name, connections, posts, leaves,
 * absent chunks, files and locations. MEMORY: `to` may hold a part of them, and can be destroyed. */
polyccl_result pccl_plan_copy_tables(const polyccl_plan *from, polyccl_plan *to);

/* The caller destroys the copy. */
polyccl_result pccl_plan_copy(const polyccl_plan *plan, polyccl_plan **copy);

#endif
