/* XML as far as the executors' parsers read it: names, attributes in double quotes after one blank each, no tabs,
 * values and numbers of attributes within what they store. For the model of these executors (msccl.h). */
#ifndef PCCL_TESTS_INTERPRETER_MSCCL_TAG_H
#define PCCL_TESTS_INTERPRETER_MSCCL_TAG_H

#include <stdbool.h>
#include <stddef.h>

enum { MSCCL_TEXT = 255, MSCCL_ATTRIBUTES = 16 };

typedef struct msccl_cursor {
  const char *at;
  const char *name; /* the executor and rank, for messages */
  int rank;
  char *why;
  size_t size;
} msccl_cursor;

typedef struct msccl_tag {
  char name[MSCCL_TEXT + 1];
  char key[MSCCL_ATTRIBUTES][MSCCL_TEXT + 1], value[MSCCL_ATTRIBUTES][MSCCL_TEXT + 1];
  int attributes;
  bool closes, single;
} msccl_tag;

/* All false on what is refused, with the reason in why. */
bool msccl_next_tag(msccl_cursor *c, msccl_tag *t, bool *there); /* *there: false at the end */
bool msccl_tag_text(msccl_cursor *c, const msccl_tag *t, const char *key, const char **value);
bool msccl_tag_number(msccl_cursor *c, const msccl_tag *t, const char *key, int *value);

/* Sets why; false. */
bool msccl_refuse(msccl_cursor *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
