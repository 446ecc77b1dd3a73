/* The operations of an SCCL algorithm that reduces. In SCCL's model an address of a rank holds a set of contributions,
 * and a send unites the sender's set with the receiver's. Here this is a copy if the sender has all that the receiver
 * has, a reduction if the sets have nothing in common, and nothing if the receiver has all that the sender has. In any
 * other case a contribution would count twice, which is an error. */
#include "base/error.h"
#include "base/map.h"
#include "language/synth.h"

enum { MAX_WORK = 1 << 30 }; /* sends x ranks */

typedef struct staged {
  const pccl_hop *hop;
  polyccl_ref ref;
} staged;

typedef struct builder {
  const pccl_synth *schedule;
  polyccl_program *program;
  polyccl_leaf *sent, *there; /* [ranks]: contributions */
  pccl_map sources;           /* rank, chunk -> the hop, counted from 1, that sends it last */
  PCCL_VEC(staged) waiting;   /* arrived in scratch, because the contents of their place are sent in the same step */
  int stage;                  /* that scratch */
} builder;

static polyccl_result ref_at(builder *b, const pccl_hop *hop, int32_t rank, polyccl_ref *ref) {
  return polyccl_program_chunk(b->program, rank, POLYCCL_INPUT, hop->chunk, 1, pccl_hop_place(b->schedule, hop), ref);
}

/* How many of the two sorted lists are in both; `first`: one of them. */
static size_t count_common(const polyccl_leaf *a, size_t as, const polyccl_leaf *b, size_t bs, int32_t *first) {
  size_t both = 0;
  for (size_t i = 0, k = 0; i < as && k < bs;) {
    if (a[i].rank == b[k].rank) {
      *first = a[i].rank;
      both++;
      i++;
      k++;
    } else if (a[i].rank < b[k].rank) {
      i++;
    } else {
      k++;
    }
  }
  return both;
}

typedef enum union_kind { UNION_NOTHING, UNION_COPY, UNION_REDUCE } union_kind;

/* Chooses the operation that makes the receiver's place the union of both. */
static polyccl_result choose_union(builder *b, const pccl_hop *hop, const polyccl_ref *operand, const polyccl_ref *own,
                                   union_kind *kind) {
  size_t ranks = (size_t)b->schedule->ranks, sent, there;
  int32_t twice = -1;
  PCCL_TRY(polyccl_program_origins(b->program, operand, 0, pccl_hop_place(b->schedule, hop), b->sent, ranks, &sent));
  PCCL_TRY(polyccl_program_origins(b->program, own, 0, pccl_hop_place(b->schedule, hop), b->there, ranks, &there));
  size_t both = count_common(b->sent, sent, b->there, there, &twice);
  if (both > 0 && both < sent && both < there) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_hop_place(b->schedule, hop),
                        "step %d: chunk %d from rank %d to rank %d: both have the contribution of rank %d, which would "
                        "count twice",
                        hop->order + 1, hop->chunk, hop->src, hop->dst, twice);
  }
  *kind = both == sent ? UNION_NOTHING : both == there ? UNION_COPY : UNION_REDUCE;
  return POLYCCL_SUCCESS;
}

static polyccl_result apply_union(builder *b, const pccl_hop *hop, const polyccl_ref *operand) {
  polyccl_ref own, made;
  union_kind kind = UNION_NOTHING;
  PCCL_TRY(ref_at(b, hop, hop->dst, &own));
  PCCL_TRY(choose_union(b, hop, operand, &own, &kind));
  switch (kind) {
    case UNION_COPY:
      return polyccl_program_copy(b->program, operand, hop->dst, POLYCCL_INPUT, hop->chunk, POLYCCL_NO_HINTS,
                                  pccl_hop_place(b->schedule, hop), &made);
    case UNION_REDUCE:
      return polyccl_program_reduce(b->program, &own, operand, POLYCCL_NO_HINTS, pccl_hop_place(b->schedule, hop),
                                    &made);
    default: return POLYCCL_SUCCESS;
  }
}

static uint64_t source_key(const pccl_hop *hop, int32_t rank) { return (uint64_t)rank << 32 | (uint32_t)hop->chunk; }

/* Directly, or through scratch where the step still sends what is in the place. */
static polyccl_result add_hop(builder *b, const pccl_hop *hop, size_t first) {
  polyccl_ref operand, own;
  union_kind kind = UNION_NOTHING;
  const uint64_t *sends = pccl_map_get(&b->sources, source_key(hop, hop->dst));
  PCCL_TRY(ref_at(b, hop, hop->src, &operand));
  if (sends == NULL || *sends <= first) {
    return apply_union(b, hop, &operand);
  }
  PCCL_TRY(ref_at(b, hop, hop->dst, &own));
  PCCL_TRY(choose_union(b, hop, &operand, &own, &kind));
  if (kind == UNION_NOTHING) {
    return POLYCCL_SUCCESS;
  }
  staged arrival = {.hop = hop};
  PCCL_TRY(polyccl_program_copy(b->program, &operand, hop->dst, b->stage, -1, POLYCCL_NO_HINTS,
                                pccl_hop_place(b->schedule, hop), &arrival.ref));
  return pccl_vec_push(&b->waiting, arrival) ? POLYCCL_SUCCESS : pccl_no_memory("a program");
}

/* Hops first .. last - 1 are those of one step. */
static polyccl_result add_step(builder *b, size_t first, size_t last) {
  const pccl_hop *hop = b->schedule->hop.data;
  for (size_t i = first; i < last; i++) {
    uint64_t *sends = pccl_map_put(&b->sources, source_key(&hop[i], hop[i].src), 0, NULL);
    if (sends == NULL) {
      return pccl_no_memory("a program");
    }
    *sends = i + 1;
  }
  b->waiting.len = 0;
  for (size_t i = first; i < last; i++) {
    PCCL_TRY(add_hop(b, &hop[i], first));
  }
  for (size_t i = 0; i < b->waiting.len; i++) {
    PCCL_TRY(apply_union(b, b->waiting.data[i].hop, &b->waiting.data[i].ref));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result add_steps(builder *b) {
  const pccl_synth *s = b->schedule;
  if (s->hop.len > MAX_WORK / (size_t)s->ranks) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%s: %zu sends on %d ranks are too many", s->file, s->hop.len, s->ranks);
  }
  PCCL_TRY(polyccl_program_scratch(b->program, "stage", &b->stage));
  for (size_t first = 0, last = 0; first < s->hop.len; first = last) {
    while (last < s->hop.len && s->hop.data[last].order == s->hop.data[first].order) {
      last++;
    }
    PCCL_TRY(add_step(b, first, last));
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_sccl_reduce(const pccl_synth *schedule, polyccl_program *program) {
  builder b = {.schedule = schedule, .program = program};
  b.sent = pccl_array((size_t)schedule->ranks, sizeof *b.sent);
  b.there = pccl_array((size_t)schedule->ranks, sizeof *b.there);
  polyccl_result result = b.sent != NULL && b.there != NULL ? add_steps(&b) : pccl_no_memory("a program");
  free(b.sent);
  free(b.there);
  pccl_map_free(&b.sources);
  pccl_vec_free(&b.waiting);
  return result;
}
