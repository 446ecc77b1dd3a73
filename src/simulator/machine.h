/* The inside of the simulator: a plan on a topology, laid out for speed. docs/simulator.md describes the model.
 *
 * check.c checks the plan; build.c and resources.c lay it out; engine.c runs it; share.c shares links; trace.c keeps
 * what was asked for; stuck.c explains a plan that cannot end; result.c computes the totals.
 *
 * Times are whole picoseconds, so that steps that end together by symmetry end at equal times. A step whose rate only
 * its own thread block can limit needs no event: its end is known as soon as its start is, and the steps that depend on
 * it compare times. Only steps that share something (a link that its users can fill, a processor) go through the event
 * queue, in the order of time. */
#ifndef PCCL_SIMULATOR_MACHINE_H
#define PCCL_SIMULATOR_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <polyccl/simulator.h>

#include "base/vec.h"
#include "simulator/queue.h"

#define SIM_PS_PER_US 1e6

#define SIM_EXACT_UPDATES 5000000 /* by default sharing is exact for so many updates of links, some seconds */
#define SIM_ROUGH 0.03            /* and has this tolerance afterwards */

/* NOP: it moves nothing. OUT: its bytes take the route of `send`. IN: that of `recv`. SHARES: they use a resource. */
enum { SIM_NOP = 1, SIM_REDUCES = 2, SIM_OUT = 4, SIM_IN = 8, SIM_SHARES = 16, SIM_FORWARDS = 32 };

typedef struct sim_step {
  int32_t recv, send; /* connections, or -1 */
  int32_t wait;       /* first of its waits for other thread blocks */
  int32_t target;     /* its place among the steps that others wait for, or -1 */
  int32_t count;      /* chunks */
  uint32_t waits : 24;
  uint32_t kind : 8; /* SIM_* */
} sim_step;

typedef struct sim_wait {
  int32_t tb, step, target;
} sim_wait;

/* What a thread block waits for. */
typedef enum sim_blocked {
  SIM_RUNS = 0,
  SIM_ON_BLOCK, /* on: thread block */
  SIM_ON_DATA,  /* on: connection */
  SIM_ON_CREDIT,
  SIM_QUEUED, /* its own event is in the queue, or that of the resource of its flow */
  SIM_FINISHED
} sim_blocked;

typedef enum sim_phase {
  SIM_READY = 0,
  SIM_FLOWS,
  SIM_ENDS
} sim_phase; /* what the queued event of a thread block means */

typedef struct sim_tb {
  int64_t free;  /* end of its last step */
  int64_t begin; /* of the step that runs; while ON_BLOCK: the position it waits for */
  int64_t done;  /* steps executed: a position in its loop order */
  int32_t first, steps;
  int32_t step, batch; /* the next, or the one that runs */
  int32_t rank;
  int32_t waiters, next_waiter; /* thread blocks that wait for this one; a list through next_waiter */
  int32_t on;
  uint8_t blocked, phase, model;
  bool serial; /* shares its rank's processors */
} sim_tb;

typedef struct sim_way {
  int32_t resource, resources; /* first and number in the sim's route_resource */
  bool used;
} sim_way;

typedef struct sim_connection {
  int64_t latency, credit_latency;
  double cap;             /* bytes on the wire per ps, by the narrowest link that only its thread block uses */
  int32_t sent, received; /* messages; they may wrap modulo 2^32, since only their difference is used */
  int32_t slot;           /* first of its slots */
  int32_t send_slot, recv_slot;
  int32_t src_tb, dst_tb; /* -1: unused in that direction */
  int32_t hop, hops;      /* of the route */
  sim_way way[2];         /* when its sender moves the bytes, when its receiver does */
  bool direct;            /* its ends can address each other's memory */
} sim_connection;

typedef struct sim_model {
  double forward_cap;                 /* the limit of a step that receives and sends */
  double copy_cap, reduce_cap;        /* of one thread block: bytes on the wire per ps */
  double local_cap, local_reduce_cap; /* the same for steps without a message: bytes per ps */
  double wire;                        /* bytes on the wire per payload byte */
  double contention;
  int64_t cost, latency, network_latency, launch;
  double memory; /* bytes per ps that all of a device share */
} sim_model;

/* A link or a device's memory that its users together can fill. */
typedef struct sim_resource {
  double capacity; /* bytes per ps */
  double contention;
  double wanted; /* sum of the flows' own caps */
  int32_t flow;  /* first place in `member` */
  int32_t flows;
  bool dirty, end_dirty; /* to be solved again; its next end to be found again */
} sim_resource;

enum { SIM_INLINE_RESOURCES = 3 };

typedef struct sim_flow {
  double left, rate, cap;  /* bytes, bytes per ps */
  int64_t since, end;      /* `left` holds at `since` */
  const int32_t *resource; /* points to `inline_resource` where that has room, so that a flow is one cache line */
  int32_t resources, inline_resource[SIM_INLINE_RESOURCES];
} sim_flow;

typedef struct sim_rank {
  int32_t running, processors; /* processors 0: as many as thread blocks */
  int32_t queue_head, queue_tail;
  int32_t memory; /* resource, or -1 */
} sim_rank;

typedef struct sim_exec { /* for the critical path */
  int64_t begin, end;
  uint64_t cause; /* (execution + 1) << 3 | polyccl_sim_state; execution 0: the start */
} sim_exec;

typedef struct sim_moments { /* for records: where the waits of the step that runs ended */
  int64_t blocks, data, credit;
} sim_moments;

typedef struct sim_change { /* of a link's use */
  int64_t time;
  int32_t link, flows;
  double rate;
} sim_change;

typedef struct sim {
  const polyccl_plan *plan;
  const polyccl_topology *topology;
  polyccl_sim_options options;
  int32_t tbs, batches, depth;
  int32_t slots; /* kept per connection: `depth`, or as many as a connection has messages */
  bool task_major, tracing, exact;
  double tile; /* payload bytes of one chunk and micro-batch */
  uint64_t executions, events;
  size_t memory; /* bytes allocated */

  sim_model *model;
  sim_step *step;
  sim_wait *wait;
  sim_tb *tb;
  sim_connection *connection;
  int64_t *slot; /* when full: arrival of the message; when free: when the sender knows it */
  int64_t (*spent)[POLYCCL_SIM_STATE_COUNT];
  sim_rank *rank;
  int64_t *target_end; /* [targets x batches] */
  size_t targets, target_stride, batch_stride;

  int32_t *hop; /* routes, one after another */
  int32_t *route_resource;

  sim_resource *resource;
  double *level; /* by resource: the largest rate that it lets a flow have; infinite: it limits no flow */
  int32_t *member;
  int32_t resources;
  sim_flow *flow; /* by thread block */
  double *other;  /* scratch of share.c, [2 x thread blocks] */
  int32_t *dirty, *end_dirty;
  int32_t dirty_head, dirty_count, end_dirties;
  double tolerance;
  uint64_t updates, max_exact_updates; /* of resources; after max_exact_updates sharing is rough (SIM_ROUGH) */

  sim_queue queue; /* ids: thread blocks, then resources */
  int32_t *ready;  /* stack of thread blocks to look at */
  int32_t readies;
  int64_t now;

  sim_exec *exec;
  uint64_t *slot_exec; /* which execution last filled or freed a slot */
  sim_moments *moments;
  PCCL_VEC(polyccl_sim_record) record;
  PCCL_VEC(sim_change) change;
  bool no_memory; /* a record could not be kept */
} sim;

static inline int64_t sim_position(const sim *s, const sim_tb *tb, int32_t step, int32_t batch) {
  return s->task_major ? (int64_t)step * s->batches + batch : (int64_t)batch * tb->steps + step;
}
static inline int64_t *sim_target(const sim *s, int32_t target, int32_t batch) {
  return &s->target_end[(size_t)target * s->target_stride + (size_t)batch * s->batch_stride];
}
static inline uint64_t sim_execution(const sim *s, const sim_tb *tb, int32_t step, int32_t batch) {
  return (uint64_t)(tb->first + step) * (uint64_t)s->batches + (uint64_t)batch;
}
static inline const sim_step *sim_current(const sim *s, const sim_tb *tb) { return &s->step[tb->first + tb->step]; }

/* Zeroed memory on the simulation's account; LIMIT beyond POLYCCL_SIM_MAX_MEMORY. */
polyccl_result pccl_sim_alloc(sim *s, size_t count, size_t element, void **array);
#define SIM_ALLOC(s, array, count) pccl_sim_alloc((s), (count), sizeof *(array), (void **)&(array))

/* check.c: INVALID unless the plan is well formed and fits the topology, so that no index is out of its array. */
polyccl_result pccl_sim_check(const polyccl_plan *plan, const polyccl_topology *topology);
/* build.c */
polyccl_result pccl_sim_build(sim *s);
void pccl_sim_free(sim *s);
/* resources.c: routes, and which links and memories can be filled. */
polyccl_result pccl_sim_find_resources(sim *s);
/* engine.c: runs until nothing moves any more. */
void pccl_sim_run(sim *s);
/* stuck.c: SUCCESS if every thread block has finished, else INVALID with the cycle. */
polyccl_result pccl_sim_stuck(const sim *s);
/* result.c */
polyccl_result pccl_sim_result(sim *s, polyccl_simulation **simulation);

/* share.c: the flow of thread block `tb` starts or ends at s->now; pccl_sim_share() then brings all rates and the
 * resources' events up to date. */
void pccl_sim_flow_add(sim *s, int32_t tb, double bytes, double cap, const int32_t *resource, int32_t resources);
void pccl_sim_flow_remove(sim *s, int32_t tb);
void pccl_sim_share(sim *s);

/* trace.c; called only while s->tracing. */
void pccl_sim_trace_ready(sim *s, int32_t tb, int64_t blocks, int64_t data, int64_t credit);
void pccl_sim_trace_processor(sim *s, int32_t tb, int32_t released_by);
void pccl_sim_trace_end(sim *s, int32_t tb, int64_t end);
void pccl_sim_trace_use(sim *s, int32_t tb, int64_t time, double rate, int flows);
polyccl_result pccl_sim_trace_result(sim *s, polyccl_simulation *result);

#endif
