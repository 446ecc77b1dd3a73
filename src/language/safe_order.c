/* next and pairs visit the keys of a table in a fixed order: numbers by value, texts by their bytes, false, true, then
 * tables, functions and userdata in the order in which they were made. The order depends neither on addresses nor on
 * Lua's seed for hashes.
 *
 * Both use a list of the keys that were there at the start. Keys that were removed meanwhile are left out, and new keys
 * are not visited. next() has no place to keep its list, so the last few walks are remembered. */
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#include "language/prices.h"
#include "language/sandbox.h"

typedef struct sort_key {
  enum { NUMBER, TEXT, BOOLEAN, OBJECT } order;
  lua_Number number;
  lua_Integer integer; /* where order is NUMBER and is_integer; BOOLEAN: 0 or 1; OBJECT: its number */
  bool is_integer;
  const char *text;
  size_t length;
  lua_Integer position; /* in the list of keys */
} sort_key;

static int compare_keys(const void *left, const void *right) {
  const sort_key *a = left, *b = right;
  if (a->order != b->order) {
    return a->order < b->order ? -1 : 1;
  }
  if (a->order == TEXT) {
    int difference = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    return difference != 0 ? difference : (a->length > b->length) - (a->length < b->length);
  }
  if (a->order == NUMBER && !(a->is_integer && b->is_integer)) {
    return (a->number > b->number) - (a->number < b->number);
  }
  return (a->integer > b->integer) - (a->integer < b->integer);
}

/* Of the value at stack place `at`, which must stay alive. */
static sort_key key_of(lua_State *lua, int at) {
  sort_key key = {.order = OBJECT};
  switch (lua_type(lua, at)) {
    case LUA_TNUMBER:
      key.order = NUMBER;
      key.is_integer = lua_isinteger(lua, at);
      key.integer = lua_tointeger(lua, at);
      key.number = lua_tonumber(lua, at);
      break;
    case LUA_TSTRING:
      key.order = TEXT;
      key.text = lua_tolstring(lua, at, &key.length);
      break;
    case LUA_TBOOLEAN:
      key.order = BOOLEAN;
      key.integer = lua_toboolean(lua, at);
      break;
    default: key.integer = (lua_Integer)pccl_sandbox_made(lua, at); break;
  }
  return key;
}

/* Pushes a list of the keys of the table at `table` and returns their number. `bytes`: of the texts among them. */
static lua_Integer collect_keys(lua_State *lua, int table, uint64_t *bytes, bool *ordered) {
  lua_newtable(lua);
  int list = lua_gettop(lua);
  lua_Integer count = 0;
  sort_key last = {0};
  *ordered = true;
  *bytes = 0;
  for (lua_pushnil(lua); lua_next(lua, table); lua_pop(lua, 1)) {
    sort_key key = key_of(lua, -2);
    if (key.order == TEXT) {
      *bytes += key.length;
      *ordered = false;
    }
    *ordered = *ordered && (count == 0 || compare_keys(&last, &key) < 0);
    last = key;
    lua_pushvalue(lua, -2);
    lua_rawseti(lua, list, ++count);
    if (count % 1024 == 0) {
      pccl_sandbox_charge(lua, 16 * 1024);
    }
  }
  pccl_sandbox_charge(lua, 16 * (uint64_t)(count % 1024));
  return count;
}

/* Pushes the list of the keys of the table at `table`, in order; returns their number. */
static lua_Integer sorted_keys(lua_State *lua, int table) {
  uint64_t bytes = 0, price = 0;
  bool ordered = true;
  lua_Integer count = collect_keys(lua, table, &bytes, &ordered);
  if (ordered) {
    return count;
  }
  for (lua_Integer rest = count; rest > 0; rest /= 2) {
    price += 2 * (uint64_t)count + bytes / 16;
  }
  pccl_sandbox_charge(lua, price);
  int list = lua_gettop(lua);
  sort_key *keys = lua_newuserdatauv(lua, (size_t)count * sizeof *keys, 0);
  for (lua_Integer i = 0; i < count; i++) {
    lua_rawgeti(lua, list, i + 1);
    keys[i] = key_of(lua, -1);
    keys[i].position = i + 1;
    lua_pop(lua, 1); /* the list holds it */
  }
  qsort(keys, (size_t)count, sizeof *keys, compare_keys);
  lua_createtable(lua, count < 1 << 20 ? (int)count : 0, 0); /* in place would overwrite keys still needed */
  for (lua_Integer i = 0; i < count; i++) {
    lua_rawgeti(lua, list, keys[i].position);
    lua_rawseti(lua, -2, i + 1);
  }
  lua_replace(lua, list);
  lua_settop(lua, list);
  return count;
}

/* From place `done` of the list on: pushes the first key that is still there, and its value, and returns its place; or
 * nil and 0. */
static lua_Integer push_entry(lua_State *lua, int table, int list, lua_Integer done, lua_Integer count) {
  while (done < count) {
    done++;
    lua_rawgeti(lua, list, done);
    lua_pushvalue(lua, -1);
    if (lua_rawget(lua, table) != LUA_TNIL) {
      return done;
    }
    lua_pop(lua, 2);
    if (done % 256 == 0) {
      pccl_sandbox_charge(lua, 256 * 4);
    }
  }
  lua_pushnil(lua);
  return 0;
}

/* ---- pairs ---- */

/* Upvalues: the table, its sorted keys, how many, how many are done. */
static int next_of_pairs(lua_State *lua) {
  lua_Integer count = lua_tointeger(lua, lua_upvalueindex(3)), done = lua_tointeger(lua, lua_upvalueindex(4));
  lua_settop(lua, 0);
  done = push_entry(lua, lua_upvalueindex(1), lua_upvalueindex(2), done, count);
  lua_pushinteger(lua, done > 0 ? done : count);
  lua_replace(lua, lua_upvalueindex(4));
  return lua_gettop(lua);
}

int pccl_safe_pairs(lua_State *lua) {
  luaL_checkany(lua, 1);
  if (luaL_getmetafield(lua, 1, "__pairs") != LUA_TNIL) {
    lua_pushvalue(lua, 1);
    lua_call(lua, 1, 3);
    return 3;
  }
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 1);
  lua_Integer count = sorted_keys(lua, 1);
  lua_pushinteger(lua, count);
  lua_pushinteger(lua, 0);
  lua_pushcclosure(lua, next_of_pairs, 4);
  return 1;
}

/* ---- next ---- */

enum { WALKS = 4, FIELDS = 4 };

static const char walks_name[] = "walks"; /* its address is the key in the registry */

/* Pushes the list of remembered walks: for each a table, its keys, how many, how many are done; at the end, which one
 * is the oldest. */
static void push_walks(lua_State *lua) {
  if (lua_rawgetp(lua, LUA_REGISTRYINDEX, walks_name) == LUA_TNIL) {
    lua_pop(lua, 1);
    lua_newtable(lua);
    lua_pushvalue(lua, -1);
    lua_rawsetp(lua, LUA_REGISTRYINDEX, walks_name);
  }
}

/* The first of the fields of the walk through the table at place 1; 0: none is remembered. */
static int find_walk(lua_State *lua, int walks) {
  for (int i = 0; i < WALKS; i++) {
    lua_rawgeti(lua, walks, i * FIELDS + 1);
    bool same = lua_rawequal(lua, -1, 1);
    lua_pop(lua, 1);
    if (same) {
      return i * FIELDS + 1;
    }
  }
  return 0;
}

static lua_Integer field_of(lua_State *lua, int walks, int field) {
  lua_rawgeti(lua, walks, field);
  lua_Integer value = lua_tointeger(lua, -1);
  lua_pop(lua, 1);
  return value;
}

static void set_field(lua_State *lua, int walks, int field, lua_Integer value) {
  lua_pushinteger(lua, value);
  lua_rawseti(lua, walks, field);
}

/* next(t): the lowest key. Ends a walk that is remembered, since keys may be new. */
static int push_first(lua_State *lua, int walks) {
  int walk = find_walk(lua, walks);
  if (walk != 0) {
    lua_pushboolean(lua, 0);
    lua_rawseti(lua, walks, walk);
    lua_pushnil(lua);
    lua_rawseti(lua, walks, walk + 1);
  }
  lua_settop(lua, 1);
  lua_pushnil(lua); /* the lowest so far, and its value */
  lua_pushnil(lua);
  uint64_t price = 1;
  for (lua_pushnil(lua); lua_next(lua, 1);) {
    sort_key key = key_of(lua, 4), lowest = key_of(lua, 2);
    price += 2 + (key.order == TEXT ? key.length / 16 : 0);
    if (price > 4096) {
      pccl_sandbox_charge(lua, price);
      price = 0;
    }
    if (lua_isnil(lua, 2) || compare_keys(&key, &lowest) < 0) {
      lua_pushvalue(lua, 4);
      lua_replace(lua, 2);
      lua_replace(lua, 3);
    } else {
      lua_pop(lua, 1);
    }
  }
  pccl_sandbox_charge(lua, price);
  return lua_isnil(lua, 2) ? 1 : 2;
}

/* How many keys of the list at the top of the stack are not above the key at place 2. */
static lua_Integer count_up_to(lua_State *lua, lua_Integer count) {
  sort_key after = key_of(lua, 2);
  lua_Integer low = 0, high = count;
  while (low < high) {
    lua_Integer middle = low + (high - low) / 2;
    lua_rawgeti(lua, -1, middle + 1);
    sort_key key = key_of(lua, -1);
    lua_pop(lua, 1);
    if (compare_keys(&key, &after) <= 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/* Remembers a walk through the table at place 1 that has come to the key at place 2; returns its first field. */
static int begin_walk(lua_State *lua, int walks) {
  int walk = find_walk(lua, walks);
  if (walk == 0) {
    lua_Integer oldest = field_of(lua, walks, WALKS * FIELDS + 1);
    walk = (int)oldest * FIELDS + 1;
    set_field(lua, walks, WALKS * FIELDS + 1, (oldest + 1) % WALKS);
  }
  lua_Integer count = sorted_keys(lua, 1);
  lua_Integer done = count_up_to(lua, count);
  lua_rawseti(lua, walks, walk + 1);
  lua_pushvalue(lua, 1);
  lua_rawseti(lua, walks, walk);
  set_field(lua, walks, walk + 2, count);
  set_field(lua, walks, walk + 3, done);
  return walk;
}

int pccl_safe_next(lua_State *lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 2);
  pccl_sandbox_charge(lua, 8);
  push_walks(lua);
  int walks = 3;
  if (lua_isnil(lua, 2)) {
    return push_first(lua, walks);
  }
  int walk = find_walk(lua, walks);
  bool here = false;
  if (walk != 0) {
    lua_rawgeti(lua, walks, walk + 1);
    lua_rawgeti(lua, -1, field_of(lua, walks, walk + 3));
    here = lua_rawequal(lua, -1, 2);
    lua_settop(lua, walks);
  }
  if (!here) {
    walk = begin_walk(lua, walks);
  }
  lua_rawgeti(lua, walks, walk + 1);
  lua_Integer count = field_of(lua, walks, walk + 2), done = field_of(lua, walks, walk + 3);
  done = push_entry(lua, 1, walks + 1, done, count);
  set_field(lua, walks, walk + 3, done > 0 ? done : count);
  return done > 0 ? 2 : 1;
}

/* ---- ipairs ---- */

static int next_of_ipairs(lua_State *lua) {
  lua_Integer i = luaL_checkinteger(lua, 2);
  i = (lua_Integer)((lua_Unsigned)i + 1);
  lua_pushinteger(lua, i);
  return lua_geti(lua, 1, i) == LUA_TNIL ? 1 : 2;
}

int pccl_safe_ipairs(lua_State *lua) {
  luaL_checkany(lua, 1);
  lua_pushboolean(lua, 1);
  lua_pushcclosure(lua, next_of_ipairs, 1);
  lua_pushvalue(lua, 1);
  lua_pushinteger(lua, 0);
  return 3;
}
