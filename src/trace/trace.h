/* What the parts of a trace share: the store that grows, joining of messages. <polyccl/trace.h> says what a trace is.
 */
#ifndef PCCL_TRACE_H
#define PCCL_TRACE_H

#include <polyccl/trace.h>

#include "base/vec.h"

/* The limit of a time (us) and of a rate (GB/s). Every reader of JSON can hold it, and no clock shows as much. */
#define PCCL_TRACE_MAX 1e18

/* While a trace is built; finishing moves the arrays into it. */
struct pccl_trace_building {
  PCCL_VEC(polyccl_trace_record) records;
  PCCL_VEC(polyccl_trace_sample) samples;
  PCCL_VEC(polyccl_trace_link) links;
  int32_t *rank_block; /* [ranks + 1]: first block of each rank; NULL when the trace was not made of a plan */
  int32_t ranks;
};

/* An empty trace that can grow. */
polyccl_result pccl_trace_new(const char *name, const char *source, polyccl_trace **trace);

/* Sets the steps' and then the records' `message`; records are sorted. The k-th send of a connection meets its k-th
 * receive, in the order of steps, for each micro-batch. */
polyccl_result pccl_trace_join(polyccl_trace *trace);

#endif
