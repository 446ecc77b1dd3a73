/* Several calls one after another on the same connections, each rank at its own pace: a rank enters its next call as
 * soon as its own last one has ended, while others may still be in theirs. Written from docs/verifier.md, "Calls one
 * after another". Each rank has one piece of memory for the buffers of all its calls; what a call leaves there is wiped
 * when it returns, as a user may do, so whoever reads there later is found. */
#ifndef PCCL_TESTS_INTERPRETER_SEQUENCE_H
#define PCCL_TESTS_INTERPRETER_SEQUENCE_H

#include "interpreter.h"

enum { SEQUENCE_CALLS = 4 };

/* What a rank may do that it must not. */
typedef enum sequence_flaw {
  SEQUENCE_AS_IT_IS = 0,
  SEQUENCE_ENTERS_EARLY,  /* starts its next call before its last one has ended (on other buffers) */
  SEQUENCE_RETURNS_EARLY, /* returns while others may still read its buffers by reference */
  SEQUENCE_PUTS_EARLY,    /* stores into a receiver's buffer before the receiver has entered the call */
  SEQUENCE_RESHAPES,      /* changes a ring's depth while messages are in it */
  SEQUENCE_FLAWS
} sequence_flaw;

typedef struct sequence_call {
  const polyccl_plan *plan; /* all of the same number of ranks */
  int micro_batches, depth;
} sequence_call;

/* Every call must end and give every rank what its collective means. *apart: grows by the number of calls that a rank
 * entered while another was still in the one before. */
interpreter_outcome interpret_sequence(const sequence_call *call, int calls, sequence_flaw flaw, uint64_t seed,
                                       int *apart, char *why, size_t size);

#endif
