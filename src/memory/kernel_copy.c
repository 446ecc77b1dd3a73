#include "memory/kernel_copy.h"

#include <errno.h>
#include <sys/uio.h>

/* The kernel finds the process's memory once in a call, so the word that is read with the pieces tells whose they are.
 */
int pccl_kernel_copy(const pccl_process *process, const pccl_piece *piece, size_t pieces) {
  uint64_t cookie = 0;
  struct iovec here[PCCL_COPY_PIECES + 1] = {{&cookie, sizeof cookie}};
  struct iovec there[PCCL_COPY_PIECES + 1] = {{(void *)(uintptr_t)process->cookie_at, sizeof cookie}};
  size_t bytes = sizeof cookie;
  for (size_t i = 0; i < pieces; i++) {
    here[i + 1] = (struct iovec){piece[i].to, piece[i].bytes};
    there[i + 1] = (struct iovec){(void *)(uintptr_t)piece[i].from, piece[i].bytes};
    bytes += piece[i].bytes;
  }
  ssize_t copied = process_vm_readv(process->pid, here, pieces + 1, there, pieces + 1, 0);
  if (copied < 0) {
    return errno == EFAULT ? ESRCH : errno;
  }
  return cookie != process->cookie ? ESRCH : (size_t)copied != bytes ? EFAULT : 0;
}
