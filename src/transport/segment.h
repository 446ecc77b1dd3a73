/* The shared memory of a communicator: one anonymous file (memfd), so that nothing has a name that could stay behind
 * and the size of /dev/shm does not matter. Pages are taken when they are touched.
 *
 * The file starts with the header: who is attached, the abort notice, the directory of connections. Behind it, space is
 * handed out in extents, which each process maps when it first needs them; places are offsets in the file. */
#ifndef PCCL_TRANSPORT_SEGMENT_H
#define PCCL_TRANSPORT_SEGMENT_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <polyccl/types.h>

enum {
  PCCL_LINE = 128, /* two cache lines: what x86 prefetches together, and one line of some Arm */
  PCCL_COOKIE_BYTES = 16,
  PCCL_DIRECTORY_ENTRIES = 1 << 17,
  PCCL_REASON_BYTES = 400,
  PCCL_EXTENT_BYTES = 16 << 20,
  PCCL_CPU_WORDS = 16
};

/* A place in memory that another process may address (region.h); region 0: not addressable. */
typedef struct pccl_reference {
  uint64_t region, offset;
} pccl_reference;

enum { PCCL_CALL_BUFFERS = 3 }; /* input, output, scratch: polyccl_plan_buffer */

/* What a call is, for POLYCCL_CHECK. */
typedef struct pccl_claim {
  uint64_t count;
  int32_t collective, plan; /* plan -1: chosen by the collective */
  int32_t dtype, op, root, inplace;
} pccl_claim;

/* What others see of a rank. */
typedef struct pccl_rank_cell {
  alignas(PCCL_LINE) _Atomic uint32_t state; /* pccl_rank_state */
  int32_t pid;
  /* The doorbell: others ring when they have written something for this rank and it sleeps. */
  alignas(PCCL_LINE) _Atomic uint32_t sleeping;
  _Atomic uint32_t bell;
  _Atomic int32_t awaits; /* 1 + the rank that this one has waited for a while; 0: none */
  /* The buffers of the running call; valid for call number `call`. */
  alignas(PCCL_LINE) _Atomic uint64_t call;
  pccl_reference buffer[PCCL_CALL_BUFFERS];
  /* With POLYCCL_CHECK: call number `made` is in record[made % 2]. Nobody is more than one call ahead. */
  alignas(PCCL_LINE) _Atomic uint64_t made;
  pccl_claim record[2];
} pccl_rank_cell;

typedef enum pccl_rank_state {
  PCCL_RANK_ABSENT = 0,
  PCCL_RANK_JOINING,
  PCCL_RANK_JOINED,
  PCCL_RANK_LEFT
} pccl_rank_state;

typedef struct pccl_directory_entry {
  uint64_t key, offset; /* key 0: free */
} pccl_directory_entry;

typedef struct pccl_segment_header {
  unsigned char cookie[PCCL_COOKIE_BYTES];
  _Atomic int32_t ranks; /* 0: not known yet */
  _Atomic uint32_t joined;
  _Atomic uint64_t cpus[PCCL_CPU_WORDS]; /* that some rank may run on */
  pthread_mutex_t lock;                  /* guards size, free space and the directory */
  uint64_t size, next;
  /* The abort notice: the first writer moves aborted 0 -> 1, writes, then 2. */
  alignas(PCCL_LINE) _Atomic uint32_t aborted;
  int32_t abort_result;
  char abort_reason[PCCL_REASON_BYTES];
  alignas(PCCL_LINE) pccl_rank_cell cell[POLYCCL_MAX_LOCAL_RANKS];
  pccl_directory_entry directory[PCCL_DIRECTORY_ENTRIES];
} pccl_segment_header;

typedef struct pccl_extent {
  uint64_t offset, bytes;
  char *memory;
} pccl_extent;

/* A process's view. Ranks that are threads of one process may share it (references), under `lock`. */
typedef struct pccl_segment {
  pccl_segment_header *header;
  int fd;
  atomic_int references;
  pthread_mutex_t lock;
  pccl_extent *extent;
  size_t extents, extent_capacity;
} pccl_segment;

polyccl_result pccl_segment_create(pccl_segment **segment);
/* Opens descriptor `fd` of process `pid`; INVALID when that is no segment with this cookie. */
polyccl_result pccl_segment_attach(pid_t pid, int fd, const unsigned char *cookie, pccl_segment **segment);
pccl_segment *pccl_segment_share(pccl_segment *segment);
void pccl_segment_release(pccl_segment *segment);

/* The memory of `key`, made (zeroed) by whoever asks first. `bytes` must be the same for all who ask. */
polyccl_result pccl_segment_find(pccl_segment *segment, uint64_t key, size_t bytes, void **memory);

/* Adds the calling thread's CPUs to those of the communicator; counts them. */
void pccl_segment_add_cpus(pccl_segment_header *header);
int pccl_segment_cpus(pccl_segment_header *header);

/* Writes the notice unless there is one, and wakes everybody. */
void pccl_segment_abort(pccl_segment_header *header, polyccl_result result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline bool pccl_segment_aborted(pccl_segment_header *header) {
  return atomic_load_explicit(&header->aborted, memory_order_acquire) != 0;
}
/* pccl_fail() with the notice. */
polyccl_result pccl_segment_abort_error(pccl_segment_header *header);

void pccl_futex_wake(_Atomic uint32_t *word);
/* Sleeps while *word == value, at most `microseconds`. */
void pccl_futex_wait(_Atomic uint32_t *word, uint32_t value, long microseconds);

#endif
