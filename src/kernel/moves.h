/* What the steps of a plan do: the abstract machine of docs/plan.md in portable source, for generated kernels. A plan
 * fixes the op, places, connections and counts of each step, so these arguments are constants at every call and fold
 * away. kernel/step.h is the same for the interpreter; tests/unit/step_semantics.c compares the two.
 *
 * A call's data are one pccl_k_call per rank, one pccl_k_end per direction of a connection and one pccl_k_block per
 * thread block. The runtime (C) or the host part of a device executor (CUDA, HIP) fills them. Message numbers continue
 * from call to call.
 *
 * A slot's content depends on the protocol:
 *
 * - Simple: the slot holds the message's bytes. `tail` counts messages sent, `head` messages consumed.
 * - LL: the slot holds 8-byte words, each with 4 bytes of data and a 4-byte flag. One atomic access writes or reads a
 *   word, so a word with its flag carries its data.
 * - LL128: the slot holds 128-byte lines, each with an 8-byte flag and 120 bytes of data. The writer stores the data
 *   first and then the flag with release.
 *
 * A flag is the message's number, with LL128 in C beside its call's signature. */
#ifndef PCCL_KERNEL_MOVES_H
#define PCCL_KERNEL_MOVES_H

#include "kernel/device.h"
#include "kernel/mean.h"

enum { PCCL_K_VERSION = 4 }; /* of the layout of the types below and of what generated files export */
enum { PCCL_K_SIMPLE = 0, PCCL_K_LL = 1, PCCL_K_LL128 = 2 };
enum {
  PCCL_K_NOP = 0,
  PCCL_K_SEND,
  PCCL_K_RECV,
  PCCL_K_RCS,
  PCCL_K_RRC,
  PCCL_K_RRCS,
  PCCL_K_RRS,
  PCCL_K_COPY,
  PCCL_K_REDUCE
};
enum { PCCL_K_LL_DATA = 4, PCCL_K_LL128_DATA = 120, PCCL_K_LL128_LINE = 128, PCCL_K_PIECE = 1920 };

typedef struct pccl_k_end {
  uint64_t *tail, *head; /* shared with the peer */
  char *slots;
  uint32_t *signature; /* C, Simple: of message m at m & signature_mask */
  uint64_t signature_mask;
  uint64_t count;  /* messages that this end has sent or received */
  uint64_t cached; /* the other side's counter when it was last read */
} pccl_k_end;

typedef struct pccl_k_block {
  uint64_t done; /* steps ended, each micro-batch counted */
  uint64_t batch;
  uint32_t at; /* C: the step to return to */
  uint32_t ended;
  uint64_t arrived; /* C, LL and LL128: bytes of the awaited message that have arrived */
} pccl_k_block;

typedef void (*pccl_k_reduce_fn)(void *dst, const void *a, const void *b, size_t n, uint64_t addends);

typedef struct pccl_k_call {
  char *buffer[3];            /* input, output, scratch */
  uint64_t count, stride;     /* elements of a block and of a chunk (docs/plan.md, Counts that chunks do not divide) */
  uint64_t tile, batches;     /* elements of a chunk in a micro-batch */
  uint64_t slot_bytes, depth; /* of every connection; depth is a power of two */
  uint32_t element;           /* bytes */
  uint32_t chunks;            /* of a block */
  uint32_t dtype, redop;      /* polyccl_dtype, polyccl_redop: GPU */
  pccl_k_reduce_fn reduce;    /* C */
  uint32_t signature;         /* C: of this call; it travels with the messages */
  pccl_k_end *recv, *send;    /* the rank's ends by the plan's numbers */
  pccl_k_block *block;        /* the rank's thread blocks */
  const uint64_t *stop;       /* GPU: the call must end once this is not 0 */
} pccl_k_call;

/* The chunks of a block. A generated file defines this as the plan's constant. */
#ifndef PCCL_K_CHUNKS
#define PCCL_K_CHUNKS (c->chunks)
#endif

typedef struct pccl_k_span {
  char *at;
  size_t n; /* valid elements; the last chunk of a block may be short */
} pccl_k_span;

PCCL_FN uint64_t pccl_k_min(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Elements [start, start + n) of a chunk of a buffer. */
PCCL_FN pccl_k_span pccl_k_locate(const pccl_k_call *c, int buffer, uint64_t chunk, uint64_t start, uint64_t n) {
  pccl_k_span span;
  if (buffer == 2) {
    span.at = c->buffer[2] + (chunk * c->stride + start) * c->element;
    span.n = n;
    return span;
  }
  uint64_t block = chunk / PCCL_K_CHUNKS, within = chunk % PCCL_K_CHUNKS;
  uint64_t first = pccl_k_min(within * c->stride + start, c->count);
  span.at = c->buffer[buffer] + (block * c->count + first) * c->element;
  span.n = pccl_k_min(n, c->count - first);
  return span;
}

PCCL_FN char *pccl_k_slot(const pccl_k_call *c, const pccl_k_end *end) {
  return end->slots + (end->count & (c->depth - 1)) * c->slot_bytes;
}

/* ---- plain bytes and elements, all threads of the block together ---- */

#if PCCL_GPU
typedef struct __attribute__((aligned(16))) PCCL_ALIAS pccl_k_pack {
  uint64_t low, high;
} pccl_k_pack;

PCCL_FN int pccl_k_packable(uintptr_t places) { return (places & (sizeof(pccl_k_pack) - 1)) == 0; }

/* Each thread issues several loads before its first store. Out of line, since every step calls it. */
static __device__ __noinline__ void pccl_k_copy(char *dst, const char *src, size_t bytes) {
  enum { AT_ONCE = 4 };
  size_t t = pccl_k_thread(), all = pccl_k_threads(), i = t;
  size_t packs = pccl_k_packable((uintptr_t)dst | (uintptr_t)src) ? bytes / sizeof(pccl_k_pack) : 0;
  pccl_k_pack *to = (pccl_k_pack *)dst, some[AT_ONCE];
  const pccl_k_pack *from = (const pccl_k_pack *)src;
  for (; i + (AT_ONCE - 1) * all < packs; i += AT_ONCE * all) {
    PCCL_UNROLL
    for (int k = 0; k < AT_ONCE; k++) {
      some[k] = from[i + (size_t)k * all];
    }
    PCCL_UNROLL
    for (int k = 0; k < AT_ONCE; k++) {
      to[i + (size_t)k * all] = some[k];
    }
  }
  for (; i < packs; i += all) {
    to[i] = from[i];
  }
  for (i = packs * sizeof(pccl_k_pack) + t; i < bytes; i += all) {
    dst[i] = src[i];
  }
}

/* True: the host wants the call to end. */
PCCL_FN int pccl_k_stopped(const pccl_k_call *c) { return pccl_k_load_relaxed(c->stop) != 0; }

/* A thread calls this after its `polls`-th poll in vain. True: the call must end. */
PCCL_FN int pccl_k_give_up(const pccl_k_call *c, uint32_t polls) {
  PCCL_K_PAUSE();
  return (polls & (PCCL_K_BACKOFF - 1)) == 0 && pccl_k_stopped(c);
}

#include "kernel/elements.h"
#else
PCCL_FN void pccl_k_copy(char *dst, const char *src, size_t bytes) { memmove(dst, src, bytes); }

PCCL_FN void pccl_k_reduce(const pccl_k_call *c, char *dst, char *out, const char *a, const char *b, size_t n,
                           uint64_t addends) {
  c->reduce(dst, a, b, n, addends);
  if (out != NULL) {
    memcpy(out, dst, n * c->element);
  }
}
#endif

/* ---- lines ---- */

PCCL_FN uint64_t pccl_k_ll_flag(uint64_t message) { return (uint64_t)((uint32_t)message | 0x80000000u) << 32; }

/* What the flags of a message's lines are made of. */
PCCL_FN uint64_t pccl_k_stamp(const pccl_k_call *c, int protocol, const pccl_k_end *end) {
#if PCCL_GPU
  (void)c, (void)protocol;
  return end->count;
#else
  return protocol == PCCL_K_LL128 ? end->count << 24 | (c->signature & 0xffffff) : end->count;
#endif
}

/* The distance in payload bytes between the chunks of a message; `bytes` is the size of one. Each starts on a line. */
PCCL_FN size_t pccl_k_pitch(int protocol, size_t bytes) {
  size_t unit = protocol == PCCL_K_LL ? PCCL_K_LL_DATA : protocol == PCCL_K_LL128 ? PCCL_K_LL128_DATA : 64;
  return (bytes + unit - 1) / unit * unit;
}

#if PCCL_GPU
#include "kernel/lines_gpu.h"
#else
#include "kernel/lines_c.h"
#endif

/* ---- a step ---- */

/* Elements [start, start + n) of micro-batch `batch` of every chunk. */
PCCL_FN uint64_t pccl_k_start(const pccl_k_call *c, uint64_t batch) { return batch * c->tile; }
PCCL_FN uint64_t pccl_k_length(const pccl_k_call *c, uint64_t batch) {
  return pccl_k_min(c->tile, c->stride - batch * c->tile);
}

/* True: thread block `tb` of this rank has ended its `index`-th execution of a step. */
PCCL_FN int pccl_k_ended(const pccl_k_call *c, int tb, uint64_t index) {
  return pccl_k_load(&c->block[tb].done) > index;
}

PCCL_FN int pccl_k_arrived(const pccl_k_call *c, pccl_k_block *b, int protocol, pccl_k_end *end, size_t bytes) {
  if (protocol == PCCL_K_SIMPLE) {
    if (end->cached <= end->count) {
      end->cached = pccl_k_load(end->tail);
    }
#if PCCL_GPU
    return end->cached > end->count;
#else
    return end->cached > end->count &&
           __atomic_load_n(&end->signature[end->count & end->signature_mask], __ATOMIC_RELAXED) == c->signature;
#endif
  }
  return pccl_k_lines_arrived(protocol, pccl_k_slot(c, end), &b->arrived, bytes, pccl_k_stamp(c, protocol, end));
}

PCCL_FN int pccl_k_credit(const pccl_k_call *c, pccl_k_end *end) {
  if (end->count - end->cached >= c->depth) {
    end->cached = pccl_k_load(end->head);
  }
  return end->count - end->cached < c->depth;
}

/* Executes a step on one chunk; the message's part for this chunk starts `at` payload bytes into the slot. True: the
 * host told it to stop while it waited for lines. */
PCCL_FN int pccl_k_move_chunk(const pccl_k_call *c, int protocol, int op, const pccl_k_end *recv,
                              const pccl_k_end *send, pccl_k_span src, pccl_k_span dst, size_t n, size_t at,
                              uint64_t addends) {
  size_t e = c->element;
  if (op == PCCL_K_COPY) {
    if (dst.at != src.at) { /* in place they may be one */
      pccl_k_copy(dst.at, src.at, pccl_k_min(src.n, dst.n) * e);
    }
    return 0;
  }
  if (op == PCCL_K_REDUCE) {
    pccl_k_reduce(c, dst.at, NULL, dst.at, src.at, pccl_k_min(src.n, dst.n), addends);
    return 0;
  }
  char *in = recv != NULL ? pccl_k_slot(c, recv) : NULL, *out = send != NULL ? pccl_k_slot(c, send) : NULL;
  if (protocol != PCCL_K_SIMPLE) {
    return pccl_k_lines_move(c, protocol, op, in, recv != NULL ? pccl_k_stamp(c, protocol, recv) : 0, out,
                             send != NULL ? pccl_k_stamp(c, protocol, send) : 0, src, dst, n, at, addends);
  }
  switch (op) {
    case PCCL_K_SEND: pccl_k_copy(out + at, src.at, src.n * e); break;
    case PCCL_K_RECV: pccl_k_copy(dst.at, in + at, dst.n * e); break;
    case PCCL_K_RCS:
      pccl_k_copy(out + at, in + at, n * e);
      pccl_k_copy(dst.at, in + at, dst.n * e);
      break;
    case PCCL_K_RRC: pccl_k_reduce(c, dst.at, NULL, src.at, in + at, pccl_k_min(src.n, dst.n), addends); break;
    case PCCL_K_RRS: pccl_k_reduce(c, out + at, NULL, src.at, in + at, src.n, addends); break;
    case PCCL_K_RRCS: pccl_k_reduce(c, dst.at, out + at, src.at, in + at, pccl_k_min(src.n, dst.n), addends); break;
    default: break;
  }
  return 0;
}

/* Executes a step on all its chunks in one micro-batch. `recv` and `send` are numbers of ends, or -1. The addends of
 * chunk k are addends[k * every]. True: the host told it to stop. */
PCCL_FN int pccl_k_move(const pccl_k_call *c, uint64_t batch, int protocol, int op, int recv, int send, int src_buffer,
                        uint64_t src, int dst_buffer, uint64_t dst, uint64_t chunks, const uint64_t *addends,
                        uint64_t every) {
  uint64_t start = pccl_k_start(c, batch), n = pccl_k_length(c, batch);
  size_t pitch = pccl_k_pitch(protocol, n * c->element);
  int stop = 0;
  for (uint64_t k = 0; k < chunks && !stop; k++) {
    stop = pccl_k_move_chunk(c, protocol, op, recv >= 0 ? &c->recv[recv] : NULL, send >= 0 ? &c->send[send] : NULL,
                             pccl_k_locate(c, src_buffer, src + k, start, n),
                             pccl_k_locate(c, dst_buffer, dst + k, start, n), n, k * pitch,
                             addends != NULL ? addends[k * every] : 0);
  }
  return stop;
}

/* Publishes the message sent, gives back the slot of the message received, and counts the step as ended. */
PCCL_FN void pccl_k_post(pccl_k_call *c, pccl_k_block *b, int protocol, int recv, int send) {
  pccl_k_fence();
  if (send >= 0) {
#if !PCCL_GPU
    pccl_k_end *end = &c->send[send];
    if (protocol == PCCL_K_SIMPLE) {
      __atomic_store_n(&end->signature[end->count & end->signature_mask], c->signature, __ATOMIC_RELAXED);
    }
#endif
    c->send[send].count++;
    if (protocol == PCCL_K_SIMPLE) {
      pccl_k_store_fenced(c->send[send].tail, c->send[send].count);
    }
  }
  if (recv >= 0) {
    c->recv[recv].count++;
    pccl_k_store_fenced(c->recv[recv].head, c->recv[recv].count);
  }
  b->arrived = 0;
  pccl_k_store_fenced(&b->done, b->done + 1);
}

/* True: the step's message has arrived, and there is a free slot for what it sends. */
PCCL_FN int pccl_k_ready(pccl_k_call *c, pccl_k_block *b, uint64_t batch, int protocol, int recv, int send,
                         uint64_t chunks) {
  size_t bytes = chunks * pccl_k_pitch(protocol, pccl_k_length(c, batch) * c->element);
  return (recv < 0 || pccl_k_arrived(c, b, protocol, &c->recv[recv], bytes)) &&
         (send < 0 || pccl_k_credit(c, &c->send[send]));
}

/* ---- the parts of a generated function ----
 *
 *   PCCL_K_FUNCTION(rank0_tb1) {
 *     PCCL_K_BEGIN
 *     PCCL_K_BATCHES {                       batch-major: all steps for each micro-batch
 *       PCCL_K_STEP(1, waits, op, recv, send, src_buffer, src, dst_buffer, dst, chunks, addends, every)
 *     }
 *     PCCL_K_END
 *   }
 *
 * A task-major plan has one PCCL_K_BATCHES for each step. PCCL_K_WAIT(tb, steps, step) is a wait of a step in a
 * batch-major plan, where `steps` is the number of steps of thread block `tb`; PCCL_K_WAIT_TASK(tb, step) is the same
 * in a task-major plan. PCCL_K_PROTOCOL is the plan's protocol. */
#if PCCL_GPU
#define PCCL_K_BATCH batch
#else
#define PCCL_K_BATCH b->batch
#endif
#define PCCL_K_WAIT(tb, steps, step) pccl_k_ended(c, tb, PCCL_K_BATCH *(steps) + (step))
#define PCCL_K_WAIT_TASK(tb, step) pccl_k_ended(c, tb, (uint64_t)(step)*c->batches + PCCL_K_BATCH)

#if PCCL_GPU
/* Thread 0 polls, and the others wait for it at a barrier, from which all continue or all leave. Counts change between
 * the second barrier and the next step's first, where only thread 0 is active. */
#define PCCL_K_FUNCTION(name) static __device__ __noinline__ void name(pccl_k_call *c, pccl_k_block *b)
#define PCCL_K_BEGIN
#define PCCL_K_BATCHES for (uint64_t batch = 0; batch < c->batches; batch++)
#define PCCL_K_STEP(number, waits, op, recv, send, src_buffer, src, dst_buffer, dst, chunks, addends, every)         \
  {                                                                                                                  \
    int stop = 0;                                                                                                    \
    if (pccl_k_thread() == 0) {                                                                                      \
      uint32_t polls = 0;                                                                                            \
      while (!stop && !((waits) && pccl_k_ready(c, b, batch, PCCL_K_PROTOCOL, recv, send, chunks))) {                \
        stop = pccl_k_give_up(c, ++polls);                                                                           \
      }                                                                                                              \
    }                                                                                                                \
    if (pccl_k_any(stop)) {                                                                                          \
      return;                                                                                                        \
    }                                                                                                                \
    stop = pccl_k_move(c, batch, PCCL_K_PROTOCOL, op, recv, send, src_buffer, src, dst_buffer, dst, chunks, addends, \
                       every);                                                                                       \
    if (pccl_k_any(stop)) {                                                                                          \
      return;                                                                                                        \
    }                                                                                                                \
    if (pccl_k_thread() == 0) {                                                                                      \
      pccl_k_post(c, b, PCCL_K_PROTOCOL, recv, send);                                                                \
    }                                                                                                                \
  }
#define PCCL_K_END pccl_k_leave(b);
PCCL_FN void pccl_k_leave(pccl_k_block *b) {
  if (pccl_k_thread() == 0) {
    b->ended = 1;
  }
}
#else
typedef int (*pccl_k_function)(pccl_k_call *, pccl_k_block *);

/* A loaded file exports this as `pccl_generated`. */
typedef struct pccl_k_generated {
  uint32_t version, call_bytes;       /* PCCL_K_VERSION, sizeof(pccl_k_call) */
  uint64_t fingerprint;               /* of the plan */
  const pccl_k_function *const *rank; /* [ranks][thread blocks] */
} pccl_k_generated;

/* A step that cannot run leaves the function, and the next call returns to it. True: a step ran. */
#define PCCL_K_FUNCTION(name) static int name(pccl_k_call *c, pccl_k_block *b)
#define PCCL_K_BEGIN \
  int moved = 0;     \
  switch (b->at) {   \
    case 0:
#define PCCL_K_BATCHES for (b->batch = 0; b->batch < c->batches; b->batch++)
#define PCCL_K_STEP(number, waits, op, recv, send, src_buffer, src, dst_buffer, dst, chunks, addends, every)     \
  __attribute__((fallthrough));                                                                                  \
  case number:                                                                                                   \
    if (!((waits) && pccl_k_ready(c, b, b->batch, PCCL_K_PROTOCOL, recv, send, chunks))) {                       \
      b->at = number;                                                                                            \
      return moved;                                                                                              \
    }                                                                                                            \
    pccl_k_move(c, b->batch, PCCL_K_PROTOCOL, op, recv, send, src_buffer, src, dst_buffer, dst, chunks, addends, \
                every);                                                                                          \
    pccl_k_post(c, b, PCCL_K_PROTOCOL, recv, send);                                                              \
    moved = 1;
#define PCCL_K_END \
  }                \
  b->ended = 1;    \
  return moved;
#endif

#endif
