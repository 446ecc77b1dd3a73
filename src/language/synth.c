#include "language/synth.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/options.h"

void pccl_synth_free(pccl_synth *schedule) { pccl_vec_free(&schedule->hop); }

/* ---- parameters ---- */

polyccl_result pccl_synth_param(pccl_loader *loader, const char *name, const char *default_value, const char *help,
                                const char **value) {
  const char *given = pccl_loader_given(loader, name);
  bool is_new;
  *value = given != NULL ? given : default_value;
  return pccl_loader_record_param(loader, name, *value, default_value, help, &is_new);
}

polyccl_result pccl_synth_param_int(pccl_loader *loader, const char *name, int default_value, int min, int max,
                                    const char *help, int *value) {
  char text[16];
  const char *given;
  uint64_t number;
  snprintf(text, sizeof text, "%d", default_value);
  PCCL_TRY(pccl_synth_param(loader, name, text, help, &given));
  if (!pccl_parse_number(given, &number) || number < (uint64_t)min || number > (uint64_t)max) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "parameter %s must be a number from %d to %d, not \"%.80s\"", name, min,
                     max, given);
  }
  *value = (int)number;
  return POLYCCL_SUCCESS;
}

/* ---- the builder ---- */

bool pccl_synth_reduces(polyccl_collective collective) {
  return collective == POLYCCL_ALLREDUCE || collective == POLYCCL_REDUCE_SCATTER || collective == POLYCCL_REDUCE;
}

typedef struct builder {
  const pccl_synth *schedule;
  polyccl_program *program;
  polyccl_collective collective;
  pccl_map relayed; /* AllToAll: (root, chunk, rank) -> index in scratch */
  int relay;        /* the scratch buffer */
} builder;

static uint64_t relay_key(const builder *b, const pccl_hop *hop, int32_t rank) {
  uint64_t chunk =
      (uint64_t)hop->root * (uint64_t)b->schedule->ranks * (uint64_t)b->schedule->chunks + (uint64_t)hop->chunk;
  return chunk * (uint64_t)b->schedule->ranks + (uint64_t)rank;
}

static polyccl_result fail_chunk_missing(const builder *b, const pccl_hop *hop, int32_t rank) {
  return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_hop_place(b->schedule, hop),
                      "rank %d does not hold chunk %d of rank %d yet, so it cannot send it to rank %d", rank,
                      hop->chunk, hop->root, hop->dst);
}

/* Finds the rank that wants a chunk of AllToAll, gather or scatter, and the place in its output. */
static void destination(const pccl_synth *s, const pccl_hop *hop, int32_t *rank, int32_t *index) {
  switch (s->collective) {
    case POLYCCL_GATHER:
      *rank = s->root;
      *index = hop->root * s->chunks + hop->chunk;
      break;
    case POLYCCL_SCATTER:
      *rank = hop->chunk / s->chunks;
      *index = hop->chunk % s->chunks;
      break;
    default:
      *rank = hop->chunk / s->chunks;
      *index = hop->root * s->chunks + hop->chunk % s->chunks;
      break;
  }
}

/* Adds one hop of AllToAll, gather or scatter. Chunks that are not at their destination yet wait in scratch. */
static polyccl_result add_exchange(builder *b, const pccl_hop *hop) {
  polyccl_ref ref;
  int buffer = POLYCCL_INPUT, index = hop->chunk;
  if (hop->src != hop->root) {
    uint64_t *at = pccl_map_get(&b->relayed, relay_key(b, hop, hop->src));
    if (at == NULL) {
      return fail_chunk_missing(b, hop, hop->src);
    }
    buffer = b->relay;
    index = (int)*at;
  }
  PCCL_TRY(
      polyccl_program_chunk(b->program, hop->src, buffer, index, hop->size, pccl_hop_place(b->schedule, hop), &ref));
  int32_t end, to;
  destination(b->schedule, hop, &end, &to);
  if (end == hop->dst) {
    return polyccl_program_copy(b->program, &ref, hop->dst, POLYCCL_OUTPUT, to, POLYCCL_NO_HINTS,
                                pccl_hop_place(b->schedule, hop), &ref);
  }
  PCCL_TRY(polyccl_program_copy(b->program, &ref, hop->dst, b->relay, -1, POLYCCL_NO_HINTS,
                                pccl_hop_place(b->schedule, hop), &ref));
  return pccl_map_put(&b->relayed, relay_key(b, hop, hop->dst), (uint64_t)ref.index, NULL) != NULL
             ? POLYCCL_SUCCESS
             : pccl_no_memory("a program");
}

/* Copies the block that a rank has for itself. */
static polyccl_result add_own_block(builder *b, int32_t rank) {
  const pccl_synth *s = b->schedule;
  polyccl_location at = {s->file, 0};
  polyccl_ref ref;
  int32_t from = s->collective == POLYCCL_GATHER ? 0 : rank * s->chunks;
  int32_t to = s->collective == POLYCCL_SCATTER ? 0 : rank * s->chunks;
  PCCL_TRY(polyccl_program_chunk(b->program, rank, POLYCCL_INPUT, from, s->chunks, at, &ref));
  return polyccl_program_copy(b->program, &ref, rank, POLYCCL_OUTPUT, to, POLYCCL_NO_HINTS, at, &ref);
}

static polyccl_result add_exchanges(builder *b) {
  const pccl_synth *s = b->schedule;
  PCCL_TRY(polyccl_program_scratch(b->program, "relay", &b->relay));
  for (int32_t r = 0; r < s->ranks; r++) {
    if (s->collective == POLYCCL_ALLTOALL || r == s->root) {
      PCCL_TRY(add_own_block(b, r));
    }
  }
  for (size_t i = 0; i < s->hop.len; i++) {
    PCCL_TRY(add_exchange(b, &s->hop.data[i]));
  }
  return POLYCCL_SUCCESS;
}

/* Where chunk `chunk` of `root` lies, which is the same on every rank of a program along trees. */
static int32_t tree_index(const builder *b, const pccl_hop *hop) {
  return b->schedule->collective == POLYCCL_BROADCAST ? hop->chunk : hop->root * b->schedule->chunks + hop->chunk;
}

static polyccl_result add_copy(builder *b, const pccl_hop *hop, int buffer) {
  polyccl_ref ref;
  int32_t index = tree_index(b, hop);
  PCCL_TRY(
      polyccl_program_chunk(b->program, hop->src, buffer, index, hop->size, pccl_hop_place(b->schedule, hop), &ref));
  return polyccl_program_copy(b->program, &ref, hop->dst, buffer, index, POLYCCL_NO_HINTS,
                              pccl_hop_place(b->schedule, hop), &ref);
}

/* Adds a hop backwards, which adds the data of `dst` to the data of `src`. */
static polyccl_result add_reduction(builder *b, const pccl_hop *hop) {
  polyccl_ref sum, operand;
  int32_t index = tree_index(b, hop);
  polyccl_location at = pccl_hop_place(b->schedule, hop);
  PCCL_TRY(polyccl_program_chunk(b->program, hop->src, POLYCCL_INPUT, index, hop->size, at, &sum));
  PCCL_TRY(polyccl_program_chunk(b->program, hop->dst, POLYCCL_INPUT, index, hop->size, at, &operand));
  return polyccl_program_reduce(b->program, &sum, &operand, POLYCCL_NO_HINTS, at, &sum);
}

/* Collectives whose chunks go through scratch, out of place. */
static bool is_exchange(polyccl_collective collective) {
  return collective == POLYCCL_ALLTOALL || collective == POLYCCL_GATHER || collective == POLYCCL_SCATTER;
}

static polyccl_result add_all(builder *b) {
  const pccl_synth *s = b->schedule;
  bool reduces = pccl_synth_reduces(b->collective);
  bool copies = b->collective != POLYCCL_REDUCE_SCATTER && b->collective != POLYCCL_REDUCE;
  int buffer = b->collective == POLYCCL_ALLGATHER ? POLYCCL_OUTPUT : POLYCCL_INPUT;
  if (is_exchange(b->collective)) {
    return add_exchanges(b);
  }
  if (pccl_synth_reduces(s->collective)) {
    return pccl_sccl_reduce(s, b->program);
  }
  for (size_t i = s->hop.len; reduces && i-- > 0;) {
    PCCL_TRY(add_reduction(b, &s->hop.data[i]));
  }
  for (size_t i = 0; copies && i < s->hop.len; i++) {
    PCCL_TRY(add_copy(b, &s->hop.data[i], buffer));
  }
  return POLYCCL_SUCCESS;
}

/* ---- collectives ---- */

/* Whether hops for one collective can serve another. Backwards, they reduce. */
static bool can_serve(polyccl_collective from, polyccl_collective to) {
  switch (from) {
    case POLYCCL_ALLGATHER: return to == POLYCCL_ALLGATHER || to == POLYCCL_REDUCE_SCATTER || to == POLYCCL_ALLREDUCE;
    case POLYCCL_BROADCAST: return to == POLYCCL_BROADCAST || to == POLYCCL_REDUCE;
    default: return to == from;
  }
}

static polyccl_result choose_collective(pccl_loader *loader, const pccl_synth *s, polyccl_collective *chosen) {
  const char *name;
  PCCL_TRY(pccl_synth_param(loader, "collective", polyccl_collective_name(s->collective),
                            "what to make of the schedule: backwards, an allgather is a reduce_scatter, both are an "
                            "allreduce; a broadcast is a reduce",
                            &name));
  PCCL_TRY(polyccl_collective_parse(name, chosen));
  if (!can_serve(s->collective, *chosen)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: a schedule for %s cannot be made into %s", s->file,
                     polyccl_collective_name(s->collective), polyccl_collective_name(*chosen));
  }
  return POLYCCL_SUCCESS;
}

static int by_order(const void *a, const void *b) {
  const pccl_hop *x = a, *y = b;
  return x->order != y->order ? (x->order > y->order) - (x->order < y->order)
                              : (x->serial > y->serial) - (x->serial < y->serial);
}

static void sort_hops(pccl_synth *s) {
  for (size_t i = 0; i < s->hop.len; i++) {
    s->hop.data[i].serial = (int32_t)i;
  }
  if (s->hop.len > 0) {
    qsort(s->hop.data, s->hop.len, sizeof *s->hop.data, by_order);
  }
}

static polyccl_result make_program(pccl_loader *loader, pccl_synth *s) {
  polyccl_program_config config = {
      .size = sizeof(polyccl_program_config), .name = loader->name, .ranks = s->ranks, .root = s->root};
  const char *protocol;
  PCCL_TRY(choose_collective(loader, s, &config.collective));
  PCCL_TRY(pccl_synth_param_int(loader, "instances", 1, 1, 1024, "copies of the schedule on parts of the chunks",
                                &config.instances));
  PCCL_TRY(pccl_synth_param(loader, "protocol", "Simple", "Simple, LL or LL128", &protocol));
  PCCL_TRY(polyccl_protocol_parse(protocol, &config.protocol));
  config.inplace = !is_exchange(config.collective);
  bool whole = config.collective == POLYCCL_ALLREDUCE && s->collective != POLYCCL_ALLREDUCE;
  if (s->chunks > POLYCCL_MAX_CHUNKS / s->ranks) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%s: %d chunks on each of %d ranks are more than %d in all", s->file,
                     s->chunks, s->ranks, POLYCCL_MAX_CHUNKS);
  }
  config.chunks = whole ? s->ranks * s->chunks : s->chunks;
  sort_hops(s);
  PCCL_TRY(pccl_accept_program(loader->accept, &config));
  PCCL_TRY(polyccl_program_create(&config, &loader->program));
  builder b = {.schedule = s, .program = loader->program, .collective = config.collective};
  polyccl_result result = add_all(&b);
  pccl_map_free(&b.relayed);
  return result;
}

/* ---- the file ---- */

typedef struct reader {
  pccl_kind kind;
  polyccl_result (*read)(pccl_loader *loader, const char *text, size_t length, pccl_synth *schedule);
} reader;

static const reader readers[] = {
    {PCCL_KIND_SCCL, pccl_sccl_read},
    {PCCL_KIND_TECCL, pccl_teccl_read},
    {PCCL_KIND_FORESTCOLL, pccl_forestcoll_read},
    {PCCL_KIND_JSON, pccl_teccl_read}, /* of no known kind: these say what is missing */
    {PCCL_KIND_XML, pccl_forestcoll_read},
};

static const reader *find_reader(pccl_kind kind) {
  for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
    if (readers[i].kind == kind) {
      return &readers[i];
    }
  }
  return NULL;
}

bool pccl_is_synth(pccl_kind kind) { return find_reader(kind) != NULL; }

polyccl_result pccl_synth_load(pccl_loader *loader, const char *name, pccl_kind kind, const char *text, size_t length) {
  pccl_synth schedule = {.file = name};
  polyccl_result result = find_reader(kind)->read(loader, text, length, &schedule);
  if (result == POLYCCL_SUCCESS) {
    result = make_program(loader, &schedule);
  }
  pccl_synth_free(&schedule);
  return result;
}
