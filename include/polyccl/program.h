/* The chunk-level program: what moves where. One builder that all front ends share (MSCCLang, ASPLOS'23, section 3).
 *
 * A program moves chunks between the buffers of its ranks. Create one for a collective, take references with
 * polyccl_program_chunk(), move them with _copy() and _reduce(), then polyccl_program_check() proves that every
 * output chunk holds exactly its contributions, each once. polyccl_compile() (compile.h) makes a plan of it.
 *
 * Shapes. `chunks` is the number of chunks in one block; a block is what the count of a call means:
 *   allreduce, broadcast, reduce, sendrecv   input 1 block,  output 1 block
 *   allgather, gather                        input 1 block,  output `ranks` blocks
 *   reduce_scatter, scatter                  input `ranks` blocks, output 1 block
 *   alltoall                                 input and output `ranks` blocks
 *   custom                                   input `chunks`, output `chunks_out` chunks
 * In place, input and output are one memory: allreduce, broadcast, reduce, alltoall, custom: the same; allgather,
 * gather: input is block `rank` of the output; reduce_scatter, scatter: output is block `rank` of the input.
 * (sendrecv: never.)
 *
 * A program is not thread-safe; one thread builds it. */
#ifndef POLYCCL_PROGRAM_H
#define POLYCCL_PROGRAM_H

#include <stdbool.h>

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct polyccl_program polyccl_program;

/* Buffers of a rank. Ids from POLYCCL_SCRATCH on are named scratch buffers (polyccl_program_scratch). */
enum { POLYCCL_INPUT = 0, POLYCCL_OUTPUT = 1, POLYCCL_SCRATCH = 2 };

typedef enum polyccl_replication {
  POLYCCL_INTERLEAVED = 0, /* instance i takes the i-th part of every chunk */
  POLYCCL_BATCHED          /* instance i takes the i-th part of every block */
} polyccl_replication;

typedef struct polyccl_program_config {
  size_t size;                   /* sizeof(polyccl_program_config) */
  const char *name;              /* copied; NULL: the collective's name */
  polyccl_collective collective; /* what the program implements */
  int ranks;                     /* 1 .. POLYCCL_MAX_RANKS */
  int chunks;                    /* chunks per block, >= 1 */
  int chunks_out;                /* custom only: chunks of output; 0: as `chunks` */
  bool inplace;                  /* written for one buffer that is input and output */
  int root;                      /* broadcast, reduce, gather, scatter; sendrecv: the sender */
  int peer;                      /* sendrecv: the receiver */
  polyccl_protocol protocol;
  int instances; /* copies of the whole program on disjoint parts of the chunks, >= 1 (0: 1) */
  polyccl_replication replication;
  size_t min_bytes, max_bytes; /* sizes (bytes of the larger buffer) the author means it for; max 0: no limit */
  bool manual;                 /* thread blocks and channels are the author's (hints), none are assigned */
  bool no_fusion;              /* keep every send and receive a step of its own */
} polyccl_program_config;

#define POLYCCL_MAX_RANKS 65536
#define POLYCCL_MAX_CHUNKS (1 << 20) /* per buffer, after replication */

/* A reference to `size` consecutive chunks as they were when it was taken (the stamp); it is stale once any of
 * them has been overwritten. Plain data, copy freely. */
typedef struct polyccl_ref {
  int32_t rank, buffer, index, size;
  uint64_t stamp;
} polyccl_ref;

/* Wishes for one operation; -1: none. */
typedef struct polyccl_hints {
  int32_t channel, send_tb, recv_tb;
} polyccl_hints;

#define POLYCCL_NO_HINTS ((polyccl_hints){-1, -1, -1})

POLYCCL_API polyccl_result polyccl_program_create(const polyccl_program_config *config, polyccl_program **program);
POLYCCL_API void polyccl_program_destroy(polyccl_program *program); /* NULL is fine */
POLYCCL_API const polyccl_program_config *polyccl_program_get_config(const polyccl_program *program);

/* From now on an operation between two ranks needs a link between them: a topology as for polyccl_topology_open(), with
 * at least as many ranks as the program. Once, before the first operation. */
POLYCCL_API polyccl_result polyccl_program_set_topology(polyccl_program *program, const char *topology);

/* Custom collectives: input chunk `chunk` of `rank` is `held` before the start (default: all are). */
POLYCCL_API polyccl_result polyccl_program_pre(polyccl_program *program, int rank, int chunk, bool held);
/* Custom collectives: output chunk `chunk` of `rank` must hold the reduction of `leaves` (count 1: a plain copy) at
 * the end; chunks never named here may hold anything. */
POLYCCL_API polyccl_result polyccl_program_post(polyccl_program *program, int rank, int chunk,
                                                const polyccl_leaf *leaves, int count);

/* The id of the scratch buffer `name`, made on first use. Each rank has its own of that name, as long as its use. */
POLYCCL_API polyccl_result polyccl_program_scratch(polyccl_program *program, const char *name, int *buffer);

/* Takes a reference. Errors: out of range, or a chunk that holds nothing yet. */
POLYCCL_API polyccl_result polyccl_program_chunk(polyccl_program *program, int rank, int buffer, int index, int size,
                                                 polyccl_location at, polyccl_ref *ref);
/* Copies `src` to (rank, buffer, index); buffer -1: the same buffer and index as src; index -1: the same index, for
 * scratch: appended at its end. Errors: stale source, out of range, overlapping itself. */
POLYCCL_API polyccl_result polyccl_program_copy(polyccl_program *program, const polyccl_ref *src, int rank, int buffer,
                                                int index, polyccl_hints hints, polyccl_location at, polyccl_ref *ref);
/* acc += operand; `ref` is acc as it is now. Both must be fresh, of one size, and not overlap. */
POLYCCL_API polyccl_result polyccl_program_reduce(polyccl_program *program, const polyccl_ref *acc,
                                                  const polyccl_ref *operand, polyccl_hints hints, polyccl_location at,
                                                  polyccl_ref *ref);
/* One reference from the lower of `a` and `b` to the end of the higher. Both must be fresh and lie in one buffer of one
 * rank, and every chunk between them must hold something. */
POLYCCL_API polyccl_result polyccl_program_group(polyccl_program *program, const polyccl_ref *a, const polyccl_ref *b,
                                                 polyccl_location at, polyccl_ref *ref);

/* What the reference's chunk `index` (0: its first) holds: the input chunks in it, sorted, each as often as it counts.
 * Sets *count; fills leaves[0 .. min(count, capacity)). */
POLYCCL_API polyccl_result polyccl_program_origins(polyccl_program *program, const polyccl_ref *ref, int index,
                                                   polyccl_location at, polyccl_leaf *leaves, size_t capacity,
                                                   size_t *count);
/* Where the collective wants what that chunk holds: output chunks as pairs (rank, index), sorted. A chunk whose parts
 * belong to different places has none. */
POLYCCL_API polyccl_result polyccl_program_destinations(polyccl_program *program, const polyccl_ref *ref, int index,
                                                        polyccl_location at, polyccl_leaf *places, size_t capacity,
                                                        size_t *count);
/* What follows until the matching end is cut into `instances` parts that run beside one another (the paper's
 * parallelize). Scopes nest; their factors multiply. */
POLYCCL_API polyccl_result polyccl_program_parallel_begin(polyccl_program *program, int instances, polyccl_location at);
POLYCCL_API polyccl_result polyccl_program_parallel_end(polyccl_program *program);

/* The task vocabulary (ResCCL, SIGCOMM'25): chunk `chunk` of `src` goes to the same place on `dst`, which stores it
 * (reduce false, "recv") or adds it to its own ("rrc"). Chunks are those of the larger of input and output; the program
 * must be in place. Transfers are kept until polyccl_program_finish(), which replays them as copies and reductions by
 * (step, order of the calls). They do not mix with chunk(), copy() and reduce(). */
POLYCCL_API polyccl_result polyccl_program_transfer(polyccl_program *program, int src, int dst, int step, int chunk,
                                                    bool reduce, polyccl_location at);
/* Ends the program; needed where it has transfers, else it does nothing. Errors are those of the copies. */
POLYCCL_API polyccl_result polyccl_program_finish(polyccl_program *program);

typedef struct polyccl_program_summary {
  int ranks, chunks; /* chunks per block as written, before replication */
  size_t operations; /* copies and reductions */
  size_t remote;     /* of these: between ranks */
  int longest;       /* operations on the longest chain of dependencies */
  bool identical;    /* every rank gets the same bits: one reduction order per chunk */
} polyccl_program_summary;

/* The symbolic check. POLYCCL_ERROR_INVALID with the first wrong output chunk in the message: what it holds too often,
 * what it lacks, the line that made it. `summary` may be NULL. */
POLYCCL_API polyccl_result polyccl_program_check(const polyccl_program *program, polyccl_program_summary *summary);

#ifdef __cplusplus
}
#endif

#endif
