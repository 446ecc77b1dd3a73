#include "builtin/builtin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/compile.h>

#include "base/error.h"
#include "base/log.h"
#include "base/map.h"
#include "base/options.h"
#include "base/size.h"
#include "builtin_programs.h"
#include "executor/image_find.h"
#include "language/text.h"

/* What a row's limit is compared with, for a call whose larger buffer has B bytes on n ranks. */
typedef enum builtin_measure {
  NO_LIMIT,
  WHOLE,   /* B: the messages of programs that send whole buffers */
  PART,    /* B / n: the messages of programs that send one rank's part */
  RECEIVED /* B (n - 1): what a rank receives if every other sends it a whole buffer */
} builtin_measure;

typedef struct builtin_row {
  polyccl_collective collective;
  const char *program;
  polyccl_protocol protocol;
  builtin_measure measure;
  uint64_t max_bytes;
  int max_ranks;
  polyccl_placement placement;
} builtin_row;

/* Where one program takes over from another. docs/executor.md, Built-in plans, has the measurements. */
enum {
  /* A message that fits the first 64-byte cache line of an LL128 line (kernel/lines.h). LL128 is quicker than Simple up
   * to it. From there to 128 bytes it depends on the program, and beyond that Simple is quicker in all but scatter.
   * bench/builtin/crossover.sh, 2 ranks on 2 cores of a Xeon with AVX-512. */
  LINE = 56,
  /* AllReduce in one step, as long as a rank receives no more than this: the same command and machine. */
  ONE_STEP = 8192,
  /* A tree has fewer hops than a chain, which gains only if it can cut the buffer into micro-batches. */
  UNCUT = PCCL_TILE_MIN,
  /* All-pairs programs were quicker than rings with as many ranks as were tried. With more, their connections of 1 MiB
   * each exceed a rank's POLYCCL_BUFFER of 64 MiB and become smaller. */
  PAIRS = 64,
  /* Above PAIRS ranks, trees have few messages. 128 and 256 ranks as threads on 2 cores: AllReduce in a tree took 1/8
   * of the ring's time at 40 kB, as long at 4 MB. AllGather and ReduceScatter send whole buffers down or up the tree,
   * and took as long as rings at 512 kB. */
  TREE = 4 << 20,
  WHOLE_TREE = 512 << 10,
  /* The steps of a ring grow with the square of its ranks: 4 s and 0.8 GiB to compile it for 1,024. */
  RING = 256,
  ANY = POLYCCL_MAX_LOCAL_RANKS
};

/* All but AllToAll are right on ranks in place as well (plan/alias.h). Only the AllReduce in one step needs waits for
 * it, which others would have in vain. AllToAll in place is staged. */
#define OUT POLYCCL_OUT_OF_PLACE
#define EITHER POLYCCL_EITHER_PLACE

/* The first row that fits is taken. */
static const builtin_row rows[] = {
    {POLYCCL_ALLREDUCE, "allreduce_oneshot", POLYCCL_LL128, WHOLE, LINE, PAIRS, EITHER},
    {POLYCCL_ALLREDUCE, "allreduce_oneshot", POLYCCL_SIMPLE, RECEIVED, ONE_STEP, PAIRS, EITHER},
    {POLYCCL_ALLREDUCE, "allreduce_allpairs", POLYCCL_LL128, PART, LINE, PAIRS, OUT},
    {POLYCCL_ALLREDUCE, "allreduce_allpairs", POLYCCL_SIMPLE, NO_LIMIT, 0, PAIRS, OUT},
    {POLYCCL_ALLREDUCE, "allreduce_tree", POLYCCL_LL128, WHOLE, LINE, ANY, OUT},
    {POLYCCL_ALLREDUCE, "allreduce_tree", POLYCCL_SIMPLE, WHOLE, TREE, ANY, OUT},
    {POLYCCL_ALLREDUCE, "allreduce_ring", POLYCCL_SIMPLE, NO_LIMIT, 0, RING, OUT},
    {POLYCCL_ALLREDUCE, "allreduce_tree", POLYCCL_SIMPLE, NO_LIMIT, 0, ANY, OUT},
    {POLYCCL_ALLGATHER, "allgather_allpairs", POLYCCL_LL128, PART, LINE, PAIRS, OUT},
    {POLYCCL_ALLGATHER, "allgather_allpairs", POLYCCL_SIMPLE, NO_LIMIT, 0, PAIRS, OUT},
    {POLYCCL_ALLGATHER, "allgather_tree", POLYCCL_SIMPLE, WHOLE, WHOLE_TREE, ANY, OUT},
    {POLYCCL_ALLGATHER, "allgather_ring", POLYCCL_SIMPLE, NO_LIMIT, 0, RING, OUT},
    {POLYCCL_ALLGATHER, "allgather_tree", POLYCCL_SIMPLE, NO_LIMIT, 0, ANY, OUT},
    {POLYCCL_REDUCE_SCATTER, "reduce_scatter_allpairs", POLYCCL_LL128, PART, LINE, PAIRS, OUT},
    {POLYCCL_REDUCE_SCATTER, "reduce_scatter_allpairs", POLYCCL_SIMPLE, NO_LIMIT, 0, PAIRS, OUT},
    {POLYCCL_REDUCE_SCATTER, "reduce_scatter_tree", POLYCCL_SIMPLE, WHOLE, WHOLE_TREE, ANY, OUT},
    {POLYCCL_REDUCE_SCATTER, "reduce_scatter_ring", POLYCCL_SIMPLE, NO_LIMIT, 0, RING, OUT},
    {POLYCCL_REDUCE_SCATTER, "reduce_scatter_tree", POLYCCL_SIMPLE, NO_LIMIT, 0, ANY, OUT},
    {POLYCCL_ALLTOALL, "alltoall", POLYCCL_LL128, PART, LINE, PAIRS, OUT},
    {POLYCCL_ALLTOALL, "alltoall", POLYCCL_SIMPLE, NO_LIMIT, 0, ANY, OUT},
    {POLYCCL_BROADCAST, "broadcast_tree", POLYCCL_LL128, WHOLE, LINE, ANY, OUT},
    {POLYCCL_BROADCAST, "broadcast_tree", POLYCCL_SIMPLE, WHOLE, UNCUT, ANY, OUT},
    {POLYCCL_BROADCAST, "broadcast_chain", POLYCCL_SIMPLE, NO_LIMIT, 0, ANY, OUT},
    {POLYCCL_REDUCE, "reduce_tree", POLYCCL_LL128, WHOLE, LINE, ANY, OUT},
    {POLYCCL_REDUCE, "reduce_tree", POLYCCL_SIMPLE, WHOLE, UNCUT, ANY, OUT},
    {POLYCCL_REDUCE, "reduce_chain", POLYCCL_SIMPLE, NO_LIMIT, 0, ANY, OUT},
    {POLYCCL_GATHER, "gather", POLYCCL_LL128, PART, LINE, ANY, OUT},
    {POLYCCL_GATHER, "gather", POLYCCL_SIMPLE, NO_LIMIT, 0, ANY, OUT},
    {POLYCCL_SCATTER, "scatter", POLYCCL_LL128, PART, LINE, ANY, OUT},
    {POLYCCL_SCATTER, "scatter", POLYCCL_SIMPLE, NO_LIMIT, 0, ANY, OUT},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

typedef pccl_builtin_entry builtin_entry; /* a row as compiled for a root */

/* What one image is made of. */
typedef struct making {
  const pccl_builtin *builtin;
  const builtin_row *row;
  const pccl_builtin_program *text;
  int root;
} making;

static const pccl_builtin_program *find_text(const char *name) {
  for (size_t i = 0; i < sizeof pccl_builtin_programs / sizeof pccl_builtin_programs[0]; i++) {
    if (strcmp(pccl_builtin_programs[i].name, name) == 0) {
      return &pccl_builtin_programs[i];
    }
  }
  return NULL;
}

static polyccl_result compile(const making *m, polyccl_plan **plan) {
  const builtin_row *row = m->row;
  char ranks[12], root_text[12], file[64];
  snprintf(ranks, sizeof ranks, "%d", m->builtin->member->ranks);
  snprintf(root_text, sizeof root_text, "%d", m->root);
  snprintf(file, sizeof file, "%s.lua", row->program);
  polyccl_param params[3] = {{"ranks", ranks}};
  size_t count = 1;
  if (m->root >= 0) {
    params[count++] = (polyccl_param){"root", root_text};
  }
  polyccl_program *program;
  PCCL_TRY(
      pccl_program_load_text(file, (const char *)m->text->text, m->text->bytes - 1, NULL, params, count, &program));
  polyccl_compile_options options = {.size = sizeof(polyccl_compile_options), .placement = row->placement};
  polyccl_result result = polyccl_compile(program, &options, plan);
  polyccl_program_destroy(program);
  if (result == POLYCCL_SUCCESS) {
    (*plan)->protocol = row->protocol;
  }
  return result;
}

static polyccl_result make_image(void *context, const char *key, pccl_image **image) {
  const making *m = context;
  polyccl_plan *plan = NULL;
  polyccl_result result = compile(m, &plan);
  if (result == POLYCCL_SUCCESS) {
    result = pccl_image_make(key, plan, m->builtin->buffer_bytes, image);
    polyccl_plan_destroy(plan);
    PCCL_INFO("rank %d compiled the built-in %s", m->builtin->member->rank, key);
  }
  bool alike = result == POLYCCL_ERROR_UNSUPPORTED || result == POLYCCL_ERROR_INVALID || result == POLYCCL_ERROR_LIMIT;
  return alike ? pccl_image_refuse(key, result, polyccl_last_error(), image) : result;
}

static polyccl_result find_image(const making *m, pccl_image **image) {
  if (m->text == NULL) {
    return pccl_fail(POLYCCL_ERROR_INTERNAL, "the program %s is not built in", m->row->program);
  }
  char key[PCCL_IMAGE_KEY_BYTES], root[16] = "";
  if (m->root >= 0) {
    snprintf(root, sizeof root, "-root%d", m->root);
  }
  snprintf(key, sizeof key, "%s-%016llx-%s-%dranks%s-%d-buffer%zu", m->row->program,
           (unsigned long long)pccl_mix_bytes(0, m->text->text, m->text->bytes),
           polyccl_protocol_name(m->row->protocol), m->builtin->member->ranks, root, (int)m->row->placement,
           m->builtin->buffer_bytes);
  return pccl_image_find(m->builtin->member, key, make_image, (void *)(uintptr_t)m, image);
}

static polyccl_result load(pccl_builtin *builtin, int row, int root, builtin_entry **entry) {
  builtin_entry made = {.row = row, .root = root};
  making m = {builtin, &rows[row], find_text(rows[row].program), root};
  pccl_image *image;
  PCCL_TRY(find_image(&m, &image));
  polyccl_result result = POLYCCL_SUCCESS;
  if (image->head->result == POLYCCL_SUCCESS) {
    result = pccl_image_part(image, builtin->member->rank, &made.plan);
  } else {
    PCCL_INFO("the built-in %s has no form on %d ranks: %s", rows[row].program, builtin->member->ranks,
              image->head->text);
  }
  pccl_image_release(image);
  PCCL_TRY(result);
  if (!pccl_vec_push(&builtin->entries, made)) {
    pccl_loaded_release(made.plan);
    return pccl_no_memory("a communicator's plans");
  }
  *entry = &builtin->entries.data[builtin->entries.len - 1];
  return POLYCCL_SUCCESS;
}

static polyccl_result find(pccl_builtin *builtin, int row, int root, builtin_entry **entry) {
  for (size_t i = 0; i < builtin->entries.len; i++) {
    builtin_entry *at = &builtin->entries.data[i];
    if (at->row == row && at->root == root) {
      *entry = at;
      return POLYCCL_SUCCESS;
    }
  }
  return load(builtin, row, root, entry);
}

static bool row_fits(const builtin_row *row, const pccl_builtin_call *call, int ranks) {
  if (row->collective != call->collective || ranks > row->max_ranks) {
    return false;
  }
  switch (row->measure) {
    case WHOLE: return call->bytes <= row->max_bytes;
    case PART: return call->bytes <= row->max_bytes * (uint64_t)ranks;
    case RECEIVED: return ranks == 1 || call->bytes <= row->max_bytes / (uint64_t)(ranks - 1);
    default: return true;
  }
}

polyccl_result pccl_builtin_plan(pccl_builtin *builtin, const pccl_builtin_call *call, pccl_loaded **loaded) {
  *loaded = NULL;
  if (strcmp(pccl_option("POLYCCL_BUILTIN"), "0") == 0) {
    return POLYCCL_SUCCESS;
  }
  for (int row = 0; row < ROWS && *loaded == NULL; row++) {
    if (row_fits(&rows[row], call, builtin->member->ranks)) {
      builtin_entry *entry = NULL;
      PCCL_TRY(find(builtin, row, call->root, &entry));
      *loaded = entry->plan;
    }
  }
  return POLYCCL_SUCCESS;
}

void pccl_builtin_free(pccl_builtin *builtin) {
  for (size_t i = 0; i < builtin->entries.len; i++) {
    pccl_loaded_release(builtin->entries.data[i].plan);
  }
  pccl_vec_free(&builtin->entries);
}
