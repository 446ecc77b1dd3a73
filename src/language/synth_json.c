/* What the readers of JSON schedules share. */
#include "language/synth_json.h"

#include <string.h>

#include "base/error.h"

polyccl_result pccl_synth_parse_json(const char *file, const char *text, size_t length, json_t **root) {
  json_error_t error;
  *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
  if (*root == NULL) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, (polyccl_location){file, error.line}, "not well-formed JSON: %s",
                        error.text);
  }
  return POLYCCL_SUCCESS;
}

int32_t pccl_line_of(pccl_line_cursor *cursor, const char *string) {
  size_t length = strlen(string);
  const char *found = memmem(cursor->at, (size_t)(cursor->end - cursor->at), string, length);
  if (found == NULL) {
    cursor->at = cursor->end;
    return 0;
  }
  for (const char *at = cursor->at; at < found; at++) {
    cursor->line += *at == '\n' ? 1 : 0;
  }
  cursor->at = found + length;
  return cursor->line;
}
