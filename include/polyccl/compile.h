/* Program -> plan. polyccl_compile() runs the passes of src/compiler in order; the result has passed the verifier. */
#ifndef POLYCCL_COMPILE_H
#define POLYCCL_COMPILE_H

#include <stdio.h>

#include "plan.h"
#include "program.h"
#include "topology.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum polyccl_placement {
  POLYCCL_AS_WRITTEN = 0, /* in or out of place as the program says */
  POLYCCL_IN_PLACE,
  POLYCCL_OUT_OF_PLACE /* an in-place program: first reads come from the input buffer */
} polyccl_placement;

typedef enum polyccl_policy {
  POLYCCL_POLICY_CONNECTION = 0, /* MSCCLang: a thread block per pair of peers and channel, fused steps, batch-major */
  POLYCCL_POLICY_STATE           /* ResCCL: scheduled tasks, thread blocks shared over time, task-major */
} polyccl_policy;

/* Policy "state": in which order tasks go. */
typedef enum polyccl_schedule {
  POLYCCL_SCHEDULE_HPDS = 0,    /* ResCCL section 4: the chunk that was moved least goes first */
  POLYCCL_SCHEDULE_ROUND_ROBIN, /* chunk after chunk in turn: the baseline */
  POLYCCL_SCHEDULE_BEST         /* the quickest of many orders by the simulator; never slower than HPDS there */
} polyccl_schedule;

/* Wall-clock seconds of a compilation's phases; what a policy does not have is 0. */
typedef struct polyccl_compile_times {
  double check;    /* symbolic check of the program */
  double lower;    /* refine and lower */
  double schedule; /* tasks and their order; policy "connection": fuse, channel, order; "best": the whole search */
  double allocate; /* thread blocks */
  double wait;     /* waits between thread blocks */
  double emit;     /* the plan's arrays */
  double verify;   /* marks and proof */
} polyccl_compile_times;

/* All zero but `size` are the defaults; POLYCCL_COMPILE_DEFAULTS has them. */
typedef struct polyccl_compile_options {
  size_t size; /* sizeof(polyccl_compile_options) */
  polyccl_placement placement;
  polyccl_policy policy;
  polyccl_schedule schedule;
  const polyccl_topology *topology; /* policy "state" needs one with at least the program's ranks; else NULL */
  int max_tbs;                      /* policy "state": most thread blocks on a rank; 0: no bound */
  uint64_t bytes;                   /* schedule "best": the size to be best at; 0: 64 MiB */
  double seconds;                   /* schedule "best": time for the search; 0: 2 */
  int instances;                    /* copies of the program, each on its part of the data; 0: as many as it wishes */
  bool no_fusion;                   /* policy "connection": receives and sends stay apart */
  const char *dump;                 /* name of a pass ("lower", "fuse", ...): write the IR after it; NULL: none */
  FILE *dump_to;                    /* where; NULL: stderr */
  bool no_verify;                   /* neither check the program nor verify the plan (the caller does) */
  polyccl_compile_times *times;     /* NULL, or where the phases' times go */
} polyccl_compile_options;

#define POLYCCL_COMPILE_DEFAULTS ((polyccl_compile_options){.size = sizeof(polyccl_compile_options)})

/* options may be NULL. Errors name the author's lines. The caller destroys the plan. */
POLYCCL_API polyccl_result polyccl_compile(const polyccl_program *program, const polyccl_compile_options *options,
                                           polyccl_plan **plan);

/* Plans of one program, each for a range of sizes (plan->min_bytes, max_bytes), without gaps from 0 to any size. */
typedef struct polyccl_plan_set {
  polyccl_plan **plan;
  size_t plans;
} polyccl_plan_set;

/* Compiles the program in several ways (policy "connection" in 1 to 16 copies, "state" by HPDS and by "best" at several
 * sizes), simulates all over sizes from min_bytes to max_bytes and keeps what is best where. Of the options, the
 * topology (needed), placement, max_tbs and seconds (per search) count. No plan of the set is slower in the simulator
 * than the program compiled as written by policy "connection", where max_tbs allows that. Loaded together
 * (polyccl_comm_add_folder), the plans are chosen by a call's size. The caller destroys the set. */
POLYCCL_API polyccl_result polyccl_compile_set(const polyccl_program *program, const polyccl_compile_options *options,
                                               uint64_t min_bytes, uint64_t max_bytes, polyccl_plan_set **plans);
POLYCCL_API void polyccl_plan_set_destroy(polyccl_plan_set *plans); /* NULL is fine */

/* The way back: a program that makes the moves of a plan, so that plans from elsewhere (TACCL's and SCCL's XML) go
 * through the check and every policy. The plan must pass the verifier; its thread blocks, channels and order are
 * forgotten, locations are kept. A custom plan without a postcondition makes a program without one. */
POLYCCL_API polyccl_result polyccl_program_from_plan(const polyccl_plan *plan, polyccl_program **program);

#ifdef __cplusplus
}
#endif

#endif
