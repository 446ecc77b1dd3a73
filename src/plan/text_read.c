/* Reads the plan's text format (docs/plan.md) in one pass, line by line. Its memory grows with what it has read, never
 * with a number in the text. text_head.c reads the header. */
#include <stdlib.h>

#include <polyccl/program.h>

#include "base/error.h"
#include "plan/formats.h"
#include "plan/text_reader.h"

static polyccl_result read_rank_line(pccl_text_reader *r) {
  int32_t number;
  polyccl_plan_rank rank = {0};
  if (r->builder.rank.len == 0) {
    PCCL_TRY(pccl_text_check_head(r));
  }
  pccl_scan start = r->scan;
  PCCL_TRY(pccl_text_read_int(r, "a rank", 0, POLYCCL_MAX_RANKS - 1, &number));
  if (number >= r->head.ranks || (size_t)number != r->builder.rank.len) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_scan_place(&start),
                        "the ranks 0 to %d must follow in order, but rank %d %s", r->head.ranks - 1, number,
                        number >= r->head.ranks ? "is out of range" : "is out of order");
  }
  if (!pccl_scan_accept(&r->scan, "scratch")) {
    return pccl_scan_expected(&r->scan, "\"scratch\"");
  }
  PCCL_TRY(pccl_text_read_int(r, "the number of scratch chunks", 0, POLYCCL_MAX_CHUNKS, &rank.scratch));
  polyccl_plan_shape(&r->head, number, &rank.input, &rank.output);
  return pccl_vec_push(&r->builder.rank, rank) ? POLYCCL_SUCCESS : pccl_no_memory("a plan");
}

static polyccl_result read_operand(pccl_text_reader *r, uint8_t *buffer, int32_t *offset) {
  static const char letters[] = {[POLYCCL_BUF_INPUT] = 'i', [POLYCCL_BUF_OUTPUT] = 'o', [POLYCCL_BUF_SCRATCH] = 's'};
  for (uint8_t b = 0; b < sizeof letters && !pccl_scan_at_end(&r->scan); b++) {
    if (*r->scan.at == letters[b]) {
      *buffer = b;
      return pccl_scan_lettered(&r->scan, "a buffer and an offset such as i0, o3 or s1", letters[b], INT32_MAX, offset);
    }
  }
  return pccl_scan_expected(&r->scan, "a buffer and an offset such as i0, o3 or s1");
}

/* "from PEER.CHANNEL" or "to PEER.CHANNEL". */
static polyccl_result read_connection(pccl_text_reader *r, bool receives, int32_t *index) {
  int32_t peer, channel;
  int32_t self = (int32_t)r->builder.rank.len - 1;
  if (!pccl_scan_accept(&r->scan, receives ? "from" : "to")) {
    return pccl_scan_expected(&r->scan, receives ? "\"from\" and the sender" : "\"to\" and the receiver");
  }
  PCCL_TRY(pccl_scan_pair(&r->scan, "a rank and a channel such as 1.0", '.', r->head.ranks - 1, PCCL_PLAN_MAX_CHANNEL,
                          &peer, &channel));
  int32_t src = receives ? peer : self, dst = receives ? self : peer;
  int32_t *last = receives ? &r->last_recv : &r->last_send;
  if (*last >= 0) {
    const polyccl_connection *used = &r->builder.connection.data[*last];
    if (used->src == src && used->dst == dst && used->channel == channel) {
      *index = *last;
      return POLYCCL_SUCCESS;
    }
  }
  PCCL_TRY(pccl_plan_builder_connection(&r->builder, src, dst, channel, index));
  *last = *index;
  return POLYCCL_SUCCESS;
}

static polyccl_result read_waits(pccl_text_reader *r) {
  if (!pccl_scan_accept(&r->scan, "wait")) {
    return POLYCCL_SUCCESS;
  }
  do {
    int32_t tb, step;
    PCCL_TRY(pccl_scan_pair(&r->scan, "a thread block and a step such as 1.3", '.', INT32_MAX, INT32_MAX, &tb, &step));
    PCCL_TRY(pccl_plan_builder_add_wait(&r->builder, tb, step));
  } while (!pccl_scan_at_end(&r->scan) && *r->scan.at >= '0' && *r->scan.at <= '9');
  return POLYCCL_SUCCESS;
}

static polyccl_result read_step_place(pccl_text_reader *r, polyccl_step *step) {
  int32_t file, line;
  if (!pccl_scan_accept(&r->scan, "at")) {
    return POLYCCL_SUCCESS;
  }
  pccl_scan start = r->scan;
  PCCL_TRY(
      pccl_scan_pair(&r->scan, "a file's number and a line such as 0:12", ':', INT32_MAX, INT32_MAX, &file, &line));
  if ((size_t)file >= r->builder.file.len) {
    return pccl_scan_expected(&start, "a file that the header names");
  }
  return pccl_plan_builder_location(&r->builder, file, line, &step->location);
}

static const pccl_op_traits *find_op_by_word(pccl_word word, uint8_t *op) {
  for (uint8_t i = 0; i < POLYCCL_STEP_OP_COUNT; i++) {
    if (pccl_word_is(word, pccl_ops[i].name)) {
      *op = i;
      return &pccl_ops[i];
    }
  }
  return NULL;
}

static polyccl_result read_step_line(pccl_text_reader *r, pccl_word word, pccl_scan *start) {
  uint8_t op;
  const pccl_op_traits *uses = find_op_by_word(word, &op);
  if (uses == NULL) {
    return pccl_scan_expected(start, "a step's op, \"tb\" or \"rank\"");
  }
  if (r->builder.tb.len == 0 || r->builder.tb.data[r->builder.tb.len - 1].rank != (int32_t)r->builder.rank.len - 1) {
    return pccl_scan_expected(start, "\"tb\" before the rank's first step");
  }
  polyccl_step *step;
  PCCL_TRY(pccl_plan_builder_add_step(&r->builder, &step));
  step->op = op;
  if (uses->reads_src) {
    PCCL_TRY(read_operand(r, &step->src_buf, &step->src));
  }
  if (uses->writes_dst) {
    PCCL_TRY(read_operand(r, &step->dst_buf, &step->dst));
  }
  if (pccl_op_moves(op)) {
    PCCL_TRY(pccl_scan_lettered(&r->scan, "a count such as x1", 'x', INT32_MAX, &step->count));
  }
  if (uses->receives) {
    PCCL_TRY(read_connection(r, true, &step->recv));
  }
  if (uses->sends) {
    PCCL_TRY(read_connection(r, false, &step->send));
  }
  for (const pccl_flag_word *flag = pccl_step_flags; flag->word != NULL; flag++) {
    step->flags |= pccl_scan_accept(&r->scan, flag->word) ? flag->flag : 0;
  }
  PCCL_TRY(read_waits(r));
  return read_step_place(r, step);
}

static polyccl_result read_plan_line(pccl_text_reader *r) {
  pccl_scan start = r->scan;
  if (r->builder.rank.len == 0) {
    if (pccl_scan_accept(&r->scan, "rank")) {
      return read_rank_line(r);
    }
    return pccl_text_read_head_line(r, &start);
  }
  pccl_word word = pccl_scan_word(&r->scan);
  if (pccl_word_is(word, "tb")) {
    r->last_recv = r->last_send = -1;
    return pccl_plan_builder_add_tb(&r->builder, (int32_t)r->builder.rank.len - 1);
  }
  if (pccl_word_is(word, "rank")) {
    return read_rank_line(r);
  }
  return read_step_line(r, word, &start);
}

static polyccl_result read_plan_lines(pccl_text_reader *r) {
  if (!pccl_scan_line(&r->scan) || !pccl_scan_accept(&r->scan, "polyccl-plan")) {
    return pccl_scan_expected(&r->scan, "\"polyccl-plan 1\"");
  }
  int32_t version;
  PCCL_TRY(pccl_text_read_int(r, "the format's version", 1, 1, &version));
  PCCL_TRY(pccl_scan_end(&r->scan));
  while (pccl_scan_line(&r->scan)) {
    PCCL_TRY(read_plan_line(r));
    PCCL_TRY(pccl_scan_end(&r->scan));
  }
  if (r->builder.rank.len == 0) {
    PCCL_TRY(pccl_text_check_head(r));
  }
  if (r->builder.rank.len < (size_t)r->head.ranks) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_scan_place(&r->scan), "the plan ends after %zu of %d ranks",
                        r->builder.rank.len, r->head.ranks);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result finish_text_plan(pccl_text_reader *r, polyccl_plan **plan) {
  polyccl_plan *made;
  PCCL_TRY(polyccl_plan_create(1, &made));
  polyccl_plan_rank *rank = made->rank;
  *made = r->head;
  made->rank = rank;
  r->head.name = NULL;
  pccl_plan_builder_finish(&r->builder, made);
  *plan = made;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_text_plan_read(const char *name, const char *text, size_t length, polyccl_plan **plan) {
  pccl_text_reader r = {.scan = {.at = text, .end = text + length, .name = name}, .last_recv = -1, .last_send = -1};
  polyccl_result result = read_plan_lines(&r);
  if (result == POLYCCL_SUCCESS) {
    result = finish_text_plan(&r, plan);
  }
  free(r.head.name);
  pccl_vec_free(&r.post_line);
  pccl_vec_free(&r.absent_line);
  pccl_plan_builder_free(&r.builder);
  return result;
}
