/* Whole files and growing text. */
#ifndef PCCL_BASE_FILE_H
#define PCCL_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <polyccl/types.h>

/* Reads a file (a regular one or a pipe) of at most `max_bytes` bytes; *text is one byte longer, with a 0 at its end,
 * and the caller's to free. A UTF-8 byte order mark at the start is left out. INVALID with the path for what cannot be
 * read. */
polyccl_result pccl_read_file(const char *path, size_t max_bytes, char **text, size_t *length);

/* Moves past a UTF-8 byte order mark, for text that does not come from a file. */
void pccl_skip_mark(const char **text, size_t *length);

/* Growing text, 0-terminated after the first append. Once an append finds no memory, `failed` stays true and later
 * appends do nothing, so that a caller checks it once at the end. */
typedef struct pccl_text {
  char *data;
  size_t len, cap;
  bool failed;
} pccl_text;

void pccl_text_add(pccl_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pccl_text_bytes(pccl_text *text, const char *bytes, size_t count);
void pccl_text_free(pccl_text *text);

#endif
