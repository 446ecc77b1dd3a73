/* The modules in Lua that are part of the library. Their text comes from the .lua files beside this header. Errors
 * inside them name the line of the program that called. */
#ifndef PCCL_LANGUAGE_BUILTIN_H
#define PCCL_LANGUAGE_BUILTIN_H

#include <stddef.h>

/* Returns the text of the module and its length; NULL: there is no module of that name. */
const char *pccl_builtin_module(const char *name, size_t *length);

#endif
