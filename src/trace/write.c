/* A trace as Chrome trace events; docs/view.md has the format. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/escape.h"
#include "plan/plan.h"
#include "trace/trace.h"

/* Text goes out in pieces, so that a large trace does not stand in memory twice. */
enum { PIECE = 1 << 16 };

typedef struct writer {
  FILE *to;
  pccl_text text;
  bool first, failed;
} writer;

static void flush_writer(writer *w) {
  if (w->text.len > 0 && !w->failed) {
    w->failed = fwrite(w->text.data, 1, w->text.len, w->to) != w->text.len;
  }
  w->text.len = 0;
}

static void begin_event(writer *w) {
  if (w->text.len >= PIECE) {
    flush_writer(w);
  }
  pccl_text_add(&w->text, w->first ? "\n" : ",\n");
  w->first = false;
}

static void write_names(writer *w, const polyccl_trace *trace) {
  for (size_t i = 0; i < trace->blocks; i++) {
    const polyccl_trace_block *block = &trace->block[i];
    if (i == 0 || block->rank != block[-1].rank) {
      begin_event(w);
      pccl_text_add(&w->text, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"rank %d\"}}",
                    block->rank, block->rank);
      begin_event(w);
      pccl_text_add(&w->text, "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%d,\"args\":{\"sort_index\":%d}}",
                    block->rank, block->rank);
    }
    begin_event(w);
    pccl_text_add(&w->text,
                  "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"tb %d\"}}",
                  block->rank, block->tb, block->tb);
  }
}

static void add_step(pccl_text *text, const polyccl_trace *trace, const polyccl_trace_step *step) {
  static const char buffers[] = "ios";
  const pccl_op_traits *traits = step->op < POLYCCL_STEP_OP_COUNT ? &pccl_ops[step->op] : NULL;
  if (traits == NULL) {
    return;
  }
  pccl_text_add(text, ",\"op\":\"%s\"", traits->name);
  if (traits->reads_src) {
    pccl_text_add(text, ",\"src\":\"%c%d\"", buffers[step->src_buf % 3], step->src);
  }
  if (traits->writes_dst) {
    pccl_text_add(text, ",\"dst\":\"%c%d\"", buffers[step->dst_buf % 3], step->dst);
  }
  if (pccl_op_moves(step->op)) {
    pccl_text_add(text, ",\"count\":%d", step->count);
  }
  if (step->recv_rank >= 0) {
    pccl_text_add(text, ",\"from\":\"%d.%d\"", step->recv_rank, step->recv_channel);
  }
  if (step->send_rank >= 0) {
    pccl_text_add(text, ",\"to\":\"%d.%d\"", step->send_rank, step->send_channel);
  }
  for (int32_t i = 0; i < step->waits; i++) {
    const polyccl_wait *wait = &trace->wait[step->wait + i];
    pccl_text_add(text, i == 0 ? ",\"wait\":\"%d.%d" : " %d.%d", wait->tb, wait->step);
  }
  pccl_text_add(text, step->waits > 0 ? "\"" : "");
  if (step->place >= 0) {
    pccl_text_add(text, ",\"at\":");
    pccl_escape_json(text, trace->place[step->place]);
  }
}

/* Ends meet the next begin after rounding too: viewers nest what overlaps by a picosecond. */
static double round_time(double time) { return rint(time * 1e6) / 1e6; }

static void write_record(writer *w, const polyccl_trace *trace, const polyccl_trace_record *record) {
  const polyccl_trace_step *step = &trace->step[record->step];
  const polyccl_trace_block *block = &trace->block[step->block];
  const char *state = polyccl_trace_state_name((polyccl_trace_state)record->state);
  const char *op = polyccl_step_op_name((polyccl_step_op)step->op);
  begin_event(w);
  pccl_text_add(&w->text, "{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":",
                record->state != POLYCCL_TRACE_BUSY ? state
                : op != NULL                        ? op
                                                    : "step",
                state, block->rank, block->tb);
  pccl_json_number(&w->text, record->begin);
  pccl_text_add(&w->text, ",\"dur\":");
  pccl_json_number(&w->text, round_time(record->end) - round_time(record->begin));
  pccl_text_add(&w->text, ",\"args\":{\"step\":%d,\"batch\":%d", step->number, record->batch);
  add_step(&w->text, trace, step);
  pccl_text_add(&w->text, record->critical ? ",\"critical\":true}}" : "}}");
}

static void write_flow(writer *w, const polyccl_trace *trace, size_t index) {
  const polyccl_trace_record *receive = &trace->record[index], *send = &trace->record[receive->message];
  const polyccl_trace_block *to = &trace->block[trace->step[receive->step].block];
  const polyccl_trace_block *from = &trace->block[trace->step[send->step].block];
  double arrives = receive->begin > send->begin ? receive->begin : send->begin;
  begin_event(w);
  pccl_text_add(&w->text,
                "{\"ph\":\"s\",\"name\":\"message\",\"cat\":\"message\",\"id\":%zu,\"pid\":%d,\"tid\":%d,\"ts\":",
                index, from->rank, from->tb);
  pccl_json_number(&w->text, send->begin);
  pccl_text_add(&w->text, "}");
  begin_event(w);
  pccl_text_add(&w->text,
                "{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"message\",\"cat\":\"message\",\"id\":%zu,\"pid\":%d,\"tid\":%d,"
                "\"ts\":",
                index, to->rank, to->tb);
  pccl_json_number(&w->text, arrives < receive->end ? arrives : receive->end);
  pccl_text_add(&w->text, "}");
}

/* Links are counters of a process behind the last rank. */
static void write_links(writer *w, const polyccl_trace *trace) {
  int32_t pid = trace->blocks > 0 ? trace->block[trace->blocks - 1].rank + 1 : 0;
  if (trace->samples > 0) {
    begin_event(w);
    pccl_text_add(&w->text, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":\"links\"}}", pid);
  }
  for (size_t i = 0; i < trace->samples; i++) {
    const polyccl_trace_sample *sample = &trace->sample[i];
    begin_event(w);
    pccl_text_add(&w->text, "{\"ph\":\"C\",\"pid\":%d,\"name\":", pid);
    pccl_escape_json(&w->text, trace->link[sample->link].name);
    pccl_text_add(&w->text, ",\"id\":%d,\"ts\":", sample->link);
    pccl_json_number(&w->text, sample->time);
    pccl_text_add(&w->text, ",\"args\":{\"GB/s\":");
    pccl_json_number(&w->text, sample->rate);
    pccl_text_add(&w->text, "}}");
  }
}

static void write_header(writer *w, const polyccl_trace *trace) {
  pccl_text_add(&w->text, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"format\":\"polyccl-trace 1\",\"name\":");
  pccl_escape_json(&w->text, trace->name);
  pccl_text_add(&w->text, ",\"source\":");
  pccl_escape_json(&w->text, trace->source);
  pccl_text_add(&w->text, ",\"links\":[");
  for (size_t i = 0; i < trace->links; i++) {
    pccl_text_add(&w->text, i > 0 ? ",{\"name\":" : "{\"name\":");
    pccl_escape_json(&w->text, trace->link[i].name);
    pccl_text_add(&w->text, ",\"GB/s\":");
    pccl_json_number(&w->text, trace->link[i].bandwidth);
    pccl_text_add(&w->text, "}");
  }
  pccl_text_add(&w->text, "]},\n\"traceEvents\":[");
}

polyccl_result polyccl_trace_write(const polyccl_trace *trace, FILE *to) {
  if (!trace->finished) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the trace is not finished");
  }
  writer w = {.to = to, .first = true};
  write_header(&w, trace);
  write_names(&w, trace);
  for (size_t i = 0; i < trace->records; i++) {
    write_record(&w, trace, &trace->record[i]);
  }
  for (size_t i = 0; i < trace->records; i++) {
    if (trace->record[i].message >= 0) {
      write_flow(&w, trace, i);
    }
  }
  write_links(&w, trace);
  pccl_text_add(&w.text, "\n]}\n");
  flush_writer(&w);
  bool no_memory = w.text.failed;
  pccl_text_free(&w.text);
  if (no_memory) {
    return pccl_no_memory("a trace's text");
  }
  return w.failed || fflush(to) != 0 ? pccl_fail_errno("cannot write the trace") : POLYCCL_SUCCESS;
}
