/* The sandbox's allocator. Every block has a header with the numbers of the object in it, which give the objects an
 * order and names that do not depend on addresses. */
#include <lauxlib.h>
#include <stdlib.h>

#include "language/sandbox.h"

enum {
  BYTES_PER_INSTRUCTION = 64,       /* the price of memory */
  STRING_BYTES_PER_INSTRUCTION = 8, /* text is also written, hashed and compared */
  MAX_STACK = 128000 * 16,          /* bytes; a slot has 16 */
  CALM_STACK = 5000 * 16,           /* up to this size, moving the stack takes little time */
  SLACK = 1 << 20                   /* what Lua may need to end a program that was stopped */
};

typedef struct header {
  uint64_t made, shown; /* 0: no object; not shown */
} header;

_Static_assert(sizeof(header) % _Alignof(max_align_t) == 0, "what follows a header is aligned");

static void *refuse_block(pccl_sandbox *box, pccl_stop why, const void *block, size_t old_size, size_t new_size) {
  bool asked_again = box->refused.why == why && box->refused.block == block && box->refused.new_size == new_size;
  bool may_ask_again = why == PCCL_STOP_BYTES || why == PCCL_STOP_SYSTEM;
  pccl_sandbox_record_place(box);
  if (may_ask_again && !asked_again) {
    box->refused = (pccl_refusal){why, block, old_size, new_size};
    uint64_t price = box->bytes / BYTES_PER_INSTRUCTION; /* Lua collects all garbage now */
    box->spent = price > UINT64_MAX - box->spent ? UINT64_MAX : box->spent + price;
  } else {
    box->refused = (pccl_refusal){0};
    pccl_sandbox_stop(box, why);
  }
  return NULL;
}

/* One instruction can move the whole stack (each link of a chain of __call does), so the hook runs more often when the
 * stack is larger. */
static int interval_for(size_t stack) {
  enum { CALM_INTERVAL = 1000 };
  double share = stack > CALM_STACK ? (double)CALM_STACK / (double)stack : 1;
  int interval = (int)(CALM_INTERVAL * share * share);
  return interval > 1 ? interval : 1;
}

/* Some releases of Lua grow the stack by realloc, others make a new block of twice the size. */
static bool is_stack(const pccl_sandbox *box, const void *block, size_t kind, size_t new_size) {
  enum { EXTRA = 5 * 16 }; /* bytes that do not double */
  bool doubles = box->stack != NULL && block == NULL && kind == 0 && new_size == 2 * box->stack_size - EXTRA;
  return doubles || (block != NULL && block == box->stack);
}

static pccl_stop price_block(pccl_sandbox *box, const void *block, size_t old_size, size_t new_size, size_t grown) {
  size_t max = box->stop == PCCL_STOP_NONE ? box->max_bytes : box->max_bytes + SLACK;
  bool string = block == NULL && old_size == LUA_TSTRING; /* for a new block, old_size is the kind of object */
  if (string && new_size > PCCL_MAX_STRING + 64) {
    return PCCL_STOP_STRING;
  }
  if (new_size > MAX_STACK && is_stack(box, block, old_size, new_size)) {
    return PCCL_STOP_STACK;
  }
  if (box->bytes > max || grown > max - box->bytes) {
    return PCCL_STOP_BYTES;
  }
  if (box->stop == PCCL_STOP_NONE) {
    box->spent += grown / (string ? STRING_BYTES_PER_INSTRUCTION : BYTES_PER_INSTRUCTION);
    if (box->spent > box->budget) {
      return PCCL_STOP_INSTRUCTIONS;
    }
  }
  return PCCL_STOP_NONE;
}

static void number_object(pccl_sandbox *box, header *made, size_t kind) {
  *made = (header){0};
  if (kind == LUA_TTABLE || kind == LUA_TFUNCTION || kind == LUA_TUSERDATA) {
    made->made = ++box->made;
    box->last_userdata = kind == LUA_TUSERDATA ? made + 1 : box->last_userdata;
  }
}

static void set_stack(pccl_sandbox *box, const void *block, size_t size) {
  box->stack = block;
  box->stack_size = size;
  if (box->stop == PCCL_STOP_NONE) {
    pccl_sandbox_set_interval(box, interval_for(size));
  }
}

static void follow_stack(pccl_sandbox *box, const void *old_block, size_t kind, const void *block, size_t size) {
  bool is_new = old_block == NULL && kind == 0;
  if (box->learns_stack && (is_new || old_block != NULL)) {
    box->learns_stack = false;
    set_stack(box, block, size);
  } else if (old_block != NULL && old_block == box->stack) {
    set_stack(box, block, size);
  } else if (is_new) { /* the next stack, if the stack is freed now */
    box->newest = block;
    box->newest_size = size;
  }
}

void *pccl_sandbox_allocate(void *context, void *block, size_t old_size, size_t new_size) {
  pccl_sandbox *box = context;
  size_t held = block != NULL ? old_size + sizeof(header) : 0;
  header *old = block != NULL ? (header *)block - 1 : NULL;
  if (new_size == 0) {
    free(old);
    box->bytes -= held;
    if (block != NULL && block == box->stack) {
      set_stack(box, box->newest, box->newest_size);
    }
    return NULL;
  }
  if (new_size > SIZE_MAX - sizeof(header)) {
    return refuse_block(box, PCCL_STOP_BYTES, block, old_size, new_size);
  }
  size_t size = new_size + sizeof(header);
  if (size > held) {
    const pccl_refusal *refused = &box->refused;
    if (refused->why != PCCL_STOP_NONE && (refused->block != block || refused->new_size != new_size)) {
      pccl_sandbox_settle(box);
    }
    pccl_stop why = price_block(box, block, old_size, new_size, size - held);
    if (why != PCCL_STOP_NONE) {
      return refuse_block(box, why, block, old_size, new_size);
    }
  }
  header *grown = realloc(old, size);
  if (grown == NULL) {
    return size <= held ? block : refuse_block(box, PCCL_STOP_SYSTEM, block, old_size, new_size);
  }
  if (size > held) {
    box->refused = (pccl_refusal){0};
  }
  if (block == NULL) {
    number_object(box, grown, old_size);
  }
  box->bytes += size - held;
  follow_stack(box, block, old_size, grown + 1, new_size);
  return grown + 1;
}

void pccl_sandbox_learn(lua_State *lua) {
  pccl_sandbox *box = pccl_sandbox_of(lua);
  enum { MORE_THAN_A_NEW_STACK_HAS = 500 };
  box->learns_stack = true;
  luaL_checkstack(lua, MORE_THAN_A_NEW_STACK_HAS, NULL);
  box->learns_stack = false;
  for (int values = 0; values < 2; values++) {
    const char *memory = lua_newuserdatauv(lua, 1, values);
    box->userdata_offsets[values] = (size_t)(memory - (const char *)box->last_userdata);
    lua_pop(lua, 1);
  }
}

static header *header_of(lua_State *lua, int at) {
  const char *object = lua_topointer(lua, at);
  switch (lua_type(lua, at)) {
    case LUA_TTABLE: break;
    case LUA_TFUNCTION:
      if (lua_iscfunction(lua, at)) {
        if (lua_getupvalue(lua, at, 1) == NULL) {
          return NULL; /* a bare pointer */
        }
        lua_pop(lua, 1);
      }
      break;
    case LUA_TUSERDATA: {
      bool has_value = lua_getiuservalue(lua, at, 1) != LUA_TNONE;
      lua_pop(lua, 1);
      object -= pccl_sandbox_of(lua)->userdata_offsets[has_value];
      break;
    }
    default: return NULL;
  }
  return (header *)(uintptr_t)object - 1;
}

uint64_t pccl_sandbox_made(lua_State *lua, int at) {
  const header *of = header_of(lua, at);
  return of != NULL ? of->made : 0;
}

uint64_t pccl_sandbox_shown(lua_State *lua, int at) {
  header *of = header_of(lua, at);
  if (of != NULL && of->shown == 0) {
    of->shown = ++pccl_sandbox_of(lua)->shown;
  }
  return of != NULL ? of->shown : 0;
}
