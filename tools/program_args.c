#include "program_args.h"

#include <stdlib.h>
#include <string.h>

bool pccl_program_args_add(pccl_program_args *args, const char *text) {
  const char *equals = strchr(text, '=');
  if (equals == NULL || equals == text) {
    return false;
  }
  char *copy = strdup(text);
  polyccl_param *grown = copy != NULL ? realloc(args->params, (args->count + 1) * sizeof *grown) : NULL;
  if (grown == NULL) {
    free(copy);
    return false;
  }
  copy[equals - text] = '\0';
  args->params = grown;
  args->params[args->count++] = (polyccl_param){copy, copy + (equals - text) + 1};
  return true;
}

void pccl_program_args_free(pccl_program_args *args) {
  for (size_t i = 0; i < args->count; i++) {
    free((char *)(uintptr_t)args->params[i].name);
  }
  free(args->params);
  *args = (pccl_program_args){0};
}
