#include "interpreter.h"

#include <stdlib.h>

#include "machine.h"
#include "table.h"

/* A call alone: all ranks enter it at once. */
typedef struct single {
  machine m;
  ring *ring; /* [connections] */
  int32_t *priority;
  enum { ANY_ORDER, BY_PRIORITY, BY_FIXED_PRIORITY, MANNERS } manner;
} single;

static bool make(single *s) {
  machine *m = &s->m;
  const polyccl_plan *p = m->plan;
  s->ring = calloc(p->connections + 1, sizeof *s->ring);
  s->priority = calloc(p->tbs + 1, sizeof *s->priority);
  if (s->ring == NULL || s->priority == NULL) {
    return machine_failed(m, INTERPRETER_NO_MEMORY, "no memory");
  }
  if (!machine_make(m)) {
    return false;
  }
  for (size_t c = 0; c < p->connections; c++) {
    m->fifo[c].ring = &s->ring[c];
  }
  for (int32_t r = 0; r < p->ranks; r++) {
    m->memory[r] = calloc(machine_elements(m, r) + 1, sizeof(element));
    if (m->memory[r] == NULL) {
      return machine_failed(m, INTERPRETER_NO_MEMORY, "no memory");
    }
    machine_fill(m, r);
    m->entered[r] = true;
  }
  return true;
}

/* Extreme orders show more than mild ones: with fixed priorities the last thread block moves only when no other can. */
static void shuffle_priorities(single *s) {
  for (size_t t = 0; t < s->m.plan->tbs; t++) {
    size_t other = machine_below(&s->m, t + 1);
    s->priority[t] = s->priority[other];
    s->priority[other] = (int32_t)t;
  }
}

/* Tries thread blocks in the order of the moment until one moves; false: none does, or something failed. */
static bool move(single *s) {
  machine *m = &s->m;
  size_t tbs = m->plan->tbs, first = s->manner == ANY_ORDER ? machine_below(m, tbs) : 0;
  if (s->manner == BY_PRIORITY && machine_below(m, 64) == 0) {
    shuffle_priorities(s);
  }
  for (size_t i = 0; i < tbs; i++) {
    bool moved;
    if (!machine_act(m, s->priority[(first + i) % tbs], &moved)) {
      return false;
    }
    if (moved) {
      if (s->manner == ANY_ORDER && machine_below(m, 8) == 0) {
        shuffle_priorities(s);
      }
      return true;
    }
  }
  return false;
}

static bool check_same_bits(machine *m) {
  const polyccl_plan *p = m->plan;
  for (int32_t r = 1; p->collective == POLYCCL_ALLREDUCE && r < p->ranks; r++) {
    for (int32_t k = 0; k < table_outputs(p); k++) {
      if (machine_element(m, r, POLYCCL_BUF_OUTPUT, k, 0)->number !=
          machine_element(m, 0, POLYCCL_BUF_OUTPUT, k, 0)->number) {
        return machine_failed(m, INTERPRETER_WRONG, "rank %d output[%d] differs from rank 0's", r, k);
      }
    }
  }
  return true;
}

static bool check_end(single *s) {
  machine *m = &s->m;
  const polyccl_plan *p = m->plan;
  for (size_t t = 0; t < p->tbs; t++) {
    if (!machine_block_ended(m, (int32_t)t)) {
      return machine_failed(m, INTERPRETER_DEADLOCK, "rank %d tb %d stopped after %lld steps", p->tb[t].rank,
                            (int)t - p->rank[p->tb[t].rank].tb, (long long)m->worker[t].ended);
    }
  }
  for (size_t c = 0; c < p->connections; c++) {
    if (s->ring[c].first != NULL) {
      return machine_failed(m, INTERPRETER_BROKEN, "a message from rank %d to rank %d is left over",
                            p->connection[c].src, p->connection[c].dst);
    }
  }
  if (m->options.same_bits) {
    return check_same_bits(m);
  }
  for (int32_t r = 0; r < p->ranks; r++) {
    if (!machine_check_outputs(m, r)) {
      return false;
    }
  }
  return true;
}

static void dispose(single *s) {
  for (size_t c = 0; s->ring != NULL && c < s->m.plan->connections; c++) {
    machine_drain(&s->ring[c]);
  }
  for (int32_t r = 0; s->m.memory != NULL && r < s->m.plan->ranks; r++) {
    free(s->m.memory[r]);
  }
  free(s->ring);
  free(s->priority);
  machine_dispose(&s->m);
}

interpreter_outcome interpret(const polyccl_plan *plan, const interpreter_options *options, char *why, size_t size) {
  single s = {.m = {.plan = plan,
                    .options = *options,
                    .random = options->seed * 0x9e3779b97f4a7c15u + 0x1234567u,
                    .why = why,
                    .size = size}};
  if (machine_check(&s.m) && make(&s)) {
    s.manner = (int)machine_below(&s.m, MANNERS);
    shuffle_priorities(&s);
    while (plan->tbs > 0 && move(&s)) {
    }
    if (s.m.outcome == INTERPRETER_RIGHT) {
      check_end(&s);
    }
  }
  dispose(&s);
  return s.m.outcome;
}
