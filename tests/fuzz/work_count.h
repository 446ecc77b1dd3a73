/* Work as a count that is the same in every run: basic blocks of the library that were run (it is built once more for
 * this, counted.cmake), and what the C library copies and clears, a block for each 64 bytes. */
#ifndef FUZZ_WORK_COUNT_H
#define FUZZ_WORK_COUNT_H

#include <stddef.h>
#include <stdint.h>

/* GCC has no __has_feature. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WORK_UNSEEN __attribute__((no_sanitize("address", "undefined", "coverage")))
#endif
#endif
#ifdef WORK_UNSEEN
static const double work_slack = 4; /* a sanitizer's checks are blocks too */
#else
#define WORK_UNSEEN
static const double work_slack = 1;
#endif

static uint64_t work_blocks;

void __wrap___sanitizer_cov_trace_pc(void); /* libFuzzer has a __sanitizer_cov_trace_pc of its own */
void *__real_memcpy(void *to, const void *from, size_t size);
void *__real_memmove(void *to, const void *from, size_t size);
void *__real_memset(void *to, int value, size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size);
void *__wrap_memset(void *to, int value, size_t size);
void *__wrap_calloc(size_t count, size_t size);

WORK_UNSEEN void __wrap___sanitizer_cov_trace_pc(void) { work_blocks++; }

WORK_UNSEEN void *__wrap_memcpy(void *to, const void *from, size_t size) {
  work_blocks += size / 64;
  return __real_memcpy(to, from, size);
}

WORK_UNSEEN void *__wrap_memmove(void *to, const void *from, size_t size) {
  work_blocks += size / 64;
  return __real_memmove(to, from, size);
}

WORK_UNSEEN void *__wrap_memset(void *to, int value, size_t size) {
  work_blocks += size / 64;
  return __real_memset(to, value, size);
}

WORK_UNSEEN void *__wrap_calloc(size_t count, size_t size) {
  work_blocks += count * size / 64;
  return __real_calloc(count, size);
}

#endif
