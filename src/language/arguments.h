/* Strict readers for the arguments that a program passes: integers must be whole numbers, text is no number, and
 * unknown keys are errors. Every function raises an error with the author's line if a value is wrong. */
#ifndef PCCL_LANGUAGE_ARGUMENTS_H
#define PCCL_LANGUAGE_ARGUMENTS_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include "language/sandbox.h"

/* Raises "file:line: message". Does not return; the result type allows `return pccl_lua_fail(...)`. */
int pccl_lua_fail(lua_State *lua, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Raises polyccl_last_error() for a result other than success. `placed`: the message already begins with its place;
 * else the author's line is put in front. */
void pccl_lua_check(lua_State *lua, polyccl_result result, bool placed);

/* A value for messages: "3", "a table", "the text "x"", "nothing (nil)"; `text` may hold it. */
const char *pccl_lua_describe(lua_State *lua, int at, char *text, size_t bytes);

/* Neither a control character nor a zero byte. */
bool pccl_printable(char c);
bool pccl_printable_text(const char *text, size_t length);

/* The whole number at stack place `at`, which messages call `what`. 2.0 is a whole number, "2" is not a number. */
int pccl_lua_int(lua_State *lua, int at, const char *what);

/* Raises where the function got more than `last` arguments. */
void pccl_lua_refuse_more(lua_State *lua, int last, const char *function);

/* Pushes a new metatable, which the registry holds under `name`. Programs can neither see nor change it, nor assign to
 * the fields of its values. */
void pccl_lua_make_metatable(lua_State *lua, const char *name);
/* Whether the value at stack place `at` is a userdata with this metatable (lua_topointer()). */
bool pccl_lua_has_metatable(lua_State *lua, int at, const void *metatable);

/* A table of named values. Each is read at most once; pccl_fields_end() raises if one was not read. */
typedef struct pccl_fields {
  lua_State *lua;
  int table;        /* stack place, 0: no table, every field is absent */
  const char *what; /* "allreduce" */
  const char *known[24];
  int count;
} pccl_fields;

/* Raises if the value at `at` is not a table. `optional`: none and nil count as an empty table. */
pccl_fields pccl_fields_begin(lua_State *lua, int at, const char *what, bool optional);
int pccl_fields_int(pccl_fields *fields, const char *name, int default_value);
int pccl_fields_required_int(pccl_fields *fields, const char *name);
bool pccl_fields_bool(pccl_fields *fields, const char *name, bool default_value);
/* NULL when absent. Valid as long as the table. */
const char *pccl_fields_text(pccl_fields *fields, const char *name);
/* A number of bytes: a whole number, or text such as "64k". 0: absent. */
size_t pccl_fields_bytes(pccl_fields *fields, const char *name);
/* Pushes the function and returns true, or pushes nothing and returns false. */
bool pccl_fields_function(pccl_fields *fields, const char *name);
void pccl_fields_end(pccl_fields *fields);

#endif
