/* Exchanges: sends and receives that go on together, for polyccl_send() and polyccl_recv() and for the collectives with
 * a count for each rank. Nothing here blocks but pccl_exchange_wait().
 *
 * The transfers of one exchange go on at once, except that transfers with one peer in one direction on one channel end
 * in their order, and that a transfer with `after` begins when that one has ended. A send and a receive of a rank with
 * itself are matched in their order, and their data are moved when the exchange begins.
 *
 * Transfers use connections of their own (PCCL_CHANNEL_POINT, PCCL_CHANNEL_VECTOR), which plans do not use. A message
 * is a head, which says what the sender sends, and its data. Small messages lie behind their head in one slot, and the
 * flag that says that they are there is in the same line. Larger ones go in pieces, a slot each; where the receiver can
 * address the sender's buffer, it reads there, and the send ends when it has done so. The rings into one rank take
 * PCCL_EXCHANGE_BYTES at most on each channel.
 *
 * A receive that meets a message of another count, type or call ends the communicator on all ranks. */
#ifndef PCCL_EXECUTOR_EXCHANGE_H
#define PCCL_EXECUTOR_EXCHANGE_H

#include "executor/plans.h"
#include "transport/wait.h"

enum { PCCL_CHANNEL_POINT = 1 << 26, PCCL_CHANNEL_VECTOR, PCCL_EXCHANGE_BYTES = 4 << 20 };

typedef struct pccl_transfer {
  bool sends;
  int peer;
  int channel;
  void *buffer; /* of the caller; a send only reads it */
  size_t count;
  polyccl_dtype dtype;
  /* A receive with `reduce`: buffer = buffer op message. The addends are those of an average. */
  pccl_reduce_fn reduce;
  uint64_t addends;
  int after; /* the transfer that must have ended before; -1: none */
  /* A receive into the memory of a send of the same size to the same peer: it overwrites what was sent. The index of
   * the send; -1: none. */
  int replaces;
} pccl_transfer;

typedef struct pccl_exchange pccl_exchange;

/* Begins the transfers; the exchange keeps the array, which it does not own. `kind` says what call they belong to
 * ("send/recv", "alltoallv", ...: exchange.c) and goes with the messages, so that transfers of different calls never
 * match. An executor has one exchange at a time. INVALID: a send to oneself without its receive, or the other way
 * round; nothing was sent then. */
polyccl_result pccl_exchange_begin(pccl_executor *executor, const pccl_transfer *transfer, size_t transfers,
                                   const char *kind, pccl_exchange **exchange);
/* Moves every transfer as far as it goes; true: something moved. */
bool pccl_exchange_round(pccl_exchange *exchange);
/* The buffers are the caller's again. */
bool pccl_exchange_ended(const pccl_exchange *exchange);
/* After a fruitless round: the error that ends the call, if there is one. `timed_out`: nothing has moved for too long.
 */
polyccl_result pccl_exchange_check(pccl_exchange *exchange, bool timed_out);
/* The executor may begin another one. NULL is allowed. */
void pccl_exchange_free(pccl_exchange *exchange);

/* The whole exchange, on the calling thread. */
polyccl_result pccl_exchange_wait(pccl_exchange *exchange);

/* Frees the memory that an executor keeps for its exchanges. NULL is allowed. */
void pccl_exchange_destroy(pccl_exchange *exchange);

#endif
