/* Reads SCCL's algorithms (the JSON of microsoft/sccl, msccl-tools and TACCL): "steps" have "sends" [address, from, to,
 * ...]; "input_map" and "output_map" say for each rank which addresses its buffers hold, in ascending order. The sends
 * of a step start from the contents before the step. sccl_reduce.c makes the operations of collectives that reduce. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/log.h"
#include "base/map.h"
#include "language/synth.h"
#include "language/synth_json.h"

/* What the buffers of SCCL's collectives hold: one block, or one for each rank (`many`); on all ranks, or on the root
 * alone (`root`). */
typedef struct shape {
  const char *name;
  polyccl_collective collective;
  bool many_in, root_in, many_out, root_out;
} shape;

static const shape shapes[] = {
    {"Allgather", POLYCCL_ALLGATHER, false, false, true, false},
    {"Allreduce", POLYCCL_ALLREDUCE, false, false, false, false},
    {"ReduceScatter", POLYCCL_REDUCE_SCATTER, true, false, false, false},
    {"Reduce_Scatter", POLYCCL_REDUCE_SCATTER, true, false, false, false},
    {"Alltoall", POLYCCL_ALLTOALL, true, false, true, false},
    {"Broadcast", POLYCCL_BROADCAST, false, true, false, false},
    {"Reduce", POLYCCL_REDUCE, false, false, false, true},
    {"Gather", POLYCCL_GATHER, false, false, true, true},
    {"Scatter", POLYCCL_SCATTER, true, true, false, false},
};

/* Addresses of one buffer on all ranks. */
typedef struct address_map {
  const char *name;
  PCCL_VEC(int64_t) list; /* rank << 32 | address, sorted */
  size_t *first;          /* [ranks + 1]: where a rank's begin in it */
} address_map;

typedef struct reader {
  pccl_synth *schedule;
  pccl_line_cursor cursor;
  int32_t line; /* of the step being read; 0: none */
  const shape *shape;
  address_map input, output;
  pccl_map home; /* address -> rank << 32 | index in its input; where all ranks have it, of rank 0 */
  pccl_map held; /* rank << 32 | address -> the step before which the rank has it */
  size_t redundant;
} reader;

static polyccl_location current_place(const reader *r) { return (polyccl_location){r->schedule->file, r->line}; }

static uint64_t key_of(int32_t rank, int32_t address) { return (uint64_t)rank << 32 | (uint32_t)address; }

/* A whole number from 0 to max. */
static bool read_natural(const json_t *value, int64_t max, int32_t *number) {
  json_int_t given = json_is_integer(value) ? json_integer_value(value) : -1;
  if (given < 0 || given > max) {
    return false;
  }
  *number = (int32_t)given;
  return true;
}

/* ---- collective ---- */

/* SCCL puts parameters behind the name: "Broadcast(n=4,root=1),chunks=2". */
static const shape *find_shape(const char *name) {
  size_t length = name != NULL ? strcspn(name, "(,") : 0;
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    if (strlen(shapes[i].name) == length && strncasecmp(shapes[i].name, name, length) == 0) {
      return &shapes[i];
    }
  }
  return NULL;
}

static polyccl_result read_collective(reader *r, const json_t *root) {
  const json_t *collective = json_object_get(root, "collective");
  const char *name = json_string_value(json_object_get(collective, "name"));
  const char *runtime_name = json_string_value(json_object_get(collective, "runtime_name"));
  const json_t *links = json_object_get(json_object_get(root, "topology"), "links");
  r->shape = find_shape(name);
  r->shape = r->shape != NULL ? r->shape : find_shape(runtime_name);
  if (r->shape == NULL) {
    return pccl_fail(
        POLYCCL_ERROR_INVALID,
        "%s: unknown collective \"%.80s\" (known: Allgather, Allreduce, ReduceScatter, Alltoall, Broadcast, "
        "Reduce, Gather, Scatter)",
        r->schedule->file, name != NULL ? name : "");
  }
  r->schedule->collective = r->shape->collective;
  int32_t ranks =
      json_is_array(links) && json_array_size(links) <= POLYCCL_MAX_RANKS ? (int32_t)json_array_size(links) : 0;
  const json_t *nodes = json_object_get(collective, "nodes");
  if ((nodes != NULL && !read_natural(nodes, POLYCCL_MAX_RANKS, &ranks)) || ranks < 1) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: the collective's \"nodes\" must be a number from 1 to %d",
                     r->schedule->file, POLYCCL_MAX_RANKS);
  }
  r->schedule->ranks = ranks;
  return POLYCCL_SUCCESS;
}

/* ---- buffers ---- */

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static size_t count_of(const address_map *map, int32_t rank) { return map->first[rank + 1] - map->first[rank]; }

static int32_t address_at(const address_map *map, size_t i) { return (int32_t)(map->list.data[i] & UINT32_MAX); }

/* A rank's number as a key: digits alone. */
static bool parse_rank(const char *text, int32_t ranks, int32_t *rank) {
  int32_t number = 0;
  size_t digits = strspn(text, "0123456789");
  for (size_t i = 0; i < digits && number < ranks; i++) {
    number = number * 10 + (text[i] - '0');
  }
  *rank = number;
  return digits > 0 && text[digits] == '\0' && number < ranks;
}

static polyccl_result read_addresses(reader *r, address_map *map, int32_t rank, const json_t *list) {
  size_t i;
  json_t *value;
  json_array_foreach(list, i, value) {
    int32_t address;
    if (!read_natural(value, INT32_MAX - 1, &address)) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, current_place(r), "%s of rank %d: an address is a number from 0 to %d",
                          map->name, rank, INT32_MAX - 1);
    }
    if (!pccl_vec_push(&map->list, (int64_t)key_of(rank, address))) {
      return pccl_no_memory("an algorithm of SCCL");
    }
  }
  return POLYCCL_SUCCESS;
}

/* Sorts what was read and finds where each rank's begin. */
static polyccl_result index_map(reader *r, address_map *map) {
  int32_t ranks = r->schedule->ranks, rank = 0;
  map->first = pccl_zeroed((size_t)ranks + 1, sizeof *map->first);
  if (map->first == NULL) {
    return pccl_no_memory("an algorithm of SCCL");
  }
  if (map->list.len > 0) {
    qsort(map->list.data, map->list.len, sizeof *map->list.data, by_value);
  }
  for (size_t i = 0; i < map->list.len; i++) {
    if (i > 0 && map->list.data[i] == map->list.data[i - 1]) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, current_place(r), "%s of rank %d has address %d twice", map->name,
                          (int)(map->list.data[i] >> 32), address_at(map, i));
    }
    while (rank < map->list.data[i] >> 32) {
      map->first[++rank] = i;
    }
  }
  while (rank < ranks) {
    map->first[++rank] = map->list.len;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result read_map(reader *r, const json_t *root, const char *name, address_map *map) {
  json_t *object = json_object_get(root, name), *list;
  const char *key;
  map->name = name;
  if (!json_is_object(object)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: \"%s\" is missing; it says what is in a rank's buffer",
                     r->schedule->file, name);
  }
  json_object_foreach(object, key, list) {
    int32_t rank;
    if (!parse_rank(key, r->schedule->ranks, &rank) || !json_is_array(list)) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, current_place(r), "%s: \"%.80s\" must be a rank (0 to %d) with a list",
                          name, key, r->schedule->ranks - 1);
    }
    PCCL_TRY(read_addresses(r, map, rank, list));
  }
  return index_map(r, map);
}

/* ---- the shape of the collective ---- */

static int32_t first_rank(const address_map *map) { return map->list.len > 0 ? (int32_t)(map->list.data[0] >> 32) : 0; }

/* Every rank that must have something has `wanted` addresses, the others none. */
static polyccl_result check_counts(const reader *r, const address_map *map, bool root_only, size_t wanted) {
  for (int32_t rank = 0; rank < r->schedule->ranks; rank++) {
    size_t expected = !root_only || rank == r->schedule->root ? wanted : 0;
    if (count_of(map, rank) != expected) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, current_place(r),
                          "%s has %zu addresses on rank %d; %s on %d ranks with %d chunks a block needs %zu there",
                          map->name, count_of(map, rank), rank, r->shape->name, r->schedule->ranks, r->schedule->chunks,
                          expected);
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result set_shape(reader *r) {
  pccl_synth *s = r->schedule;
  const shape *wanted = r->shape;
  size_t ranks = (size_t)s->ranks;
  s->root = wanted->root_in ? first_rank(&r->input) : wanted->root_out ? first_rank(&r->output) : 0;
  size_t blocks = wanted->many_in ? ranks : 1, inputs = count_of(&r->input, s->root);
  if (inputs == 0 || inputs % blocks != 0 || inputs > POLYCCL_MAX_CHUNKS) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, current_place(r),
                        "input_map has %zu addresses on rank %d, %s on %d ranks needs a multiple of %zu, at most %d",
                        inputs, s->root, wanted->name, s->ranks, blocks, POLYCCL_MAX_CHUNKS);
  }
  s->chunks = (int32_t)(inputs / blocks);
  PCCL_TRY(check_counts(r, &r->input, wanted->root_in, inputs));
  return check_counts(r, &r->output, wanted->root_out, (size_t)s->chunks * (wanted->many_out ? ranks : 1));
}

/* Where each address is at the start. */
static polyccl_result find_homes(reader *r) {
  bool reduces = pccl_synth_reduces(r->shape->collective);
  for (int32_t rank = 0; rank < r->schedule->ranks; rank++) {
    for (size_t i = r->input.first[rank]; i < r->input.first[rank + 1]; i++) {
      int32_t address = address_at(&r->input, i), index = (int32_t)(i - r->input.first[rank]);
      bool is_new;
      uint64_t *home = pccl_map_put(&r->home, (uint32_t)address, key_of(rank, index), &is_new);
      if (home == NULL || pccl_map_put(&r->held, key_of(rank, address), 0, NULL) == NULL) {
        return pccl_no_memory("an algorithm of SCCL");
      }
      if (reduces ? is_new != (rank == 0) || (int32_t)*home != index : !is_new) {
        return pccl_fail_at(
            POLYCCL_ERROR_INVALID, current_place(r),
            reduces ? "address %d of rank %d: all ranks must have the same addresses in %s"
                    : "address %d is in the input of rank %d and of another rank, but %s has each address on one rank",
            address, rank, r->shape->name);
      }
    }
  }
  return POLYCCL_SUCCESS;
}

/* The place in the output of rank `rank` that the collective gives to what is at (source, index) of the input; -1:
 * none. */
static int64_t place_in_output(const reader *r, int32_t rank, int32_t source, int32_t index) {
  const pccl_synth *s = r->schedule;
  int32_t block = index / s->chunks, within = index % s->chunks;
  switch (s->collective) {
    case POLYCCL_ALLGATHER:
    case POLYCCL_GATHER: return (int64_t)source * s->chunks + index;
    case POLYCCL_ALLTOALL: return block == rank ? (int64_t)source * s->chunks + within : -1;
    case POLYCCL_REDUCE_SCATTER:
    case POLYCCL_SCATTER: return block == rank ? within : -1;
    default: return index;
  }
}

static polyccl_result check_outputs(const reader *r) {
  for (int32_t rank = 0; rank < r->schedule->ranks; rank++) {
    for (size_t i = r->output.first[rank]; i < r->output.first[rank + 1]; i++) {
      int32_t address = address_at(&r->output, i), place = (int32_t)(i - r->output.first[rank]);
      const uint64_t *home = pccl_map_get(&r->home, (uint32_t)address);
      if (home == NULL) {
        return pccl_fail_at(POLYCCL_ERROR_INVALID, current_place(r), "address %d of rank %d's output is in no input",
                            address, rank);
      }
      int32_t source = (int32_t)(*home >> 32), index = (int32_t)*home;
      if (place_in_output(r, rank, source, index) != place) {
        return pccl_fail_at(
            POLYCCL_ERROR_INVALID, current_place(r),
            "address %d is chunk %d of rank %d's input, so in %s it is not chunk %d of rank %d's output", address,
            index, source, r->shape->name, place, rank);
      }
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- steps ---- */

static polyccl_result wrong_send(const reader *r, size_t step, size_t send, const char *what) {
  return pccl_fail_at(POLYCCL_ERROR_INVALID, current_place(r), "step %zu, send %zu: %s", step + 1, send + 1, what);
}

/* Adds one send of step `step`. Leaves out a send of what the receiver already has, which would count twice in the
 * collective that runs backwards. */
static polyccl_result add_send(reader *r, size_t step, size_t send, int32_t address, int32_t src, int32_t dst) {
  const uint64_t *home = pccl_map_get(&r->home, (uint32_t)address);
  const uint64_t *since = pccl_map_get(&r->held, key_of(src, address));
  char what[96];
  if (home == NULL || since == NULL || *since > step) {
    snprintf(what, sizeof what, "rank %d does not have address %d before this step", src, address);
    return wrong_send(r, step, send, what);
  }
  bool is_new;
  if (pccl_map_put(&r->held, key_of(dst, address), step + 1, &is_new) == NULL) {
    return pccl_no_memory("an algorithm of SCCL");
  }
  if (!is_new && !pccl_synth_reduces(r->shape->collective)) {
    r->redundant++;
    return POLYCCL_SUCCESS;
  }
  home = pccl_map_get(&r->home, (uint32_t)address);
  pccl_hop hop = {.root = (int32_t)(*home >> 32),
                  .chunk = (int32_t)*home,
                  .size = 1,
                  .src = src,
                  .dst = dst,
                  .order = (int32_t)step,
                  .line = r->line};
  return pccl_vec_push(&r->schedule->hop, hop) ? POLYCCL_SUCCESS : pccl_no_memory("an algorithm of SCCL");
}

static polyccl_result read_send(reader *r, size_t step, size_t send, const json_t *value) {
  int32_t address, src, dst, last = r->schedule->ranks - 1;
  if (json_array_size(value) < 3 || !read_natural(json_array_get(value, 0), INT32_MAX - 1, &address) ||
      !read_natural(json_array_get(value, 1), INT32_MAX - 1, &src) ||
      !read_natural(json_array_get(value, 2), INT32_MAX - 1, &dst)) {
    return wrong_send(r, step, send, "expected [address, from, to]");
  }
  if (src > last || dst > last || src == dst) {
    char what[96];
    snprintf(what, sizeof what, "a send from rank %d to rank %d needs two different ranks from 0 to %d", src, dst,
             last);
    return wrong_send(r, step, send, what);
  }
  return add_send(r, step, send, address, src, dst);
}

static polyccl_result read_steps(reader *r, const json_t *root) {
  const json_t *steps = json_object_get(root, "steps");
  size_t i, k;
  json_t *step, *send;
  if (!json_is_array(steps)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: the list \"steps\" is missing", r->schedule->file);
  }
  json_array_foreach(steps, i, step) {
    const json_t *sends = json_object_get(step, "sends");
    pccl_line_of(&r->cursor, "\"sends\"");
    r->line = r->cursor.line;
    if (!json_is_array(sends)) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, current_place(r), "step %zu has no list of \"sends\"", i + 1);
    }
    json_array_foreach(sends, k, send) { PCCL_TRY(read_send(r, i, k, send)); }
  }
  if (r->redundant > 0) {
    PCCL_INFO("%s: %zu sends bring what the receiver has already; they are left out", r->schedule->file, r->redundant);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result read_root(reader *r, const json_t *root) {
  PCCL_TRY(read_collective(r, root));
  PCCL_TRY(read_map(r, root, "input_map", &r->input));
  PCCL_TRY(read_map(r, root, "output_map", &r->output));
  PCCL_TRY(set_shape(r));
  PCCL_TRY(find_homes(r));
  PCCL_TRY(check_outputs(r));
  r->line = 1;
  return read_steps(r, root);
}

polyccl_result pccl_sccl_read(pccl_loader *loader, const char *text, size_t length, pccl_synth *schedule) {
  (void)loader; /* no parameters */
  reader r = {.schedule = schedule, .cursor = {text, text + length, 1}};
  json_t *root;
  PCCL_TRY(pccl_synth_parse_json(schedule->file, text, length, &root));
  polyccl_result result = read_root(&r, root);
  json_decref(root);
  pccl_vec_free(&r.input.list);
  pccl_vec_free(&r.output.list);
  free(r.input.first);
  free(r.output.first);
  pccl_map_free(&r.home);
  pccl_map_free(&r.held);
  return result;
}
