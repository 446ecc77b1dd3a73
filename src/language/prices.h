/* Every function that a program can reach, and what a call of it costs beside the instructions that the hook counts.
 *
 * pccl_prices_install() takes what is not listed out of the libraries, so a function that a newer Lua brings is absent
 * until it has a price here. Prices are at least the work that the call does, whatever its arguments are; lengths that
 * __len gives are read once and paid before the loop. */
#ifndef PCCL_LANGUAGE_PRICES_H
#define PCCL_LANGUAGE_PRICES_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pccl_price {
  const char *name;       /* "string.rep"; "chunk reference:copy"; "string metatable.__add" */
  lua_CFunction function; /* that stands there instead of Lua's; NULL: Lua's own, or the front end's */
  const char *paid;       /* instructions, in words */
} pccl_price;

const pccl_price *pccl_prices(size_t *count);

/* Once on a state with the libraries open: puts the functions of the list in place. */
void pccl_prices_install(lua_State *lua);

/* In a function of the list: calls Lua's own of that name on the same arguments. */
int pccl_price_original(lua_State *lua);

/* a * b and a + b, UINT64_MAX where they overflow. */
uint64_t pccl_price_times(uint64_t a, uint64_t b);
uint64_t pccl_price_sum(uint64_t a, uint64_t b);
/* The sum of the lengths of the strings among the arguments from `first` on. */
uint64_t pccl_price_lengths(lua_State *lua, int first);

/* As luaL_tolstring(), with numbers that do not change from run to run instead of addresses. */
const char *pccl_safe_tolstring(lua_State *lua, int at, size_t *length);

/* safe_base.c */
int pccl_safe_pcall(lua_State *lua);
int pccl_safe_xpcall(lua_State *lua);
int pccl_safe_print(lua_State *lua);
int pccl_safe_rawequal(lua_State *lua);
int pccl_safe_rawkey(lua_State *lua);
int pccl_safe_select(lua_State *lua);
int pccl_safe_setmetatable(lua_State *lua);
int pccl_safe_tostring(lua_State *lua);
int pccl_safe_randomseed(lua_State *lua);
void pccl_safe_globals(lua_State *lua);
/* safe_order.c */
int pccl_safe_ipairs(lua_State *lua);
int pccl_safe_next(lua_State *lua);
int pccl_safe_pairs(lua_State *lua);
/* safe_string.c */
int pccl_safe_byte(lua_State *lua);
int pccl_safe_char(lua_State *lua);
int pccl_safe_find(lua_State *lua);
int pccl_safe_format(lua_State *lua);
int pccl_safe_gmatch(lua_State *lua);
int pccl_safe_gsub(lua_State *lua);
int pccl_safe_match(lua_State *lua);
int pccl_safe_pack(lua_State *lua);
int pccl_safe_packsize(lua_State *lua);
int pccl_safe_rep(lua_State *lua);
int pccl_safe_unpack_string(lua_State *lua);
int pccl_safe_whole(lua_State *lua);
/* safe_table.c */
int pccl_safe_concat(lua_State *lua);
int pccl_safe_insert(lua_State *lua);
int pccl_safe_move(lua_State *lua);
int pccl_safe_remove(lua_State *lua);
int pccl_safe_sort(lua_State *lua);
int pccl_safe_unpack(lua_State *lua);
/* safe_utf8.c */
int pccl_safe_codepoint(lua_State *lua);
int pccl_safe_codes(lua_State *lua);
int pccl_safe_utf8_len(lua_State *lua);
int pccl_safe_offset(lua_State *lua);
/* prices.c */
int pccl_safe_numbers(lua_State *lua);

#endif
