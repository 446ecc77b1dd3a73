/* Connections between ranks, whatever lies between them.
 *
 * A connection carries messages from one rank to another: a ring of slots with two counters, each written by one side
 * only. `tail` counts the messages sent, `head` those consumed. A message's content is written before tail is stored
 * with release and read after tail was loaded with acquire; a slot is written again only after head, stored with
 * release by the reader when it is done, was loaded with acquire. LL and LL128 carry their arrival in the lines
 * themselves (kernel/lines.h) and use only head. The counters run on for the life of the communicator; message number m
 * (from 0) lies in slot m mod depth. Depth and slot size are the user's and may change between messages once the ring
 * is drained (head == tail).
 *
 * Ring and counters lie in memory that this rank reads and writes with plain loads and stores. In shared memory both
 * sides have the same ring. Over anything else each side has its own, `flush` after a step posts the slots or returns
 * credits, and `progress` turns what has come into counters.
 *
 * A transport is a table of functions. A call is made by the thread that drives the member (member.h), unless the
 * member says otherwise; no function waits for a peer. */
#ifndef PCCL_TRANSPORT_TRANSPORT_H
#define PCCL_TRANSPORT_TRANSPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <polyccl/plan.h>

#include "memory/reference.h"

struct pccl_member;
struct pccl_transport;

/* How a message goes, and where it stands when it is to be read in the sender's memory. At the start of a slot, in
 * calls with messages by reference. By copy, the receiver reads it through the kernel (copy.h). */
typedef enum pccl_way { PCCL_BY_SLOT = 0, PCCL_BY_GET, PCCL_BY_PUT, PCCL_BY_COPY } pccl_way;

typedef struct pccl_note {
  _Alignas(64) uint64_t way;
  pccl_reference buffer; /* by get or copy: the sender's buffer that the message lies in */
} pccl_note;

/* A receiver times some messages by slot and some by copy, and then asks for the quicker way for a while
 * (executor/trial.h). */
typedef enum pccl_trial_phase {
  PCCL_TRIAL_WARM = 0,
  PCCL_TRIAL_FIRST,
  PCCL_TRIAL_SECOND,
  PCCL_TRIAL_DONE
} pccl_trial_phase;

typedef struct pccl_trial {
  uint8_t phase, by_copy; /* what it asks for */
  uint16_t messages;      /* in this phase */
  uint32_t cost[2];       /* by slot, by copy: the least, in ns per MiB */
  const void *of;         /* the prepared plan whose messages it times */
} pccl_trial;

enum { PCCL_SIZE_CLASSES = 4 };

/* One end of a connection. */
typedef struct pccl_end {
  _Atomic uint64_t *tail, *head;
  char *slots;
  _Atomic uint32_t *signature; /* Simple: of message m at m & signature_mask */
  uint64_t signature_mask;
  uint64_t count;  /* messages that this end has sent or received */
  uint64_t cached; /* the other side's counter when it was last looked at */
  uint64_t wiped;  /* LL sender: the count up to which old flags cannot be mistaken */
  /* By copy: bit k is set while the receiver wants messages of size class k so. Receiver: whether it finds out what it
   * wants, and how far it is. */
  _Atomic uint32_t *copies;
  bool tries_copies;
  pccl_trial trial[PCCL_SIZE_CLASSES];
  uint64_t lent; /* sender: the count up to which messages may still be read in our buffers */
  /* While it is not 0, what was done on the connection needs a flush. */
  const _Atomic uint32_t *attention;
  /* Receiver: the last buffer that a note named, and where it is here. */
  pccl_reference noted;
  char *noted_at;
  uint64_t noted_generation; /* of the mappings */
  const struct pccl_transport *transport;
  int peer, channel;
  bool same_process;
  polyccl_protocol protocol;
  size_t bytes; /* all slots together */
  /* Sender: the geometry of the messages that may be in flight. */
  uint32_t depth;
  size_t slot_bytes;
  uint32_t lane; /* exchanges: 1 + the lane that uses this end, 0: none */
} pccl_end;

/* Names a connection within its communicator. */
typedef struct pccl_connection_key {
  int src, dst, channel;
  polyccl_protocol protocol;
  int log2_bytes; /* of all slots */
  int log2_depth; /* the largest depth that is used */
} pccl_connection_key;

/* Below 2^62, never 0. */
uint64_t pccl_connection_number(const pccl_connection_key *key);

typedef struct pccl_transport {
  const char *name;
  bool lines;     /* what is stored into a slot becomes visible in place: LL and LL128 can be used */
  bool addresses; /* memory of the peer can be addressed: messages by reference can be used */

  /* Opens this rank's end, made (zeroed, both counters 0) by whichever side comes first. The caller owns *end and
   * gives it back by close. */
  polyccl_result (*connect)(struct pccl_member *member, const pccl_connection_key *key, bool sender, pccl_end **end);
  void (*close)(pccl_end *end);
  /* Makes known to the peer what was sent, or which slots are free again. */
  void (*flush)(struct pccl_member *member, pccl_end *end);
  /* Optional: moves what is under way. True: something moved. */
  bool (*progress)(struct pccl_member *member);
  /* Optional: releases what belongs to the member. */
  void (*leave)(struct pccl_member *member);
} pccl_transport;

/* The ranks of one host. */
extern const pccl_transport pccl_transport_shm;

#endif
