/* Memory that other processes may address: what is found behind registered memory, which registration a buffer belongs
 * to, and that others read and write there what they should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <polyccl/polyccl.h>

#include "memory/kernel_copy.h"
#include "memory/region.h"

static size_t page(void) { return pccl_page_bytes(); }

static uint32_t tag(uint32_t seed, size_t i) { return seed * 2654435761u + (uint32_t)i * 40503u; }

static void fill(void *memory, size_t bytes, uint32_t seed) {
  for (size_t i = 0; i < bytes / 4; i++) {
    ((uint32_t *)memory)[i] = tag(seed, i);
  }
}

static size_t count_wrong(const void *memory, size_t bytes, uint32_t seed) {
  size_t wrong = 0;
  for (size_t i = 0; i < bytes / 4; i++) {
    wrong += ((const uint32_t *)memory)[i] != tag(seed, i);
  }
  return wrong;
}

static int make_file(const char *name, size_t bytes) {
  int fd = memfd_create(name, MFD_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
  return fd;
}

static void *map_file(int fd, size_t bytes, size_t offset) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
  assert_ptr_not_equal(memory, MAP_FAILED);
  return memory;
}

static polyccl_registration *enter(void *memory, size_t bytes) {
  polyccl_registration *registration = NULL;
  if (polyccl_register(memory, bytes, &registration) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  assert_non_null(registration);
  return registration;
}

static void leave(polyccl_registration *registration) {
  assert_int_equal(polyccl_deregister(registration), POLYCCL_SUCCESS);
}

/* In a child: finds the memory of process `pid`, expects `seed` there and leaves `seed + 1`. */
static int visit(pid_t pid, pccl_reference reference, size_t bytes, uint32_t seed) {
  pccl_region_cache cache = {0};
  char *address = NULL;
  if (pccl_region_address(&cache, pid, reference, &address) != POLYCCL_SUCCESS) {
    return 2;
  }
  if (count_wrong(address, bytes, seed) != 0) {
    return 3;
  }
  fill(address, bytes, seed + 1);
  pccl_region_cache_free(&cache);
  return 0;
}

/* Another process, which maps nothing of ours before it is told, reads and writes the memory by its reference. */
static void expect_visit(void *memory, size_t bytes, uint32_t seed) {
  pccl_reference reference = pccl_region_reference(memory, bytes);
  assert_true(reference.region != 0);
  fill(memory, bytes, seed);
  pid_t parent = getpid(), child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    _exit(visit(parent, reference, bytes, seed));
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_int_equal(count_wrong(memory, bytes, seed + 1), 0);
}

static void others_reach_a_registered_file(void **state) {
  (void)state;
  size_t bytes = 4 * page();
  int fd = make_file("test", 16 * page());
  char *memory = map_file(fd, bytes, 3 * page());
  assert_int_equal(pccl_region_reference(memory, bytes).region, 0);
  polyccl_registration *registration = enter(memory, bytes);
  close(fd); /* the library has it open */
  assert_int_equal(pccl_region_reference(memory, bytes).offset, 3 * page());
  expect_visit(memory, bytes, 11);
  expect_visit(memory + 4 * 100, page(), 12);
  assert_int_equal(pccl_region_reference(memory + 4, bytes).region, 0); /* not wholly registered */
  leave(registration);
  assert_int_equal(pccl_region_reference(memory, bytes).region, 0);
  munmap(memory, bytes);
}

/* A mapping that the kernel keeps in pieces, and a registration that begins and ends within pages. */
static void pieces_of_one_file_are_one(void **state) {
  (void)state;
  int fd = make_file("test", 8 * page());
  char *memory = map_file(fd, 8 * page(), 0);
  assert_int_equal(mprotect(memory + 2 * page(), page(), PROT_READ), 0);
  polyccl_registration *whole = enter(memory + 60, 8 * page() - 100);
  assert_int_equal(pccl_region_reference(memory + 60, 100).region, 0); /* some of it can only be read */
  leave(whole);
  assert_int_equal(mprotect(memory + 2 * page(), page(), PROT_READ | PROT_WRITE | PROT_EXEC), 0);
  whole = enter(memory + 60, 8 * page() - 100);
  expect_visit(memory + 60, 8 * page() - 100, 21);
  leave(whole);
  /* The same file again, but not where it would go on. */
  assert_ptr_not_equal(
      mmap(memory + 2 * page(), page(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)(5 * page())),
      MAP_FAILED);
  whole = enter(memory, 8 * page());
  assert_int_equal(pccl_region_reference(memory, 100).region, 0);
  leave(whole);
  close(fd);
  munmap(memory, 8 * page());
}

static void a_path_leads_to_the_file(void **state) {
  (void)state;
  char path[] = "/tmp/polyccl-memory-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(ftruncate(fd, (off_t)(2 * page())), 0);
  char *memory = map_file(fd, 2 * page(), 0);
  close(fd);
  polyccl_registration *registration = enter(memory, 2 * page());
  if (pccl_region_reference(memory, 1).region != 0) { /* not on file systems that give mappings another device */
    expect_visit(memory, 2 * page(), 31);
  }
  leave(registration);
  assert_int_equal(unlink(path), 0);
  registration = enter(memory, 2 * page());
  assert_int_equal(pccl_region_reference(memory, 1).region, 0);
  leave(registration);
  munmap(memory, 2 * page());
}

/* What no file holds that others could map can be registered and has no name. */
static void other_memory_has_no_name(void **state) {
  (void)state;
  static const int flags[] = {MAP_PRIVATE | MAP_ANONYMOUS, MAP_SHARED | MAP_ANONYMOUS, MAP_PRIVATE};
  for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
    int fd = (flags[i] & MAP_ANONYMOUS) != 0 ? -1 : make_file("test", page());
    void *memory = mmap(NULL, page(), PROT_READ | PROT_WRITE, flags[i], fd, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    polyccl_registration *registration = enter(memory, page());
    pccl_reference reference = pccl_region_reference(memory, page());
    assert_int_equal(reference.region, 0);
    assert_int_equal(reference.address, (uintptr_t)memory);
    leave(registration);
    munmap(memory, page());
    if (fd >= 0) {
      close(fd);
    }
  }
}

/* A registration goes on to name the file that it began with. */
static void a_file_may_grow(void **state) {
  (void)state;
  int fd = make_file("test", page());
  char *small = map_file(fd, page(), 0);
  polyccl_registration *first = enter(small, page());
  assert_int_equal(ftruncate(fd, (off_t)(4 * page())), 0);
  char *large = map_file(fd, 4 * page(), 0);
  polyccl_registration *second = enter(large, 4 * page());
  /* Others may have mapped the first page only. */
  assert_true(pccl_region_reference(small, 1).region != pccl_region_reference(large, 1).region);
  expect_visit(large, 4 * page(), 41);
  expect_visit(small, page(), 42);
  leave(first);
  expect_visit(large, 4 * page(), 43);
  leave(second);
  close(fd);
  munmap(small, page());
  munmap(large, 4 * page());
}

static void expect_invalid(polyccl_result result, const char *says) {
  assert_int_equal(result, POLYCCL_ERROR_INVALID);
  if (strstr(polyccl_last_error(), says) == NULL) {
    fail_msg("\"%s\" does not say \"%s\"", polyccl_last_error(), says);
  }
}

static void bad_input_is_refused(void **state) {
  (void)state;
  polyccl_registration *registration = NULL;
  char *memory = mmap(NULL, 3 * page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(memory, MAP_FAILED);
  expect_invalid(polyccl_register(NULL, 1, &registration), "memory is NULL");
  expect_invalid(polyccl_register(memory, 0, &registration), "no bytes");
  expect_invalid(polyccl_register(memory, 1, NULL), "registration is NULL");
  expect_invalid(polyccl_register(memory, SIZE_MAX, &registration), "no address space");
  assert_int_equal(munmap(memory + page(), page()), 0);
  char hole[64];
  snprintf(hole, sizeof hole, "there is no memory at %#llx", (unsigned long long)(uintptr_t)(memory + page()));
  expect_invalid(polyccl_register(memory, 3 * page(), &registration), hole);
  assert_null(registration);
  assert_int_equal(polyccl_deregister(NULL), POLYCCL_SUCCESS);
  expect_invalid(polyccl_deregister((polyccl_registration *)(uintptr_t)0x123456789), "no such registration");
  polyccl_registration *one = enter(memory, 8), *two = enter(memory, 8);
  leave(one);
  polyccl_registration *three = enter(memory, 8);
  expect_invalid(polyccl_deregister(one), "was given back");
  leave(two);
  leave(three);
  expect_invalid(polyccl_deregister(three), "was given back");
  /* A registration of allocated memory is no allocation. */
  void *allocated;
  assert_int_equal(polyccl_mem_alloc(&allocated, 100), POLYCCL_SUCCESS);
  one = enter(allocated, 100);
  assert_int_equal(polyccl_mem_free(allocated), POLYCCL_SUCCESS);
  expect_invalid(polyccl_mem_free(allocated), "is not from polyccl_mem_alloc");
  leave(one);
  munmap(memory, 3 * page());
}

/* Random registrations of pieces of a mapping that nest and overlap, against the definition: a buffer has a name while
 * one of them holds all of it. */
static void registrations_overlap(void **state) {
  (void)state;
  enum { MANY = 24, ROUNDS = 4000, BYTES = 1000 };
  struct {
    polyccl_registration *registration;
    size_t begin, end;
  } held[MANY] = {0};
  int fd = make_file("test", page());
  char *memory = map_file(fd, page(), 0);
  unsigned seed = 7;
  for (int round = 0; round < ROUNDS; round++) {
    size_t which = (size_t)rand_r(&seed) % MANY;
    if (held[which].registration != NULL) {
      leave(held[which].registration);
      held[which].registration = NULL;
    } else {
      held[which].begin = (size_t)rand_r(&seed) % BYTES;
      held[which].end = held[which].begin + 1 + (size_t)rand_r(&seed) % (BYTES - held[which].begin);
      held[which].registration = enter(memory + held[which].begin, held[which].end - held[which].begin);
    }
    size_t begin = (size_t)rand_r(&seed) % BYTES, length = 1 + (size_t)rand_r(&seed) % 100;
    bool covered = false;
    for (size_t i = 0; i < MANY; i++) {
      covered = covered || (held[i].registration != NULL && held[i].begin <= begin && begin + length <= held[i].end);
    }
    pccl_reference reference = pccl_region_reference(memory + begin, length);
    assert_int_equal(reference.region != 0, covered);
    assert_int_equal(reference.offset, covered ? begin : 0);
  }
  for (size_t i = 0; i < MANY; i++) {
    if (held[i].registration != NULL) {
      leave(held[i].registration);
    }
  }
  assert_int_equal(pccl_region_reference(memory, 1).region, 0);
  close(fd);
  munmap(memory, page());
}

/* A child has its parent's registrations, and others reach its memory by its own number. */
static void a_child_has_the_registrations(void **state) {
  (void)state;
  int fd = make_file("test", page()), up[2], down[2];
  assert_int_equal(pipe(up) | pipe(down), 0);
  char *memory = map_file(fd, page(), 0);
  polyccl_registration *registration = enter(memory, page());
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    pccl_reference reference = pccl_region_reference(memory, page());
    fill(memory, page(), 51);
    bool told = write(up[1], &reference, sizeof reference) == (ssize_t)sizeof reference;
    char go;
    bool went = read(down[0], &go, 1) == 1;
    bool right = told && went && count_wrong(memory, page(), 52) == 0;
    _exit(right && polyccl_deregister(registration) == POLYCCL_SUCCESS &&
                  polyccl_deregister(registration) == POLYCCL_ERROR_INVALID
              ? 0
              : 1);
  }
  pccl_reference reference;
  assert_int_equal(read(up[0], &reference, sizeof reference), sizeof reference);
  assert_int_equal(visit(child, reference, page(), 51), 0);
  assert_int_equal(write(down[1], "g", 1), 1);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  leave(registration); /* ours stays when the child gives its own back */
  close(fd);
  for (int i = 0; i < 2; i++) {
    close(up[i]);
    close(down[i]);
  }
  munmap(memory, page());
}

/* ---- copies through the kernel ---- */

/* A child with tagged memory that waits to be killed. */
static pid_t start_victim(const char *memory, size_t bytes) {
  int ready[2];
  char byte = 0;
  assert_int_equal(pipe(ready), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    fill((void *)(uintptr_t)memory, bytes, 61); /* its own copy of the pages */
    if (write(ready[1], &byte, 1) == 1) {
      for (;;) {
        pause();
      }
    }
    _exit(1);
  }
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  return child;
}

static void the_kernel_copies_from_a_process(void **state) {
  (void)state;
  enum { PIECES = PCCL_COPY_PIECES };
  size_t each = page() / 4, bytes = PIECES * each;
  uint64_t cookie = 0x1234567890abcdef;
  char *memory = mmap(NULL, bytes + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(memory, MAP_FAILED);
  assert_int_equal(munmap(memory + bytes, page()), 0);
  pid_t child = start_victim(memory, bytes);
  pccl_process process = {child, (uintptr_t)&cookie, cookie};
  if (pccl_kernel_copy(&process, NULL, 0) == EPERM) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    skip();
  }
  char *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(copy, MAP_FAILED);
  pccl_piece piece[PIECES];
  for (size_t i = 0; i < PIECES; i++) { /* in another order than they lie */
    size_t at = (i * 7 % PIECES) * each;
    piece[i] = (pccl_piece){copy + at, (uintptr_t)memory + at, each};
  }
  assert_int_equal(pccl_kernel_copy(&process, piece, PIECES), 0);
  assert_int_equal(count_wrong(copy, bytes, 61), 0);
  assert_int_not_equal(count_wrong(memory, bytes, 61), 0); /* the copy is not of ours */
  /* Memory that ends, there and here. */
  pccl_piece beyond = {copy, (uintptr_t)memory + bytes - 100, 200};
  assert_int_equal(pccl_kernel_copy(&process, &beyond, 1), EFAULT);
  assert_int_equal(mprotect(copy, page(), PROT_READ), 0);
  assert_int_equal(pccl_kernel_copy(&process, piece, PIECES), EFAULT);
  assert_int_equal(mprotect(copy, page(), PROT_READ | PROT_WRITE), 0);
  /* Another process under its number, and none. */
  pccl_process other = {child, (uintptr_t)&cookie, cookie + 1};
  assert_int_equal(pccl_kernel_copy(&other, piece, PIECES), ESRCH);
  other = (pccl_process){child, (uintptr_t)memory + bytes, cookie};
  assert_int_equal(pccl_kernel_copy(&other, piece, PIECES), ESRCH);
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, NULL, 0), child);
  assert_int_equal(pccl_kernel_copy(&process, piece, PIECES), ESRCH);
  munmap(memory, bytes);
  munmap(copy, bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(others_reach_a_registered_file),
                                     cmocka_unit_test(pieces_of_one_file_are_one),
                                     cmocka_unit_test(a_path_leads_to_the_file),
                                     cmocka_unit_test(other_memory_has_no_name),
                                     cmocka_unit_test(a_file_may_grow),
                                     cmocka_unit_test(bad_input_is_refused),
                                     cmocka_unit_test(registrations_overlap),
                                     cmocka_unit_test(a_child_has_the_registrations),
                                     cmocka_unit_test(the_kernel_copies_from_a_process)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
