/* Renaming, a part of the pass refine: where a chunk of the program lives in an out-of-place plan.
 *
 * Out of place, the caller's input is only read, and an output that the collective does not ask for may not be there.
 * So a program that writes elsewhere (an in-place program always does) is renamed: a chunk that nothing has written is
 * read from the input. Once it is written, it lives in the output where the collective asks for it, else in scratch. */
#ifndef PCCL_COMPILER_RENAME_H
#define PCCL_COMPILER_RENAME_H

#include "compiler/ir.h"

typedef struct pccl_refiner {
  pccl_ir *ir;
  const polyccl_program *program;
  int32_t refine, program_instances;
  bool rename;           /* in-place program, out-of-place plan */
  int32_t *scratch_base; /* [scratch * ranks + rank] first plan chunk */
  uint8_t **touched;     /* rename: [rank][plan cell] written so far */
  int32_t *spill;        /* rename: [rank] first scratch chunk of renamed cells */
} pccl_refiner;

/* A chunk of the plan. */
typedef struct pccl_spot {
  int32_t rank, offset;
  uint8_t buffer;
} pccl_spot;

/* True where an out-of-place plan of the program must be renamed. */
bool pccl_rename_is_needed(const pccl_refiner *r);

/* The plan's chunks under the program's own sharing of input and output; the number of a chunk under it. */
pccl_collective_spec pccl_rename_spec(const pccl_refiner *r);
int32_t pccl_rename_cell(const pccl_refiner *r, pccl_spot at);

/* True where the collective asks for this chunk of the output. */
bool pccl_rename_is_wanted(const pccl_refiner *r, int rank, int32_t output);

/* Where the program's chunk `at` is read from now, and where it is written to. */
pccl_spot pccl_rename_read(const pccl_refiner *r, pccl_spot at);
pccl_spot pccl_rename_write(const pccl_refiner *r, pccl_spot at);

/* Moves the scratch that renamed cells really use together, at the end of the pass. */
polyccl_result pccl_rename_pack(pccl_refiner *r);

#endif
