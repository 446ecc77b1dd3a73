/* Buffers as programs see them (input, output, scratch), and the scopes of parallelize. */
#include <lauxlib.h>
#include <string.h>

#include "language/references.h"

typedef struct buffer_box {
  int id;
} buffer_box;

static const char *const buffer_name = "buffer";

bool pccl_lua_is_buffer(lua_State *lua, int at) {
  return pccl_lua_has_metatable(lua, at, pccl_loader_of(lua)->buffer_metatable);
}

int pccl_lua_to_buffer(lua_State *lua, int at, const char *function) {
  if (!pccl_lua_is_buffer(lua, at)) {
    char text[80];
    pccl_lua_fail(lua, "%s: the buffer must be input, output or scratch(\"name\"), not %s", function,
                  pccl_lua_describe(lua, at, text, sizeof text));
  }
  return ((const buffer_box *)lua_touserdata(lua, at))->id;
}

void pccl_lua_push_buffer(lua_State *lua, int id) {
  lua_rawgetp(lua, LUA_REGISTRYINDEX, buffer_name);
  lua_rawgeti(lua, -1, id);
  lua_remove(lua, -2);
}

const char *pccl_lua_buffer_name(lua_State *lua, int id) {
  pccl_lua_push_buffer(lua, id);
  lua_getiuservalue(lua, -1, 1);
  const char *name = lua_tostring(lua, -1); /* held by the buffer */
  lua_pop(lua, 2);
  return name;
}

static int buffer_tostring(lua_State *lua) {
  lua_pushstring(lua, pccl_lua_buffer_name(lua, pccl_lua_to_buffer(lua, 1, "tostring")));
  return 1;
}

/* Makes the buffer object for `id` and pushes it. */
static void make_buffer(lua_State *lua, int id, const char *name) {
  buffer_box *box = lua_newuserdatauv(lua, sizeof *box, 1);
  box->id = id;
  lua_pushstring(lua, name);
  lua_setiuservalue(lua, -2, 1);
  luaL_setmetatable(lua, buffer_name);
  lua_rawgetp(lua, LUA_REGISTRYINDEX, buffer_name);
  lua_pushvalue(lua, -2);
  lua_rawseti(lua, -2, id);
  lua_pop(lua, 1);
}

/* scratch("name") */
static int lua_scratch(lua_State *lua) {
  polyccl_program *program = pccl_loader_program(lua, "scratch");
  char text[80];
  size_t length = 0;
  const char *name = lua_type(lua, 1) == LUA_TSTRING ? lua_tolstring(lua, 1, &length) : "";
  if (length == 0 || length > 60 || !pccl_printable_text(name, length)) {
    return pccl_lua_fail(lua, "scratch: the name must be text of 1 to 60 printable characters, not %s",
                         pccl_lua_describe(lua, 1, text, sizeof text));
  }
  if (strcmp(name, "input") == 0 || strcmp(name, "output") == 0) {
    return pccl_lua_fail(lua, "scratch: \"%s\" is the name of another buffer", name);
  }
  pccl_lua_refuse_more(lua, 1, "scratch");
  int id = 0;
  pccl_lua_check(lua, polyccl_program_scratch(program, name, &id), false);
  pccl_sandbox_charge(lua, (uint64_t)id); /* names are compared one by one */
  lua_rawgetp(lua, LUA_REGISTRYINDEX, buffer_name);
  if (lua_rawgeti(lua, -1, id) == LUA_TNIL) {
    pccl_sandbox_account(lua, 32 * (size_t)polyccl_program_get_config(program)->ranks + 128);
    make_buffer(lua, id, name);
  }
  return 1;
}

static void close_scopes(lua_State *lua, int scopes) {
  pccl_loader *loader = pccl_loader_of(lua);
  for (; loader->box.scopes > scopes; loader->box.scopes--) {
    pccl_lua_check(lua, polyccl_program_parallel_end(loader->program), false);
  }
}

/* parallelize(n, function): what the function does is cut into n parts that run side by side. */
static int lua_parallelize(lua_State *lua) {
  polyccl_program *program = pccl_loader_program(lua, "parallelize");
  int parts = pccl_lua_int(lua, 1, "parallelize: the number of parts");
  if (!lua_isfunction(lua, 2)) {
    char text[80];
    return pccl_lua_fail(lua, "parallelize: the second argument must be a function, not %s",
                         pccl_lua_describe(lua, 2, text, sizeof text));
  }
  pccl_lua_refuse_more(lua, 2, "parallelize");
  pccl_lua_check(lua, polyccl_program_parallel_begin(program, parts, pccl_sandbox_where(lua)), true);
  pccl_sandbox *box = pccl_sandbox_of(lua);
  int scopes = box->scopes++;
  lua_call(lua, 0, LUA_MULTRET);
  close_scopes(lua, scopes);
  return lua_gettop(lua) - 1;
}

void pccl_open_buffers(lua_State *lua) {
  static const luaL_Reg functions[] = {{"scratch", lua_scratch}, {"parallelize", lua_parallelize}, {NULL, NULL}};
  pccl_loader *loader = pccl_loader_of(lua);
  pccl_lua_make_metatable(lua, buffer_name);
  loader->buffer_metatable = lua_topointer(lua, -1);
  lua_pushcfunction(lua, buffer_tostring);
  lua_setfield(lua, -2, "__tostring");
  lua_pop(lua, 1);
  lua_newtable(lua); /* buffers by id */
  lua_rawsetp(lua, LUA_REGISTRYINDEX, buffer_name);
  make_buffer(lua, POLYCCL_INPUT, "input");
  lua_setglobal(lua, "input");
  make_buffer(lua, POLYCCL_OUTPUT, "output");
  lua_setglobal(lua, "output");

  lua_pushglobaltable(lua);
  lua_pushboolean(lua, 1); /* with an upvalue a function is an object, which has a number */
  luaL_setfuncs(lua, functions, 1);
  lua_pop(lua, 1);
  loader->box.close_scopes = close_scopes;
}
