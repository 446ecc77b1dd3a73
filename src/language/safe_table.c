/* The functions of the table library that loop in C. Each pays for its loop before it starts. They ask for a length
 * once, because __len may return anything, and they read and write through metamethods, as Lua's own functions do. */
#include <lauxlib.h>

#include "language/prices.h"
#include "language/sandbox.h"

enum { PER_VALUE = 2 };

/* Refuses what is neither a table nor has the metamethods to be taken for one. */
static void check_list(lua_State *lua, int at, bool reads, bool writes, bool has_length) {
  if (lua_type(lua, at) == LUA_TTABLE) {
    return;
  }
  bool fits = lua_getmetatable(lua, at);
  if (fits) {
    const char *const needed[] = {reads ? "__index" : NULL, writes ? "__newindex" : NULL, has_length ? "__len" : NULL};
    int metatable = lua_gettop(lua);
    for (size_t i = 0; i < 3; i++) {
      if (needed[i] != NULL) {
        lua_pushstring(lua, needed[i]);
        fits = lua_rawget(lua, metatable) != LUA_TNIL && fits;
      }
    }
    lua_settop(lua, metatable - 1);
  }
  if (!fits) {
    luaL_checktype(lua, at, LUA_TTABLE);
  }
}

static void pay_for_values(lua_State *lua, uint64_t count) {
  pccl_sandbox_charge(lua, pccl_price_times(PER_VALUE, count));
}

/* insert(t, [position,] value) */
int pccl_safe_insert(lua_State *lua) {
  check_list(lua, 1, true, true, true);
  lua_Unsigned end = (lua_Unsigned)luaL_len(lua, 1) + 1; /* the first place that is free */
  lua_Integer at = (lua_Integer)end;
  switch (lua_gettop(lua)) {
    case 2: break;
    case 3:
      at = luaL_checkinteger(lua, 2);
      luaL_argcheck(lua, (lua_Unsigned)at - 1 < end, 2, "position out of bounds");
      pay_for_values(lua, end - (lua_Unsigned)at);
      for (lua_Integer to = (lua_Integer)end; to > at; to--) {
        lua_geti(lua, 1, to - 1);
        lua_seti(lua, 1, to);
      }
      break;
    default: return luaL_error(lua, "wrong number of arguments to 'insert'");
  }
  lua_seti(lua, 1, at);
  return 0;
}

/* remove(t [, position]) */
int pccl_safe_remove(lua_State *lua) {
  check_list(lua, 1, true, true, true);
  lua_Integer length = luaL_len(lua, 1), at = luaL_optinteger(lua, 2, length);
  bool given = lua_gettop(lua) > 1;
  if (given) { /* one past the end is allowed */
    luaL_argcheck(lua,
                  (lua_Unsigned)length + 1 - (lua_Unsigned)at <= (lua_Unsigned)length || length + 1 == at ||
                      (length == 0 && at == 0),
                  2, "position out of bounds");
  }
  if (at < length) {
    pay_for_values(lua, (uint64_t)length - (uint64_t)at);
  }
  lua_geti(lua, 1, at);
  for (; at < length; at++) {
    lua_geti(lua, 1, at + 1);
    lua_seti(lua, 1, at);
  }
  lua_pushnil(lua);
  lua_seti(lua, 1, at);
  return 1;
}

/* move(from, first, last, at [, to]) */
int pccl_safe_move(lua_State *lua) {
  lua_Integer first = luaL_checkinteger(lua, 2), last = luaL_checkinteger(lua, 3), at = luaL_checkinteger(lua, 4);
  int to = lua_isnoneornil(lua, 5) ? 1 : 5;
  check_list(lua, 1, true, false, false);
  check_list(lua, to, false, true, false);
  if (first <= last) {
    luaL_argcheck(lua, first > 0 || last < LUA_MAXINTEGER + first, 3, "too many elements to move");
    luaL_argcheck(lua, at <= LUA_MAXINTEGER - (last - first), 4, "destination wrap around");
    pay_for_values(lua, (uint64_t)last - (uint64_t)first + 1);
    /* Upwards within one table the end goes first. */
    bool backwards = at > first && at <= last && (to == 1 || lua_compare(lua, 1, to, LUA_OPEQ));
    for (lua_Integer i = 0; i <= last - first; i++) {
      lua_Integer k = backwards ? last - first - i : i;
      lua_geti(lua, 1, first + k);
      lua_seti(lua, to, at + k);
    }
  }
  lua_pushvalue(lua, to);
  return 1;
}

static void add_value(lua_State *lua, luaL_Buffer *buffer, lua_Integer at) {
  lua_geti(lua, 1, at);
  if (!lua_isstring(lua, -1)) {
    luaL_error(lua, "invalid value (at index %I) in table for 'concat'", at);
  }
  luaL_addvalue(buffer);
  pccl_sandbox_string(lua, luaL_bufflen(buffer));
}

/* concat(t [, separator [, first [, last]]]) */
int pccl_safe_concat(lua_State *lua) {
  check_list(lua, 1, true, false, true);
  lua_Integer length = luaL_len(lua, 1);
  size_t separator = 0;
  const char *between = luaL_optlstring(lua, 2, "", &separator);
  lua_Integer first = luaL_optinteger(lua, 3, 1), last = luaL_optinteger(lua, 4, length);
  luaL_Buffer buffer;
  luaL_buffinit(lua, &buffer);
  if (first <= last) {
    pay_for_values(lua, pccl_price_times(2, (uint64_t)last - (uint64_t)first));
    for (lua_Integer i = first; i < last; i++) {
      add_value(lua, &buffer, i);
      luaL_addlstring(&buffer, between, separator);
    }
    add_value(lua, &buffer, last);
  }
  pccl_sandbox_charge(lua, luaL_bufflen(&buffer) / 16);
  luaL_pushresult(&buffer);
  return 1;
}

/* unpack(t [, first [, last]]) */
int pccl_safe_unpack(lua_State *lua) {
  lua_Integer first = luaL_optinteger(lua, 2, 1);
  lua_Integer last = luaL_opt(lua, luaL_checkinteger, 3, luaL_len(lua, 1));
  if (first > last) {
    return 0;
  }
  if ((uint64_t)last - (uint64_t)first >= PCCL_MAX_RESULTS) {
    return luaL_error(lua, "table.unpack returns too many values (at most %d)", PCCL_MAX_RESULTS);
  }
  int count = (int)(last - first) + 1;
  pay_for_values(lua, (uint64_t)count);
  luaL_checkstack(lua, count, "too many values to unpack");
  for (int i = 0; i < count; i++) {
    lua_geti(lua, 1, first + i);
  }
  return count;
}

/* ---- sort ---- */

/* Whether the value at the top of the stack must stand before the one below it; pops both. Stack place 2: the order
 * function, or nil. */
static bool pop_before(lua_State *lua) {
  bool before = false;
  if (lua_isnil(lua, 2)) {
    if (lua_type(lua, -1) == LUA_TSTRING && lua_type(lua, -2) == LUA_TSTRING) {
      pccl_sandbox_charge(lua, (lua_rawlen(lua, -1) + lua_rawlen(lua, -2)) / 32);
    }
    before = lua_compare(lua, -1, -2, LUA_OPLT);
    lua_pop(lua, 2);
  } else {
    lua_pushvalue(lua, 2);
    lua_insert(lua, -3);
    lua_insert(lua, -2); /* function, upper, lower: the arguments in the order of the question */
    lua_call(lua, 2, 1);
    before = lua_toboolean(lua, -1);
    lua_pop(lua, 1);
  }
  return before;
}

/* Merges places [first, middle) and [middle, last) of the list at `from` into the one at `to`. */
static void merge_runs(lua_State *lua, int from, int to, lua_Integer first, lua_Integer middle, lua_Integer last) {
  lua_Integer left = first, right = middle;
  for (lua_Integer at = first; at < last; at++) {
    bool takes_right = left == middle;
    if (left < middle && right < last) {
      lua_rawgeti(lua, from, left);
      lua_rawgeti(lua, from, right);
      takes_right = pop_before(lua);
    }
    lua_rawgeti(lua, from, takes_right ? right++ : left++);
    lua_rawseti(lua, to, at);
  }
}

/* sort(t [, before]): merge sort, which does the same for every order function, sensible or not, and keeps the order of
 * equal values. Lua's own picks pivots by the clock. */
int pccl_safe_sort(lua_State *lua) {
  check_list(lua, 1, true, true, true);
  lua_Integer length = luaL_len(lua, 1);
  if (length < 2) {
    return 0;
  }
  luaL_argcheck(lua, length < INT32_MAX, 1, "array too big");
  if (!lua_isnoneornil(lua, 2)) {
    luaL_checktype(lua, 2, LUA_TFUNCTION);
  }
  lua_settop(lua, 2);
  uint64_t rounds = 2;
  for (lua_Integer run = 1; run < length; run *= 2) {
    rounds++;
  }
  pay_for_values(lua, pccl_price_times(2 * rounds, (uint64_t)length));
  lua_newtable(lua);
  lua_newtable(lua);
  for (lua_Integer i = 1; i <= length; i++) {
    lua_geti(lua, 1, i);
    lua_rawseti(lua, 3, i);
  }
  int from = 3, to = 4;
  for (lua_Integer run = 1; run < length; run *= 2) {
    for (lua_Integer first = 1; first <= length; first += 2 * run) {
      lua_Integer middle = first + run < length + 1 ? first + run : length + 1;
      lua_Integer last = middle + run < length + 1 ? middle + run : length + 1;
      merge_runs(lua, from, to, first, middle, last);
    }
    int swap = from;
    from = to;
    to = swap;
  }
  for (lua_Integer i = 1; i <= length; i++) {
    lua_rawgeti(lua, from, i);
    lua_seti(lua, 1, i);
  }
  return 0;
}
