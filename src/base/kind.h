/* Kinds of files. The content of a file, never its name, tells its kind: kind.c has the table of kinds, kind_scan.c
 * recognises them. A reader that gets a file of another kind fails with pccl_kind_check(), whose message says what the
 * file is and which command reads it. */
#ifndef PCCL_BASE_KIND_H
#define PCCL_BASE_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include <polyccl/types.h>

typedef enum pccl_kind {
  PCCL_KIND_TEXT, /* none of the others; perhaps a broken one, perhaps Lua */
  PCCL_KIND_JSON, /* JSON, and then XML, of no known kind */
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
  PCCL_KIND_MSCCLPP, /* this and the following are recognised, but no command reads them */
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

/* What a file can be used as; a command may accept several. */
enum { PCCL_USE_PLAN = 1, PCCL_USE_PROGRAM = 2, PCCL_USE_TOPOLOGY = 4, PCCL_USE_TRACE = 8 };

pccl_kind pccl_kind_of(const char *text, size_t length);

/* Returns the uses of a kind, ORed. A file of no known kind has the uses whose readers give the best error message. */
unsigned pccl_kind_uses(pccl_kind kind);

/* Fails with INVALID, "NAME: this is ..., not ...", if the kind has none of `uses`. */
polyccl_result pccl_kind_check(const char *name, pccl_kind kind, unsigned uses);

/* Fails with that error, for a reader that has found the text not to be its own. */
polyccl_result pccl_kind_refuse(const char *name, pccl_kind kind, unsigned uses);

#endif
