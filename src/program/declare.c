/* What a program declares before it moves anything: pre- and postconditions, scratch buffers. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "program/program.h"

bool pccl_program_held(const polyccl_program *program, int rank, int chunk) {
  return pccl_map_get(&program->absent, (uint64_t)rank * (uint64_t)program->input + (uint64_t)chunk) == NULL;
}

static polyccl_result check_declaration(const polyccl_program *program, int rank, int chunk, int chunks,
                                        const char *what) {
  if (program->config.collective != POLYCCL_CUSTOM) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "only a custom collective declares a %s", what);
  }
  if (program->operations.len > 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the %s must be declared before the first operation", what);
  }
  if (rank < 0 || rank >= program->config.ranks || chunk < 0 || chunk >= chunks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: rank %d chunk %d is out of range (%d ranks, %d chunks)", what, rank,
                     chunk, program->config.ranks, chunks);
  }
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_program_pre(polyccl_program *program, int rank, int chunk, bool held) {
  PCCL_TRY(check_declaration(program, rank, chunk, program->input, "precondition"));
  uint64_t key = (uint64_t)rank * (uint64_t)program->input + (uint64_t)chunk;
  if (!held && pccl_map_put(&program->absent, key, 1, NULL) == NULL) {
    return pccl_no_memory("a precondition's absent chunks");
  }
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_program_post(polyccl_program *program, int rank, int chunk, const polyccl_leaf *leaves,
                                    int count) {
  PCCL_TRY(check_declaration(program, rank, chunk, program->output, "postcondition"));
  if (count < 1) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "postcondition of rank %d chunk %d names no input chunk", rank, chunk);
  }
  for (int i = 0; i < count; i++) {
    if (leaves[i].rank < 0 || leaves[i].rank >= program->config.ranks || leaves[i].chunk < 0 ||
        leaves[i].chunk >= program->input) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "postcondition of rank %d chunk %d: rank %d chunk %d is out of range",
                       rank, chunk, leaves[i].rank, leaves[i].chunk);
    }
  }
  bool is_new;
  uint64_t key = (uint64_t)rank * (uint64_t)program->output + (uint64_t)chunk;
  uint64_t *slot = pccl_map_put(&program->posts, key, program->post_lists.len, &is_new);
  if (slot != NULL && !is_new) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the postcondition of rank %d chunk %d is declared twice", rank, chunk);
  }
  if (program->post_leaves.len > (size_t)(INT32_MAX - count)) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the postconditions name more than %d input chunks in all", INT32_MAX);
  }
  pccl_post_list list = {(int32_t)program->post_leaves.len, count};
  bool ok = slot != NULL && pccl_vec_push(&program->post_lists, list);
  for (int i = 0; ok && i < count; i++) {
    ok = pccl_vec_push(&program->post_leaves, leaves[i]);
  }
  return ok ? POLYCCL_SUCCESS : pccl_no_memory("a postcondition's chunks");
}

/* Names are found by hash; where two share one, the next keys are tried. */
static uint64_t hash_name(const char *name) {
  uint64_t hash = 0;
  for (; *name != '\0'; name++) {
    hash = pccl_mix64(hash ^ (uint8_t)*name);
  }
  return hash >> 2;
}

static polyccl_result add_scratch_buffer(polyccl_program *program, const char *name) {
  size_t ranks = (size_t)program->config.ranks, cells = (program->scratch.len + 1) * ranks;
  if (cells > PCCL_MAX_SCRATCHES) {
    return pccl_fail(POLYCCL_ERROR_LIMIT,
                     "scratch \"%.60s\": %zu buffers on %zu ranks are too many (at most %d in all)", name,
                     program->scratch.len + 1, ranks, PCCL_MAX_SCRATCHES);
  }
  pccl_scratch made = {pccl_strdup(name), pccl_zeroed(ranks, sizeof *made.length)};
  if (made.name == NULL || made.length == NULL || !pccl_vec_reserve(&program->scratch_written, ranks) ||
      !pccl_vec_reserve(&program->scratch_room, ranks) || !pccl_vec_push(&program->scratch, made)) {
    free(made.name);
    free(made.length);
    return pccl_no_memory("scratch buffers");
  }
  for (size_t rank = 0; rank < ranks; rank++) {
    program->scratch_written.data[program->scratch_written.len++] = NULL;
    program->scratch_room.data[program->scratch_room.len++] = 0;
  }
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_program_scratch(polyccl_program *program, const char *name, int *buffer) {
  for (uint64_t key = hash_name(name);; key++) {
    bool is_new;
    uint64_t *number = pccl_map_put(&program->scratch_index, key, UINT64_MAX, &is_new);
    if (number == NULL) {
      return pccl_no_memory("the names of scratch buffers");
    }
    if (*number == UINT64_MAX) { /* new, or left so by a failure */
      PCCL_TRY(add_scratch_buffer(program, name));
      *number = program->scratch.len - 1;
    }
    if (strcmp(program->scratch.data[*number].name, name) == 0) {
      *buffer = POLYCCL_SCRATCH + (int)*number;
      return POLYCCL_SUCCESS;
    }
  }
}
