/* Sizes on the command line: BYTES, MIN:MAX, MIN:MAX:FACTOR or MIN:MAX:+STEP. Units are k, m and g, also written as KB
 * or KiB; all are powers of 1024. 0 is a size; a range from 0 needs a step. */
#ifndef PCCL_TOOLS_SIZES_H
#define PCCL_TOOLS_SIZES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The maximum size of a call that any subcommand takes, so that what is computed from it fits 64 bits. */
#define PCCL_MAX_BYTES ((uint64_t)1 << 60)

typedef struct pccl_sizes {
  uint64_t min, max;
  uint64_t factor; /* >= 2; or 0: */
  uint64_t step;   /* >= 1 */
} pccl_sizes;

#define PCCL_SIZES_EXPECTED "a size from 0 to 1073741824g such as 64m, or sizes such as 1k:64m, 8:64m:4 or 1m:8m:+1m"

/* Returns false if the text is not sizes, or more than PCCL_MAX_SIZES of them; `why` then says what is wrong, after ":
 * ". */
bool pccl_sizes_parse(const char *text, pccl_sizes *sizes, char *why, size_t room);
enum { PCCL_MAX_SIZES = 100000 };

size_t pccl_sizes_count(const pccl_sizes *sizes);
/* Moves *at to the next size; false after the last. */
bool pccl_sizes_next(const pccl_sizes *sizes, uint64_t *at);

/* Writes a number as on the command line: "64k", "100". Returns `text`. */
const char *pccl_size_word(uint64_t number, char *text, size_t room);

/* Writes a size for people: "64 KiB", "1.5 MiB", "100 B". Returns `text`. */
const char *pccl_size_text(uint64_t bytes, char *text, size_t room);

#endif
