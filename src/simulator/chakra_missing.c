/* Stands in for chakra.c in a build without libprotobuf-c. */
#include <polyccl/simulator.h>

#include "base/error.h"

polyccl_result polyccl_plan_write_chakra(const polyccl_plan *plan, uint64_t bytes, const char *prefix) {
  (void)plan, (void)bytes;
  return pccl_fail(POLYCCL_ERROR_UNSUPPORTED,
                   "the Chakra traces %s.RANK.et cannot be written: this library was built without libprotobuf-c",
                   prefix);
}
