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

enum { MOST_SCHEDULE = 512 << 20 };

static void open_globals(lua_State *lua) {
  pccl_open_params(lua);
  pccl_open_collectives(lua);
  pccl_open_references(lua);
  pccl_open_require(lua);
}

static polyccl_result check_params(const pccl_loader *loader) {
  for (size_t i = 0; i < loader->given_count; i++) {
    const polyccl_param *given = &loader->given[i];
    if (given->name == NULL || given->value == NULL || given->name[0] == '\0') {
      return pccl_fail(POLYCCL_ERROR_INVALID, "a parameter needs a name and a value");
    }
    for (size_t k = 0; k < i; k++) {
      if (strcmp(loader->given[k].name, given->name) == 0) {
        return pccl_fail(POLYCCL_ERROR_INVALID, "parameter %s is given twice", given->name);
      }
    }
  }
  return POLYCCL_SUCCESS;
}

/* Those given must be among those asked for. */
static polyccl_result check_unknown(const pccl_loader *loader, const char *name) {
  for (size_t i = 0; i < loader->given_count; i++) {
    bool known = false;
    for (size_t k = 0; k < loader->asked.len && !known; k++) {
      known = strcmp(loader->given[i].name, loader->asked.data[k].name) == 0;
    }
    if (known) {
      continue;
    }
    pccl_text text = {0};
    for (size_t k = 0; k < loader->asked.len; k++) {
      pccl_text_add(&text, "%s%s", k > 0 ? ", " : "", loader->asked.data[k].name);
    }
    polyccl_result result =
        pccl_fail(POLYCCL_ERROR_INVALID, "%s: no parameter \"%.80s\" (%s%s)", name, loader->given[i].name,
                  loader->asked.len > 0 ? "known: " : "the program has none", text.data != NULL ? text.data : "");
    pccl_text_free(&text);
    return result;
  }
  return POLYCCL_SUCCESS;
}

typedef struct source {
  const char *name, *text;
  size_t length;
} source;

static int run_source(lua_State *lua) {
  const source *from = lua_touserdata(lua, 1);
  open_globals(lua);
  if (!pccl_load_text(lua, from->name, from->text, from->length)) {
    return lua_error(lua);
  }
  lua_call(lua, 0, 0);
  return 0;
}

static polyccl_result run(pccl_loader *loader, const char *name, const char *text, size_t length) {
  source from = {name, text, length};
  lua_pushcfunction(loader->box.lua, run_source);
  lua_pushlightuserdata(loader->box.lua, &from);
  PCCL_TRY(pccl_sandbox_call(&loader->box, 1));
  PCCL_TRY(check_unknown(loader, name));
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
  PCCL_TRY(check_params(loader));
  set_names(loader, name);
  pccl_skip_mark(&text, &length);
  pccl_kind kind = pccl_kind_of(text, length);
  PCCL_TRY(pccl_kind_check(name, kind, PCCL_USE_PROGRAM));
  if (pccl_is_synth(kind)) {
    PCCL_TRY(pccl_synth_load(loader, name, kind, text, length));
    return check_unknown(loader, name);
  }
  if (length > PCCL_MAX_SOURCE) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%s: %zu bytes are too many for a program (%d)", name, length,
                     PCCL_MAX_SOURCE);
  }
  PCCL_TRY(pccl_sandbox_open(&loader->box));
  polyccl_result result = run(loader, name, text, length);
  pccl_sandbox_close(&loader->box);
  return result;
}

static polyccl_result run_file(pccl_loader *loader, const char *path) {
  if (path == NULL || (loader->given == NULL && loader->given_count > 0)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "a program needs a path, and parameters where their count is not 0");
  }
  char *text = NULL;
  size_t length = 0;
  PCCL_TRY(pccl_read_file(path, MOST_SCHEDULE, &text, &length));
  char *real = realpath(path, NULL);
  loader->folder = real != NULL ? pccl_strdup(dirname(real)) : NULL;
  free(real);
  polyccl_result result = run_text(loader, path, text, length);
  free(text);
  return result;
}

static void close_loader(pccl_loader *loader) {
  for (size_t i = 0; i < loader->asked.len; i++) {
    pccl_param_entry *entry = &loader->asked.data[i];
    free(entry->name);
    free(entry->value);
    free(entry->default_value);
    free(entry->help);
  }
  pccl_vec_free(&loader->asked);
  polyccl_program_destroy(loader->program);
  free(loader->module);
  free(loader->folder);
}

static void give(pccl_loader *loader, polyccl_program **program) {
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
    give(&loader, program);
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
    give(&loader, program);
  }
  close_loader(&loader);
  return result;
}

/* ---- the list of parameters ---- */

static size_t bytes_of(const char *text) { return text != NULL ? strlen(text) + 1 : 0; }

static const char *put(char **at, const char *text) {
  if (text == NULL) {
    return NULL;
  }
  char *start = *at;
  size_t bytes = strlen(text) + 1;
  memcpy(start, text, bytes);
  *at += bytes;
  return start;
}

static polyccl_result list_params(const pccl_loader *loader, polyccl_param_info **infos, size_t *count) {
  size_t bytes = loader->asked.len * sizeof **infos;
  for (size_t i = 0; i < loader->asked.len; i++) {
    const pccl_param_entry *entry = &loader->asked.data[i];
    bytes += bytes_of(entry->name) + bytes_of(entry->value) + bytes_of(entry->default_value) + bytes_of(entry->help);
  }
  polyccl_param_info *list = malloc(bytes + 1);
  if (list == NULL) {
    return pccl_no_memory("a list of parameters");
  }
  char *at = (char *)(list + loader->asked.len);
  for (size_t i = 0; i < loader->asked.len; i++) {
    const pccl_param_entry *entry = &loader->asked.data[i];
    list[i].name = put(&at, entry->name);
    list[i].value = put(&at, entry->value);
    list[i].default_value = put(&at, entry->default_value);
    list[i].help = put(&at, entry->help);
  }
  *infos = list;
  *count = loader->asked.len;
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_program_params(const char *path, const polyccl_param *params, size_t count,
                                      polyccl_param_info **infos, size_t *info_count) {
  pccl_loader loader = {.given = params, .given_count = count};
  polyccl_result result = run_file(&loader, path);
  if (result == POLYCCL_SUCCESS) {
    result = list_params(&loader, infos, info_count);
  }
  close_loader(&loader);
  return result;
}
