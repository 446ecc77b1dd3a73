/* The interpreter's machine: one call of a plan, on ranks that may not all have entered it yet. interpreter.c runs one
 * call alone, sequence.c several calls on the same connections. */
#ifndef PCCL_TESTS_INTERPRETER_MACHINE_H
#define PCCL_TESTS_INTERPRETER_MACHINE_H

#include "interpreter.h"

/* An element: a 64-bit number, sums wrap. Inputs are random, so that two different multisets of contributions have
 * the same sum with a chance of 2^-64. Undefined elements are random too, and new at each read. */
typedef struct element {
  uint64_t number;
  bool held;
} element;

typedef struct machine machine;

/* By reference the message is not in `chunk`: get leaves it where the sending step has it, put has stored it where the
 * receiving step wants it. */
typedef struct message {
  struct message *next;
  const machine *call;
  int32_t count;
  bool get, put;
  bool overwritten; /* its slot, by a later message */
  int64_t number;   /* on its connection, over all calls; and the depth of the ring that it went into */
  int32_t depth;
  const polyccl_step *sender;
  int32_t from; /* the sender's rank */
  element chunk[];
} message;

/* A connection's slots. Calls share them, one after another: message m is in slot m mod depth, and the depth may only
 * change when no slot is in use. */
typedef struct ring {
  message *first, *last;
  int32_t slots; /* in use, by messages or by a send that has started */
  int32_t depth;
  int64_t sent;
} ring;

/* A connection in one call. */
typedef struct fifo {
  ring *ring;
  int64_t sent;
  const polyccl_step **receive; /* the steps that receive here, in order */
  int32_t receives;
} fifo;

typedef struct worker { /* a thread block */
  int64_t ended;        /* instances of steps */
  bool running;         /* the next has started */
  bool read, stored;
  message *in, *out;
  element *result; /* [count] of the running step */
} worker;

struct machine {
  const polyccl_plan *plan;
  interpreter_options options;
  uint64_t random;
  worker *worker;            /* [tbs] */
  fifo *fifo;                /* [connections] */
  element **memory;          /* [rank]: cells x M */
  bool *entered;             /* [rank] has entered the call: its buffers may be written by put */
  int32_t *lent;             /* [rank] messages by get that are not read yet */
  bool puts_early, reshapes; /* wrong on purpose: sequence.h */
  interpreter_outcome outcome;
  char *why;
  size_t size;
};

uint64_t machine_random(machine *m);
uint64_t machine_below(machine *m, uint64_t limit);
/* Keeps the first fault; always false. */
bool machine_failed(machine *m, interpreter_outcome outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Refuses a plan that the run could not index with. */
bool machine_check(machine *m);
/* Makes everything but rings and memory, which the caller sets: m->fifo[].ring, m->memory[]. */
bool machine_make(machine *m);
size_t machine_elements(const machine *m, int32_t rank); /* of its memory */
void machine_fill(machine *m, int32_t rank);             /* the rank's input */
void machine_dispose(machine *m);                        /* what machine_make() made */
void machine_drain(ring *r);                             /* frees its messages */

/* Lets thread block t do one thing. *moved: it could. */
bool machine_act(machine *m, int32_t t, bool *moved);
bool machine_block_ended(const machine *m, int32_t t);
bool machine_check_outputs(machine *m, int32_t rank);

element *machine_element(machine *m, int32_t rank, uint8_t buffer, int32_t k, int32_t batch);
/* Does the element exist in user memory? A block has chunks x M - missing elements. */
bool machine_exists(const machine *m, uint8_t buffer, int32_t k, int32_t batch);
/* Stores it if it exists. */
void machine_store(machine *m, int32_t rank, uint8_t buffer, int32_t k, int32_t batch, element value);

static inline bool op_receives(uint8_t op) {
  return op == POLYCCL_STEP_RECV || op == POLYCCL_STEP_RCS || op == POLYCCL_STEP_RRC || op == POLYCCL_STEP_RRCS ||
         op == POLYCCL_STEP_RRS;
}

static inline bool op_sends(uint8_t op) {
  return op == POLYCCL_STEP_SEND || op == POLYCCL_STEP_RCS || op == POLYCCL_STEP_RRCS || op == POLYCCL_STEP_RRS;
}

static inline bool op_uses_source(uint8_t op) {
  return op != POLYCCL_STEP_NOP && op != POLYCCL_STEP_RECV && op != POLYCCL_STEP_RCS;
}

static inline bool op_stores(uint8_t op) {
  return op != POLYCCL_STEP_NOP && op != POLYCCL_STEP_SEND && op != POLYCCL_STEP_RRS;
}

#endif
