/* Pages of 64 KiB, as some machines have them, for a test program that is linked with --wrap: mappings begin at
 * multiples of 64 KiB and refuse offsets that are none, as the kernel does there. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/region.h"

enum { PAGE = 65536 };

long __real_sysconf(int name);
void *__real_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *address, size_t length);
long __wrap_sysconf(int name);
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *address, size_t length);

long __wrap_sysconf(int name) { return name == _SC_PAGESIZE ? PAGE : __real_sysconf(name); }

static size_t round_up(size_t length) { return (length + PAGE - 1) / PAGE * PAGE; }

/* Address space for whole pages at a multiple of their size. */
static void *reserve(size_t length) {
  char *all = __real_mmap(NULL, length + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) {
    return MAP_FAILED;
  }
  size_t before = (PAGE - (uintptr_t)all % PAGE) % PAGE;
  if (before > 0) {
    __real_munmap(all, before);
  }
  __real_munmap(all + before + length, PAGE - before);
  return all + before;
}

void *__wrap_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  if (offset % PAGE != 0 || ((flags & MAP_FIXED) != 0 && (uintptr_t)address % PAGE != 0)) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  void *at = (flags & MAP_FIXED) != 0 ? address : reserve(round_up(length));
  return at == MAP_FAILED ? at : __real_mmap(at, round_up(length), protection, flags | MAP_FIXED, fd, offset);
}

int __wrap_munmap(void *address, size_t length) {
  if ((uintptr_t)address % PAGE != 0) {
    errno = EINVAL;
    return -1;
  }
  return __real_munmap(address, round_up(length));
}

__attribute__((constructor)) static void check_pages(void) {
  if (pccl_page_bytes() != PAGE) {
    fprintf(stderr, "the program was not linked with --wrap=sysconf\n");
    exit(1);
  }
}
