#include "transport/shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/map.h"
#include "base/size.h"
#include "base/vec.h"
#include "memory/region.h"

static polyccl_result map_header(int fd, pccl_segment **segment) {
  pccl_segment *made = pccl_zeroed(1, sizeof *made);
  if (made == NULL) {
    return pccl_no_memory("a communicator's segment");
  }
  void *memory = mmap(NULL, pccl_round_up(sizeof(pccl_segment_header), pccl_page_bytes()), PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);
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
  atomic_init(&header->next, pccl_round_up(sizeof *header, pccl_page_bytes()));
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_segment_create(pccl_segment **segment) {
  int fd = memfd_create("polyccl", MFD_CLOEXEC);
  if (fd < 0) {
    return pccl_fail_errno("cannot make shared memory (memfd_create)");
  }
  polyccl_result result;
  if (ftruncate(fd, (off_t)pccl_round_up(sizeof(pccl_segment_header), pccl_page_bytes())) != 0) {
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
  if (opened < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
    return pccl_fail_errno("cannot open the communicator's shared memory");
  }
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
  munmap(segment->header, pccl_round_up(sizeof *segment->header, pccl_page_bytes()));
  close(segment->fd);
  pthread_mutex_destroy(&segment->lock);
  free(segment->extent);
  free(segment);
}

/* Hands out space. Small pieces share extents, so that there are few mappings and few page-table misses; none
 * straddles two. */
static uint64_t take_space(pccl_segment_header *header, size_t bytes) {
  size_t page = pccl_page_bytes(), room = pccl_round_up(bytes, PCCL_LINE);
  uint64_t next = atomic_load(&header->next), start, end;
  do {
    start = next;
    if (start / PCCL_EXTENT_BYTES != (start + room - 1) / PCCL_EXTENT_BYTES) {
      start = pccl_round_up(start, room > PCCL_EXTENT_BYTES ? page : PCCL_EXTENT_BYTES);
    }
    end = start + room;
  } while (!atomic_compare_exchange_weak(&header->next, &next, end));
  return start;
}

/* The place of the directory's entry, found or made. */
static polyccl_result place(pccl_segment_header *header, uint64_t key, size_t bytes, uint64_t *offset) {
  for (size_t probe = 0; probe < PCCL_DIRECTORY_ENTRIES; probe++) {
    pccl_directory_entry *entry = &header->directory[(pccl_mix64(key) + probe) % PCCL_DIRECTORY_ENTRIES];
    uint64_t found = atomic_load(&entry->key);
    if (found == 0 && atomic_compare_exchange_strong(&entry->key, &found, key)) {
      found = key;
    }
    if (found != key) {
      continue;
    }
    uint64_t at = atomic_load(&entry->offset);
    if (at == 0) {
      uint64_t taken = take_space(header, bytes); /* lost if another is quicker: it was never touched */
      at = atomic_compare_exchange_strong(&entry->offset, &at, taken) ? taken : at;
    }
    *offset = at;
    return POLYCCL_SUCCESS;
  }
  return pccl_fail(POLYCCL_ERROR_LIMIT, "more than %d connections in one communicator", PCCL_DIRECTORY_ENTRIES);
}

/* Makes the file reach to `end` at least. fallocate() never makes a file shorter, so two may do this at once. */
static polyccl_result reach(pccl_segment *segment, uint64_t end) {
  struct stat status;
  if (fstat(segment->fd, &status) == 0 && (uint64_t)status.st_size >= end) {
    return POLYCCL_SUCCESS;
  }
  uint64_t page = pccl_page_bytes(), target = pccl_round_up(end, PCCL_EXTENT_BYTES);
  int failed;
  do {
    failed = fallocate(segment->fd, 0, (off_t)(target - page), (off_t)page);
  } while (failed != 0 && errno == EINTR);
  return failed == 0 ? POLYCCL_SUCCESS
                     : pccl_fail_errno("cannot grow the communicator's shared memory to %llu bytes",
                                       (unsigned long long)target);
}

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
  PCCL_TRY(reach(segment, offset + bytes));
  uint64_t first = offset / PCCL_EXTENT_BYTES * PCCL_EXTENT_BYTES; /* whole extents: the kernel bounds the mappings */
  uint64_t end = pccl_round_up(offset + bytes, PCCL_EXTENT_BYTES);
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
  PCCL_TRY(place(segment->header, key, bytes, &offset));
  pthread_mutex_lock(&segment->lock);
  polyccl_result result = map_range(segment, offset, bytes, memory);
  pthread_mutex_unlock(&segment->lock);
  return result;
}
