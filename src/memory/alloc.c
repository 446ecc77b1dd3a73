/* Memory of the library's own that other processes may map. */
#include <polyccl/memory.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/size.h"
#include "memory/region.h"
#include "memory/registry.h"

size_t pccl_page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* An anonymous file of `bytes` bytes and its mapping here. */
static polyccl_result make_file(size_t bytes, void **memory, pccl_opened *opened) {
  int fd = memfd_create("polyccl-memory", MFD_CLOEXEC);
  if (fd < 0) {
    return pccl_fail_errno("cannot make shared memory (memfd_create)");
  }
  struct stat status;
  void *at = MAP_FAILED;
  if (fd >= 1 << PCCL_DESCRIPTOR_BITS || ftruncate(fd, (off_t)bytes) != 0 || fstat(fd, &status) != 0 ||
      (at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED) {
    polyccl_result result = pccl_fail_errno("cannot make %zu bytes of shared memory", bytes);
    close(fd);
    return result;
  }
  *memory = at;
  *opened = (pccl_opened){fd, status.st_dev, status.st_ino, bytes};
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_mem_alloc(void **memory, size_t bytes) {
  size_t page = pccl_page_bytes();
  if (memory == NULL || bytes > SIZE_MAX / 2) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_mem_alloc: %s", memory == NULL ? "memory is NULL" : "too large");
  }
  size_t size = bytes == 0 ? page : pccl_round_up(bytes, page);
  void *at = NULL;
  pccl_opened opened;
  PCCL_TRY(make_file(size, &at, &opened));
  polyccl_result result = pccl_registry_enter(at, size, &opened, 0, NULL);
  if (result != POLYCCL_SUCCESS) {
    munmap(at, size);
    close(opened.fd);
    return result;
  }
  *memory = at;
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_mem_free(void *memory) {
  if (memory == NULL) {
    return POLYCCL_SUCCESS;
  }
  size_t bytes;
  int fd;
  bool last;
  if (!pccl_registry_remove_memory(memory, &bytes, &fd, &last)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_mem_free: %p is not from polyccl_mem_alloc", memory);
  }
  munmap(memory, bytes);
  if (!last) { /* a registration of the same memory goes later */
    return POLYCCL_SUCCESS;
  }
  /* Others may keep it mapped for a while. The pages need not stay, but the file keeps its length: a rank that was
   * stopped may still read there when it goes on, and must not die of it. */
  if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) != 0) {
    PCCL_INFO("the pages of a shared buffer stay until its last mapping goes");
  }
  close(fd);
  return POLYCCL_SUCCESS;
}
