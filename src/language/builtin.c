#include "language/builtin.h"

#include <string.h>

#include "builtin_text.h"

typedef struct builtin_entry {
  const char *name;
  const unsigned char *text;
  size_t bytes; /* with the 0 at the end */
} builtin_entry;

static const builtin_entry builtins[] = {{"polyccl.routines", routines_text, sizeof routines_text}};

const char *pccl_builtin_module(const char *name, size_t *length) {
  for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++) {
    if (strcmp(builtins[i].name, name) == 0) {
      *length = builtins[i].bytes - 1;
      return (const char *)builtins[i].text;
    }
  }
  return NULL;
}
