/* The compiler's intermediate form (IR). Each pass has a file; passes.c has the table of who runs which:
 *
 *   refine   cuts the program's operations into instances and places them in the plan's buffers: moves
 *   lower    a move between ranks becomes a send and a receive; dependencies between the nodes of a rank
 *   fuse     a receive and the send of what it stored become one node (rcs, rrcs, rrs)
 *   channel  equal routes share a channel, others take the lowest where their fused nodes fit
 *   order    makes one global order, first by depth; every thread block runs its nodes in it
 *   block    makes thread blocks with one send peer, one receive peer and one channel (MSCCLang's policy "connection")
 *   wait     turns dependencies between thread blocks into waits, without those already implied
 *   emit     writes the plan
 *
 * Policy "state" has these between lower and wait:
 *   schedule  puts tasks (a message, or a local node) into sub-pipelines, by HPDS or in turn
 *   allocate  makes thread blocks and channels, which endpoints of different sub-pipelines share
 * Schedule "best" (search.c) runs these as well, after lower or fuse:
 *   list      schedules flows (a chain of fused messages) in time, with thread blocks and links as resources
 *   merge     makes one of two thread blocks that work little by a simulated timeline
 *
 * An instance is one of the parts that an operation is cut into: the program's copies times the parts of the
 * parallelize scope that it stands in. Instances never share a channel or a thread block under policy "connection".
 */
#ifndef PCCL_COMPILER_IR_H
#define PCCL_COMPILER_IR_H

#include <stdio.h>

#include <polyccl/compile.h>

#include "base/vec.h"
#include "plan/plan.h"
#include "program/program.h"

/* Channel numbers stay below this, with every instance on channels of its own. Keys pack them into 16 bits. */
enum { PCCL_MAX_CHANNELS = 1 << 15 };

/* One copy or reduction of `count` chunks of the plan, in one instance. */
typedef struct pccl_ir_move {
  int32_t src_rank, src, dst_rank, dst;
  int32_t acc; /* reduce: where the local operand is, in acc_buf; copy: unused */
  int32_t count;
  int32_t instance, location;
  int32_t channel, send_tb, recv_tb; /* the author's hints, for this instance; -1: none */
  uint8_t src_buf, dst_buf, acc_buf;
  uint8_t kind; /* pccl_operation_kind */
} pccl_ir_move;

typedef struct pccl_node {
  int32_t rank;
  int32_t src, dst, count;
  int32_t from, to; /* the node whose message this one receives; the node that receives what it sends; or -1 */
  int32_t instance, location;
  int32_t channel; /* -1 until known; local nodes stay -1 */
  int32_t tb;      /* the author's hint, then the thread block's number on its rank */
  int32_t step;
  int32_t pred, preds;     /* in ir->preds: nodes of the same rank that must end before */
  int32_t wait, waits;     /* in ir->waits */
  int32_t pipeline;        /* policy "state": the sub-pipeline of its task */
  int32_t depth, priority; /* nodes on the longest path from a start; to an end */
  int32_t reads, kills;    /* of the chunks it wrote: how many are read, how many are overwritten or never needed */
  uint8_t op, src_buf, dst_buf;
  uint8_t gone; /* 1: fused into another node */
} pccl_node;

typedef struct pccl_ir {
  const polyccl_program *program;
  const polyccl_compile_options *options;
  pccl_collective_spec spec; /* of the plan: chunks after refinement, in or out of place as compiled */
  int32_t program_instances; /* copies of the whole program */
  int32_t refine;            /* parts that every chunk is cut into: instances x the scopes' common factor */
  int32_t instances;         /* of the operation that has most: program_instances x the parts of its scope */
  int32_t max_hops;          /* messages of a fused chain; 0: no bound */
  int32_t *scratch;          /* [ranks] chunks of scratch */
  size_t *first_slot;        /* [ranks + 1] slots: cells of user memory, then scratch */
  PCCL_VEC(pccl_ir_move) moves;
  PCCL_VEC(pccl_node) nodes;
  PCCL_VEC(int32_t) preds;
  uint8_t *apart;  /* [nodes] not to be fused; NULL: none */
  uint8_t *hinted; /* [nodes] heads of routes whose channel the author chose */
  int32_t *into;   /* [nodes] the node that a gone one lives on in; itself otherwise */
  polyccl_loop_order loop;
  PCCL_VEC(int32_t) order; /* all nodes that are left, in the global order */
  PCCL_VEC(polyccl_wait) waits;
  int32_t *tbs; /* [ranks] thread blocks */
} pccl_ir;

/* Adds the seconds since `*since` to *to and moves `*since` to now; nothing without times. */
#define PCCL_LAP(ir, since, phase) \
  ((ir)->options->times != NULL ? (void)((ir)->options->times->phase += pccl_seconds_since(since)) : (void)0)
double pccl_seconds_since(double *since);

/* An empty IR of the program, which borrows the program and the options (NULL: the defaults). instances 0: as many as
 * the program asks for. */
pccl_ir pccl_ir_of(const polyccl_program *program, const polyccl_compile_options *options, int32_t instances);
void pccl_ir_free(pccl_ir *ir);
void pccl_ir_dump(const pccl_ir *ir, FILE *to);

/* In debug builds: the invariants that passes rely on, INTERNAL where one is broken. */
polyccl_result pccl_ir_check(const pccl_ir *ir, const char *pass);

/* The slot of a chunk of the plan's buffers; two names of one chunk share it. */
size_t pccl_ir_slot(const pccl_ir *ir, int rank, uint8_t buffer, int32_t offset);

/* Custom collectives: the program's chunk that part `i` of a buffer of `chunks` program chunks belongs to, and back. */
int32_t pccl_ir_chunk_of_part(const pccl_ir *ir, int32_t chunks, int32_t i);
int32_t pccl_ir_part_of_chunk(const pccl_ir *ir, int32_t chunks, int32_t chunk, int32_t part);

polyccl_location pccl_ir_location(const pccl_ir *ir, const pccl_node *node);

/* LIMIT or INVALID for what refine would refuse, without running it. */
polyccl_result pccl_refine_check(const pccl_ir *ir);

/* The passes, as passes.c runs them. Each expects what the pass before it in the table left. */
polyccl_result pccl_pass_refine(pccl_ir *ir);
polyccl_result pccl_pass_lower(pccl_ir *ir);
polyccl_result pccl_pass_fuse(pccl_ir *ir);
polyccl_result pccl_pass_channel(pccl_ir *ir);
polyccl_result pccl_pass_order(pccl_ir *ir);
polyccl_result pccl_pass_block(pccl_ir *ir);
polyccl_result pccl_pass_schedule(pccl_ir *ir);
polyccl_result pccl_pass_allocate(pccl_ir *ir);
polyccl_result pccl_pass_wait(pccl_ir *ir);
polyccl_result pccl_pass_emit(const pccl_ir *ir, polyccl_plan **plan);

/* Fills depth and priority of the nodes that are left. */
void pccl_ir_depths(pccl_ir *ir);

#endif
