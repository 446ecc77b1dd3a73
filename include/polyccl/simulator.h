/* The simulator: how long a plan takes on a topology, and why. Discrete events over the plan's abstract machine
 * (docs/plan.md): thread blocks, waits, FIFO credit, micro-batches, both loop orders; transfers share links max-min
 * fair. docs/simulator.md defines the model: when a step starts, what it costs, when a message arrives.
 *
 *   polyccl_sim_options options = POLYCCL_SIM_DEFAULTS;
 *   options.bytes = 1 << 20;
 *   polyccl_simulation *s;
 *   polyccl_simulate(plan, topology, &options, &s);
 *   printf("%g us\n", s->time);
 *   polyccl_simulation_destroy(s);
 *
 * Times are microseconds from the call (double), rates GB/s (10^9 bytes per second). Results are deterministic, byte
 * for byte. The functions share nothing: several threads may simulate at a time, also the same plan and topology. */
#ifndef POLYCCL_SIMULATOR_H
#define POLYCCL_SIMULATOR_H

#include <stdbool.h>
#include <stdio.h>

#include "plan.h"
#include "topology.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What to keep besides the totals. */
enum {
  POLYCCL_SIM_CRITICAL = 1, /* the critical path: 24 bytes of memory per step and micro-batch while it runs */
  POLYCCL_SIM_TIMELINE = 2, /* `record`: 40 bytes per interval */
  POLYCCL_SIM_LINK_USE = 4  /* `use` */
};

typedef struct polyccl_sim_options {
  size_t size;           /* sizeof(polyccl_sim_options) */
  uint64_t bytes;        /* size of the call: bytes of the larger of a rank's input and output; 0: only costs */
  int32_t micro_batches; /* 0: as few as make every message fit into a FIFO slot */
  int32_t protocol;      /* polyccl_protocol; -1: the plan's */
  int32_t order;         /* polyccl_loop_order; -1: the plan's */
  int32_t fifo_depth;    /* slots per connection; 0: what the devices have, but no less than the plan's depth */
  uint32_t keep;         /* POLYCCL_SIM_* */
  double contention;     /* share of a link lost per thread block beyond those that fill it; < 0: the devices' figure */
  double tolerance;      /* relative change of a link's share that is not passed on to other links; 0: exact max-min;
                            < 0: exact while that is cheap (5 million updates of links), 0.03 afterwards */
} polyccl_sim_options;

#define POLYCCL_SIM_DEFAULTS \
  ((polyccl_sim_options){    \
      .size = sizeof(polyccl_sim_options), .protocol = -1, .order = -1, .contention = -1, .tolerance = -1})

/* What a thread block does with its time. */
typedef enum polyccl_sim_state {
  POLYCCL_SIM_BUSY = 0,    /* runs a step */
  POLYCCL_SIM_WAIT_BLOCKS, /* waits for steps of other thread blocks (or for a processor, where they share some) */
  POLYCCL_SIM_WAIT_DATA,   /* waits for a message */
  POLYCCL_SIM_WAIT_CREDIT, /* waits for a free slot */
  POLYCCL_SIM_IDLE,        /* has ended its last step, others have not (and before the first: the launch) */
  POLYCCL_SIM_STATE_COUNT
} polyccl_sim_state;

typedef struct polyccl_sim_block {
  double time[POLYCCL_SIM_STATE_COUNT]; /* us in each state; the sum is the completion time */
} polyccl_sim_block;

typedef struct polyccl_sim_link {
  double bytes;       /* carried, flags of the protocol included */
  double utilisation; /* bytes / (bandwidth x completion time), 0 to 1 */
} polyccl_sim_link;

/* An interval of a thread block. A waiting interval names the step that waits. Zero-length intervals are left out. */
typedef struct polyccl_sim_record {
  double start, end;
  int32_t rank, tb; /* tb: local number, as in waits */
  int32_t step, micro_batch;
  int32_t state; /* polyccl_sim_state; never IDLE */
} polyccl_sim_record;

/* From `time` on, `link` carries `rate`, until its next entry. */
typedef struct polyccl_sim_use {
  double time, rate; /* us, GB/s on the wire */
  int32_t link;
} polyccl_sim_use;

/* A piece of the critical path: this step, and what let it start. */
typedef struct polyccl_sim_critical {
  double start, end; /* of the step */
  int32_t rank, tb, step, micro_batch;
  int32_t cause; /* what it had waited for last: polyccl_sim_state; BUSY: its thread block's step before */
} polyccl_sim_critical;

/* The critical path by source line: how much of the time each line stands for; greatest first. */
typedef struct polyccl_sim_line {
  polyccl_location at; /* file NULL: steps without a known line; the text is the plan's */
  double time;         /* us, latencies before its steps included */
  uint64_t steps;      /* step executions on the path */
} polyccl_sim_line;

typedef struct polyccl_simulation {
  double time;      /* us until the last step has ended, launch included */
  double launch;    /* of these: before the first step */
  double algorithm; /* GB/s: bytes / time */
  double bus;       /* GB/s: algorithm x the collective's bus factor (nccl-tests) */
  double bus_factor;
  uint64_t bytes;
  polyccl_protocol protocol; /* as used */
  polyccl_loop_order order;
  int32_t micro_batches, fifo_depth;
  uint64_t executions; /* steps x micro-batches */
  uint64_t events;     /* entries that went through the event queue */
  bool exact;          /* link shares are exact max-min */

  polyccl_sim_block *tb;  /* [tbs], in the plan's order */
  polyccl_sim_link *link; /* [links], in the topology's order */
  size_t tbs, links;

  polyccl_sim_critical *critical; /* first to last; NULL unless kept */
  polyccl_sim_line *line;
  polyccl_sim_record *record; /* sorted by rank, tb, start */
  polyccl_sim_use *use;       /* sorted by link, time */
  size_t criticals, lines, records, uses;
} polyccl_simulation;

/* `options` may be NULL. Rank r of the plan sits on rank r of the topology, which may have more. Errors: INVALID for a
 * plan that cannot end (the message names the cycle) or is not well formed, for ranks that no route joins; LIMIT where
 * memory would pass POLYCCL_SIM_MAX_MEMORY or its steps POLYCCL_SIM_MAX_EXECUTIONS. A plan that passed
 * polyccl_plan_verify() always ends. */
POLYCCL_API polyccl_result polyccl_simulate(const polyccl_plan *plan, const polyccl_topology *topology,
                                            const polyccl_sim_options *options, polyccl_simulation **simulation);
POLYCCL_API void polyccl_simulation_destroy(polyccl_simulation *simulation); /* NULL is fine */

#define POLYCCL_SIM_MAX_MEMORY ((size_t)4 << 30)
/* More step executions (steps times micro-batches) are LIMIT. */
#define POLYCCL_SIM_MAX_EXECUTIONS ((uint64_t)1 << 31)

/* algorithm bandwidth x factor = bus bandwidth; `ranks` >= 1. */
POLYCCL_API double polyccl_bus_factor(polyccl_collective collective, int ranks);

POLYCCL_API const char *polyccl_sim_state_name(polyccl_sim_state state); /* "busy", "wait data", ... */

/* The tables of `polyccl simulate`; the records and the links' use as tab-separated text with a header line. */
POLYCCL_API polyccl_result polyccl_simulation_write(const polyccl_simulation *simulation, const polyccl_plan *plan,
                                                    const polyccl_topology *topology, FILE *to);
POLYCCL_API polyccl_result polyccl_simulation_write_timeline(const polyccl_simulation *simulation,
                                                             const polyccl_plan *plan, FILE *to);

/* Chakra execution traces for ASTRA-sim: PREFIX.RANK.et for every rank. `bytes` as above. */
POLYCCL_API polyccl_result polyccl_plan_write_chakra(const polyccl_plan *plan, uint64_t bytes, const char *prefix);

#ifdef __cplusplus
}
#endif

#endif
