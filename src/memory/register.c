/* Memory of the user's that others may address. */
#include <polyccl/memory.h>

#include <stdint.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "memory/backing.h"
#include "memory/registry.h"

/* A handle that the caller holds is the region's number and not an address, so that one that was given back is found
 * out and never taken for a newer one. */
static polyccl_registration *as_registration(uint64_t handle) { return (polyccl_registration *)(uintptr_t)handle; }

polyccl_result polyccl_register(void *memory, size_t bytes, polyccl_registration **registration) {
  if (memory == NULL || bytes == 0 || registration == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_register: %s",
                     memory == NULL ? "memory is NULL"
                     : bytes == 0   ? "there are no bytes"
                                    : "registration is NULL");
  }
  if (bytes > UINTPTR_MAX - (uintptr_t)memory) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_register: no address space holds %zu bytes at %p", bytes, memory);
  }
  pccl_opened opened;
  uint64_t offset, handle;
  polyccl_result result = pccl_backing_find(memory, bytes, &opened, &offset);
  if (result != POLYCCL_SUCCESS) {
    return pccl_prefix(result, "polyccl_register: %zu bytes at %p: ", bytes, memory);
  }
  if (opened.fd < 0) {
    PCCL_INFO("registered %zu bytes at %p, which no file holds that others could map", bytes, memory);
  }
  result = pccl_registry_enter(memory, bytes, &opened, offset, &handle);
  if (result != POLYCCL_SUCCESS) {
    if (opened.fd >= 0) {
      close(opened.fd);
    }
    return result;
  }
  *registration = as_registration(handle);
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_deregister(polyccl_registration *registration) {
  int fd;
  bool last;
  if (registration == NULL) {
    return POLYCCL_SUCCESS;
  }
  if (!pccl_registry_remove_handle((uintptr_t)registration, &fd, &last)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_deregister: there is no such registration, or it was given back");
  }
  if (last) {
    close(fd);
  }
  return POLYCCL_SUCCESS;
}
