/* A Lua state that cannot reach outside and cannot run away.
 *
 * What a program sees: base, table, string, math and utf8, less what loads code, reads files or escapes the bounds.
 * Memory and the stack are bounded in the allocator, instructions by a count hook; every function of C that a program
 * can reach pays for its work by a price (prices.h), and so does the parser (source.h). Reaching a bound ends the
 * program: pcall does not catch it, __close does not hide it. There are no coroutines (each would bring a counter of
 * its own), no finalisers (the counter stands still in them) and no weak tables (they show the collector).
 *
 * Runs are reproducible: tables are walked in an order of their keys, objects are numbered as they are made,
 * math.random starts from a fixed seed, the locale is "C". */
#ifndef PCCL_LANGUAGE_SANDBOX_H
#define PCCL_LANGUAGE_SANDBOX_H

#include <locale.h>
#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

#include <polyccl/types.h>

typedef enum pccl_stop {
  PCCL_STOP_NONE = 0,
  PCCL_STOP_BYTES,        /* POLYCCL_LUA_MEMORY */
  PCCL_STOP_STRING,       /* one string too long */
  PCCL_STOP_STACK,        /* too many values in calls that have not returned */
  PCCL_STOP_INSTRUCTIONS, /* POLYCCL_LUA_INSTRUCTIONS */
  PCCL_STOP_PARSING,      /* the same, spent before the program ran */
  PCCL_STOP_TIME,         /* as many instructions would never take so long */
  PCCL_STOP_SYSTEM,       /* malloc failed */
  PCCL_STOP_FAILED        /* a function of the library failed for a reason that is not the program's */
} pccl_stop;

enum {
  PCCL_SANDBOX_PATH = 512,
  PCCL_MAX_STRING = 1 << 20 /* keeps every single operation on strings short */
};

/* What the allocator said no to. Lua collects garbage and asks for the same once more; asking for anything else means
 * that it gave up. */
typedef struct pccl_refusal {
  pccl_stop why; /* NONE: nothing is refused */
  const void *block;
  size_t old_size, new_size;
} pccl_refusal;

typedef struct pccl_sandbox {
  lua_State *lua;
  size_t bytes, max_bytes;
  uint64_t spent, budget; /* instructions */
  int64_t start_ns;       /* of this thread's CPU time */
  int interval;           /* instructions between two looks at the budget */
  pccl_refusal refused;
  pccl_stop stop;               /* why the program must end; NONE while it may run */
  polyccl_result result;        /* for PCCL_STOP_FAILED */
  char file[PCCL_SANDBOX_PATH]; /* where it was when it was refused or stopped; "" unknown */
  int line;
  int scopes;                             /* open parallelize scopes */
  void (*close_scopes)(lua_State *, int); /* back to this many, after a pcall that caught an error */
  /* memory.c */
  uint64_t made, shown;       /* objects so far; of these: that have a number for the author */
  const void *stack, *newest; /* the blocks that hold Lua's stack, and that were made last and hold no object */
  size_t stack_size, newest_size;
  bool learns_stack;          /* the next block that grows is the stack */
  const void *last_userdata;  /* the block of the last one made */
  size_t userdata_offsets[2]; /* from a block to the memory of a userdata without and with a user value */
  locale_t locale;            /* "C" */
} pccl_sandbox;

/* Reads the bounds from the options and makes the state. On failure there is nothing to close. */
polyccl_result pccl_sandbox_open(pccl_sandbox *box);
void pccl_sandbox_close(pccl_sandbox *box);
pccl_sandbox *pccl_sandbox_of(lua_State *lua);

/* Calls the function below `arguments` values, with no results. On failure the error is set, with "file:line: ". */
polyccl_result pccl_sandbox_call(pccl_sandbox *box, int arguments);

/* Pays for work done in C; raises when the budget is spent. */
void pccl_sandbox_charge(lua_State *lua, uint64_t instructions);
/* The same for work on the text of a program, before it runs: the error names this place. */
void pccl_sandbox_charge_parsing(lua_State *lua, uint64_t instructions, polyccl_location at);
/* Raises when the program has used more processor time than its budget can need. */
void pccl_sandbox_check_time(lua_State *lua);
/* Raises when a string of this length may not be made. */
void pccl_sandbox_string(lua_State *lua, size_t length);
/* Counts bytes that the program holds outside Lua; raises when there are too many. */
void pccl_sandbox_account(lua_State *lua, size_t bytes);
/* Raises an error that pcall does not catch; the message is polyccl_last_error(). */
_Noreturn void pccl_sandbox_end(lua_State *lua, polyccl_result result);
/* Raises, uncaught, when the program is over; for code that has just caught an error. */
void pccl_sandbox_pass_end(lua_State *lua);

/* The innermost line of the author: skips functions of C and built-in modules (their source begins with '=').
 * Valid as long as the function that stands there. {NULL, 0} where there is none. */
polyccl_location pccl_sandbox_where(lua_State *lua);

/* ---- for the sandbox's own files ---- */

/* Ends the program from the next instruction on; the first reason counts. Neither allocates nor raises. */
void pccl_sandbox_stop(pccl_sandbox *box, pccl_stop why);
/* Records where the program is, for the error. Neither allocates nor raises. */
void pccl_sandbox_record_place(pccl_sandbox *box);
/* How often the hook runs. */
void pccl_sandbox_set_interval(pccl_sandbox *box, int interval);
/* Sets stop if a refusal was final. */
void pccl_sandbox_settle(pccl_sandbox *box);

/* lua_Alloc: bounds memory, the stack and strings; numbers objects. `context`: the sandbox. */
void *pccl_sandbox_allocate(void *context, void *block, size_t old_size, size_t new_size);
/* Finds out what Lua does not tell: which block is the stack, where userdata begin. Once, in a protected call. */
void pccl_sandbox_learn(lua_State *lua);
/* The number of the table, function or userdata at stack place `at`: in the order in which they were made, the same in
 * every run. 0: it has none (functions of C without upvalues, light userdata). */
uint64_t pccl_sandbox_made(lua_State *lua, int at);
/* The same in the order in which the author saw them: 1 for the first for which this is called. */
uint64_t pccl_sandbox_shown(lua_State *lua, int at);

#endif
