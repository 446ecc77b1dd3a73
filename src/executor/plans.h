/* Plans as one rank runs them.
 *
 * Loaded: this rank's part of a plan, with its connections by number and the remote sides of its messages. It lies in
 * the plan's image (image.h), which the ranks of a host share.
 * Prepared: a loaded plan for one count, type and reduction: every place an offset in bytes, the number of
 * micro-batches chosen. Both are immutable and counted by references, which any thread may take and give back. The
 * state of a call lies in its execution (execute.h). */
#ifndef PCCL_EXECUTOR_PLANS_H
#define PCCL_EXECUTOR_PLANS_H

#include "kernel/step.h"
#include "program/collective.h"
#include "transport/member.h"

enum { PCCL_BUFFERS = 3, PCCL_MAX_PLAN_CHANNEL = (1 << 24) - 1 };

/* A chunk range of a buffer. */
typedef struct pccl_chunk_place {
  int32_t buffer, chunk; /* buffer -1: none */
} pccl_chunk_place;

typedef struct pccl_loaded_step {
  uint8_t op, flags;
  int32_t count;
  pccl_chunk_place src, dst;
  pccl_chunk_place remote_src,
      remote_dst;      /* of the step that sends our message, that receives it; -1: none by reference */
  bool remote_reduces; /* what it sends is reduced where it arrives */
  int32_t recv, send;  /* in links, or -1 */
  int32_t wait, waits;
  uint64_t addends; /* in the plan's addends, of its first chunk; where it reduces */
} pccl_loaded_step;

typedef struct pccl_link {
  int32_t src, dst, channel;
} pccl_link;

typedef struct pccl_loaded_tb {
  uint32_t step, steps;
} pccl_loaded_tb;

typedef struct pccl_loaded {
  atomic_int references;
  char *name;
  int id;               /* the number that the communicator knows it by; -1: the library's own */
  uint64_t fingerprint; /* of the plan */
  pccl_collective_spec spec;
  polyccl_protocol protocol;
  polyccl_loop_order order;
  uint64_t min_bytes, max_bytes;
  uint32_t redops;
  bool uneven;
  bool alias_safe; /* out of place, and right on ranks in place, too (plan/alias.h) */
  bool reduces;
  bool lends;    /* some step may go by reference */
  bool averages; /* addends are known */
  bool uniform;  /* on all ranks each step has the same for all its chunks */
  bool uses[PCCL_BUFFERS];
  int32_t chunks[PCCL_BUFFERS];
  int32_t largest; /* the largest count of a step, on any rank */
  uint32_t depth;  /* of the rings, a power of two */
  int log2_ring;   /* bytes of a ring */
  uint32_t tbs, steps, waits, links;
  struct pccl_image *image; /* image.h: where the arrays lie */
  const pccl_loaded_tb *tb;
  const pccl_loaded_step *step;
  const polyccl_wait *wait;
  const pccl_link *link;
  const uint64_t *addends;               /* of reducing steps, by chunk: PCCL_K_ADDENDS */
  struct pccl_generated_code *generated; /* generated.h; NULL: interpreted */
} pccl_loaded;

/* A piece of a step that is contiguous on every side: offsets in bytes from the buffers' bases, valid lengths in
 * elements (a short chunk's end). */
typedef struct pccl_run {
  size_t src, dst, remote_src, remote_dst;
  size_t src_len, dst_len, remote_src_len, remote_dst_len;
  uint64_t addends; /* of an average */
} pccl_run;

typedef struct pccl_prepared_step {
  uint8_t op;
  uint8_t src_buf, dst_buf, remote_src_buf, remote_dst_buf;
  uint8_t lent_buf;                                             /* where what it sends stands afterwards */
  bool may_get, may_get_in_place, may_put, may_copy, put_first; /* of what it sends; may_get: out of place */
  bool may_fetch;                                               /* what it receives may come by copy */
  uint32_t waits, runs;
  const polyccl_wait *wait;
  const pccl_run *run;
  size_t len; /* elements of each run, a short chunk counted in full */
  pccl_end *recv, *send;
} pccl_prepared_step;

typedef struct pccl_prepared_tb {
  const pccl_prepared_step *step;
  uint32_t steps;
} pccl_prepared_tb;

typedef struct pccl_prepared {
  struct pccl_prepared *next; /* in the cache of the executor */
  atomic_int references;
  pccl_loaded *plan;
  size_t count;
  polyccl_dtype dtype;
  polyccl_redop op;

  pccl_arithmetic arithmetic;
  polyccl_protocol protocol;
  size_t stride; /* elements of a chunk, a short one counted in full */
  size_t tile;   /* elements of a chunk per micro-batch */
  uint64_t batches;
  uint32_t depth;
  size_t slot_bytes;
  uint32_t signature; /* of what all ranks must have alike */
  bool lends;         /* buffers are announced, slots begin with a note */
  bool copies;        /* what this rank sends of private memory may be read through the kernel */
  size_t bytes[PCCL_BUFFERS];
  pccl_prepared_tb *tb;
  pccl_prepared_step *step;
  pccl_run *run;
  pccl_end **sender, **receiver; /* the ends that it uses */
  uint32_t senders, receivers;
} pccl_prepared;

pccl_loaded *pccl_loaded_keep(pccl_loaded *loaded);
void pccl_loaded_release(pccl_loaded *loaded); /* NULL is allowed */

/* What runs plans for one member. */
typedef struct pccl_executor {
  pccl_member member;
  const pccl_kernels *kernels;
  size_t cache_bytes;    /* the last level's */
  pccl_prepared *recent; /* newest first */
  size_t prepared;
  /* Lent to the operation that runs. */
  struct pccl_lease {
    struct pccl_tb_state *state;
    size_t states;
    void *scratch;
    size_t scratch_bytes;
    struct pccl_generated_run *generated;
    struct pccl_exchange *exchange;
  } lease;
  struct pccl_call_trace *trace; /* steps are recorded there; NULL: they are not */
} pccl_executor;

/* Takes the part of `rank` from the plan's image, which the first rank of the host makes that asks for it and proves.
 * `buffer_bytes` bounds the slots of a rank's receiving ends. The caller owns a reference. */
polyccl_result pccl_load(const polyccl_plan *plan, pccl_member *member, size_t buffer_bytes, pccl_loaded **loaded);

/* From the cache or new; it stays valid until the next call of this function, and longer for who keeps it. INVALID,
 * UNSUPPORTED: the plan cannot do this call, with the reason. */
polyccl_result pccl_prepare(pccl_executor *executor, pccl_loaded *plan, size_t count, polyccl_dtype dtype,
                            polyccl_redop op, pccl_prepared **prepared);
pccl_prepared *pccl_prepared_keep(pccl_prepared *prepared);
void pccl_prepared_release(pccl_prepared *prepared); /* NULL is allowed */

/* The end of a connection of the plan. */
polyccl_result pccl_plan_end(pccl_executor *executor, const pccl_loaded *plan, const pccl_link *link, bool sender,
                             pccl_end **end);

/* Finds out what the machine has. The member is already there. */
void pccl_executor_init(pccl_executor *executor);
/* Frees everything but the member. */
void pccl_executor_free(pccl_executor *executor);

#endif
