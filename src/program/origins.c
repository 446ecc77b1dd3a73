/* What chunks hold while the program is being written, for authors who ask. The operations are followed symbolically
 * as far as the last question, so that a program that never asks pays nothing and one that asks often pays once. */
#include <stdlib.h>

#include "base/error.h"
#include "program/difference.h"
#include "program/program.h"
#include "program/value.h"

typedef struct pccl_contents {
  pccl_values values;
  pccl_map held; /* slot -> value */
  size_t done;   /* operations followed */
} pccl_contents;

void pccl_contents_free(pccl_contents *contents) {
  if (contents != NULL) {
    pccl_values_free(&contents->values);
    pccl_map_free(&contents->held);
    free(contents);
  }
}

/* A number for each chunk; user memory by cell. */
static uint64_t number_chunk(const polyccl_program *program, int rank, int buffer, int index) {
  int place = buffer;
  if (buffer < POLYCCL_SCRATCH) {
    place = 0;
    index = pccl_collective_cell(&program->spec, rank, buffer == POLYCCL_OUTPUT, index);
  }
  return ((uint64_t)place * (uint64_t)program->config.ranks + (uint64_t)rank) << 22 | (uint64_t)index;
}

/* The value in the slot; a chunk of user memory that no operation wrote holds its own input. -1: no memory. */
static int32_t find_value(polyccl_program *program, pccl_place place) {
  pccl_contents *contents = program->contents;
  uint64_t slot = number_chunk(program, place.rank, place.buffer, place.index);
  uint64_t *found = pccl_map_get(&contents->held, slot);
  if (found != NULL) {
    return (int32_t)*found;
  }
  int input = place.index;
  if (place.buffer == POLYCCL_OUTPUT) { /* in place, since it holds something */
    input = pccl_collective_cell(&program->spec, place.rank, true, place.index) -
            pccl_collective_cell(&program->spec, place.rank, false, 0);
  }
  int32_t value = place.rank * program->input + input;
  if (pccl_map_put(&contents->held, slot, (uint64_t)value, NULL) == NULL) {
    return -1;
  }
  return value;
}

static bool follow_operation(polyccl_program *program, const pccl_operation *operation) {
  pccl_contents *contents = program->contents;
  for (int i = 0; i < operation->size; i++) {
    pccl_place src = operation->src, dst = operation->dst;
    src.index += i;
    dst.index += i;
    int32_t value = find_value(program, src);
    if (value >= 0 && operation->kind == PCCL_REDUCE) {
      int32_t before = find_value(program, dst);
      value = before >= 0 ? pccl_value_add(&contents->values, before, value) : -1;
    }
    uint64_t *slot = value < 0 ? NULL
                               : pccl_map_put(&contents->held, number_chunk(program, dst.rank, dst.buffer, dst.index),
                                              (uint64_t)value, NULL);
    if (slot == NULL) {
      return false;
    }
    *slot = (uint64_t)value;
  }
  return true;
}

static polyccl_result find_origin_value(polyccl_program *program, const polyccl_ref *ref, int index,
                                        polyccl_location at, int32_t *value) {
  PCCL_TRY(pccl_program_check_ref(program, ref, at));
  if (index < 0 || index >= ref->size) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "chunk %d of a reference to %d chunk%s is out of range", index,
                        ref->size, ref->size == 1 ? "" : "s");
  }
  if ((uint64_t)program->config.ranks * (uint64_t)program->input > INT32_MAX / 2) {
    return pccl_fail_at(POLYCCL_ERROR_LIMIT, at, "%d ranks with %d input chunks each are too many to ask for origins",
                        program->config.ranks, program->input);
  }
  if (program->contents == NULL && (program->contents = pccl_zeroed(1, sizeof *program->contents)) != NULL) {
    program->contents->values = (pccl_values){
        .leaves = program->config.ranks * program->input, .input = program->input, .chunks = program->config.chunks};
  }
  bool ok = program->contents != NULL;
  for (; ok && program->contents->done < program->operations.len; program->contents->done++) {
    ok = follow_operation(program, &program->operations.data[program->contents->done]);
    if (!ok) {
      break;
    }
  }
  *value = ok ? find_value(program, (pccl_place){ref->rank, ref->buffer, ref->index + index}) : -1;
  return *value >= 0 ? POLYCCL_SUCCESS : pccl_no_memory("the origins of a chunk");
}

polyccl_result pccl_program_count_origins(polyccl_program *program, const polyccl_ref *ref, int index,
                                          polyccl_location at, uint32_t *count) {
  int32_t value;
  PCCL_TRY(find_origin_value(program, ref, index, at, &value));
  *count = pccl_value_leaves(&program->contents->values, value);
  return POLYCCL_SUCCESS;
}

static polyccl_result find_origins(polyccl_program *program, const polyccl_ref *ref, int index, polyccl_location at,
                                   pccl_leaves *leaves) {
  int32_t value;
  PCCL_TRY(find_origin_value(program, ref, index, at, &value));
  polyccl_result result = pccl_value_list(&program->contents->values, value, leaves);
  return result == POLYCCL_ERROR_LIMIT && at.file != NULL ? pccl_prefix(result, "%s:%d: ", at.file, at.line) : result;
}

static void copy_out_leaves(const polyccl_leaf *from, size_t length, polyccl_leaf *to, size_t capacity, size_t *count) {
  for (size_t i = 0; i < length && i < capacity; i++) {
    to[i] = from[i];
  }
  *count = length;
}

polyccl_result polyccl_program_origins(polyccl_program *program, const polyccl_ref *ref, int index, polyccl_location at,
                                       polyccl_leaf *leaves, size_t capacity, size_t *count) {
  pccl_leaves found = {0};
  PCCL_TRY(find_origins(program, ref, index, at, &found));
  copy_out_leaves(found.data, found.len, leaves, capacity, count);
  pccl_vec_free(&found);
  return POLYCCL_SUCCESS;
}

/* ---- destinations ---- */

/* Output chunk `chunk` of every rank. */
static bool add_all_ranks(const polyccl_program *program, int chunk, pccl_leaves *places) {
  bool ok = true;
  for (int rank = 0; ok && rank < program->config.ranks; rank++) {
    ok = pccl_vec_push(places, (polyccl_leaf){rank, chunk});
  }
  return ok;
}

/* Output chunks whose declaration names the leaf. */
static bool find_declared_places(const polyccl_program *program, polyccl_leaf leaf, pccl_leaves *places) {
  bool ok = true;
  for (int rank = 0; ok && rank < program->config.ranks; rank++) {
    for (int chunk = 0; ok && chunk < program->output; chunk++) {
      uint64_t *found = pccl_map_get(&program->posts, (uint64_t)rank * (uint64_t)program->output + (uint64_t)chunk);
      pccl_post_list list = found != NULL ? program->post_lists.data[*found] : (pccl_post_list){0, 0};
      for (int i = 0; ok && i < list.leaves; i++) {
        polyccl_leaf wanted = program->post_leaves.data[list.leaf + i];
        if (wanted.rank == leaf.rank && wanted.chunk == leaf.chunk) {
          ok = pccl_vec_push(places, (polyccl_leaf){rank, chunk});
          break;
        }
      }
    }
  }
  return ok;
}

/* The inverse of pccl_collective_post(): the output chunks that want the leaf. */
static bool find_leaf_places(const polyccl_program *program, polyccl_leaf leaf, pccl_leaves *places) {
  const polyccl_program_config *config = &program->config;
  int block = leaf.chunk / config->chunks, inner = leaf.chunk % config->chunks;
  int gathered = leaf.rank * config->chunks + inner;
  switch (config->collective) {
    case POLYCCL_ALLREDUCE: return add_all_ranks(program, leaf.chunk, places);
    case POLYCCL_BROADCAST: return leaf.rank != config->root || add_all_ranks(program, leaf.chunk, places);
    case POLYCCL_ALLGATHER: return add_all_ranks(program, gathered, places);
    case POLYCCL_REDUCE: return pccl_vec_push(places, (polyccl_leaf){config->root, leaf.chunk});
    case POLYCCL_GATHER: return pccl_vec_push(places, (polyccl_leaf){config->root, gathered});
    case POLYCCL_REDUCE_SCATTER: return pccl_vec_push(places, (polyccl_leaf){block, inner});
    case POLYCCL_ALLTOALL: return pccl_vec_push(places, (polyccl_leaf){block, gathered});
    case POLYCCL_SCATTER: return leaf.rank != config->root || pccl_vec_push(places, (polyccl_leaf){block, inner});
    case POLYCCL_SENDRECV:
      return leaf.rank != config->root || pccl_vec_push(places, (polyccl_leaf){config->peer, leaf.chunk});
    case POLYCCL_CUSTOM: return find_declared_places(program, leaf, places);
    case POLYCCL_COLLECTIVE_COUNT: break;
  }
  return true;
}

static bool equal_leaves(polyccl_leaf a, polyccl_leaf b) { return a.rank == b.rank && a.chunk == b.chunk; }

static bool same_leaves(const pccl_leaves *a, const pccl_leaves *b) {
  bool equal = a->len == b->len;
  for (size_t i = 0; equal && i < a->len; i++) {
    equal = equal_leaves(a->data[i], b->data[i]);
  }
  return equal;
}

polyccl_result polyccl_program_destinations(polyccl_program *program, const polyccl_ref *ref, int index,
                                            polyccl_location at, polyccl_leaf *places, size_t capacity, size_t *count) {
  pccl_leaves origins = {0}, first = {0};
  PCCL_TRY(find_origins(program, ref, index, at, &origins));
  bool ok = find_leaf_places(program, origins.data[0], &first), one_place = true;
  for (size_t i = 1; ok && one_place && i < origins.len; i++) {
    if (equal_leaves(origins.data[i], origins.data[i - 1])) {
      continue; /* sorted: the same leaf again */
    }
    pccl_leaves other = {0};
    ok = find_leaf_places(program, origins.data[i], &other);
    one_place = same_leaves(&first, &other);
    pccl_vec_free(&other);
  }
  copy_out_leaves(first.data, ok && one_place ? first.len : 0, places, capacity, count);
  pccl_vec_free(&origins);
  pccl_vec_free(&first);
  return ok ? POLYCCL_SUCCESS : pccl_no_memory("the destinations of a chunk");
}
