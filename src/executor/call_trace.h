/* What a rank's thread blocks do during one call. The executor's traced loops fill it; without a trace nothing is
 * measured. The memory is the caller's, so that the ranks of a run can share it with the process that started them. */
#ifndef PCCL_EXECUTOR_CALL_TRACE_H
#define PCCL_EXECUTOR_CALL_TRACE_H

#include <stddef.h>

#include <polyccl/trace.h>

typedef struct pccl_step_record {
  uint64_t begin, end; /* ns, pccl_now() */
  uint64_t batch;
  uint32_t tb, step;
  uint32_t state; /* polyccl_trace_state */
} pccl_step_record;

typedef struct pccl_call_trace {
  uint64_t begin; /* of the call */
  size_t capacity, count;
  size_t lost; /* did not fit */
  pccl_step_record record[];
} pccl_call_trace;

static inline void pccl_call_trace_put(pccl_call_trace *trace, pccl_step_record record) {
  if (trace->count < trace->capacity) {
    trace->record[trace->count++] = record;
  } else {
    trace->lost++;
  }
}

/* Adds what `rank` recorded; `zero` (ns) is the trace's time 0. LIMIT when records were lost. */
polyccl_result pccl_call_trace_add(const pccl_call_trace *recorded, int rank, uint64_t zero, polyccl_trace *trace);

#endif
