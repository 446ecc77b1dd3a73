#include "sizes.h"

#include <stdio.h>
#include <string.h>

#include "base/options.h"

/* Moves *text behind the field that ends at ':' or the end; false when it is no number. */
static bool take_field(const char **text, uint64_t *value) {
  char field[32];
  size_t length = strcspn(*text, ":");
  if (length == 0 || length >= sizeof field) {
    return false;
  }
  memcpy(field, *text, length);
  field[length] = '\0';
  *text += length;
  return pccl_parse_size(field, value);
}

bool pccl_sizes_parse(const char *text, pccl_sizes *sizes) {
  pccl_sizes made = {.factor = 2};
  if (!take_field(&text, &made.min)) {
    return false;
  }
  made.max = made.min;
  if (*text == ':') {
    text++;
    if (!take_field(&text, &made.max) || made.max < made.min || made.min == 0) {
      return false;
    }
  }
  if (*text == ':') {
    text++;
    bool adds = *text == '+';
    text += adds || *text == 'x';
    uint64_t value;
    if (!take_field(&text, &value) || value < (adds ? 1 : 2)) {
      return false;
    }
    made.factor = adds ? 0 : value;
    made.step = adds ? value : 0;
  }
  if (*text != '\0' || (made.factor == 0 && (made.max - made.min) / made.step >= PCCL_MOST_SIZES)) {
    return false;
  }
  *sizes = made;
  return true;
}

bool pccl_sizes_next(const pccl_sizes *sizes, uint64_t *at) {
  uint64_t next;
  bool over = sizes->factor > 0 ? __builtin_mul_overflow(*at, sizes->factor, &next)
                                : __builtin_add_overflow(*at, sizes->step, &next);
  if (over || next > sizes->max || next <= *at) {
    return false;
  }
  *at = next;
  return true;
}

size_t pccl_sizes_count(const pccl_sizes *sizes) {
  size_t count = 1;
  for (uint64_t at = sizes->min; pccl_sizes_next(sizes, &at);) {
    count++;
  }
  return count;
}

const char *pccl_size_text(uint64_t bytes, char *text, size_t room) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  double value = (double)bytes;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    unit++;
  }
  snprintf(text, room, "%.4g %s", value, units[unit]);
  return text;
}
