/* Reading another process's memory by one copy of the kernel's (process_vm_readv). */
#ifndef PCCL_MEMORY_KERNEL_COPY_H
#define PCCL_MEMORY_KERNEL_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A process, and a word of its memory by which it is known again: a number of a process may pass to another. */
typedef struct pccl_process {
  pid_t pid;
  uint64_t cookie_at, cookie;
} pccl_process;

typedef struct pccl_piece {
  void *to;
  uint64_t from; /* the address there */
  size_t bytes;
} pccl_piece;

enum { PCCL_COPY_PIECES = 32 };

/* Copies up to PCCL_COPY_PIECES pieces. 0, or an error number: ESRCH when the process is gone, EFAULT when some of the
 * memory, there or here, is not mapped, EPERM when the system does not allow it. */
int pccl_kernel_copy(const pccl_process *process, const pccl_piece *piece, size_t pieces);

#endif
