/* One end of a connection in shared memory: a ring of message slots with two counters, each written by one side only.
 *
 * `tail` counts the messages sent, `head` those consumed. A message's content is written before tail is stored with
 * release and read after tail was loaded with acquire; a slot is written again only after head, stored with release by
 * the reader when it is done, was loaded with acquire. LL and LL128 carry their arrival in the lines themselves
 * (kernel/lines.h) and use only head.
 *
 * The counters run on for the life of the communicator; message number m (from 0) lies in slot m mod depth. Depth and
 * slot size are the caller's and may change between messages once the ring is drained (head == tail). */
#ifndef PCCL_TRANSPORT_CONNECTION_H
#define PCCL_TRANSPORT_CONNECTION_H

#include "transport/segment.h"

typedef struct pccl_ring {
  alignas(PCCL_LINE) _Atomic uint64_t tail;
  alignas(PCCL_LINE) _Atomic uint64_t head;
  alignas(PCCL_LINE) char slots[];
} pccl_ring;

/* How a message goes, and where it stands when it is to be read in the sender's memory. At the start of a slot, in
 * plans with messages by reference. */
typedef enum pccl_way { PCCL_BY_SLOT = 0, PCCL_BY_GET, PCCL_BY_PUT } pccl_way;

typedef struct pccl_note {
  alignas(PCCL_LINE / 2) uint64_t way;
  pccl_reference buffer; /* by get: the sender's buffer that the message lies in */
} pccl_note;

typedef struct pccl_end {
  pccl_ring *ring;
  uint64_t count;  /* messages this end has sent or received */
  uint64_t cached; /* the other side's counter when last looked at */
  uint64_t wiped;  /* LL sender: the count up to which old flags cannot be mistaken */
  uint64_t lent;   /* sender: the count up to which messages may still be read in our buffers */
  pccl_rank_cell *peer_cell;
  /* Receiver: the last buffer that a note named, and where it is here. */
  pccl_reference noted;
  char *noted_at;
  uint64_t noted_generation; /* of the mappings */
  int peer, channel;
  polyccl_protocol protocol;
  size_t bytes; /* all slots together */
  /* Sender: the geometry of the messages that may be in flight. */
  uint32_t depth;
  size_t slot_bytes;
} pccl_end;

/* Names the ring among all of the communicator's; below 2^60, never 0. */
uint64_t pccl_end_key(int src, int dst, int channel, polyccl_protocol protocol, int log2_bytes);

/* Slots of 2^log2_bytes bytes in all. */
polyccl_result pccl_end_open(pccl_segment *segment, int src, int dst, int channel, polyccl_protocol protocol,
                             int log2_bytes, bool sender, pccl_end *end);

#endif
