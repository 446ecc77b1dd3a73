/* What a step does with its message under each protocol, for the interpreter on a CPU (executor/execute.c).
 * kernel/moves.h is the same for generated code; tests/unit/step_semantics.c compares the two. The functions are inline
 * and make no OS calls. The caller has checked that the message has arrived and the slot is free, and it notifies the
 * peer afterwards. */
#ifndef PCCL_KERNEL_STEP_H
#define PCCL_KERNEL_STEP_H

#include <string.h>

#include <polyccl/plan.h>

#include "base/size.h"
#include "kernel/lines.h"
#include "kernel/reduce.h"

/* What the steps of a call need to know of its elements. */
typedef struct pccl_arithmetic {
  const pccl_kernels *kernels;
  pccl_reduce_fn reduce;
  size_t element; /* bytes */
  bool stream;    /* results bypass the cache; the caller calls stream_fence at the end */
} pccl_arithmetic;

/* One run of chunks in one micro-batch. Lengths are elements; a NULL place is not used. */
typedef struct pccl_move {
  const char *src;
  char *dst;
  const char *in; /* the message received: a slot, or with Simple any memory */
  char *out;      /* the place of the message sent, likewise */
  size_t n, src_n, dst_n, in_n, out_n;
  size_t at; /* line protocols: payload bytes before this run in its message */
  uint64_t addends;
  uint64_t in_number, out_number;
} pccl_move;

static inline void pccl_put_bytes(const pccl_arithmetic *p, bool stream, void *dst, const void *src, size_t bytes) {
  if (dst == src || dst == NULL) { /* by put the data is there already; by get it stays in its place */
    return;
  }
  if (stream) {
    p->kernels->stream_copy(dst, src, bytes);
  } else {
    memcpy(dst, src, bytes);
  }
}

enum { PCCL_REDUCE_BLOCK = 8192 };

/* dst = out = a op b through L1: each source is read once, and each destination is written once. */
static inline void pccl_reduce_blocks(const pccl_arithmetic *p, bool stream_out, const char *a, const char *b, size_t n,
                                      char *dst, size_t dst_n, char *out, size_t out_n, uint64_t addends) {
  _Alignas(64) char block[PCCL_REDUCE_BLOCK];
  size_t e = p->element, max = PCCL_REDUCE_BLOCK / e;
  for (size_t i = 0; i < n; i += max) {
    size_t m = pccl_min_size(max, n - i);
    p->reduce(block, a + i * e, b + i * e, m, addends);
    if (dst_n > i) {
      pccl_put_bytes(p, p->stream, dst + i * e, block, pccl_min_size(m, dst_n - i) * e);
    }
    if (out_n > i) {
      pccl_put_bytes(p, stream_out, out + i * e, block, pccl_min_size(m, out_n - i) * e);
    }
  }
}

static inline void pccl_reduce_into(const pccl_arithmetic *p, char *dst, size_t n, const char *a, const char *b,
                                    uint64_t addends) {
  if (p->stream && dst != a && dst != b) {
    pccl_reduce_blocks(p, false, a, b, n, dst, n, NULL, 0, addends);
  } else {
    p->reduce(dst, a, b, n, addends);
  }
}

/* Messages in memory: slots of the Simple protocol, or the peer's buffers. `remote`: `out` is a
 * peer's buffer. */
static inline void pccl_move_memory(const pccl_arithmetic *p, uint8_t op, const pccl_move *m, bool remote) {
  size_t e = p->element;
  bool stream_out = remote && p->stream;
  switch (op) {
    case POLYCCL_STEP_SEND: pccl_put_bytes(p, stream_out, m->out, m->src, pccl_min_size(m->src_n, m->out_n) * e); break;
    case POLYCCL_STEP_RECV: pccl_put_bytes(p, p->stream, m->dst, m->in, pccl_min_size(m->in_n, m->dst_n) * e); break;
    case POLYCCL_STEP_RCS:
      pccl_put_bytes(p, stream_out, m->out, m->in, pccl_min_size(m->in_n, m->out_n) * e);
      pccl_put_bytes(p, p->stream, m->dst, m->in, pccl_min_size(m->in_n, m->dst_n) * e);
      break;
    case POLYCCL_STEP_RRC:
      pccl_reduce_into(p, m->dst, pccl_min_size(pccl_min_size(m->src_n, m->in_n), m->dst_n), m->src, m->in, m->addends);
      break;
    case POLYCCL_STEP_RRCS: {
      size_t n = pccl_min_size(m->src_n, m->in_n);
      if (m->out == NULL) {
        pccl_reduce_into(p, m->dst, pccl_min_size(n, m->dst_n), m->src, m->in, m->addends);
      } else {
        pccl_reduce_blocks(p, stream_out, m->src, m->in, n, m->dst, m->dst_n, m->out, m->out_n, m->addends);
      }
      break;
    }
    case POLYCCL_STEP_RRS: {
      size_t n = pccl_min_size(pccl_min_size(m->src_n, m->in_n), m->out_n);
      if (stream_out) {
        pccl_reduce_blocks(p, true, m->src, m->in, n, NULL, 0, m->out, n, m->addends);
      } else {
        p->reduce(m->out, m->src, m->in, n, m->addends);
      }
      break;
    }
    case POLYCCL_STEP_COPY: {
      size_t bytes = pccl_min_size(m->src_n, m->dst_n) * e;
      if (m->dst == m->src) { /* in place, others may be reading it */
        break;
      }
      if (p->stream) {
        p->kernels->stream_copy(m->dst, m->src, bytes);
      } else {
        memmove(m->dst, m->src, bytes);
      }
      break;
    }
    case POLYCCL_STEP_REDUCE: p->reduce(m->dst, m->dst, m->src, pccl_min_size(m->src_n, m->dst_n), m->addends); break;
    default: break;
  }
}

static inline void pccl_write_lines(polyccl_protocol protocol, char *slot, size_t at, const void *src, size_t bytes,
                                    uint64_t number) {
  if (protocol == POLYCCL_LL) {
    pccl_ll_write(slot, at, src, bytes, number);
  } else {
    pccl_ll128_write(slot, at, src, bytes, number);
  }
}

static inline void pccl_pad_lines(polyccl_protocol protocol, char *slot, size_t at, size_t end, uint64_t number) {
  if (protocol == POLYCCL_LL) {
    pccl_ll_pad(slot, at, end, number);
  } else {
    pccl_ll128_pad(slot, at, end, number);
  }
}

static inline void pccl_read_lines(polyccl_protocol protocol, const char *slot, size_t at, void *dst, size_t bytes) {
  if (protocol == POLYCCL_LL) {
    pccl_ll_read(slot, at, dst, bytes);
  } else {
    pccl_ll128_read(slot, at, dst, bytes);
  }
}

/* Messages in lines; `in` and `out` are slots. */
static inline void pccl_move_lines(polyccl_protocol protocol, const pccl_arithmetic *p, uint8_t op,
                                   const pccl_move *m) {
  size_t e = p->element, bytes = m->n * e;
  if (op == POLYCCL_STEP_COPY || op == POLYCCL_STEP_REDUCE) {
    pccl_move_memory(p, op, m, false);
    return;
  }
  if (op == POLYCCL_STEP_SEND) {
    pccl_write_lines(protocol, m->out, m->at, m->src, m->src_n * e, m->out_number);
    if (m->src_n < m->n) {
      pccl_pad_lines(protocol, m->out, m->at + m->src_n * e, m->at + bytes, m->out_number);
    }
    return;
  }
  if (op == POLYCCL_STEP_RECV) {
    pccl_read_lines(protocol, m->in, m->at, m->dst, m->dst_n * e);
    return;
  }
  _Alignas(64) char block[PCCL_LINE_BLOCK];
  bool reduces = op != POLYCCL_STEP_RCS, stores = op != POLYCCL_STEP_RRS;
  bool sends = op != POLYCCL_STEP_RRC;
  for (size_t at = 0; at < bytes; at += PCCL_LINE_BLOCK) {
    size_t now = pccl_min_size(PCCL_LINE_BLOCK, bytes - at);
    pccl_read_lines(protocol, m->in, m->at + at, block, now);
    if (reduces && m->src_n * e > at) {
      p->reduce(block, m->src + at, block, pccl_min_size(now, m->src_n * e - at) / e, m->addends);
    }
    if (stores && m->dst_n * e > at) {
      memcpy(m->dst + at, block, pccl_min_size(now, m->dst_n * e - at));
    }
    if (sends) {
      pccl_write_lines(protocol, m->out, m->at + at, block, now, m->out_number);
    }
  }
}

#endif
