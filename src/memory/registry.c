#include "memory/registry.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"
#include "memory/region.h"

struct pccl_file {
  pccl_file *next;
  pccl_opened opened;
  uint64_t number;
  size_t users;
};

/* The regions are sorted by address. */
static struct {
  pthread_mutex_t lock;
  PCCL_VEC(pccl_region) regions;
  pccl_file *files;
  uint64_t made, handles;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A child finds the registry whole and unlocked. */
static void lock(void) { pthread_mutex_lock(&registry.lock); }
static void unlock(void) { pthread_mutex_unlock(&registry.lock); }
static void watch_forks(void) { pthread_atfork(lock, unlock, unlock); }
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

/* ---- files ---- */

static bool holds(const pccl_file *file, dev_t device, ino_t inode, uint64_t offset, size_t bytes) {
  return file->opened.device == device && file->opened.inode == inode && offset <= file->opened.bytes &&
         bytes <= file->opened.bytes - offset;
}

static pccl_file *find_file(dev_t device, ino_t inode, uint64_t offset, size_t bytes) {
  pccl_file *file = registry.files;
  while (file != NULL && !holds(file, device, inode, offset, bytes)) {
    file = file->next;
  }
  return file;
}

static pccl_file *take_file(const pccl_opened *opened, uint64_t offset, size_t bytes) {
  pccl_file *file = find_file(opened->device, opened->inode, offset, bytes);
  if (file == NULL) {
    file = pccl_zeroed(1, sizeof *file);
    if (file == NULL) {
      return NULL;
    }
    *file = (pccl_file){.next = registry.files,
                        .opened = *opened,
                        .number = ++registry.made << PCCL_DESCRIPTOR_BITS | (uint64_t)opened->fd};
    registry.files = file;
  }
  file->users++;
  return file;
}

/* Gives the descriptor away when no region uses the file any more. */
static void give_file(pccl_file *file, int *fd, bool *last) {
  *fd = file != NULL ? file->opened.fd : -1;
  *last = file != NULL && --file->users == 0;
  if (!*last) {
    return;
  }
  pccl_file **link = &registry.files;
  while (*link != file) {
    link = &(*link)->next;
  }
  *link = file->next;
  free(file);
}

/* ---- regions ---- */

/* Index of the first region that begins behind `pointer`. */
static size_t first_behind(uintptr_t pointer) {
  size_t low = 0, high = registry.regions.len;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if ((uintptr_t)registry.regions.data[middle].memory > pointer) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

static void update_reach(size_t from) {
  pccl_region *data = registry.regions.data;
  for (size_t i = from; i < registry.regions.len; i++) {
    uintptr_t end = (uintptr_t)data[i].memory + data[i].bytes;
    data[i].reach = i > 0 && data[i - 1].reach > end ? data[i - 1].reach : end;
  }
}

static polyccl_result insert(pccl_region region, const pccl_opened *opened, uint64_t *handle) {
  if (!pccl_vec_reserve(&registry.regions, 1)) {
    return pccl_no_memory("the list of shared buffers");
  }
  if (opened->fd >= 0) {
    region.file = take_file(opened, region.offset, region.bytes);
    if (region.file == NULL) {
      return pccl_no_memory("the list of shared buffers");
    }
  }
  if (handle != NULL) {
    *handle = region.handle = ++registry.handles;
  }
  size_t at = first_behind((uintptr_t)region.memory);
  pccl_region *data = registry.regions.data;
  memmove(data + at + 1, data + at, (registry.regions.len - at) * sizeof *data);
  data[at] = region;
  registry.regions.len++;
  update_reach(at);
  if (region.file != NULL && region.file->opened.fd != opened->fd) {
    close(opened->fd);
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_registry_enter(char *memory, size_t bytes, const pccl_opened *opened, uint64_t offset,
                                   uint64_t *handle) {
  pthread_once(&watch_once, watch_forks);
  lock();
  polyccl_result result = insert((pccl_region){.memory = memory, .bytes = bytes, .offset = offset}, opened, handle);
  unlock();
  return result;
}

static void remove_at(size_t at, int *fd, bool *last) {
  pccl_region *data = registry.regions.data;
  give_file(data[at].file, fd, last);
  memmove(data + at, data + at + 1, (registry.regions.len - at - 1) * sizeof *data);
  if (--registry.regions.len == 0) {
    pccl_vec_free(&registry.regions);
  }
  update_reach(at);
}

bool pccl_registry_remove_memory(const void *memory, size_t *bytes, int *fd, bool *last) {
  bool found = false;
  lock();
  for (size_t at = first_behind((uintptr_t)memory); at > 0 && !found; at--) {
    const pccl_region *region = &registry.regions.data[at - 1];
    if (region->memory != memory) {
      break;
    }
    if (region->handle == 0) {
      *bytes = region->bytes;
      remove_at(at - 1, fd, last);
      found = true;
    }
  }
  unlock();
  return found;
}

bool pccl_registry_remove_handle(uint64_t handle, int *fd, bool *last) {
  bool found = false;
  lock();
  for (size_t at = 0; at < registry.regions.len && !found; at++) {
    if (registry.regions.data[at].handle == handle && handle != 0) {
      remove_at(at, fd, last);
      found = true;
    }
  }
  unlock();
  return found;
}

pccl_reference pccl_region_reference(const void *pointer, size_t bytes) {
  uintptr_t begin = (uintptr_t)pointer;
  pccl_reference reference = {.address = begin};
  lock();
  for (size_t at = first_behind(begin); at > 0; at--) {
    const pccl_region *region = &registry.regions.data[at - 1];
    size_t offset = begin - (uintptr_t)region->memory;
    if (region->reach <= begin) {
      break;
    }
    if (region->file != NULL && offset <= region->bytes && bytes <= region->bytes - offset) {
      reference.region = region->file->number;
      reference.offset = region->offset + offset;
      break;
    }
  }
  unlock();
  return reference;
}
