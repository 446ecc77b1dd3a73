/* Chooses among the plan's formats. */
#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "plan/formats.h"
#include "plan/plan.h"

polyccl_result polyccl_plan_parse(const char *name, const char *text, size_t length, polyccl_plan **plan) {
  if (length > PCCL_PLAN_MOST_BYTES) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%s: a plan of %zu bytes; the most is %zu", name, length,
                     PCCL_PLAN_MOST_BYTES);
  }
  return pccl_text_plan_read(name, text, length, plan);
}

polyccl_result polyccl_plan_read(const char *path, polyccl_plan **plan) {
  char *text;
  size_t length;
  PCCL_TRY(pccl_read_file(path, PCCL_PLAN_MOST_BYTES, &text, &length));
  polyccl_result result = polyccl_plan_parse(path, text, length, plan);
  free(text);
  return result;
}

polyccl_result polyccl_plan_write(const polyccl_plan *plan, polyccl_format format, FILE *to) {
  PCCL_TRY(pccl_plan_well_formed(plan));
  if (format != POLYCCL_FORMAT_PLAN) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "plan format number %d cannot be written", (int)format);
  }
  PCCL_TRY(pccl_text_plan_write(plan, to));
  return fflush(to) == 0 && ferror(to) == 0 ? POLYCCL_SUCCESS : pccl_fail_errno("cannot write the plan");
}
