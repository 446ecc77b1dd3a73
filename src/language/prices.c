#include "language/prices.h"

#include <lauxlib.h>
#include <string.h>

#include "language/sandbox.h"

static const char constant[] = "none: a call does the same work for all arguments";
static const char numbers[] = "length of texts / 8, which are read as numbers";
static const char memory[] = "by the memory that the result takes";
static const char walk[] = "see safe_order.c: number of keys x 16, and their texts";
static const char itself[] = "charges itself (references.c, pairs.c, buffers.c, collectives.c, params.c, require.c)";

static const pccl_price prices[] = {
    {"assert", NULL, constant},
    {"error", NULL, constant},
    {"getmetatable", NULL, constant},
    {"ipairs", pccl_safe_ipairs, constant},
    {"next", pccl_safe_next, walk},
    {"pairs", pccl_safe_pairs, walk},
    {"pcall", pccl_safe_pcall, "10000 for an error that it catches"},
    {"print", pccl_safe_print, "length of the text"},
    {"rawequal", pccl_safe_rawequal, "length of texts / 16"},
    {"rawget", pccl_safe_rawkey, "length of the key / 16"},
    {"rawlen", NULL, constant},
    {"rawset", pccl_safe_rawkey, "length of the key / 16"},
    {"select", pccl_safe_select, "number of values / 8"},
    {"setmetatable", pccl_safe_setmetatable, constant},
    {"tonumber", pccl_safe_numbers, numbers},
    {"tostring", pccl_safe_tostring, memory},
    {"type", NULL, constant},
    {"xpcall", pccl_safe_xpcall, "10000 for an error that it catches"},

    {"math.abs", pccl_safe_numbers, numbers},
    {"math.acos", pccl_safe_numbers, numbers},
    {"math.asin", pccl_safe_numbers, numbers},
    {"math.atan", pccl_safe_numbers, numbers},
    {"math.ceil", pccl_safe_numbers, numbers},
    {"math.cos", pccl_safe_numbers, numbers},
    {"math.deg", pccl_safe_numbers, numbers},
    {"math.exp", pccl_safe_numbers, numbers},
    {"math.floor", pccl_safe_numbers, numbers},
    {"math.fmod", pccl_safe_numbers, numbers},
    {"math.log", pccl_safe_numbers, numbers},
    {"math.max", pccl_safe_numbers, numbers},
    {"math.min", pccl_safe_numbers, numbers},
    {"math.modf", pccl_safe_numbers, numbers},
    {"math.rad", pccl_safe_numbers, numbers},
    {"math.random", pccl_safe_numbers, numbers},
    {"math.randomseed", pccl_safe_randomseed, numbers},
    {"math.sin", pccl_safe_numbers, numbers},
    {"math.sqrt", pccl_safe_numbers, numbers},
    {"math.tan", pccl_safe_numbers, numbers},
    {"math.tointeger", pccl_safe_numbers, numbers},
    {"math.type", NULL, constant},
    {"math.ult", pccl_safe_numbers, numbers},

    {"string.byte", pccl_safe_byte, "number of bytes"},
    {"string.char", pccl_safe_char, "number of bytes"},
    {"string.find", pccl_safe_find, "plain: both lengths / 16; else the longest search, see safe_string.c"},
    {"string.format", pccl_safe_format, "8 x length of the format, length of texts / 8"},
    {"string.gmatch", pccl_safe_gmatch, "the longest search, see safe_string.c"},
    {"string.gsub", pccl_safe_gsub, "the longest search, and length x length of the replacement / 64"},
    {"string.len", NULL, constant},
    {"string.lower", pccl_safe_whole, "length / 8"},
    {"string.match", pccl_safe_match, "the longest search, see safe_string.c"},
    {"string.pack", pccl_safe_pack, "length of the format, sizes in it, length of texts / 16"},
    {"string.packsize", pccl_safe_packsize, "length of the format"},
    {"string.rep", pccl_safe_rep, "repetitions / 4, length of the result / 16"},
    {"string.reverse", pccl_safe_whole, "length / 8"},
    {"string.sub", NULL, memory},
    {"string.unpack", pccl_safe_unpack_string, "length of the format; with z in it, the rest of the text / 16"},
    {"string.upper", pccl_safe_whole, "length / 8"},
    {"string metatable.__add", pccl_safe_numbers, numbers},
    {"string metatable.__div", pccl_safe_numbers, numbers},
    {"string metatable.__idiv", pccl_safe_numbers, numbers},
    {"string metatable.__mod", pccl_safe_numbers, numbers},
    {"string metatable.__mul", pccl_safe_numbers, numbers},
    {"string metatable.__pow", pccl_safe_numbers, numbers},
    {"string metatable.__sub", pccl_safe_numbers, numbers},
    {"string metatable.__unm", pccl_safe_numbers, numbers},

    {"table.concat", pccl_safe_concat, "4 for each value, their lengths / 16"},
    {"table.insert", pccl_safe_insert, "2 for each value that moves"},
    {"table.move", pccl_safe_move, "2 for each value that moves"},
    {"table.pack", NULL, memory},
    {"table.remove", pccl_safe_remove, "2 for each value that moves"},
    {"table.sort", pccl_safe_sort, "4 x n x log2(n), lengths of the texts compared / 16"},
    {"table.unpack", pccl_safe_unpack, "2 for each value"},

    {"utf8.char", NULL, memory},
    {"utf8.codepoint", pccl_safe_codepoint, "number of bytes"},
    {"utf8.codes", pccl_safe_codes, "each step: number of bytes"},
    {"utf8.len", pccl_safe_utf8_len, "number of bytes"},
    {"utf8.offset", pccl_safe_offset, "length / 16"},

    /* The functions that the front end adds. */
    {"allgather", NULL, itself},
    {"allreduce", NULL, itself},
    {"alltoall", NULL, itself},
    {"broadcast", NULL, itself},
    {"custom", NULL, itself},
    {"gather", NULL, itself},
    {"reduce", NULL, itself},
    {"reduce_scatter", NULL, itself},
    {"scatter", NULL, itself},
    {"sendrecv", NULL, itself},
    {"chunk", NULL, itself},
    {"group", NULL, itself},
    {"parallelize", NULL, itself},
    {"param", NULL, itself},
    {"require", NULL, itself},
    {"scratch", NULL, itself},
    {"transfer", NULL, itself},
    {"_G metatable.__index", NULL, constant},
    {"chunk reference:copy", NULL, itself},
    {"chunk reference:destinations", NULL, itself},
    {"chunk reference:origins", NULL, itself},
    {"chunk reference:reduce", NULL, itself},
    {"chunk reference:split", NULL, itself},
};

const pccl_price *pccl_prices(size_t *count) {
  *count = sizeof prices / sizeof prices[0];
  return prices;
}

uint64_t pccl_price_times(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

uint64_t pccl_price_sum(uint64_t a, uint64_t b) { return b > UINT64_MAX - a ? UINT64_MAX : a + b; }

uint64_t pccl_price_lengths(lua_State *lua, int first) {
  uint64_t sum = 0;
  for (int i = lua_gettop(lua); i >= first; i--) {
    sum += lua_type(lua, i) == LUA_TSTRING ? lua_rawlen(lua, i) : 0;
  }
  return sum;
}

int pccl_price_original(lua_State *lua) { return lua_tocfunction(lua, lua_upvalueindex(2))(lua); }

int pccl_safe_numbers(lua_State *lua) {
  pccl_sandbox_charge(lua, (uint64_t)lua_gettop(lua) / 8 + pccl_price_lengths(lua, 1) / 8);
  return pccl_price_original(lua);
}

static const pccl_price *find_price(const char *library, const char *name) {
  size_t length = strlen(library);
  for (size_t i = 0; i < sizeof prices / sizeof prices[0]; i++) {
    if (strncmp(prices[i].name, library, length) == 0 && strcmp(prices[i].name + length, name) == 0) {
      return &prices[i];
    }
  }
  return NULL;
}

/* Replaces the function at the top of the stack by the one of the list, or by nil. Upvalue 1 of the new function is
 * that of Lua's own, which math needs for its random numbers; upvalue 2 is Lua's own function. All are closures,
 * because those have a number. */
static void replace_function(lua_State *lua, const pccl_price *price) {
  if (price == NULL) {
    lua_pop(lua, 1);
    lua_pushnil(lua);
    return;
  }
  lua_CFunction original = lua_tocfunction(lua, -1);
  if (lua_getupvalue(lua, -1, 1) == NULL) {
    lua_pushboolean(lua, 1);
  }
  lua_pushcfunction(lua, original);
  lua_pushcclosure(lua, price->function != NULL ? price->function : original, 2);
  lua_remove(lua, -2);
}

/* All functions in the table at the top of the stack. */
static void replace_library(lua_State *lua, const char *library) {
  /* The order is fixed, because each function gets a number. */
  for (size_t i = 0; i < sizeof prices / sizeof prices[0]; i++) {
    size_t length = strlen(library);
    const char *name = prices[i].name + length;
    if (strncmp(prices[i].name, library, length) == 0 && strpbrk(name, ".:") == NULL) {
      lua_pushstring(lua, name);
      if (lua_rawget(lua, -2) == LUA_TFUNCTION) {
        replace_function(lua, &prices[i]);
        lua_setfield(lua, -2, name);
      } else {
        lua_pop(lua, 1);
      }
    }
  }
  for (lua_pushnil(lua); lua_next(lua, -2);) {
    const char *name = lua_type(lua, -2) == LUA_TSTRING ? lua_tostring(lua, -2) : "";
    bool stays = lua_type(lua, -1) != LUA_TFUNCTION || find_price(library, name) != NULL;
    lua_pop(lua, 1);
    if (!stays) {
      lua_pushvalue(lua, -1);
      lua_pushnil(lua);
      lua_rawset(lua, -4);
    }
  }
}

void pccl_prices_install(lua_State *lua) {
  static const char *const libraries[] = {"math", "string", "table", "utf8"};
  for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
    char prefix[16];
    lua_getglobal(lua, libraries[i]);
    strcat(strcpy(prefix, libraries[i]), ".");
    replace_library(lua, prefix);
    lua_pop(lua, 1);
  }
  lua_pushliteral(lua, "");
  lua_getmetatable(lua, -1);
  replace_library(lua, "string metatable.");
  lua_pop(lua, 2);
  lua_pushglobaltable(lua);
  replace_library(lua, "");
  lua_pop(lua, 1);
  pccl_safe_globals(lua);
}
