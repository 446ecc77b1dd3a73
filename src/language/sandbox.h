/* A Lua state that has no access to the outside and whose use of resources is limited.
 *
 * A program sees the libraries base, table, string, math and utf8 without the functions that load code, read files or
 * escape the limits. The allocator limits memory and the stack, a count hook limits instructions. Every C function that
 * a program can reach pays a price for its work (prices.h), and so does the parser (source.h). A program that reaches a
 * limit ends: pcall cannot catch that, and __close cannot hide it. There are no coroutines, because each has an
 * instruction counter of its own; no finalisers, because the counter does not run in them; and no weak tables, because
 * they show when the collector runs.
 *
 * Runs are reproducible: tables are traversed in the order of their keys, objects are numbered as they are made,
 * math.random starts from a fixed seed, and the locale is "C". */
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
  PCCL_MAX_RESULTS = 30000, /* of one C function; a quarter of the stack, so that the caller can hold them too */
  PCCL_MAX_STRING = 1 << 20 /* so that no single operation on strings takes long */
};

/* The request that the allocator refused. Lua then collects garbage and repeats the request; any other request means
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
  int interval;           /* instructions between two checks of the budget */
  pccl_refusal refused;
  pccl_stop stop;               /* why the program must end; NONE while it may run */
  polyccl_result result;        /* for PCCL_STOP_FAILED */
  char file[PCCL_SANDBOX_PATH]; /* where the program was when it was refused memory or stopped; "": unknown */
  int line;
  int scopes;                             /* open parallelize scopes */
  void (*close_scopes)(lua_State *, int); /* closes scopes until this many are left */
  /* memory.c */
  uint64_t made, shown;       /* numbers of objects: made so far; shown to the author so far */
  const void *stack, *newest; /* the block of Lua's stack; the newest block that holds no object */
  size_t stack_size, newest_size;
  bool learns_stack;          /* true: the next block that grows is the stack */
  const void *last_userdata;  /* the block of the last one made */
  size_t userdata_offsets[2]; /* from the block to the memory of a userdata without / with a user value */
  locale_t locale;            /* "C" */
} pccl_sandbox;

/* Reads the bounds from the options and makes the state. On failure there is nothing to close. */
polyccl_result pccl_sandbox_open(pccl_sandbox *box);
void pccl_sandbox_close(pccl_sandbox *box);
pccl_sandbox *pccl_sandbox_of(lua_State *lua);

/* Calls the function below `arguments` values, with no results. On failure the error is set, with "file:line: ". */
polyccl_result pccl_sandbox_call(pccl_sandbox *box, int arguments);

/* Takes the price of work that is done in C from the budget; raises when the budget is spent. */
void pccl_sandbox_charge(lua_State *lua, uint64_t instructions);
/* The same for parsing, before the program runs. The error names the place `at`. */
void pccl_sandbox_charge_parsing(lua_State *lua, uint64_t instructions, polyccl_location at);
/* Raises when the program has used more processor time than its budget can need. */
void pccl_sandbox_check_time(lua_State *lua);
/* Raises if a string of this length is too long. */
void pccl_sandbox_string(lua_State *lua, size_t length);
/* Counts bytes that the program holds outside Lua; raises when there are too many. */
void pccl_sandbox_account(lua_State *lua, size_t bytes);
/* Raises an error that pcall does not catch; the message is polyccl_last_error(). */
_Noreturn void pccl_sandbox_end(lua_State *lua, polyccl_result result);
/* Raises again if the program must end. Code that has just caught an error calls this. */
void pccl_sandbox_pass_end(lua_State *lua);

/* The innermost line of the author. Skips C functions and built-in modules (their source begins with '='). Valid as
 * long as the function at that line. {NULL, 0}: there is none. */
polyccl_location pccl_sandbox_where(lua_State *lua);

/* ---- for the sandbox's own files ---- */

/* Ends the program at the next instruction, for the first reason that was given. Neither allocates nor raises. */
void pccl_sandbox_stop(pccl_sandbox *box, pccl_stop why);
/* Records where the program is, for the error. Neither allocates nor raises. */
void pccl_sandbox_record_place(pccl_sandbox *box);
/* Makes the hook run every `interval` instructions. */
void pccl_sandbox_set_interval(pccl_sandbox *box, int interval);
/* Sets `stop` if a refusal was final. */
void pccl_sandbox_settle(pccl_sandbox *box);

/* lua_Alloc: bounds memory, the stack and strings; numbers objects. `context`: the sandbox. */
void *pccl_sandbox_allocate(void *context, void *block, size_t old_size, size_t new_size);
/* Finds out which block is the stack and where userdata begin in their blocks, which Lua does not tell. Called once, in
 * a protected call. */
void pccl_sandbox_learn(lua_State *lua);
/* The number of the table, function or userdata at stack place `at`, in the order in which they were made, which is the
 * same in every run. 0: it has none (C functions without upvalues, light userdata). */
uint64_t pccl_sandbox_made(lua_State *lua, int at);
/* The same in the order in which the author saw them: the first object for which this is called gets 1. */
uint64_t pccl_sandbox_shown(lua_State *lua, int at);

#endif
