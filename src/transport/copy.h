/* Messages by copy: the receiver reads the sender's memory through the kernel. */
#ifndef PCCL_TRANSPORT_COPY_H
#define PCCL_TRANSPORT_COPY_H

#include "memory/kernel_copy.h"
#include "transport/member.h"

/* The member can read the memory of `rank`'s process: tried once for each peer, when all have joined. */
bool pccl_member_can_copy(pccl_member *member, int rank);

/* Reads pieces of the memory of `rank`'s process. REMOTE, which ends the communicator: it has died, or its memory
 * cannot be read. */
polyccl_result pccl_member_copy(pccl_member *member, int rank, const pccl_piece *piece, size_t pieces);

#endif
