/* Growing arrays: `PCCL_VEC(int) numbers = {0};`. The caller frees `.data`; sizes are checked. */
#ifndef PCCL_BASE_VEC_H
#define PCCL_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define PCCL_VEC(type) \
  struct {             \
    type *data;        \
    size_t len, cap;   \
  }

/* Makes room for `more` elements; false: no memory, nothing changed. */
bool pccl_vec_grow(void **data, size_t *cap, size_t len, size_t more, size_t element);

#define pccl_vec_reserve(v, more) \
  ((v)->cap - (v)->len >= (more) || pccl_vec_grow((void **)&(v)->data, &(v)->cap, (v)->len, (more), sizeof *(v)->data))

/* True on success. */
#define pccl_vec_push(v, ...) (pccl_vec_reserve(v, 1) && ((v)->data[(v)->len++] = (__VA_ARGS__), true))

#define pccl_vec_free(v) (free((v)->data), (v)->data = NULL, (v)->len = (v)->cap = 0)

/* calloc, an uninitialised array, realloc; sizes checked; NULL: no memory (never for 0 elements). */
void *pccl_zeroed(size_t count, size_t element);
void *pccl_array(size_t count, size_t element);
void *pccl_resized(void *data, size_t count, size_t element);

/* What this thread last failed to allocate, for the error message; element 0: nothing since the last call. */
typedef struct pccl_request {
  size_t count, element;
} pccl_request;
pccl_request pccl_failed_request(void);

char *pccl_strdup(const char *text); /* NULL in, NULL out */

#endif
