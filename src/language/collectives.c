/* The declaration that starts a program: allreduce { ranks = 4, chunks = 4, inplace = true } and so on. */
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "language/arguments.h"
#include "language/loader.h"
#include "program/collective.h"

polyccl_program *pccl_loader_program(lua_State *lua, const char *function) {
  pccl_loader *loader = pccl_loader_of(lua);
  if (loader->program == NULL) {
    pccl_lua_fail(lua, "%s: declare the collective first, such as allreduce { ranks = 4 }", function);
  }
  return loader->program;
}

static polyccl_replication read_replication(pccl_fields *fields) {
  const char *text = pccl_fields_text(fields, "replication");
  if (text != NULL && strcmp(text, "batched") != 0 && strcmp(text, "interleaved") != 0) {
    pccl_lua_fail(fields->lua, "%s: replication must be \"interleaved\" or \"batched\", not \"%.40s\"", fields->what,
                  text);
  }
  return text != NULL && text[0] == 'b' ? POLYCCL_BATCHED : POLYCCL_INTERLEAVED;
}

static polyccl_protocol read_protocol(pccl_fields *fields) {
  polyccl_protocol protocol = POLYCCL_SIMPLE;
  const char *text = pccl_fields_text(fields, "protocol");
  if (text != NULL) {
    pccl_lua_check(fields->lua, polyccl_protocol_parse(text, &protocol), false);
  }
  return protocol;
}

static bool has_root(polyccl_collective collective) {
  return collective == POLYCCL_BROADCAST || collective == POLYCCL_REDUCE || collective == POLYCCL_GATHER ||
         collective == POLYCCL_SCATTER || collective == POLYCCL_SENDRECV;
}

static polyccl_program_config read_config(pccl_fields *fields, polyccl_collective collective) {
  polyccl_program_config config = {.size = sizeof(polyccl_program_config), .collective = collective};
  config.ranks = pccl_fields_required_int(fields, "ranks");
  config.chunks = pccl_fields_int(fields, "chunks", 1);
  if (collective == POLYCCL_CUSTOM) {
    config.chunks_out = pccl_fields_int(fields, "chunks_out", config.chunks);
    if (config.chunks_out < 1) {
      pccl_lua_fail(fields->lua, "custom: chunks_out = %d is out of range (1 to %d)", config.chunks_out,
                    POLYCCL_MAX_CHUNKS);
    }
  }
  if (collective != POLYCCL_SENDRECV) {
    config.inplace = pccl_fields_bool(fields, "inplace", false);
  }
  if (has_root(collective)) {
    config.root = pccl_fields_int(fields, "root", 0);
  }
  if (collective == POLYCCL_SENDRECV) {
    config.peer = pccl_fields_required_int(fields, "peer");
  }
  config.name = pccl_fields_text(fields, "name");
  config.protocol = read_protocol(fields);
  config.instances = pccl_fields_int(fields, "instances", 1);
  if (config.instances < 1) {
    pccl_lua_fail(fields->lua, "%s: instances = %d is out of range (at least 1)", fields->what, config.instances);
  }
  config.replication = read_replication(fields);
  config.min_bytes = pccl_fields_bytes(fields, "minbytes");
  config.max_bytes = pccl_fields_bytes(fields, "maxbytes");
  config.manual = pccl_fields_bool(fields, "manual", false);
  config.no_fusion = !pccl_fields_bool(fields, "fusion", true);
  return config;
}

/* ---- conditions of custom collectives ---- */

enum { PER_CALL = 10 }; /* a C function runs no instructions that the hook would count */

/* Calls the function at stack place `function` with (rank, chunk) and leaves its result at the top of the stack. */
static void call_condition(lua_State *lua, int function, int rank, int chunk) {
  pccl_sandbox_charge(lua, PER_CALL);
  lua_pushvalue(lua, function);
  lua_pushinteger(lua, rank);
  lua_pushinteger(lua, chunk);
  lua_call(lua, 2, 1);
}

static void declare_pre(lua_State *lua, polyccl_program *program, int function, int ranks, int chunks) {
  for (int rank = 0; rank < ranks; rank++) {
    for (int chunk = 0; chunk < chunks; chunk++) {
      call_condition(lua, function, rank, chunk);
      if (!lua_isboolean(lua, -1)) {
        char text[80];
        pccl_lua_fail(lua, "custom: pre(%d, %d) must return true or false, not %s", rank, chunk,
                      pccl_lua_describe(lua, -1, text, sizeof text));
      }
      pccl_lua_check(lua, polyccl_program_pre(program, rank, chunk, lua_toboolean(lua, -1)), false);
      lua_pop(lua, 1);
    }
    pccl_sandbox_account(lua, 16 * (size_t)chunks);
  }
}

/* The pair {rank, chunk} at the top of the stack, which is popped. */
static polyccl_leaf pop_leaf(lua_State *lua, const char *call) {
  char text[80], what[120];
  if (!lua_istable(lua, -1) || lua_rawlen(lua, -1) != 2) {
    pccl_lua_fail(lua, "custom: %s must return a list of pairs such as {{rank, chunk}}, but the list has %s in it",
                  call, pccl_lua_describe(lua, -1, text, sizeof text));
  }
  lua_rawgeti(lua, -1, 1);
  lua_rawgeti(lua, -2, 2);
  snprintf(what, sizeof what, "custom: a rank that %s returns", call);
  int rank = pccl_lua_int(lua, -2, what);
  snprintf(what, sizeof what, "custom: a chunk that %s returns", call);
  int chunk = pccl_lua_int(lua, -1, what);
  lua_pop(lua, 3);
  return (polyccl_leaf){rank, chunk};
}

/* The list that post(rank, chunk) left at the top of the stack. */
static void declare_post_chunk(lua_State *lua, polyccl_program *program, int rank, int chunk) {
  char call[48], text[80];
  snprintf(call, sizeof call, "post(%d, %d)", rank, chunk);
  if (!lua_istable(lua, -1)) {
    pccl_lua_fail(lua, "custom: %s must return a list of pairs such as {{rank, chunk}} or nil, not %s", call,
                  pccl_lua_describe(lua, -1, text, sizeof text));
  }
  lua_Unsigned count = lua_rawlen(lua, -1);
  enum { MAX_LEAVES = POLYCCL_MAX_CHUNKS };
  if (count < 1 || count > MAX_LEAVES) {
    pccl_lua_fail(lua, "custom: %s returns a list of %llu pairs (return nil where anything may be)", call,
                  (unsigned long long)count);
  }
  int list = lua_absindex(lua, -1);
  polyccl_leaf *leaves = lua_newuserdatauv(lua, (size_t)count * sizeof *leaves, 0);
  for (lua_Unsigned i = 0; i < count; i++) {
    lua_rawgeti(lua, list, (lua_Integer)i + 1);
    leaves[i] = pop_leaf(lua, call);
  }
  pccl_sandbox_account(lua, (size_t)count * sizeof *leaves + 32);
  pccl_lua_check(lua, polyccl_program_post(program, rank, chunk, leaves, (int)count), false);
  lua_pop(lua, 1);
}

static void declare_post(lua_State *lua, polyccl_program *program, int function, int ranks, int chunks) {
  for (int rank = 0; rank < ranks; rank++) {
    for (int chunk = 0; chunk < chunks; chunk++) {
      call_condition(lua, function, rank, chunk);
      if (!lua_isnil(lua, -1)) {
        declare_post_chunk(lua, program, rank, chunk);
      }
      lua_pop(lua, 1);
    }
  }
}

/* ---- the functions ---- */

/* Accounts for the word that the builder keeps for every chunk of every rank. */
static void account_for(lua_State *lua, const polyccl_program_config *config) {
  pccl_collective_spec spec = {.kind = config->collective,
                               .ranks = config->ranks,
                               .chunks = config->chunks,
                               .chunks_out = config->chunks_out,
                               .inplace = config->inplace,
                               .root = config->root,
                               .peer = config->peer};
  pccl_lua_check(lua, pccl_collective_validate(&spec), false);
  pccl_sandbox_account(lua, sizeof(uint64_t) * (size_t)pccl_collective_cells(&spec) * (size_t)config->ranks);
}

static int declare_collective(lua_State *lua) {
  pccl_loader *loader = pccl_loader_of(lua);
  polyccl_collective collective = (polyccl_collective)lua_tointeger(lua, lua_upvalueindex(1));
  const char *what = polyccl_collective_name(collective);
  if (loader->program != NULL) {
    return pccl_lua_fail(lua, "%s: the program is already of kind %s, declared at %s", what,
                         polyccl_collective_name(polyccl_program_get_config(loader->program)->collective),
                         loader->declared);
  }
  lua_settop(lua, 1);
  pccl_fields fields = pccl_fields_begin(lua, 1, what, false);
  polyccl_program_config config = read_config(&fields, collective);
  const char *topology = pccl_fields_text(&fields, "topology");
  int pre = 0, post = 0;
  if (collective == POLYCCL_CUSTOM) {
    pre = pccl_fields_function(&fields, "pre") ? lua_gettop(lua) : 0;
    post = pccl_fields_function(&fields, "post") ? lua_gettop(lua) : 0;
  }
  pccl_fields_end(&fields);
  if (collective == POLYCCL_CUSTOM && post == 0) {
    return pccl_lua_fail(lua, "custom: post is missing; it is a function(rank, chunk) that says what must be there");
  }
  config.name = config.name != NULL ? config.name : loader->name;
  pccl_lua_check(lua, pccl_accept_program(loader->accept, &config), false);
  account_for(lua, &config);
  polyccl_program *program = NULL;
  pccl_lua_check(lua, polyccl_program_create(&config, &program), false);
  loader->program = program;
  polyccl_location at = pccl_sandbox_where(lua);
  snprintf(loader->declared, sizeof loader->declared, "%s:%d", at.file != NULL ? at.file : "?", at.line);
  if (topology != NULL) {
    char *spec = pccl_loader_topology(lua, topology);
    polyccl_result result = spec != NULL ? polyccl_program_set_topology(program, spec) : pccl_no_memory("a path");
    free(spec);
    pccl_lua_check(lua, result, false);
  }
  if (pre != 0) {
    declare_pre(lua, program, pre, config.ranks, config.chunks);
  }
  if (post != 0) {
    declare_post(lua, program, post, config.ranks, config.chunks_out);
  }
  return 0;
}

void pccl_open_collectives(lua_State *lua) {
  for (int i = 0; i < POLYCCL_COLLECTIVE_COUNT; i++) {
    lua_pushinteger(lua, i);
    lua_pushcclosure(lua, declare_collective, 1);
    lua_setglobal(lua, polyccl_collective_name((polyccl_collective)i));
  }
}
