/* Every function that a program can reach, and the price of a call, which comes on top of the instructions that the
 * hook counts.
 *
 * pccl_prices_install() removes every function that is not listed from the libraries, so a function of a newer Lua is
 * absent until it has a price here. A price is no lower than the work that the call does, whatever its arguments are.
 * A length that __len returns is read once and paid for before the loop. */
#ifndef PCCL_LANGUAGE_PRICES_H
#define PCCL_LANGUAGE_PRICES_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pccl_price {
  const char *name;       /* "string.rep"; "chunk reference:copy"; "string metatable.__add" */
  lua_CFunction function; /* replaces Lua's; NULL: Lua's own, or the front end's */
  const char *paid;       /* instructions, in words */
} pccl_price;

const pccl_price *pccl_prices(size_t *count);

/* Installs the functions of the list. Called once, on a state with the libraries open. */
void pccl_prices_install(lua_State *lua);

/* A function of the list calls this to run Lua's own function of that name on the same arguments. */
int pccl_price_original(lua_State *lua);

/* a * b and a + b; UINT64_MAX if they overflow. */
uint64_t pccl_price_times(uint64_t a, uint64_t b);
uint64_t pccl_price_sum(uint64_t a, uint64_t b);
/* The sum of the lengths of the strings among the arguments from `first` on. */
uint64_t pccl_price_lengths(lua_State *lua, int first);

/* luaL_tolstring() with numbers instead of addresses, so that the text is the same in every run. */
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
