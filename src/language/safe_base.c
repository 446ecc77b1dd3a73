/* What of Lua's base library differs here: pcall cannot catch the end of a program, metatables have no finalisers,
 * pairs has a fixed order, print goes to stderr, undefined names are errors. */
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "language/sandbox.h"

/* ---- protected calls ---- */

/* After a protected call at `first`: passes on what may not be caught, else leaves the results. */
static int caught(lua_State *lua, int status, int first, int scopes) {
  pccl_sandbox *box = pccl_sandbox_of(lua);
  if (status == LUA_ERRMEM && box->stop == PCCL_STOP_NONE) {
    box->stop = box->refused;
  }
  if (box->stop != PCCL_STOP_NONE) {
    return lua_error(lua);
  }
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

static int safe_pcall(lua_State *lua) {
  luaL_checkany(lua, 1);
  int scopes = pccl_sandbox_of(lua)->scopes;
  return caught(lua, lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0), 1, scopes);
}

/* Stands between Lua and the program's handler: a handler that runs on a stopped program could run for ever. */
static int handle(lua_State *lua) {
  if (pccl_sandbox_of(lua)->stop == PCCL_STOP_NONE) {
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    lua_call(lua, 1, 1);
  }
  return 1;
}

static int safe_xpcall(lua_State *lua) {
  luaL_checktype(lua, 2, LUA_TFUNCTION);
  int scopes = pccl_sandbox_of(lua)->scopes;
  lua_pushvalue(lua, 2);
  lua_pushcclosure(lua, handle, 1);
  lua_replace(lua, 2);
  lua_pushvalue(lua, 1);
  lua_insert(lua, 3);
  /* stack: function, handler, function, arguments */
  return caught(lua, lua_pcall(lua, lua_gettop(lua) - 3, LUA_MULTRET, 2), 3, scopes);
}

/* ---- metatables ---- */

static int safe_setmetatable(lua_State *lua) {
  if (lua_istable(lua, 2)) {
    lua_pushliteral(lua, "__gc");
    if (lua_rawget(lua, 2) != LUA_TNIL) {
      return luaL_error(lua, "setmetatable: finalisers (__gc) are not allowed here");
    }
    lua_pop(lua, 1);
  }
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
  return lua_gettop(lua);
}

/* ---- pairs in a fixed order ---- */

typedef struct sort_key {
  int order; /* numbers, strings, booleans, then the rest in the order in which Lua keeps them */
  lua_Number number;
  lua_Integer integer; /* where order is that of numbers and is_integer */
  int is_integer;
  const char *text;
  size_t length;
  lua_Integer position; /* in the list of keys */
} sort_key;

static int compare_keys(const void *left, const void *right) {
  const sort_key *a = left, *b = right;
  if (a->order != b->order) {
    return a->order < b->order ? -1 : 1;
  }
  if (a->order == 0 && a->is_integer && b->is_integer) {
    return a->integer < b->integer ? -1 : 1;
  }
  if (a->order == 0 && a->number != b->number) {
    return a->number < b->number ? -1 : 1;
  }
  if (a->order == 1) {
    int difference = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    if (difference != 0 || a->length != b->length) {
      return difference != 0 ? difference : a->length < b->length ? -1 : 1;
    }
  }
  return a->position < b->position ? -1 : 1;
}

static sort_key key_at_top(lua_State *lua, lua_Integer position) {
  sort_key key = {.order = 3, .position = position};
  switch (lua_type(lua, -1)) {
    case LUA_TNUMBER:
      key.order = 0;
      key.is_integer = lua_isinteger(lua, -1);
      key.integer = lua_tointeger(lua, -1);
      key.number = lua_tonumber(lua, -1);
      break;
    case LUA_TSTRING:
      key.order = 1;
      key.text = lua_tolstring(lua, -1, &key.length);
      break;
    case LUA_TBOOLEAN:
      key.order = 2;
      key.position = lua_toboolean(lua, -1);
      break;
    default: break;
  }
  return key;
}

/* Upvalues: the table, its sorted keys, how many, how many are done. Keys that have gone meanwhile are left out. */
static int next_sorted(lua_State *lua) {
  lua_Integer count = lua_tointeger(lua, lua_upvalueindex(3)), done = lua_tointeger(lua, lua_upvalueindex(4));
  while (done < count) {
    done++;
    lua_rawgeti(lua, lua_upvalueindex(2), done);
    lua_pushvalue(lua, -1);
    if (lua_rawget(lua, lua_upvalueindex(1)) != LUA_TNIL) {
      lua_pushinteger(lua, done);
      lua_replace(lua, lua_upvalueindex(4));
      return 2;
    }
    lua_pop(lua, 2);
  }
  lua_pushnil(lua);
  return 1;
}

static int safe_pairs(lua_State *lua) {
  luaL_checkany(lua, 1);
  if (luaL_getmetafield(lua, 1, "__pairs") != LUA_TNIL) {
    lua_pushvalue(lua, 1);
    lua_call(lua, 1, 3);
    return 3;
  }
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 1);
  lua_newtable(lua);
  lua_Integer count = 0;
  for (lua_pushnil(lua); lua_next(lua, 1); lua_pop(lua, 1)) {
    lua_pushvalue(lua, -2);
    lua_rawseti(lua, 2, ++count);
  }
  pccl_sandbox_charge(lua, 16 * (uint64_t)count);
  sort_key *keys = lua_newuserdatauv(lua, (size_t)count * sizeof *keys, 0);
  for (lua_Integer i = 0; i < count; i++) {
    lua_rawgeti(lua, 2, i + 1);
    keys[i] = key_at_top(lua, i);
    lua_pop(lua, 1); /* the list of keys holds the string */
  }
  qsort(keys, (size_t)count, sizeof *keys, compare_keys);
  /* In place would overwrite keys still needed: a second list. */
  lua_createtable(lua, count < 1 << 20 ? (int)count : 0, 0);
  for (lua_Integer i = 0; i < count; i++) {
    switch (keys[i].order) {
      case 0:
        if (keys[i].is_integer) {
          lua_pushinteger(lua, keys[i].integer);
        } else {
          lua_pushnumber(lua, keys[i].number);
        }
        break;
      case 1: lua_pushlstring(lua, keys[i].text, keys[i].length); break;
      case 2: lua_pushboolean(lua, (int)keys[i].position); break;
      default: lua_rawgeti(lua, 2, keys[i].position + 1); break;
    }
    lua_rawseti(lua, 4, i + 1);
  }
  lua_pushvalue(lua, 1);
  lua_pushvalue(lua, 4);
  lua_pushinteger(lua, count);
  lua_pushinteger(lua, 0);
  lua_pushcclosure(lua, next_sorted, 4);
  return 1;
}

/* ---- the rest ---- */

static int safe_print(lua_State *lua) {
  int count = lua_gettop(lua);
  for (int i = 1; i <= count; i++) {
    size_t length = 0;
    const char *text = luaL_tolstring(lua, i, &length);
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

static int undefined(lua_State *lua) {
  if (lua_type(lua, 2) != LUA_TSTRING) {
    return 0;
  }
  return luaL_error(lua, "undefined name \"%s\"", lua_tostring(lua, 2));
}

static int safe_randomseed(lua_State *lua) {
  if (lua_isnoneornil(lua, 1)) {
    return luaL_error(lua, "math.randomseed: give a number (a program must do the same in every run)");
  }
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, 0);
  return 0;
}

void pccl_safe_base(lua_State *lua) {
  static const char *const removed[] = {"collectgarbage", "dofile", "load", "loadfile", "warn"};
  static const luaL_Reg replaced[] = {
      {"pcall", safe_pcall}, {"xpcall", safe_xpcall}, {"pairs", safe_pairs}, {"print", safe_print}, {NULL, NULL}};
  lua_pushglobaltable(lua);
  for (size_t i = 0; i < sizeof removed / sizeof removed[0]; i++) {
    lua_pushnil(lua);
    lua_setfield(lua, -2, removed[i]);
  }
  luaL_setfuncs(lua, replaced, 0);
  lua_getfield(lua, -1, "setmetatable");
  lua_pushcclosure(lua, safe_setmetatable, 1);
  lua_setfield(lua, -2, "setmetatable");
  lua_createtable(lua, 0, 1);
  lua_pushcfunction(lua, undefined);
  lua_setfield(lua, -2, "__index");
  lua_setmetatable(lua, -2);
  lua_getglobal(lua, "math");
  lua_getfield(lua, -1, "randomseed");
  lua_pushvalue(lua, -1);
  lua_pushinteger(lua, 1);
  lua_call(lua, 1, 0);
  lua_pushcclosure(lua, safe_randomseed, 1);
  lua_setfield(lua, -2, "randomseed");
  lua_pop(lua, 2);
}
