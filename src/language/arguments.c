#include "language/arguments.h"

#include <lauxlib.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"

enum { MESSAGE_BYTES = 1024 };

static int raise_at_author(lua_State *lua, const char *message) {
  polyccl_location at = pccl_sandbox_where(lua);
  if (at.file != NULL) {
    lua_pushfstring(lua, "%s:%d: %s", at.file, at.line, message);
  } else {
    lua_pushstring(lua, message);
  }
  return lua_error(lua);
}

int pccl_lua_fail(lua_State *lua, const char *format, ...) {
  char message[MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return raise_at_author(lua, message);
}

void pccl_lua_check(lua_State *lua, polyccl_result result, bool placed) {
  switch (result) {
    case POLYCCL_SUCCESS: return;
    case POLYCCL_ERROR_INVALID:
    case POLYCCL_ERROR_UNSUPPORTED:
    case POLYCCL_ERROR_LIMIT: break;
    default: pccl_sandbox_end(lua, result);
  }
  if (placed) {
    lua_pushstring(lua, polyccl_last_error());
    lua_error(lua);
  }
  raise_at_author(lua, polyccl_last_error());
}

bool pccl_printable(char c) { return (unsigned char)c >= ' ' && c != 0x7F; }

bool pccl_printable_text(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    if (!pccl_printable(text[i])) {
      return false;
    }
  }
  return true;
}

const char *pccl_lua_describe(lua_State *lua, int at, char *text, size_t bytes) {
  switch (lua_type(lua, at)) {
    case LUA_TNONE:
    case LUA_TNIL: return "nothing (nil)";
    case LUA_TNUMBER:
      if (lua_isinteger(lua, at)) {
        snprintf(text, bytes, "%lld", (long long)lua_tointeger(lua, at));
      } else {
        lua_Number number = lua_tonumber(lua, at);
        snprintf(text, bytes, "%.14g", isnan(number) ? (lua_Number)NAN : number); /* without the sign of a NaN */
      }
      return text;
    case LUA_TSTRING:
      snprintf(text, bytes, "the text \"%.40s\"", lua_tostring(lua, at));
      for (char *c = text; *c != '\0'; c++) { /* a terminal may obey what is not printable */
        *c = pccl_printable(*c) ? *c : '?';
      }
      return text;
    case LUA_TBOOLEAN: return lua_toboolean(lua, at) ? "true" : "false";
    default:
      if (luaL_getmetafield(lua, at, "__name") == LUA_TSTRING) {
        snprintf(text, bytes, "a %.40s", lua_tostring(lua, -1));
        lua_pop(lua, 1);
      } else {
        snprintf(text, bytes, "a %s", luaL_typename(lua, at));
      }
      return text;
  }
}

int pccl_lua_int(lua_State *lua, int at, const char *what) {
  int exact = 0;
  lua_Integer value = lua_type(lua, at) == LUA_TNUMBER ? lua_tointegerx(lua, at, &exact) : 0;
  if (exact && value >= INT_MIN && value <= INT_MAX) {
    return (int)value;
  }
  char text[80];
  const char *got = pccl_lua_describe(lua, at, text, sizeof text);
  if (exact) {
    pccl_lua_fail(lua, "%s is out of range: %s", what, got);
  }
  pccl_lua_fail(lua, "%s must be a whole number, not %s", what, got);
  return 0;
}

void pccl_lua_refuse_more(lua_State *lua, int last, const char *function) {
  if (lua_gettop(lua) > last && !lua_isnone(lua, last + 1)) {
    char text[80];
    pccl_lua_fail(lua, "%s: unexpected argument %s", function, pccl_lua_describe(lua, last + 1, text, sizeof text));
  }
}

bool pccl_lua_has_metatable(lua_State *lua, int at, const void *metatable) {
  bool same = lua_type(lua, at) == LUA_TUSERDATA && lua_getmetatable(lua, at);
  if (same) {
    same = lua_topointer(lua, -1) == metatable;
    lua_pop(lua, 1);
  }
  return same;
}

static int refuse_assignment(lua_State *lua) {
  return pccl_lua_fail(lua, "%s cannot be changed; take another with chunk()", lua_tostring(lua, lua_upvalueindex(1)));
}

void pccl_lua_make_metatable(lua_State *lua, const char *name) {
  luaL_newmetatable(lua, name);
  lua_pushfstring(lua, "a %s", name);
  lua_pushcclosure(lua, refuse_assignment, 1);
  lua_setfield(lua, -2, "__newindex");
  lua_pushstring(lua, name);
  lua_setfield(lua, -2, "__metatable");
}

pccl_fields pccl_fields_begin(lua_State *lua, int at, const char *what, bool optional) {
  if (lua_istable(lua, at)) {
    return (pccl_fields){.lua = lua, .table = lua_absindex(lua, at), .what = what};
  }
  if (!optional || !lua_isnoneornil(lua, at)) {
    char text[80];
    pccl_lua_fail(lua, "%s needs a table such as {name = value}, not %s", what,
                  pccl_lua_describe(lua, at, text, sizeof text));
  }
  return (pccl_fields){.lua = lua, .what = what};
}

/* Pushes the value; false and nothing pushed where it is absent. */
static bool push_field(pccl_fields *fields, const char *name) {
  fields->known[fields->count++] = name;
  if (fields->table == 0) {
    return false;
  }
  lua_pushstring(fields->lua, name);
  if (lua_rawget(fields->lua, fields->table) == LUA_TNIL) {
    lua_pop(fields->lua, 1);
    return false;
  }
  return true;
}

static void fail_field(pccl_fields *fields, const char *name, const char *wanted) {
  char text[80];
  pccl_lua_fail(fields->lua, "%s: %s must be %s, not %s", fields->what, name, wanted,
                pccl_lua_describe(fields->lua, -1, text, sizeof text));
}

int pccl_fields_int(pccl_fields *fields, const char *name, int default_value) {
  if (!push_field(fields, name)) {
    return default_value;
  }
  char what[80];
  snprintf(what, sizeof what, "%.40s: %.30s", fields->what, name);
  int value = pccl_lua_int(fields->lua, -1, what);
  lua_pop(fields->lua, 1);
  return value;
}

int pccl_fields_required_int(pccl_fields *fields, const char *name) {
  if (push_field(fields, name)) {
    lua_pop(fields->lua, 1);
    fields->count--;
    return pccl_fields_int(fields, name, 0);
  }
  return pccl_lua_fail(fields->lua, "%s: %s is missing", fields->what, name);
}

bool pccl_fields_bool(pccl_fields *fields, const char *name, bool default_value) {
  if (!push_field(fields, name)) {
    return default_value;
  }
  if (!lua_isboolean(fields->lua, -1)) {
    fail_field(fields, name, "true or false");
  }
  bool value = lua_toboolean(fields->lua, -1);
  lua_pop(fields->lua, 1);
  return value;
}

const char *pccl_fields_text(pccl_fields *fields, const char *name) {
  if (!push_field(fields, name)) {
    return NULL;
  }
  if (lua_type(fields->lua, -1) != LUA_TSTRING) {
    fail_field(fields, name, "text");
  }
  size_t length = 0;
  const char *value = lua_tolstring(fields->lua, -1, &length);
  if (!pccl_printable_text(value, length)) {
    pccl_lua_fail(fields->lua, "%s: %s has a character in it that cannot be printed", fields->what, name);
  }
  lua_pop(fields->lua, 1);
  return value;
}

size_t pccl_fields_bytes(pccl_fields *fields, const char *name) {
  if (!push_field(fields, name)) {
    return 0;
  }
  int exact = 0;
  lua_Integer number = lua_type(fields->lua, -1) == LUA_TNUMBER ? lua_tointegerx(fields->lua, -1, &exact) : 0;
  uint64_t value = (uint64_t)number;
  bool ok = exact && number >= 0;
  if (lua_type(fields->lua, -1) == LUA_TSTRING) {
    ok = pccl_parse_size(lua_tostring(fields->lua, -1), &value);
  }
  if (!ok || value > SIZE_MAX) {
    fail_field(fields, name, "a number of bytes such as 4096 or \"64k\"");
  }
  lua_pop(fields->lua, 1);
  return (size_t)value;
}

bool pccl_fields_function(pccl_fields *fields, const char *name) {
  if (!push_field(fields, name)) {
    return false;
  }
  if (!lua_isfunction(fields->lua, -1)) {
    fail_field(fields, name, "a function");
  }
  return true;
}

static bool is_known(const pccl_fields *fields, const char *name) {
  for (int i = 0; i < fields->count; i++) {
    if (strcmp(fields->known[i], name) == 0) {
      return true;
    }
  }
  return false;
}

void pccl_fields_end(pccl_fields *fields) {
  if (fields->table == 0) {
    return;
  }
  lua_State *lua = fields->lua;
  for (lua_pushnil(lua); lua_next(lua, fields->table); lua_pop(lua, 1)) {
    if (lua_type(lua, -2) == LUA_TSTRING && is_known(fields, lua_tostring(lua, -2))) {
      continue;
    }
    char known[512] = "", text[80];
    for (int i = 0; i < fields->count; i++) {
      size_t used = strlen(known);
      snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", fields->known[i]);
    }
    if (lua_type(lua, -2) == LUA_TSTRING) {
      pccl_lua_fail(lua, "%s: unknown key \"%.40s\" (known: %s)", fields->what, lua_tostring(lua, -2), known);
    }
    pccl_lua_fail(lua, "%s: unexpected entry [%s] = ... (known: %s)", fields->what,
                  pccl_lua_describe(lua, -2, text, sizeof text), known);
  }
}
