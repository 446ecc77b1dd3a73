/* A Lua state that cannot reach outside and cannot run away.
 *
 * What a program sees: base, table, string, math and utf8, less what loads code, reads files or escapes the bounds.
 * Memory is bounded in the allocator, instructions by a count hook; functions of C that can run long in one call
 * (patterns, table.move, ...) pay instructions before they start. Reaching a bound ends the program: pcall does not
 * catch it. There are no coroutines (each would bring a counter of its own) and no finalisers (the counter stands
 * still in them).
 *
 * Runs are reproducible: pairs() goes in the order of the keys, math.random starts from a fixed seed. */
#ifndef PCCL_LANGUAGE_SANDBOX_H
#define PCCL_LANGUAGE_SANDBOX_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include <polyccl/types.h>

typedef enum pccl_stop {
  PCCL_STOP_NONE = 0,
  PCCL_STOP_BYTES,        /* POLYCCL_LUA_MEMORY */
  PCCL_STOP_STRING,       /* one string too long */
  PCCL_STOP_INSTRUCTIONS, /* POLYCCL_LUA_INSTRUCTIONS */
  PCCL_STOP_TIME,         /* as many instructions would never take so long */
  PCCL_STOP_SYSTEM,       /* malloc failed */
  PCCL_STOP_FAILED        /* a function of the library failed for a reason that is not the program's */
} pccl_stop;

enum { PCCL_SANDBOX_PATH = 512 };

typedef struct pccl_sandbox {
  lua_State *lua;
  size_t bytes, max_bytes;
  uint64_t spent, budget;       /* instructions */
  int64_t start_ns;             /* of this thread's CPU time */
  pccl_stop refused;            /* why the allocator last said no */
  pccl_stop stop;               /* why the program must end; NONE while it may run */
  polyccl_result result;        /* for PCCL_STOP_FAILED */
  char file[PCCL_SANDBOX_PATH]; /* where it was when it was refused or stopped; "" unknown */
  int line;
  int scopes;                             /* open parallelize scopes */
  void (*close_scopes)(lua_State *, int); /* back to this many, after a pcall that caught an error */
} pccl_sandbox;

/* Reads the bounds from the options and makes the state. On failure there is nothing to close. */
polyccl_result pccl_sandbox_open(pccl_sandbox *box);
void pccl_sandbox_close(pccl_sandbox *box);
pccl_sandbox *pccl_sandbox_of(lua_State *lua);

/* Calls the function below `arguments` values, with no results. On failure the error is set, with "file:line: ". */
polyccl_result pccl_sandbox_call(pccl_sandbox *box, int arguments);

/* Pays for work done in C; raises when the budget is spent. */
void pccl_sandbox_charge(lua_State *lua, uint64_t instructions);
/* Raises when a string of this length may not be made. */
void pccl_sandbox_string(lua_State *lua, size_t length);
/* Counts bytes that the program holds outside Lua; raises when there are too many. */
void pccl_sandbox_account(lua_State *lua, size_t bytes);
/* Raises an error that pcall does not catch; the message is polyccl_last_error(). */
_Noreturn void pccl_sandbox_end(lua_State *lua, polyccl_result result);

/* The innermost line of the author: skips functions of C and built-in modules (their source begins with '=').
 * Valid as long as the function that stands there. {NULL, 0} where there is none. */
polyccl_location pccl_sandbox_where(lua_State *lua);

/* The replacements, each called once on a fresh state (safe_*.c). */
void pccl_safe_base(lua_State *lua);
void pccl_safe_string(lua_State *lua);
void pccl_safe_table(lua_State *lua);

#endif
