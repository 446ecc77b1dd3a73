#include "runtime/blocks.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"

enum { LARGEST_SHARE = 16 }; /* the largest buffer is this part of the address space */

polyccl_result pccl_blocks_check(const pccl_blocks *b) {
  if (b->counts == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: the %s counts are NULL", b->call, b->side);
  }
  size_t offset = 0;
  for (int rank = 0; rank < b->ranks; rank++) {
    size_t begin = b->displs != NULL ? b->displs[rank] : offset, end, bytes;
    if (__builtin_add_overflow(begin, b->counts[rank], &end) || __builtin_mul_overflow(end, b->element, &bytes) ||
        bytes > SIZE_MAX / LARGEST_SHARE) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "%s: %s block %d (%zu elements from element %zu) is beyond memory",
                       b->call, b->side, rank, b->counts[rank], begin);
    }
    if (b->counts[rank] > 0 && b->buffer == NULL) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "%s: the %s buffer is NULL", b->call, b->side);
    }
    offset = end;
  }
  return POLYCCL_SUCCESS;
}

typedef struct range {
  size_t begin, end;
  int rank;
} range;

static int compare_begins(const void *a, const void *b) {
  const range *left = a, *right = b;
  return left->begin < right->begin ? -1 : left->begin > right->begin;
}

/* Most callers have their blocks in the order of the ranks. */
static bool ascends(const pccl_blocks *b) {
  size_t end = 0;
  for (int rank = 0; rank < b->ranks; rank++) {
    if (b->counts[rank] > 0 && b->displs[rank] < end) {
      return false;
    }
    end = b->counts[rank] > 0 ? b->displs[rank] + b->counts[rank] : end;
  }
  return true;
}

polyccl_result pccl_blocks_check_apart(const pccl_blocks *b) {
  if (b->displs == NULL || ascends(b)) {
    return POLYCCL_SUCCESS;
  }
  range *ranges = pccl_array((size_t)b->ranks, sizeof *ranges);
  if (ranges == NULL) {
    return pccl_no_memory("a check of blocks");
  }
  size_t length = 0;
  for (int rank = 0; rank < b->ranks; rank++) {
    if (b->counts[rank] > 0) {
      ranges[length++] = (range){b->displs[rank], b->displs[rank] + b->counts[rank], rank};
    }
  }
  qsort(ranges, length, sizeof *ranges, compare_begins);
  polyccl_result result = POLYCCL_SUCCESS;
  for (size_t i = 1; i < length && result == POLYCCL_SUCCESS; i++) {
    if (ranges[i].begin < ranges[i - 1].end) {
      result = pccl_fail(POLYCCL_ERROR_INVALID, "%s: %s blocks %d and %d overlap", b->call, b->side, ranges[i - 1].rank,
                         ranges[i].rank);
    }
  }
  free(ranges);
  return result;
}

void *pccl_block_at(const pccl_blocks *b, int rank, size_t offset) {
  size_t begin = b->displs != NULL ? b->displs[rank] : offset;
  return b->counts[rank] > 0 ? (char *)(uintptr_t)b->buffer + begin * b->element : NULL;
}

bool pccl_blocks_touch(const pccl_blocks *b, int except, const void *memory, size_t bytes) {
  uintptr_t from = (uintptr_t)memory, to = from + bytes;
  size_t offset = 0;
  for (int rank = 0; rank < b->ranks; rank++) {
    uintptr_t begin = (uintptr_t)b->buffer + (b->displs != NULL ? b->displs[rank] : offset) * b->element;
    offset += b->counts[rank];
    if (rank != except && bytes > 0 && b->counts[rank] > 0 && begin < to &&
        from < begin + b->counts[rank] * b->element) {
      return true;
    }
  }
  return false;
}
