/* Memory that all processes of this machine can address. Calls whose buffers lie in it move data between the buffers
 * themselves where the plan allows it (docs/executor.md, By reference); other memory goes through slots.
 *
 * Thread safety: any thread may allocate and free at any time. */
#ifndef POLYCCL_MEMORY_H
#define POLYCCL_MEMORY_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates `bytes` bytes, aligned to a page and zeroed. The caller owns them and frees them by polyccl_mem_free()
 * after the last call that uses them. Errors: INVALID for a size that no address space holds; SYSTEM when the system
 * refuses. */
POLYCCL_API polyccl_result polyccl_mem_alloc(void **memory, size_t bytes);

/* Frees what polyccl_mem_alloc() gave; NULL is allowed. INVALID for any other address. */
POLYCCL_API polyccl_result polyccl_mem_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
