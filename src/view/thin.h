/* Reduces the samples of the rates of links for pages. Where there are more than a screen can show, the rate of a link
 * is its mean over equal spans of time. The bytes that a link has carried in all stay the same. */
#ifndef PCCL_VIEW_THIN_H
#define PCCL_VIEW_THIN_H

#include <polyccl/trace.h>

#include "base/vec.h"

typedef struct pccl_thinned {
  PCCL_VEC(polyccl_trace_sample) samples;
  size_t *first; /* [links + 1]: where each link's samples begin */
} pccl_thinned;

/* About `budget` samples in all. */
polyccl_result pccl_thin_samples(const polyccl_trace *trace, size_t budget, pccl_thinned *thinned);
void pccl_thinned_free(pccl_thinned *thinned);

#endif
