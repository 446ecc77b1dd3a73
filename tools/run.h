/* polyccl run: run.c reads the arguments, run_load.c loads and compiles plans, run_folder.c takes folders, run_code.c
 * makes code of plans, run_ranks.c and its parts (run_ranks.h) are what every rank does, run_data.c makes the data and
 * checks it. */
#ifndef PCCL_TOOLS_RUN_H
#define PCCL_TOOLS_RUN_H

#include <stdbool.h>
#include <stdio.h>

#include <polyccl/plan.h>
#include <polyccl/polyccl.h>

#include "program/collective.h"
#include "sizes.h"

enum { PCCL_RUN_PLACEMENTS = 2 }; /* out of place, in place */

typedef struct pccl_run_args {
  polyccl_plan *plan[PCCL_RUN_PLACEMENTS]; /* NULL: not available */
  const char *code[PCCL_RUN_PLACEMENTS];   /* generated code; NULL: interpreted */
  const char *folder;                      /* all of its plans are loaded, calls choose; NULL: run the plans above */
  pccl_sizes sizes;
  uint64_t count; /* with has_count: instead of sizes */
  bool has_count;
  polyccl_dtype dtype;
  polyccl_redop op;
  bool threads, shared, check;
  bool apart;             /* every call is timed by itself, after a barrier */
  size_t offset;          /* elements by which the buffers are off their alignment */
  int iterations, warmup; /* iterations 0: by the clock */
  /* Not NULL: the times in seconds go here, size by size (out of place, in place each), and nothing is printed. Memory
   * that the ranks share. */
  double *seconds;
  const char *size_option; /* for messages: where the sizes are from */
  FILE *trace;             /* what a call of the last size does, as a trace; NULL: none */
} pccl_run_args;

/* Runs all sizes and prints the table; the number of wrong elements in *wrong. */
polyccl_result pccl_run_all(const pccl_run_args *args, uint64_t *wrong);

/* A folder of plans; ranks 0 and no collective: what all of them share. */
typedef struct pccl_run_folder {
  const char *path;
  int ranks;
  bool has_collective;
  polyccl_collective collective;
} pccl_run_folder;

polyccl_result pccl_run_open_folder(const pccl_run_folder *folder, pccl_run_args *run);
/* The library's call for the plan's collective. */
polyccl_result pccl_run_call(polyccl_comm *comm, const polyccl_plan *plan, const void *send, void *recv, size_t count,
                             polyccl_dtype dtype, polyccl_redop op);

/* Makes and compiles the plan's code; `path` is where the ranks load it from. */
polyccl_result pccl_run_generate(const polyccl_plan *plan, char *path, size_t bytes);

/* ---- data ---- */

/* Fills rank's input of `blocks` blocks of `count` elements with values that tell rank and index apart. */
void pccl_run_fill(const polyccl_plan *plan, int rank, polyccl_dtype dtype, polyccl_redop op, size_t count,
                   void *input);
/* Elements of rank's output that are not what the collective defines, worked out here from the definition. */
uint64_t pccl_run_wrong(const polyccl_plan *plan, int rank, polyccl_dtype dtype, polyccl_redop op, size_t count,
                        const void *output);

#endif
