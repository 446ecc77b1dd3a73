/* The task vocabulary: transfers are collected, then replayed by step on the builder, so that every check applies. */
#include <stdlib.h>

#include "base/error.h"
#include "program/program.h"

/* The buffer that holds all chunks in place. */
static int find_whole_buffer(const polyccl_program *program) {
  return program->output >= program->input ? POLYCCL_OUTPUT : POLYCCL_INPUT;
}

static polyccl_result fail_transfer_range(polyccl_location at, const char *what, int value, int count) {
  return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "transfer: %s %d is out of range (0 to %d)", what, value, count - 1);
}

polyccl_result polyccl_program_transfer(polyccl_program *program, int src, int dst, int step, int chunk, bool reduce,
                                        polyccl_location at) {
  if (!program->config.inplace) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "transfer: the program must be in place (inplace = true)");
  }
  if (program->operations.len > 0) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "transfer does not mix with copy and reduce");
  }
  int ranks = program->config.ranks, chunks = program->output > program->input ? program->output : program->input;
  if (src < 0 || src >= ranks || dst < 0 || dst >= ranks) {
    return fail_transfer_range(at, "rank", src < 0 || src >= ranks ? src : dst, ranks);
  }
  if (src == dst) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "transfer: rank %d cannot send to itself", src);
  }
  if (chunk < 0 || chunk >= chunks) {
    return fail_transfer_range(at, "chunk", chunk, chunks);
  }
  if (step < 0) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "transfer: step %d is negative", step);
  }
  at.file = pccl_program_file(program, at.file);
  pccl_transfer transfer = {src, dst, step, chunk, (int32_t)program->transfers.len, at, reduce};
  if (program->transfers.len >= INT32_MAX) {
    return pccl_fail_at(POLYCCL_ERROR_LIMIT, at, "more than %d transfers are too many", INT32_MAX);
  }
  if (at.file == NULL || !pccl_vec_push(&program->transfers, transfer)) {
    return pccl_no_memory("the program's transfers");
  }
  return POLYCCL_SUCCESS;
}

static int compare_by_step(const void *a, const void *b) {
  const pccl_transfer *x = a, *y = b;
  return x->step != y->step ? (x->step < y->step ? -1 : 1) : (x->order > y->order) - (x->order < y->order);
}

static polyccl_result replay_transfer(polyccl_program *program, const pccl_transfer *t) {
  polyccl_ref from, to;
  int buffer = find_whole_buffer(program);
  polyccl_location at = {t->at.file[0] != '\0' ? t->at.file : NULL, t->at.line};
  PCCL_TRY(polyccl_program_chunk(program, t->src, buffer, t->chunk, 1, at, &from));
  if (!t->reduce) {
    return polyccl_program_copy(program, &from, t->dst, buffer, t->chunk, POLYCCL_NO_HINTS, at, &to);
  }
  PCCL_TRY(polyccl_program_chunk(program, t->dst, buffer, t->chunk, 1, at, &to));
  return polyccl_program_reduce(program, &to, &from, POLYCCL_NO_HINTS, at, &to);
}

polyccl_result polyccl_program_finish(polyccl_program *program) {
  size_t count = program->transfers.len;
  if (count == 0) {
    return POLYCCL_SUCCESS;
  }
  qsort(program->transfers.data, count, sizeof *program->transfers.data, compare_by_step);
  program->transfers.len = 0;
  for (size_t i = 0; i < count; i++) {
    PCCL_TRY(replay_transfer(program, &program->transfers.data[i]));
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_program_finished(const polyccl_program *program) {
  return program->transfers.len == 0
             ? POLYCCL_SUCCESS
             : pccl_fail(POLYCCL_ERROR_INVALID, "%s: its transfers were not finished (polyccl_program_finish)",
                         program->name);
}
