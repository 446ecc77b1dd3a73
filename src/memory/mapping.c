/* Other processes' files, as they are mapped here. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"
#include "memory/region.h"
#include "memory/registry.h"

enum { MOST_MAPPINGS = 256 };

struct pccl_region_mapping {
  pid_t pid;
  uint64_t number, used;
  char *memory;
  size_t bytes;
};

static void unmap(pccl_region_cache *cache, size_t index) {
  munmap(cache->mapping[index].memory, cache->mapping[index].bytes);
  cache->mapping[index] = cache->mapping[--cache->mappings];
}

static size_t least_used(const pccl_region_cache *cache) {
  size_t oldest = 0;
  for (size_t i = 1; i < cache->mappings; i++) {
    if (cache->mapping[i].used < cache->mapping[oldest].used) {
      oldest = i;
    }
  }
  return oldest;
}

static polyccl_result map(pccl_region_cache *cache, pid_t pid, uint64_t number) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)pid, pccl_descriptor_of(number));
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return pccl_fail_errno("cannot open shared memory of process %ld", (long)pid);
  }
  struct stat status;
  void *at = MAP_FAILED;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    at = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (at == MAP_FAILED) {
    return pccl_fail_errno("cannot map shared memory of process %ld", (long)pid);
  }
  if (cache->mappings == cache->capacity &&
      !pccl_vec_grow((void **)&cache->mapping, &cache->capacity, cache->mappings, 1, sizeof *cache->mapping)) {
    munmap(at, (size_t)status.st_size);
    return pccl_no_memory("mappings of shared buffers");
  }
  cache->mapping[cache->mappings++] =
      (struct pccl_region_mapping){.pid = pid, .number = number, .memory = at, .bytes = (size_t)status.st_size};
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_region_address(pccl_region_cache *cache, pid_t pid, pccl_reference reference, char **address) {
  for (int attempt = 0; attempt < 2; attempt++) {
    for (size_t i = 0; i < cache->mappings; i++) {
      struct pccl_region_mapping *at = &cache->mapping[i];
      if (at->number == reference.region && at->pid == pid) {
        at->used = ++cache->clock;
        *address = at->memory + reference.offset;
        return POLYCCL_SUCCESS;
      }
    }
    PCCL_TRY(map(cache, pid, reference.region));
  }
  return pccl_fail(POLYCCL_ERROR_INTERNAL, "a mapping vanished");
}

void pccl_region_cache_trim(pccl_region_cache *cache) {
  while (cache->mappings > MOST_MAPPINGS) {
    unmap(cache, least_used(cache));
    cache->generation++;
  }
}

void pccl_region_cache_free(pccl_region_cache *cache) {
  while (cache->mappings > 0) {
    unmap(cache, cache->mappings - 1);
  }
  free(cache->mapping);
  *cache = (pccl_region_cache){0};
}
