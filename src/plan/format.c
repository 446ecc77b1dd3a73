/* Chooses the reader and the writer of a plan by its format. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/kind.h"
#include "plan/formats.h"
#include "plan/plan.h"

static bool is_plan_xml_kind(pccl_kind kind) { return kind == PCCL_KIND_PLAN_XML || kind == PCCL_KIND_XML; }

static bool is_pipe(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
}

polyccl_result pccl_is_plan_file(const char *path, bool *plan) {
  if (is_pipe(path)) {
    *plan = true; /* a pipe can be read only once; only plans may come through pipes */
    return POLYCCL_SUCCESS;
  }
  char *text;
  size_t length;
  PCCL_TRY(pccl_read_file(path, PCCL_PLAN_MAX_BYTES, &text, &length));
  pccl_kind kind = pccl_kind_of(text, length);
  polyccl_result result = pccl_kind_check(path, kind, PCCL_USE_PLAN | PCCL_USE_PROGRAM);
  if (result == POLYCCL_SUCCESS) {
    *plan = kind == PCCL_KIND_PLAN_TEXT || is_plan_xml_kind(kind);
  }
  free(text);
  return result;
}

/* Gives a plan that names no depth the min depth, so that its users find a real number. A wrong plan may have no such
 * depth: it keeps 0, and the verifier says what is wrong. */
static polyccl_result resolve_fifo_depth(polyccl_plan *plan) {
  if (plan->fifo_depth > 0) {
    return POLYCCL_SUCCESS;
  }
  polyccl_result result = pccl_plan_min_depth(plan, &plan->fifo_depth);
  return result == POLYCCL_ERROR_MEMORY ? result : POLYCCL_SUCCESS;
}

polyccl_result polyccl_plan_parse(const char *name, const char *text, size_t length, polyccl_plan **plan) {
  if (length > PCCL_PLAN_MAX_BYTES) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%s: the plan has %zu bytes; at most %zu are supported", name, length,
                     PCCL_PLAN_MAX_BYTES);
  }
  pccl_skip_mark(&text, &length);
  pccl_kind kind = pccl_kind_of(text, length);
  PCCL_TRY(pccl_kind_check(name, kind, PCCL_USE_PLAN));
  polyccl_plan *read = NULL;
  PCCL_TRY(is_plan_xml_kind(kind) ? pccl_xml_plan_read(name, text, length, &read)
                                  : pccl_text_plan_read(name, text, length, &read));
  polyccl_result result = resolve_fifo_depth(read);
  if (result != POLYCCL_SUCCESS) {
    polyccl_plan_destroy(read);
    return result;
  }
  *plan = read;
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_plan_read(const char *path, polyccl_plan **plan) {
  char *text;
  size_t length;
  PCCL_TRY(pccl_read_file(path, PCCL_PLAN_MAX_BYTES, &text, &length));
  bool program = pccl_kind_uses(pccl_kind_of(text, length)) == PCCL_USE_PROGRAM;
  polyccl_result result =
      program && is_pipe(path)
          ? pccl_fail(POLYCCL_ERROR_INVALID,
                      "%s: this is a program, but only plans are read from a pipe; save the program as a file", path)
          : polyccl_plan_parse(path, text, length, plan);
  free(text);
  return result;
}

polyccl_result polyccl_plan_write(const polyccl_plan *plan, polyccl_format format, FILE *to) {
  PCCL_TRY(pccl_plan_well_formed(plan));
  switch (format) {
    case POLYCCL_FORMAT_PLAN: PCCL_TRY(pccl_text_plan_write(plan, to)); break;
    case POLYCCL_FORMAT_XML:
    case POLYCCL_FORMAT_XML_AZURE:
    case POLYCCL_FORMAT_XML_RCCL: PCCL_TRY(pccl_xml_plan_write(plan, format, to)); break;
    default: return pccl_fail(POLYCCL_ERROR_INVALID, "unknown plan format number %d", (int)format);
  }
  return fflush(to) == 0 && ferror(to) == 0 ? POLYCCL_SUCCESS : pccl_fail_errno("cannot write the plan");
}
