/* From a program to a plan: polyccl_compile() runs the passes of a policy, and the verifier proves the plan.
 *
 * Sources: policy "connection" is that of MSCCLang (ASPLOS 2023, "MSCCLang: Microsoft Collective Communication
 * Language"). Policy "state" is that of ResCCL (SIGCOMM 2025, section 4). docs/scheduling.md says what is our own.
 *
 * Units: sizes are bytes of the larger of a rank's input and output, times are seconds of this machine. Threads: the
 * functions keep no state, so threads may compile at the same time, one program as well as several, as long as none
 * changes a program or topology in use. Errors: outputs are set on success only. INVALID is a program or options that
 * do not fit together, LIMIT a bound of docs/bounds.md, MEMORY an allocation that failed; polyccl_last_error() names
 * the author's file and line where there is one. */
#ifndef POLYCCL_COMPILE_H
#define POLYCCL_COMPILE_H

#include <stdio.h>

#include "plan.h"
#include "program.h"
#include "topology.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a call's input and output are one buffer. */
typedef enum polyccl_placement {
  POLYCCL_AS_WRITTEN = 0, /* in or out of place as the program says */
  POLYCCL_IN_PLACE,
  POLYCCL_OUT_OF_PLACE, /* the input is only read, also where the program was written in place */
  /* As POLYCCL_OUT_OF_PLACE, and a program that was written in place also runs on ranks whose input and output are one
   * buffer, without a copy: what reads an input ends before the output there is written. */
  POLYCCL_EITHER_PLACE
} polyccl_placement;

/* How steps get thread blocks and an order. */
typedef enum polyccl_policy {
  POLYCCL_POLICY_CONNECTION =
      0,               /* MSCCLang: a thread block for each pair of peers and channel, fused steps, batch-major */
  POLYCCL_POLICY_STATE /* ResCCL: scheduled tasks, thread blocks shared over time, task-major */
} polyccl_policy;

/* Policy "state": the order of tasks. */
typedef enum polyccl_schedule {
  POLYCCL_SCHEDULE_HPDS = 0,    /* ResCCL section 4: the chunk that has moved the fewest times goes first */
  POLYCCL_SCHEDULE_ROUND_ROBIN, /* chunk after chunk in turn: ResCCL's baseline */
  POLYCCL_SCHEDULE_BEST         /* the quickest of many plans in the simulator; never slower than HPDS there */
} polyccl_schedule;

/* Wall-clock seconds of a compilation's phases. A phase that a policy does not have is 0. */
typedef struct polyccl_compile_times {
  double check;    /* symbolic check of the program */
  double lower;    /* refine and lower */
  double schedule; /* the order of steps, and channels under policy "connection"; schedule "best": the whole search */
  double allocate; /* thread blocks */
  double wait;     /* waits between thread blocks */
  double emit;     /* the plan's arrays */
  double verify;   /* marks for references, and the proof */
} polyccl_compile_times;

/* POLYCCL_COMPILE_DEFAULTS has the defaults: everything but `size` is zero. All pointers are borrowed for the call. */
typedef struct polyccl_compile_options {
  size_t size; /* sizeof(polyccl_compile_options) */
  polyccl_placement placement;
  polyccl_policy policy;
  polyccl_schedule schedule;
  const polyccl_topology *topology; /* policy "state" needs one with at least the program's ranks; NULL otherwise */
  int max_tbs;                      /* policy "state": thread blocks on a rank; 0: no bound */
  uint64_t bytes;                   /* schedule "best": the size of the call to optimize for; 0: 64 MiB */
  double seconds;                   /* schedule "best": 1.5 million simulated step executions each; 0: 2 */
  int instances;                    /* copies of the program, each on its part of the data; 0: as many as it asks for */
  bool no_fusion;                   /* policy "connection": receives and sends stay separate steps */
  const char *dump;                 /* NULL, or the name of a pass ("lower", "fuse", ...): the IR is written after it */
  FILE *dump_to;                    /* where to; NULL: stderr */
  bool no_verify;                   /* the program is not checked and the plan not verified (the caller does so) */
  polyccl_compile_times *times;     /* NULL, or where the times of the phases are written */
} polyccl_compile_options;

#define POLYCCL_COMPILE_DEFAULTS ((polyccl_compile_options){.size = sizeof(polyccl_compile_options)})

/* Compiles the program, which stays the caller's. `options` may be NULL for the defaults. The caller destroys the plan
 * (polyccl_plan_destroy()). */
POLYCCL_API polyccl_result polyccl_compile(const polyccl_program *program, const polyccl_compile_options *options,
                                           polyccl_plan **plan);

/* Plans of one program in the order of their sizes. plan->min_bytes and max_bytes leave no gap from 0 to any size. */
typedef struct polyccl_plan_set {
  polyccl_plan **plan; /* [plans] */
  size_t plans;
} polyccl_plan_set;

/* Compiles the program in several ways (policy "connection" in 1 to 16 copies, "state" by HPDS and by "best" at several
 * sizes), simulates all plans for sizes from min_bytes to max_bytes (1 byte to 1 TiB) and keeps the best at each. The
 * options that count are topology (needed), placement, max_tbs and seconds (for each search). No plan of the set is
 * slower in the simulator than the program compiled as written by policy "connection", where max_tbs allows that plan.
 * A communicator that loads the plans together (polyccl_comm_add_folder()) chooses by a call's size. The caller
 * destroys the set and its plans with polyccl_plan_set_destroy(). */
POLYCCL_API polyccl_result polyccl_compile_set(const polyccl_program *program, const polyccl_compile_options *options,
                                               uint64_t min_bytes, uint64_t max_bytes, polyccl_plan_set **plans);
POLYCCL_API void polyccl_plan_set_destroy(polyccl_plan_set *plans); /* NULL is fine */

/* The way back: a program that makes the moves of a plan, so that plans from elsewhere (TACCL's and SCCL's XML) can be
 * checked and compiled by every policy. The plan must pass the verifier. The program keeps its locations and forgets
 * its thread blocks, channels and order. A custom plan without a postcondition makes a program without one. The caller
 * destroys the program (polyccl_program_destroy()). */
POLYCCL_API polyccl_result polyccl_program_from_plan(const polyccl_plan *plan, polyccl_program **program);

#ifdef __cplusplus
}
#endif

#endif
