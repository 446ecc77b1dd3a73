/* References and buffers as values of Lua, for the files that give programs functions on them. A reference is a
 * polyccl_ref in a userdata, a buffer a userdata with the builder's number. */
#ifndef PCCL_LANGUAGE_REFERENCES_H
#define PCCL_LANGUAGE_REFERENCES_H

#include "language/arguments.h"
#include "language/loader.h"

/* The reference at stack place `at`; raises for anything else. `function` is named in the error. */
const polyccl_ref *pccl_lua_to_ref(lua_State *lua, int at, const char *function);

bool pccl_lua_is_buffer(lua_State *lua, int at);
/* The builder's number of the buffer at stack place `at`; raises for anything else. */
int pccl_lua_to_buffer(lua_State *lua, int at, const char *function);
void pccl_lua_push_buffer(lua_State *lua, int id);
/* Valid as long as the state. */
const char *pccl_lua_buffer_name(lua_State *lua, int id);

/* pairs.c: ref:origins(i) and ref:destinations(i). */
int pccl_lua_origins(lua_State *lua);
int pccl_lua_destinations(lua_State *lua);

#endif
