/* Modules written in Lua that are part of the library; their text comes from the .lua files beside this header. Errors
 * inside them name the line of the program that called. */
#ifndef PCCL_LANGUAGE_BUILTIN_H
#define PCCL_LANGUAGE_BUILTIN_H

#include <stddef.h>

/* The module's text and length; NULL where there is none of that name. */
const char *pccl_builtin_module(const char *name, size_t *length);

#endif
