/* The symbolic check: runs the program once over values and compares every output chunk with the postcondition. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "program/coverage.h"
#include "program/difference.h"
#include "program/program.h"
#include "program/value.h"

typedef struct checker {
  const polyccl_program *program;
  pccl_values values;
  pccl_coverage coverage; /* of `values`, once they are all there */
  PCCL_VEC(int32_t) wanted;
  int32_t **cell;    /* [rank][cell] value */
  uint32_t **depth;  /* [rank][cell, then scratch]: operations on the longest chain to it */
  uint32_t **writer; /* the same shape: 1 + operation */
  size_t *scratch;   /* [scratch x ranks] its first slot */
  uint32_t longest;
  size_t remote;
} checker;

static size_t find_checker_slot(const checker *c, pccl_place place) {
  const polyccl_program *program = c->program;
  if (place.buffer < POLYCCL_SCRATCH) {
    return (size_t)pccl_collective_cell(&program->spec, place.rank, place.buffer == POLYCCL_OUTPUT, place.index);
  }
  size_t ranks = (size_t)program->config.ranks;
  return c->scratch[(size_t)(place.buffer - POLYCCL_SCRATCH) * ranks + (size_t)place.rank] + (size_t)place.index;
}

static bool init_checker_rank(checker *c, int rank) {
  const polyccl_program *program = c->program;
  size_t slots = (size_t)program->cells;
  for (size_t i = 0; i < program->scratch.len; i++) {
    c->scratch[i * (size_t)program->config.ranks + (size_t)rank] = slots;
    slots += (size_t)program->scratch.data[i].length[rank];
  }
  c->cell[rank] = pccl_array(slots, sizeof **c->cell);
  c->depth[rank] = pccl_zeroed(slots, sizeof **c->depth);
  c->writer[rank] = pccl_zeroed(slots, sizeof **c->writer);
  if (c->cell[rank] == NULL || c->depth[rank] == NULL || c->writer[rank] == NULL) {
    return false;
  }
  for (size_t i = 0; i < slots; i++) {
    c->cell[rank][i] = PCCL_NOTHING;
  }
  for (int i = 0; i < program->input; i++) {
    if (pccl_program_held(program, rank, i)) {
      c->cell[rank][pccl_collective_cell(&program->spec, rank, false, i)] = rank * program->input + i;
    }
  }
  return true;
}

/* The builder has checked every reference, so sources hold something here. */
static bool execute_operation(checker *c, size_t number) {
  const pccl_operation *operation = &c->program->operations.data[number];
  size_t src = find_checker_slot(c, operation->src), dst = find_checker_slot(c, operation->dst);
  int from = operation->src.rank, to = operation->dst.rank;
  c->remote += from != to;
  for (size_t i = 0; i < (size_t)operation->size; i++) {
    int32_t value = c->cell[from][src + i];
    uint32_t depth = c->depth[from][src + i];
    if (operation->kind == PCCL_REDUCE) {
      value = pccl_value_add(&c->values, c->cell[to][dst + i], value);
      if (value < 0) {
        return false;
      }
      depth = depth > c->depth[to][dst + i] ? depth : c->depth[to][dst + i];
    }
    c->cell[to][dst + i] = value;
    c->depth[to][dst + i] = depth + 1;
    c->writer[to][dst + i] = (uint32_t)number + 1;
    c->longest = depth + 1 > c->longest ? depth + 1 : c->longest;
  }
  return true;
}

static polyccl_result report_wrong_chunk(checker *c, int rank, int index, const polyccl_leaf *wanted, size_t count) {
  const polyccl_program *program = c->program;
  int cell = pccl_collective_cell(&program->spec, rank, true, index);
  pccl_text text = {0};
  pccl_describe_difference(&c->values, c->cell[rank][cell], wanted, count, program->config.ranks, &text);
  polyccl_location at = {NULL, 0};
  const char *verb = "";
  if (c->writer[rank][cell] != 0) {
    const pccl_operation *by = &program->operations.data[c->writer[rank][cell] - 1];
    at = pccl_program_location(program, by->location);
    verb = by->kind == PCCL_REDUCE ? "reduced" : "copied";
  }
  polyccl_result result;
  if (at.file != NULL) {
    result = pccl_fail(POLYCCL_ERROR_INVALID, "%s: rank %d output[%d]: %s; %s at %s:%d", program->name, rank, index,
                       text.data, verb, at.file, at.line);
  } else {
    result = pccl_fail(POLYCCL_ERROR_INVALID, "%s: rank %d output[%d]: %s; %s", program->name, rank, index,
                       text.failed || text.data == NULL ? "is wrong" : text.data,
                       c->writer[rank][cell] != 0 ? verb : "never written");
  }
  pccl_text_free(&text);
  return result;
}

static polyccl_result check_custom_posts(checker *c) {
  const polyccl_program *program = c->program;
  for (int rank = 0; rank < program->config.ranks; rank++) {
    for (int i = 0; i < program->output; i++) {
      uint64_t *found = pccl_map_get(&program->posts, (uint64_t)rank * (uint64_t)program->output + (uint64_t)i);
      if (found == NULL) {
        continue;
      }
      pccl_post_list list = program->post_lists.data[*found];
      const polyccl_leaf *wanted = &program->post_leaves.data[list.leaf];
      c->wanted.len = 0;
      for (int k = 0; k < list.leaves; k++) {
        if (!pccl_vec_push(&c->wanted, wanted[k].rank * program->input + wanted[k].chunk)) {
          return pccl_no_memory("the symbolic check");
        }
      }
      int32_t value = c->cell[rank][pccl_collective_cell(&program->spec, rank, true, i)];
      bool no_memory = false;
      if (value == PCCL_NOTHING || !pccl_value_holds(&c->values, value, c->wanted.data, c->wanted.len, &no_memory)) {
        if (no_memory) {
          return pccl_no_memory("the contributions to an output chunk");
        }
        return report_wrong_chunk(c, rank, i, wanted, (size_t)list.leaves);
      }
    }
  }
  return POLYCCL_SUCCESS;
}

/* `tree`: [input] the value that an output had before, or PCCL_NOTHING. */
static polyccl_result check_standard_posts(checker *c, int32_t *tree, bool *identical) {
  const polyccl_program *program = c->program;
  for (int rank = 0; rank < program->config.ranks; rank++) {
    for (int i = 0; i < program->output; i++) {
      polyccl_leaf leaf;
      pccl_post_kind kind = pccl_collective_post(&program->spec, rank, i, &leaf);
      int32_t value = c->cell[rank][pccl_collective_cell(&program->spec, rank, true, i)];
      bool right = true;
      if (kind == PCCL_POST_ONE) {
        right = value == leaf.rank * program->input + leaf.chunk;
      } else if (kind == PCCL_POST_ALL) {
        PCCL_TRY(pccl_coverage_ask(&c->coverage, value, leaf.chunk, &right));
      }
      if (!right) {
        return report_wrong_chunk(c, rank, i, &leaf, 1);
      }
      if (kind == PCCL_POST_ALL) {
        *identical = *identical && (tree[leaf.chunk] == PCCL_NOTHING || tree[leaf.chunk] == value);
        tree[leaf.chunk] = value;
      }
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_program_outputs(checker *c, bool *identical) {
  PCCL_TRY(pccl_coverage_open(&c->coverage, &c->values, c->program->config.ranks));
  if (c->program->config.collective == POLYCCL_CUSTOM) {
    return check_custom_posts(c);
  }
  size_t chunks = (size_t)c->program->input;
  int32_t *tree = pccl_array(chunks, sizeof *tree);
  if (tree == NULL) {
    return pccl_no_memory("the symbolic check");
  }
  for (size_t i = 0; i < chunks; i++) {
    tree[i] = PCCL_NOTHING;
  }
  polyccl_result result = check_standard_posts(c, tree, identical);
  free(tree);
  return result;
}

static polyccl_result run_check(checker *c, polyccl_program_summary *summary) {
  const polyccl_program *program = c->program;
  for (int rank = 0; rank < program->config.ranks; rank++) {
    if (!init_checker_rank(c, rank)) {
      return pccl_no_memory("the symbolic check");
    }
  }
  for (size_t i = 0; i < program->operations.len; i++) {
    if (!execute_operation(c, i)) {
      return pccl_no_memory("the symbolic check");
    }
  }
  bool identical = true;
  PCCL_TRY(check_program_outputs(c, &identical));
  if (summary != NULL) {
    *summary = (polyccl_program_summary){.ranks = program->config.ranks,
                                         .chunks = program->config.chunks,
                                         .operations = program->operations.len,
                                         .remote = c->remote,
                                         .longest = (int)c->longest,
                                         .identical = identical};
  }
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_program_check(const polyccl_program *program, polyccl_program_summary *summary) {
  PCCL_TRY(pccl_program_finished(program));
  size_t ranks = (size_t)program->config.ranks;
  if ((uint64_t)ranks * (uint64_t)program->input > INT32_MAX / 2) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%s: %d ranks with %d input chunks each are too many to check", program->name,
                     program->config.ranks, program->input);
  }
  checker c = {
      .program = program,
      .values = {.leaves = (int32_t)ranks * program->input, .input = program->input, .chunks = program->config.chunks},
      .cell = pccl_zeroed(ranks, sizeof *c.cell),
      .depth = pccl_zeroed(ranks, sizeof *c.depth),
      .writer = pccl_zeroed(ranks, sizeof *c.writer),
      .scratch = pccl_array(program->scratch.len * ranks, sizeof *c.scratch)};
  bool ok = c.cell != NULL && c.depth != NULL && c.writer != NULL && c.scratch != NULL;
  polyccl_result result = ok ? run_check(&c, summary) : pccl_no_memory("the symbolic check");
  for (size_t rank = 0; rank < ranks; rank++) {
    free(c.cell != NULL ? c.cell[rank] : NULL);
    free(c.depth != NULL ? c.depth[rank] : NULL);
    free(c.writer != NULL ? c.writer[rank] : NULL);
  }
  free(c.cell);
  free(c.depth);
  free(c.writer);
  free(c.scratch);
  pccl_values_free(&c.values);
  pccl_coverage_close(&c.coverage);
  pccl_vec_free(&c.wanted);
  return result;
}
