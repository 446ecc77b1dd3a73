/* The passes as a table. compile.c and the search run groups of its rows; the names that --dump knows, the invariants
 * that debug builds check after each pass and the times by phase follow from the rows. */
#ifndef PCCL_COMPILER_PASSES_H
#define PCCL_COMPILER_PASSES_H

#include "compiler/ir.h"

/* A policy is LOWERING and one of the others. Groups are bits, and a row may belong to several. */
typedef enum pccl_pass_group {
  PCCL_PASSES_LOWERING = 1,   /* from the program to dependent sends, receives and local nodes */
  PCCL_PASSES_CONNECTION = 2, /* from there to numbered steps: policy "connection" */
  PCCL_PASSES_STATE = 4       /* from there to numbered steps: policy "state", except schedule "best" */
} pccl_pass_group;

/* Runs the rows of the groups in the order of the table. The IR is ready for emit after LOWERING and a policy's group.
 */
polyccl_result pccl_passes_run(pccl_ir *ir, unsigned groups);

/* Writes the IR where the options ask for a dump after a pass of the groups. The search calls passes by itself, so
 * compile.c calls this after it. */
void pccl_passes_dump(const pccl_ir *ir, unsigned groups);

/* INVALID where the options ask for a dump after a pass that the table does not have. */
polyccl_result pccl_passes_check_dump(const polyccl_compile_options *options);

#endif
