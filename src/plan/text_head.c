/* Reads the header of the plan's text format (docs/plan.md): the lines before the first rank. */
#include <stdlib.h>

#include <polyccl/program.h>

#include "base/error.h"
#include "plan/text_reader.h"

static polyccl_result fail_at_line(const pccl_text_reader *r, int32_t line, const char *what) {
  return pccl_fail_at(POLYCCL_ERROR_INVALID, (polyccl_location){r->scan.name, line}, "%s", what);
}

/* Puts this line's place in front of an error that a function without it reported. */
static polyccl_result prefix_line(const pccl_text_reader *r, polyccl_result result) {
  return result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "%s:%d: ", r->scan.name, r->scan.line);
}

/* The next word as a C string, cut to `size`: for the parsers of names. */
static void read_text_name(pccl_text_reader *r, char *name, size_t size) {
  pccl_word word = pccl_scan_word(&r->scan);
  size_t n = word.len < size - 1 ? word.len : size - 1;
  memcpy(name, word.at, n);
  name[n] = '\0';
}

polyccl_result pccl_text_read_int(pccl_text_reader *r, const char *what, int32_t min, int32_t max, int32_t *value) {
  uint64_t number;
  PCCL_TRY(pccl_scan_number(&r->scan, what, (uint64_t)min, (uint64_t)max, &number));
  *value = (int32_t)number;
  return POLYCCL_SUCCESS;
}

static polyccl_result read_head_name(pccl_text_reader *r) {
  return pccl_scan_string(&r->scan, "a name in quotes", &r->head.name);
}

static polyccl_result read_head_collective(pccl_text_reader *r) {
  char name[64];
  read_text_name(r, name, sizeof name);
  return prefix_line(r, polyccl_collective_parse(name, &r->head.collective));
}

static polyccl_result read_head_ranks(pccl_text_reader *r) {
  return pccl_text_read_int(r, "the number of ranks", 1, POLYCCL_MAX_RANKS, &r->head.ranks);
}

static polyccl_result read_head_chunks(pccl_text_reader *r) {
  return pccl_text_read_int(r, "the number of chunks", 1, POLYCCL_MAX_CHUNKS, &r->head.chunks);
}

static polyccl_result read_head_outchunks(pccl_text_reader *r) {
  return pccl_text_read_int(r, "the number of output chunks", 1, POLYCCL_MAX_CHUNKS, &r->head.chunks_out);
}

static polyccl_result read_head_inplace(pccl_text_reader *r) {
  r->head.inplace = pccl_scan_accept(&r->scan, "yes");
  return r->head.inplace || pccl_scan_accept(&r->scan, "no") ? POLYCCL_SUCCESS
                                                             : pccl_scan_expected(&r->scan, "yes or no");
}

static polyccl_result read_head_root(pccl_text_reader *r) {
  return pccl_text_read_int(r, "the root's rank", 0, POLYCCL_MAX_RANKS - 1, &r->head.root);
}

static polyccl_result read_head_peer(pccl_text_reader *r) {
  return pccl_text_read_int(r, "the peer's rank", 0, POLYCCL_MAX_RANKS - 1, &r->head.peer);
}

static polyccl_result read_head_protocol(pccl_text_reader *r) {
  char name[64];
  read_text_name(r, name, sizeof name);
  return prefix_line(r, polyccl_protocol_parse(name, &r->head.protocol));
}

static polyccl_result read_head_order(pccl_text_reader *r) {
  r->head.order = pccl_scan_accept(&r->scan, "task-major") ? POLYCCL_TASK_MAJOR : POLYCCL_BATCH_MAJOR;
  return r->head.order == POLYCCL_TASK_MAJOR || pccl_scan_accept(&r->scan, "batch-major")
             ? POLYCCL_SUCCESS
             : pccl_scan_expected(&r->scan, "batch-major or task-major");
}

static polyccl_result read_head_depth(pccl_text_reader *r) {
  enum { MAX_DEPTH = 1 << 20 };
  return pccl_text_read_int(r, "the FIFO depth", 0, MAX_DEPTH, &r->head.fifo_depth);
}

static polyccl_result read_head_bytes(pccl_text_reader *r) {
  PCCL_TRY(pccl_scan_number(&r->scan, "the smallest size in bytes", 0, UINT64_MAX, &r->head.min_bytes));
  return pccl_scan_number(&r->scan, "the largest size in bytes", 0, UINT64_MAX, &r->head.max_bytes);
}

static polyccl_result read_head_redops(pccl_text_reader *r) {
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
  polyccl_result (*read)(pccl_text_reader *r);
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

static bool head_has_line(const pccl_text_reader *r, const char *word) {
  for (int i = 0; i < HEAD_LINES; i++) {
    if (strcmp(head_lines[i].word, word) == 0) {
      return (r->seen >> i & 1) != 0;
    }
  }
  return false;
}

static polyccl_result read_file_line(pccl_text_reader *r) {
  int32_t number;
  char *path;
  PCCL_TRY(pccl_text_read_int(r, "a file's number", 0, INT32_MAX, &number));
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

static polyccl_result read_absent(pccl_text_reader *r) {
  polyccl_leaf leaf;
  PCCL_TRY(pccl_text_read_int(r, "a rank", 0, POLYCCL_MAX_RANKS - 1, &leaf.rank));
  PCCL_TRY(pccl_text_read_int(r, "an input chunk", 0, POLYCCL_MAX_CHUNKS - 1, &leaf.chunk));
  return pccl_vec_push(&r->builder.absent, leaf) && pccl_vec_push(&r->absent_line, r->scan.line)
             ? POLYCCL_SUCCESS
             : pccl_no_memory("a plan");
}

static polyccl_result read_post(pccl_text_reader *r) {
  polyccl_post post = {.leaf = (int32_t)r->builder.leaf.len};
  PCCL_TRY(pccl_text_read_int(r, "a rank", 0, POLYCCL_MAX_RANKS - 1, &post.rank));
  PCCL_TRY(pccl_text_read_int(r, "an output chunk", 0, POLYCCL_MAX_CHUNKS - 1, &post.chunk));
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

polyccl_result pccl_text_read_head_line(pccl_text_reader *r, pccl_scan *start) {
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
static polyccl_result check_text_head(pccl_text_reader *r) {
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
    return fail_at_line(r, r->scan.line, "\"peer\" is needed for sendrecv, and allowed for it only");
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

static polyccl_result check_text_leaves(pccl_text_reader *r) {
  const polyccl_plan *head = &r->head;
  for (size_t i = 0; i < r->builder.absent.len; i++) {
    polyccl_leaf leaf = r->builder.absent.data[i];
    if (leaf.rank >= head->ranks || leaf.chunk >= head->chunks) {
      return fail_at_line(r, r->absent_line.data[i], "the plan has no such rank or input chunk");
    }
  }
  for (size_t i = 0; i < r->builder.post.len; i++) {
    const polyccl_post *post = &r->builder.post.data[i];
    if (post->rank >= head->ranks || post->chunk >= head->chunks_out) {
      return fail_at_line(r, r->post_line.data[i], "the plan has no such rank or output chunk");
    }
    for (int32_t k = post->leaf; k < post->leaf + post->leaves; k++) {
      polyccl_leaf leaf = r->builder.leaf.data[k];
      if (leaf.rank >= head->ranks || leaf.chunk >= head->chunks) {
        return fail_at_line(r, r->post_line.data[i], "the plan has no such rank or input chunk to contribute");
      }
    }
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_text_check_head(pccl_text_reader *r) {
  PCCL_TRY(check_text_head(r));
  return check_text_leaves(r);
}
