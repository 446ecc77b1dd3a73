/* Writes the plan's text format (docs/plan.md): one canonical text for a plan, so that it is reproducible. */
#include <stdlib.h>

#include "base/error.h"
#include "plan/formats.h"
#include "plan/out.h"
#include "plan/plan.h"

/* " 3.0" with the separator given. */
static void put_pair(pccl_out *out, int32_t first, char separator, int32_t second) {
  pccl_out_char(out, ' ');
  pccl_out_number(out, (uint64_t)first);
  pccl_out_char(out, separator);
  pccl_out_number(out, (uint64_t)second);
}

static void put_string(pccl_out *out, const char *text) {
  static const char hex[] = "0123456789abcdef";
  pccl_out_char(out, '"');
  for (; text != NULL && *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') {
      pccl_out_char(out, '\\');
      pccl_out_char(out, (char)c);
    } else if (c == '\n' || c == '\t') {
      pccl_out_put(out, c == '\n' ? "\\n" : "\\t");
    } else if (c < ' ' || c == 127) {
      pccl_out_put(out, "\\x");
      pccl_out_char(out, hex[c >> 4]);
      pccl_out_char(out, hex[c & 15]);
    } else {
      pccl_out_char(out, (char)c);
    }
  }
  pccl_out_char(out, '"');
}

static void put_head_word(pccl_out *out, const char *key, const char *value) {
  pccl_out_put(out, key);
  pccl_out_char(out, ' ');
  pccl_out_put(out, value);
  pccl_out_char(out, '\n');
}

static void put_head_number(pccl_out *out, const char *key, int32_t value) {
  pccl_out_put(out, key);
  pccl_out_char(out, ' ');
  pccl_out_number(out, (uint64_t)value);
  pccl_out_char(out, '\n');
}

static void write_redops_line(pccl_out *out, uint32_t redops) {
  pccl_out_put(out, "redops");
  for (int op = 0; op < POLYCCL_REDOP_COUNT; op++) {
    if ((redops >> op & 1) != 0) {
      pccl_out_char(out, ' ');
      pccl_out_put(out, polyccl_redop_name((polyccl_redop)op));
    }
  }
  pccl_out_char(out, '\n');
}

static void write_head_lines(pccl_out *out, const polyccl_plan *plan) {
  pccl_out_put(out, "polyccl-plan 1\nname ");
  put_string(out, plan->name);
  pccl_out_char(out, '\n');
  put_head_word(out, "collective", polyccl_collective_name(plan->collective));
  put_head_number(out, "ranks", plan->ranks);
  put_head_number(out, "chunks", plan->chunks);
  if (plan->collective == POLYCCL_CUSTOM && plan->chunks_out != 0 && plan->chunks_out != plan->chunks) {
    put_head_number(out, "outchunks", plan->chunks_out);
  }
  put_head_word(out, "inplace", plan->inplace ? "yes" : "no");
  if (plan->root != 0) {
    put_head_number(out, "root", plan->root);
  }
  if (plan->collective == POLYCCL_SENDRECV) {
    put_head_number(out, "peer", plan->peer);
  }
  put_head_word(out, "protocol", polyccl_protocol_name(plan->protocol));
  put_head_word(out, "order", plan->order == POLYCCL_TASK_MAJOR ? "task-major" : "batch-major");
  put_head_number(out, "depth", plan->fifo_depth);
  if (plan->min_bytes != 0 || plan->max_bytes != 0) {
    pccl_out_put(out, "bytes ");
    pccl_out_number(out, plan->min_bytes);
    pccl_out_char(out, ' ');
    pccl_out_number(out, plan->max_bytes);
    pccl_out_char(out, '\n');
  }
  if (plan->redops != 0) {
    write_redops_line(out, plan->redops);
  }
  for (size_t i = 0; i < plan->files; i++) {
    pccl_out_put(out, "file ");
    pccl_out_number(out, i);
    pccl_out_char(out, ' ');
    put_string(out, plan->file[i]);
    pccl_out_char(out, '\n');
  }
}

static void write_custom_lines(pccl_out *out, const polyccl_plan *plan) {
  for (size_t i = 0; i < plan->absents; i++) {
    pccl_out_put(out, "absent ");
    pccl_out_number(out, (uint64_t)plan->absent[i].rank);
    pccl_out_char(out, ' ');
    pccl_out_number(out, (uint64_t)plan->absent[i].chunk);
    pccl_out_char(out, '\n');
  }
  for (size_t i = 0; i < plan->posts; i++) {
    const polyccl_post *post = &plan->post[i];
    pccl_out_put(out, "post ");
    pccl_out_number(out, (uint64_t)post->rank);
    pccl_out_char(out, ' ');
    pccl_out_number(out, (uint64_t)post->chunk);
    pccl_out_put(out, " =");
    for (int32_t k = post->leaf; k < post->leaf + post->leaves; k++) {
      put_pair(out, plan->leaf[k].rank, '.', plan->leaf[k].chunk);
    }
    pccl_out_char(out, '\n');
  }
}

static void write_operand(pccl_out *out, int buffer, int32_t offset) {
  static const char letters[] = {[POLYCCL_BUF_INPUT] = 'i', [POLYCCL_BUF_OUTPUT] = 'o', [POLYCCL_BUF_SCRATCH] = 's'};
  pccl_out_char(out, ' ');
  pccl_out_char(out, letters[buffer]);
  pccl_out_number(out, (uint64_t)offset);
}

static void write_step_line(pccl_out *out, const polyccl_plan *plan, const polyccl_step *step) {
  const pccl_op_traits *uses = &pccl_ops[step->op];
  pccl_out_put(out, "    ");
  pccl_out_put(out, uses->name);
  if (uses->reads_src) {
    write_operand(out, step->src_buf, step->src);
  }
  if (uses->writes_dst) {
    write_operand(out, step->dst_buf, step->dst);
  }
  if (pccl_op_moves(step->op)) {
    pccl_out_put(out, " x");
    pccl_out_number(out, (uint64_t)step->count);
  }
  if (uses->receives) {
    pccl_out_put(out, " from");
    put_pair(out, plan->connection[step->recv].src, '.', plan->connection[step->recv].channel);
  }
  if (uses->sends) {
    pccl_out_put(out, " to");
    put_pair(out, plan->connection[step->send].dst, '.', plan->connection[step->send].channel);
  }
  for (const pccl_flag_word *flag = pccl_step_flags; flag->word != NULL; flag++) {
    if ((step->flags & flag->flag) != 0) {
      pccl_out_char(out, ' ');
      pccl_out_put(out, flag->word);
    }
  }
  for (int32_t i = 0; i < step->waits; i++) {
    pccl_out_put(out, i == 0 ? " wait" : "");
    put_pair(out, plan->wait[step->wait + i].tb, '.', plan->wait[step->wait + i].step);
  }
  if (step->location >= 0) {
    pccl_out_put(out, " at");
    put_pair(out, plan->location[step->location].file, ':', plan->location[step->location].line);
  }
  pccl_out_char(out, '\n');
}

static void write_rank_lines(pccl_out *out, const polyccl_plan *plan, int32_t r) {
  const polyccl_plan_rank *rank = &plan->rank[r];
  pccl_out_put(out, "rank ");
  pccl_out_number(out, (uint64_t)r);
  pccl_out_put(out, " scratch ");
  pccl_out_number(out, (uint64_t)rank->scratch);
  pccl_out_char(out, '\n');
  for (int32_t t = rank->tb; t < rank->tb + rank->tbs; t++) {
    pccl_out_put(out, "  tb\n");
    for (int32_t s = plan->tb[t].step; s < plan->tb[t].step + plan->tb[t].steps; s++) {
      write_step_line(out, plan, &plan->step[s]);
    }
  }
}

polyccl_result pccl_text_plan_write(const polyccl_plan *plan, FILE *to) {
  pccl_out *out = malloc(sizeof *out);
  if (out == NULL) {
    return pccl_no_memory("writing a plan");
  }
  out->to = to;
  out->len = 0;
  write_head_lines(out, plan);
  write_custom_lines(out, plan);
  for (int32_t r = 0; r < plan->ranks; r++) {
    write_rank_lines(out, plan, r);
  }
  pccl_out_flush(out);
  free(out);
  return POLYCCL_SUCCESS;
}
