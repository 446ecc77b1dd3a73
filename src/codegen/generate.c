/* Writes a plan as source: calls of the macros of kernel/moves.h, with the text of the headers that define them. */
#include <stdlib.h>
#include <string.h>

#include <polyccl/codegen.h>

#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "codegen/portable.h"
#include "plan/contributions.h"
#include "plan/plan.h"

typedef struct generator {
  const polyccl_plan *plan;
  polyccl_target target;
  FILE *to;
  uint32_t written; /* bit set: the pccl_portable_files that the file already has */
  int32_t
      *end; /* [2 * connections] its number among the sends of its source, then among the receives of its destination */
  bool averages;
  pccl_contributions contributions;
  struct addends {
    size_t first;
    bool alike;           /* all chunks share one entry */
  } * addends;            /* [steps] index of the first entry in the table */
  PCCL_VEC(size_t) table; /* indices in the contributions */
  pccl_map known;
} generator;

static const char *const protocol_names[POLYCCL_PROTOCOL_COUNT] = {
    [POLYCCL_SIMPLE] = "PCCL_K_SIMPLE", [POLYCCL_LL] = "PCCL_K_LL", [POLYCCL_LL128] = "PCCL_K_LL128"};

/* ---- the portable source ---- */

/* Copies a header unless the file has it, with the headers that it includes in place of the include lines. */
static void write_portable(generator *g, const char *name) {
  const pccl_portable_file *file = pccl_portable_files;
  while (file->name != NULL && strcmp(file->name, name) != 0) {
    file++;
  }
  uint32_t bit = 1u << (file - pccl_portable_files);
  if ((g->written & bit) != 0) {
    return;
  }
  g->written |= bit;
  static const char include[] = "#include \"kernel/";
  const char *text = (const char *)file->text, *end = text + (file->name != NULL ? *file->length : 0);
  while (file->name != NULL && text < end) {
    const char *line_end = memchr(text, '\n', (size_t)(end - text));
    size_t length = line_end != NULL ? (size_t)(line_end - text) + 1 : (size_t)(end - text);
    if (length > sizeof include && memcmp(text, include, sizeof include - 1) == 0) {
      char inner[64];
      size_t at = sizeof include - 1, n = 0;
      while (text[at] != '"' && n + 1 < sizeof inner) {
        inner[n++] = text[at++];
      }
      inner[n] = '\0';
      write_portable(g, inner);
    } else {
      fwrite(text, 1, length, g->to);
    }
    text += length;
  }
}

/* ---- addends of averages ---- */

/* A plan has few different pairs of numbers, so steps whose chunks are alike share one entry for each pair. */
static polyccl_result share_entry(generator *g, size_t i, size_t *first) {
  uint64_t key = (uint64_t)g->contributions.a[i] << 32 | g->contributions.b[i];
  bool is_new;
  uint64_t *place = pccl_map_put(&g->known, key, g->table.len, &is_new);
  if (place == NULL || (is_new && !pccl_vec_push(&g->table, i))) {
    return pccl_no_memory("generated source");
  }
  *first = *place;
  return POLYCCL_SUCCESS;
}

static bool chunks_alike(const pccl_contributions *c, size_t step) {
  for (size_t i = c->first[step]; i < c->first[step + 1]; i++) {
    if (c->a[i] != c->a[c->first[step]] || c->b[i] != c->b[c->first[step]]) {
      return false;
    }
  }
  return true;
}

static polyccl_result list_addends(generator *g) {
  const polyccl_plan *plan = g->plan;
  const pccl_contributions *c = &g->contributions;
  g->averages = pccl_collective_reduces(plan->collective) && plan->collective != POLYCCL_CUSTOM;
  if (!g->averages) {
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(pccl_contributions_find(plan, &g->contributions));
  g->addends = pccl_array(plan->steps, sizeof *g->addends);
  if (g->addends == NULL) {
    return pccl_no_memory("generated source");
  }
  for (size_t s = 0; s < plan->steps; s++) {
    bool alike = chunks_alike(c, s);
    g->addends[s] = (struct addends){.first = g->table.len, .alike = alike};
    if (alike && c->first[s] < c->first[s + 1]) {
      PCCL_TRY(share_entry(g, c->first[s], &g->addends[s].first));
    }
    for (size_t i = c->first[s]; !alike && i < c->first[s + 1]; i++) {
      if (!pccl_vec_push(&g->table, i)) {
        return pccl_no_memory("generated source");
      }
    }
  }
  return POLYCCL_SUCCESS;
}

static void write_addends_table(const generator *g) {
  const pccl_contributions *c = &g->contributions;
  if (g->table.len == 0) {
    return;
  }
  fputs(
      "\n/* For averages: how many contributions the operands of reductions hold, and whether the result holds all. "
      "*/\n",
      g->to);
  fprintf(g->to, "static %sconst uint64_t pccl_k_addends[] = {", g->target == POLYCCL_TARGET_C ? "" : "__device__ ");
  for (size_t i = 0; i < g->table.len; i++) {
    size_t at = g->table.data[i];
    fprintf(g->to, "%s\n  PCCL_K_ADDENDS(%u, %u, %d)", i > 0 ? "," : "", c->a[at], c->b[at],
            pccl_contributions_complete(g->plan, c, at));
  }
  fputs("};\n", g->to);
}

/* Writes the step's first entry in the table of addends, and whether each chunk has its own. */
static void write_addends(const generator *g, const polyccl_step *step) {
  if (!g->averages || !pccl_ops[step->op].reduces) {
    fputs("NULL, 0", g->to);
    return;
  }
  const struct addends *addends = &g->addends[step - g->plan->step];
  fprintf(g->to, "pccl_k_addends + %zu, %d", addends->first, !addends->alike);
}

/* ---- thread blocks ---- */

static void write_waits(const generator *g, const polyccl_step *step, int32_t rank) {
  const polyccl_plan *plan = g->plan;
  for (int32_t i = 0; i < step->waits; i++) {
    const polyccl_wait *wait = &plan->wait[step->wait + i];
    int32_t steps = plan->tb[plan->rank[rank].tb + wait->tb].steps;
    if (plan->order == POLYCCL_TASK_MAJOR) {
      fprintf(g->to, "%sPCCL_K_WAIT_TASK(%d, %d)", i > 0 ? " && " : "", wait->tb, wait->step);
    } else {
      fprintf(g->to, "%sPCCL_K_WAIT(%d, %d, %d)", i > 0 ? " && " : "", wait->tb, steps, wait->step);
    }
  }
  fputs(step->waits == 0 ? "1" : "", g->to);
}

/* The op's constant in kernel/moves.h: its name in capitals after PCCL_K_. */
static void write_op(FILE *to, uint8_t op) {
  fputs("PCCL_K_", to);
  for (const char *name = pccl_ops[op].name; *name != '\0'; name++) {
    fputc(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name, to);
  }
}

static void write_step(const generator *g, const polyccl_step *step, int32_t rank, int32_t number) {
  polyccl_location at = pccl_step_location(g->plan, step);
  const char *slash = at.file != NULL ? strrchr(at.file, '/') : NULL;
  fprintf(g->to, "    PCCL_K_STEP(%d, ", number + 1);
  write_waits(g, step, rank);
  fputs(", ", g->to);
  write_op(g->to, step->op);
  fprintf(g->to, ", %d, %d, %d, %d, %d, %d, %d, ", step->recv >= 0 ? g->end[2 * step->recv + 1] : -1,
          step->send >= 0 ? g->end[2 * step->send] : -1, step->src_buf, step->src, step->dst_buf, step->dst,
          pccl_op_moves(step->op) ? step->count : 0);
  write_addends(g, step);
  fputc(')', g->to);
  if (at.line > 0) {
    fputs(" /* ", g->to);
    for (const char *c = slash != NULL ? slash + 1 : at.file != NULL ? at.file : ""; *c != '\0'; c++) {
      bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '.' ||
                   *c == '_' || *c == '-';
      fputc(plain ? *c : '_', g->to);
    }
    fprintf(g->to, ":%d */", at.line);
  }
  fputc('\n', g->to);
}

static void write_block(const generator *g, int32_t rank, int32_t tb) {
  const polyccl_thread_block *block = &g->plan->tb[g->plan->rank[rank].tb + tb];
  bool tasks = g->plan->order == POLYCCL_TASK_MAJOR;
  fprintf(g->to, "\nPCCL_K_FUNCTION(rank%d_tb%d) {\n  PCCL_K_BEGIN\n", rank, tb);
  if (!tasks) {
    fputs("  PCCL_K_BATCHES {\n", g->to);
  }
  for (int32_t i = 0; i < block->steps; i++) {
    fputs(tasks ? "  PCCL_K_BATCHES {\n" : "", g->to);
    write_step(g, &g->plan->step[block->step + i], rank, i);
    fputs(tasks ? "  }\n" : "", g->to);
  }
  fprintf(g->to, "%s  PCCL_K_END\n}\n", tasks ? "" : "  }\n");
}

/* ---- tables ---- */

/* Connections are numbered among the sends, and the receives, of their rank. */
static polyccl_result number_ends(generator *g) {
  size_t ranks = (size_t)g->plan->ranks;
  int32_t *next = pccl_zeroed(2 * ranks, sizeof *next);
  g->end = pccl_array(2 * g->plan->connections, sizeof *g->end);
  if (next == NULL || g->end == NULL) {
    free(next);
    return pccl_no_memory("generated source");
  }
  for (size_t i = 0; i < g->plan->connections; i++) {
    g->end[2 * i] = next[2 * g->plan->connection[i].src]++;
    g->end[2 * i + 1] = next[2 * g->plan->connection[i].dst + 1]++;
  }
  free(next);
  return POLYCCL_SUCCESS;
}

/* The host part of a device executor reads this before it launches. */
static void write_identity(const generator *g, uint64_t fingerprint) {
  fprintf(
      g->to,
      "\nextern \"C\" __device__ const unsigned long long pccl_k_identity[3] = {PCCL_K_VERSION, sizeof(pccl_k_call), "
      "0x%016llxull};\n",
      (unsigned long long)fingerprint);
}

static void write_c_tables(const generator *g) {
  const polyccl_plan *plan = g->plan;
  fputs("\n/* The runtime looks these tables up. */\n", g->to);
  for (int32_t rank = 0; rank < plan->ranks; rank++) {
    fprintf(g->to, "static const pccl_k_function rank%d[] = {", rank);
    for (int32_t tb = 0; tb < plan->rank[rank].tbs; tb++) {
      fprintf(g->to, "%srank%d_tb%d", tb > 0 ? ", " : "", rank, tb);
    }
    fprintf(g->to, "%s};\n", plan->rank[rank].tbs == 0 ? "0" : "");
  }
  fprintf(g->to, "static const pccl_k_function *const ranks[] = {");
  for (int32_t rank = 0; rank < plan->ranks; rank++) {
    fprintf(g->to, "%srank%d", rank > 0 ? ", " : "", rank);
  }
  fprintf(g->to,
          "};\n__attribute__((visibility(\"default\"))) extern const pccl_k_generated pccl_generated;\n"
          "const pccl_k_generated pccl_generated = {PCCL_K_VERSION, sizeof(pccl_k_call), 0x%016llxu, ranks};\n",
          (unsigned long long)polyccl_plan_fingerprint(plan));
}

static void write_kernel(generator *g) {
  const polyccl_plan *plan = g->plan;
  fputs(
      "\n/* A GPU thread block executes thread block `number` of the plan, counted through all ranks. */\n"
      "static __device__ void pccl_k_dispatch(const pccl_k_work *, uint32_t number, pccl_k_call *c, pccl_k_block *b) "
      "{\n  switch (number) {\n",
      g->to);
  for (int32_t rank = 0; rank < plan->ranks; rank++) {
    for (int32_t tb = 0; tb < plan->rank[rank].tbs; tb++) {
      fprintf(g->to, "    case %d: rank%d_tb%d(c, b); break;\n", plan->rank[rank].tb + tb, rank, tb);
    }
  }
  fputs("    default: break;\n  }\n}\n\n", g->to);
  write_portable(g, "entry.h");
  write_identity(g, polyccl_plan_fingerprint(plan));
}

static const char *const target_names[] = {"c", "cuda", "hip"};

static void write_prologue(const generator *g) {
  if (g->target == POLYCCL_TARGET_HIP) {
    fputs("#include <hip/hip_runtime.h>\n", g->to);
  }
}

static void write_source(generator *g) {
  const polyccl_plan *plan = g->plan;
  fprintf(g->to,
          "/* Generated by polyccl build --target %s from a plan for %s on %d ranks. */\n"
          "#define PCCL_K_CHUNKS %dull\n#define PCCL_K_PROTOCOL %s\n",
          target_names[g->target], polyccl_collective_name(plan->collective), plan->ranks, plan->chunks,
          protocol_names[plan->protocol]);
  write_prologue(g);
  write_portable(g, g->target == POLYCCL_TARGET_C ? "moves.h" : "tables.h");
  write_addends_table(g);
  for (int32_t rank = 0; rank < plan->ranks; rank++) {
    for (int32_t tb = 0; tb < plan->rank[rank].tbs; tb++) {
      write_block(g, rank, tb);
    }
  }
  if (g->target == POLYCCL_TARGET_C) {
    write_c_tables(g);
  } else {
    write_kernel(g);
  }
}

polyccl_result polyccl_interpreter_generate(polyccl_target target, FILE *to) {
  if (target != POLYCCL_TARGET_CUDA && target != POLYCCL_TARGET_HIP) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "the interpreter kernel exists for the targets cuda and hip only");
  }
  generator g = {.target = target, .to = to};
  fprintf(to, "/* Generated by polyccl build --interpreter --target %s, for any plan. */\n", target_names[target]);
  write_prologue(&g);
  fputs("#define PCCL_K_PROTOCOL ((int)work->protocol)\n", to);
  write_portable(&g, "tables.h");
  write_portable(&g, "interpret.h");
  write_portable(&g, "entry.h");
  write_identity(&g, 0);
  return fflush(to) != 0 || ferror(to) != 0 ? pccl_fail_errno("cannot write the generated source") : POLYCCL_SUCCESS;
}

polyccl_result polyccl_plan_generate(const polyccl_plan *plan, polyccl_target target, FILE *to) {
  if ((unsigned)target > POLYCCL_TARGET_HIP) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "unknown target number %d", (int)target);
  }
  PCCL_TRY(polyccl_plan_verify(plan, NULL));
  generator g = {.plan = plan, .target = target, .to = to};
  polyccl_result result = number_ends(&g);
  if (result == POLYCCL_SUCCESS) {
    result = list_addends(&g);
  }
  if (result == POLYCCL_SUCCESS) {
    write_source(&g);
    if (fflush(to) != 0 || ferror(to) != 0) {
      result = pccl_fail_errno("cannot write the generated source");
    }
  }
  free(g.end);
  free(g.addends);
  pccl_contributions_free(&g.contributions);
  pccl_vec_free(&g.table);
  pccl_map_free(&g.known);
  return result;
}
