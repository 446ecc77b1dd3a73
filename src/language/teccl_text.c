/* Reading the sentences of TE-CCL's schedules. */
#include "language/teccl.h"

#include <math.h>
#include <string.h>

#include <polyccl/program.h>

enum { MAX_NODE = 1 << 20 }; /* the key of `held` in teccl.c has 21 bits for a node */

static bool skip_word(const char **at, const char *word) {
  size_t length = strlen(word);
  if (strncmp(*at, word, length) != 0) {
    return false;
  }
  *at += length;
  return true;
}

static bool read_number(const char **at, int32_t max, int32_t *value) {
  int64_t number = 0;
  const char *start = *at;
  while (**at >= '0' && **at <= '9' && number <= max) {
    number = number * 10 + (*(*at)++ - '0');
  }
  *value = (int32_t)(number <= max ? number : 0);
  return *at > start && number <= max;
}

/* Digits, perhaps with a point and an exponent; strtod would depend on the locale. */
static bool read_decimal(const char **at, double *value) {
  double number = 0, unit = 1;
  const char *start = *at;
  for (; **at >= '0' && **at <= '9'; (*at)++) {
    number = number * 10 + (**at - '0');
  }
  if (skip_word(at, ".")) {
    for (; **at >= '0' && **at <= '9'; (*at)++) {
      unit /= 10;
      number += unit * (**at - '0');
    }
  }
  bool right = *at > start;
  if (right && (**at == 'e' || **at == 'E')) {
    int32_t exponent;
    (*at)++;
    bool negative = skip_word(at, "-");
    right = (negative || skip_word(at, "+") || true) && read_number(at, 300, &exponent);
    number = right ? number * pow(10, negative ? -exponent : exponent) : 0;
  }
  *value = number;
  return right && isfinite(number);
}

bool pccl_teccl_hop(const char *text, pccl_flow *f) {
  f->volume = 1;
  f->has_volume = false;
  if (!read_number(&text, MAX_NODE, &f->from) || !skip_word(&text, "->") || !read_number(&text, MAX_NODE, &f->to)) {
    return false;
  }
  if (skip_word(&text, " with volume ")) {
    f->has_volume = true;
    if (!read_decimal(&text, &f->volume)) {
      return false;
    }
  }
  return (skip_word(&text, " in epoch ") || skip_word(&text, " at epoch ")) &&
         read_number(&text, INT32_MAX, &f->epoch) &&
         (*text == '\0' || strncmp(text, " via switches ", strlen(" via switches ")) == 0);
}

bool pccl_teccl_flow(const char *text, pccl_flow *f) {
  return skip_word(&text, "Chunk ") && read_number(&text, POLYCCL_MAX_CHUNKS - 1, &f->chunk) &&
         skip_word(&text, " from ") && read_number(&text, MAX_NODE, &f->source) &&
         skip_word(&text, " traveled over ") && pccl_teccl_hop(text, f);
}

bool pccl_teccl_demand(const char *text, pccl_demand *d) {
  return skip_word(&text, "Demand at ") && read_number(&text, MAX_NODE, &d->at) && skip_word(&text, " for chunk ") &&
         read_number(&text, POLYCCL_MAX_CHUNKS - 1, &d->chunk) && skip_word(&text, " from ") &&
         read_number(&text, MAX_NODE, &d->source);
}
