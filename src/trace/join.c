/* Joins each receive to the send that made it possible, and sorts the records. */
#include <stdlib.h>

#include "base/error.h"
#include "base/map.h"
#include "trace/trace.h"

/* One end of a connection: the k-th send or receive on it. */
typedef struct end {
  int32_t src, dst, channel, order; /* order: index into steps; an end's rank has one thread block for the connection */
} end;

static int by_connection(const void *left, const void *right) {
  const end *a = left, *b = right;
  if (a->src != b->src) {
    return a->src < b->src ? -1 : 1;
  }
  if (a->dst != b->dst) {
    return a->dst < b->dst ? -1 : 1;
  }
  if (a->channel != b->channel) {
    return a->channel < b->channel ? -1 : 1;
  }
  return (a->order > b->order) - (a->order < b->order);
}

static bool same_connection(const end *a, const end *b) {
  return a->src == b->src && a->dst == b->dst && a->channel == b->channel;
}

static size_t collect_ends(const polyccl_trace *trace, bool sends, end *ends) {
  size_t count = 0;
  for (size_t i = 0; i < trace->steps; i++) {
    const polyccl_trace_step *step = &trace->step[i];
    int32_t rank = trace->block[step->block].rank;
    if (sends && step->send_rank >= 0) {
      ends[count++] = (end){rank, step->send_rank, step->send_channel, (int32_t)i};
    } else if (!sends && step->recv_rank >= 0) {
      ends[count++] = (end){step->recv_rank, rank, step->recv_channel, (int32_t)i};
    }
  }
  if (count > 0) {
    qsort(ends, count, sizeof *ends, by_connection);
  }
  return count;
}

static polyccl_result join_steps(polyccl_trace *trace) {
  end *sends = pccl_array(trace->steps, sizeof *sends), *receives = pccl_array(trace->steps, sizeof *receives);
  if (sends == NULL || receives == NULL) {
    free(sends);
    free(receives);
    return pccl_no_memory("joining a trace");
  }
  size_t send_count = collect_ends(trace, true, sends), receive_count = collect_ends(trace, false, receives);
  for (size_t s = 0, r = 0; s < send_count && r < receive_count;) {
    if (same_connection(&sends[s], &receives[r])) {
      trace->step[receives[r++].order].message = sends[s++].order;
      continue;
    }
    end send = sends[s], receive = receives[r];
    send.order = receive.order = 0;
    if (by_connection(&send, &receive) < 0) {
      s++;
    } else {
      r++;
    }
  }
  free(sends);
  free(receives);
  return POLYCCL_SUCCESS;
}

static polyccl_result join_records(polyccl_trace *trace) {
  pccl_map busy = {0}; /* (step, micro-batch) -> record */
  polyccl_result result = POLYCCL_SUCCESS;
  for (size_t i = 0; i < trace->records && result == POLYCCL_SUCCESS; i++) {
    const polyccl_trace_record *record = &trace->record[i];
    if (record->state == POLYCCL_TRACE_BUSY && trace->step[record->step].send_rank >= 0) {
      bool is_new;
      uint64_t key = (uint64_t)(uint32_t)record->step << 32 | (uint32_t)record->batch;
      result = pccl_map_put(&busy, key, i, &is_new) != NULL ? POLYCCL_SUCCESS : pccl_no_memory("joining a trace");
    }
  }
  for (size_t i = 0; i < trace->records && result == POLYCCL_SUCCESS; i++) {
    polyccl_trace_record *record = &trace->record[i];
    int32_t from = record->state == POLYCCL_TRACE_BUSY ? trace->step[record->step].message : -1;
    const uint64_t *sender =
        from < 0 ? NULL : pccl_map_get(&busy, (uint64_t)(uint32_t)from << 32 | (uint32_t)record->batch);
    record->message = sender != NULL ? (int32_t)*sender : -1;
  }
  pccl_map_free(&busy);
  return result;
}

/* qsort() has no context argument, so the block is kept beside the record. */
typedef struct keyed {
  polyccl_trace_record record;
  int32_t block;
} keyed;

static int by_block(const void *left, const void *right) {
  const keyed *a = left, *b = right;
  if (a->block != b->block) {
    return a->block < b->block ? -1 : 1;
  }
  if (a->record.begin != b->record.begin) {
    return a->record.begin < b->record.begin ? -1 : 1;
  }
  if (a->record.end != b->record.end) {
    return a->record.end < b->record.end ? -1 : 1;
  }
  return (a->record.step > b->record.step) - (a->record.step < b->record.step);
}

static polyccl_result sort_records(polyccl_trace *trace) {
  keyed *sorted = pccl_array(trace->records, sizeof *sorted);
  if (sorted == NULL) {
    return pccl_no_memory("sorting a trace");
  }
  for (size_t i = 0; i < trace->records; i++) {
    sorted[i] = (keyed){trace->record[i], trace->step[trace->record[i].step].block};
  }
  if (trace->records > 0) {
    qsort(sorted, trace->records, sizeof *sorted, by_block);
  }
  for (size_t i = 0; i < trace->records; i++) {
    trace->record[i] = sorted[i].record;
  }
  free(sorted);
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_trace_join(polyccl_trace *trace) {
  PCCL_TRY(sort_records(trace));
  PCCL_TRY(join_steps(trace));
  return join_records(trace);
}
