#include "transport/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/map.h"
#include "base/size.h"
#include "base/vec.h"

void pccl_futex_wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }

void pccl_futex_wait(_Atomic uint32_t *word, uint32_t value, long microseconds) {
  struct timespec limit = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};
  syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

static polyccl_result init_lock(pthread_mutex_t *lock) {
  pthread_mutexattr_t attributes;
  int failed = pthread_mutexattr_init(&attributes);
  if (failed == 0) {
    failed = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    failed = failed != 0 ? failed : pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    failed = failed != 0 ? failed : pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  errno = failed;
  return failed == 0 ? POLYCCL_SUCCESS : pccl_fail_errno("cannot make a lock shared by processes");
}

/* Every change under the lock is an entry written before it is published, so a dead holder leaves nothing half done. */
static void lock_header(pccl_segment_header *header) {
  if (pthread_mutex_lock(&header->lock) == EOWNERDEAD) {
    pthread_mutex_consistent(&header->lock);
  }
}

static polyccl_result map_header(int fd, pccl_segment **segment) {
  pccl_segment *made = pccl_zeroed(1, sizeof *made);
  if (made == NULL) {
    return pccl_no_memory("a communicator's segment");
  }
  void *memory =
      mmap(NULL, pccl_round_up(sizeof(pccl_segment_header), 4096), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    free(made);
    return pccl_fail_errno("cannot map the communicator's shared memory");
  }
  made->header = memory;
  made->fd = fd;
  atomic_init(&made->references, 1);
  pthread_mutex_init(&made->lock, NULL);
  *segment = made;
  return POLYCCL_SUCCESS;
}

static polyccl_result fill_header(pccl_segment_header *header) {
  if (getrandom(header->cookie, sizeof header->cookie, 0) != (ssize_t)sizeof header->cookie) {
    return pccl_fail_errno("no random numbers");
  }
  header->size = header->next = pccl_round_up(sizeof *header, 4096);
  return init_lock(&header->lock);
}

polyccl_result pccl_segment_create(pccl_segment **segment) {
  int fd = memfd_create("polyccl", MFD_CLOEXEC);
  if (fd < 0) {
    return pccl_fail_errno("cannot make shared memory (memfd_create)");
  }
  polyccl_result result;
  if (ftruncate(fd, (off_t)pccl_round_up(sizeof(pccl_segment_header), 4096)) != 0) {
    result = pccl_fail_errno("cannot size the communicator's shared memory");
  } else {
    result = map_header(fd, segment);
  }
  if (result != POLYCCL_SUCCESS) {
    close(fd);
    return result;
  }
  result = fill_header((*segment)->header);
  if (result != POLYCCL_SUCCESS) {
    pccl_segment_release(*segment);
  }
  return result;
}

/* A child of the segment's maker has it open under the same number. */
static int open_descriptor(pid_t pid, int fd) {
  if (pid == getpid()) {
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
  }
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)pid, fd);
  int opened = open(path, O_RDWR | O_CLOEXEC);
  return opened >= 0 ? opened : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

polyccl_result pccl_segment_attach(pid_t pid, int fd, const unsigned char *cookie, pccl_segment **segment) {
  int opened = open_descriptor(pid, fd);
  struct stat status;
  if (opened < 0 || fstat(opened, &status) != 0 || !S_ISREG(status.st_mode) ||
      (size_t)status.st_size < sizeof(pccl_segment_header)) {
    if (opened >= 0) {
      close(opened);
    }
    return pccl_fail(POLYCCL_ERROR_INVALID, "the unique id's maker (process %ld) is gone or out of reach", (long)pid);
  }
  pccl_segment *made;
  polyccl_result result = map_header(opened, &made);
  if (result != POLYCCL_SUCCESS) {
    close(opened);
    return result;
  }
  if (memcmp(made->header->cookie, cookie, PCCL_COOKIE_BYTES) != 0) {
    pccl_segment_release(made);
    return pccl_fail(POLYCCL_ERROR_INVALID, "the unique id of process %ld is no longer valid", (long)pid);
  }
  *segment = made;
  return POLYCCL_SUCCESS;
}

pccl_segment *pccl_segment_share(pccl_segment *segment) {
  atomic_fetch_add_explicit(&segment->references, 1, memory_order_relaxed);
  return segment;
}

void pccl_segment_release(pccl_segment *segment) {
  if (segment == NULL || atomic_fetch_sub_explicit(&segment->references, 1, memory_order_acq_rel) != 1) {
    return;
  }
  for (size_t i = 0; i < segment->extents; i++) {
    munmap(segment->extent[i].memory, segment->extent[i].bytes);
  }
  munmap(segment->header, pccl_round_up(sizeof *segment->header, 4096));
  close(segment->fd);
  pthread_mutex_destroy(&segment->lock);
  free(segment->extent);
  free(segment);
}

/* Finds or makes the directory's entry; extents never straddle, so that each maps as a whole. */
static polyccl_result place(pccl_segment *segment, uint64_t key, size_t bytes, uint64_t *offset) {
  pccl_segment_header *header = segment->header;
  for (size_t probe = 0; probe < PCCL_DIRECTORY_ENTRIES; probe++) {
    pccl_directory_entry *entry = &header->directory[(pccl_mix64(key) + probe) % PCCL_DIRECTORY_ENTRIES];
    if (entry->key == key) {
      *offset = entry->offset;
      return POLYCCL_SUCCESS;
    }
    if (entry->key != 0) {
      continue;
    }
    size_t room = pccl_round_up(bytes, PCCL_LINE);
    if (header->size - header->next < room) {
      uint64_t more = room > PCCL_EXTENT_BYTES ? pccl_round_up(room, 4096) : PCCL_EXTENT_BYTES;
      uint64_t start = header->size;
      if (ftruncate(segment->fd, (off_t)(start + more)) != 0) {
        return pccl_fail_errno("cannot grow the communicator's shared memory to %llu bytes",
                               (unsigned long long)(start + more));
      }
      header->next = start;
      header->size = start + more;
    }
    entry->offset = header->next;
    header->next += room;
    entry->key = key;
    *offset = entry->offset;
    return POLYCCL_SUCCESS;
  }
  return pccl_fail(POLYCCL_ERROR_LIMIT, "more than %d connections in one communicator", PCCL_DIRECTORY_ENTRIES);
}

/* Maps only what is asked for where it is large, else the extent around it: few mappings, few page-table misses. */
static polyccl_result map_range(pccl_segment *segment, uint64_t offset, size_t bytes, void **memory) {
  for (size_t i = 0; i < segment->extents; i++) {
    const pccl_extent *extent = &segment->extent[i];
    if (offset >= extent->offset && offset + bytes <= extent->offset + extent->bytes) {
      *memory = extent->memory + (offset - extent->offset);
      return POLYCCL_SUCCESS;
    }
  }
  if (segment->extents == segment->extent_capacity &&
      !pccl_vec_grow((void **)&segment->extent, &segment->extent_capacity, segment->extents, 1,
                     sizeof *segment->extent)) {
    return pccl_no_memory("a communicator's mappings");
  }
  uint64_t first = offset / 4096 * 4096;
  uint64_t end = pccl_round_up(offset + bytes, 4096);
  void *at = mmap(NULL, end - first, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, (off_t)first);
  if (at == MAP_FAILED) {
    return pccl_fail_errno("cannot map %zu bytes of the communicator's shared memory", bytes);
  }
  segment->extent[segment->extents++] = (pccl_extent){first, end - first, at};
  *memory = (char *)at + (offset - first);
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_segment_find(pccl_segment *segment, uint64_t key, size_t bytes, void **memory) {
  uint64_t offset = 0;
  pthread_mutex_lock(&segment->lock);
  lock_header(segment->header);
  polyccl_result result = place(segment, key, bytes, &offset);
  pthread_mutex_unlock(&segment->header->lock);
  if (result == POLYCCL_SUCCESS) {
    result = map_range(segment, offset, bytes, memory);
  }
  pthread_mutex_unlock(&segment->lock);
  return result;
}

void pccl_segment_add_cpus(pccl_segment_header *header) {
  cpu_set_t mine;
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) {
    return;
  }
  for (int cpu = 0; cpu < CPU_SETSIZE && cpu < PCCL_CPU_WORDS * 64; cpu++) {
    if (CPU_ISSET(cpu, &mine)) {
      atomic_fetch_or(&header->cpus[cpu / 64], (uint64_t)1 << (cpu % 64));
    }
  }
}

int pccl_segment_cpus(pccl_segment_header *header) {
  int count = 0;
  for (int i = 0; i < PCCL_CPU_WORDS; i++) {
    count += __builtin_popcountll(atomic_load(&header->cpus[i]));
  }
  return count > 0 ? count : 1;
}

void pccl_segment_abort(pccl_segment_header *header, polyccl_result result, const char *format, ...) {
  uint32_t none = 0;
  if (atomic_compare_exchange_strong(&header->aborted, &none, 1)) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(header->abort_reason, sizeof header->abort_reason, format, arguments);
    va_end(arguments);
    header->abort_result = (int32_t)result;
    atomic_store_explicit(&header->aborted, 2, memory_order_release);
  }
  for (int rank = 0; rank < POLYCCL_MAX_LOCAL_RANKS && rank < atomic_load(&header->ranks); rank++) {
    atomic_fetch_add(&header->cell[rank].bell, 1);
    pccl_futex_wake(&header->cell[rank].bell);
  }
  pccl_futex_wake(&header->joined);
}

polyccl_result pccl_segment_abort_error(pccl_segment_header *header) {
  /* The writer may have been interrupted, or may have died, in the middle of the notice. */
  for (int i = 0; i < 1000 && atomic_load_explicit(&header->aborted, memory_order_acquire) != 2; i++) {
    usleep(100);
  }
  if (atomic_load_explicit(&header->aborted, memory_order_acquire) != 2) {
    return pccl_fail(POLYCCL_ERROR_REMOTE, "the communicator was aborted");
  }
  return pccl_fail((polyccl_result)header->abort_result, "%.*s", PCCL_REASON_BYTES, header->abort_reason);
}
