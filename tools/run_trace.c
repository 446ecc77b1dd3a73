/* polyccl run --trace: what every step of a call does. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "executor/call_trace.h"
#include "run_ranks.h"
#include "runtime/comm.h"

/* The maximum number of events of a rank. Pages that are not written cost nothing. */
enum { MAX_EVENTS = 1 << 19, TRACED_CALLS = 9 };
static const size_t trace_bytes = sizeof(pccl_call_trace) + MAX_EVENTS * sizeof(pccl_step_record);

/* The two traces of a rank: of the call just made, and of the fastest so far. */
typedef enum which { CURRENT = 0, FASTEST } which;

static pccl_call_trace *trace_of(const pccl_run_job *j, int rank, which w) {
  return (pccl_call_trace *)(void *)(j->traces + (2 * (size_t)rank + w) * trace_bytes);
}

/* Returns the nanoseconds from the start of the first rank to the last event of all ranks. */
static uint64_t call_duration(const pccl_run_job *j, int ranks) {
  uint64_t begin = UINT64_MAX, end = 0;
  for (int rank = 0; rank < ranks; rank++) {
    const pccl_call_trace *trace = trace_of(j, rank, CURRENT);
    begin = trace->begin < begin ? trace->begin : begin;
    for (size_t i = 0; i < trace->count; i++) {
      end = trace->record[i].end > end ? trace->record[i].end : end;
    }
  }
  return end > begin ? end - begin : 0;
}

polyccl_result pccl_run_record(polyccl_comm *comm, pccl_run_job *j, int id, const pccl_run_buffers *b, size_t count) {
  int rank = polyccl_comm_user_rank(comm);
  pccl_call_trace *trace = trace_of(j, rank, CURRENT);
  trace->capacity = MAX_EVENTS;
  uint64_t min_duration = UINT64_MAX;
  for (int i = 0; i < TRACED_CALLS; i++) {
    PCCL_TRY(pccl_run_barrier(comm, j->board));
    pccl_record_calls(comm, trace);
    polyccl_result result = pccl_run_calls(comm, id, j->args, b, count, 1);
    pccl_record_calls(comm, NULL);
    PCCL_TRY(result);
    PCCL_TRY(pccl_run_barrier(comm, j->board));
    uint64_t duration = call_duration(j, polyccl_comm_count(comm)); /* every rank finds the same */
    if (duration < min_duration) {
      min_duration = duration;
      memcpy(trace_of(j, rank, FASTEST), trace, sizeof *trace + trace->count * sizeof trace->record[0]);
    }
  }
  return POLYCCL_SUCCESS;
}

/* The trace is of the plan that ran last, which is the one in place if both placements ran. */
polyccl_result pccl_run_write_trace(const pccl_run_job *j) {
  const pccl_run_args *args = j->args;
  const polyccl_plan *plan = args->plan[1] != NULL ? args->plan[1] : args->plan[0];
  uint64_t zero = UINT64_MAX;
  for (int rank = 0; rank < plan->ranks; rank++) {
    zero = trace_of(j, rank, FASTEST)->begin < zero ? trace_of(j, rank, FASTEST)->begin : zero;
  }
  polyccl_trace *trace;
  PCCL_TRY(polyccl_trace_create(plan, "measured", &trace));
  polyccl_result result = POLYCCL_SUCCESS;
  for (int rank = 0; rank < plan->ranks && result == POLYCCL_SUCCESS; rank++) {
    result = pccl_call_trace_add(trace_of(j, rank, FASTEST), rank, zero, trace);
  }
  if (result == POLYCCL_SUCCESS) {
    result = polyccl_trace_finish(trace);
  }
  if (result == POLYCCL_SUCCESS) {
    result = polyccl_trace_write(trace, args->trace);
  }
  polyccl_trace_destroy(trace);
  return result;
}

polyccl_result pccl_run_map_traces(pccl_run_job *j, int ranks) {
  void *memory = mmap(NULL, 2 * (size_t)ranks * trace_bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return pccl_fail_errno("no memory for the traces of %d ranks", ranks);
  }
  j->traces = memory;
  return POLYCCL_SUCCESS;
}

void pccl_run_unmap_traces(pccl_run_job *j, int ranks) {
  if (j->traces != NULL) {
    munmap(j->traces, 2 * (size_t)ranks * trace_bytes);
    j->traces = NULL;
  }
}
