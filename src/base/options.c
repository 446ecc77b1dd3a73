#include "base/options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

const pccl_option_entry pccl_options[] = {
    {"POLYCCL_BUILTIN", "1", "0: collectives use only loaded plans, never those of the library"},
    {"POLYCCL_CACHE", "", "the folder where compiled plans are kept for later processes; not kept if empty"},
    {"POLYCCL_CHECK", "0", "1: compare the calls of the ranks; different calls are an error instead of a hang"},
    {"POLYCCL_DEBUG", "none", "log level: none, version, warn, info, trace"},
    {"POLYCCL_DEBUG_FILE", "", "write the log to this file (%h: host, %p: process id) instead of stderr"},
    {"POLYCCL_LUA_MEMORY", "4g", "the maximum of bytes that a program may use while it is read"},
    {"POLYCCL_LUA_INSTRUCTIONS", "1000000000", "the maximum of Lua instructions that a program may run"},
    {"POLYCCL_BIND", "core", "core: bind each rank that polyccl starts to a core of its own if there are enough; none"},
    {"POLYCCL_BUFFER", "64m", "bytes for the receiving connections of a rank in one plan"},
    {"POLYCCL_KERNEL_COPY", "auto",
     "messages of private memory go by one copy of the kernel's: auto (where that is quicker), 0 (never), 1"},
    {"POLYCCL_TIMEOUT", "30", "seconds that a rank waits for another before it gives up"},
    {"POLYCCL_CUDA_DRIVER", "libcuda.so.1", "the file of the CUDA driver's library"},
    {NULL, NULL, NULL},
};

const char *pccl_option(const char *name) {
  const char *value = getenv(name);
  if (value != NULL && value[0] != '\0') {
    return value;
  }
  for (const pccl_option_entry *entry = pccl_options; entry->name != NULL; entry++) {
    if (strcmp(entry->name, name) == 0) {
      return entry->default_value;
    }
  }
  return "";
}

/* Reads the digits at the beginning; returns what follows them, or NULL for no digits or too many. */
static const char *scan_digits(const char *text, uint64_t *value) {
  uint64_t number = 0;
  const char *at = text;
  for (; isdigit((unsigned char)*at); at++) {
    if (__builtin_mul_overflow(number, (uint64_t)10, &number) ||
        __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number)) {
      return NULL;
    }
  }
  *value = number;
  return at > text ? at : NULL;
}

int pccl_parse_number(const char *text, uint64_t *value) {
  uint64_t number;
  const char *end = scan_digits(text, &number);
  if (end == NULL || *end != '\0') {
    return 0;
  }
  *value = number;
  return 1;
}

int pccl_parse_size(const char *text, uint64_t *value) {
  uint64_t number;
  const char *end = scan_digits(text, &number);
  if (end == NULL) {
    return 0;
  }
  unsigned shift = 0;
  switch (tolower((unsigned char)*end)) {
    case 'k': shift = 10; break;
    case 'm': shift = 20; break;
    case 'g': shift = 30; break;
    default: break;
  }
  if (shift != 0) {
    end++;
    end += tolower((unsigned char)*end) == 'i';
    end += tolower((unsigned char)*end) == 'b';
  }
  if (*end != '\0' || number > (UINT64_MAX >> shift)) {
    return 0;
  }
  *value = number << shift;
  return 1;
}

polyccl_result pccl_option_number(const char *name, uint64_t min, uint64_t max, size_t *value) {
  const char *text = pccl_option(name);
  uint64_t number;
  if (!pccl_parse_size(text, &number) || number < min || number > max || number > SIZE_MAX) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s=%.200s is not a number from %llu to %llu (such as 4096, 64k or 4g)",
                     name, text, (unsigned long long)min, (unsigned long long)max);
  }
  *value = (size_t)number;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_option_size(const char *name, size_t *value) {
  const char *text = pccl_option(name);
  uint64_t number;
  if (!pccl_parse_size(text, &number) || number > SIZE_MAX) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s=%s is not a number such as 4096, 64k or 4g", name, text);
  }
  *value = (size_t)number;
  return POLYCCL_SUCCESS;
}
