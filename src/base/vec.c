#include "base/vec.h"

#include <stdint.h>
#include <string.h>

bool pccl_vec_grow(void **data, size_t *cap, size_t len, size_t more, size_t element) {
  enum { FIRST = 8 };
  size_t want;
  if (__builtin_add_overflow(len, more, &want)) {
    return false;
  }
  size_t next = *cap < FIRST ? FIRST : *cap;
  while (next < want) {
    next = next > SIZE_MAX / 2 ? want : next * 2;
  }
  size_t bytes;
  if (__builtin_mul_overflow(next, element, &bytes)) {
    return false;
  }
  void *grown = realloc(*data, bytes);
  if (grown == NULL) {
    return false;
  }
  *data = grown;
  *cap = next;
  return true;
}

void *pccl_zeroed(size_t count, size_t element) { return calloc(count > 0 ? count : 1, element); }

void *pccl_array(size_t count, size_t element) {
  size_t bytes;
  if (__builtin_mul_overflow(count > 0 ? count : 1, element, &bytes)) {
    return NULL;
  }
  return malloc(bytes);
}

char *pccl_strdup(const char *text) {
  if (text == NULL) {
    return NULL;
  }
  size_t size = strlen(text) + 1;
  char *copy = malloc(size);
  if (copy != NULL) {
    memcpy(copy, text, size);
  }
  return copy;
}
