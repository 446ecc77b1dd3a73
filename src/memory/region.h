/* Memory that other processes may address: files that they map when they are told of them. Such memory comes from
 * polyccl_mem_alloc(), or is a shared mapping of the user's that polyccl_register() has found the file of.
 * A file's number is never used again, so a mapping that was kept cannot be mistaken for another's. */
#ifndef PCCL_MEMORY_REGION_H
#define PCCL_MEMORY_REGION_H

#include <stddef.h>
#include <sys/types.h>

#include <polyccl/types.h>

#include "memory/reference.h"

size_t pccl_page_bytes(void);

/* Names the memory [pointer, pointer + bytes) of this process; region 0 when no registered file holds all of it. */
pccl_reference pccl_region_reference(const void *pointer, size_t bytes);

/* Mappings of other processes' files, one cache per communicator. */
typedef struct pccl_region_cache {
  struct pccl_region_mapping *mapping;
  size_t mappings, capacity;
  uint64_t clock;
  uint64_t generation; /* grows when addresses that were given may be gone */
} pccl_region_cache;

/* Unmaps what was long unused, so that dead regions do not pile up. Between calls only. */
void pccl_region_cache_trim(pccl_region_cache *cache);

/* The address here of a place that process `pid` named. */
polyccl_result pccl_region_address(pccl_region_cache *cache, pid_t pid, pccl_reference reference, char **address);
void pccl_region_cache_free(pccl_region_cache *cache);

#endif
