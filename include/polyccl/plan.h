/* The plan: who does what, when, on which thread block. docs/plan.md defines the abstract machine and the text format;
 * this header is its data structure. Every executor and the simulator run exactly this.
 *
 * A plan is flat arrays, open to read. Plans are made by polyccl_compile(), by the readers below, or by hand with
 * polyccl_plan_create() and the arrays; a plan from anywhere else must pass polyccl_plan_verify() before it runs. */
#ifndef POLYCCL_PLAN_H
#define POLYCCL_PLAN_H

#include <stdbool.h>
#include <stdio.h>

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a step does; "msg" is the next message of its receive connection (docs/plan.md, Steps). */
typedef enum polyccl_step_op {
  POLYCCL_STEP_NOP = 0, /* waits only */
  POLYCCL_STEP_SEND,    /* send src */
  POLYCCL_STEP_RECV,    /* dst = msg */
  POLYCCL_STEP_RCS,     /* dst = msg, send msg */
  POLYCCL_STEP_RRC,     /* dst = src + msg */
  POLYCCL_STEP_RRCS,    /* dst = src + msg, send dst */
  POLYCCL_STEP_RRS,     /* send src + msg; nothing is stored */
  POLYCCL_STEP_COPY,    /* dst = src */
  POLYCCL_STEP_REDUCE,  /* dst = dst + src */
  POLYCCL_STEP_OP_COUNT
} polyccl_step_op;

/* The plan has one scratch buffer per rank; input and output as in program.h. */
typedef enum polyccl_plan_buffer { POLYCCL_BUF_INPUT = 0, POLYCCL_BUF_OUTPUT, POLYCCL_BUF_SCRATCH } polyccl_plan_buffer;

/* Marks that a message may go by reference (docs/plan.md, By reference); an executor may ignore them.
 * GET stands on a step that sends, PUT on a recv or rcs. */
enum { POLYCCL_FLAG_GET = 1, POLYCCL_FLAG_PUT = 2 };

typedef enum polyccl_loop_order {
  POLYCCL_BATCH_MAJOR = 0, /* all steps for a micro-batch, then the next micro-batch (MSCCL) */
  POLYCCL_TASK_MAJOR       /* a step for all its micro-batches, then the next step (ResCCL) */
} polyccl_loop_order;

typedef struct polyccl_wait {
  int32_t tb, step; /* of the same rank: thread block (local number) and step (0-based in it) */
} polyccl_wait;

/* Offsets and count in chunks. Fields an op does not use are 0 (buffers, offsets) or -1 (connections). */
typedef struct polyccl_step {
  uint8_t op;               /* polyccl_step_op */
  uint8_t src_buf, dst_buf; /* polyccl_plan_buffer */
  uint8_t flags;            /* set of POLYCCL_FLAG_* */
  int32_t src, dst, count;
  int32_t recv, send;  /* indices into connections, or -1 */
  int32_t wait, waits; /* first index and number in the plan's waits */
  int32_t location;    /* index into locations, or -1 */
} polyccl_step;

typedef struct polyccl_thread_block {
  int32_t rank;
  int32_t step, steps; /* first index and number in the plan's steps */
} polyccl_thread_block;

typedef struct polyccl_connection {
  int32_t src, dst, channel; /* ranks; unique as a triple */
} polyccl_connection;

typedef struct polyccl_plan_rank {
  int32_t input, output, scratch; /* chunks; what the collective defines, see polyccl_plan_shape() */
  int32_t tb, tbs;                /* first index and number in the plan's thread blocks */
} polyccl_plan_rank;

/* Custom collectives only. */
typedef struct polyccl_post {
  int32_t rank, chunk;  /* this output chunk ... */
  int32_t leaf, leaves; /* ... must be the reduction of these (first index and number in the plan's leaves) */
} polyccl_post;

typedef struct polyccl_plan {
  char *name;
  polyccl_collective collective;
  int32_t ranks;
  int32_t chunks;     /* per block (program.h, Shapes), after replication */
  int32_t chunks_out; /* custom: chunks of output; else equal to chunks */
  bool inplace;       /* input and output are one memory */
  int32_t root, peer;
  polyccl_protocol protocol;
  polyccl_loop_order order;
  int32_t fifo_depth;            /* slots of a connection that the plan is safe with; 0: not known (see the readers) */
  uint64_t min_bytes, max_bytes; /* meant for sizes in [min, max]; max 0: no limit */
  uint32_t redops;               /* bit set of polyccl_redop that may run; 0: all */

  polyccl_plan_rank *rank; /* [ranks] */
  polyccl_thread_block *tb;
  polyccl_step *step;
  polyccl_wait *wait;
  polyccl_connection *connection;
  size_t tbs, steps, waits, connections;

  polyccl_post *post; /* custom */
  polyccl_leaf *leaf;
  polyccl_leaf *absent; /* custom: input chunks that hold nothing at the start */
  size_t posts, leaves, absents;

  char **file; /* source files that locations refer to */
  struct polyccl_plan_location {
    int32_t file, line;
  } * location;
  size_t files, locations;
} polyccl_plan;

/* All zero but ranks and their array; arrays are grown by the owner with malloc/realloc. */
POLYCCL_API polyccl_result polyccl_plan_create(int ranks, polyccl_plan **plan);
POLYCCL_API void polyccl_plan_destroy(polyccl_plan *plan);

/* Chunks of input and output that the plan's collective gives `rank` (out of place or in place the same). */
POLYCCL_API void polyccl_plan_shape(const polyccl_plan *plan, int rank, int32_t *input, int32_t *output);

POLYCCL_API const char *polyccl_step_op_name(polyccl_step_op op); /* "send", "rcs", ... */

/* ---- formats ---- */

typedef enum polyccl_format {
  POLYCCL_FORMAT_PLAN = 0,  /* docs/plan.md */
  POLYCCL_FORMAT_XML,       /* MSCCL XML, the microsoft/msccl dialect */
  POLYCCL_FORMAT_XML_AZURE, /* MSCCL XML, the Azure executor's dialect */
  POLYCCL_FORMAT_XML_RCCL   /* the same dialect with what RCCL takes since ROCm 6.1: fused steps are split */
} polyccl_format;

/* `name` stands for the text in messages ("name:line: ..."); text need not end in 0. Reads both plan text and XML (told
 * apart by the first character). What is read is well formed (indices in range); only the verifier says whether it is
 * right. Where the text names no FIFO depth, fifo_depth is the min that the plan can run with; it is 0 only for a plan
 * that the verifier refuses. */
POLYCCL_API polyccl_result polyccl_plan_parse(const char *name, const char *text, size_t length, polyccl_plan **plan);
POLYCCL_API polyccl_result polyccl_plan_read(const char *path, polyccl_plan **plan);
/* Errors: a plan that does not fit the format's limits (the message names limit and remedy). */
POLYCCL_API polyccl_result polyccl_plan_write(const polyccl_plan *plan, polyccl_format format, FILE *to);

/* What those who run a plan written in `format` must know, and neither the file nor its executor says: calls `take`
 * with a sentence each. Not at all for most plans. `plan` is right (polyccl_plan_verify()). */
POLYCCL_API void polyccl_plan_caveats(const polyccl_plan *plan, polyccl_format format,
                                      void (*take)(void *context, const char *text), void *context);

/* ---- verifier ---- */

typedef struct polyccl_verify_report {
  int32_t fifo_depth; /* the least depth with which no deadlock is possible, for any number of micro-batches */
  bool uneven;        /* right also for counts that the chunks do not divide */
  bool identical;     /* every rank gets the same bits */
  int32_t channels;   /* highest channel + 1 */
  int32_t max_tbs;    /* most thread blocks on a rank */
  size_t longest;     /* steps on the longest chain */
} polyccl_verify_report;

/* Proves: indices and counts in range; sends and receives match in order and count; no deadlock with the plan's
 * fifo_depth for any number of micro-batches; no data race; every output chunk is right at the end (translation
 * validation on the final plan). POLYCCL_ERROR_INVALID with the first fault in the message: rank, thread block, step,
 * the author's line. `report` may be NULL; it is set on success only. A plan with fifo_depth 0 gets the least one. */
POLYCCL_API polyccl_result polyccl_plan_verify(const polyccl_plan *plan, polyccl_verify_report *report);

#ifdef __cplusplus
}
#endif

#endif
