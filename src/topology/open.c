/* Opens a topology: tells synthetic strings from paths, and the kinds of files from one another. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/kind.h"
#include "base/sized.h"
#include "base/vec.h"
#include "topology/topology.h"

enum { MAX_BYTES = 256 << 20, MAX_COPIES = 65536 };

/* `hints` may be NULL. */
static polyccl_result parse_with_hints(const char *name, const char *text, size_t length,
                                       const polyccl_topology_hints *hints, polyccl_topology **topology) {
  pccl_skip_mark(&text, &length);
  pccl_kind kind = pccl_kind_of(text, length);
  PCCL_TRY(pccl_kind_check(name, kind, PCCL_USE_TOPOLOGY));
  bool nccl = kind == PCCL_KIND_NCCL_TOPOLOGY || kind == PCCL_KIND_XML;
  if (hints != NULL && !nccl) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: the hints gpu and nic are for NCCL's XML, and this is another file",
                     name);
  }
  switch (kind) {
    case PCCL_KIND_EMPTY: return pccl_fail(POLYCCL_ERROR_INVALID, "%s: the file is empty, so it is no topology", name);
    case PCCL_KIND_NCCL_TOPOLOGY:
    case PCCL_KIND_XML: return pccl_topology_read_nccl(name, text, length, hints, topology);
    case PCCL_KIND_HWLOC: return pccl_topology_read_hwloc(name, text, length, topology);
    case PCCL_KIND_TACCL_TOPOLOGY: return pccl_topology_read_taccl(name, text, length, topology);
    default: return pccl_topology_read_json(name, text, length, topology);
  }
}

polyccl_result polyccl_topology_parse(const char *name, const char *text, size_t length, polyccl_topology **topology) {
  return parse_with_hints(name, text, length, NULL, topology);
}

static polyccl_result read_topology_file(const char *path, const polyccl_topology_hints *hints,
                                         polyccl_topology **topology) {
  char *text;
  size_t length;
  PCCL_TRY(pccl_read_file(path, MAX_BYTES, &text, &length));
  polyccl_result result = parse_with_hints(path, text, length, hints, topology);
  free(text);
  return result;
}

/* Splits "PATH:4" into the path and the number. False: there is no number, or a file has the whole name. */
static bool split_copies(const char *spec, char *path, int *copies) {
  const char *colon = strrchr(spec, ':');
  if (colon == NULL || colon == spec || access(spec, F_OK) == 0) {
    return false;
  }
  size_t digits = strspn(colon + 1, "0123456789");
  if (digits == 0 || digits > 9 || colon[1 + digits] != '\0') {
    return false;
  }
  memcpy(path, spec, (size_t)(colon - spec));
  path[colon - spec] = '\0';
  *copies = atoi(colon + 1);
  return true;
}

static polyccl_result read_topology_copies(const char *path, int copies, const polyccl_topology_hints *hints,
                                           polyccl_topology **topology) {
  if (copies < 1 || copies > MAX_COPIES) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s:%d: the number of machines must be within 1 .. %d", path, copies,
                     MAX_COPIES);
  }
  polyccl_topology *base;
  PCCL_TRY(read_topology_file(path, hints, &base));
  polyccl_result result = pccl_topology_repeat(base, copies, topology);
  polyccl_topology_destroy(base);
  return result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "%s:%d: ", path, copies);
}

polyccl_result polyccl_topology_open(const char *spec, polyccl_topology **topology) {
  return polyccl_topology_open_hinted(spec, NULL, topology);
}

polyccl_result polyccl_topology_open_hinted(const char *spec, const polyccl_topology_hints *hints,
                                            polyccl_topology **topology) {
  polyccl_topology_hints own = POLYCCL_TOPOLOGY_NO_HINTS;
  PCCL_TRY(pccl_sized_read("polyccl_topology_hints", hints, &own, sizeof own, sizeof own));
  hints = own.gpu != NULL || own.nic != NULL ? &own : NULL;
  if (hints != NULL && pccl_synthetic_known(spec)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: the hints gpu and nic are for NCCL's XML, not for a shipped machine",
                     spec);
  }
  if (pccl_synthetic_known(spec)) {
    return pccl_synthetic_open(spec, topology);
  }
  if (strpbrk(spec, "/.") == NULL && access(spec, F_OK) != 0) {
    return pccl_synthetic_open(spec, topology); /* which says that there is no such machine */
  }
  char *path = pccl_strdup(spec);
  if (path == NULL) {
    return pccl_no_memory("a path");
  }
  int copies;
  polyccl_result result = split_copies(spec, path, &copies) ? read_topology_copies(path, copies, hints, topology)
                                                            : read_topology_file(path, hints, topology);
  free(path);
  return result;
}
