/* The simulator: how long a plan takes on a topology, and why. It simulates the plan's abstract machine (docs/plan.md)
 * event by event: thread blocks, waits, FIFO credit, micro-batches, both loop orders. Transfers share links max-min
 * fair. docs/simulator.md defines the model: when a step starts, what it costs, when a message arrives.
 *
 *   polyccl_sim_options options = POLYCCL_SIM_DEFAULTS;
 *   options.bytes = 1 << 20;
 *   polyccl_simulation *s;
 *   polyccl_simulate(plan, topology, &options, &s);
 *   printf("%g us\n", s->time);
 *   polyccl_simulation_destroy(s);
 *
 * Times are microseconds since the call (double), rates are GB/s (10^9 bytes per second). The same input gives the same
 * result, byte for byte. Several threads may simulate at a time, even the same plan on the same topology. */
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

/* What polyccl_simulate() keeps besides the totals. */
enum {
  POLYCCL_SIM_CRITICAL = 1, /* `critical` and `line`; takes 24 bytes of memory per step and micro-batch meanwhile */
  POLYCCL_SIM_TIMELINE = 2, /* `record`; takes 40 bytes per interval */
  POLYCCL_SIM_LINK_USE = 4  /* `use` */
};

typedef struct polyccl_sim_options {
  size_t size; /* sizeof(polyccl_sim_options) */
  uint64_t
      bytes; /* size of the call: bytes of the larger of a rank's input and output; 0: steps have only their cost */
  int32_t micro_batches; /* 0: as few as let every message fit into a FIFO slot */
  int32_t protocol;      /* polyccl_protocol; -1: the plan's */
  int32_t order;         /* polyccl_loop_order; -1: the plan's */
  int32_t fifo_depth;    /* slots per connection; 0: as many as the devices have, but no fewer than the plan needs */
  uint32_t keep;         /* POLYCCL_SIM_* */
  double
      contention;   /* share of a link that each thread block beyond those that fill it takes away; < 0: the devices' */
  double tolerance; /* a relative change of a link's share up to this is not passed on to other links; 0: exact
                       max-min; < 0: exact for the first 5 million updates of links, then 0.03 */
} polyccl_sim_options;

#define POLYCCL_SIM_DEFAULTS \
  ((polyccl_sim_options){    \
      .size = sizeof(polyccl_sim_options), .protocol = -1, .order = -1, .contention = -1, .tolerance = -1})

/* What a thread block does with its time. */
typedef enum polyccl_sim_state {
  POLYCCL_SIM_BUSY = 0,    /* runs a step */
  POLYCCL_SIM_WAIT_BLOCKS, /* waits for steps of other thread blocks, or for a processor where they share some */
  POLYCCL_SIM_WAIT_DATA,   /* waits for a message */
  POLYCCL_SIM_WAIT_CREDIT, /* waits for a free slot */
  POLYCCL_SIM_IDLE,        /* has ended its last step while others have not; also the launch before the first step */
  POLYCCL_SIM_STATE_COUNT
} polyccl_sim_state;

typedef struct polyccl_sim_block {
  double time[POLYCCL_SIM_STATE_COUNT]; /* us in each state; they sum to the completion time */
} polyccl_sim_block;

typedef struct polyccl_sim_link {
  double bytes;       /* that it has carried, with the flags of the protocol */
  double utilisation; /* bytes / (bandwidth x completion time), 0 to 1 */
} polyccl_sim_link;

/* An interval of a thread block, longer than 0. A waiting interval names the step that waits. */
typedef struct polyccl_sim_record {
  double start, end;
  int32_t rank, tb; /* tb: its number in the rank, as in waits */
  int32_t step, micro_batch;
  int32_t state; /* polyccl_sim_state; never IDLE */
} polyccl_sim_record;

/* From `time` until the next entry of the same link, `link` carries `rate`. */
typedef struct polyccl_sim_use {
  double time, rate; /* us, GB/s on the wire */
  int32_t link;
} polyccl_sim_use;

/* A step of the critical path, and what let it start. */
typedef struct polyccl_sim_critical {
  double start, end; /* of the step */
  int32_t rank, tb, step, micro_batch;
  int32_t cause; /* polyccl_sim_state: what it waited for last; BUSY: for the step before it in its thread block */
} polyccl_sim_critical;

/* How much of the critical path belongs to one line of the source. */
typedef struct polyccl_sim_line {
  polyccl_location at; /* file NULL: steps without a known line; the plan owns the text */
  double time;         /* us, with the latencies before its steps */
  uint64_t steps;      /* step executions on the path */
} polyccl_sim_line;

typedef struct polyccl_simulation {
  double time;      /* us from the call until the last step has ended */
  double launch;    /* us of these that pass before the first step */
  double algorithm; /* GB/s: bytes / time */
  double bus;       /* GB/s: algorithm x the collective's bus factor (nccl-tests) */
  double bus_factor;
  uint64_t bytes;
  polyccl_protocol protocol; /* protocol, order, micro_batches and fifo_depth are those that were used */
  polyccl_loop_order order;
  int32_t micro_batches, fifo_depth;
  uint64_t executions; /* steps x micro-batches */
  uint64_t events;     /* that went through the event queue */
  bool exact;          /* the shares of links are exactly max-min fair */

  polyccl_sim_block *tb;  /* [tbs], in the plan's order */
  polyccl_sim_link *link; /* [links], in the topology's order */
  size_t tbs, links;

  polyccl_sim_critical *critical; /* in order of time; NULL unless kept, as are the next three */
  polyccl_sim_line *line;         /* in descending order of time */
  polyccl_sim_record *record;     /* by rank, tb, start */
  polyccl_sim_use *use;           /* by link, time */
  size_t criticals, lines, records, uses;
} polyccl_simulation;

/* Simulates a call of the plan. Rank r of the plan runs on rank r of the topology, which may have more ranks. `options`
 * may be NULL, for the defaults. The caller owns `*simulation`; the names of files in its `line` are the plan's, so the
 * plan must outlive it. Errors: INVALID for a plan that is not well formed or cannot end (the message names the cycle),
 * for a topology with too few ranks, and for options out of range; LIMIT where it would need more than
 * POLYCCL_SIM_MAX_MEMORY or POLYCCL_SIM_MAX_EXECUTIONS; MEMORY. A plan that polyccl_plan_verify() accepts always ends.
 */
POLYCCL_API polyccl_result polyccl_simulate(const polyccl_plan *plan, const polyccl_topology *topology,
                                            const polyccl_sim_options *options, polyccl_simulation **simulation);

/* Frees a simulation. NULL is allowed. */
POLYCCL_API void polyccl_simulation_destroy(polyccl_simulation *simulation);

#define POLYCCL_SIM_MAX_MEMORY ((size_t)4 << 30) /* bytes */
/* Step executions: steps times micro-batches. */
#define POLYCCL_SIM_MAX_EXECUTIONS ((uint64_t)1 << 31)

/* Bus bandwidth is algorithm bandwidth times this factor, that of nccl-tests. `ranks` >= 1. */
POLYCCL_API double polyccl_bus_factor(polyccl_collective collective, int ranks);

POLYCCL_API const char *polyccl_sim_state_name(polyccl_sim_state state); /* static; NULL: no state */

/* Write the tables of `polyccl simulate`; write the records and the use of the links as tab-separated text with header
 * lines. Plan and topology must be those of the simulation. The stream stays open. Errors: MEMORY; SYSTEM when `to`
 * cannot be written. */
POLYCCL_API polyccl_result polyccl_simulation_write(const polyccl_simulation *simulation, const polyccl_plan *plan,
                                                    const polyccl_topology *topology, FILE *to);
POLYCCL_API polyccl_result polyccl_simulation_write_timeline(const polyccl_simulation *simulation,
                                                             const polyccl_plan *plan, FILE *to);

/* Writes Chakra execution traces for ASTRA-sim, PREFIX.RANK.et for every rank, of a call of `bytes` (the larger of a
 * rank's input and output). After a failure no file of it is left. Errors: INVALID for a file that cannot be opened or
 * a plan out of order, LIMIT for sizes that the format cannot hold, MEMORY, SYSTEM; UNSUPPORTED without libprotobuf-c.
 */
POLYCCL_API polyccl_result polyccl_plan_write_chakra(const polyccl_plan *plan, uint64_t bytes, const char *prefix);

#ifdef __cplusplus
}
#endif

#endif
