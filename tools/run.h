/* The parts of polyccl run: run.c reads the arguments, run_load.c loads and compiles plans, run_folder.c reads folders,
 * run_code.c makes code of plans, run_ranks.c and its parts (run_ranks.h) are what every rank does, run_data.c makes
 * the data and checks it. */
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
  const char *folder; /* its plans are loaded and each call chooses one; NULL: run the plans above */
  pccl_sizes sizes;
  uint64_t count; /* if has_count: replaces the sizes */
  bool has_count;
  polyccl_dtype dtype;
  polyccl_redop op;
  bool threads, shared, check;
  bool apart;             /* every timed call starts after a barrier */
  size_t offset;          /* of the buffers after an aligned address, in elements */
  int iterations, warmup; /* iterations 0: as many as fit into a time */
  /* If not NULL, the times in seconds are stored here, for each size out of place and then in place, and nothing is
   * printed. The ranks share this memory. */
  double *seconds;
  const char *size_option; /* for messages: the option that gave the sizes */
  FILE *trace;             /* the trace of a call of the last size is written here; NULL: none */
} pccl_run_args;

/* Runs all sizes and prints the table. Stores the number of wrong elements and bytes in *wrong. */
polyccl_result pccl_run_all(const pccl_run_args *args, uint64_t *wrong);

/* A folder of plans. Without ranks (0) or a collective all plans must have the same. */
typedef struct pccl_run_folder {
  const char *path;
  int ranks;
  bool has_collective;
  polyccl_collective collective;
} pccl_run_folder;

polyccl_result pccl_run_open_folder(const pccl_run_folder *folder, pccl_run_args *run);
/* Calls the library's function for the plan's collective. */
polyccl_result pccl_run_call(polyccl_comm *comm, const polyccl_plan *plan, const void *send, void *recv, size_t count,
                             polyccl_dtype dtype, polyccl_redop op);

/* Generates and compiles the plan's code; stores the path that the ranks load it from. */
polyccl_result pccl_run_generate(const polyccl_plan *plan, char *path, size_t bytes);

/* ---- data ---- */

/* Fills the input of `rank`, whose blocks have `count` elements, with values that differ by rank and index. */
void pccl_run_fill(const polyccl_plan *plan, int rank, polyccl_dtype dtype, polyccl_redop op, size_t count,
                   void *input);
/* Counts the elements of the output of `rank` that differ from what the definition of the collective gives. */
uint64_t pccl_run_wrong(const polyccl_plan *plan, int rank, polyccl_dtype dtype, polyccl_redop op, size_t count,
                        const void *output);

#endif
