/* The shared memory of a communicator on one host: one anonymous file (memfd), so that nothing has a name that could
 * stay behind and the size of /dev/shm does not matter. Pages are taken when they are touched.
 *
 * The file starts with the board and the directory of connections. Behind them, space is handed out by counting up, and
 * each process maps what it uses; places are offsets in the file. No process ever waits for another here: an entry of
 * the directory is taken by one compare-and-swap and gets its place by another, which any process that looks for it may
 * do. */
#ifndef PCCL_TRANSPORT_SEGMENT_H
#define PCCL_TRANSPORT_SEGMENT_H

#include <pthread.h>
#include <sys/types.h>

#include "transport/board.h"

enum {
  PCCL_COOKIE_BYTES = 16,
  PCCL_DIRECTORY_ENTRIES = 1 << 17,
  PCCL_EXTENT_BYTES = 16 << 20,
};

typedef struct pccl_directory_entry {
  _Atomic uint64_t key, offset; /* 0: free, not placed yet */
} pccl_directory_entry;

typedef struct pccl_segment_header {
  unsigned char cookie[PCCL_COOKIE_BYTES];
  _Atomic uint64_t next; /* the first byte that is free */
  alignas(PCCL_LINE) pccl_board board;
  pccl_directory_entry directory[PCCL_DIRECTORY_ENTRIES];
} pccl_segment_header;

typedef struct pccl_extent {
  uint64_t offset, bytes;
  char *memory;
} pccl_extent;

/* A process's view. Ranks that are threads of one process may share it (references), under `lock`. */
struct pccl_segment {
  pccl_segment_header *header;
  int fd;
  atomic_int references;
  pthread_mutex_t lock;
  pccl_extent *extent;
  size_t extents, extent_capacity;
};
typedef struct pccl_segment pccl_segment;

polyccl_result pccl_segment_create(pccl_segment **segment);
/* Opens descriptor `fd` of process `pid`; INVALID when that is no segment with this cookie. */
polyccl_result pccl_segment_attach(pid_t pid, int fd, const unsigned char *cookie, pccl_segment **segment);
pccl_segment *pccl_segment_share(pccl_segment *segment);
void pccl_segment_release(pccl_segment *segment);

/* The memory of `key`, made (zeroed) by whoever asks first. `bytes` must be the same for all who ask. */
polyccl_result pccl_segment_find(pccl_segment *segment, uint64_t key, size_t bytes, void **memory);

#endif
