/* chunk(), and the operations on references. A reference is a polyccl_ref in a userdata; every operation passes the
 * author's line on to the builder. These functions run millions of times, so they look nothing up by name.
 */
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "language/references.h"
#include "program/program.h"

/* The memory of one operation outside Lua: its entry in the builder's list, which grows by doubling. */
enum { OPERATION_BYTES = 128 };
enum { MAX_PARTS = 100000 }; /* about as many values as Lua's stack holds */

static const char *const ref_name = "chunk reference";

const polyccl_ref *pccl_lua_to_ref(lua_State *lua, int at, const char *function) {
  if (!pccl_lua_has_metatable(lua, at, pccl_loader_of(lua)->ref_metatable)) {
    char text[80];
    const char *got = pccl_lua_describe(lua, at, text, sizeof text);
    if (at == 1) {
      pccl_lua_fail(lua, "%s: must be called on a chunk reference (write ref:%s(...)), not on %s", function, function,
                    got);
    }
    pccl_lua_fail(lua, "%s: the argument must be a chunk reference, not %s", function, got);
  }
  return lua_touserdata(lua, at);
}

static polyccl_ref *push_ref(lua_State *lua) {
  polyccl_ref *ref = lua_newuserdatauv(lua, sizeof *ref, 0);
  lua_rawgetp(lua, LUA_REGISTRYINDEX, ref_name);
  lua_setmetatable(lua, -2);
  return ref;
}

static int read_hint(pccl_fields *fields, const char *name) {
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
  polyccl_hints hints = {read_hint(&fields, "ch"), read_hint(&fields, "sendtb"), read_hint(&fields, "recvtb")};
  pccl_fields_end(&fields);
  return hints;
}

/* ---- operations ---- */

/* chunk(rank, buffer, index, size = 1) */
static int lua_chunk(lua_State *lua) {
  polyccl_program *program = pccl_loader_program(lua, "chunk");
  int rank = pccl_lua_int(lua, 1, "chunk: the rank");
  int buffer = pccl_lua_to_buffer(lua, 2, "chunk");
  int index = pccl_lua_int(lua, 3, "chunk: the index");
  int size = lua_isnoneornil(lua, 4) ? 1 : pccl_lua_int(lua, 4, "chunk: the size");
  pccl_lua_refuse_more(lua, 4, "chunk");
  polyccl_ref ref;
  polyccl_location at = pccl_sandbox_where(lua);
  pccl_sandbox_charge(lua, size > 0 && size <= POLYCCL_MAX_CHUNKS ? (uint64_t)size / 4 : 0);
  pccl_lua_check(lua, polyccl_program_chunk(program, rank, buffer, index, size, at, &ref), true);
  *push_ref(lua) = ref;
  return 1;
}

/* ref:copy(rank [, buffer [, index]] [, hints]) */
static int ref_copy(lua_State *lua) {
  polyccl_program *program = pccl_loader_program(lua, "copy");
  const polyccl_ref *src = pccl_lua_to_ref(lua, 1, "copy");
  int rank = pccl_lua_int(lua, 2, "copy: the rank");
  int buffer = -1, index = -1, next = 3;
  if (pccl_lua_is_buffer(lua, next)) {
    buffer = pccl_lua_to_buffer(lua, next++, "copy");
    if (lua_type(lua, next) == LUA_TNUMBER) {
      index = pccl_lua_int(lua, next++, "copy: the index");
      if (index < 0) {
        return pccl_lua_fail(lua, "copy: the index is out of range: %d", index);
      }
    } else if (lua_gettop(lua) >= next && lua_isnil(lua, next)) {
      next++;
    }
  } else if (!lua_isnoneornil(lua, next) && !lua_istable(lua, next)) {
    pccl_lua_to_buffer(lua, next, "copy");
  }
  polyccl_hints hints = read_hints(lua, next, "copy");
  pccl_lua_refuse_more(lua, next, "copy");
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
static int lua_transfer(lua_State *lua) {
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
  pccl_lua_refuse_more(lua, 5, "transfer");
  pccl_sandbox_account(lua, OPERATION_BYTES);
  polyccl_location at = pccl_sandbox_where(lua);
  pccl_lua_check(lua, polyccl_program_transfer(program, src, dst, step, at_chunk, reduces, at), true);
  return 0;
}

/* acc:reduce(operand [, hints]) */
static int ref_reduce(lua_State *lua) {
  polyccl_program *program = pccl_loader_program(lua, "reduce");
  const polyccl_ref *acc = pccl_lua_to_ref(lua, 1, "reduce"), *operand = pccl_lua_to_ref(lua, 2, "reduce");
  polyccl_hints hints = read_hints(lua, 3, "reduce");
  pccl_lua_refuse_more(lua, 3, "reduce");
  pccl_sandbox_account(lua, OPERATION_BYTES);
  polyccl_ref ref;
  polyccl_location at = pccl_sandbox_where(lua);
  pccl_sandbox_charge(lua, (uint64_t)acc->size / 4);
  pccl_lua_check(lua, polyccl_program_reduce(program, acc, operand, hints, at, &ref), true);
  *push_ref(lua) = ref;
  return 1;
}

/* ref:split(n): a list of n references of equal size. */
static int ref_split(lua_State *lua) {
  const polyccl_ref whole = *pccl_lua_to_ref(lua, 1, "split");
  int parts = pccl_lua_int(lua, 2, "split: the number of parts");
  pccl_lua_refuse_more(lua, 2, "split");
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
static void join_refs(lua_State *lua, polyccl_program *program, polyccl_ref *refs, int count) {
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
static int lua_group(lua_State *lua) {
  polyccl_program *program = pccl_loader_program(lua, "group");
  bool list = lua_gettop(lua) == 1 && lua_istable(lua, 1);
  lua_Unsigned count = list ? lua_rawlen(lua, 1) : (lua_Unsigned)lua_gettop(lua);
  if (count < 1 || count > MAX_PARTS) {
    return pccl_lua_fail(lua, "group needs 1 to %d chunk references", MAX_PARTS);
  }
  polyccl_ref *refs = lua_newuserdatauv(lua, (size_t)count * sizeof *refs, 0);
  for (lua_Unsigned i = 0; i < count; i++) {
    if (list) {
      lua_rawgeti(lua, 1, (lua_Integer)i + 1);
    } else {
      lua_pushvalue(lua, (int)i + 1);
    }
    refs[i] = *pccl_lua_to_ref(lua, lua_gettop(lua), "group");
    lua_pop(lua, 1);
  }
  join_refs(lua, program, refs, (int)count);
  return 1;
}

/* ---- what a reference knows ---- */

static const luaL_Reg methods[] = {{"copy", ref_copy},
                                   {"reduce", ref_reduce},
                                   {"split", ref_split},
                                   {"origins", pccl_lua_origins},
                                   {"destinations", pccl_lua_destinations},
                                   {NULL, NULL}};

/* `name`: of the field at stack place 2, if it is text. */
static int fail_unknown_field(lua_State *lua, const char *name) {
  char text[80], known[256] = "rank, buffer, index, size";
  for (const luaL_Reg *method = methods; method->name != NULL; method++) {
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, ", %s", method->name);
  }
  bool printable = lua_type(lua, 2) == LUA_TSTRING && pccl_printable_text(name, strlen(name));
  return pccl_lua_fail(lua, "a chunk reference has no %s (it has %s)",
                       printable ? name : pccl_lua_describe(lua, 2, text, sizeof text), known);
}

/* __index. Upvalue 1: the table of methods. Lua interns names, so equal names are one pointer. */
static int ref_field(lua_State *lua) {
  const polyccl_ref *ref = lua_touserdata(lua, 1);
  const pccl_loader *loader = pccl_loader_of(lua);
  const char *name = lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : "";
  if (name == loader->field_names[0]) {
    lua_pushinteger(lua, ref->rank);
  } else if (name == loader->field_names[1]) {
    pccl_lua_push_buffer(lua, ref->buffer);
  } else if (name == loader->field_names[2]) {
    lua_pushinteger(lua, ref->index);
  } else if (name == loader->field_names[3]) {
    lua_pushinteger(lua, ref->size);
  } else {
    lua_pushvalue(lua, 2);
    if (lua_rawget(lua, lua_upvalueindex(1)) == LUA_TNIL) {
      return fail_unknown_field(lua, name);
    }
  }
  return 1;
}

static int ref_tostring(lua_State *lua) {
  const polyccl_ref *ref = pccl_lua_to_ref(lua, 1, "tostring");
  const char *name = pccl_lua_buffer_name(lua, ref->buffer);
  if (ref->size == 1) {
    lua_pushfstring(lua, "rank %d %s[%d]", ref->rank, name, ref->index);
  } else {
    lua_pushfstring(lua, "rank %d %s[%d..%d]", ref->rank, name, ref->index, ref->index + ref->size - 1);
  }
  return 1;
}

/* ---- opening ---- */

static const char *intern_name(lua_State *lua, const char *name) {
  lua_pushstring(lua, name);
  const char *interned = lua_tostring(lua, -1);
  lua_pushboolean(lua, 1);
  lua_rawset(lua, -3); /* a table that keeps it */
  return interned;
}

void pccl_open_references(lua_State *lua) {
  static const luaL_Reg functions[] = {
      {"chunk", lua_chunk}, {"group", lua_group}, {"transfer", lua_transfer}, {NULL, NULL}};
  pccl_loader *loader = pccl_loader_of(lua);
  pccl_lua_make_metatable(lua, ref_name);
  loader->ref_metatable = lua_topointer(lua, -1);
  luaL_newlibtable(lua, methods);
  lua_pushboolean(lua, 1); /* with an upvalue a function is an object, which has a number */
  luaL_setfuncs(lua, methods, 1);
  lua_pushcclosure(lua, ref_field, 1);
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

  lua_pushglobaltable(lua);
  lua_pushboolean(lua, 1);
  luaL_setfuncs(lua, functions, 1);
  lua_pop(lua, 1);
}
