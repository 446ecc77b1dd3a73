#include "base/sized.h"

#include <string.h>

#include "base/error.h"

enum { MAX_SIZE = 4096 }; /* a larger size is a struct that nobody initialised */

polyccl_result pccl_sized_read(const char *type, const void *given, void *own, size_t own_size, size_t first_size) {
  if (given == NULL) {
    return POLYCCL_SUCCESS;
  }
  size_t size;
  memcpy(&size, given, sizeof size);
  if (size < first_size || size > MAX_SIZE) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: size is %zu; it must be sizeof(%s), %zu bytes in this release", type,
                     size, type, own_size);
  }
  for (size_t i = own_size; i < size; i++) {
    if (((const unsigned char *)given)[i] != 0) {
      return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "%s: the program sets a member that this release does not know",
                       type);
    }
  }
  memcpy(own, given, size < own_size ? size : own_size);
  memcpy(own, &own_size, sizeof own_size);
  return POLYCCL_SUCCESS;
}
