#include "memory/region.h"

#include <polyccl/memory.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/vec.h"

/* A region's number holds its descriptor, by which others open it. */
enum { DESCRIPTOR_BITS = 20, MOST_MAPPINGS = 256 };

typedef struct region {
  char *memory;
  size_t bytes;
  uint64_t number;
} region;

/* Sorted by address. */
static struct {
  pthread_mutex_t lock;
  PCCL_VEC(region) regions;
  uint64_t made;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Index of the first region that ends behind `pointer`. */
static size_t first_behind(const void *pointer) {
  size_t low = 0, high = registry.regions.len;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const region *at = &registry.regions.data[middle];
    if ((uintptr_t)at->memory + at->bytes > (uintptr_t)pointer) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

static polyccl_result enter(char *memory, size_t bytes, int fd) {
  pthread_mutex_lock(&registry.lock);
  bool room = pccl_vec_reserve(&registry.regions, 1);
  if (room) {
    size_t at = first_behind(memory);
    region *data = registry.regions.data;
    memmove(data + at + 1, data + at, (registry.regions.len - at) * sizeof *data);
    data[at] = (region){memory, bytes, ++registry.made << DESCRIPTOR_BITS | (uint64_t)fd};
    registry.regions.len++;
  }
  pthread_mutex_unlock(&registry.lock);
  return room ? POLYCCL_SUCCESS : pccl_no_memory("the list of shared buffers");
}

size_t pccl_page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

polyccl_result polyccl_mem_alloc(void **memory, size_t bytes) {
  size_t page = pccl_page_bytes();
  if (memory == NULL || bytes > SIZE_MAX / 2) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_mem_alloc: %s", memory == NULL ? "memory is NULL" : "too large");
  }
  size_t size = bytes == 0 ? page : (bytes + page - 1) / page * page;
  int fd = memfd_create("polyccl-memory", MFD_CLOEXEC);
  if (fd < 0) {
    return pccl_fail_errno("cannot make shared memory (memfd_create)");
  }
  void *at = MAP_FAILED;
  if (fd >= 1 << DESCRIPTOR_BITS || ftruncate(fd, (off_t)size) != 0 ||
      (at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED) {
    polyccl_result result = pccl_fail_errno("cannot make %zu bytes of shared memory", size);
    close(fd);
    return result;
  }
  polyccl_result result = enter(at, size, fd);
  if (result != POLYCCL_SUCCESS) {
    munmap(at, size);
    close(fd);
    return result;
  }
  *memory = at;
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_mem_free(void *memory) {
  if (memory == NULL) {
    return POLYCCL_SUCCESS;
  }
  region found = {0};
  pthread_mutex_lock(&registry.lock);
  size_t at = first_behind(memory);
  region *data = registry.regions.data;
  if (at < registry.regions.len && data[at].memory == memory) {
    found = data[at];
    memmove(data + at, data + at + 1, (registry.regions.len - at - 1) * sizeof *data);
    if (--registry.regions.len == 0) {
      pccl_vec_free(&registry.regions);
    }
  }
  pthread_mutex_unlock(&registry.lock);
  if (found.memory == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_mem_free: %p is not from polyccl_mem_alloc", memory);
  }
  munmap(found.memory, found.bytes);
  int fd = (int)(found.number & ((1u << DESCRIPTOR_BITS) - 1));
  /* Others may keep it mapped for a while. The pages need not stay, but the file keeps its length: a rank that was
   * stopped may still read there when it goes on, and must not die of it. */
  if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)found.bytes) != 0) {
    PCCL_INFO("the pages of a shared buffer stay until its last mapping goes");
  }
  close(fd);
  return POLYCCL_SUCCESS;
}

pccl_reference pccl_region_reference(const void *pointer, size_t bytes) {
  pccl_reference reference = {0, (uint64_t)(uintptr_t)pointer};
  pthread_mutex_lock(&registry.lock);
  size_t at = first_behind(pointer);
  if (at < registry.regions.len) {
    const region *found = &registry.regions.data[at];
    size_t offset = (size_t)((uintptr_t)pointer - (uintptr_t)found->memory);
    if ((uintptr_t)pointer >= (uintptr_t)found->memory && bytes <= found->bytes - offset) {
      reference = (pccl_reference){found->number, offset};
    }
  }
  pthread_mutex_unlock(&registry.lock);
  return reference;
}

char *pccl_region_local(pccl_reference reference) {
  char *address = NULL;
  pthread_mutex_lock(&registry.lock);
  for (size_t i = 0; i < registry.regions.len && address == NULL; i++) {
    if (registry.regions.data[i].number == reference.region) {
      address = registry.regions.data[i].memory + reference.offset;
    }
  }
  pthread_mutex_unlock(&registry.lock);
  return address;
}

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
  snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)pid, (int)(number & ((1u << DESCRIPTOR_BITS) - 1)));
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
