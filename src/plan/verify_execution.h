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
  int32_t *value;           /* [cells] 1 + the value stored there; 0: nothing was stored; -1: it never held anything */
  int32_t *writer;          /* [cells] 1 + the last step that wrote it, or 0 */
  size_t *message;          /* [steps] where a send's values start in `sent` */
  PCCL_VEC(int32_t) sent;   /* the values of all messages */
  PCCL_VEC(int32_t) wanted; /* leaves that an output chunk must hold */
  pccl_coverage coverage;   /* of `values`, once they are all there */
} pccl_execution;

/* What a cell of `rank` holds, PCCL_NOTHING if nothing. The inputs are there without being stored: memory that no step
 * touches stays untouched here, too. */
static inline int32_t pccl_execution_held(const pccl_execution *e, int32_t rank, size_t cell) {
  int32_t stored = e->value[cell];
  if (stored != 0) {
    return stored > 0 ? stored - 1 : PCCL_NOTHING;
  }
  int64_t chunk = (int64_t)(cell - e->v->cell[rank]) - pccl_verify_cell(e->v, rank, POLYCCL_BUF_INPUT, 0);
  return chunk >= 0 && chunk < e->values.input ? rank * e->values.input + (int32_t)chunk : PCCL_NOTHING;
}

/* At the end: every output chunk holds exactly what it must. */
polyccl_result pccl_verify_outputs(pccl_execution *e);

/* Sets the report's `identical`. */
polyccl_result pccl_verify_identical(pccl_execution *e);

#endif
