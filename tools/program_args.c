#include "program_args.h"

#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "watchdog.h"

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

/* The sandbox ends a program after 100 ns for each of its instructions, or after 10 s if that is more, unless a single
 * instruction takes longer, such as the growth of a table whose keys all collide. The watchdog waits 10 s more. The
 * sandbox reports wrong values of the options. */
static void begin_watch(const char *tool, const char *path) {
  size_t instructions = 0, bytes = 0;
  if (pccl_option_size("POLYCCL_LUA_INSTRUCTIONS", &instructions) == POLYCCL_SUCCESS &&
      pccl_option_size("POLYCCL_LUA_MEMORY", &bytes) == POLYCCL_SUCCESS) {
    const double seconds = (double)instructions * 1e-7;
    const size_t spare = (size_t)1 << 30;
    pccl_watchdog_begin(tool, path, (seconds > 10 ? seconds : 10) + 10,
                        bytes < (SIZE_MAX - spare) / 3 ? 3 * bytes + spare : 0);
  }
}

polyccl_result pccl_program_args_load(const char *tool, const char *path, const polyccl_param *params, size_t count,
                                      const pccl_accept *accept, polyccl_program **program) {
  begin_watch(tool, path);
  polyccl_result result = pccl_program_load_for(path, params, count, accept, program);
  pccl_watchdog_end();
  return result;
}

polyccl_result pccl_program_args_params(const char *tool, const char *path, const polyccl_param *params, size_t count,
                                        polyccl_param_info **infos, size_t *info_count) {
  begin_watch(tool, path);
  polyccl_result result = polyccl_program_params(path, params, count, infos, info_count);
  pccl_watchdog_end();
  return result;
}

void pccl_program_args_free(pccl_program_args *args) {
  for (size_t i = 0; i < args->count; i++) {
    free((char *)(uintptr_t)args->params[i].name);
  }
  free(args->params);
  *args = (pccl_program_args){0};
}
