/* The functions of Lua's base library that differ here. pcall cannot catch the end of a program; metatables have no
 * finalisers and make no weak tables; objects are named by numbers; print writes to standard error; undefined names are
 * errors. */
#include <lauxlib.h>
#include <lualib.h>
#include <math.h>
#include <stdio.h>

#include "language/prices.h"
#include "language/sandbox.h"

/* ---- protected calls ---- */

/* Ends a protected call whose results begin at `first`: raises again what may not be caught, else returns the results.
 */
static int finish_protected_call(lua_State *lua, int status, int first, int scopes) {
  pccl_sandbox *box = pccl_sandbox_of(lua);
  pccl_sandbox_pass_end(lua);
  if (status != LUA_OK) {
    enum { PRICE = 10000 }; /* Lua walks the whole stack to take it down */
    pccl_sandbox_charge(lua, PRICE);
    if (box->close_scopes != NULL) {
      box->close_scopes(lua, scopes);
    }
  }
  lua_pushboolean(lua, status == LUA_OK);
  lua_insert(lua, first);
  return lua_gettop(lua) - first + 1;
}

int pccl_safe_pcall(lua_State *lua) {
  luaL_checkany(lua, 1);
  pccl_sandbox_charge(lua, (uint64_t)lua_gettop(lua) / 8);
  int scopes = pccl_sandbox_of(lua)->scopes;
  return finish_protected_call(lua, lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0), 1, scopes);
}

/* Calls the program's handler only while the program may run: after a stop, a handler could run for ever. */
static int call_handler(lua_State *lua) {
  if (pccl_sandbox_of(lua)->stop == PCCL_STOP_NONE) {
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    lua_call(lua, 1, 1);
  }
  return 1;
}

int pccl_safe_xpcall(lua_State *lua) {
  luaL_checktype(lua, 2, LUA_TFUNCTION);
  pccl_sandbox_charge(lua, (uint64_t)lua_gettop(lua) / 8);
  int scopes = pccl_sandbox_of(lua)->scopes;
  lua_pushvalue(lua, 2);
  lua_pushcclosure(lua, call_handler, 1);
  lua_replace(lua, 2);
  lua_pushvalue(lua, 1);
  lua_insert(lua, 3);
  /* stack: function, handler, function, arguments */
  return finish_protected_call(lua, lua_pcall(lua, lua_gettop(lua) - 3, LUA_MULTRET, 2), 3, scopes);
}

/* ---- metatables ---- */

int pccl_safe_setmetatable(lua_State *lua) {
  if (lua_istable(lua, 2)) {
    lua_pushliteral(lua, "__gc");
    if (lua_rawget(lua, 2) != LUA_TNIL) {
      return luaL_error(lua, "setmetatable: finalisers (__gc) are not allowed here");
    }
    lua_pushliteral(lua, "__mode");
    if (lua_rawget(lua, 2) != LUA_TNIL) {
      return luaL_error(lua,
                        "setmetatable: weak tables (__mode) are not allowed here: what they hold depends on "
                        "when memory is collected");
    }
    lua_pop(lua, 2);
  }
  return pccl_price_original(lua);
}

/* ---- values as text ---- */

/* "table: 3", numbered in the order in which the program's author saw them. */
static void push_name(lua_State *lua, int at) {
  int place = lua_gettop(lua) + 1;
  uint64_t number = pccl_sandbox_shown(lua, at);
  if (luaL_getmetafield(lua, at, "__name") != LUA_TSTRING) {
    lua_pushstring(lua, luaL_typename(lua, at));
  }
  if (number > 0) {
    lua_pushfstring(lua, "%s: %I", lua_tostring(lua, -1), (lua_Integer)number);
  } else {
    lua_pushfstring(lua, "%s: builtin", lua_tostring(lua, -1));
  }
  lua_replace(lua, place);
  lua_settop(lua, place);
}

const char *pccl_safe_tolstring(lua_State *lua, int at, size_t *length) {
  at = lua_absindex(lua, at);
  if (luaL_getmetafield(lua, at, "__tostring") != LUA_TNIL) {
    lua_pushvalue(lua, at);
    lua_call(lua, 1, 1);
    if (!lua_isstring(lua, -1)) {
      luaL_error(lua, "'__tostring' must return a string");
    }
    return lua_tolstring(lua, -1, length);
  }
  switch (lua_type(lua, at)) {
    case LUA_TNUMBER:
      if (isnan(lua_tonumber(lua, at))) { /* its sign depends on the processor */
        lua_pushliteral(lua, "nan");
        break;
      }
      lua_pushvalue(lua, at);
      break;
    case LUA_TSTRING: lua_pushvalue(lua, at); break;
    case LUA_TBOOLEAN: lua_pushstring(lua, lua_toboolean(lua, at) ? "true" : "false"); break;
    case LUA_TNIL: lua_pushliteral(lua, "nil"); break;
    default: push_name(lua, at); break;
  }
  return lua_tolstring(lua, -1, length);
}

int pccl_safe_tostring(lua_State *lua) {
  luaL_checkany(lua, 1);
  pccl_safe_tolstring(lua, 1, NULL);
  return 1;
}

int pccl_safe_print(lua_State *lua) {
  int count = lua_gettop(lua);
  for (int i = 1; i <= count; i++) {
    size_t length = 0;
    const char *text = pccl_safe_tolstring(lua, i, &length);
    pccl_sandbox_charge(lua, length); /* a terminal is slower than Lua */
    if (i > 1) {
      fputc('\t', stderr);
    }
    fwrite(text, 1, length, stderr);
    lua_pop(lua, 1);
  }
  fputc('\n', stderr);
  return 0;
}

/* ---- the rest ---- */

int pccl_safe_rawequal(lua_State *lua) {
  pccl_sandbox_charge(lua, pccl_price_lengths(lua, 1) / 16);
  return pccl_price_original(lua);
}

int pccl_safe_rawkey(lua_State *lua) {
  pccl_sandbox_charge(lua, lua_type(lua, 2) == LUA_TSTRING ? lua_rawlen(lua, 2) / 16 : 0);
  return pccl_price_original(lua);
}

int pccl_safe_select(lua_State *lua) {
  pccl_sandbox_charge(lua, (uint64_t)lua_gettop(lua) / 8 + pccl_price_lengths(lua, 1) / 8);
  return pccl_price_original(lua);
}

int pccl_safe_randomseed(lua_State *lua) {
  if (lua_isnoneornil(lua, 1)) {
    return luaL_error(lua, "math.randomseed: give a number (a program must do the same in every run)");
  }
  pccl_sandbox_charge(lua, pccl_price_lengths(lua, 1) / 8);
  lua_settop(lua, 2);
  pccl_price_original(lua);
  return 0;
}

static int fail_undefined_name(lua_State *lua) {
  if (lua_type(lua, 2) != LUA_TSTRING) {
    return 0;
  }
  return luaL_error(lua, "undefined name \"%s\"", lua_tostring(lua, 2));
}

void pccl_safe_globals(lua_State *lua) {
  lua_pushglobaltable(lua);
  lua_createtable(lua, 0, 1);
  lua_pushboolean(lua, 1);
  lua_pushcclosure(lua, fail_undefined_name, 1);
  lua_setfield(lua, -2, "__index");
  lua_setmetatable(lua, -2);
  lua_getglobal(lua, "math");
  lua_getfield(lua, -1, "randomseed");
  lua_pushinteger(lua, 1);
  lua_call(lua, 1, 0);
  lua_pop(lua, 2);
}
