/* Writes the plan's text format (docs/plan.md): one canonical text for a plan, so that it is reproducible. */
#include <stdlib.h>

#include "base/error.h"
#include "plan/formats.h"
#include "plan/plan.h"

/* Text on its way to a file: plans have millions of steps, and fprintf costs more than all else. */
typedef struct writer {
  FILE *to;
  size_t len;
  char text[1 << 16];
} writer;

static void flush(writer *w) {
  fwrite(w->text, 1, w->len, w->to); /* a failure shows in ferror */
  w->len = 0;
}

static void put_char(writer *w, char c) {
  if (w->len == sizeof w->text) {
    flush(w);
  }
  w->text[w->len++] = c;
}

static void put(writer *w, const char *text) {
  for (; *text != '\0'; text++) {
    put_char(w, *text);
  }
}

static void put_number(writer *w, uint64_t number) {
  char digits[20];
  int n = 0;
  do {
    digits[n++] = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  while (n > 0) {
    put_char(w, digits[--n]);
  }
}

/* " 3.0" with the separator given. */
static void put_pair(writer *w, int32_t first, char separator, int32_t second) {
  put_char(w, ' ');
  put_number(w, (uint64_t)first);
  put_char(w, separator);
  put_number(w, (uint64_t)second);
}

static void put_string(writer *w, const char *text) {
  static const char hex[] = "0123456789abcdef";
  put_char(w, '"');
  for (; text != NULL && *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') {
      put_char(w, '\\');
      put_char(w, (char)c);
    } else if (c == '\n' || c == '\t') {
      put(w, c == '\n' ? "\\n" : "\\t");
    } else if (c < ' ' || c == 127) {
      put(w, "\\x");
      put_char(w, hex[c >> 4]);
      put_char(w, hex[c & 15]);
    } else {
      put_char(w, (char)c);
    }
  }
  put_char(w, '"');
}

static void head_word(writer *w, const char *key, const char *value) {
  put(w, key);
  put_char(w, ' ');
  put(w, value);
  put_char(w, '\n');
}

static void head_number(writer *w, const char *key, int32_t value) {
  put(w, key);
  put_char(w, ' ');
  put_number(w, (uint64_t)value);
  put_char(w, '\n');
}

static void write_redops(writer *w, uint32_t redops) {
  put(w, "redops");
  for (int op = 0; op < POLYCCL_REDOP_COUNT; op++) {
    if ((redops >> op & 1) != 0) {
      put_char(w, ' ');
      put(w, polyccl_redop_name((polyccl_redop)op));
    }
  }
  put_char(w, '\n');
}

static void write_head(writer *w, const polyccl_plan *plan) {
  put(w, "polyccl-plan 1\nname ");
  put_string(w, plan->name);
  put_char(w, '\n');
  head_word(w, "collective", polyccl_collective_name(plan->collective));
  head_number(w, "ranks", plan->ranks);
  head_number(w, "chunks", plan->chunks);
  if (plan->collective == POLYCCL_CUSTOM && plan->chunks_out != 0 && plan->chunks_out != plan->chunks) {
    head_number(w, "outchunks", plan->chunks_out);
  }
  head_word(w, "inplace", plan->inplace ? "yes" : "no");
  if (plan->root != 0) {
    head_number(w, "root", plan->root);
  }
  if (plan->collective == POLYCCL_SENDRECV) {
    head_number(w, "peer", plan->peer);
  }
  head_word(w, "protocol", polyccl_protocol_name(plan->protocol));
  head_word(w, "order", plan->order == POLYCCL_TASK_MAJOR ? "task-major" : "batch-major");
  head_number(w, "depth", plan->fifo_depth);
  if (plan->min_bytes != 0 || plan->max_bytes != 0) {
    put(w, "bytes ");
    put_number(w, plan->min_bytes);
    put_char(w, ' ');
    put_number(w, plan->max_bytes);
    put_char(w, '\n');
  }
  if (plan->redops != 0) {
    write_redops(w, plan->redops);
  }
  for (size_t i = 0; i < plan->files; i++) {
    put(w, "file ");
    put_number(w, i);
    put_char(w, ' ');
    put_string(w, plan->file[i]);
    put_char(w, '\n');
  }
}

static void write_custom(writer *w, const polyccl_plan *plan) {
  for (size_t i = 0; i < plan->absents; i++) {
    put(w, "absent ");
    put_number(w, (uint64_t)plan->absent[i].rank);
    put_char(w, ' ');
    put_number(w, (uint64_t)plan->absent[i].chunk);
    put_char(w, '\n');
  }
  for (size_t i = 0; i < plan->posts; i++) {
    const polyccl_post *post = &plan->post[i];
    put(w, "post ");
    put_number(w, (uint64_t)post->rank);
    put_char(w, ' ');
    put_number(w, (uint64_t)post->chunk);
    put(w, " =");
    for (int32_t k = post->leaf; k < post->leaf + post->leaves; k++) {
      put_pair(w, plan->leaf[k].rank, '.', plan->leaf[k].chunk);
    }
    put_char(w, '\n');
  }
}

static void write_place(writer *w, int buffer, int32_t offset) {
  static const char letters[] = {[POLYCCL_BUF_INPUT] = 'i', [POLYCCL_BUF_OUTPUT] = 'o', [POLYCCL_BUF_SCRATCH] = 's'};
  put_char(w, ' ');
  put_char(w, letters[buffer]);
  put_number(w, (uint64_t)offset);
}

static void write_step(writer *w, const polyccl_plan *plan, const polyccl_step *step) {
  const pccl_op_traits *uses = &pccl_ops[step->op];
  put(w, "    ");
  put(w, uses->name);
  if (uses->reads_src) {
    write_place(w, step->src_buf, step->src);
  }
  if (uses->writes_dst) {
    write_place(w, step->dst_buf, step->dst);
  }
  if (step->op != POLYCCL_STEP_NOP) {
    put(w, " x");
    put_number(w, (uint64_t)step->count);
  }
  if (uses->receives) {
    put(w, " from");
    put_pair(w, plan->connection[step->recv].src, '.', plan->connection[step->recv].channel);
  }
  if (uses->sends) {
    put(w, " to");
    put_pair(w, plan->connection[step->send].dst, '.', plan->connection[step->send].channel);
  }
  for (const pccl_flag_word *flag = pccl_step_flags; flag->word != NULL; flag++) {
    if ((step->flags & flag->flag) != 0) {
      put_char(w, ' ');
      put(w, flag->word);
    }
  }
  for (int32_t i = 0; i < step->waits; i++) {
    put(w, i == 0 ? " wait" : "");
    put_pair(w, plan->wait[step->wait + i].tb, '.', plan->wait[step->wait + i].step);
  }
  if (step->location >= 0) {
    put(w, " at");
    put_pair(w, plan->location[step->location].file, ':', plan->location[step->location].line);
  }
  put_char(w, '\n');
}

static void write_rank(writer *w, const polyccl_plan *plan, int32_t r) {
  const polyccl_plan_rank *rank = &plan->rank[r];
  put(w, "rank ");
  put_number(w, (uint64_t)r);
  put(w, " scratch ");
  put_number(w, (uint64_t)rank->scratch);
  put_char(w, '\n');
  for (int32_t t = rank->tb; t < rank->tb + rank->tbs; t++) {
    put(w, "  tb\n");
    for (int32_t s = plan->tb[t].step; s < plan->tb[t].step + plan->tb[t].steps; s++) {
      write_step(w, plan, &plan->step[s]);
    }
  }
}

polyccl_result pccl_text_plan_write(const polyccl_plan *plan, FILE *to) {
  writer *w = malloc(sizeof *w);
  if (w == NULL) {
    return pccl_no_memory("writing a plan");
  }
  w->to = to;
  w->len = 0;
  write_head(w, plan);
  write_custom(w, plan);
  for (int32_t r = 0; r < plan->ranks; r++) {
    write_rank(w, plan, r);
  }
  flush(w);
  free(w);
  return POLYCCL_SUCCESS;
}
