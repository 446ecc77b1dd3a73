#include "executor/call_trace.h"

#include "base/error.h"

polyccl_result pccl_call_trace_add(const pccl_call_trace *recorded, int rank, uint64_t zero, polyccl_trace *trace) {
  if (recorded->lost > 0) {
    return pccl_fail(POLYCCL_ERROR_LIMIT,
                     "rank %d recorded %zu events, %zu more than a trace of a run holds: take a smaller size", rank,
                     recorded->count + recorded->lost, recorded->lost);
  }
  for (size_t i = 0; i < recorded->count; i++) {
    const pccl_step_record *record = &recorded->record[i];
    PCCL_TRY(polyccl_trace_add(trace, &(polyccl_trace_event){.rank = rank,
                                                             .tb = (int32_t)record->tb,
                                                             .step = (int32_t)record->step,
                                                             .batch = (int32_t)record->batch,
                                                             .state = (polyccl_trace_state)record->state,
                                                             .begin = (double)(record->begin - zero) / 1e3,
                                                             .end = (double)(record->end - zero) / 1e3}));
  }
  return POLYCCL_SUCCESS;
}
