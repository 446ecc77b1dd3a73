#include <lauxlib.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "language/arguments.h"
#include "language/loader.h"
#include "language/source.h"
#include "language/synth.h"

enum { MAX_SCHEDULE = 512 << 20 }; /* bytes; Lua is limited to PCCL_MAX_SOURCE */

void pccl_open_globals(lua_State *lua) {
  pccl_open_params(lua);
  pccl_open_collectives(lua);
  pccl_open_buffers(lua);
  pccl_open_references(lua);
  pccl_open_require(lua);
}

typedef struct source {
  const char *name, *text;
  size_t length;
} source;

static int run_lua_text(lua_State *lua) {
  const source *from = lua_touserdata(lua, 1);
  pccl_open_globals(lua);
  if (!pccl_load_text(lua, from->name, from->text, from->length)) {
    return lua_error(lua);
  }
  lua_call(lua, 0, 0);
  return 0;
}

static polyccl_result run_program(pccl_loader *loader, const char *name, const char *text, size_t length) {
  source from = {name, text, length};
  lua_pushcfunction(loader->box.lua, run_lua_text);
  lua_pushlightuserdata(loader->box.lua, &from);
  PCCL_TRY(pccl_sandbox_call(&loader->box, 1));
  PCCL_TRY(pccl_loader_check_asked(loader, name));
  if (loader->program == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: the program declares no collective, such as allreduce { ranks = 4 }",
                     name);
  }
  return polyccl_program_finish(loader->program);
}

static void set_names(pccl_loader *loader, const char *path) {
  const char *slash = strrchr(path, '/');
  const char *base = slash != NULL ? slash + 1 : path;
  snprintf(loader->prefix, sizeof loader->prefix, "%.*s", (int)(base - path), path);
  const char *dot = strrchr(base, '.');
  size_t length = dot != NULL && dot > base ? (size_t)(dot - base) : strlen(base);
  snprintf(loader->name, sizeof loader->name, "%.*s", (int)length, base);
}

static polyccl_result run_text(pccl_loader *loader, const char *name, const char *text, size_t length) {
  PCCL_TRY(pccl_loader_check_given(loader));
  set_names(loader, name);
  pccl_skip_mark(&text, &length);
  pccl_kind kind = pccl_kind_of(text, length);
  PCCL_TRY(pccl_kind_check(name, kind, PCCL_USE_PROGRAM));
  if (pccl_is_synth(kind)) {
    PCCL_TRY(pccl_synth_load(loader, name, kind, text, length));
    return pccl_loader_check_asked(loader, name);
  }
  if (length > PCCL_MAX_SOURCE) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%s: %zu bytes are too many for a program (%d)", name, length,
                     PCCL_MAX_SOURCE);
  }
  PCCL_TRY(pccl_sandbox_open(&loader->box));
  polyccl_result result = run_program(loader, name, text, length);
  pccl_sandbox_close(&loader->box);
  return result;
}

static polyccl_result run_file(pccl_loader *loader, const char *path) {
  if (path == NULL || (loader->given == NULL && loader->given_count > 0)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "a program needs a path, and parameters where their count is not 0");
  }
  char *text = NULL;
  size_t length = 0;
  PCCL_TRY(pccl_read_file(path, MAX_SCHEDULE, &text, &length));
  char *real = realpath(path, NULL);
  loader->folder = real != NULL ? pccl_strdup(dirname(real)) : NULL;
  free(real);
  polyccl_result result = run_text(loader, path, text, length);
  free(text);
  return result;
}

static void close_loader(pccl_loader *loader) {
  pccl_loader_free_params(loader);
  polyccl_program_destroy(loader->program);
  free(loader->module);
  free(loader->folder);
}

static void hand_over_program(pccl_loader *loader, polyccl_program **program) {
  *program = loader->program;
  loader->program = NULL;
}

polyccl_result polyccl_program_load(const char *path, const polyccl_param *params, size_t count,
                                    polyccl_program **program) {
  return pccl_program_load_for(path, params, count, NULL, program);
}

polyccl_result pccl_program_load_for(const char *path, const polyccl_param *params, size_t count,
                                     const pccl_accept *accept, polyccl_program **program) {
  pccl_loader loader = {.given = params, .given_count = count, .accept = accept};
  polyccl_result result = run_file(&loader, path);
  if (result == POLYCCL_SUCCESS) {
    hand_over_program(&loader, program);
  }
  close_loader(&loader);
  return result;
}

polyccl_result pccl_program_load_text(const char *name, const char *text, size_t length, const char *folder,
                                      const polyccl_param *params, size_t count, polyccl_program **program) {
  pccl_loader loader = {.given = params, .given_count = count};
  loader.folder = pccl_strdup(folder);
  polyccl_result result = run_text(&loader, name, text, length);
  if (result == POLYCCL_SUCCESS) {
    hand_over_program(&loader, program);
  }
  close_loader(&loader);
  return result;
}

polyccl_result polyccl_program_params(const char *path, const polyccl_param *params, size_t count,
                                      polyccl_param_info **infos, size_t *info_count) {
  pccl_loader loader = {.given = params, .given_count = count};
  polyccl_result result = run_file(&loader, path);
  if (result == POLYCCL_SUCCESS) {
    result = pccl_loader_list_params(&loader, infos, info_count);
  }
  close_loader(&loader);
  return result;
}
