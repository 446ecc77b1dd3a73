/* The chunk-level program: what moves where. All front ends share this one builder (Cowan et al., MSCCLang, ASPLOS'23,
 * section 3).
 *
 * A program moves chunks between the buffers of its ranks. Create one for a collective, get references with
 * polyccl_program_chunk() and move them with _copy() and _reduce(). polyccl_program_check() then proves that every
 * output chunk holds exactly its contributions, each once, and polyccl_compile() (compile.h) makes a plan of it.
 *
 * Shapes. `chunks` is the number of chunks in one block; the count of a call is the elements of one block:
 *   allreduce, broadcast, reduce, sendrecv   input 1 block,  output 1 block
 *   allgather, gather                        input 1 block,  output `ranks` blocks
 *   reduce_scatter, scatter                  input `ranks` blocks, output 1 block
 *   alltoall                                 input and output `ranks` blocks
 *   custom                                   input `chunks`, output `chunks_out` chunks
 * In place, input and output are one memory. For allreduce, broadcast, reduce, alltoall and custom they are the same
 * chunks; for allgather and gather the input is block `rank` of the output; for reduce_scatter and scatter the output
 * is block `rank` of the input. sendrecv has no in-place form.
 *
 * Thread safety: a program has no lock. One thread at a time may use it; different programs are independent.
 *
 * Errors: every function returns INVALID for a wrong argument, LIMIT for a bound of docs/bounds.md and MEMORY; comments
 * name further causes. `at` is the author's place, which errors name; its file is copied. Pointers to results must not
 * be NULL unless a comment allows it. */
#ifndef POLYCCL_PROGRAM_H
#define POLYCCL_PROGRAM_H

#include <stdbool.h>

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct polyccl_program polyccl_program;

/* The buffers of a rank. Ids from POLYCCL_SCRATCH on are named scratch buffers (polyccl_program_scratch()). */
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
  int chunks_out;                /* custom only: chunks of output; 0: the same as `chunks` */
  bool inplace;                  /* the program is written for one buffer that is input and output */
  int root;                      /* broadcast, reduce, gather, scatter; sendrecv: the sender */
  int peer;                      /* sendrecv: the receiver */
  polyccl_protocol protocol;
  int instances; /* copies of the whole program on disjoint parts of the chunks, >= 1 (0: 1) */
  polyccl_replication replication;
  size_t min_bytes, max_bytes; /* the author means it for these sizes (bytes of the larger buffer); max 0: no limit */
  bool manual;                 /* the author's hints assign all thread blocks and channels, the compiler none */
  bool no_fusion;              /* every send and every receive stays a step of its own */
} polyccl_program_config;

#define POLYCCL_MAX_RANKS 65536
#define POLYCCL_MAX_CHUNKS (1 << 20) /* per buffer, after replication */

/* A reference to `size` consecutive chunks as they were at `stamp`; it is stale once any of them has been overwritten.
 * It is plain data that owns nothing. */
typedef struct polyccl_ref {
  int32_t rank, buffer, index, size;
  uint64_t stamp;
} polyccl_ref;

/* The author's choices for one operation; -1: none. */
typedef struct polyccl_hints {
  int32_t channel, send_tb, recv_tb;
} polyccl_hints;

#define POLYCCL_NO_HINTS ((polyccl_hints){-1, -1, -1})

/* Creates a program; the caller destroys it. `config` is copied. */
POLYCCL_API polyccl_result polyccl_program_create(const polyccl_program_config *config, polyccl_program **program);
POLYCCL_API void polyccl_program_destroy(polyccl_program *program); /* the program may be NULL */
/* The program's configuration with its defaults filled in. The program owns it. */
POLYCCL_API const polyccl_program_config *polyccl_program_get_config(const polyccl_program *program);

/* Makes every later operation between two ranks need a link between them in the topology, which is named as for
 * polyccl_topology_open() and has at least as many ranks as the program. It may be called once, before the first
 * operation. Errors are also those of polyccl_topology_open(). */
POLYCCL_API polyccl_result polyccl_program_set_topology(polyccl_program *program, const char *topology);

/* Custom collectives, before the first operation: declares whether input chunk `chunk` of `rank` holds data at the
 * start. By default every input chunk does. */
POLYCCL_API polyccl_result polyccl_program_pre(polyccl_program *program, int rank, int chunk, bool held);
/* Custom collectives, before the first operation: at the end output chunk `chunk` of `rank` must hold the reduction of
 * the `count` leaves, or a copy of one leaf if count is 1. A chunk is declared at most once; chunks that are not
 * declared may hold anything. The leaves are copied. */
POLYCCL_API polyccl_result polyccl_program_post(polyccl_program *program, int rank, int chunk,
                                                const polyccl_leaf *leaves, int count);

/* Sets *buffer to the id of the scratch buffer `name`, which the first call creates. Each rank has its own buffer of
 * that name, as long as the rank uses it. */
POLYCCL_API polyccl_result polyccl_program_scratch(polyccl_program *program, const char *name, int *buffer);

/* Sets *ref to `size` chunks from `index` on. INVALID if they are out of range or one of them holds nothing yet. */
POLYCCL_API polyccl_result polyccl_program_chunk(polyccl_program *program, int rank, int buffer, int index, int size,
                                                 polyccl_location at, polyccl_ref *ref);
/* Copies `src` to (rank, buffer, index) and sets *ref to the copy. buffer -1 means the buffer and index of src; index
 * -1 means the index of src, or the end of a scratch buffer, which grows. INVALID if the source is stale, the
 * destination is out of range, or the two overlap in part. */
POLYCCL_API polyccl_result polyccl_program_copy(polyccl_program *program, const polyccl_ref *src, int rank, int buffer,
                                                int index, polyccl_hints hints, polyccl_location at, polyccl_ref *ref);
/* Adds `operand` to `acc`, chunk by chunk, and sets *ref to the sum, which replaces acc. INVALID if one of the two is
 * stale, their sizes differ, they overlap, or the collective does not reduce. */
POLYCCL_API polyccl_result polyccl_program_reduce(polyccl_program *program, const polyccl_ref *acc,
                                                  const polyccl_ref *operand, polyccl_hints hints, polyccl_location at,
                                                  polyccl_ref *ref);
/* Sets *ref to the chunks from the first of `a` and `b` to the last. INVALID if one of the two is stale, they are not
 * in one buffer of one rank, or a chunk between them holds nothing. */
POLYCCL_API polyccl_result polyccl_program_group(polyccl_program *program, const polyccl_ref *a, const polyccl_ref *b,
                                                 polyccl_location at, polyccl_ref *ref);

/* Finds what chunk `index` of the reference (from 0) holds: the input chunks that contribute to it, sorted by rank and
 * chunk, each as often as it counts. Sets *count to their number and fills leaves[0 .. min(*count, capacity)). */
POLYCCL_API polyccl_result polyccl_program_origins(polyccl_program *program, const polyccl_ref *ref, int index,
                                                   polyccl_location at, polyccl_leaf *leaves, size_t capacity,
                                                   size_t *count);
/* Finds the output chunks in which the collective wants what that chunk holds, as pairs (rank, index), sorted. There
 * are none if its contributions belong to different output chunks. *count, places and capacity as for _origins(). */
POLYCCL_API polyccl_result polyccl_program_destinations(polyccl_program *program, const polyccl_ref *ref, int index,
                                                        polyccl_location at, polyccl_leaf *places, size_t capacity,
                                                        size_t *count);
/* Cuts the operations until the matching end into `instances` parts that run beside one another (parallelize
 * of MSCCLang). Scopes may nest; their factors multiply, up to 1024. INVALID if no scope is open at an end. */
POLYCCL_API polyccl_result polyccl_program_parallel_begin(polyccl_program *program, int instances, polyccl_location at);
POLYCCL_API polyccl_result polyccl_program_parallel_end(polyccl_program *program);

/* Adds a task (ResCCL, SIGCOMM'25): chunk `chunk` of rank `src` goes to the same chunk of rank `dst`, which stores it
 * (reduce false, "recv") or adds it to its own (reduce true, "rrc"). Chunks are those of the larger of input and
 * output; the program must be in place. The program keeps transfers until polyccl_program_finish(), which replays them
 * as copies and reductions, sorted by step and then by the order of the calls. A program with transfers must not use
 * copy() and reduce(). */
POLYCCL_API polyccl_result polyccl_program_transfer(polyccl_program *program, int src, int dst, int step, int chunk,
                                                    bool reduce, polyccl_location at);
/* Ends the program: replays its transfers; does nothing if it has none. Errors are those of copy() and reduce(). */
POLYCCL_API polyccl_result polyccl_program_finish(polyccl_program *program);

typedef struct polyccl_program_summary {
  int ranks, chunks; /* chunks per block as written, before replication */
  size_t operations; /* number of copies and reductions */
  size_t remote;     /* how many of these are between two ranks */
  int longest;       /* operations on the longest chain of dependencies */
  bool identical;    /* all ranks get the same bits, since each chunk has one reduction order */
} polyccl_program_summary;

/* Runs the program symbolically and proves that every output chunk holds exactly its contributions. INVALID with the
 * first wrong output chunk: what it holds too often, what it lacks, and the author's line that wrote it. `summary` may
 * be NULL; it is set on success only. */
POLYCCL_API polyccl_result polyccl_program_check(const polyccl_program *program, polyccl_program_summary *summary);

#ifdef __cplusplus
}
#endif

#endif
