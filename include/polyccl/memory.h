/* Memory that all processes of this machine can address. A call whose buffers lie in it copies data straight from one
 * rank's buffer to another's if the plan allows it (docs/executor.md, By reference). Data in other memory is copied
 * through the slots of connections, or by the kernel where that is quicker.
 *
 * Thread safety: any thread may call these functions at any time. */
#ifndef POLYCCL_MEMORY_H
#define POLYCCL_MEMORY_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates `bytes` bytes that are zero and begin at a page, and stores their address in *memory. The caller owns them
 * and frees them with polyccl_mem_free() after the last call that uses them.
 * Errors: INVALID if `memory` is NULL or no address space holds so many bytes; SYSTEM if the system refuses. */
POLYCCL_API polyccl_result polyccl_mem_alloc(void **memory, size_t bytes);

/* Frees memory that polyccl_mem_alloc() returned; does nothing for NULL.
 * Errors: INVALID for any other address. */
POLYCCL_API polyccl_result polyccl_mem_free(void *memory);

/* A range of the caller's memory that the library knows. */
typedef struct polyccl_registration polyccl_registration;

/* Registers `bytes` bytes of the caller's memory and stores a handle in *registration, which the caller gives back by
 * polyccl_deregister(). Buffers of calls that lie wholly in one registration are then used as memory of
 * polyccl_mem_alloc() is, if the memory is a shared mapping, for reading and writing, of one regular file or memfd that
 * this process has open or that its path still leads to. The library opens the file anew, so the caller may close its
 * own descriptor. Other memory may be registered, too; it goes as if it were not.
 *
 * Registrations may overlap and nest, and each is given back by itself. A child of fork() has its parent's. Other ranks
 * may keep the file mapped until they destroy their communicators.
 *
 * The caller deregisters before it unmaps the memory, maps something else there, or shortens the file. If it does not,
 * calls may use the old file instead of the memory, and ranks that read or write beyond the end of a shortened file get
 * SIGBUS, as they do in any mapping.
 * Errors: INVALID if `memory` or `registration` is NULL, `bytes` is 0, or some of the memory is not mapped; SYSTEM if
 * the system refuses. */
POLYCCL_API polyccl_result polyccl_register(void *memory, size_t bytes, polyccl_registration **registration);

/* Gives a registration back, after the last call that uses the memory by it; does nothing for NULL.
 * Errors: INVALID if it is no registration or was given back before. */
POLYCCL_API polyccl_result polyccl_deregister(polyccl_registration *registration);

#ifdef __cplusplus
}
#endif

#endif
