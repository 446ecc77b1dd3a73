/* A slow interpreter of plans, written from docs/plan.md alone: it shares no code with the verifier, the simulator or
 * the executors, and not even the table of collectives. It runs a plan under one random interleaving, on real numbers,
 * and says whether it came right. Tests hold the verifier's promises against it.
 *
 * Steps are less atomic here than the page says, as they are in executors: a step starts, other steps run, it ends; it
 * reads when it starts or when it ends, and what it stores may be seen early. A right plan has to bear this. */
#ifndef PCCL_TESTS_INTERPRETER_H
#define PCCL_TESTS_INTERPRETER_H

#include <polyccl/plan.h>

typedef enum interpreter_outcome {
  INTERPRETER_RIGHT = 0,
  INTERPRETER_WRONG,    /* an output chunk, or a chunk read that holds nothing */
  INTERPRETER_DEADLOCK, /* nothing can go on */
  INTERPRETER_BROKEN,   /* an index out of range, a message of the wrong size, a message left over */
  INTERPRETER_NO_MEMORY
} interpreter_outcome;

/* What `+` is: the sum of 64-bit numbers, which wraps; or, of 32-bit floats that are mostly special (zeros, infinities
 * and NaNs of both signs), the least, the greatest or the sum. */
typedef enum interpreter_reduction {
  INTERPRETER_ADD = 0,
  INTERPRETER_MIN,
  INTERPRETER_MAX,
  INTERPRETER_FLOAT_ADD /* with same_bits only: it is not associative */
} interpreter_reduction;

typedef struct interpreter_options {
  int micro_batches; /* M; a chunk has one element per micro-batch */
  int depth;         /* FIFO slots of each connection */
  int missing;       /* elements that a block lacks: its count is chunks x M - missing */
  uint64_t seed;     /* of the interleaving and of the numbers */
  interpreter_reduction reduction;
  uint64_t in_place; /* bit r: the input and output of rank r are one memory, in a plan that is out of place */
  bool same_bits;    /* asks instead whether all ranks of an allreduce add in one order: numbers that show the order are
                        added, and the ranks compared with one another */
} interpreter_options;

/* `why` gets one line unless the plan came right. */
interpreter_outcome interpret(const polyccl_plan *plan, const interpreter_options *options, char *why, size_t size);

#endif
