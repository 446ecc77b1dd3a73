/* Functions on strings pay for the work of a call before they do it. Pattern matching backtracks, so its price is an
 * upper bound of the searches that the pattern allows. A pattern with too high a bound is refused. */
#include <lauxlib.h>
#include <math.h>
#include <string.h>

#include "language/prices.h"
#include "language/sandbox.h"

enum {
  MAX_MATCHING = 400000000, /* work of the matcher in one call: about a second */
  WORK_PER_INSTRUCTION = 16
};

/* ---- patterns ---- */

/* The end of the single item at `at`: %x, %bxy, [set] or a character. */
static const char *skip_item(const char *at, const char *end) {
  if (*at == '%') {
    size_t length = end - at >= 2 && at[1] == 'b' ? 4 : 2;
    return (size_t)(end - at) >= length ? at + length : end;
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

/* What one test of the item at [at, next) against the text can cost. */
static uint64_t test_price(const char *at, const char *next, uint64_t span) {
  enum { CAPTURE = 16 };
  if (*at == '%' && next - at >= 2 && (at[1] == 'b' || (at[1] >= '0' && at[1] <= '9'))) {
    return span; /* %bxy and %1 look at up to all that remains */
  }
  return *at == '(' || *at == ')' ? CAPTURE : (uint64_t)(next - at); /* a set is searched through */
}

/* A bound on the work of a search: every repetition may try every length in turn, and so may the start; each time the
 * rest of the pattern is tested again. */
static uint64_t search_work(size_t length, const char *pattern, size_t pattern_length, bool anchors) {
  const char *at = pattern, *end = pattern + pattern_length;
  uint64_t span = (uint64_t)length + 2, work = 1;
  uint64_t tries = anchors && at < end && *at == '^' ? 1 : span;
  while (at < end) {
    const char *next = skip_item(at, end);
    if (next < end && (*next == '*' || *next == '+' || *next == '-')) {
      tries = pccl_price_times(tries, span);
    } else if (next < end && *next == '?') {
      tries = pccl_price_times(tries, 2);
    }
    work = pccl_price_sum(work, pccl_price_times(tries, test_price(at, next, span)));
    at = next + (next < end && strchr("*+-?", *next) != NULL);
  }
  return work;
}

/* Where a search begins: the argument at stack place `at`, as an offset; past the end: length + 1. */
static size_t start_of(lua_State *lua, int at, size_t length) {
  lua_Integer start = luaL_optinteger(lua, at, 1);
  if (start > 0) {
    return (lua_Unsigned)start - 1 > length ? length + 1 : (size_t)start - 1;
  }
  return start == 0 || start < -(lua_Integer)length ? 0 : (size_t)((lua_Integer)length + start);
}

/* `start`: stack place of the argument that says where the search begins; 0: none. */
static void pay_for_pattern(lua_State *lua, const char *function, int start, bool anchors) {
  size_t length = 0, pattern_length = 0;
  luaL_checklstring(lua, 1, &length);
  const char *pattern = luaL_checklstring(lua, 2, &pattern_length);
  size_t skipped = start != 0 ? start_of(lua, start, length) : 0;
  size_t rest = skipped < length ? length - skipped : 0;
  uint64_t work = search_work(rest, pattern, pattern_length, anchors);
  if (work > MAX_MATCHING) {
    luaL_error(lua, "string.%s: this pattern could take too long on a string of %I bytes; use fewer repetitions",
               function, (lua_Integer)rest);
  }
  pccl_sandbox_charge(lua, work / WORK_PER_INSTRUCTION);
}

/* Lua's own search for plain text takes length x length; this one their sum. */
static int find_plain(lua_State *lua) {
  size_t length = 0, wanted_length = 0;
  const char *text = luaL_checklstring(lua, 1, &length), *wanted = luaL_checklstring(lua, 2, &wanted_length);
  size_t start = start_of(lua, 3, length);
  if (start <= length) {
    pccl_sandbox_charge(lua, (length - start + wanted_length) / 16);
    const char *found = memmem(text + start, length - start, wanted, wanted_length);
    if (found != NULL) {
      lua_pushinteger(lua, found - text + 1);
      lua_pushinteger(lua, (lua_Integer)((size_t)(found - text) + wanted_length));
      return 2;
    }
  }
  lua_pushnil(lua);
  return 1;
}

int pccl_safe_find(lua_State *lua) {
  size_t length = 0;
  luaL_checkstring(lua, 1);
  const char *pattern = luaL_checklstring(lua, 2, &length);
  bool plain = lua_toboolean(lua, 4);
  if (!plain) {
    plain = true;
    for (size_t i = 0; i < length && plain; i++) {
      plain = pattern[i] == '\0' || strchr("^$*+?.([%-", pattern[i]) == NULL;
    }
  }
  if (plain) {
    return find_plain(lua);
  }
  pay_for_pattern(lua, "find", 3, true);
  return pccl_price_original(lua);
}

int pccl_safe_match(lua_State *lua) {
  pay_for_pattern(lua, "match", 3, true);
  return pccl_price_original(lua);
}

/* All matches are paid at once: together they try each start once. */
int pccl_safe_gmatch(lua_State *lua) {
  pay_for_pattern(lua, "gmatch", 3, false);
  return pccl_price_original(lua);
}

int pccl_safe_gsub(lua_State *lua) {
  pay_for_pattern(lua, "gsub", 0, true);
  uint64_t matches = lua_rawlen(lua, 1) + 1, replacement = 16;
  lua_Integer wanted = luaL_optinteger(lua, 4, (lua_Integer)matches);
  if (lua_type(lua, 3) == LUA_TSTRING) {
    replacement += lua_rawlen(lua, 3);
  }
  if (wanted < (lua_Integer)matches) {
    matches = wanted > 0 ? (uint64_t)wanted : 0;
  }
  pccl_sandbox_charge(lua, pccl_price_times(matches, replacement) / 64);
  return pccl_price_original(lua);
}

/* ---- format ---- */

/* The argument at `at` as the directive `kind` shall see it: without what changes from run to run or from machine to
 * machine. */
static void settle_argument(lua_State *lua, char kind, int at) {
  if (kind == 'p') {
    luaL_error(lua, "string.format: %%p shows an address, which differs in every run");
  }
  bool number = lua_type(lua, at) == LUA_TNUMBER;
  bool is_nan = number && isnan(lua_tonumber(lua, at));
  if (kind == 's' && (is_nan || (!number && lua_type(lua, at) != LUA_TSTRING))) {
    size_t length = 0;
    pccl_safe_tolstring(lua, at, &length);
    pccl_sandbox_charge(lua, length / 8);
    lua_replace(lua, at);
  } else if (is_nan) {
    lua_pushnumber(lua, fabs((lua_Number)NAN));
    lua_replace(lua, at);
  }
}

int pccl_safe_format(lua_State *lua) {
  size_t length = 0;
  const char *at = luaL_checklstring(lua, 1, &length), *end = at + length;
  pccl_sandbox_charge(lua, 8 * (uint64_t)length + pccl_price_lengths(lua, 2) / 8);
  int last = lua_gettop(lua);
  for (int argument = 2; at < end; at++) {
    if (*at != '%' || ++at >= end || *at == '%') {
      continue;
    }
    while (at < end && *at != '\0' && strchr("-+ #0123456789.", *at) != NULL) {
      at++;
    }
    if (at < end && argument <= last) {
      settle_argument(lua, *at, argument++);
    }
  }
  return pccl_price_original(lua);
}

/* ---- the rest ---- */

int pccl_safe_rep(lua_State *lua) {
  size_t length = 0, separator = 0;
  luaL_checklstring(lua, 1, &length);
  lua_Integer times = luaL_checkinteger(lua, 2);
  luaL_optlstring(lua, 3, "", &separator);
  if (length + separator == 0 || times <= 0) { /* Lua would still count to n */
    lua_pushliteral(lua, "");
    return 1;
  }
  uint64_t total = pccl_price_times(length + separator, (uint64_t)times);
  pccl_sandbox_string(lua, total - (total < UINT64_MAX ? separator : 0));
  pccl_sandbox_charge(lua, (uint64_t)times / 4 + total / 16);
  return pccl_price_original(lua);
}

int pccl_safe_byte(lua_State *lua) {
  size_t length = 0;
  luaL_checklstring(lua, 1, &length);
  size_t first = start_of(lua, 2, length), last = first + 1;
  if (!lua_isnoneornil(lua, 3)) {
    lua_Integer end = luaL_checkinteger(lua, 3);
    end = end < 0 ? end + (lua_Integer)length + 1 : end;
    last = end < 0 ? 0 : (lua_Unsigned)end > length ? length : (size_t)end;
  }
  if (last > first) {
    if (last - first > PCCL_MAX_RESULTS) {
      return luaL_error(lua, "string.byte returns too many values (at most %d)", PCCL_MAX_RESULTS);
    }
    pccl_sandbox_charge(lua, last - first);
  }
  return pccl_price_original(lua);
}

int pccl_safe_char(lua_State *lua) {
  pccl_sandbox_charge(lua, (uint64_t)lua_gettop(lua) + pccl_price_lengths(lua, 1) / 8);
  return pccl_price_original(lua);
}

/* lower, reverse, upper */
int pccl_safe_whole(lua_State *lua) {
  pccl_sandbox_charge(lua, pccl_price_lengths(lua, 1) / 8);
  return pccl_price_original(lua);
}

/* The sum of the numbers in a format of pack: what it may ask for in padding. */
static uint64_t sizes_in(const char *format, size_t length) {
  uint64_t sum = 0, number = 0;
  for (size_t i = 0; i < length; i++) {
    bool digit = format[i] >= '0' && format[i] <= '9';
    number = digit ? pccl_price_sum(pccl_price_times(number, 10), (uint64_t)(format[i] - '0')) : 0;
    bool ends = digit && (i + 1 == length || format[i + 1] < '0' || format[i + 1] > '9');
    sum = ends ? pccl_price_sum(sum, number) : sum;
  }
  return sum;
}

int pccl_safe_pack(lua_State *lua) {
  size_t length = 0;
  const char *format = luaL_checklstring(lua, 1, &length);
  uint64_t sizes = sizes_in(format, length);
  pccl_sandbox_string(lua, sizes);
  pccl_sandbox_charge(lua, 4 * (uint64_t)length + sizes + pccl_price_lengths(lua, 2) / 8);
  return pccl_price_original(lua);
}

int pccl_safe_packsize(lua_State *lua) {
  size_t length = 0;
  luaL_checklstring(lua, 1, &length);
  pccl_sandbox_charge(lua, length);
  return pccl_price_original(lua);
}

int pccl_safe_unpack_string(lua_State *lua) {
  size_t length = 0, text = 0;
  const char *format = luaL_checklstring(lua, 1, &length);
  luaL_checklstring(lua, 2, &text);
  size_t start = start_of(lua, 3, text);
  bool searches = memchr(format, 'z', length) != NULL && start < text;
  pccl_sandbox_charge(lua, 4 * (uint64_t)length + (searches ? (text - start) / 16 : 0));
  return pccl_price_original(lua);
}
