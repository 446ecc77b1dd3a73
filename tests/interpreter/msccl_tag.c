#include "msccl_tag.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool msccl_refuse(msccl_cursor *c, const char *format, ...) {
  int length = snprintf(c->why, c->size, "%s, rank %d: ", c->name, c->rank);
  va_list arguments;
  va_start(arguments, format);
  if (length > 0 && (size_t)length < c->size) {
    vsnprintf(c->why + length, c->size - (size_t)length, format, arguments);
  }
  va_end(arguments);
  return false;
}

/* Takes characters up to one of `ends`, which it passes and gives. */
static bool take_text(msccl_cursor *c, char *to, const char *ends, char *end) {
  int length = 0;
  while (*c->at != '\0' && strchr(ends, *c->at) == NULL) {
    if (length == MSCCL_TEXT) {
      return msccl_refuse(c, "a name or value of more than %d bytes", MSCCL_TEXT);
    }
    to[length++] = *c->at++;
  }
  to[length] = '\0';
  *end = *c->at;
  return *c->at != '\0' ? (c->at++, true) : msccl_refuse(c, "the file ends too early");
}

/* *there: false at the end of the file. */
bool msccl_next_tag(msccl_cursor *c, msccl_tag *t, bool *there) {
  char end, rest[MSCCL_TEXT + 1];
  while (*c->at == ' ' || *c->at == '\n' || *c->at == '\r') {
    c->at++;
  }
  *there = *c->at != '\0';
  if (!*there) {
    return true;
  }
  if (*c->at++ != '<') {
    return msccl_refuse(c, "expected '<'");
  }
  t->attributes = 0;
  t->single = false;
  t->closes = *c->at == '/';
  c->at += t->closes ? 1 : 0;
  if (!take_text(c, t->name, " >/\n\r", &end)) {
    return false;
  }
  while (end == ' ') {
    if (t->attributes == MSCCL_ATTRIBUTES) {
      return msccl_refuse(c, "more than %d attributes", MSCCL_ATTRIBUTES);
    }
    if (!take_text(c, t->key[t->attributes], "= >/\n\r", &end) || end != '=' || *c->at++ != '"' ||
        !take_text(c, t->value[t->attributes], "\"", &end)) {
      return msccl_refuse(c, "an attribute that is not name=\"value\"");
    }
    t->attributes++;
    end = *c->at != '\0' ? *c->at++ : '\0';
  }
  t->single = end == '/';
  if (t->single && !take_text(c, rest, ">", &end)) {
    return false;
  }
  return end == '>' || msccl_refuse(c, "expected '>' in %s", t->name);
}

static const char *find(const msccl_tag *t, const char *key) {
  for (int i = 0; i < t->attributes; i++) {
    if (strcmp(t->key[i], key) == 0) {
      return t->value[i];
    }
  }
  return NULL;
}

bool msccl_tag_text(msccl_cursor *c, const msccl_tag *t, const char *key, const char **value) {
  *value = find(t, key);
  return *value != NULL || msccl_refuse(c, "<%s> has no %s", t->name, key);
}

bool msccl_tag_number(msccl_cursor *c, const msccl_tag *t, const char *key, int *value) {
  const char *text;
  *value = 0;
  if (!msccl_tag_text(c, t, key, &text)) {
    return false;
  }
  long long number = strtoll(text, NULL, 0);
  *value = (int)number;
  return true;
}
