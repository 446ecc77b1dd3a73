#include "mutate.h"

#include <stdlib.h>
#include <string.h>

static uint64_t below(uint64_t *random, uint64_t limit) {
  *random ^= *random << 13;
  *random ^= *random >> 7;
  *random ^= *random << 17;
  return (*random * 0x2545f4914f6cdd1du >> 20) % limit;
}

static void *copy_of(const void *from, size_t count, size_t element, bool *ok) {
  void *to = malloc(count * element + 1);
  if (to == NULL) {
    *ok = false;
  } else if (count > 0) {
    memcpy(to, from, count * element);
  }
  return to;
}

polyccl_plan *mutation_copy(const polyccl_plan *plan) {
  polyccl_plan *copy;
  bool ok = true;
  if (polyccl_plan_create(plan->ranks, &copy) != POLYCCL_SUCCESS) {
    return NULL;
  }
  polyccl_plan_rank *rank = copy->rank;
  *copy = *plan; /* names and files are left out: they change nothing */
  copy->rank = rank;
  memcpy(rank, plan->rank, (size_t)plan->ranks * sizeof *rank);
  copy->name = NULL;
  copy->file = NULL;
  copy->files = copy->locations = 0;
  copy->location = NULL;
  copy->tb = copy_of(plan->tb, plan->tbs, sizeof *plan->tb, &ok);
  copy->step = copy_of(plan->step, plan->steps, sizeof *plan->step, &ok);
  copy->wait = copy_of(plan->wait, plan->waits, sizeof *plan->wait, &ok);
  copy->connection = copy_of(plan->connection, plan->connections, sizeof *plan->connection, &ok);
  copy->post = copy_of(plan->post, plan->posts, sizeof *plan->post, &ok);
  copy->leaf = copy_of(plan->leaf, plan->leaves, sizeof *plan->leaf, &ok);
  copy->absent = copy_of(plan->absent, plan->absents, sizeof *plan->absent, &ok);
  for (size_t s = 0; ok && s < copy->steps; s++) {
    copy->step[s].location = -1;
  }
  if (!ok) {
    polyccl_plan_destroy(copy);
    return NULL;
  }
  return copy;
}

typedef struct change {
  polyccl_plan *plan;
  uint64_t *random;
  char *what;
  size_t size;
} change;

static polyccl_step *any_step(const change *c, size_t *index) {
  *index = below(c->random, c->plan->steps);
  return &c->plan->step[*index];
}

static polyccl_thread_block *any_tb(const change *c, int32_t least_steps) {
  polyccl_thread_block *tb = &c->plan->tb[below(c->random, c->plan->tbs)];
  return tb->steps >= least_steps ? tb : NULL;
}

static int32_t nudge(const change *c, int32_t value) {
  static const int32_t by[] = {1, -1, 2, -2, 1, -1};
  return value + by[below(c->random, 6)];
}

static bool drop_wait(const change *c) {
  size_t s;
  polyccl_step *step = any_step(c, &s);
  if (step->waits == 0) {
    return false;
  }
  int32_t dropped = (int32_t)below(c->random, (uint64_t)step->waits);
  polyccl_wait *first = &c->plan->wait[step->wait];
  snprintf(c->what, c->size, "step %zu: wait %d.%d dropped", s, first[dropped].tb, first[dropped].step);
  first[dropped] = first[step->waits - 1];
  step->waits--;
  return true;
}

static bool change_wait(const change *c) {
  if (c->plan->waits == 0) {
    return false;
  }
  polyccl_wait *wait = &c->plan->wait[below(c->random, c->plan->waits)];
  snprintf(c->what, c->size, "wait %d.%d changed", wait->tb, wait->step);
  if (below(c->random, 3) == 0) {
    wait->tb = nudge(c, wait->tb);
  } else {
    wait->step = nudge(c, wait->step);
  }
  return true;
}

static void swap(polyccl_step *a, polyccl_step *b, bool keep_waits) {
  polyccl_step old = *a;
  *a = *b;
  *b = old;
  if (keep_waits) {
    b->wait = a->wait, b->waits = a->waits;
    a->wait = old.wait, a->waits = old.waits;
  }
}

static bool swap_neighbours(const change *c) {
  polyccl_thread_block *tb = any_tb(c, 2);
  if (tb == NULL) {
    return false;
  }
  int32_t s = (int32_t)below(c->random, (uint64_t)tb->steps - 1);
  snprintf(c->what, c->size, "step %d swapped with the next", tb->step + s);
  swap(&c->plan->step[tb->step + s], &c->plan->step[tb->step + s + 1], below(c->random, 2) == 0);
  return true;
}

static bool swap_in_rank(const change *c) {
  const polyccl_plan_rank *rank = &c->plan->rank[below(c->random, (uint64_t)c->plan->ranks)];
  if (rank->tbs == 0) {
    return false;
  }
  const polyccl_thread_block *a = &c->plan->tb[rank->tb + (int32_t)below(c->random, (uint64_t)rank->tbs)];
  const polyccl_thread_block *b = &c->plan->tb[rank->tb + (int32_t)below(c->random, (uint64_t)rank->tbs)];
  if (a->steps == 0 || b->steps == 0) {
    return false;
  }
  int32_t x = a->step + (int32_t)below(c->random, (uint64_t)a->steps);
  int32_t y = b->step + (int32_t)below(c->random, (uint64_t)b->steps);
  snprintf(c->what, c->size, "step %d swapped with step %d", x, y);
  swap(&c->plan->step[x], &c->plan->step[y], below(c->random, 2) == 0);
  return true;
}

/* Which operand of the step to change: one that its op uses. */
static bool choose_source(const change *c, const polyccl_step *step) {
  bool source = step->op != POLYCCL_STEP_RECV && step->op != POLYCCL_STEP_RCS;
  bool destination = step->op != POLYCCL_STEP_SEND && step->op != POLYCCL_STEP_RRS;
  return source && (!destination || below(c->random, 2) == 0);
}

static bool shift_offset(const change *c) {
  size_t s;
  polyccl_step *step = any_step(c, &s);
  if (step->op == POLYCCL_STEP_NOP) {
    return false;
  }
  bool source = choose_source(c, step);
  snprintf(c->what, c->size, "step %zu: %s offset shifted", s, source ? "source" : "destination");
  if (source) {
    step->src = nudge(c, step->src);
  } else {
    step->dst = nudge(c, step->dst);
  }
  return true;
}

static bool change_buffer(const change *c) {
  size_t s;
  polyccl_step *step = any_step(c, &s);
  if (step->op == POLYCCL_STEP_NOP) {
    return false;
  }
  snprintf(c->what, c->size, "step %zu: another buffer", s);
  if (choose_source(c, step)) {
    step->src_buf = (uint8_t)below(c->random, 3);
  } else {
    step->dst_buf = (uint8_t)below(c->random, 3);
  }
  return true;
}

/* Both ends stay in step, so that more than the counts has to be looked at. */
static bool swap_offsets(const change *c) {
  size_t a, b;
  polyccl_step *x = any_step(c, &a), *y = any_step(c, &b);
  if (x->op != y->op || x->op == POLYCCL_STEP_NOP || a == b) {
    return false;
  }
  bool source = choose_source(c, x);
  int32_t *p = source ? &x->src : &x->dst, *q = source ? &y->src : &y->dst, old = *p;
  snprintf(c->what, c->size, "steps %zu and %zu exchange their %s offsets", a, b, source ? "source" : "destination");
  *p = *q;
  *q = old;
  return true;
}

static bool change_count(const change *c) {
  size_t s;
  polyccl_step *step = any_step(c, &s);
  snprintf(c->what, c->size, "step %zu: another count", s);
  step->count = nudge(c, step->count);
  return true;
}

static bool change_peer(const change *c) {
  if (c->plan->connections == 0) {
    return false;
  }
  size_t i = below(c->random, c->plan->connections);
  polyccl_connection *at = &c->plan->connection[i];
  int32_t peer = (int32_t)below(c->random, (uint64_t)c->plan->ranks);
  bool source = below(c->random, 2) == 0;
  snprintf(c->what, c->size, "connection %zu: %s is now rank %d", i, source ? "source" : "destination", peer);
  *(source ? &at->src : &at->dst) = peer;
  return true;
}

static bool change_connection(const change *c) {
  size_t s;
  polyccl_step *step = any_step(c, &s);
  if (c->plan->connections == 0) {
    return false;
  }
  int32_t other = (int32_t)below(c->random, c->plan->connections);
  snprintf(c->what, c->size, "step %zu: now on connection %d", s, other);
  if (step->send >= 0 && (step->recv < 0 || below(c->random, 2) == 0)) {
    step->send = other;
  } else if (step->recv >= 0) {
    step->recv = other;
  }
  return true;
}

/* All messages of one connection move to another between the same ranks. */
static bool merge_channels(const change *c) {
  if (c->plan->connections < 2) {
    return false;
  }
  int32_t a = (int32_t)below(c->random, c->plan->connections), b = (int32_t)below(c->random, c->plan->connections);
  const polyccl_connection *x = &c->plan->connection[a], *y = &c->plan->connection[b];
  if (a == b || x->src != y->src || x->dst != y->dst) {
    return false;
  }
  snprintf(c->what, c->size, "connection %d merged into %d", a, b);
  for (size_t s = 0; s < c->plan->steps; s++) {
    polyccl_step *step = &c->plan->step[s];
    step->send = step->send == a ? b : step->send;
    step->recv = step->recv == a ? b : step->recv;
  }
  return true;
}

/* To an op with the same connections, most of the time. */
static bool change_op(const change *c) {
  static const uint8_t like[POLYCCL_STEP_OP_COUNT][2] = {
      [POLYCCL_STEP_NOP] = {POLYCCL_STEP_COPY, POLYCCL_STEP_REDUCE},
      [POLYCCL_STEP_SEND] = {POLYCCL_STEP_NOP, POLYCCL_STEP_SEND},
      [POLYCCL_STEP_RECV] = {POLYCCL_STEP_RRC, POLYCCL_STEP_RRC},
      [POLYCCL_STEP_RCS] = {POLYCCL_STEP_RRS, POLYCCL_STEP_RRCS},
      [POLYCCL_STEP_RRC] = {POLYCCL_STEP_RECV, POLYCCL_STEP_RECV},
      [POLYCCL_STEP_RRCS] = {POLYCCL_STEP_RCS, POLYCCL_STEP_RRS},
      [POLYCCL_STEP_RRS] = {POLYCCL_STEP_RCS, POLYCCL_STEP_RRCS},
      [POLYCCL_STEP_COPY] = {POLYCCL_STEP_REDUCE, POLYCCL_STEP_NOP},
      [POLYCCL_STEP_REDUCE] = {POLYCCL_STEP_COPY, POLYCCL_STEP_NOP},
  };
  size_t s;
  polyccl_step *step = any_step(c, &s);
  uint8_t op =
      below(c->random, 8) == 0 ? (uint8_t)below(c->random, POLYCCL_STEP_OP_COUNT) : like[step->op][below(c->random, 2)];
  snprintf(c->what, c->size, "step %zu: %s becomes %s", s, polyccl_step_op_name(step->op), polyccl_step_op_name(op));
  step->op = op;
  return true;
}

/* A step becomes a nop that waits for the same: nothing else moves. A receive and its send go together. */
static bool drop_step(const change *c) {
  size_t s;
  polyccl_step *step = any_step(c, &s);
  snprintf(c->what, c->size, "step %zu (%s) dropped", s, polyccl_step_op_name(step->op));
  if (step->op == POLYCCL_STEP_SEND) { /* with the receive of the same number on its connection */
    size_t number = 0, seen = 0, r;
    for (size_t i = 0; i < s; i++) {
      number += c->plan->step[i].send == step->send;
    }
    for (r = 0; r < c->plan->steps && (c->plan->step[r].recv != step->send || seen++ < number); r++) {
    }
    if (r < c->plan->steps && c->plan->step[r].op == POLYCCL_STEP_RECV) {
      c->plan->step[r].op = POLYCCL_STEP_NOP;
      c->plan->step[r].recv = -1;
    }
  }
  step->op = POLYCCL_STEP_NOP;
  step->send = step->recv = -1;
  return true;
}

static bool change_mark(const change *c) {
  size_t s;
  polyccl_step *step = any_step(c, &s);
  uint8_t mark = step->send >= 0 && (step->recv < 0 || below(c->random, 2) == 0) ? POLYCCL_FLAG_GET : POLYCCL_FLAG_PUT;
  snprintf(c->what, c->size, "step %zu: mark %s %s", s, mark == POLYCCL_FLAG_GET ? "get" : "put",
           (step->flags & mark) != 0 ? "removed" : "set");
  step->flags ^= mark;
  return true;
}

static bool change_depth(const change *c) {
  snprintf(c->what, c->size, "FIFO depth %d changed", c->plan->fifo_depth);
  c->plan->fifo_depth = nudge(c, c->plan->fifo_depth);
  return true;
}

static bool change_header(const change *c) {
  switch (below(c->random, 4)) {
    case 0:
      c->plan->order = c->plan->order == POLYCCL_BATCH_MAJOR ? POLYCCL_TASK_MAJOR : POLYCCL_BATCH_MAJOR;
      snprintf(c->what, c->size, "the other loop order");
      return true;
    case 1:
      c->plan->inplace = !c->plan->inplace;
      snprintf(c->what, c->size, "in place %d", c->plan->inplace);
      return true;
    case 2:
      c->plan->root = nudge(c, c->plan->root);
      snprintf(c->what, c->size, "root %d", c->plan->root);
      return true;
    default: {
      polyccl_plan_rank *rank = &c->plan->rank[below(c->random, (uint64_t)c->plan->ranks)];
      rank->scratch = nudge(c, rank->scratch);
      snprintf(c->what, c->size, "a rank's scratch is now %d", rank->scratch);
      return true;
    }
  }
}

bool mutate(polyccl_plan *plan, uint64_t *random, char *what, size_t size) {
  static bool (*const kinds[])(const change *) = {
      drop_wait,    change_wait,  swap_neighbours,   swap_in_rank,   shift_offset,   change_buffer, swap_offsets,
      change_count, change_peer,  change_connection, merge_channels, change_op,      drop_step,     change_mark,
      change_mark,  change_depth, change_header,     drop_wait,      swap_neighbours};
  if (plan->steps == 0) {
    return false;
  }
  change c = {.plan = plan, .random = random, .what = what, .size = size};
  return kinds[below(random, sizeof kinds / sizeof kinds[0])](&c);
}
