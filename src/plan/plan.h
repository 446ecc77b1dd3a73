/* What the plan folder shares: the collective of a plan, ops as data. */
#ifndef PCCL_PLAN_PLAN_H
#define PCCL_PLAN_PLAN_H

#include <polyccl/plan.h>

#include "program/collective.h"

pccl_collective_spec pccl_plan_spec(const polyccl_plan *plan);

/* True for what polyccl_plan_parse() takes, by its beginning: plan text or MSCCL XML. Programs (Lua, and the JSON and
 * XML of synthesisers) are not. */
bool pccl_is_plan(const char *text, size_t length);
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

/* The words that stand for a step's flags in the text format, in the order they are written; ends with a NULL word. */
typedef struct pccl_flag_word {
  const char *word;
  uint8_t flag;
} pccl_flag_word;

extern const pccl_flag_word pccl_step_flags[];

/* True if [first, first + count) are indices of an array of `length` elements. */
static inline bool pccl_range_fits(int32_t first, int32_t count, size_t length) {
  return first >= 0 && count >= 0 && (size_t)first + (size_t)count <= length;
}

/* INVALID when an index of one array into another, or a number that must not be negative, is out of range: what every
 * user of a plan that was not made here relies on before it looks further. */
polyccl_result pccl_plan_well_formed(const polyccl_plan *plan);

/* The min FIFO depth with which the plan cannot deadlock, for any number of micro-batches. Fails, as the verifier does,
 * for a plan whose bounds or messages are wrong, or that no depth saves. */
polyccl_result pccl_plan_min_depth(const polyccl_plan *plan, int32_t *depth);

/* In place, one memory has two names: gives the step's ranges the one that the formats use, which is the buffer of
 * more blocks (input where they are equal). Ranges out of bounds keep theirs. */
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
