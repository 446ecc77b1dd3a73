/* What each collective means: shapes, where input and output share memory, what each output chunk must hold.
 * No other code knows it; the symbolic check, the compiler, the verifier and the executors all ask here.
 * docs/plan.md (The abstract machine) has the table. */
#ifndef PCCL_PROGRAM_COLLECTIVE_H
#define PCCL_PROGRAM_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>

#include <polyccl/types.h>

typedef struct pccl_collective_spec {
  polyccl_collective kind;
  int ranks, chunks, chunks_out; /* chunks_out: custom only, 0 = chunks */
  bool inplace;
  int root, peer;
} pccl_collective_spec;

/* INVALID with the reason: ranks, chunks, root, peer out of range, or a collective that has no in-place form. */
polyccl_result pccl_collective_validate(const pccl_collective_spec *spec);

/* Chunks of the two buffers; the same on every rank. */
void pccl_collective_shape(const pccl_collective_spec *spec, int *input, int *output);

/* Distinct chunks of user memory on a rank. */
int pccl_collective_cells(const pccl_collective_spec *spec);

/* The cell of input (output = false) or output chunk `index` of `rank`; two names of one chunk in place share it. */
int pccl_collective_cell(const pccl_collective_spec *spec, int rank, bool output, int index);

typedef enum pccl_post_kind {
  PCCL_POST_ANY = 0, /* may hold anything */
  PCCL_POST_ONE,     /* holds `leaf` */
  PCCL_POST_ALL      /* holds the reduction of chunk leaf.chunk over all ranks */
} pccl_post_kind;

/* What output chunk `index` of `rank` must hold; leaf.rank is -1 for PCCL_POST_ALL. For custom collectives it is always
 * PCCL_POST_ANY, since their declarations say it. */
pccl_post_kind pccl_collective_post(const pccl_collective_spec *spec, int rank, int index, polyccl_leaf *leaf);

/* Elements from one chunk of a block to the next in a call of `count` elements per block: ceil(count / chunks), rounded
 * up so that large chunks begin at cache lines. Chunk k holds elements k * stride up to the next chunk's first or the
 * block's end (docs/plan.md, Counts that chunks do not divide). */
size_t pccl_collective_stride(int chunks, size_t count, size_t element_bytes);

/* True if the collective reduces. */
bool pccl_collective_reduces(polyccl_collective kind);

#endif
