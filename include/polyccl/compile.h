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

typedef struct polyccl_compile_options {
  polyccl_placement placement;
  polyccl_policy policy;
  polyccl_schedule schedule;
  const polyccl_topology *topology; /* policy "state" needs one with at least the program's ranks; else NULL */
  int max_tbs;                      /* policy "state": most thread blocks on a rank; 0: no bound */
  uint64_t bytes;                   /* schedule "best": the size to be best at; 0: 64 MiB */
  double seconds;                   /* schedule "best": time for the search; 0: 2 */
  const char *dump;                 /* name of a pass ("lower", "fuse", ...): write the IR after it; NULL: none */
  FILE *dump_to;                    /* where; NULL: stderr */
  bool no_verify;                   /* neither check the program nor verify the plan (the caller does) */
} polyccl_compile_options;

/* options may be NULL. Errors name the author's lines. The caller destroys the plan. */
POLYCCL_API polyccl_result polyccl_compile(const polyccl_program *program, const polyccl_compile_options *options,
                                           polyccl_plan **plan);

/* The way back: a program that makes the moves of a plan, so that plans from elsewhere (TACCL's and SCCL's XML) go
 * through the check and every policy. The plan must pass the verifier; its thread blocks, channels and order are
 * forgotten, locations are kept. A custom plan without a postcondition makes a program without one. */
POLYCCL_API polyccl_result polyccl_program_from_plan(const polyccl_plan *plan, polyccl_program **program);

#ifdef __cplusplus
}
#endif

#endif
