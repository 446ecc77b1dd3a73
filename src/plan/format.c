/* Chooses among the plan's formats. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "plan/formats.h"
#include "plan/plan.h"

/* The first character that is no blank tells the formats apart. */
static bool is_xml(const char *text, size_t length) {
  static const char mark[] = "\xef\xbb\xbf"; /* a UTF-8 byte order mark */
  size_t i = length >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
  while (i < length && strchr(" \t\r\n", text[i]) != NULL && text[i] != '\0') {
    i++;
  }
  return i < length && text[i] == '<';
}

polyccl_result polyccl_plan_parse(const char *name, const char *text, size_t length, polyccl_plan **plan) {
  if (length > PCCL_PLAN_MOST_BYTES) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%s: a plan of %zu bytes; the most is %zu", name, length,
                     PCCL_PLAN_MOST_BYTES);
  }
  return is_xml(text, length) ? pccl_xml_plan_read(name, text, length, plan)
                              : pccl_text_plan_read(name, text, length, plan);
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
  switch (format) {
    case POLYCCL_FORMAT_PLAN: PCCL_TRY(pccl_text_plan_write(plan, to)); break;
    case POLYCCL_FORMAT_XML:
    case POLYCCL_FORMAT_XML_AZURE: PCCL_TRY(pccl_xml_plan_write(plan, format, to)); break;
    default: return pccl_fail(POLYCCL_ERROR_INVALID, "unknown plan format number %d", (int)format);
  }
  return fflush(to) == 0 && ferror(to) == 0 ? POLYCCL_SUCCESS : pccl_fail_errno("cannot write the plan");
}
