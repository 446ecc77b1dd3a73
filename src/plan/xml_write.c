/* Writes MSCCL XML. A step with several waits becomes nops before it, one each; in place the one memory is called by
 * one name, as the public tools do. The plan's own nops and what the target has no word for are gone by then
 * (xml_lower.h). */
#include <stdlib.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/vec.h"
#include "plan/formats.h"
#include "plan/out.h"
#include "plan/plan.h"
#include "plan/xml_lower.h"
#include "plan/xml_pieces.h"
#include "plan/xml_target.h"

typedef struct writer {
  const polyccl_plan *plan;
  const pccl_xml_target *target;
  int32_t *element; /* [steps]: the step's number in its thread block's XML */
  bool *awaited;    /* [steps]: waited for, or the end of a chain of reductions */
  pccl_out out;
} writer;

static void put_text(writer *w, const char *text) { pccl_out_put(&w->out, text); }

/* name="value" with a blank before it. */
static void put_attribute(writer *w, const char *name, const char *value) {
  put_text(w, " ");
  put_text(w, name);
  put_text(w, "=\"");
  put_text(w, value);
  put_text(w, "\"");
}

static void put_number_attribute(writer *w, const char *name, int64_t value) {
  put_text(w, " ");
  put_text(w, name);
  put_text(w, "=\"");
  if (value < 0) {
    put_text(w, "-");
  }
  pccl_out_number(&w->out, (uint64_t)(value < 0 ? -value : value));
  put_text(w, "\"");
}

static void write_redops_attribute(writer *w, uint32_t redops) {
  put_text(w, " redops=\"");
  for (int op = 0; op < POLYCCL_REDOP_COUNT; op++) {
    if ((redops >> op & 1) != 0) {
      put_text(w, (redops & ((1u << op) - 1)) != 0 ? " " : "");
      put_text(w, polyccl_redop_name((polyccl_redop)op));
    }
  }
  put_text(w, "\"");
}

static polyccl_result write_algo_tag(writer *w) {
  const polyccl_plan *plan = w->plan;
  pccl_text name = {0};
  int32_t channels = 1;
  pccl_escape_xml(&name, plan->name != NULL ? plan->name : "");
  if (name.failed) {
    pccl_text_free(&name);
    return pccl_no_memory("writing a plan");
  }
  for (size_t i = 0; i < plan->connections; i++) {
    channels = plan->connection[i].channel >= channels ? plan->connection[i].channel + 1 : channels;
  }
  put_text(w, "<algo");
  put_attribute(w, "name", name.data != NULL ? name.data : "");
  put_attribute(w, "proto", polyccl_protocol_name(plan->protocol));
  put_number_attribute(w, "nchannels", channels);
  put_number_attribute(w, "nchunksperloop", pccl_xml_chunks_per_loop(plan));
  put_number_attribute(w, "ngpus", plan->ranks);
  put_attribute(w, "coll",
                plan->collective == POLYCCL_REDUCE_SCATTER ? w->target->reduce_scatter
                                                           : polyccl_collective_name(plan->collective));
  put_number_attribute(w, "inplace", plan->inplace ? 1 : 0);
  if (w->target->place_flags) {
    put_number_attribute(w, "outofplace", plan->inplace ? 0 : 1);
  }
  /* microsoft/msccl takes 128 MiB for the maximum that is not written. */
  int64_t max = plan->max_bytes > 0 && plan->max_bytes < INT64_MAX ? (int64_t)plan->max_bytes
                : w->target->no_limit_is_zero                      ? 0
                                                                   : INT64_MAX;
  put_number_attribute(w, "minBytes", plan->min_bytes < INT64_MAX ? (int64_t)plan->min_bytes : INT64_MAX);
  put_number_attribute(w, "maxBytes", max);
  if (plan->root != 0) {
    put_number_attribute(w, "root", plan->root);
  }
  if (plan->redops != 0) {
    write_redops_attribute(w, plan->redops);
  }
  put_text(w, ">\n");
  pccl_text_free(&name);
  return POLYCCL_SUCCESS;
}

static void write_step_side(writer *w, const char *buffer, const char *offset, int which, int32_t at) {
  static const char *const letters[] = {
      [POLYCCL_BUF_INPUT] = "i", [POLYCCL_BUF_OUTPUT] = "o", [POLYCCL_BUF_SCRATCH] = "s"};
  put_attribute(w, buffer, letters[which]);
  put_number_attribute(w, offset, at);
}

static void write_step_element(writer *w, int32_t number_in_tb, const polyccl_step *step, polyccl_wait wait,
                               bool awaited) {
  put_text(w, "      <step");
  put_number_attribute(w, "s", number_in_tb);
  put_attribute(w, "type", pccl_ops[step->op].xml);
  write_step_side(w, "srcbuf", "srcoff", step->src_buf, step->src);
  write_step_side(w, "dstbuf", "dstoff", step->dst_buf, step->dst);
  put_number_attribute(w, "cnt", step->count);
  put_number_attribute(w, "depid", wait.tb);
  put_number_attribute(w, "deps", wait.tb < 0 ? -1 : wait.step);
  put_number_attribute(w, "hasdep", awaited ? 1 : 0);
  put_text(w, "/>\n");
}

/* A side that the op does not use is written as the side that it uses, which every executor takes. */
static polyccl_step fill_both_sides(const writer *w, int32_t rank, const polyccl_step *from) {
  polyccl_step step = *from;
  pccl_plan_normalise(w->plan, rank, &step);
  if (!pccl_ops[step.op].reads_src) {
    step.src_buf = step.dst_buf;
    step.src = step.dst;
  } else if (!pccl_ops[step.op].writes_dst) {
    step.dst_buf = step.src_buf;
    step.dst = step.src;
  }
  return step;
}

static void write_step_elements(writer *w, const polyccl_thread_block *tb, int32_t s) {
  static const polyccl_step nop = {
      .op = POLYCCL_STEP_NOP, .src_buf = POLYCCL_BUF_INPUT, .dst_buf = POLYCCL_BUF_OUTPUT, .src = -1, .dst = -1};
  const polyccl_plan *plan = w->plan;
  const polyccl_step *step = &plan->step[tb->step + s];
  const polyccl_plan_rank *rank = &plan->rank[tb->rank];
  int32_t left = pccl_xml_elements(plan, tb, s);
  polyccl_wait last = {-1, -1};
  for (int32_t i = 0; i < step->waits; i++) {
    polyccl_wait wait = plan->wait[step->wait + i];
    if (!pccl_xml_writes_wait(plan, tb, s, wait)) {
      continue;
    }
    polyccl_wait written = {wait.tb, w->element[plan->tb[rank->tb + wait.tb].step + wait.step]};
    if (left > 1) {
      left--;
      write_step_element(w, w->element[tb->step + s] - left, &nop, written, false);
    } else {
      last = written;
    }
  }
  polyccl_step full = fill_both_sides(w, tb->rank, step);
  write_step_element(w, w->element[tb->step + s], &full, last, w->awaited[tb->step + s]);
}

static void write_tb_element(writer *w, int32_t id, const polyccl_thread_block *tb) {
  int32_t recv = -1, send = -1;
  for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
    recv = w->plan->step[s].recv >= 0 ? w->plan->step[s].recv : recv;
    send = w->plan->step[s].send >= 0 ? w->plan->step[s].send : send;
  }
  const polyccl_connection *any = recv >= 0   ? &w->plan->connection[recv]
                                  : send >= 0 ? &w->plan->connection[send]
                                              : NULL;
  put_text(w, "    <tb");
  put_number_attribute(w, "id", id);
  put_number_attribute(w, "send", send >= 0 ? w->plan->connection[send].dst : -1);
  put_number_attribute(w, "recv", recv >= 0 ? w->plan->connection[recv].src : -1);
  put_number_attribute(w, "chan", any != NULL ? any->channel : 0);
  put_text(w, ">\n");
  for (int32_t s = 0; s < tb->steps; s++) {
    write_step_elements(w, tb, s);
  }
  put_text(w, "    </tb>\n");
}

static void write_gpu_element(writer *w, int32_t r) {
  const polyccl_plan_rank *rank = &w->plan->rank[r];
  int32_t input, output;
  polyccl_plan_shape(w->plan, r, &input, &output);
  bool one = w->plan->inplace; /* only the buffer that pccl_plan_normalise() keeps is counted */
  put_text(w, "  <gpu");
  put_number_attribute(w, "id", r);
  put_number_attribute(w, "i_chunks", one && output > input ? 0 : input);
  put_number_attribute(w, "o_chunks", one && output <= input ? 0 : output);
  put_number_attribute(w, "s_chunks", rank->scratch);
  put_text(w, ">\n");
  for (int32_t t = 0; t < rank->tbs; t++) {
    write_tb_element(w, t, &w->plan->tb[rank->tb + t]);
  }
  if (rank->tbs == 0) { /* executors launch as many thread blocks as stand here, and none is an error */
    put_text(w, "    <tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"0\">\n    </tb>\n");
  }
  put_text(w, "  </gpu>\n");
}

static void number_elements(writer *w) {
  const polyccl_plan *plan = w->plan;
  for (int32_t r = 0; r < plan->ranks; r++) {
    const polyccl_plan_rank *rank = &plan->rank[r];
    for (int32_t t = rank->tb; t < rank->tb + rank->tbs; t++) {
      const polyccl_thread_block *tb = &plan->tb[t];
      int32_t next = 0;
      for (int32_t s = 0; s < tb->steps; s++) {
        const polyccl_step *step = &plan->step[tb->step + s];
        next += pccl_xml_elements(plan, tb, s);
        w->element[tb->step + s] = next - 1;
        for (int32_t i = 0; i < step->waits; i++) {
          polyccl_wait wait = plan->wait[step->wait + i];
          bool written = pccl_xml_writes_wait(plan, tb, s, wait);
          w->awaited[plan->tb[rank->tb + wait.tb].step + wait.step] |= written;
        }
      }
    }
  }
}

/* Executors run successive reductions of one thread block into one place as one, at the last one's count; a step that
 * others wait for ends such a chain. It has to end before counts change, before one adds to itself what the chain has
 * made, and before it is longer than they keep. */
static void end_reduction_chains(writer *w, const polyccl_thread_block *tb) {
  int32_t length = 1;
  for (int32_t s = tb->step; s + 1 < tb->step + tb->steps; s++) {
    polyccl_step a = fill_both_sides(w, tb->rank, &w->plan->step[s]),
                 b = fill_both_sides(w, tb->rank, &w->plan->step[s + 1]);
    bool chained = a.op == POLYCCL_STEP_REDUCE && b.op == POLYCCL_STEP_REDUCE && !w->awaited[s] &&
                   a.dst_buf == b.dst_buf && a.dst == b.dst && a.src_buf == b.src_buf;
    if (chained && (a.count != b.count || length == w->target->chained || (b.src_buf == b.dst_buf && b.src == b.dst))) {
      w->awaited[s] = true;
      chained = false;
    }
    length = chained ? length + 1 : 1;
  }
}

static polyccl_result write_document(writer *w) {
  const polyccl_plan *plan = w->plan;
  w->element = pccl_array(plan->steps, sizeof *w->element);
  w->awaited = pccl_zeroed(plan->steps, sizeof *w->awaited);
  if (w->element == NULL || w->awaited == NULL) {
    return pccl_no_memory("writing a plan");
  }
  number_elements(w);
  for (size_t t = 0; t < plan->tbs; t++) {
    end_reduction_chains(w, &plan->tb[t]);
  }
  PCCL_TRY(write_algo_tag(w));
  for (int32_t r = 0; r < plan->ranks; r++) {
    write_gpu_element(w, r);
  }
  put_text(w, "</algo>\n");
  pccl_out_flush(&w->out);
  return POLYCCL_SUCCESS;
}

static polyccl_result write_checked_plan(const pccl_xml_target *target, const polyccl_plan *plan, FILE *to) {
  writer *w = malloc(sizeof *w);
  if (w == NULL) {
    return pccl_no_memory("writing a plan");
  }
  w->plan = plan;
  w->target = target;
  w->element = NULL;
  w->awaited = NULL;
  w->out.to = to;
  w->out.len = 0;
  polyccl_result result = write_document(w);
  free(w->element);
  free(w->awaited);
  free(w);
  return result;
}

/* A plan that is safe up to a size is written for sizes up to it. */
static polyccl_result write_limited_plan(const pccl_xml_target *target, const polyccl_plan *plan, FILE *to) {
  polyccl_plan limited = *plan;
  uint64_t bytes;
  PCCL_TRY(pccl_xml_target_check(target, plan));
  PCCL_TRY(pccl_xml_safe_bytes(target, plan, &bytes));
  if (plan->min_bytes > bytes) {
    return pccl_fail(POLYCCL_ERROR_LIMIT,
                     "the plan is meant for %llu bytes and more; above %llu bytes %s sends steps of several chunks in "
                     "more messages than the %d that fit in its slots with %s: use protocol LL or LL128, or split the "
                     "references",
                     (unsigned long long)plan->min_bytes, (unsigned long long)bytes, target->name,
                     target->depth[plan->protocol], polyccl_protocol_name(plan->protocol));
  }
  if (bytes != UINT64_MAX && (plan->max_bytes == 0 || plan->max_bytes > bytes)) {
    limited.max_bytes = bytes;
  }
  return write_checked_plan(target, &limited, to);
}

polyccl_result pccl_xml_plan_write(const polyccl_plan *plan, polyccl_format format, FILE *to) {
  const pccl_xml_target *target = pccl_xml_target_of(format);
  polyccl_plan *lowered;
  PCCL_TRY(pccl_xml_target_check_kind(target, plan));
  PCCL_TRY(pccl_xml_lower(target, plan, &lowered));
  polyccl_result result = write_limited_plan(target, lowered != NULL ? lowered : plan, to);
  polyccl_plan_destroy(lowered);
  return result;
}
