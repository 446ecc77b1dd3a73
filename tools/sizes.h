/* Sizes on the command line: BYTES, or MIN:MAX, or MIN:MAX:FACTOR, or MIN:MAX:+STEP, with k, m, g as powers of 1024. */
#ifndef PCCL_TOOLS_SIZES_H
#define PCCL_TOOLS_SIZES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pccl_sizes {
  uint64_t min, max;
  uint64_t factor; /* >= 2; or 0: */
  uint64_t step;   /* >= 1 */
} pccl_sizes;

#define PCCL_SIZES_WANTED "a size such as 64m, or sizes such as 1k:64m, 8:64m:4 or 1m:8m:+1m"

/* False: not sizes, or more than PCCL_MOST_SIZES of them. */
bool pccl_sizes_parse(const char *text, pccl_sizes *sizes);
enum { PCCL_MOST_SIZES = 100000 };

size_t pccl_sizes_count(const pccl_sizes *sizes);
/* The size after `at`, false after the last. */
bool pccl_sizes_next(const pccl_sizes *sizes, uint64_t *at);

/* "64 KiB", "1.5 MiB", "100 B" into text. */
const char *pccl_size_text(uint64_t bytes, char *text, size_t room);

#endif
