/* The program's inside, for its own folder, the compiler and the pictures: a list of operations in the order they were
 * written, after every reference was checked. */
#ifndef PCCL_PROGRAM_PROGRAM_H
#define PCCL_PROGRAM_PROGRAM_H

#include <polyccl/program.h>
#include <polyccl/topology.h>

#include "base/map.h"
#include "base/vec.h"
#include "program/collective.h"

/* Bounds on what a program may make others allocate and do; docs/bounds.md has them all. */
enum {
  PCCL_MAX_CELLS = 1 << 25,     /* chunks of user memory over all ranks; chunks of scratch over all ranks */
  PCCL_MAX_SCRATCHES = 1 << 24, /* scratch buffers, counted on every rank */
  PCCL_MAX_MOVES = 1 << 23,     /* operations, each once per instance and part of its scopes */
  PCCL_MAX_MOVED = 1 << 26,     /* chunks that operations move, after replication */
};

/* What comes after the program can take: asked as soon as it is declared, before any of its operations is made. The
 * result is the error of the declaration. check NULL: everything. */
typedef struct pccl_accept {
  polyccl_result (*check)(const void *context, const polyccl_program_config *config);
  const void *context;
} pccl_accept;

static inline polyccl_result pccl_accept_program(const pccl_accept *accept, const polyccl_program_config *config) {
  return accept != NULL && accept->check != NULL ? accept->check(accept->context, config) : POLYCCL_SUCCESS;
}

typedef struct pccl_place {
  int32_t rank, buffer, index;
} pccl_place;

typedef enum pccl_operation_kind { PCCL_COPY = 0, PCCL_REDUCE } pccl_operation_kind;

typedef struct pccl_operation {
  pccl_place src, dst;
  int32_t size;
  int32_t location; /* index into locations */
  int32_t parallel; /* product of the enclosing scopes' factors */
  polyccl_hints hints;
  uint8_t kind;
} pccl_operation;

typedef struct pccl_scratch {
  char *name;
  int32_t *length; /* [ranks] chunks in use */
} pccl_scratch;

typedef struct pccl_line {
  int32_t file, line;
} pccl_line;

/* Of custom collectives; key = rank * output chunks + chunk. */
typedef struct pccl_post_list {
  int32_t leaf, leaves; /* in program->post_leaves */
} pccl_post_list;

typedef struct pccl_transfer {
  int32_t src, dst, step, chunk;
  int32_t order;       /* of the call */
  polyccl_location at; /* its file's text is the program's */
  bool reduce;
} pccl_transfer;

struct polyccl_program {
  polyccl_program_config config;
  char *name;
  pccl_collective_spec spec;
  int input, output, cells; /* chunks per rank */
  PCCL_VEC(pccl_operation) operations;
  PCCL_VEC(pccl_scratch) scratch;
  PCCL_VEC(pccl_line) locations;
  PCCL_VEC(char *) files;
  pccl_map line_index; /* file << 32 | line -> location */
  /* per rank and buffer: 0 untouched, else 1 + the operation that wrote it last. [0] is user memory by cell. */
  PCCL_VEC(uint64_t *) written;         /* [rank] */
  PCCL_VEC(uint64_t *) scratch_written; /* [scratch * ranks + rank], each as long as scratch_room */
  PCCL_VEC(int32_t) scratch_room;
  pccl_map scratch_index;     /* hash of a name -> scratch */
  int64_t scratch_chunks;     /* over all ranks */
  int64_t moves, moved;       /* operations, each once per part of its scopes; the chunks that all move, as written */
  PCCL_VEC(int32_t) parallel; /* stack of products */
  int32_t refine;             /* parts that every chunk is cut into: instances x lcm of the scopes' factors */
  PCCL_VEC(pccl_transfer) transfers; /* not yet replayed */
  pccl_map absent;                   /* rank * input + chunk */
  pccl_map posts;                    /* -> index into post_lists */
  PCCL_VEC(pccl_post_list) post_lists;
  PCCL_VEC(polyccl_leaf) post_leaves;
  polyccl_topology *topology;     /* whose links operations must follow; NULL: any pair of ranks is linked */
  pccl_map links;                 /* src * ranks + dst -> 1 where it links them, 0 where it does not (links.c) */
  struct pccl_contents *contents; /* of all chunks, as far as origins were asked for (origins.c) */
};

polyccl_location pccl_program_location(const polyccl_program *program, int32_t location);

/* The index of the place in the program's locations, added if it is new; -1: no memory. */
int32_t pccl_program_intern_location(polyccl_program *program, polyccl_location at);

/* "rank 3 output[2]" or "rank 3 tmp[1..4]" into text (bytes at least 128); returns text. */
const char *pccl_place_name(const polyccl_program *program, pccl_place place, int size, char *text, size_t bytes);

/* LIMIT where the program with one more operation (or as it is: NULL), in `refine` parts of a chunk and `instances`
 * copies, passes a bound on operations or chunks moved. */
polyccl_result pccl_program_check_amount(const polyccl_program *program, const pccl_operation *more, int32_t instances,
                                         int32_t refine, polyccl_location at);

/* INVALID for a reference that is out of range or stale. */
polyccl_result pccl_program_check_ref(polyccl_program *program, const polyccl_ref *ref, polyccl_location at);

/* How many entries polyccl_program_origins() has to list, repeated ones included. Unlike that function, this one lists
 * nothing, so it takes the same time for every number. Saturates at UINT32_MAX. */
polyccl_result pccl_program_count_origins(polyccl_program *program, const polyccl_ref *ref, int index,
                                          polyccl_location at, uint32_t *count);

/* INVALID where the program's topology has no link from src to dst. */
polyccl_result pccl_program_check_link(polyccl_program *program, int src, int dst, polyccl_location at);

void pccl_contents_free(struct pccl_contents *contents); /* NULL is fine */

/* The program's own copy of a file name; NULL: no memory. */
const char *pccl_program_file(polyccl_program *program, const char *file);

/* INVALID when transfers wait for polyccl_program_finish(). */
polyccl_result pccl_program_finished(const polyccl_program *program);

/* What an input chunk of a custom collective holds at the start: true unless it was declared absent. */
bool pccl_program_held(const polyccl_program *program, int rank, int chunk);

#endif
