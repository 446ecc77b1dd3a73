/* What this process lets others address: regions, which may nest and overlap, and the files that hold them. */
#ifndef PCCL_MEMORY_REGISTRY_H
#define PCCL_MEMORY_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <polyccl/types.h>

/* A file's number holds the descriptor, by which others open it. */
enum { PCCL_DESCRIPTOR_BITS = 20 };

static inline int pccl_descriptor_of(uint64_t number) {
  return (int)(number & (((uint64_t)1 << PCCL_DESCRIPTOR_BITS) - 1));
}

/* An open file, and which it is. */
typedef struct pccl_opened {
  int fd; /* -1: none */
  dev_t device;
  ino_t inode;
  size_t bytes; /* its length when it was opened: all that others may be told of */
} pccl_opened;

/* The region's file and the place in it; `file` NULL: none. */
typedef struct pccl_file pccl_file;
typedef struct pccl_region {
  char *memory;
  size_t bytes;
  pccl_file *file;
  uint64_t offset;
  uint64_t handle; /* never used again; 0: memory of polyccl_mem_alloc() */
  uintptr_t reach; /* the last end of this region and those before it */
} pccl_region;

/* Enters a region. Takes over the descriptor on success, and closes it when the registry has one of this file.
 * `handle` (NULL: for polyccl_mem_alloc()) receives the region's. */
polyccl_result pccl_registry_enter(char *memory, size_t bytes, const pccl_opened *opened, uint64_t offset,
                                   uint64_t *handle);
/* Takes the region of polyccl_mem_alloc() at `memory`, or that of `handle`, out; false: there is none. *fd is the
 * file's descriptor or -1, and with *last it is the caller's, since no other region uses it. */
bool pccl_registry_remove_memory(const void *memory, size_t *bytes, int *fd, bool *last);
bool pccl_registry_remove_handle(uint64_t handle, int *fd, bool *last);

#endif
