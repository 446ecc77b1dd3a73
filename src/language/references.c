/* chunk() and what a reference can do. A reference is a polyccl_ref in a userdata; every operation passes the author's
 * line on to the builder. These are the functions that run a million times, so they look nothing up by name. */
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "language/arguments.h"
#include "language/loader.h"
#include "program/program.h"
#include "program/value.h"

/* What one operation costs the program's memory outside Lua: its entry in the builder's list, and room to grow. */
enum { OPERATION_BYTES = 128, MOST_PARTS = 100000 };

typedef struct buffer_box {
  int id;
} buffer_box;

static const char *const ref_name = "chunk reference";
static const char *const buffer_name = "buffer";

static bool has_metatable(lua_State *lua, int at, const void *wanted) {
  bool same = lua_type(lua, at) == LUA_TUSERDATA && lua_getmetatable(lua, at);
  if (same) {
    same = lua_topointer(lua, -1) == wanted;
    lua_pop(lua, 1);
  }
  return same;
}

static const polyccl_ref *to_ref(lua_State *lua, int at, const char *function) {
  if (!has_metatable(lua, at, pccl_loader_of(lua)->ref_metatable)) {
    char text[80];
    const char *got = pccl_lua_describe(lua, at, text, sizeof text);
    if (at == 1) {
      pccl_lua_fail(lua, "%s: must be called on a chunk reference (write ref:%s(...)), not on %s", function, function,
                    got);
    }
    pccl_lua_fail(lua, "%s: wants a chunk reference, not %s", function, got);
  }
  return lua_touserdata(lua, at);
}

static bool is_buffer(lua_State *lua, int at) { return has_metatable(lua, at, pccl_loader_of(lua)->buffer_metatable); }

static int to_buffer(lua_State *lua, int at, const char *function) {
  if (!is_buffer(lua, at)) {
    char text[80];
    pccl_lua_fail(lua, "%s: the buffer must be input, output or scratch(\"name\"), not %s", function,
                  pccl_lua_describe(lua, at, text, sizeof text));
  }
  return ((const buffer_box *)lua_touserdata(lua, at))->id;
}

static polyccl_ref *push_ref(lua_State *lua) {
  polyccl_ref *ref = lua_newuserdatauv(lua, sizeof *ref, 0);
  lua_rawgetp(lua, LUA_REGISTRYINDEX, ref_name);
  lua_setmetatable(lua, -2);
  return ref;
}

static void no_more(lua_State *lua, int last, const char *function) {
  if (lua_gettop(lua) > last && !lua_isnone(lua, last + 1)) {
    char text[80];
    pccl_lua_fail(lua, "%s: unexpected argument %s", function, pccl_lua_describe(lua, last + 1, text, sizeof text));
  }
}

static int hint(pccl_fields *fields, const char *name) {
  int value = pccl_fields_int(fields, name, -1);
  if (value < -1) {
    pccl_lua_fail(fields->lua, "%s: %s = %d is out of range (0 and up)", fields->what, name, value);
  }
  return value;
}

static polyccl_hints read_hints(lua_State *lua, int at, const char *function) {
  if (lua_isnoneornil(lua, at)) {
    return POLYCCL_NO_HINTS;
  }
  char what[48];
  snprintf(what, sizeof what, "%s: hints", function);
  pccl_fields fields = pccl_fields_begin(lua, at, what, false);
  polyccl_hints hints = {hint(&fields, "ch"), hint(&fields, "sendtb"), hint(&fields, "recvtb")};
  pccl_fields_end(&fields);
  return hints;
}

/* ---- operations ---- */

/* chunk(rank, buffer, index, size = 1) */
static int take_chunk(lua_State *lua) {
  polyccl_program *program = pccl_loader_program(lua, "chunk");
  int rank = pccl_lua_int(lua, 1, "chunk: the rank");
  int buffer = to_buffer(lua, 2, "chunk");
  int index = pccl_lua_int(lua, 3, "chunk: the index");
  int size = lua_isnoneornil(lua, 4) ? 1 : pccl_lua_int(lua, 4, "chunk: the size");
  no_more(lua, 4, "chunk");
  polyccl_ref ref;
  polyccl_location at = pccl_sandbox_where(lua);
  pccl_sandbox_charge(lua, size > 0 && size <= POLYCCL_MAX_CHUNKS ? (uint64_t)size / 4 : 0);
  pccl_lua_check(lua, polyccl_program_chunk(program, rank, buffer, index, size, at, &ref), true);
  *push_ref(lua) = ref;
  return 1;
}

/* ref:copy(rank [, buffer [, index]] [, hints]) */
static int copy(lua_State *lua) {
  polyccl_program *program = pccl_loader_program(lua, "copy");
  const polyccl_ref *src = to_ref(lua, 1, "copy");
  int rank = pccl_lua_int(lua, 2, "copy: the rank");
  int buffer = -1, index = -1, next = 3;
  if (is_buffer(lua, next)) {
    buffer = to_buffer(lua, next++, "copy");
    if (lua_type(lua, next) == LUA_TNUMBER) {
      index = pccl_lua_int(lua, next++, "copy: the index");
      if (index < 0) {
        return pccl_lua_fail(lua, "copy: the index is out of range: %d", index);
      }
    } else if (lua_gettop(lua) >= next && lua_isnil(lua, next)) {
      next++;
    }
  } else if (!lua_isnoneornil(lua, next) && !lua_istable(lua, next)) {
    to_buffer(lua, next, "copy");
  }
  polyccl_hints hints = read_hints(lua, next, "copy");
  no_more(lua, next, "copy");
  pccl_sandbox_account(lua, OPERATION_BYTES);
  polyccl_ref ref;
  polyccl_location at = pccl_sandbox_where(lua);
  pccl_sandbox_charge(lua, (uint64_t)src->size / 4);
  size_t scratch_chunks = program->scratch_chunks;
  pccl_lua_check(lua, polyccl_program_copy(program, src, rank, buffer, index, hints, at, &ref), true);
  pccl_sandbox_account(lua, sizeof(uint64_t) * (program->scratch_chunks - scratch_chunks));
  *push_ref(lua) = ref;
  return 1;
}

/* transfer(src, dst, step, chunk, "recv" | "rrc") */
static int transfer(lua_State *lua) {
  polyccl_program *program = pccl_loader_program(lua, "transfer");
  int src = pccl_lua_int(lua, 1, "transfer: the source rank"),
      dst = pccl_lua_int(lua, 2, "transfer: the destination rank");
  int step = pccl_lua_int(lua, 3, "transfer: the step"), at_chunk = pccl_lua_int(lua, 4, "transfer: the chunk");
  const char *kind = lua_type(lua, 5) == LUA_TSTRING ? lua_tostring(lua, 5) : "";
  bool reduces = strcmp(kind, "rrc") == 0;
  if (!reduces && strcmp(kind, "recv") != 0) {
    char text[80];
    return pccl_lua_fail(lua, "transfer: the kind must be \"recv\" or \"rrc\", not %s",
                         pccl_lua_describe(lua, 5, text, sizeof text));
  }
  no_more(lua, 5, "transfer");
  pccl_sandbox_account(lua, OPERATION_BYTES);
  polyccl_location at = pccl_sandbox_where(lua);
  pccl_lua_check(lua, polyccl_program_transfer(program, src, dst, step, at_chunk, reduces, at), true);
  return 0;
}

/* acc:reduce(operand [, hints]) */
static int reduce(lua_State *lua) {
  polyccl_program *program = pccl_loader_program(lua, "reduce");
  const polyccl_ref *acc = to_ref(lua, 1, "reduce"), *operand = to_ref(lua, 2, "reduce");
  polyccl_hints hints = read_hints(lua, 3, "reduce");
  no_more(lua, 3, "reduce");
  pccl_sandbox_account(lua, OPERATION_BYTES);
  polyccl_ref ref;
  polyccl_location at = pccl_sandbox_where(lua);
  pccl_sandbox_charge(lua, (uint64_t)acc->size / 4);
  pccl_lua_check(lua, polyccl_program_reduce(program, acc, operand, hints, at, &ref), true);
  *push_ref(lua) = ref;
  return 1;
}

/* ref:split(n): a list of n references of equal size. */
static int split(lua_State *lua) {
  const polyccl_ref whole = *to_ref(lua, 1, "split");
  int parts = pccl_lua_int(lua, 2, "split: the number of parts");
  no_more(lua, 2, "split");
  if (parts < 1 || parts > whole.size || whole.size % parts != 0) {
    return pccl_lua_fail(lua, "split: %d chunk%s cannot be split into %d equal parts", whole.size,
                         whole.size == 1 ? "" : "s", parts);
  }
  int size = whole.size / parts;
  lua_createtable(lua, parts, 0);
  for (int i = 0; i < parts; i++) {
    *push_ref(lua) = (polyccl_ref){whole.rank, whole.buffer, whole.index + i * size, size, whole.stamp};
    lua_rawseti(lua, -2, i + 1);
  }
  return 1;
}

static int by_index(const void *a, const void *b) {
  const polyccl_ref *x = a, *y = b;
  return (x->index > y->index) - (x->index < y->index);
}

/* Pushes the reference that covers all of `refs`, which must be fresh and leave no gap. */
static void join(lua_State *lua, polyccl_program *program, polyccl_ref *refs, int count) {
  polyccl_location at = pccl_sandbox_where(lua);
  qsort(refs, (size_t)count, sizeof *refs, by_index);
  for (int i = 0; i < count; i++) {
    polyccl_ref part;
    bool one_buffer = refs[i].rank == refs[0].rank && refs[i].buffer == refs[0].buffer;
    const polyccl_ref *with = one_buffer ? &refs[i] : &refs[0];
    pccl_sandbox_charge(lua, 16 + (uint64_t)refs[i].size);
    pccl_lua_check(lua, polyccl_program_group(program, with, &refs[i], at, &part), true);
    if (i > 0 && refs[i].index != refs[i - 1].index + refs[i - 1].size) {
      pccl_lua_fail(lua, "group: chunks %d to %d and %d to %d are not side by side", refs[i - 1].index,
                    refs[i - 1].index + refs[i - 1].size - 1, refs[i].index, refs[i].index + refs[i].size - 1);
    }
  }
  polyccl_ref ref;
  int size = refs[count - 1].index + refs[count - 1].size - refs[0].index;
  pccl_lua_check(lua, polyccl_program_chunk(program, refs[0].rank, refs[0].buffer, refs[0].index, size, at, &ref),
                 true);
  *push_ref(lua) = ref;
}

/* group(a, b, ...) or group{a, b, ...}: references side by side as one. */
static int group(lua_State *lua) {
  polyccl_program *program = pccl_loader_program(lua, "group");
  bool list = lua_gettop(lua) == 1 && lua_istable(lua, 1);
  lua_Unsigned count = list ? lua_rawlen(lua, 1) : (lua_Unsigned)lua_gettop(lua);
  if (count < 1 || count > MOST_PARTS) {
    return pccl_lua_fail(lua, "group: wants 1 to %d chunk references", MOST_PARTS);
  }
  polyccl_ref *refs = lua_newuserdatauv(lua, (size_t)count * sizeof *refs, 0);
  for (lua_Unsigned i = 0; i < count; i++) {
    if (list) {
      lua_rawgeti(lua, 1, (lua_Integer)i + 1);
    } else {
      lua_pushvalue(lua, (int)i + 1);
    }
    refs[i] = *to_ref(lua, lua_gettop(lua), "group");
    lua_pop(lua, 1);
  }
  join(lua, program, refs, (int)count);
  return 1;
}

/* ---- what a reference knows ---- */

static void push_buffer(lua_State *lua, int id) {
  lua_rawgetp(lua, LUA_REGISTRYINDEX, buffer_name);
  lua_rawgeti(lua, -1, id);
  lua_remove(lua, -2);
}

/* Upvalue 1: the table of methods. Names are interned by Lua, so equal names are one pointer. */
static int field(lua_State *lua) {
  const polyccl_ref *ref = lua_touserdata(lua, 1);
  const pccl_loader *loader = pccl_loader_of(lua);
  const char *name = lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : "";
  if (name == loader->field_names[0]) {
    lua_pushinteger(lua, ref->rank);
  } else if (name == loader->field_names[1]) {
    push_buffer(lua, ref->buffer);
  } else if (name == loader->field_names[2]) {
    lua_pushinteger(lua, ref->index);
  } else if (name == loader->field_names[3]) {
    lua_pushinteger(lua, ref->size);
  } else {
    lua_pushvalue(lua, 2);
    if (lua_rawget(lua, lua_upvalueindex(1)) == LUA_TNIL) {
      char text[80];
      return pccl_lua_fail(lua,
                           "a chunk reference has no %s (it has rank, buffer, index, size, copy, reduce, split, "
                           "origins, destinations)",
                           lua_type(lua, 2) == LUA_TSTRING && pccl_printable_text(name, strlen(name))
                               ? name
                               : pccl_lua_describe(lua, 2, text, sizeof text));
    }
  }
  return 1;
}

static int set_field(lua_State *lua) {
  return pccl_lua_fail(lua, "%s cannot be changed; take another with chunk()", lua_tostring(lua, lua_upvalueindex(1)));
}

static const char *id_name(lua_State *lua, int id) {
  push_buffer(lua, id);
  lua_getiuservalue(lua, -1, 1);
  const char *name = lua_tostring(lua, -1); /* held by the buffer */
  lua_pop(lua, 2);
  return name;
}

static int ref_tostring(lua_State *lua) {
  const polyccl_ref *ref = to_ref(lua, 1, "tostring");
  const char *name = id_name(lua, ref->buffer);
  if (ref->size == 1) {
    lua_pushfstring(lua, "rank %d %s[%d]", ref->rank, name, ref->index);
  } else {
    lua_pushfstring(lua, "rank %d %s[%d..%d]", ref->rank, name, ref->index, ref->index + ref->size - 1);
  }
  return 1;
}

static int buffer_tostring(lua_State *lua) {
  lua_pushstring(lua, id_name(lua, to_buffer(lua, 1, "tostring")));
  return 1;
}

/* The pair {rank, chunk} as an entry of the list at the top. */
static void append_pair(lua_State *lua, polyccl_leaf leaf, lua_Integer position) {
  lua_createtable(lua, 2, 0);
  lua_pushinteger(lua, leaf.rank);
  lua_rawseti(lua, -2, 1);
  lua_pushinteger(lua, leaf.chunk);
  lua_rawseti(lua, -2, 2);
  lua_rawseti(lua, -2, position);
}

typedef polyccl_result query(polyccl_program *, const polyccl_ref *, int, polyccl_location, polyccl_leaf *, size_t,
                             size_t *);

/* Output chunks that may have to be looked at to find the place of one contribution. */
static uint64_t places_to_search(const polyccl_program *program) {
  uint64_t ranks = (uint64_t)program->config.ranks;
  switch (program->config.collective) {
    case POLYCCL_ALLREDUCE:
    case POLYCCL_BROADCAST:
    case POLYCCL_ALLGATHER: return ranks;
    case POLYCCL_CUSTOM: return ranks * (uint64_t)program->output + program->post_leaves.len;
    default: return 1;
  }
}

/* A chunk may hold each input often, so that what it holds is far more than the operations that made it. */
static void pay_for_pairs(lua_State *lua, polyccl_program *program, const polyccl_ref *ref, int index,
                          polyccl_location at, bool places) {
  enum { PER_LEAF = 32 }; /* they are sorted */
  size_t leaves = 0;
  pccl_lua_check(lua, polyccl_program_origins(program, ref, index, at, NULL, 0, &leaves), true);
  uint64_t each = PER_LEAF + (places ? places_to_search(program) : 0);
  pccl_sandbox_charge(lua, (uint64_t)leaves * each);
}

/* ref:NAME(i = 0): a list of pairs for the reference's i-th chunk. */
static int list_pairs(lua_State *lua, const char *function, query *ask) {
  polyccl_program *program = pccl_loader_program(lua, function);
  const polyccl_ref *ref = to_ref(lua, 1, function);
  char what[48];
  snprintf(what, sizeof what, "%s: the index", function);
  int index = lua_isnoneornil(lua, 2) ? 0 : pccl_lua_int(lua, 2, what);
  no_more(lua, 2, function);
  polyccl_location at = pccl_sandbox_where(lua);
  size_t count = 0;
  pay_for_pairs(lua, program, ref, index, at, ask == polyccl_program_destinations);
  pccl_lua_check(lua, ask(program, ref, index, at, NULL, 0, &count), true);
  polyccl_leaf *leaves = lua_newuserdatauv(lua, count * sizeof *leaves, 0);
  pccl_lua_check(lua, ask(program, ref, index, at, leaves, count, &count), true);
  pccl_sandbox_charge(lua, 4 * (uint64_t)count);
  lua_createtable(lua, (int)count, 0);
  for (size_t i = 0; i < count; i++) {
    append_pair(lua, leaves[i], (lua_Integer)i + 1);
  }
  return 1;
}

static int origins(lua_State *lua) { return list_pairs(lua, "origins", polyccl_program_origins); }
static int destinations(lua_State *lua) { return list_pairs(lua, "destinations", polyccl_program_destinations); }

/* ---- buffers and scopes ---- */

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
static int scratch(lua_State *lua) {
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
  no_more(lua, 1, "scratch");
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
static int parallelize(lua_State *lua) {
  polyccl_program *program = pccl_loader_program(lua, "parallelize");
  int parts = pccl_lua_int(lua, 1, "parallelize: the number of parts");
  if (!lua_isfunction(lua, 2)) {
    char text[80];
    return pccl_lua_fail(lua, "parallelize: wants a function after the number, not %s",
                         pccl_lua_describe(lua, 2, text, sizeof text));
  }
  no_more(lua, 2, "parallelize");
  pccl_lua_check(lua, polyccl_program_parallel_begin(program, parts, pccl_sandbox_where(lua)), true);
  pccl_sandbox *box = pccl_sandbox_of(lua);
  int scopes = box->scopes++;
  lua_call(lua, 0, LUA_MULTRET);
  close_scopes(lua, scopes);
  return lua_gettop(lua) - 1;
}

/* ---- opening ---- */

/* A metatable under `name` in the registry, with set_field and no way to see or change it; pushed. */
static void make_metatable(lua_State *lua, const char *name) {
  luaL_newmetatable(lua, name);
  lua_pushfstring(lua, "a %s", name);
  lua_pushcclosure(lua, set_field, 1);
  lua_setfield(lua, -2, "__newindex");
  lua_pushstring(lua, name);
  lua_setfield(lua, -2, "__metatable");
}

static const char *intern_name(lua_State *lua, const char *name) {
  lua_pushstring(lua, name);
  const char *interned = lua_tostring(lua, -1);
  lua_pushboolean(lua, 1);
  lua_rawset(lua, -3); /* a table that keeps it */
  return interned;
}

void pccl_open_references(lua_State *lua) {
  static const luaL_Reg methods[] = {
      {"copy", copy}, {"reduce", reduce}, {"split", split}, {"origins", origins}, {"destinations", destinations},
      {NULL, NULL}};
  static const luaL_Reg functions[] = {{"chunk", take_chunk},        {"group", group},       {"scratch", scratch},
                                       {"parallelize", parallelize}, {"transfer", transfer}, {NULL, NULL}};
  pccl_loader *loader = pccl_loader_of(lua);
  make_metatable(lua, ref_name);
  loader->ref_metatable = lua_topointer(lua, -1);
  luaL_newlibtable(lua, methods);
  lua_pushboolean(lua, 1); /* with an upvalue a function is an object, which has a number */
  luaL_setfuncs(lua, methods, 1);
  lua_pushcclosure(lua, field, 1);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, ref_tostring);
  lua_setfield(lua, -2, "__tostring");
  lua_rawsetp(lua, LUA_REGISTRYINDEX, ref_name);

  lua_newtable(lua);
  static const char *const fields[] = {"rank", "buffer", "index", "size"};
  for (int i = 0; i < 4; i++) {
    loader->field_names[i] = intern_name(lua, fields[i]);
  }
  luaL_ref(lua, LUA_REGISTRYINDEX);

  make_metatable(lua, buffer_name);
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
  lua_pushboolean(lua, 1);
  luaL_setfuncs(lua, functions, 1);
  lua_pop(lua, 1);
  loader->box.close_scopes = close_scopes;
}
