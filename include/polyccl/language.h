/* The language: programs in Lua 5.4 on the builder of program.h. docs/language.md teaches it. Its operations are those
 * of MSCCLang (ASPLOS'23, section 3); transfer() is a task of ResCCL (SIGCOMM'25).
 *
 * A program file runs in a sandbox without access to files, processes or clocks. `require` finds helpers in the
 * program's folder and below only. The options POLYCCL_LUA_MEMORY (bytes) and POLYCCL_LUA_INSTRUCTIONS limit the
 * resources; a program that reaches a limit ends with POLYCCL_ERROR_LIMIT and the line where it was. The processor time
 * is limited too, but only between two instructions: see "Bounds" in docs/language.md before you load programs that you
 * do not trust.
 *
 * Both functions may run on several threads at once: every call has a sandbox of its own.
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

/* A value for the program's param(name). Both are text and stay the caller's; the type of the program's default says
 * how the value is read. */
typedef struct polyccl_param {
  const char *name, *value;
} polyccl_param;

/* Runs the program file at `path` with params[0 .. count - 1] and stores what it built in *program. The file is Lua, or
 * a schedule of a synthesiser (TE-CCL's and SCCL's JSON, ForestColl's trees: docs/formats.md); its content says which.
 *
 * The caller owns *program and frees it with polyccl_program_destroy(). It is set on success only. It has not been
 * checked yet: polyccl_program_check() does that.
 *
 * Errors: POLYCCL_ERROR_INVALID for a fault in the program, which the message places with "file:line: ", for a file of
 * another kind or one that cannot be read, and for a parameter that is given twice or that the program does not ask
 * for; POLYCCL_ERROR_UNSUPPORTED and POLYCCL_ERROR_LIMIT for what the builder or the sandbox refuses;
 * POLYCCL_ERROR_MEMORY. */
POLYCCL_API polyccl_result polyccl_program_load(const char *path, const polyccl_param *params, size_t count,
                                                polyccl_program **program);

/* A parameter that a program asked for. */
typedef struct polyccl_param_info {
  const char *name;
  const char *value;         /* the value that it got */
  const char *default_value; /* NULL: the program has no default, so the user must give a value */
  const char *help;          /* one line for people; "": none */
} polyccl_param_info;

/* Runs the program as polyccl_program_load() does and lists its parameters in the order in which it asked for them:
 * (*infos)[0 .. *info_count - 1]. The list and its texts are one block, which the caller frees with free(*infos). Both
 * are set on success only. Errors are those of polyccl_program_load(), also where the program fails after it has asked
 * for parameters. */
POLYCCL_API polyccl_result polyccl_program_params(const char *path, const polyccl_param *params, size_t count,
                                                  polyccl_param_info **infos, size_t *info_count);

#ifdef __cplusplus
}
#endif

#endif
