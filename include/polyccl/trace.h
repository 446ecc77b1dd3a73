/* Traces: what each thread block did over time, from the simulator or from a real run. `polyccl view` shows them. They
 * are written and read as Chrome trace events (docs/view.md), which Perfetto and chrome://tracing can show too.
 *
 *   polyccl_trace *trace;
 *   polyccl_trace_create(plan, "measured", &trace);
 *   for each event, in any order:
 *     polyccl_trace_add(trace, &(polyccl_trace_event){.rank = r, .tb = t, .step = s, .batch = m,
 *                                                     .state = POLYCCL_TRACE_BUSY, .begin = 1.5, .end = 2.25});
 *   polyccl_trace_finish(trace);
 *   polyccl_trace_write(trace, file);
 *
 * A step of one micro-batch has any number of waiting events and then one busy event, which lasts from the moment the
 * step has all that it waits for until it ends. Only one thread may use a trace at a time while it is built; a finished
 * trace may be read by several. */
#ifndef POLYCCL_TRACE_H
#define POLYCCL_TRACE_H

#include <stdbool.h>
#include <stdio.h>

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum polyccl_trace_state {
  POLYCCL_TRACE_BUSY = 0,
  POLYCCL_TRACE_WAIT_DATA,   /* the message it receives has not arrived */
  POLYCCL_TRACE_WAIT_CREDIT, /* its send connection has no free slot */
  POLYCCL_TRACE_WAIT_BLOCK,  /* a step of another thread block that it waits on has not ended */
  POLYCCL_TRACE_STATE_COUNT
} polyccl_trace_state;

/* Times in us since the call began. */
typedef struct polyccl_trace_event {
  int32_t rank, tb, step; /* as in the plan: thread block of the rank, step of the thread block */
  int32_t batch;          /* micro-batch */
  polyccl_trace_state state;
  bool critical; /* on the critical path */
  double begin, end;
} polyccl_trace_event;

/* ---- a finished trace; its arrays are open to read ---- */

typedef struct polyccl_trace_record {
  double begin, end;
  int32_t step; /* index into the trace's steps */
  int32_t batch;
  int32_t message; /* of a busy record that receives: the record that sent the message; else -1 */
  uint8_t state;   /* polyccl_trace_state */
  bool critical;
} polyccl_trace_record;

/* A step of the plan; the fields are those of polyccl_step. */
typedef struct polyccl_trace_step {
  int32_t block, number; /* index into `block`; the number of the step in its thread block */
  uint8_t op, src_buf, dst_buf;
  int32_t src, dst, count;
  int32_t recv_rank, recv_channel, send_rank, send_channel; /* -1: it does not receive, or send */
  int32_t wait, waits;                                      /* first index into `wait`, and how many */
  int32_t place;                                            /* index into `place`, or -1 */
  int32_t message;                                          /* index of the step that sends what it receives, or -1 */
} polyccl_trace_step;

typedef struct polyccl_trace_block {
  int32_t rank, tb;
  size_t record, records; /* first index into `record`, and how many, in order of time */
  size_t step, steps;
} polyccl_trace_block;

/* From a sample to the next of the same link the rate is constant; before the first it is 0. */
typedef struct polyccl_trace_sample {
  double time, rate; /* us, GB/s */
  int32_t link;
} polyccl_trace_sample;

typedef struct polyccl_trace_link {
  char *name;
  double bandwidth;       /* GB/s, 0: unknown */
  size_t sample, samples; /* first index into `sample`, and how many, in order of time */
} polyccl_trace_link;

typedef struct polyccl_trace {
  char *name;   /* of the plan */
  char *source; /* "simulated" or "measured" */
  polyccl_trace_block *block;
  polyccl_trace_step *step;
  polyccl_wait *wait;
  polyccl_trace_record *record; /* by block, then time */
  polyccl_trace_link *link;
  polyccl_trace_sample *sample; /* by link, then time */
  char **place;                 /* "ring.lua:12" */
  size_t blocks, steps, waits, records, links, samples, places;
  double duration; /* us: the latest end */
  bool finished;
  struct pccl_trace_building *building; /* internal */
} polyccl_trace;

/* Makes a trace with the thread blocks and steps of the plan and no records. It keeps no pointer to the plan or to
 * `source`. The caller owns `*trace`. Errors: MEMORY. The plan must be well formed. */
POLYCCL_API polyccl_result polyccl_trace_create(const polyccl_plan *plan, const char *source, polyccl_trace **trace);

/* Frees a trace. NULL is allowed. */
POLYCCL_API void polyccl_trace_destroy(polyccl_trace *trace);

/* Add an event; a link, with its bandwidth in GB/s (0: unknown), whose index is returned in `*link`; the rate in GB/s
 * that a link carries from `time` (us) on. Errors: INVALID for a step that the plan does not have, for times that are
 * not finite or run backwards, for an unknown link, and for a finished trace; MEMORY. */
POLYCCL_API polyccl_result polyccl_trace_add(polyccl_trace *trace, const polyccl_trace_event *event);
POLYCCL_API polyccl_result polyccl_trace_add_link(polyccl_trace *trace, const char *name, double bandwidth, int *link);
POLYCCL_API polyccl_result polyccl_trace_add_sample(polyccl_trace *trace, int link, double time, double rate);

/* Sorts the records and joins receives to sends. Nothing can be added afterwards. Errors: INVALID if the trace is
 * finished already, LIMIT, MEMORY. */
POLYCCL_API polyccl_result polyccl_trace_finish(polyccl_trace *trace);

/* Writes a finished trace as Chrome trace events. The stream is flushed and stays open. Errors: INVALID for a trace
 * that is not finished, MEMORY; SYSTEM when `to` cannot be written. */
POLYCCL_API polyccl_result polyccl_trace_write(const polyccl_trace *trace, FILE *to);

/* Read a trace from text, or from a file; `name` stands for the file in messages. The trace is finished, and the caller
 * owns it. Traces of other programs are taken too: their complete events ("ph": "X") with pid, tid, ts and dur keep
 * their names. Errors: INVALID with the line and the event, MEMORY; SYSTEM when the file cannot be read. */
POLYCCL_API polyccl_result polyccl_trace_parse(const char *name, const char *text, size_t length,
                                               polyccl_trace **trace);
POLYCCL_API polyccl_result polyccl_trace_read(const char *path, polyccl_trace **trace);

POLYCCL_API const char *polyccl_trace_state_name(polyccl_trace_state state); /* static; NULL: no state */

#ifdef __cplusplus
}
#endif

#endif
