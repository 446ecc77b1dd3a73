/* Thread blocks of a scheduled IR, where each runs its nodes in the global order. */
#ifndef PCCL_COMPILER_MERGE_H
#define PCCL_COMPILER_MERGE_H

#include "compiler/ir.h"

/* A connection joins one thread block to one other: each pair of thread blocks gets a channel of its own. */
polyccl_result pccl_channels_of_blocks(pccl_ir *ir);

/* On every rank with the most thread blocks two become one, those that work least: `busy` [thread blocks, rank by
 * rank], summed up with them. `*merged` false: some rank has no two that may; nothing is changed. Channels and waits
 * are to be made anew afterwards. */
polyccl_result pccl_merge_blocks(pccl_ir *ir, double *busy, bool *merged);

#endif
