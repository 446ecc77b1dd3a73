/* param(name, default, help) returns a value from outside. The default's type says how the text is read. */
#include <lauxlib.h>
#include <string.h>
#include <strings.h>

#include "language/arguments.h"
#include "language/loader.h"

static bool push_number(lua_State *lua, const char *text) { return lua_stringtonumber(lua, text) == strlen(text) + 1; }

static bool push_boolean(lua_State *lua, const char *text) {
  static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (strcasecmp(text, words[i]) == 0) {
      lua_pushboolean(lua, i % 2);
      return true;
    }
  }
  return false;
}

/* Pushes `text` read as a value of the type of the default at stack place 2. */
static void push_value(lua_State *lua, const char *name, const char *text) {
  switch (lua_type(lua, 2)) {
    case LUA_TNUMBER:
      if (!push_number(lua, text)) {
        pccl_lua_fail(lua, "parameter %s must be a number, not \"%.80s\"", name, text);
      }
      if (lua_isinteger(lua, 2) && !lua_isinteger(lua, -1)) {
        lua_Number number = lua_tonumber(lua, -1);
        lua_Integer whole = 0;
        if (!lua_numbertointeger(number, &whole) || (lua_Number)whole != number) {
          pccl_lua_fail(lua, "parameter %s must be a whole number, not \"%.80s\"", name, text);
        }
        lua_pushinteger(lua, whole);
      }
      break;
    case LUA_TBOOLEAN:
      if (!push_boolean(lua, text)) {
        pccl_lua_fail(lua, "parameter %s must be true or false, not \"%.80s\"", name, text);
      }
      break;
    case LUA_TSTRING: lua_pushstring(lua, text); break;
    default: /* no default: a number if the text is one */
      if (!push_number(lua, text)) {
        lua_pushstring(lua, text);
      }
      break;
  }
}

static void record_param(lua_State *lua, pccl_loader *loader, const char *name, const char *value,
                         const char *default_value, const char *help) {
  bool is_new;
  pccl_sandbox_charge(lua, loader->asked.len / 2); /* names are compared one by one */
  polyccl_result result = pccl_loader_record_param(loader, name, value, default_value, help, &is_new);
  if (result != POLYCCL_SUCCESS) {
    pccl_sandbox_end(lua, result);
  }
  if (is_new) {
    pccl_sandbox_account(lua, sizeof(pccl_param_entry) + strlen(name) + strlen(value) + strlen(help));
  }
}

static int lua_param(lua_State *lua) {
  pccl_loader *loader = pccl_loader_of(lua);
  char described[80];
  if (lua_type(lua, 1) != LUA_TSTRING) {
    return pccl_lua_fail(lua, "param: the name must be text, not %s",
                         pccl_lua_describe(lua, 1, described, sizeof described));
  }
  int type = lua_type(lua, 2);
  if (type != LUA_TNONE && type != LUA_TNIL && type != LUA_TNUMBER && type != LUA_TBOOLEAN && type != LUA_TSTRING) {
    return pccl_lua_fail(lua, "param: the default must be a number, text, true or false, not %s",
                         pccl_lua_describe(lua, 2, described, sizeof described));
  }
  if (!lua_isnoneornil(lua, 3) && lua_type(lua, 3) != LUA_TSTRING) {
    return pccl_lua_fail(lua, "param: the help must be text, not %s",
                         pccl_lua_describe(lua, 3, described, sizeof described));
  }
  lua_settop(lua, 3);
  const char *name = lua_tostring(lua, 1), *help = lua_isnil(lua, 3) ? "" : lua_tostring(lua, 3);
  const char *value = pccl_loader_given(loader, name);
  const char *default_value = lua_isnil(lua, 2) ? NULL : luaL_tolstring(lua, 2, NULL);
  if (value != NULL) {
    push_value(lua, name, value);
  } else if (default_value != NULL) {
    lua_pushvalue(lua, 2);
  } else {
    return pccl_lua_fail(lua, "parameter %s has no default: give it a value (-p %s=...)", name, name);
  }
  record_param(lua, loader, name, value != NULL ? value : default_value, default_value, help);
  return 1;
}

void pccl_open_params(lua_State *lua) {
  lua_pushboolean(lua, 1);
  lua_pushcclosure(lua, lua_param, 1);
  lua_setglobal(lua, "param");
}
