/* Reading the sentences of TE-CCL's schedules. */
#include "language/teccl.h"

#include <math.h>
#include <string.h>

#include <polyccl/program.h>

enum { MOST_NODE = 1 << 20 };

static bool take(const char **at, const char *word) {
  size_t length = strlen(word);
  if (strncmp(*at, word, length) != 0) {
    return false;
  }
  *at += length;
  return true;
}

static bool take_number(const char **at, int32_t most, int32_t *value) {
  int64_t number = 0;
  const char *start = *at;
  while (**at >= '0' && **at <= '9' && number <= most) {
    number = number * 10 + (*(*at)++ - '0');
  }
  *value = (int32_t)(number <= most ? number : 0);
  return *at > start && number <= most;
}

/* Digits, perhaps with a point and an exponent; strtod would depend on the locale. */
static bool take_decimal(const char **at, double *value) {
  double number = 0, unit = 1;
  const char *start = *at;
  for (; **at >= '0' && **at <= '9'; (*at)++) {
    number = number * 10 + (**at - '0');
  }
  if (take(at, ".")) {
    for (; **at >= '0' && **at <= '9'; (*at)++) {
      unit /= 10;
      number += unit * (**at - '0');
    }
  }
  bool right = *at > start;
  if (right && (**at == 'e' || **at == 'E')) {
    int32_t exponent;
    (*at)++;
    bool negative = take(at, "-");
    right = (negative || take(at, "+") || true) && take_number(at, 300, &exponent);
    number = right ? number * pow(10, negative ? -exponent : exponent) : 0;
  }
  *value = number;
  return right && isfinite(number);
}

bool pccl_teccl_hop(const char *text, pccl_flow *f) {
  f->volume = 1;
  f->has_volume = false;
  if (!take_number(&text, MOST_NODE, &f->from) || !take(&text, "->") || !take_number(&text, MOST_NODE, &f->to)) {
    return false;
  }
  if (take(&text, " with volume ")) {
    f->has_volume = true;
    if (!take_decimal(&text, &f->volume)) {
      return false;
    }
  }
  return (take(&text, " in epoch ") || take(&text, " at epoch ")) && take_number(&text, INT32_MAX, &f->epoch) &&
         (*text == '\0' || strncmp(text, " via switches ", strlen(" via switches ")) == 0);
}

bool pccl_teccl_flow(const char *text, pccl_flow *f) {
  return take(&text, "Chunk ") && take_number(&text, POLYCCL_MAX_CHUNKS - 1, &f->chunk) && take(&text, " from ") &&
         take_number(&text, MOST_NODE, &f->source) && take(&text, " traveled over ") && pccl_teccl_hop(text, f);
}

bool pccl_teccl_demand(const char *text, pccl_demand *d) {
  return take(&text, "Demand at ") && take_number(&text, MOST_NODE, &d->at) && take(&text, " for chunk ") &&
         take_number(&text, POLYCCL_MAX_CHUNKS - 1, &d->chunk) && take(&text, " from ") &&
         take_number(&text, MOST_NODE, &d->source);
}
