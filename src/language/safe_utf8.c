/* Functions of utf8 pay for the bytes that they go through. */
#include <lauxlib.h>

#include "language/prices.h"
#include "language/sandbox.h"

/* Bytes between the places that the arguments at 2 and 3 name; `last`: that of an absent third. */
static uint64_t bytes_between(lua_State *lua, lua_Integer length, lua_Integer last) {
  lua_Integer first = luaL_optinteger(lua, 2, 1);
  last = luaL_optinteger(lua, 3, last != 0 ? last : first);
  first = first < 0 ? (first < -length ? 0 : length + first + 1) : first;
  last = last < 0 ? (last < -length ? 0 : length + last + 1) : last;
  return first <= last ? (uint64_t)(last - first) + 1 : 0;
}

int pccl_safe_utf8_len(lua_State *lua) {
  size_t length = 0;
  luaL_checklstring(lua, 1, &length);
  uint64_t bytes = bytes_between(lua, (lua_Integer)length, -1);
  pccl_sandbox_charge(lua, bytes < length ? bytes : length);
  return pccl_price_original(lua);
}

int pccl_safe_codepoint(lua_State *lua) {
  size_t length = 0;
  luaL_checklstring(lua, 1, &length);
  uint64_t bytes = bytes_between(lua, (lua_Integer)length, 0);
  if (bytes > PCCL_MAX_RESULTS && length > PCCL_MAX_RESULTS) {
    return luaL_error(lua, "utf8.codepoint returns too many values (at most %d)", PCCL_MAX_RESULTS);
  }
  pccl_sandbox_charge(lua, bytes < length ? bytes : length);
  return pccl_price_original(lua);
}

int pccl_safe_offset(lua_State *lua) {
  size_t length = 0;
  luaL_checklstring(lua, 1, &length);
  pccl_sandbox_charge(lua, length / 16);
  return pccl_price_original(lua);
}

/* One step passes the bytes that continue a character, however many there are. */
static int next_of_codes(lua_State *lua) {
  size_t length = 0, passed = 0;
  const char *text = luaL_checklstring(lua, 1, &length);
  lua_Integer at = lua_tointeger(lua, 2);
  if (at > 0) {
    for (size_t i = (size_t)at; i < length && (text[i] & 0xC0) == 0x80; i++) {
      passed++;
    }
  }
  pccl_sandbox_charge(lua, passed / 4);
  return pccl_price_original(lua);
}

int pccl_safe_codes(lua_State *lua) {
  int results = pccl_price_original(lua); /* the iterator, the text, 0 */
  int iterator = lua_gettop(lua) - results + 1;
  lua_pushboolean(lua, 1);
  lua_pushvalue(lua, iterator);
  lua_pushcclosure(lua, next_of_codes, 2);
  lua_replace(lua, iterator);
  return results;
}
