#include "transport/copy.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

static pccl_process process_of(const pccl_member *member, int rank) {
  const pccl_rank_cell *cell = &member->board->cell[rank];
  return (pccl_process){cell->pid, cell->cookie_at, cell->cookie};
}

bool pccl_member_can_copy(pccl_member *member, int rank) {
  pccl_peer *peer = &member->peer[rank];
  if (member->kernel_copy == PCCL_COPY_NEVER || peer->same_process) {
    return false;
  }
  if (peer->copy == PCCL_COPY_UNKNOWN) {
    pccl_process process = process_of(member, rank);
    int error = pccl_kernel_copy(&process, NULL, 0);
    peer->copy = error == 0 ? PCCL_COPY_ALLOWED : PCCL_COPY_REFUSED;
    if (error != 0 && !member->copy_refused) {
      member->copy_refused = true;
      PCCL_INFO("rank %d cannot read the memory of rank %d (process_vm_readv: %s): private buffers go by slots",
                member->rank, rank, strerror(error));
    }
  }
  return peer->copy == PCCL_COPY_ALLOWED;
}

polyccl_result pccl_member_copy(pccl_member *member, int rank, const pccl_piece *piece, size_t pieces) {
  pccl_process process = process_of(member, rank);
  int error = pccl_kernel_copy(&process, piece, pieces);
  if (error == 0) {
    return POLYCCL_SUCCESS;
  }
  if (error == ESRCH) {
    pccl_board_abort(member->board, POLYCCL_ERROR_REMOTE, "rank %d (process %d) has died", rank, (int)process.pid);
  } else {
    pccl_board_abort(member->board, POLYCCL_ERROR_REMOTE,
                     "rank %d cannot copy from the buffer of rank %d (process %d) to its own (process_vm_readv: %s)",
                     member->rank, rank, (int)process.pid,
                     error == EFAULT ? "one of them is not mapped" : strerror(error));
  }
  return pccl_board_error(member->board);
}
