/* Functions on strings that can run long within one call pay for it first: pattern matching backtracks, string.rep
 * repeats. */
#include <lauxlib.h>
#include <string.h>

#include "language/sandbox.h"

enum {
  MOST_MATCHING = 100000000, /* tries of the matcher in one call: about a second */
  TRIES_PER_INSTRUCTION = 16
};

static uint64_t times(uint64_t a, uint64_t b) { return a != 0 && b > UINT64_MAX / a ? UINT64_MAX : a * b; }

/* The end of the single item at `at`: %x, [set] or a character. */
static const char *skip_item(const char *at, const char *end) {
  if (*at == '%') {
    return end - at >= 2 ? at + 2 : end;
  }
  if (*at != '[') {
    return at + 1;
  }
  at++;
  at += at < end && *at == '^';
  do { /* a ']' at the start belongs to the set */
    at += at < end && *at == '%' && end - at >= 2 ? 2 : 1;
  } while (at < end && *at != ']');
  return at < end ? at + 1 : end;
}

/* A bound on the matcher's tries: each repetition may try every length in turn, and so may the start. */
static uint64_t most_tries(size_t length, const char *pattern, size_t pattern_length) {
  const char *at = pattern, *end = pattern + pattern_length;
  uint64_t span = (uint64_t)length + 2;
  uint64_t tries = at < end && *at == '^' ? 1 : span;
  while (at < end) {
    if (*at == '%' && end - at >= 2 && (at[1] == 'b' || (at[1] >= '0' && at[1] <= '9'))) {
      tries = times(tries, span); /* %bxy and %1 look at up to all that remains */
    }
    at = skip_item(at, end);
    if (at < end && (*at == '*' || *at == '+' || *at == '-')) {
      tries = times(tries, span);
      at++;
    } else if (at < end && *at == '?') {
      tries = times(tries, 2);
      at++;
    }
  }
  return tries;
}

static void pay_for_pattern(lua_State *lua, const char *function) {
  size_t length = 0, pattern_length = 0;
  luaL_checklstring(lua, 1, &length);
  const char *pattern = luaL_checklstring(lua, 2, &pattern_length);
  uint64_t tries = most_tries(length, pattern, pattern_length);
  if (tries > MOST_MATCHING) {
    luaL_error(lua, "string.%s: this pattern could take too long on a string of %I bytes; use fewer repetitions",
               function, (lua_Integer)length);
  }
  pccl_sandbox_charge(lua, tries / TRIES_PER_INSTRUCTION);
}

static int call_original(lua_State *lua) {
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
  return lua_gettop(lua);
}

static int safe_find(lua_State *lua) {
  if (lua_toboolean(lua, 4)) { /* plain */
    pccl_sandbox_charge(lua, lua_rawlen(lua, 1));
  } else {
    pay_for_pattern(lua, "find");
  }
  return call_original(lua);
}

static int safe_match(lua_State *lua) {
  pay_for_pattern(lua, "match");
  return call_original(lua);
}

static int safe_gmatch(lua_State *lua) {
  pay_for_pattern(lua, "gmatch");
  return call_original(lua);
}

static int safe_gsub(lua_State *lua) {
  pay_for_pattern(lua, "gsub");
  return call_original(lua);
}

static int safe_rep(lua_State *lua) {
  size_t length = 0, separator = 0;
  luaL_checklstring(lua, 1, &length);
  lua_Integer times_wanted = luaL_checkinteger(lua, 2);
  luaL_optlstring(lua, 3, "", &separator);
  if (length + separator == 0) { /* Lua would still count to n */
    lua_pushliteral(lua, "");
    return 1;
  }
  if (times_wanted > 0) {
    pccl_sandbox_string(lua, (size_t)times(length + separator, (uint64_t)times_wanted));
  }
  return call_original(lua);
}

void pccl_safe_string(lua_State *lua) {
  static const luaL_Reg wrapped[] = {{"find", safe_find}, {"match", safe_match}, {"gmatch", safe_gmatch},
                                     {"gsub", safe_gsub}, {"rep", safe_rep},     {NULL, NULL}};
  lua_getglobal(lua, "string");
  lua_pushnil(lua);
  lua_setfield(lua, -2, "dump");
  for (const luaL_Reg *entry = wrapped; entry->name != NULL; entry++) {
    lua_getfield(lua, -1, entry->name);
    lua_pushcclosure(lua, entry->func, 1);
    lua_setfield(lua, -2, entry->name);
  }
  lua_pop(lua, 1);
}
