/* What the readers of JSON schedules share: parsing, and line numbers, which jansson does not keep. */
#ifndef PCCL_LANGUAGE_SYNTH_JSON_H
#define PCCL_LANGUAGE_SYNTH_JSON_H

#include <jansson.h>
#include <stdint.h>

#include <polyccl/types.h>

/* The caller frees *root with json_decref(). Errors name the line in `file`. */
polyccl_result pccl_synth_parse_json(const char *file, const char *text, size_t length, json_t **root);

/* A place in the text of a file whose strings are asked for in the order in which they stand there. */
typedef struct pccl_line_cursor {
  const char *at, *end;
  int32_t line; /* of `at`, from 1 on */
} pccl_line_cursor;

/* Moves the cursor past the next place where `string` stands in the text and returns the line of that place. Returns 0
 * where the string is not found, because the file spells it with escapes, and from then on: a search of the rest for
 * every string would take too long. `line` stays what it was. */
int32_t pccl_line_of(pccl_line_cursor *cursor, const char *string);

#endif
