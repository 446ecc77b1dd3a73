/* Thread blocks of a scheduled IR, where each runs its nodes in the global order. */
#ifndef PCCL_COMPILER_MERGE_H
#define PCCL_COMPILER_MERGE_H

#include "compiler/ir.h"

/* A connection joins one thread block to one other: each pair of thread blocks gets a channel of its own. */
polyccl_result pccl_channels_of_blocks(pccl_ir *ir);

/* On every rank that has the largest number of thread blocks, the two that work least become one. `busy` is us of work
 * of each thread block, rank by rank, and is summed up with them. `*merged` false: some rank has no two that may become
 * one, and nothing is changed. The caller makes channels and waits anew afterwards. */
polyccl_result pccl_merge_blocks(pccl_ir *ir, double *busy, bool *merged);

#endif
