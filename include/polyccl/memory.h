/* Memory that all processes of this machine can address. A call whose buffers lie in it copies data straight from one
 * rank's buffer to another's if the plan allows it (docs/executor.md, By reference). Data in other memory is copied
 * through the slots of connections.
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

#ifdef __cplusplus
}
#endif

#endif
