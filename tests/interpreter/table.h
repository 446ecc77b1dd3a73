/* The table of collectives of docs/plan.md, told once more for the interpreter. */
#ifndef PCCL_TESTS_INTERPRETER_TABLE_H
#define PCCL_TESTS_INTERPRETER_TABLE_H

#include "interpreter.h"

int32_t table_inputs(const polyccl_plan *plan);  /* chunks */
int32_t table_outputs(const polyccl_plan *plan); /* chunks */
bool table_has_root(const polyccl_plan *plan);

/* Chunks of all buffers of a rank, and where chunk k of a buffer is among them: output, then input, then scratch; in
 * place input and output meet. */
int32_t table_cells(const polyccl_plan *plan, int32_t rank);
int32_t table_cell(const polyccl_plan *plan, int32_t rank, uint8_t buffer, int32_t k);

/* The number of input element (rank, chunk, micro-batch); a special float where the reduction is of floats. */
uint64_t table_leaf(const interpreter_options *options, int32_t rank, int32_t chunk, int32_t batch);

/* a + b of docs/plan.md. */
uint64_t table_reduce(interpreter_reduction reduction, uint64_t a, uint64_t b);

/* What output chunk k of the rank must hold at the end; false: it may hold anything. */
bool table_wanted(const polyccl_plan *plan, const interpreter_options *options, int32_t rank, int32_t k, int32_t batch,
                  uint64_t *number);

#endif
