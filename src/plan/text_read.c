/* Reads the plan's text format (docs/plan.md). One pass, one line at a time; memory grows with what has been read,
 * never with a number that stands in the text. */
#include <stdlib.h>

#include <polyccl/program.h>

#include "base/error.h"
#include "plan/builder.h"
#include "plan/formats.h"
#include "plan/plan.h"
#include "plan/scan.h"

typedef struct reader {
  pccl_scan scan;
  pccl_plan_builder builder;
  polyccl_plan head; /* the header's fields */
  unsigned seen;     /* bit set of header lines */
  PCCL_VEC(int32_t) post_line;
  PCCL_VEC(int32_t) absent_line;
  int32_t last_recv, last_send; /* most steps use the connection of the step before */
} reader;

static polyccl_result fail_at_line(const reader *r, int32_t line, const char *what) {
  return pccl_fail_at(POLYCCL_ERROR_INVALID, (polyccl_location){r->scan.name, line}, "%s", what);
}

/* Puts this line's place in front of an error that a function without it reported. */
static polyccl_result prefix_line(const reader *r, polyccl_result result) {
  return result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "%s:%d: ", r->scan.name, r->scan.line);
}

static polyccl_result read_text_int(reader *r, const char *what, int32_t min, int32_t max, int32_t *value) {
  uint64_t number;
  PCCL_TRY(pccl_scan_number(&r->scan, what, (uint64_t)min, (uint64_t)max, &number));
  *value = (int32_t)number;
  return POLYCCL_SUCCESS;
}

/* The next word as a C string, cut to `size`: for the parsers of names. */
static void read_text_name(reader *r, char *name, size_t size) {
  pccl_word word = pccl_scan_word(&r->scan);
  size_t n = word.len < size - 1 ? word.len : size - 1;
  memcpy(name, word.at, n);
  name[n] = '\0';
}

/* ---- header lines ---- */

static polyccl_result read_head_name(reader *r) {
  return pccl_scan_string(&r->scan, "a name in quotes", &r->head.name);
}

static polyccl_result read_head_collective(reader *r) {
  char name[64];
  read_text_name(r, name, sizeof name);
  return prefix_line(r, polyccl_collective_parse(name, &r->head.collective));
}

static polyccl_result read_head_ranks(reader *r) {
  return read_text_int(r, "the number of ranks", 1, POLYCCL_MAX_RANKS, &r->head.ranks);
}

static polyccl_result read_head_chunks(reader *r) {
  return read_text_int(r, "the number of chunks", 1, POLYCCL_MAX_CHUNKS, &r->head.chunks);
}

static polyccl_result read_head_outchunks(reader *r) {
  return read_text_int(r, "the number of output chunks", 1, POLYCCL_MAX_CHUNKS, &r->head.chunks_out);
}

static polyccl_result read_head_inplace(reader *r) {
  r->head.inplace = pccl_scan_accept(&r->scan, "yes");
  return r->head.inplace || pccl_scan_accept(&r->scan, "no") ? POLYCCL_SUCCESS
                                                             : pccl_scan_expected(&r->scan, "yes or no");
}

static polyccl_result read_head_root(reader *r) {
  return read_text_int(r, "the root's rank", 0, POLYCCL_MAX_RANKS - 1, &r->head.root);
}

static polyccl_result read_head_peer(reader *r) {
  return read_text_int(r, "the peer's rank", 0, POLYCCL_MAX_RANKS - 1, &r->head.peer);
}

static polyccl_result read_head_protocol(reader *r) {
  char name[64];
  read_text_name(r, name, sizeof name);
  return prefix_line(r, polyccl_protocol_parse(name, &r->head.protocol));
}

static polyccl_result read_head_order(reader *r) {
  r->head.order = pccl_scan_accept(&r->scan, "task-major") ? POLYCCL_TASK_MAJOR : POLYCCL_BATCH_MAJOR;
  return r->head.order == POLYCCL_TASK_MAJOR || pccl_scan_accept(&r->scan, "batch-major")
             ? POLYCCL_SUCCESS
             : pccl_scan_expected(&r->scan, "batch-major or task-major");
}

static polyccl_result read_head_depth(reader *r) {
  enum { MAX_DEPTH = 1 << 20 };
  return read_text_int(r, "the FIFO depth", 0, MAX_DEPTH, &r->head.fifo_depth);
}

static polyccl_result read_head_bytes(reader *r) {
  PCCL_TRY(pccl_scan_number(&r->scan, "the smallest size in bytes", 0, UINT64_MAX, &r->head.min_bytes));
  return pccl_scan_number(&r->scan, "the largest size in bytes", 0, UINT64_MAX, &r->head.max_bytes);
}

static polyccl_result read_head_redops(reader *r) {
  do {
    char name[64];
    polyccl_redop op;
    read_text_name(r, name, sizeof name);
    PCCL_TRY(prefix_line(r, polyccl_redop_parse(name, &op)));
    r->head.redops |= 1u << op;
  } while (!pccl_scan_at_end(&r->scan));
  return POLYCCL_SUCCESS;
}

typedef struct head_line {
  const char *word;
  polyccl_result (*read)(reader *r);
  bool required;
} head_line;

static const head_line head_lines[] = {
    {"name", read_head_name, true},
    {"collective", read_head_collective, true},
    {"ranks", read_head_ranks, true},
    {"chunks", read_head_chunks, true},
    {"outchunks", read_head_outchunks, false},
    {"inplace", read_head_inplace, false},
    {"root", read_head_root, false},
    {"peer", read_head_peer, false},
    {"protocol", read_head_protocol, false},
    {"order", read_head_order, false},
    {"depth", read_head_depth, false},
    {"bytes", read_head_bytes, false},
    {"redops", read_head_redops, false},
};

enum { HEAD_LINES = sizeof head_lines / sizeof head_lines[0] };

static bool head_has_line(const reader *r, const char *word) {
  for (int i = 0; i < HEAD_LINES; i++) {
    if (strcmp(head_lines[i].word, word) == 0) {
      return (r->seen >> i & 1) != 0;
    }
  }
  return false;
}

static polyccl_result read_file_line(reader *r) {
  int32_t number;
  char *path;
  PCCL_TRY(read_text_int(r, "a file's number", 0, INT32_MAX, &number));
  if ((size_t)number != r->builder.file.len) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_scan_place(&r->scan),
                        "files are numbered in order: expected file %zu, found file %d", r->builder.file.len, number);
  }
  PCCL_TRY(pccl_scan_string(&r->scan, "a path in quotes", &path));
  if (!pccl_vec_push(&r->builder.file, path)) {
    free(path);
    return pccl_no_memory("a plan");
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result read_absent(reader *r) {
  polyccl_leaf leaf;
  PCCL_TRY(read_text_int(r, "a rank", 0, POLYCCL_MAX_RANKS - 1, &leaf.rank));
  PCCL_TRY(read_text_int(r, "an input chunk", 0, POLYCCL_MAX_CHUNKS - 1, &leaf.chunk));
  return pccl_vec_push(&r->builder.absent, leaf) && pccl_vec_push(&r->absent_line, r->scan.line)
             ? POLYCCL_SUCCESS
             : pccl_no_memory("a plan");
}

static polyccl_result read_post(reader *r) {
  polyccl_post post = {.leaf = (int32_t)r->builder.leaf.len};
  PCCL_TRY(read_text_int(r, "a rank", 0, POLYCCL_MAX_RANKS - 1, &post.rank));
  PCCL_TRY(read_text_int(r, "an output chunk", 0, POLYCCL_MAX_CHUNKS - 1, &post.chunk));
  if (!pccl_scan_accept(&r->scan, "=")) {
    return pccl_scan_expected(&r->scan, "=");
  }
  do {
    polyccl_leaf leaf;
    PCCL_TRY(pccl_scan_pair(&r->scan, "a contribution such as 0.1 (rank 0, input chunk 1)", '.', POLYCCL_MAX_RANKS - 1,
                            POLYCCL_MAX_CHUNKS - 1, &leaf.rank, &leaf.chunk));
    if (!pccl_vec_push(&r->builder.leaf, leaf)) {
      return pccl_no_memory("a plan");
    }
    post.leaves++;
  } while (!pccl_scan_at_end(&r->scan));
  return pccl_vec_push(&r->builder.post, post) && pccl_vec_push(&r->post_line, r->scan.line) ? POLYCCL_SUCCESS
                                                                                             : pccl_no_memory("a plan");
}

static polyccl_result read_head_line(reader *r, pccl_scan *start) {
  pccl_word word = pccl_scan_word(&r->scan);
  for (int i = 0; i < HEAD_LINES; i++) {
    if (pccl_word_is(word, head_lines[i].word)) {
      if ((r->seen >> i & 1) != 0) {
        return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_scan_place(start), "the header has a second \"%s\" line",
                            head_lines[i].word);
      }
      r->seen |= 1u << i;
      return head_lines[i].read(r);
    }
  }
  if (pccl_word_is(word, "file")) {
    return read_file_line(r);
  }
  if (pccl_word_is(word, "absent")) {
    return read_absent(r);
  }
  if (pccl_word_is(word, "post")) {
    return read_post(r);
  }
  return pccl_scan_expected(start, "a header line or \"rank 0\"");
}

/* What the header's lines say together. */
static polyccl_result check_text_head(reader *r) {
  for (int i = 0; i < HEAD_LINES; i++) {
    if (head_lines[i].required && (r->seen >> i & 1) == 0) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_scan_place(&r->scan), "the header has no \"%s\" line",
                          head_lines[i].word);
    }
  }
  bool custom = r->head.collective == POLYCCL_CUSTOM;
  if (head_has_line(r, "outchunks") && !custom) {
    return fail_at_line(r, r->scan.line, "\"outchunks\" is for custom collectives only");
  }
  if (head_has_line(r, "peer") != (r->head.collective == POLYCCL_SENDRECV)) {
    return fail_at_line(r, r->scan.line, "\"peer\" belongs to sendrecv, and only to it");
  }
  if (!custom && r->builder.post.len + r->builder.absent.len > 0) {
    return fail_at_line(r, r->builder.post.len > 0 ? r->post_line.data[0] : r->absent_line.data[0],
                        "\"post\" and \"absent\" are for custom collectives only");
  }
  if (r->head.chunks_out == 0) {
    r->head.chunks_out = r->head.chunks;
  }
  pccl_collective_spec spec = pccl_plan_spec(&r->head);
  return prefix_line(r, pccl_collective_validate(&spec));
}

static polyccl_result check_text_leaves(reader *r) {
  const polyccl_plan *head = &r->head;
  for (size_t i = 0; i < r->builder.absent.len; i++) {
    polyccl_leaf leaf = r->builder.absent.data[i];
    if (leaf.rank >= head->ranks || leaf.chunk >= head->chunks) {
      return fail_at_line(r, r->absent_line.data[i], "no such rank or input chunk");
    }
  }
  for (size_t i = 0; i < r->builder.post.len; i++) {
    const polyccl_post *post = &r->builder.post.data[i];
    if (post->rank >= head->ranks || post->chunk >= head->chunks_out) {
      return fail_at_line(r, r->post_line.data[i], "no such rank or output chunk");
    }
    for (int32_t k = post->leaf; k < post->leaf + post->leaves; k++) {
      polyccl_leaf leaf = r->builder.leaf.data[k];
      if (leaf.rank >= head->ranks || leaf.chunk >= head->chunks) {
        return fail_at_line(r, r->post_line.data[i], "a contribution of no such rank or input chunk");
      }
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- ranks, thread blocks, steps ---- */

static polyccl_result read_rank_line(reader *r) {
  int32_t number;
  polyccl_plan_rank rank = {0};
  if (r->builder.rank.len == 0) {
    PCCL_TRY(check_text_head(r));
    PCCL_TRY(check_text_leaves(r));
  }
  pccl_scan start = r->scan;
  PCCL_TRY(read_text_int(r, "a rank", 0, POLYCCL_MAX_RANKS - 1, &number));
  if (number >= r->head.ranks || (size_t)number != r->builder.rank.len) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_scan_place(&start), "ranks stand in order, 0 to %d: rank %d %s",
                        r->head.ranks - 1, number, number >= r->head.ranks ? "is too many" : "is out of turn");
  }
  if (!pccl_scan_accept(&r->scan, "scratch")) {
    return pccl_scan_expected(&r->scan, "\"scratch\"");
  }
  PCCL_TRY(read_text_int(r, "the number of scratch chunks", 0, POLYCCL_MAX_CHUNKS, &rank.scratch));
  polyccl_plan_shape(&r->head, number, &rank.input, &rank.output);
  return pccl_vec_push(&r->builder.rank, rank) ? POLYCCL_SUCCESS : pccl_no_memory("a plan");
}

static polyccl_result read_operand(reader *r, uint8_t *buffer, int32_t *offset) {
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
static polyccl_result read_connection(reader *r, bool receives, int32_t *index) {
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

static polyccl_result read_waits(reader *r) {
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

static polyccl_result read_step_place(reader *r, polyccl_step *step) {
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

static polyccl_result read_step_line(reader *r, pccl_word word, pccl_scan *start) {
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

static polyccl_result read_plan_line(reader *r) {
  pccl_scan start = r->scan;
  if (r->builder.rank.len == 0) {
    if (pccl_scan_accept(&r->scan, "rank")) {
      return read_rank_line(r);
    }
    return read_head_line(r, &start);
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

static polyccl_result read_plan_lines(reader *r) {
  if (!pccl_scan_line(&r->scan) || !pccl_scan_accept(&r->scan, "polyccl-plan")) {
    return pccl_scan_expected(&r->scan, "\"polyccl-plan 1\"");
  }
  int32_t version;
  PCCL_TRY(read_text_int(r, "the format's version", 1, 1, &version));
  PCCL_TRY(pccl_scan_end(&r->scan));
  while (pccl_scan_line(&r->scan)) {
    PCCL_TRY(read_plan_line(r));
    PCCL_TRY(pccl_scan_end(&r->scan));
  }
  if (r->builder.rank.len == 0) {
    PCCL_TRY(check_text_head(r));
  }
  if (r->builder.rank.len < (size_t)r->head.ranks) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_scan_place(&r->scan), "the plan ends after %zu of %d ranks",
                        r->builder.rank.len, r->head.ranks);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result finish_text_plan(reader *r, polyccl_plan **plan) {
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
  reader r = {.scan = {.at = text, .end = text + length, .name = name}, .last_recv = -1, .last_send = -1};
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
