/* The request of polyccl run, and the plans that it runs. */
#ifndef PCCL_TOOLS_RUN_LOAD_H
#define PCCL_TOOLS_RUN_LOAD_H

#include "program_args.h"
#include "run.h"

typedef struct pccl_run_request {
  pccl_program_args program;
  pccl_run_args run;
  const char *code;
  int ranks, alloc, offset, check; /* ranks 0: not given */
  bool only_in_place, only_out_of_place, has_protocol, has_order, generated;
  polyccl_protocol protocol;
  int order;
  bool has_collective; /* for folders */
  polyccl_collective collective;
  int depth;
  const char *trace;
  char made[PCCL_RUN_PLACEMENTS][64]; /* paths of code that was compiled here */
} pccl_run_request;

/* Loads the program, plan or folder into args->run. The plans are the caller's to destroy, also after a failure. */
polyccl_result pccl_run_load(pccl_run_request *args);

#endif
