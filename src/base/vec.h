/* Growing arrays, as in `PCCL_VEC(int) numbers = {0};`. The caller frees them with pccl_vec_free(). Sizes are checked.
 */
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

/* Makes room for `more` elements; false if there is no memory, and the array is then unchanged. */
bool pccl_vec_grow(void **data, size_t *cap, size_t len, size_t more, size_t element);

#define pccl_vec_reserve(v, more) \
  ((v)->cap - (v)->len >= (more) || pccl_vec_grow((void **)&(v)->data, &(v)->cap, (v)->len, (more), sizeof *(v)->data))

/* True on success. */
#define pccl_vec_push(v, ...) (pccl_vec_reserve(v, 1) && ((v)->data[(v)->len++] = (__VA_ARGS__), true))

#define pccl_vec_free(v) (free((v)->data), (v)->data = NULL, (v)->len = (v)->cap = 0)

/* Allocate an array of zeros, allocate an uninitialised array, and resize an array. The size is checked for overflow.
 * NULL if there is no memory; 0 elements give an address too. */
void *pccl_zeroed(size_t count, size_t element);
void *pccl_array(size_t count, size_t element);
void *pccl_resized(void *data, size_t count, size_t element);

/* Returns what this thread last failed to allocate, for the error message; element 0 for nothing since the last call.
 */
typedef struct pccl_request {
  size_t count, element;
} pccl_request;
pccl_request pccl_failed_request(void);

char *pccl_strdup(const char *text); /* NULL in, NULL out */

#endif
