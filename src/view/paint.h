/* The colours and the texts of ops and states, the same in every picture. The hues differ in lightness too, so that
 * they stay apart in grey print and for colour-blind eyes; waiting is also drawn thinner than working. */
#ifndef PCCL_VIEW_PAINT_H
#define PCCL_VIEW_PAINT_H

#include <polyccl/trace.h>

typedef struct pccl_paint {
  const char *light, *dark; /* "#rrggbb" on a light and on a dark ground */
  const char *title;        /* what the name alone does not say */
} pccl_paint;

/* By polyccl_step_op; the last is for steps of other programs. */
extern const pccl_paint pccl_op_paint[POLYCCL_STEP_OP_COUNT + 1];
extern const pccl_paint pccl_state_paint[POLYCCL_TRACE_STATE_COUNT];

#endif
