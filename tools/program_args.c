#include "program_args.h"

#include <stdlib.h>
#include <string.h>

static bool add(pccl_program_args *args, const char *text) {
  const char *equals = strchr(text, '=');
  if (equals == NULL || equals == text) {
    return false;
  }
  char *copy = strdup(text);
  polyccl_param *grown = realloc(args->params, (args->count + 1) * sizeof *grown);
  if (copy == NULL || grown == NULL) {
    free(copy);
    return false;
  }
  copy[equals - text] = '\0';
  args->params = grown;
  args->params[args->count++] = (polyccl_param){copy, copy + (equals - text) + 1};
  return true;
}

bool pccl_program_args_take(pccl_program_args *args, int argc, char **argv, int *at, const char **error) {
  const char *argument = argv[*at];
  if (strncmp(argument, "-p", 2) == 0) {
    const char *text = argument + 2;
    if (*text == '\0') {
      text = *at + 1 < argc ? argv[++*at] : "";
    }
    if (!add(args, text)) {
      *error = "-p wants name=value";
    }
    return true;
  }
  if (argument[0] == '-' || args->path != NULL) {
    return false;
  }
  args->path = argument;
  return true;
}

void pccl_program_args_free(pccl_program_args *args) {
  for (size_t i = 0; i < args->count; i++) {
    free((char *)(uintptr_t)args->params[i].name);
  }
  free(args->params);
  *args = (pccl_program_args){0};
}
