/* Chooses among the plan's formats. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "plan/formats.h"
#include "plan/plan.h"

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static size_t skip_spaces(const char *text, size_t length, size_t at) {
  while (at < length && is_space(text[at])) {
    at++;
  }
  return at;
}

/* After a byte order mark and blanks. */
static size_t start_of(const char *text, size_t length) {
  return skip_spaces(text, length, length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0);
}

/* The first character that is no blank tells the formats apart. */
static bool is_xml(const char *text, size_t length) {
  size_t at = start_of(text, length);
  return at < length && text[at] == '<';
}

static bool begins(const char *text, size_t length, size_t at, const char *word) {
  size_t n = strlen(word);
  return length - at >= n && memcmp(text + at, word, n) == 0;
}

/* The end of what begins at `at` and ends with `mark`. */
static size_t skip_past(const char *text, size_t length, size_t at, const char *mark) {
  const char *end = memmem(text + at, length - at, mark, strlen(mark));
  return end != NULL ? (size_t)(end - text) + strlen(mark) : length;
}

bool pccl_is_plan(const char *text, size_t length) {
  size_t at = start_of(text, length);
  while (begins(text, length, at, "#")) {
    at = skip_spaces(text, length, skip_past(text, length, at, "\n"));
  }
  while (begins(text, length, at, "<?") || begins(text, length, at, "<!--")) {
    at = skip_spaces(text, length, skip_past(text, length, at, begins(text, length, at, "<?") ? "?>" : "-->"));
  }
  bool trees = begins(text, length, at, "<Algo") || begins(text, length, at, "<tree");
  return begins(text, length, at, "polyccl-plan") || (begins(text, length, at, "<") && !trees);
}

polyccl_result pccl_is_plan_file(const char *path, bool *plan) {
  struct stat status;
  if (stat(path, &status) == 0 && S_ISFIFO(status.st_mode)) {
    *plan = true; /* a pipe can be read only once; plans come through pipes, programs stand in files */
    return POLYCCL_SUCCESS;
  }
  char *text;
  size_t length;
  PCCL_TRY(pccl_read_file(path, PCCL_PLAN_MOST_BYTES, &text, &length));
  *plan = pccl_is_plan(text, length);
  free(text);
  return POLYCCL_SUCCESS;
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
    case POLYCCL_FORMAT_XML_AZURE:
    case POLYCCL_FORMAT_XML_RCCL: PCCL_TRY(pccl_xml_plan_write(plan, format, to)); break;
    default: return pccl_fail(POLYCCL_ERROR_INVALID, "unknown plan format number %d", (int)format);
  }
  return fflush(to) == 0 && ferror(to) == 0 ? POLYCCL_SUCCESS : pccl_fail_errno("cannot write the plan");
}
