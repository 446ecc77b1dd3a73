/* Functions on tables that loop in C pay for their steps first; a length may be whatever __len says. */
#include <lauxlib.h>

#include "language/sandbox.h"

static int call_original(lua_State *lua) {
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
  return lua_gettop(lua);
}

static void pay_for_range(lua_State *lua, lua_Integer first, lua_Integer last) {
  if (first <= last) {
    uint64_t steps = (uint64_t)last - (uint64_t)first;
    pccl_sandbox_charge(lua, steps);
  }
}

static int safe_move(lua_State *lua) {
  pay_for_range(lua, luaL_checkinteger(lua, 2), luaL_checkinteger(lua, 3));
  return call_original(lua);
}

static int safe_concat(lua_State *lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_Integer last = luaL_opt(lua, luaL_checkinteger, 4, luaL_len(lua, 1));
  pay_for_range(lua, luaL_optinteger(lua, 3, 1), last);
  return call_original(lua);
}

/* insert and remove shift what comes after the position. */
static int safe_shift(lua_State *lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  if (!lua_isnoneornil(lua, 2) && lua_isinteger(lua, 2)) {
    pay_for_range(lua, lua_tointeger(lua, 2), luaL_len(lua, 1));
  }
  return call_original(lua);
}

static int safe_sort(lua_State *lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_Integer length = luaL_len(lua, 1);
  for (lua_Integer rest = length; rest > 0; rest /= 2) {
    pay_for_range(lua, 1, length); /* length x log length */
  }
  return call_original(lua);
}

static int safe_unpack(lua_State *lua) {
  lua_Integer last = luaL_opt(lua, luaL_checkinteger, 3, luaL_len(lua, 1));
  enum { MOST = 100000 };
  lua_Integer first = luaL_optinteger(lua, 2, 1);
  if (first <= last && (uint64_t)last - (uint64_t)first >= MOST) {
    return luaL_error(lua, "table.unpack: too many values (at most %d)", MOST);
  }
  pay_for_range(lua, first, last);
  return call_original(lua);
}

void pccl_safe_table(lua_State *lua) {
  static const luaL_Reg wrapped[] = {{"move", safe_move},
                                     {"concat", safe_concat},
                                     {"insert", safe_shift},
                                     {"remove", safe_shift},
                                     {"sort", safe_sort},
                                     {"unpack", safe_unpack},
                                     {NULL, NULL}};
  lua_getglobal(lua, "table");
  for (const luaL_Reg *entry = wrapped; entry->name != NULL; entry++) {
    lua_getfield(lua, -1, entry->name);
    lua_pushcclosure(lua, entry->func, 1);
    lua_setfield(lua, -2, entry->name);
  }
  lua_pop(lua, 1);
}
