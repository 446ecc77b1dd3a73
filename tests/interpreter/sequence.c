#include "sequence.h"

#include <stdlib.h>

#include "machine.h"
#include "table.h"

typedef struct wire { /* a connection, in all calls */
  int32_t src, dst, channel;
  ring ring;
} wire;

typedef struct sequence {
  machine call[SEQUENCE_CALLS];
  int calls, ranks;
  sequence_flaw flaw;
  wire *wire;
  size_t wires;
  element **memory;  /* [rank], or [call x ranks + rank] where calls have buffers of their own */
  int *first, *last; /* [rank] calls that it is in: its own first to last - 1 */
  int32_t *order;    /* of ranks */
  bool steady;       /* ranks keep their priority for long */
  int *apart;
} sequence;

/* The faults of a sequence are those of its calls; faults of its own go to the first. */
static bool is_fine(const sequence *s) {
  for (int c = 0; c < s->calls; c++) {
    if (s->call[c].outcome != INTERPRETER_RIGHT) {
      return false;
    }
  }
  return true;
}

static bool no_memory(sequence *s) { return machine_failed(&s->call[0], INTERPRETER_NO_MEMORY, "no memory"); }

/* ---- making ---- */

static ring *find_ring(sequence *s, const polyccl_connection *wanted) {
  for (size_t i = 0; i < s->wires; i++) {
    if (s->wire[i].src == wanted->src && s->wire[i].dst == wanted->dst && s->wire[i].channel == wanted->channel) {
      return &s->wire[i].ring;
    }
  }
  s->wire[s->wires] = (wire){.src = wanted->src, .dst = wanted->dst, .channel = wanted->channel};
  return &s->wire[s->wires++].ring;
}

static bool own_buffers(const sequence *s) { return s->flaw == SEQUENCE_ENTERS_EARLY; }

static bool make_memory(sequence *s, int32_t rank) {
  size_t most = 0;
  for (int c = 0; c < s->calls; c++) {
    size_t elements = machine_elements(&s->call[c], rank);
    most = elements > most ? elements : most;
  }
  for (int c = 0; c < s->calls; c++) {
    element **memory = &s->memory[(own_buffers(s) ? c * s->ranks : 0) + rank];
    if (*memory == NULL) {
      *memory = calloc(most + 1, sizeof **memory);
    }
    if (*memory == NULL) {
      return no_memory(s);
    }
    s->call[c].memory[rank] = *memory;
  }
  return true;
}

static bool make(sequence *s) {
  size_t connections = 0, ranks = (size_t)s->ranks;
  for (int c = 0; c < s->calls; c++) {
    if (!machine_check(&s->call[c]) || !machine_make(&s->call[c])) {
      return false;
    }
    connections += s->call[c].plan->connections;
  }
  s->wire = calloc(connections + 1, sizeof *s->wire);
  s->memory = calloc(ranks * SEQUENCE_CALLS, sizeof *s->memory);
  s->first = calloc(ranks, sizeof *s->first);
  s->last = calloc(ranks, sizeof *s->last);
  s->order = calloc(ranks, sizeof *s->order);
  if (s->wire == NULL || s->memory == NULL || s->first == NULL || s->last == NULL || s->order == NULL) {
    return no_memory(s);
  }
  for (int c = 0; c < s->calls; c++) {
    for (size_t i = 0; i < s->call[c].plan->connections; i++) {
      s->call[c].fifo[i].ring = find_ring(s, &s->call[c].plan->connection[i]);
    }
  }
  for (int32_t r = 0; r < s->ranks; r++) {
    s->order[r] = r;
    if (!make_memory(s, r)) {
      return false;
    }
  }
  return true;
}

static void dispose(sequence *s) {
  for (int c = 0; c < s->calls; c++) {
    machine_dispose(&s->call[c]);
  }
  for (size_t i = 0; i < s->wires; i++) {
    machine_drain(&s->wire[i].ring);
  }
  for (int i = 0; s->memory != NULL && i < s->ranks * SEQUENCE_CALLS; i++) {
    free(s->memory[i]);
  }
  free(s->wire);
  free(s->memory);
  free(s->first);
  free(s->last);
  free(s->order);
}

/* ---- calls ---- */

static void wipe(machine *m, int32_t rank) {
  size_t elements = machine_elements(m, rank);
  for (size_t i = 0; i < elements; i++) {
    m->memory[rank][i] = (element){.number = machine_random(m)};
  }
}

static void enter(sequence *s, int32_t rank) {
  int c = s->last[rank]++;
  machine *m = &s->call[c];
  wipe(m, rank);
  machine_fill(m, rank);
  m->entered[rank] = true;
  for (int32_t r = 0; r < s->ranks; r++) {
    if (c > 0 && s->first[r] < c) {
      ++*s->apart;
      return;
    }
  }
}

static bool has_ended(const sequence *s, const machine *m, int32_t rank) {
  const polyccl_plan_rank *part = &m->plan->rank[rank];
  for (int32_t t = part->tb; t < part->tb + part->tbs; t++) {
    if (!machine_block_ended(m, t)) {
      return false;
    }
  }
  return m->lent[rank] == 0 || s->flaw == SEQUENCE_RETURNS_EARLY;
}

/* Enters or leaves calls where the rank may; true: it did. */
static bool turn(sequence *s, int32_t rank) {
  bool in_call = s->first[rank] < s->last[rank];
  if (in_call && has_ended(s, &s->call[s->first[rank]], rank)) {
    machine *m = &s->call[s->first[rank]++];
    if (machine_check_outputs(m, rank) && !own_buffers(s)) {
      wipe(m, rank);
    }
    return true;
  }
  bool may_enter = !in_call || (s->flaw == SEQUENCE_ENTERS_EARLY && s->last[rank] == s->first[rank] + 1 &&
                                machine_below(&s->call[0], 4) == 0);
  if (may_enter && s->last[rank] < s->calls) {
    enter(s, rank);
    return true;
  }
  return false;
}

/* One thing of the rank: its calls from the last to the first, so that a call that was entered early gets on. */
static bool act(sequence *s, int32_t rank) {
  if (turn(s, rank)) {
    return true;
  }
  for (int c = s->last[rank] - 1; c >= s->first[rank]; c--) {
    machine *m = &s->call[c];
    const polyccl_plan_rank *part = &m->plan->rank[rank];
    int32_t tbs = part->tbs, from = tbs > 0 ? (int32_t)machine_below(m, (uint64_t)tbs) : 0;
    for (int32_t i = 0; i < tbs; i++) {
      bool moved;
      if (!machine_act(m, part->tb + (from + i) % tbs, &moved)) {
        return false;
      }
      if (moved) {
        return true;
      }
    }
  }
  return false;
}

/* Ranks move in the order of the moment: one gets as far ahead as it can before the next moves. */
static bool move(sequence *s) {
  if (machine_below(&s->call[0], s->steady ? 128 : 2) == 0) {
    for (int32_t r = 0; r < s->ranks; r++) {
      int32_t other = (int32_t)machine_below(&s->call[0], (uint64_t)r + 1), rank = s->order[r];
      s->order[r] = s->order[other];
      s->order[other] = rank;
    }
  }
  for (int32_t i = 0; i < s->ranks; i++) {
    if (act(s, s->order[i])) {
      return is_fine(s);
    }
    if (!is_fine(s)) {
      return false;
    }
  }
  return false;
}

static void check_end(sequence *s) {
  for (int32_t r = 0; r < s->ranks; r++) {
    if (s->first[r] < s->calls) {
      machine_failed(&s->call[s->first[r]], INTERPRETER_DEADLOCK, "rank %d stops in call %d", r, s->first[r]);
      return;
    }
  }
  for (size_t i = 0; i < s->wires; i++) {
    if (s->wire[i].ring.first != NULL) {
      machine_failed(&s->call[0], INTERPRETER_BROKEN, "a message from rank %d to rank %d is left over", s->wire[i].src,
                     s->wire[i].dst);
    }
  }
}

interpreter_outcome interpret_sequence(const sequence_call *call, int calls, sequence_flaw flaw, uint64_t seed,
                                       int *apart, char *why, size_t size) {
  sequence s = {.calls = calls, .ranks = call[0].plan->ranks, .flaw = flaw, .apart = apart};
  for (int c = 0; c < calls; c++) {
    uint64_t own = seed * SEQUENCE_CALLS + (uint64_t)c; /* numbers say which call they belong to */
    s.call[c] = (machine){.plan = call[c].plan,
                          .options = {.micro_batches = call[c].micro_batches, .depth = call[c].depth, .seed = own},
                          .random = own * 0x9e3779b97f4a7c15u + 0x1234567u,
                          .puts_early = flaw == SEQUENCE_PUTS_EARLY,
                          .reshapes = flaw == SEQUENCE_RESHAPES,
                          .why = why,
                          .size = size};
  }
  if (make(&s)) {
    s.steady = machine_below(&s.call[0], 2) == 0;
    while (move(&s)) {
    }
    if (is_fine(&s)) {
      check_end(&s);
    }
  }
  interpreter_outcome outcome = INTERPRETER_RIGHT;
  for (int c = 0; c < calls && outcome == INTERPRETER_RIGHT; c++) {
    outcome = s.call[c].outcome;
  }
  dispose(&s);
  return outcome;
}
