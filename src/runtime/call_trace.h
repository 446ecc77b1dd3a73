/* What a rank's thread blocks do during one call. The executor's traced loops fill it; without a trace nothing is
 * measured. The memory is the caller's, so that the ranks of a run can share it with the process that started them. */
#ifndef PCCL_RUNTIME_CALL_TRACE_H
#define PCCL_RUNTIME_CALL_TRACE_H

#include <polyccl/polyccl.h>
#include <polyccl/trace.h>

typedef struct pccl_call_record {
  uint64_t begin, end; /* ns, pccl_now() */
  uint64_t batch;
  uint32_t tb, step;
  uint32_t state; /* polyccl_trace_state */
} pccl_call_record;

typedef struct pccl_call_trace {
  uint64_t begin; /* of the call */
  size_t capacity, count;
  size_t lost; /* did not fit */
  pccl_call_record record[];
} pccl_call_trace;

static inline void pccl_call_trace_put(pccl_call_trace *trace, pccl_call_record record) {
  if (trace->count < trace->capacity) {
    trace->record[trace->count++] = record;
  } else {
    trace->lost++;
  }
}

/* The next calls of this rank are recorded, each from the start of the trace; NULL: no longer. */
void pccl_record_calls(polyccl_comm *comm, pccl_call_trace *trace);

/* Adds what `rank` recorded; `zero` (ns) is the trace's time 0. LIMIT when records were lost. */
polyccl_result pccl_call_trace_add(const pccl_call_trace *recorded, int rank, uint64_t zero, polyccl_trace *trace);

#endif
