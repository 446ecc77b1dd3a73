#include "language/sandbox.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/options.h"
#include "language/prices.h"

enum {
  FIRST_INTERVAL = 1000,    /* instructions; the cost of the hook does not show then */
  NS_PER_INSTRUCTION = 100, /* about ten times what an instruction takes */
  MIN_SECONDS = 10          /* of CPU time, however small the budget is */
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

void pccl_sandbox_record_place(pccl_sandbox *box) {
  if (box->lua == NULL || box->stop != PCCL_STOP_NONE) { /* the first place counts */
    return;
  }
  polyccl_location at = pccl_sandbox_where(box->lua);
  snprintf(box->file, sizeof box->file, "%s", at.file != NULL ? at.file : "");
  box->line = at.line;
}

static void count_instructions(lua_State *lua, lua_Debug *event);

void pccl_sandbox_set_interval(pccl_sandbox *box, int interval) {
  if (box->lua != NULL && box->interval != interval) {
    box->spent += (uint64_t)box->interval; /* counts what ran since the last call of the hook */
    box->interval = interval;
    lua_sethook(box->lua, count_instructions, LUA_MASKCOUNT, interval);
  }
}

void pccl_sandbox_stop(pccl_sandbox *box, pccl_stop why) {
  if (box->stop == PCCL_STOP_NONE) {
    box->stop = why;
    pccl_sandbox_set_interval(box, 1); /* so that handlers which Lua still calls end at their first instruction */
  }
}

void pccl_sandbox_settle(pccl_sandbox *box) {
  if (box->refused.why != PCCL_STOP_NONE) {
    pccl_sandbox_stop(box, box->refused.why);
    box->refused = (pccl_refusal){0};
  }
}

static _Noreturn void raise_end(lua_State *lua) {
  lua_pushnil(lua);
  lua_error(lua);
  __builtin_unreachable(); /* lua_error does not return, but is not declared so */
}

void pccl_sandbox_pass_end(lua_State *lua) {
  pccl_sandbox *box = pccl_sandbox_of(lua);
  pccl_sandbox_settle(box);
  if (box->stop != PCCL_STOP_NONE) {
    raise_end(lua);
  }
}

static _Noreturn void end_program(lua_State *lua, pccl_stop why) {
  pccl_sandbox *box = pccl_sandbox_of(lua);
  pccl_sandbox_record_place(box);
  pccl_sandbox_stop(box, why);
  raise_end(lua);
}

void pccl_sandbox_string(lua_State *lua, size_t length) {
  if (length > PCCL_MAX_STRING) {
    end_program(lua, PCCL_STOP_STRING);
  }
}

/* False: the budget is spent. */
static bool spend_instructions(pccl_sandbox *box, uint64_t instructions) {
  box->spent = instructions > UINT64_MAX - box->spent ? UINT64_MAX : box->spent + instructions;
  return box->spent <= box->budget;
}

void pccl_sandbox_charge(lua_State *lua, uint64_t instructions) {
  pccl_sandbox_pass_end(lua);
  if (!spend_instructions(pccl_sandbox_of(lua), instructions)) {
    end_program(lua, PCCL_STOP_INSTRUCTIONS);
  }
}

void pccl_sandbox_charge_parsing(lua_State *lua, uint64_t instructions, polyccl_location at) {
  pccl_sandbox *box = pccl_sandbox_of(lua);
  pccl_sandbox_pass_end(lua);
  if (!spend_instructions(box, instructions)) {
    snprintf(box->file, sizeof box->file, "%s", at.file);
    box->line = at.line;
    pccl_sandbox_stop(box, PCCL_STOP_PARSING);
    raise_end(lua);
  }
}

void pccl_sandbox_account(lua_State *lua, size_t bytes) {
  pccl_sandbox *box = pccl_sandbox_of(lua);
  if (box->bytes > box->max_bytes || bytes > box->max_bytes - box->bytes) {
    end_program(lua, PCCL_STOP_BYTES);
  }
  box->bytes += bytes;
}

void pccl_sandbox_end(lua_State *lua, polyccl_result result) {
  pccl_sandbox_of(lua)->result = result;
  end_program(lua, PCCL_STOP_FAILED);
}

void pccl_sandbox_check_time(lua_State *lua) {
  pccl_sandbox *box = pccl_sandbox_of(lua);
  int64_t max = (int64_t)MIN_SECONDS * 1000000000;
  if (box->budget > (uint64_t)max / NS_PER_INSTRUCTION) {
    max = box->budget > INT64_MAX / NS_PER_INSTRUCTION ? INT64_MAX : (int64_t)box->budget * NS_PER_INSTRUCTION;
  }
  if (cpu_ns() - box->start_ns > max) {
    end_program(lua, PCCL_STOP_TIME);
  }
}

static void count_instructions(lua_State *lua, lua_Debug *event) {
  (void)event;
  pccl_sandbox_charge(lua, (uint64_t)pccl_sandbox_of(lua)->interval);
  pccl_sandbox_check_time(lua);
}

static int open_libraries(lua_State *lua) {
  luaL_requiref(lua, LUA_GNAME, luaopen_base, 1);
  luaL_requiref(lua, LUA_TABLIBNAME, luaopen_table, 1);
  luaL_requiref(lua, LUA_STRLIBNAME, luaopen_string, 1);
  luaL_requiref(lua, LUA_MATHLIBNAME, luaopen_math, 1);
  luaL_requiref(lua, LUA_UTF8LIBNAME, luaopen_utf8, 1);
  lua_settop(lua, 0);
  pccl_sandbox_learn(lua);
  pccl_prices_install(lua);
  return 0;
}

polyccl_result pccl_sandbox_open(pccl_sandbox *box) {
  *box = (pccl_sandbox){0};
  size_t budget = 0;
  PCCL_TRY(pccl_option_size("POLYCCL_LUA_MEMORY", &box->max_bytes));
  PCCL_TRY(pccl_option_size("POLYCCL_LUA_INSTRUCTIONS", &budget));
  box->budget = budget;
  box->start_ns = cpu_ns();
  box->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (box->locale == (locale_t)0) {
    return pccl_no_memory("a locale");
  }
  box->lua = lua_newstate(pccl_sandbox_allocate, box);
  if (box->lua == NULL) {
    bool system = box->refused.why == PCCL_STOP_SYSTEM;
    pccl_sandbox_close(box);
    return system ? pccl_no_memory("a Lua state")
                  : pccl_fail(POLYCCL_ERROR_LIMIT, "POLYCCL_LUA_MEMORY and POLYCCL_LUA_INSTRUCTIONS are too small");
  }
  *(pccl_sandbox **)lua_getextraspace(box->lua) = box;
  pccl_sandbox_set_interval(box, FIRST_INTERVAL);
  lua_pushcfunction(box->lua, open_libraries);
  polyccl_result result = pccl_sandbox_call(box, 0);
  if (result != POLYCCL_SUCCESS) {
    pccl_sandbox_close(box);
  }
  return result;
}

void pccl_sandbox_close(pccl_sandbox *box) {
  if (box->lua != NULL) {
    lua_close(box->lua);
    box->lua = NULL;
  }
  if (box->locale != (locale_t)0) {
    freelocale(box->locale);
    box->locale = (locale_t)0;
  }
}

static polyccl_result report_stop(pccl_sandbox *box, pccl_stop why) {
  polyccl_location at = {box->file[0] != '\0' ? box->file : NULL, box->line};
  switch (why) {
    case PCCL_STOP_BYTES:
      return pccl_fail_at(POLYCCL_ERROR_LIMIT, at, "the program needs more than %zu bytes (POLYCCL_LUA_MEMORY)",
                          box->max_bytes);
    case PCCL_STOP_STRING:
      return pccl_fail_at(POLYCCL_ERROR_LIMIT, at, "the program makes a string of more than %d bytes", PCCL_MAX_STRING);
    case PCCL_STOP_STACK:
      return pccl_fail_at(POLYCCL_ERROR_LIMIT, at, "stack overflow: calls that have not returned hold too many values");
    case PCCL_STOP_INSTRUCTIONS:
      return pccl_fail_at(POLYCCL_ERROR_LIMIT, at,
                          "the program ran more than %llu instructions (POLYCCL_LUA_INSTRUCTIONS); does it end?",
                          (unsigned long long)box->budget);
    case PCCL_STOP_PARSING:
      return pccl_fail_at(POLYCCL_ERROR_LIMIT, at,
                          "parsing the program up to here costs more than its %llu instructions "
                          "(POLYCCL_LUA_INSTRUCTIONS)",
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

/* Lua shortens long paths at the front. This puts the author's own spelling back. */
static void lengthen_path(lua_State *lua, const lua_Debug *frame) {
  const char *message = lua_tostring(lua, 1);
  size_t length = strlen(frame->short_src);
  if (strncmp(message, frame->short_src, length) == 0 && message[length] == ':' &&
      strcmp(frame->short_src, frame->source + 1) != 0) {
    lua_pushfstring(lua, "%s%s", frame->source + 1, message + length);
    lua_replace(lua, 1);
  }
}

/* Completes an error where it is raised. Puts the author's line in front if the error has none, and behind it the line
 * of the program if a helper raised it. */
static int complete_error(lua_State *lua) {
  if (pccl_sandbox_of(lua)->stop != PCCL_STOP_NONE) {
    return 1;
  }
  if (lua_type(lua, 1) != LUA_TSTRING) {
    lua_pushfstring(lua, "the error has a value that is not text (%s)", luaL_typename(lua, 1));
    lua_replace(lua, 1);
  }
  enum { MAX_LEVELS = 100 }; /* lua_getstack() counts its way from the top */
  polyccl_location inner = {NULL, 0}, outer = {NULL, 0};
  lua_Debug frame;
  for (int level = 0; level < MAX_LEVELS && lua_getstack(lua, level, &frame); level++) {
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

static polyccl_result report_failure(pccl_sandbox *box) {
  if (box->stop != PCCL_STOP_NONE) {
    return report_stop(box, box->stop);
  }
  /* A message that came from the library is already the last error. */
  const char *message = lua_tostring(box->lua, -1), *last = polyccl_last_error();
  size_t length = strlen(last);
  if (message != NULL && length > 0 && strncmp(message, last, length) == 0) {
    return pccl_suffix(POLYCCL_ERROR_INVALID, "%s", message + length);
  }
  return pccl_fail(POLYCCL_ERROR_INVALID, "%s", message != NULL ? message : "the error has no message");
}

polyccl_result pccl_sandbox_call(pccl_sandbox *box, int arguments) {
  lua_State *lua = box->lua;
  int handler = lua_gettop(lua) - arguments;
  lua_pushcfunction(lua, complete_error);
  lua_insert(lua, handler);
  locale_t outer = uselocale(box->locale);
  int status = lua_pcall(lua, arguments, 0, handler);
  uselocale(outer);
  pccl_sandbox_settle(box);
  if (status == LUA_OK && box->stop == PCCL_STOP_NONE) {
    lua_remove(lua, handler);
    return POLYCCL_SUCCESS;
  }
  polyccl_result result = report_failure(box);
  lua_settop(lua, handler - 1);
  return result;
}
