/* What a chunk holds, and where it is wanted: origins() and destinations() of references. */
#include <lauxlib.h>
#include <stdio.h>

#include "language/references.h"
#include "program/difference.h"
#include "program/program.h"

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

/* Pays before anything is listed: a chunk may hold each input often, so that the list is much longer than the program
 * that asks for it. */
static void pay_for_pairs(lua_State *lua, polyccl_program *program, const polyccl_ref *ref, int index,
                          polyccl_location at, bool places) {
  enum { PER_LEAF = 32 }; /* they are sorted */
  uint32_t leaves = 0;
  pccl_lua_check(lua, pccl_program_count_origins(program, ref, index, at, &leaves), true);
  uint64_t each = PER_LEAF + (places ? places_to_search(program) : 0);
  pccl_sandbox_charge(lua, leaves <= PCCL_MAX_LISTED_LEAVES ? leaves * each : 0); /* more are refused at once */
}

/* ref:NAME(i = 0): a list of pairs for the reference's i-th chunk. */
static int list_pairs(lua_State *lua, const char *function, query *ask) {
  polyccl_program *program = pccl_loader_program(lua, function);
  const polyccl_ref *ref = pccl_lua_to_ref(lua, 1, function);
  char what[48];
  snprintf(what, sizeof what, "%s: the index", function);
  int index = lua_isnoneornil(lua, 2) ? 0 : pccl_lua_int(lua, 2, what);
  pccl_lua_refuse_more(lua, 2, function);
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

int pccl_lua_origins(lua_State *lua) { return list_pairs(lua, "origins", polyccl_program_origins); }
int pccl_lua_destinations(lua_State *lua) { return list_pairs(lua, "destinations", polyccl_program_destinations); }
