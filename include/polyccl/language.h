/* The language: programs in Lua 5.4 on the builder of program.h. docs/language.md teaches it.
 *
 * A program file runs in a sandbox: no files, no processes, no clock; `require` finds helpers in the program's folder
 * and below only. POLYCCL_LUA_MEMORY and POLYCCL_LUA_INSTRUCTIONS bound what it may use; a program that reaches a
 * bound ends with POLYCCL_ERROR_LIMIT and the line it was at.
 *
 *     polyccl_param params[] = {{"ranks", "4"}};
 *     polyccl_program *program;
 *     if (polyccl_program_load("algorithms/allreduce_ring.lua", params, 1, &program) != POLYCCL_SUCCESS) ... */
#ifndef POLYCCL_LANGUAGE_H
#define POLYCCL_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A value for the program's param(name). Text; the type of the program's default says how it is read. */
typedef struct polyccl_param {
  const char *name, *value;
} polyccl_param;

/* Runs the program at `path`. What begins with '{' or '<' is no Lua but a schedule of a synthesiser (TE-CCL's and
 * SCCL's JSON, ForestColl's trees: docs/formats.md), which becomes a program too. A file of another kind is refused
 * with what it is. Errors begin with "file:line: ". A parameter that the program does not ask for is an error that
 * lists those it does ask for. The program is not checked yet (polyccl_program_check). */
POLYCCL_API polyccl_result polyccl_program_load(const char *path, const polyccl_param *params, size_t count,
                                                polyccl_program **program);

/* What a program asked for, in the order in which it asked. */
typedef struct polyccl_param_info {
  const char *name;
  const char *value;         /* what it got */
  const char *default_value; /* its default; NULL: the program has none, the value must be given */
  const char *help;          /* "" where the program says nothing */
} polyccl_param_info;

/* Runs the program as polyccl_program_load() does and lists its parameters. One block: the caller free()s *infos.
 * A program that fails after it has asked for parameters is an error all the same. */
POLYCCL_API polyccl_result polyccl_program_params(const char *path, const polyccl_param *params, size_t count,
                                                  polyccl_param_info **infos, size_t *info_count);

#ifdef __cplusplus
}
#endif

#endif
