/* The sandbox from inside: no function that a program can reach is without a price, what Lua does not tell about its
 * memory was found out, and the watchdog ends what the sandbox cannot. What programs see is in tests/programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <lauxlib.h>
#include <lualib.h>

#include "../../tools/watchdog.h"
#include "language/loader.h"
#include "language/prices.h"

enum { NAME_BYTES = 256 };

/* Stack place 1: tables that were visited. */
typedef struct walker {
  lua_State *lua;
  int functions, missing;
} walker;

static void look_up(walker *w, const char *name) {
  size_t count = 0;
  const pccl_price *prices = pccl_prices(&count);
  bool found = false;
  for (size_t i = 0; i < count; i++) {
    found = found || strcmp(prices[i].name, name) == 0;
  }
  if (!found) {
    print_error("%s has no price in src/language/prices.c\n", name);
    w->missing++;
  }
  w->functions++;
}

static void walk_table(walker *w, const char *name);

static bool visit(walker *w) {
  lua_pushvalue(w->lua, -1);
  bool seen = lua_rawget(w->lua, 1) != LUA_TNIL;
  lua_pop(w->lua, 1);
  if (!seen) {
    lua_pushvalue(w->lua, -1);
    lua_pushboolean(w->lua, 1);
    lua_rawset(w->lua, 1);
  }
  return !seen;
}

/* The value at the top, and its metatable where a program can get at it. */
static void walk_value(walker *w, const char *name) {
  luaL_checkstack(w->lua, 10, NULL);
  char inner[NAME_BYTES];
  if (lua_isfunction(w->lua, -1) && visit(w)) {
    look_up(w, name);
    assert_true(pccl_sandbox_made(w->lua, -1) > 0); /* no bare pointer, whose order and name would be its address */
  }
  if (luaL_getmetafield(w->lua, -1, "__metatable") != LUA_TNIL) {
    lua_pop(w->lua, 1);
  } else if (lua_getmetatable(w->lua, -1)) {
    snprintf(inner, sizeof inner, "%.200s metatable.", lua_type(w->lua, -2) == LUA_TSTRING ? "string" : name);
    walk_table(w, inner);
    lua_pop(w->lua, 1);
  }
  if (lua_istable(w->lua, -1)) {
    snprintf(inner, sizeof inner, "%.200s.", name);
    walk_table(w, strcmp(name, "_G") == 0 ? "" : inner);
  }
}

static void walk_table(walker *w, const char *name) {
  if (!visit(w)) {
    return;
  }
  for (lua_pushnil(w->lua); lua_next(w->lua, -2); lua_pop(w->lua, 1)) {
    char inner[NAME_BYTES];
    if (lua_type(w->lua, -2) == LUA_TSTRING) {
      snprintf(inner, sizeof inner, "%.100s%.100s", name, lua_tostring(w->lua, -2));
      walk_value(w, inner);
    }
  }
}

static int walk_globals(lua_State *lua) {
  walker *w = lua_touserdata(lua, 1);
  lua_settop(lua, 0);
  w->lua = lua;
  lua_newtable(lua);
  static const char *const libraries[] = {"math", "string", "table", "utf8"}; /* so that they have their own names */
  for (int i = 0; i < 4; i++) {
    lua_getglobal(lua, libraries[i]);
    walk_value(w, libraries[i]);
    lua_pop(lua, 1);
  }
  lua_pushliteral(lua, "");
  walk_value(w, "string");
  lua_pop(lua, 1);
  /* The methods of a chunk reference stand behind a function. */
  luaL_getmetatable(lua, "chunk reference");
  lua_getfield(lua, -1, "__index");
  assert_non_null(lua_getupvalue(lua, -1, 1));
  walk_table(w, "chunk reference:");
  lua_settop(lua, 1);
  lua_pushglobaltable(lua);
  walk_value(w, "_G");
  return 0;
}

static int open_globals(lua_State *lua) {
  pccl_open_globals(lua);
  return 0;
}

static void every_function_has_a_price(void **state) {
  (void)state;
  pccl_loader loader = {0};
  assert_int_equal(pccl_sandbox_open(&loader.box), POLYCCL_SUCCESS);
  lua_pushcfunction(loader.box.lua, open_globals);
  assert_int_equal(pccl_sandbox_call(&loader.box, 0), POLYCCL_SUCCESS);
  walker w = {0};
  lua_pushcfunction(loader.box.lua, walk_globals);
  lua_pushlightuserdata(loader.box.lua, &w);
  assert_int_equal(pccl_sandbox_call(&loader.box, 1), POLYCCL_SUCCESS);
  pccl_sandbox_close(&loader.box);
  size_t count = 0;
  pccl_prices(&count);
  assert_int_equal(w.missing, 0);
  assert_int_equal(w.functions, count); /* and no price is for what is not there */
}

/* A function that a newer Lua might bring. */
static int foreign(lua_State *lua) {
  (void)lua;
  return 0;
}

static void functions_without_a_price_are_taken_out(void **state) {
  (void)state;
  lua_State *lua = luaL_newstate();
  assert_non_null(lua);
  luaL_openlibs(lua);
  pccl_sandbox box = {.lua = lua, .max_bytes = SIZE_MAX, .budget = UINT64_MAX};
  *(pccl_sandbox **)lua_getextraspace(lua) = &box;
  lua_getglobal(lua, "table");
  lua_pushcfunction(lua, foreign);
  lua_setfield(lua, -2, "foreign");
  lua_pop(lua, 1);
  lua_pushcfunction(lua, foreign);
  lua_setglobal(lua, "foreign");
  pccl_prices_install(lua);
  lua_getglobal(lua, "table");
  assert_int_equal(lua_getfield(lua, -1, "foreign"), LUA_TNIL);
  assert_int_equal(lua_getfield(lua, -2, "insert"), LUA_TFUNCTION);
  lua_pushglobaltable(lua);
  lua_pushliteral(lua, "foreign");
  assert_int_equal(lua_rawget(lua, -2), LUA_TNIL);
  lua_close(lua);
}

/* Whichever way this release of Lua grows its stack, the allocator knows the block. */
static int grow_stack(lua_State *lua) {
  pccl_sandbox *box = pccl_sandbox_of(lua);
  luaL_checkstack(lua, 20000, NULL);
  assert_ptr_not_equal(box->stack, NULL);
  assert_true(box->stack_size >= (size_t)20000 * 16);
  assert_true(box->interval < 1000);
  return 0;
}

static void the_stack_is_known(void **state) {
  (void)state;
  pccl_loader loader = {0};
  assert_int_equal(pccl_sandbox_open(&loader.box), POLYCCL_SUCCESS);
  lua_pushcfunction(loader.box.lua, grow_stack);
  assert_int_equal(pccl_sandbox_call(&loader.box, 0), POLYCCL_SUCCESS);
  pccl_sandbox_close(&loader.box);
}

/* ---- the watchdog ---- */

/* Runs `body` in a child; its exit status, and what it wrote to standard error. */
static int in_child(void (*body)(void), char *text, size_t room) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    body();
    _exit(0);
  }
  close(ends[1]);
  size_t length = 0;
  ssize_t got;
  while (length + 1 < room && (got = read(ends[0], text + length, room - 1 - length)) > 0) {
    length += (size_t)got;
  }
  text[length] = '\0';
  close(ends[0]);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void spin_for_ever(void) {
  pccl_watchdog_begin("check", "endless.lua", 0.05, 0);
  for (volatile unsigned i = 0;; i++) {
    if (i % 1000000 == 0) {
      usleep(1); /* ThreadSanitizer delivers signals in calls only */
    }
  }
}

static void use_time(void) {
  for (volatile unsigned i = 0; i < 300000000; i++) {
  }
}

static void end_in_time(void) {
  pccl_watchdog_begin("check", "short.lua", 0.05, 0);
  pccl_watchdog_end();
  use_time(); /* no clock is left running */
}

static void take_memory(void) {
  struct rlimit before, after;
  getrlimit(RLIMIT_AS, &before);
  pccl_watchdog_begin("check", "large.lua", 1000, (size_t)64 << 20);
  void *block = malloc((size_t)256 << 20);
  bool refused = block == NULL;
  free(block);
  pccl_watchdog_end();
  getrlimit(RLIMIT_AS, &after);
  fprintf(stderr, "%s, limit %s", refused ? "refused" : "given",
          before.rlim_cur == after.rlim_cur ? "restored" : "lost");
}

static void the_watchdog_ends_what_never_ends(void **state) {
  (void)state;
  char text[1024];
  assert_int_equal(in_child(spin_for_ever, text, sizeof text), 2);
  assert_string_equal(text,
                      "polyccl check: endless.lua: reading this program took more than 0.05 seconds of processor "
                      "time (POLYCCL_LUA_INSTRUCTIONS); check that it ends\n");
}

static void the_watchdog_leaves_nothing(void **state) {
  (void)state;
  char text[1024];
  assert_int_equal(in_child(end_in_time, text, sizeof text), 0);
  assert_string_equal(text, "");
}

static void the_watchdog_limits_memory(void **state) {
  (void)state;
  char text[1024];
  assert_int_equal(in_child(take_memory, text, sizeof text), 0);
  assert_string_equal(text, pccl_watchdog_limits_memory() ? "refused, limit restored" : "given, limit restored");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_function_has_a_price),  cmocka_unit_test(functions_without_a_price_are_taken_out),
      cmocka_unit_test(the_stack_is_known),          cmocka_unit_test(the_watchdog_ends_what_never_ends),
      cmocka_unit_test(the_watchdog_leaves_nothing), cmocka_unit_test(the_watchdog_limits_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
