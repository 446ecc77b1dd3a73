/* The state of the symbolic execution: what each chunk of memory holds. verify_post.c runs the steps,
 * verify_outputs.c compares what they leave. */
#ifndef PCCL_PLAN_VERIFY_EXECUTION_H
#define PCCL_PLAN_VERIFY_EXECUTION_H

#include "plan/verify.h"
#include "program/coverage.h"
#include "program/value.h"

typedef struct pccl_execution {
  pccl_verify *v;
  pccl_values values;
  int32_t *value;           /* [cells] */
  int32_t *writer;          /* [cells] the last step that wrote it, or -1 */
  size_t *message;          /* [steps] where a send's values start in `sent` */
  PCCL_VEC(int32_t) sent;   /* the values of all messages */
  PCCL_VEC(int32_t) wanted; /* leaves that an output chunk must hold */
  pccl_coverage coverage;   /* of `values`, once they are all there */
} pccl_execution;

/* At the end: every output chunk holds exactly what it must. */
polyccl_result pccl_verify_outputs(pccl_execution *e);

/* Sets the report's `identical`. */
polyccl_result pccl_verify_identical(pccl_execution *e);

#endif
