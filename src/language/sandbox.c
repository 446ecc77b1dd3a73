#include "language/sandbox.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/options.h"

enum {
  HOOK_INTERVAL = 4096,       /* instructions between two looks at the budget */
  BYTES_PER_INSTRUCTION = 64, /* an allocation's price */
  MAX_STRING = 16 << 20,      /* keeps every single operation on strings short */
  NS_PER_INSTRUCTION = 100,   /* ten times what an instruction takes */
  LEAST_SECONDS = 10          /* of CPU time, however small the budget is */
};

pccl_sandbox *pccl_sandbox_of(lua_State *lua) { return *(pccl_sandbox **)lua_getextraspace(lua); }

static int64_t cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

polyccl_location pccl_sandbox_where(lua_State *lua) {
  lua_Debug frame;
  for (int level = 0; lua_getstack(lua, level, &frame); level++) {
    lua_getinfo(lua, "Sl", &frame);
    if (frame.currentline > 0 && frame.source[0] == '@') {
      return (polyccl_location){frame.source + 1, frame.currentline};
    }
  }
  return (polyccl_location){NULL, 0};
}

/* Neither allocates nor raises: the allocator calls it. */
static void note_place(pccl_sandbox *box) {
  if (box->lua == NULL || box->stop != PCCL_STOP_NONE) { /* the first place counts */
    return;
  }
  polyccl_location at = pccl_sandbox_where(box->lua);
  snprintf(box->file, sizeof box->file, "%s", at.file != NULL ? at.file : "");
  box->line = at.line;
}

static void *refuse(pccl_sandbox *box, pccl_stop why) {
  box->refused = why;
  note_place(box);
  return NULL;
}

static void *allocate(void *context, void *block, size_t old_size, size_t new_size) {
  pccl_sandbox *box = context;
  size_t held = block != NULL ? old_size : 0;
  if (new_size == 0) {
    free(block);
    box->bytes -= held;
    return NULL;
  }
  if (new_size > held) {
    /* For a new block, old_size is the kind of object that Lua makes. */
    if (block == NULL && old_size == LUA_TSTRING && new_size > MAX_STRING) {
      return refuse(box, PCCL_STOP_STRING);
    }
    if (box->bytes > box->max_bytes || new_size - held > box->max_bytes - box->bytes) {
      return refuse(box, PCCL_STOP_BYTES);
    }
    box->spent += new_size / BYTES_PER_INSTRUCTION;
    if (box->spent > box->budget) {
      return refuse(box, PCCL_STOP_INSTRUCTIONS);
    }
  }
  void *grown = realloc(block, new_size);
  if (grown == NULL) {
    return new_size <= held ? block : refuse(box, PCCL_STOP_SYSTEM);
  }
  box->bytes += new_size - held;
  return grown;
}

static _Noreturn void stop(lua_State *lua, pccl_stop why) {
  pccl_sandbox *box = pccl_sandbox_of(lua);
  note_place(box);
  box->stop = why;
  lua_pushliteral(lua, "stopped");
  lua_error(lua);
  __builtin_unreachable(); /* lua_error does not return, but is not declared so */
}

void pccl_sandbox_string(lua_State *lua, size_t length) {
  if (length > MAX_STRING) {
    stop(lua, PCCL_STOP_STRING);
  }
}

void pccl_sandbox_charge(lua_State *lua, uint64_t instructions) {
  pccl_sandbox *box = pccl_sandbox_of(lua);
  box->spent = instructions > UINT64_MAX - box->spent ? UINT64_MAX : box->spent + instructions;
  if (box->spent > box->budget) {
    stop(lua, PCCL_STOP_INSTRUCTIONS);
  }
}

void pccl_sandbox_account(lua_State *lua, size_t bytes) {
  pccl_sandbox *box = pccl_sandbox_of(lua);
  box->bytes += bytes;
  if (box->bytes > box->max_bytes) {
    stop(lua, PCCL_STOP_BYTES);
  }
}

void pccl_sandbox_end(lua_State *lua, polyccl_result result) {
  pccl_sandbox_of(lua)->result = result;
  stop(lua, PCCL_STOP_FAILED);
}

static void count(lua_State *lua, lua_Debug *event) {
  (void)event;
  pccl_sandbox *box = pccl_sandbox_of(lua);
  pccl_sandbox_charge(lua, HOOK_INTERVAL);
  int64_t most = (int64_t)LEAST_SECONDS * 1000000000;
  if (box->budget > (uint64_t)most / NS_PER_INSTRUCTION) {
    most = box->budget > INT64_MAX / NS_PER_INSTRUCTION ? INT64_MAX : (int64_t)box->budget * NS_PER_INSTRUCTION;
  }
  if (cpu_ns() - box->start_ns > most) {
    stop(lua, PCCL_STOP_TIME);
  }
}

static int open_libraries(lua_State *lua) {
  luaL_requiref(lua, LUA_GNAME, luaopen_base, 1);
  luaL_requiref(lua, LUA_TABLIBNAME, luaopen_table, 1);
  luaL_requiref(lua, LUA_STRLIBNAME, luaopen_string, 1);
  luaL_requiref(lua, LUA_MATHLIBNAME, luaopen_math, 1);
  luaL_requiref(lua, LUA_UTF8LIBNAME, luaopen_utf8, 1);
  lua_settop(lua, 0);
  pccl_safe_base(lua);
  pccl_safe_string(lua);
  pccl_safe_table(lua);
  return 0;
}

polyccl_result pccl_sandbox_open(pccl_sandbox *box) {
  *box = (pccl_sandbox){0};
  size_t budget = 0;
  PCCL_TRY(pccl_option_size("POLYCCL_LUA_MEMORY", &box->max_bytes));
  PCCL_TRY(pccl_option_size("POLYCCL_LUA_INSTRUCTIONS", &budget));
  box->budget = budget;
  box->start_ns = cpu_ns();
  box->lua = lua_newstate(allocate, box);
  if (box->lua == NULL) {
    return box->refused == PCCL_STOP_SYSTEM
               ? pccl_no_memory("a Lua state")
               : pccl_fail(POLYCCL_ERROR_LIMIT, "POLYCCL_LUA_MEMORY and POLYCCL_LUA_INSTRUCTIONS are too small");
  }
  *(pccl_sandbox **)lua_getextraspace(box->lua) = box;
  lua_pushcfunction(box->lua, open_libraries);
  polyccl_result result = pccl_sandbox_call(box, 0);
  if (result != POLYCCL_SUCCESS) {
    pccl_sandbox_close(box);
    return result;
  }
  lua_sethook(box->lua, count, LUA_MASKCOUNT, HOOK_INTERVAL);
  return POLYCCL_SUCCESS;
}

void pccl_sandbox_close(pccl_sandbox *box) {
  if (box->lua != NULL) {
    lua_close(box->lua);
    box->lua = NULL;
  }
}

static polyccl_result stopped(pccl_sandbox *box, pccl_stop why) {
  polyccl_location at = {box->file[0] != '\0' ? box->file : NULL, box->line};
  switch (why) {
    case PCCL_STOP_BYTES:
      return pccl_fail_at(POLYCCL_ERROR_LIMIT, at, "the program needs more than %zu bytes (POLYCCL_LUA_MEMORY)",
                          box->max_bytes);
    case PCCL_STOP_STRING:
      return pccl_fail_at(POLYCCL_ERROR_LIMIT, at, "the program makes a string of more than %d bytes", MAX_STRING);
    case PCCL_STOP_INSTRUCTIONS:
      return pccl_fail_at(POLYCCL_ERROR_LIMIT, at,
                          "the program ran more than %llu instructions (POLYCCL_LUA_INSTRUCTIONS); does it end?",
                          (unsigned long long)box->budget);
    case PCCL_STOP_TIME:
      return pccl_fail_at(POLYCCL_ERROR_LIMIT, at,
                          "the program runs too long for its %llu instructions (POLYCCL_LUA_INSTRUCTIONS)",
                          (unsigned long long)box->budget);
    case PCCL_STOP_SYSTEM: return pccl_no_memory("the program");
    case PCCL_STOP_FAILED: return box->result;
    case PCCL_STOP_NONE: break;
  }
  return pccl_fail(POLYCCL_ERROR_INTERNAL, "a program was stopped for no reason");
}

/* The length of "file" where the message begins with "file:line: ", else 0. */
static size_t place_length(const char *message) {
  size_t file = strcspn(message, ":");
  size_t digits = message[file] == ':' ? strspn(message + file + 1, "0123456789") : 0;
  return digits > 0 && message[file + 1 + digits] == ':' ? file : 0;
}

/* Lua shortens long paths at the front; the author's own spelling is put back. */
static void lengthen_path(lua_State *lua, const lua_Debug *frame) {
  const char *message = lua_tostring(lua, 1);
  size_t length = strlen(frame->short_src);
  if (strncmp(message, frame->short_src, length) == 0 && message[length] == ':' &&
      strcmp(frame->short_src, frame->source + 1) != 0) {
    lua_pushfstring(lua, "%s%s", frame->source + 1, message + length);
    lua_replace(lua, 1);
  }
}

/* Completes an error where it is raised: puts the author's line in front if it has none, and behind it the line of the
 * program if a helper raised it. */
static int explain(lua_State *lua) {
  if (pccl_sandbox_of(lua)->stop != PCCL_STOP_NONE) {
    return 1;
  }
  if (lua_type(lua, 1) != LUA_TSTRING) {
    lua_pushfstring(lua, "error with a value that is no text (%s)", luaL_typename(lua, 1));
    lua_replace(lua, 1);
  }
  enum { MOST_LEVELS = 100 }; /* lua_getstack() counts its way from the top */
  polyccl_location inner = {NULL, 0}, outer = {NULL, 0};
  lua_Debug frame;
  for (int level = 0; level < MOST_LEVELS && lua_getstack(lua, level, &frame); level++) {
    lua_getinfo(lua, "Sl", &frame);
    if (frame.currentline > 0 && frame.source[0] == '@') {
      outer = (polyccl_location){frame.source + 1, frame.currentline};
      inner = inner.file == NULL ? outer : inner;
      lengthen_path(lua, &frame);
    }
  }
  if (inner.file == NULL) {
    return 1;
  }
  if (place_length(lua_tostring(lua, 1)) == 0) {
    lua_pushfstring(lua, "%s:%d: %s", inner.file, inner.line, lua_tostring(lua, 1));
    lua_replace(lua, 1);
  }
  size_t length = strlen(outer.file);
  const char *message = lua_tostring(lua, 1);
  if (strncmp(message, outer.file, length) != 0 || message[length] != ':') {
    lua_pushfstring(lua, "%s (called from %s:%d)", message, outer.file, outer.line);
    lua_replace(lua, 1);
  }
  lua_settop(lua, 1);
  return 1;
}

static polyccl_result failed(pccl_sandbox *box) {
  if (box->stop != PCCL_STOP_NONE) {
    return stopped(box, box->stop);
  }
  /* A message that came from the library is already the last error. */
  const char *message = lua_tostring(box->lua, -1), *last = polyccl_last_error();
  size_t length = strlen(last);
  if (message != NULL && length > 0 && strncmp(message, last, length) == 0) {
    return pccl_suffix(POLYCCL_ERROR_INVALID, "%s", message + length);
  }
  return pccl_fail(POLYCCL_ERROR_INVALID, "%s", message != NULL ? message : "error without a message");
}

polyccl_result pccl_sandbox_call(pccl_sandbox *box, int arguments) {
  lua_State *lua = box->lua;
  int handler = lua_gettop(lua) - arguments;
  lua_pushcfunction(lua, explain);
  lua_insert(lua, handler);
  int status = lua_pcall(lua, arguments, 0, handler);
  if (status == LUA_OK) {
    lua_remove(lua, handler);
    return POLYCCL_SUCCESS;
  }
  if (status == LUA_ERRMEM && box->stop == PCCL_STOP_NONE) {
    box->stop = box->refused;
  }
  polyccl_result result = failed(box);
  lua_settop(lua, handler - 1);
  return result;
}
