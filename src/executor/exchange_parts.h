/* Inside of exchanges: lanes, transfers on their way, heads of messages. */
#ifndef PCCL_EXECUTOR_EXCHANGE_PARTS_H
#define PCCL_EXECUTOR_EXCHANGE_PARTS_H

#include "executor/exchange.h"
#include "kernel/lines.h"

/* At the start of every slot; in slots after a message's first, the flag alone counts. As in LL128, the flag is the
 * number of the slot, which never repeats, and is stored with release behind all else. Slots have fixed places, so no
 * data ever stand where a flag is looked for. Over a transport without lines the counter `tail` says what has come. */
typedef struct pccl_message_head {
  _Atomic uint64_t flag;
  uint64_t what;      /* pccl_message_what() */
  uint32_t call;      /* channel VECTOR: the number of the sender's call */
  uint32_t signature; /* likewise: of what all ranks must state alike */
} pccl_message_head;

enum {
  PCCL_HEAD_BYTES = sizeof(pccl_message_head),
  PCCL_INLINE_BYTES = 512,    /* up to here data begin right behind the head */
  PCCL_APART_BYTES = 64,      /* beyond it they begin at a line of their own */
  PCCL_LEND_BYTES = 16 << 10, /* from here on messages go by reference where they can */
  PCCL_GET_BYTES = 256 << 10, /* read in one round, so that other lanes go on */
  PCCL_COUNT_BITS = 48,
  PCCL_KIND_BITS = 5,
  PCCL_DTYPE_BITS = 7
};

static inline uint64_t pccl_message_what(size_t count, polyccl_dtype dtype, unsigned kind) {
  return count | (uint64_t)dtype << PCCL_COUNT_BITS | (uint64_t)kind << (PCCL_COUNT_BITS + PCCL_DTYPE_BITS);
}
enum { PCCL_WAY_SHIFT = PCCL_COUNT_BITS + PCCL_DTYPE_BITS + PCCL_KIND_BITS };
#define PCCL_WHAT_MASK (((uint64_t)1 << PCCL_WAY_SHIFT) - 1)

/* A transfer on its way. */
typedef struct pccl_part {
  size_t bytes, moved;
  uint64_t lent;    /* send by reference: the other side's counter once it has read */
  const char *from; /* receive by reference: where it reads; NULL: in slots */
  int32_t next;     /* of the lane; -1: none */
  bool begun, posted, ended;
  bool stays; /* a send that may not be lent: a receive replaces its data */
} pccl_part;

/* The transfers with one peer in one direction on one channel, in their order. */
typedef struct pccl_lane {
  pccl_end *end;
  bool sends;
  int32_t current; /* the first that is not wholly posted, or received; -1: none */
  int32_t ending;  /* the first that has not ended; -1: none */
  int32_t last;
} pccl_lane;

struct pccl_exchange {
  pccl_executor *executor;
  pccl_member *member;
  const pccl_transfer *transfer;
  size_t transfers, running;
  const char *kind;
  unsigned kind_number;
  uint32_t call, signature;
  bool busy;  /* between begin and free */
  bool lines; /* arrival is in the slots */
  pccl_part *part;
  size_t parts; /* allocated */
  PCCL_VEC(pccl_lane) lanes;
  polyccl_result failed;
  uint64_t compare_at; /* ns: when the calls of the ranks are compared; 0: not waiting yet */
};

/* The name of a kind of calls; "?": there is none. */
const char *pccl_exchange_kind_name(unsigned number);

/* The transfer may go on as far as this rank is concerned. */
static inline bool pccl_may_go(const pccl_exchange *x, int32_t index) {
  int after = x->transfer[index].after;
  return after < 0 || x->part[after].ended;
}

static inline bool pccl_has_slot(pccl_end *end) {
  if (end->count - end->cached >= end->depth) {
    end->cached = atomic_load_explicit(end->head, memory_order_acquire);
  }
  return end->count - end->cached < end->depth;
}

static inline pccl_message_head *pccl_slot_of(const pccl_end *end) {
  return (pccl_message_head *)(void *)(end->slots + (end->count & (end->depth - 1)) * end->slot_bytes);
}

static inline bool pccl_slot_arrived(const pccl_exchange *x, pccl_end *end) {
  if (x->lines) {
    return atomic_load_explicit(&pccl_slot_of(end)->flag, memory_order_acquire) == pccl_ll128_flag(end->count);
  }
  if (end->cached <= end->count) {
    end->cached = atomic_load_explicit(end->tail, memory_order_acquire);
  }
  return end->cached > end->count;
}

/* Ends the communicator: the message at the receiver's slot is not what it wants. */
polyccl_result pccl_exchange_refuse(pccl_exchange *exchange, const pccl_lane *lane, const pccl_message_head *head);

#endif
