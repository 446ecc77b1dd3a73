/* Adds references and operations to a program; every operation is checked when it is added. */
#include <string.h>

#include "base/error.h"
#include "program/program.h"

/* ---- places ---- */

/* Chunks of a buffer on a rank; for scratch, those in use. */
static int count_buffer_chunks(const polyccl_program *program, int rank, int buffer) {
  switch (buffer) {
    case POLYCCL_INPUT: return program->input;
    case POLYCCL_OUTPUT: return program->output;
    default: return program->scratch.data[buffer - POLYCCL_SCRATCH].length[rank];
  }
}

static uint64_t *find_written(polyccl_program *program, int rank, int buffer, int index) {
  if (buffer < POLYCCL_SCRATCH) {
    int cell = pccl_collective_cell(&program->spec, rank, buffer == POLYCCL_OUTPUT, index);
    return &program->written.data[rank][cell];
  }
  size_t which = (size_t)(buffer - POLYCCL_SCRATCH) * (size_t)program->config.ranks + (size_t)rank;
  return &program->scratch_written.data[which][index];
}

/* True when the chunk holds something: written, or input at the start. */
static bool chunk_holds(polyccl_program *program, int rank, int buffer, int index) {
  if (*find_written(program, rank, buffer, index) != 0) {
    return true;
  }
  if (buffer >= POLYCCL_SCRATCH) {
    return false;
  }
  if (buffer == POLYCCL_INPUT) {
    return pccl_program_held(program, rank, index);
  }
  /* Output in place is input where the two share memory. */
  if (!program->config.inplace) {
    return false;
  }
  int cell = pccl_collective_cell(&program->spec, rank, true, index);
  int first = pccl_collective_cell(&program->spec, rank, false, 0);
  return cell >= first && cell < first + program->input && pccl_program_held(program, rank, cell - first);
}

static polyccl_result check_place_range(const polyccl_program *program, pccl_place place, int size,
                                        bool scratch_may_grow, polyccl_location at) {
  if (place.rank < 0 || place.rank >= program->config.ranks) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "rank %d is out of range (the program has ranks 0 to %d)",
                        place.rank, program->config.ranks - 1);
  }
  if (place.buffer < 0 || place.buffer >= POLYCCL_SCRATCH + (int)program->scratch.len) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "unknown buffer number %d", place.buffer);
  }
  int chunks = place.buffer >= POLYCCL_SCRATCH && scratch_may_grow
                   ? POLYCCL_MAX_CHUNKS
                   : count_buffer_chunks(program, place.rank, place.buffer);
  if (size < 1 || place.index < 0 || place.index > chunks - size) {
    char name[128];
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "%s is out of range (%d chunk%s there, size %d)",
                        pccl_place_name(program, place, size, name, sizeof name), chunks, chunks == 1 ? "" : "s", size);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result grow_scratch(polyccl_program *program, pccl_place place, int size, polyccl_location at) {
  size_t which = (size_t)(place.buffer - POLYCCL_SCRATCH) * (size_t)program->config.ranks + (size_t)place.rank;
  int32_t *room = &program->scratch_room.data[which];
  int32_t *length = &program->scratch.data[place.buffer - POLYCCL_SCRATCH].length[place.rank];
  int32_t need = place.index + size;
  if (need <= *length) {
    return POLYCCL_SUCCESS;
  }
  int64_t total = program->scratch_chunks + need - *length;
  char name[128];
  if (total > PCCL_MAX_CELLS) {
    return pccl_fail_at(POLYCCL_ERROR_LIMIT, at, "%s: scratch would have %lld chunks over all ranks (at most %d)",
                        pccl_place_name(program, place, size, name, sizeof name), (long long)total, PCCL_MAX_CELLS);
  }
  if (need > *room) {
    int32_t next = *room * 2 > need ? *room * 2 : need + 7;
    uint64_t *grown = pccl_resized(program->scratch_written.data[which], (size_t)next, sizeof *grown);
    if (grown == NULL) {
      return pccl_no_memory("a scratch buffer");
    }
    memset(grown + *room, 0, (size_t)(next - *room) * sizeof *grown);
    program->scratch_written.data[which] = grown;
    *room = next;
  }
  program->scratch_chunks = total;
  *length = need;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_program_check_ref(polyccl_program *program, const polyccl_ref *ref, polyccl_location at) {
  pccl_place place = {ref->rank, ref->buffer, ref->index};
  PCCL_TRY(check_place_range(program, place, ref->size, false, at));
  for (int i = 0; i < ref->size; i++) {
    uint64_t written = *find_written(program, ref->rank, ref->buffer, ref->index + i);
    if (written > ref->stamp) {
      polyccl_location by = pccl_program_location(program, program->operations.data[written - 1].location);
      char name[128];
      place.index += i;
      return pccl_fail_at(
          POLYCCL_ERROR_INVALID, at, "stale chunk: %s was overwritten at %s:%d after this reference to it was taken",
          pccl_place_name(program, place, 1, name, sizeof name), by.file != NULL ? by.file : "?", by.line);
    }
  }
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_program_chunk(polyccl_program *program, int rank, int buffer, int index, int size,
                                     polyccl_location at, polyccl_ref *ref) {
  pccl_place place = {rank, buffer, index};
  PCCL_TRY(check_place_range(program, place, size, false, at));
  for (int i = 0; i < size; i++) {
    if (!chunk_holds(program, rank, buffer, index + i)) {
      char name[128];
      place.index += i;
      return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "%s holds nothing yet",
                          pccl_place_name(program, place, 1, name, sizeof name));
    }
  }
  *ref = (polyccl_ref){rank, buffer, index, size, program->operations.len};
  return POLYCCL_SUCCESS;
}

/* ---- operations ---- */

/* 0: apart, 1: overlap in part, 2: the very same chunks. */
static int compare_places(const polyccl_program *program, pccl_place a, pccl_place b, int size) {
  if (a.rank != b.rank) {
    return 0;
  }
  int first = a.index, second = b.index;
  if (a.buffer < POLYCCL_SCRATCH && b.buffer < POLYCCL_SCRATCH) {
    first = pccl_collective_cell(&program->spec, a.rank, a.buffer == POLYCCL_OUTPUT, a.index);
    second = pccl_collective_cell(&program->spec, b.rank, b.buffer == POLYCCL_OUTPUT, b.index);
  } else if (a.buffer != b.buffer) {
    return 0;
  }
  if (first == second) {
    return 2;
  }
  return first < second + size && second < first + size ? 1 : 0;
}

static polyccl_result check_hints(polyccl_hints hints, polyccl_location at) {
  enum { MAX_HINT = 65535 };
  if (hints.channel > MAX_HINT || hints.send_tb > MAX_HINT || hints.recv_tb > MAX_HINT) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "a channel or thread block above %d is out of range", MAX_HINT);
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_program_check_amount(const polyccl_program *program, const pccl_operation *more, int32_t instances,
                                         int32_t refine, polyccl_location at) {
  int64_t moves = program->moves + (more != NULL ? more->parallel : 0);
  int64_t moved = program->moved + (more != NULL ? more->size : 0);
  if (moves * instances > PCCL_MAX_MOVES) {
    return pccl_fail_at(POLYCCL_ERROR_LIMIT, at,
                        "%zu operations become %lld with their %d instances and scopes; at most %d are supported",
                        program->operations.len + (more != NULL), (long long)(moves * instances), instances,
                        PCCL_MAX_MOVES);
  }
  if (moved * refine > PCCL_MAX_MOVED) {
    return pccl_fail_at(
        POLYCCL_ERROR_LIMIT, at, "%zu operations move %lld chunks, each in %d part%s; at most %d parts are supported",
        program->operations.len + (more != NULL), (long long)moved, refine, refine == 1 ? "" : "s", PCCL_MAX_MOVED);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result add_operation(polyccl_program *program, pccl_operation operation, polyccl_location at,
                                    polyccl_ref *ref) {
  PCCL_TRY(check_hints(operation.hints, at));
  PCCL_TRY(pccl_program_check_link(program, operation.src.rank, operation.dst.rank, at));
  if (program->transfers.len > 0) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "copy and reduce do not mix with transfer");
  }
  operation.parallel = program->parallel.data[program->parallel.len - 1];
  PCCL_TRY(pccl_program_check_amount(program, &operation, program->config.instances, program->refine, at));
  operation.location = pccl_program_intern_location(program, at);
  if (program->operations.len >= INT32_MAX) {
    return pccl_fail_at(POLYCCL_ERROR_LIMIT, at, "more than %d copies and reductions are too many", INT32_MAX);
  }
  if (operation.location < 0 || !pccl_vec_push(&program->operations, operation)) {
    return pccl_no_memory("the operations of a program");
  }
  program->moves += operation.parallel;
  program->moved += operation.size;
  uint64_t stamp = program->operations.len;
  pccl_place dst = operation.dst;
  for (int i = 0; i < operation.size; i++) {
    *find_written(program, dst.rank, dst.buffer, dst.index + i) = stamp;
  }
  *ref = (polyccl_ref){dst.rank, dst.buffer, dst.index, operation.size, stamp};
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_program_copy(polyccl_program *program, const polyccl_ref *src, int rank, int buffer, int index,
                                    polyccl_hints hints, polyccl_location at, polyccl_ref *ref) {
  PCCL_TRY(pccl_program_check_ref(program, src, at));
  pccl_place from = {src->rank, src->buffer, src->index}, to = {rank, buffer, index};
  if (buffer < 0) {
    to = (pccl_place){rank, src->buffer, src->index};
  } else if (index < 0 && buffer >= POLYCCL_SCRATCH && buffer < POLYCCL_SCRATCH + (int)program->scratch.len &&
             rank >= 0 && rank < program->config.ranks) {
    to.index = count_buffer_chunks(program, rank, buffer);
  } else if (index < 0) {
    to.index = src->index;
  }
  PCCL_TRY(check_place_range(program, to, src->size, true, at));
  switch (compare_places(program, from, to, src->size)) {
    case 1: {
      char a[128], b[128];
      return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "a copy from %s to %s overlaps itself",
                          pccl_place_name(program, from, src->size, a, sizeof a),
                          pccl_place_name(program, to, src->size, b, sizeof b));
    }
    case 2: /* where the chunk already is, as input is in place: nothing to do */
      *ref = (polyccl_ref){to.rank, to.buffer, to.index, src->size, src->stamp};
      return POLYCCL_SUCCESS;
    default: break;
  }
  if (to.buffer >= POLYCCL_SCRATCH) {
    PCCL_TRY(grow_scratch(program, to, src->size, at));
  }
  return add_operation(
      program, (pccl_operation){.src = from, .dst = to, .size = src->size, .hints = hints, .kind = PCCL_COPY}, at, ref);
}

polyccl_result polyccl_program_reduce(polyccl_program *program, const polyccl_ref *acc, const polyccl_ref *operand,
                                      polyccl_hints hints, polyccl_location at, polyccl_ref *ref) {
  PCCL_TRY(pccl_program_check_ref(program, acc, at));
  PCCL_TRY(pccl_program_check_ref(program, operand, at));
  if (!pccl_collective_reduces(program->config.collective)) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "%s does not reduce",
                        polyccl_collective_name(program->config.collective));
  }
  char a[128], b[128];
  pccl_place to = {acc->rank, acc->buffer, acc->index}, from = {operand->rank, operand->buffer, operand->index};
  pccl_place_name(program, to, acc->size, a, sizeof a);
  pccl_place_name(program, from, operand->size, b, sizeof b);
  if (acc->size != operand->size) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "cannot reduce %s (size %d) into %s (size %d): the sizes differ", b,
                        operand->size, a, acc->size);
  }
  if (compare_places(program, from, to, acc->size) != 0) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "cannot reduce %s into %s: a chunk cannot be reduced with itself", b,
                        a);
  }
  return add_operation(program,
                       (pccl_operation){.src = from, .dst = to, .size = acc->size, .hints = hints, .kind = PCCL_REDUCE},
                       at, ref);
}

polyccl_result polyccl_program_group(polyccl_program *program, const polyccl_ref *a, const polyccl_ref *b,
                                     polyccl_location at, polyccl_ref *ref) {
  PCCL_TRY(pccl_program_check_ref(program, a, at));
  PCCL_TRY(pccl_program_check_ref(program, b, at));
  if (a->rank != b->rank || a->buffer != b->buffer) {
    char one[128], two[128];
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "cannot group %s with %s: they lie in different buffers",
                        pccl_place_name(program, (pccl_place){a->rank, a->buffer, a->index}, a->size, one, sizeof one),
                        pccl_place_name(program, (pccl_place){b->rank, b->buffer, b->index}, b->size, two, sizeof two));
  }
  int32_t first = a->index < b->index ? a->index : b->index;
  int32_t end = a->index + a->size > b->index + b->size ? a->index + a->size : b->index + b->size;
  return polyccl_program_chunk(program, a->rank, a->buffer, first, end - first, at, ref);
}
