/* The plan: who does what, when, on which thread block. docs/plan.md defines the abstract machine and the text format;
 * this header is its data structure. The executors and the simulator run exactly this. The ops and connections are
 * those of MSCCL (Cowan et al., MSCCLang, ASPLOS'23); task-major order is that of ResCCL (SIGCOMM'25).
 *
 * A plan is flat arrays, which anybody may read. polyccl_compile() and the readers below make plans; a caller may also
 * fill the arrays of polyccl_plan_create(). A plan that the compiler did not make must pass polyccl_plan_verify()
 * before it runs.
 *
 * Thread safety: a plan has no lock. Functions that take a const plan may run on one plan at the same time; nobody may
 * change or destroy it meanwhile. Functions on different plans are independent. */
#ifndef POLYCCL_PLAN_H
#define POLYCCL_PLAN_H

#include <stdbool.h>
#include <stdio.h>

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a step does; "msg" is the next message of its receive connection (docs/plan.md, Steps). CONTRIBUTING.md lists
 * the places that a new op changes. */
typedef enum polyccl_step_op {
  POLYCCL_STEP_NOP = 0, /* nothing: the step only waits */
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

/* These flags allow a message to go by reference (docs/plan.md, By reference); an executor may ignore them. GET is for
 * steps that send, PUT for recv and rcs. */
enum { POLYCCL_FLAG_GET = 1, POLYCCL_FLAG_PUT = 2 };

typedef enum polyccl_loop_order {
  POLYCCL_BATCH_MAJOR = 0, /* all steps for one micro-batch, then the next micro-batch (MSCCL) */
  POLYCCL_TASK_MAJOR       /* one step for all micro-batches, then the next step (ResCCL) */
} polyccl_loop_order;

typedef struct polyccl_wait {
  int32_t tb, step; /* a thread block of the same rank, and a step of it; both count from 0 */
} polyccl_wait;

/* Offsets and count are in chunks. Fields that the op does not use are 0 (buffers, offsets, count) or -1 (connections).
 */
typedef struct polyccl_step {
  uint8_t op;               /* polyccl_step_op */
  uint8_t src_buf, dst_buf; /* polyccl_plan_buffer */
  uint8_t flags;            /* set of POLYCCL_FLAG_* */
  int32_t src, dst, count;
  int32_t recv, send;  /* indices into connections, or -1 */
  int32_t wait, waits; /* the first of the step's waits in the plan's array, and their number */
  int32_t location;    /* index into locations, or -1 */
} polyccl_step;

typedef struct polyccl_thread_block {
  int32_t rank;
  int32_t step, steps; /* the first of its steps in the plan's array, and their number */
} polyccl_thread_block;

typedef struct polyccl_connection {
  int32_t src, dst, channel; /* two different ranks; no other connection has the same three */
} polyccl_connection;

typedef struct polyccl_plan_rank {
  int32_t input, output, scratch; /* chunks; input and output are those of polyccl_plan_shape() */
  int32_t tb, tbs;                /* the first of its thread blocks in the plan's array, and their number */
} polyccl_plan_rank;

/* At the end the output chunk must hold the reduction of the leaves. Only custom collectives have these. */
typedef struct polyccl_post {
  int32_t rank, chunk;  /* the output chunk */
  int32_t leaf, leaves; /* the first of its leaves in the plan's array, and their number */
} polyccl_post;

typedef struct polyccl_plan {
  char *name;
  polyccl_collective collective;
  int32_t ranks;
  int32_t chunks;     /* per block (program.h, Shapes), after replication */
  int32_t chunks_out; /* custom: chunks of output; for other collectives the same as chunks */
  bool inplace;       /* input and output are one memory */
  int32_t root, peer;
  polyccl_protocol protocol;
  polyccl_loop_order order;
  int32_t fifo_depth;            /* slots of a connection with which the plan is safe; 0: not known (see the readers) */
  uint64_t min_bytes, max_bytes; /* the plan is meant for sizes in [min, max]; max 0: no limit */
  uint32_t redops;               /* bit set of polyccl_redop that may run; 0: all */

  polyccl_plan_rank *rank; /* [ranks] */
  polyccl_thread_block *tb;
  polyccl_step *step;
  polyccl_wait *wait;
  polyccl_connection *connection;
  size_t tbs, steps, waits, connections;

  polyccl_post *post; /* custom only */
  polyccl_leaf *leaf;
  polyccl_leaf *absent; /* custom only: input chunks that hold nothing at the start */
  size_t posts, leaves, absents;

  char **file; /* the source files that locations refer to */
  struct polyccl_plan_location {
    int32_t file, line;
  } * location;
  size_t files, locations;
} polyccl_plan;

/* Creates an empty plan: all fields are zero except ranks and rank, an array of `ranks` zeroed elements. The caller
 * owns the plan and destroys it. The plan owns its arrays, its name and each file; whoever grows them does so with
 * malloc() and realloc(). Errors: INVALID for less than 1 rank, MEMORY. */
POLYCCL_API polyccl_result polyccl_plan_create(int ranks, polyccl_plan **plan);
POLYCCL_API void polyccl_plan_destroy(polyccl_plan *plan); /* the plan may be NULL */

/* Sets *input and *output to the chunks that the plan's collective gives these buffers of `rank`, which are the same in
 * place and out of place. The plan's collective, ranks and chunks must be valid. */
POLYCCL_API void polyccl_plan_shape(const polyccl_plan *plan, int rank, int32_t *input, int32_t *output);

/* The name of an op in the text format: "send", "rcs", ... NULL for a value out of range. The text is static. */
POLYCCL_API const char *polyccl_step_op_name(polyccl_step_op op);

/* ---- formats ---- */

typedef enum polyccl_format {
  POLYCCL_FORMAT_PLAN = 0,  /* the text format of docs/plan.md */
  POLYCCL_FORMAT_XML,       /* MSCCL XML, the microsoft/msccl dialect */
  POLYCCL_FORMAT_XML_AZURE, /* MSCCL XML, the Azure executor's dialect */
  POLYCCL_FORMAT_XML_RCCL   /* the same dialect for RCCL since ROCm 6.1, which has no fused steps: they are split */
} polyccl_format;

/* Reads a plan in the text format or in XML, which it recognises by its beginning. `text` has `length` bytes and need
 * not end in 0; `name` stands for it in errors ("name:line: ..."). polyccl_plan_read() reads the file `path`, at most
 * 2^31 - 1 bytes. The plan is well formed (indices are in range); only the verifier says whether it is right. If the
 * text names no FIFO depth, fifo_depth is the min depth with which the plan can run, or 0 if the verifier will refuse
 * the plan. The caller destroys the plan. Errors: INVALID with the place of the fault, LIMIT, MEMORY, SYSTEM for a file
 * that cannot be read. */
POLYCCL_API polyccl_result polyccl_plan_parse(const char *name, const char *text, size_t length, polyccl_plan **plan);
POLYCCL_API polyccl_result polyccl_plan_read(const char *path, polyccl_plan **plan);
/* Writes the plan to `to`, which the caller closes; the same plan always gives the same bytes. Errors: INVALID for a
 * plan that is not well formed, LIMIT and UNSUPPORTED for one that the target of the format cannot take (the message
 * names the limit and a remedy), MEMORY, SYSTEM if writing fails. After an error `to` may hold a part of the text. */
POLYCCL_API polyccl_result polyccl_plan_write(const polyccl_plan *plan, polyccl_format format, FILE *to);

/* Reports what users of a plan written in `format` must know and neither the file nor its executor tells them: calls
 * `report` with `context` and one sentence for each caveat, in the calling thread. Most plans have none. The text is
 * valid during the call. The plan must be right (polyccl_plan_verify()). */
POLYCCL_API void polyccl_plan_caveats(const polyccl_plan *plan, polyccl_format format,
                                      void (*report)(void *context, const char *text), void *context);

/* ---- verifier ---- */

typedef struct polyccl_verify_report {
  int32_t fifo_depth; /* the min depth with which no deadlock is possible, for any number of micro-batches */
  bool uneven;        /* the plan is right also for counts that the chunks do not divide */
  bool identical;     /* every rank gets the same bits */
  int32_t channels;   /* highest channel + 1 */
  int32_t max_tbs;    /* the max number of thread blocks on a rank */
  size_t longest;     /* steps on the longest chain of steps that wait for one another */
} polyccl_verify_report;

/* Proves that the plan is right: indices and counts are in range; sends and receives match in order and count; no
 * deadlock is possible with the plan's fifo_depth, for any number of micro-batches; there is no data race; every output
 * chunk is right at the end. docs/verifier.md says how and why that suffices. The plan may come from anywhere.
 * `report` may be NULL; it is set on success only. A plan with fifo_depth 0 is checked with the min depth, which the
 * report names. Errors: INVALID with the first fault (rank, thread block, step, the author's line), LIMIT if the proof
 * exceeds the bounds of docs/verifier.md, MEMORY. */
POLYCCL_API polyccl_result polyccl_plan_verify(const polyccl_plan *plan, polyccl_verify_report *report);

#ifdef __cplusplus
}
#endif

#endif
