/* Program -> plan. polyccl_compile() runs the passes of src/compiler in order; the result has passed the verifier. */
#ifndef POLYCCL_COMPILE_H
#define POLYCCL_COMPILE_H

#include <stdio.h>

#include "plan.h"
#include "program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum polyccl_placement {
  POLYCCL_AS_WRITTEN = 0, /* in or out of place as the program says */
  POLYCCL_IN_PLACE,
  POLYCCL_OUT_OF_PLACE /* an in-place program: first reads come from the input buffer */
} polyccl_placement;

typedef struct polyccl_compile_options {
  polyccl_placement placement;
  const char *dump; /* name of a pass ("lower", "fuse", ...): write the IR after it; NULL: none */
  FILE *dump_to;    /* where; NULL: stderr */
  bool no_verify;   /* neither check the program nor verify the plan (the caller does) */
} polyccl_compile_options;

/* options may be NULL. Errors name the author's lines. The caller destroys the plan. */
POLYCCL_API polyccl_result polyccl_compile(const polyccl_program *program, const polyccl_compile_options *options,
                                           polyccl_plan **plan);

#ifdef __cplusplus
}
#endif

#endif
