/* Reading the text of a program or of a module.
 *
 * Lua's parser is quadratic in some constructs: it walks the jumps of an expression for each of its and/or, those of a
 * statement for each of its elseif, all labels for each goto, the variables of all enclosing functions for each name.
 * The text is therefore priced before it is parsed, word by word, as if each construct met the worst that came before
 * it; and while it is parsed, the clock is looked at line by line. */
#ifndef PCCL_LANGUAGE_SOURCE_H
#define PCCL_LANGUAGE_SOURCE_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

enum { PCCL_MAX_SOURCE = 16 << 20 }; /* bytes */

/* Compiles text as a function and pushes it; bytecode is refused. `name`: the path for messages; with '=' in front, of
 * a module that is built in, which costs nothing. False: the error message is pushed instead. Raises at a bound. */
bool pccl_load_text(lua_State *lua, const char *name, const char *text, size_t length);

#endif
