/* Traces: what each thread block did over time, from the simulator or from a real run. `polyccl view` shows them; they
 * are written and read as Chrome trace events (docs/view.md), which Perfetto and chrome://tracing show too.
 *
 *   polyccl_trace *trace;
 *   polyccl_trace_create(plan, "measured", &trace);
 *   for each thing that happened, in any order:
 *     polyccl_trace_add(trace, &(polyccl_trace_event){.rank = r, .tb = t, .step = s, .batch = m,
 *                                                     .state = POLYCCL_TRACE_BUSY, .begin = 1.5, .end = 2.25});
 *   polyccl_trace_finish(trace);
 *   polyccl_trace_write(trace, file);
 *
 * A step of one micro-batch is any number of waiting events and then one busy event: from the moment it has all it
 * waits for until it has ended. One thread at a time. */
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

/* ---- what a finished trace holds; open to read ---- */

typedef struct polyccl_trace_record {
  double begin, end;
  int32_t step; /* index into the trace's steps */
  int32_t batch;
  int32_t message; /* busy and receives: the record that sent what it receives, else -1 */
  uint8_t state;   /* polyccl_trace_state */
  bool critical;
} polyccl_trace_record;

/* A step of the plan, as in polyccl_step. */
typedef struct polyccl_trace_step {
  int32_t block, number; /* index into blocks; the step's number in its thread block */
  uint8_t op, src_buf, dst_buf;
  int32_t src, dst, count;
  int32_t recv_rank, recv_channel, send_rank, send_channel; /* -1: does not */
  int32_t wait, waits;                                      /* first index and number in the trace's waits */
  int32_t place;                                            /* index into places, or -1 */
  int32_t message;                                          /* the step that sends what it receives, or -1 */
} polyccl_trace_step;

typedef struct polyccl_trace_block {
  int32_t rank, tb;
  size_t record, records; /* first index and number, by time */
  size_t step, steps;
} polyccl_trace_block;

/* The rate on a link is constant from one of its samples to the next, and 0 before the first. */
typedef struct polyccl_trace_sample {
  double time, rate; /* us, GB/s */
  int32_t link;
} polyccl_trace_sample;

typedef struct polyccl_trace_link {
  char *name;
  double bandwidth;       /* GB/s, 0: unknown */
  size_t sample, samples; /* first index and number, by time */
} polyccl_trace_link;

typedef struct polyccl_trace {
  char *name;   /* the plan's */
  char *source; /* "simulated", "measured" */
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

/* An empty trace with the plan's blocks and steps; keeps no pointer to the plan. */
POLYCCL_API polyccl_result polyccl_trace_create(const polyccl_plan *plan, const char *source, polyccl_trace **trace);
POLYCCL_API void polyccl_trace_destroy(polyccl_trace *trace); /* NULL is fine */

/* Errors: no such step in the plan, times that are not finite or run backwards, a finished trace, no memory. */
POLYCCL_API polyccl_result polyccl_trace_add(polyccl_trace *trace, const polyccl_trace_event *event);
POLYCCL_API polyccl_result polyccl_trace_add_link(polyccl_trace *trace, const char *name, double bandwidth, int *link);
POLYCCL_API polyccl_result polyccl_trace_add_sample(polyccl_trace *trace, int link, double time, double rate);

/* Sorts and joins receives to sends. Nothing can be added afterwards. */
POLYCCL_API polyccl_result polyccl_trace_finish(polyccl_trace *trace);

/* A finished trace as Chrome trace events. SYSTEM when `to` does not take it. */
POLYCCL_API polyccl_result polyccl_trace_write(const polyccl_trace *trace, FILE *to);

/* The reverse; the trace is finished. Complete events ("ph": "X") of other programs are shown under their names as far
 * as they have pid, tid, ts and dur. */
POLYCCL_API polyccl_result polyccl_trace_parse(const char *name, const char *text, size_t length,
                                               polyccl_trace **trace);
POLYCCL_API polyccl_result polyccl_trace_read(const char *path, polyccl_trace **trace);

POLYCCL_API const char *polyccl_trace_state_name(polyccl_trace_state state); /* "busy", "wait data", ... */

#ifdef __cplusplus
}
#endif

#endif
