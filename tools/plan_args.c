#include "plan_args.h"

#include <ctype.h>
#include <string.h>

#include <polyccl/compile.h>

#include "base/error.h"

/* Plans say so at their beginning; XML begins with '<'. */
static bool is_plan(const char *path) {
  static const char magic[] = "polyccl-plan";
  char head[4096];
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    return false;
  }
  size_t length = fread(head, 1, sizeof head - 1, file), at = 0;
  fclose(file);
  head[length] = '\0';
  for (;;) {
    at += strspn(head + at, " \t\r\n");
    if (head[at] != '#') {
      break;
    }
    at += strcspn(head + at, "\n");
  }
  return head[at] == '<' || strncmp(head + at, magic, sizeof magic - 1) == 0;
}

static polyccl_result compile(const pccl_program_args *args, polyccl_plan **plan) {
  polyccl_program *program = NULL;
  PCCL_TRY(polyccl_program_load(args->path, args->params, args->count, &program));
  polyccl_result result = polyccl_compile(program, NULL, plan);
  polyccl_program_destroy(program);
  return result;
}

polyccl_result pccl_plan_args_load(const pccl_program_args *args, polyccl_plan **plan) {
  if (!is_plan(args->path)) {
    return compile(args, plan);
  }
  if (args->count > 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s is a plan, it has no parameters (-p %s=...)", args->path,
                     args->params[0].name);
  }
  polyccl_plan *read = NULL;
  PCCL_TRY(polyccl_plan_read(args->path, &read));
  polyccl_result result = polyccl_plan_verify(read, NULL);
  if (result != POLYCCL_SUCCESS) {
    polyccl_plan_destroy(read);
    return pccl_prefix(result, "%s: ", args->path);
  }
  *plan = read;
  return POLYCCL_SUCCESS;
}
