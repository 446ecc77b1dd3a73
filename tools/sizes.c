#include "sizes.h"

#include <stdio.h>
#include <string.h>

#include "base/options.h"

/* Reads the number up to the next ':' or the end and moves *text past it; false if it is not a number. */
static bool take_field(const char **text, uint64_t *value) {
  char field[32];
  size_t length = strcspn(*text, ":");
  if (length == 0 || length >= sizeof field) {
    return false;
  }
  memcpy(field, *text, length);
  field[length] = '\0';
  *text += length;
  return pccl_parse_size(field, value) && *value <= PCCL_MAX_BYTES;
}

/* Reads FACTOR, xFACTOR or +STEP. Returns what is wrong, or NULL. */
static const char *take_factor(const char **text, pccl_sizes *made) {
  bool adds = **text == '+';
  *text += adds || **text == 'x';
  uint64_t value;
  if (!take_field(text, &value)) {
    return adds ? ": its step is not a number" : ": its factor is not a number";
  }
  if (value < (adds ? 1 : 2)) {
    return adds ? ": its step is less than 1" : ": its factor is less than 2";
  }
  made->factor = adds ? 0 : value;
  made->step = adds ? value : 0;
  return NULL;
}

static const char *parse_sizes(const char *text, pccl_sizes *made) {
  if (!take_field(&text, &made->min)) {
    return ": it does not begin with a number of bytes up to 2^60";
  }
  made->max = made->min;
  if (*text == ':') {
    text++;
    if (!take_field(&text, &made->max)) {
      return ": what follows the colon is not a number of bytes up to 2^60";
    }
    if (made->max < made->min) {
      return ": the largest size is less than the smallest";
    }
  }
  if (*text == ':') {
    text++;
    const char *wrong = take_factor(&text, made);
    if (wrong != NULL) {
      return wrong;
    }
  }
  if (*text != '\0') {
    return ": something follows the factor";
  }
  if (made->min == 0 && made->max > 0 && made->factor > 0) {
    return ": sizes from 0 on need a step (0:1m:+64k)";
  }
  if (made->factor == 0 && (made->max - made->min) / made->step >= PCCL_MAX_SIZES) {
    return ": they are more than 100000 sizes";
  }
  return NULL;
}

bool pccl_sizes_parse(const char *text, pccl_sizes *sizes, char *why, size_t room) {
  pccl_sizes made = {.factor = 2};
  const char *wrong = parse_sizes(text, &made);
  if (wrong != NULL) {
    snprintf(why, room, "%s", wrong);
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

const char *pccl_size_word(uint64_t number, char *text, size_t room) {
  static const char units[] = "\0kmg";
  int unit = 0;
  while (unit < 3 && number > 0 && number % 1024 == 0) {
    number /= 1024;
    unit++;
  }
  snprintf(text, room, "%llu%.1s", (unsigned long long)number, &units[unit]);
  return text;
}

const char *pccl_size_text(uint64_t bytes, char *text, size_t room) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  double value = (double)bytes;
  while (value >= 1024 && unit < 6) {
    value /= 1024;
    unit++;
  }
  snprintf(text, room, "%.4g %s", value, units[unit]);
  return text;
}
