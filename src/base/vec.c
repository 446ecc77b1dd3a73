#include "base/vec.h"

#include <stdint.h>
#include <string.h>

static _Thread_local pccl_request failed;

/* Stores the request if it failed; returns `memory`. */
static void *remember_failure(void *memory, size_t count, size_t element) {
  if (memory == NULL) {
    failed = (pccl_request){count, element};
  }
  return memory;
}

pccl_request pccl_failed_request(void) {
  pccl_request last = failed;
  failed = (pccl_request){0, 0};
  return last;
}

bool pccl_vec_grow(void **data, size_t *cap, size_t len, size_t more, size_t element) {
  enum { FIRST = 8 };
  size_t want;
  if (__builtin_add_overflow(len, more, &want)) {
    return remember_failure(NULL, SIZE_MAX, element) != NULL;
  }
  size_t next = *cap < FIRST ? FIRST : *cap;
  while (next < want) {
    next = next > SIZE_MAX / 2 ? want : next * 2;
  }
  void *grown = pccl_resized(*data, next, element);
  if (grown == NULL) {
    return false;
  }
  *data = grown;
  *cap = next;
  return true;
}

void *pccl_zeroed(size_t count, size_t element) {
  return remember_failure(calloc(count > 0 ? count : 1, element), count, element);
}

void *pccl_array(size_t count, size_t element) { return pccl_resized(NULL, count, element); }

void *pccl_resized(void *data, size_t count, size_t element) {
  size_t bytes;
  bool fits = !__builtin_mul_overflow(count > 0 ? count : 1, element, &bytes);
  return remember_failure(fits ? realloc(data, bytes) : NULL, count, element);
}

char *pccl_strdup(const char *text) {
  if (text == NULL) {
    return NULL;
  }
  size_t size = strlen(text) + 1;
  char *copy = pccl_array(size, 1);
  if (copy != NULL) {
    memcpy(copy, text, size);
  }
  return copy;
}
