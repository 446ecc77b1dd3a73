/* What a file is. Every kind of file that people hand to the command is told by its content, never by its name: the
 * table in kind.c has the kinds, kind_scan.c says how each is recognised. A reader that gets another kind than its own
 * fails with pccl_kind_check(), which says what the file is taken for and which command reads it. */
#ifndef PCCL_BASE_KIND_H
#define PCCL_BASE_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include <polyccl/types.h>

typedef enum pccl_kind {
  PCCL_KIND_TEXT, /* none of the others: perhaps a broken one, perhaps Lua */
  PCCL_KIND_JSON, /* JSON of no known kind, the like for XML */
  PCCL_KIND_XML,
  PCCL_KIND_EMPTY,
  PCCL_KIND_PLAN_TEXT,
  PCCL_KIND_PLAN_XML,
  PCCL_KIND_LUA,
  PCCL_KIND_TECCL,
  PCCL_KIND_SCCL,
  PCCL_KIND_FORESTCOLL,
  PCCL_KIND_TOPOLOGY,
  PCCL_KIND_TACCL_TOPOLOGY,
  PCCL_KIND_NCCL_TOPOLOGY,
  PCCL_KIND_HWLOC,
  PCCL_KIND_TRACE,
  PCCL_KIND_MSCCLPP, /* from here on: recognised, but read by nothing */
  PCCL_KIND_SCCL_OBJECT,
  PCCL_KIND_TACCL_SKETCH,
  PCCL_KIND_NCCL_GRAPHS,
  PCCL_KIND_CHAKRA,
  PCCL_KIND_PYTHON,
  PCCL_KIND_PAGE,
  PCCL_KIND_PICTURE,
  PCCL_KIND_OBJECT,
  PCCL_KIND_COMPRESSED,
  PCCL_KIND_UTF16,
  PCCL_KIND_BINARY,
  PCCL_KIND_COUNT
} pccl_kind;

/* What a file can serve as; a command may take several. */
enum { PCCL_USE_PLAN = 1, PCCL_USE_PROGRAM = 2, PCCL_USE_TOPOLOGY = 4, PCCL_USE_TRACE = 8 };

pccl_kind pccl_kind_of(const char *text, size_t length);

/* The uses of a kind, ORed. What is not recognised may turn out as anything: it has those whose reader knows best what
 * is wrong with it. */
unsigned pccl_kind_uses(pccl_kind kind);

/* INVALID, "NAME: this is ..., not ...", where the kind has none of `uses`. */
polyccl_result pccl_kind_check(const char *name, pccl_kind kind, unsigned uses);

/* That error for text that a reader has found to be none of its own. */
polyccl_result pccl_kind_refuse(const char *name, pccl_kind kind, unsigned uses);

#endif
