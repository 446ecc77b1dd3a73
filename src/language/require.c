/* require "a.b" returns the built-in module of that name, else runs the file a/b.lua in the program's folder. */
#include <lauxlib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "language/arguments.h"
#include "language/builtin.h"
#include "language/loader.h"
#include "language/source.h"
#include "topology/topology.h"

enum { MAX_NAME = 200 }; /* so that name and ".lua" fit into a path and into a message */

/* Letters, digits, _ and - in parts separated by single dots. */
static bool good_name(const char *name, size_t length) {
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return length > 0 && length <= MAX_NAME && strspn(name, allowed) == length && name[0] != '.' &&
         name[length - 1] != '.' && strstr(name, "..") == NULL;
}

/* The real path of a regular file inside the folder, after following links; NULL: there is none. The caller frees it.
 */
static char *find_inside(const char *folder, const char *path, bool *outside) {
  char *real = realpath(path, NULL);
  size_t length = strlen(folder);
  if (real == NULL) {
    return NULL;
  }
  bool inside = strncmp(real, folder, length) == 0 && (real[length] == '/' || strcmp(folder, "/") == 0);
  struct stat status;
  if (!inside || stat(real, &status) != 0 || !S_ISREG(status.st_mode)) {
    *outside = !inside;
    free(real);
    return NULL;
  }
  return real;
}

static bool given_by_user(const pccl_loader *loader, const char *text) {
  for (size_t i = 0; i < loader->given_count; i++) {
    if (strcmp(loader->given[i].value, text) == 0) {
      return true;
    }
  }
  return false;
}

char *pccl_loader_topology(lua_State *lua, const char *text) {
  const pccl_loader *loader = pccl_loader_of(lua);
  if (pccl_synthetic_known(text) || given_by_user(loader, text)) {
    return pccl_strdup(text);
  }
  /* "FILE:4" is four of the machine in FILE. */
  size_t length = strlen(text);
  const char *colon = strrchr(text, ':');
  bool copies = colon != NULL && colon[1] != '\0' && strspn(colon + 1, "0123456789") == strlen(colon + 1);
  int file_length = (int)(copies ? (size_t)(colon - text) : length);
  char path[PATH_MAX];
  bool outside = text[0] == '/', fits = length < PATH_MAX / 2;
  int need =
      loader->folder != NULL && fits ? snprintf(path, sizeof path, "%s/%.*s", loader->folder, file_length, text) : 0;
  char *real = !outside && need > 0 && need < (int)sizeof path ? find_inside(loader->folder, path, &outside) : NULL;
  if (real == NULL) {
    pccl_lua_fail(lua, "topology %.200s %s", text,
                  outside
                      ? "lies outside the program's folder (give it as a parameter)"
                      : "is neither a shipped machine (polyccl topology --list) nor a file in the program's folder");
  }
  char *spec = malloc(strlen(real) + length - (size_t)file_length + 1);
  if (spec != NULL) {
    sprintf(spec, "%s%s", real, text + file_length);
  }
  free(real);
  return spec;
}

/* Pushes the module's main function. */
static void load_module_file(lua_State *lua, const char *name) {
  pccl_loader *loader = pccl_loader_of(lua);
  if (loader->folder == NULL) {
    pccl_lua_fail(lua, "require: there is no module \"%s\" (a program that is not a file finds built-in ones only)",
                  name);
  }
  char path[PATH_MAX], file[MAX_NAME + 8];
  snprintf(file, sizeof file, "%s.lua", name);
  for (char *at = file; *at != '\0' && at < file + strlen(name); at++) {
    *at = *at == '.' ? '/' : *at;
  }
  int need = snprintf(path, sizeof path, "%s/%s", loader->folder, file);
  const char *shown = lua_pushfstring(lua, "%s%s", loader->prefix, file);
  bool outside = false;
  char *real = need < (int)sizeof path ? find_inside(loader->folder, path, &outside) : NULL;
  if (real == NULL) {
    pccl_lua_fail(lua, "require: there is no module \"%s\" (%s %s)", name, shown,
                  outside ? "leads out of the program's folder" : "is not a file");
  }
  size_t length = 0;
  /* Held by the loader, since Lua may raise while it compiles. */
  polyccl_result result = pccl_read_file(real, PCCL_MAX_SOURCE, &loader->module, &length);
  free(real);
  pccl_lua_check(lua, result, false);
  bool ok = pccl_load_text(lua, shown, loader->module, length);
  free(loader->module);
  loader->module = NULL;
  if (!ok) {
    lua_error(lua);
  }
}

/* Upvalue 1: the modules that are loaded, by name; false while one is being loaded. */
static int lua_require(lua_State *lua) {
  char described[80];
  size_t length = 0;
  const char *name = lua_type(lua, 1) == LUA_TSTRING ? lua_tolstring(lua, 1, &length) : "";
  if (!good_name(name, length)) {
    return pccl_lua_fail(
        lua,
        "require: the argument must be a module's name such as \"helpers\" or \"lib.ring\" (letters, digits, _ and "
        "-, with . between folders), not %s",
        pccl_lua_describe(lua, 1, described, sizeof described));
  }
  lua_settop(lua, 1);
  lua_pushvalue(lua, 1);
  switch (lua_rawget(lua, lua_upvalueindex(1))) {
    case LUA_TNIL: lua_pop(lua, 1); break;
    case LUA_TLIGHTUSERDATA: return pccl_lua_fail(lua, "require: module \"%s\" requires itself", name);
    default: return 1;
  }
  size_t built_length = 0;
  const char *built = pccl_builtin_module(name, &built_length);
  if (built != NULL) {
    char shown[MAX_NAME + 16];
    snprintf(shown, sizeof shown, "=%s", name);
    if (!pccl_load_text(lua, shown, built, built_length)) {
      return lua_error(lua);
    }
  } else {
    load_module_file(lua, name);
  }
  lua_pushvalue(lua, 1);
  lua_pushlightuserdata(lua, lua);
  lua_rawset(lua, lua_upvalueindex(1));
  lua_pushvalue(lua, 1);
  lua_call(lua, 1, 1);
  if (lua_isnil(lua, -1)) {
    lua_pop(lua, 1);
    lua_pushboolean(lua, 1);
  }
  lua_pushvalue(lua, 1);
  lua_pushvalue(lua, -2);
  lua_rawset(lua, lua_upvalueindex(1));
  return 1;
}

void pccl_open_require(lua_State *lua) {
  lua_newtable(lua);
  lua_pushcclosure(lua, lua_require, 1);
  lua_setglobal(lua, "require");
}
