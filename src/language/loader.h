/* The state of loading one program: its sandbox, its parameters, the program that it builds, and its files. */
#ifndef PCCL_LANGUAGE_LOADER_H
#define PCCL_LANGUAGE_LOADER_H

#include <polyccl/language.h>

#include "base/vec.h"
#include "language/sandbox.h"
#include "language/text.h"
#include "program/program.h"

typedef struct pccl_param_entry {
  char *name, *value, *default_value, *help;
} pccl_param_entry;

typedef struct pccl_loader {
  pccl_sandbox box; /* the first member, so that pccl_loader_of() can cast */
  const polyccl_param *given;
  size_t given_count;
  const pccl_accept *accept;        /* NULL: any program */
  PCCL_VEC(pccl_param_entry) asked; /* by param(), in that order */
  polyccl_program *program;         /* NULL until the collective is declared */
  char declared[PCCL_SANDBOX_PATH]; /* the place of the declaration, "file:line" */
  char name[128];                   /* the default for the program's name: the file's without its ending */
  char prefix[PCCL_SANDBOX_PATH];   /* the folder as in the program's path, for messages about helpers */
  char *module;                     /* the text of the module that is being compiled, or NULL */
  char *folder;                     /* real path of the program's folder; NULL: require finds built-in modules only */
  /* For a reference's methods and fields without a look-up by name (references.c). */
  const void *ref_metatable, *buffer_metatable;
  const char *field_names[4];
} pccl_loader;

static inline pccl_loader *pccl_loader_of(lua_State *lua) { return (pccl_loader *)pccl_sandbox_of(lua); }

/* polyccl_program_load() that refuses programs which `accept` does not take (NULL: takes all). */
polyccl_result pccl_program_load_for(const char *path, const polyccl_param *params, size_t count,
                                     const pccl_accept *accept, polyccl_program **program);

/* param_list.c. The value that the user gave for the parameter; NULL: none. */
const char *pccl_loader_given(const pccl_loader *loader, const char *name);
/* Adds a parameter to those that the program asked for, unless it did so before. `default_value` may be NULL. */
polyccl_result pccl_loader_record_param(pccl_loader *loader, const char *name, const char *value,
                                        const char *default_value, const char *help, bool *is_new);
/* Before the program runs: each given parameter has a name and a value, and is given once. */
polyccl_result pccl_loader_check_given(const pccl_loader *loader);
/* After it: it asked for each given parameter. `file`: the program's, for the message. */
polyccl_result pccl_loader_check_asked(const pccl_loader *loader, const char *file);
/* polyccl_program_params(): one block, which the caller frees. */
polyccl_result pccl_loader_list_params(const pccl_loader *loader, polyccl_param_info **infos, size_t *count);
void pccl_loader_free_params(pccl_loader *loader);

/* Adds what PolyCCL gives to programs to a fresh state: the globals of the five functions below. */
void pccl_open_globals(lua_State *lua);
/* One file each. */
void pccl_open_params(lua_State *lua);      /* param */
void pccl_open_collectives(lua_State *lua); /* allreduce ... custom */
void pccl_open_buffers(lua_State *lua);     /* input, output, scratch, parallelize */
void pccl_open_references(lua_State *lua);  /* chunk, group, transfer */
void pccl_open_require(lua_State *lua);     /* require */

/* The program; raises if the collective has not been declared yet. `function` is named in the error. */
polyccl_program *pccl_loader_program(lua_State *lua, const char *function);

/* Returns what to open for `topology = text`: the text itself if it names a machine or is the value of a parameter,
 * else the path of a file in the program's folder. Raises for any other file. The caller frees it. NULL: no memory. */
char *pccl_loader_topology(lua_State *lua, const char *text);

#endif
