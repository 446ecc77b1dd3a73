/* Reads the values of attributes, and keeps what is taken instead of a value that cannot be used. */
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "topology/nccl_xml.h"

enum { MAX_ASSUMPTIONS = 64 };

void pccl_nccl_refuse(pccl_nccl *n, int32_t element, const char *format, ...) {
  if (n->result != POLYCCL_SUCCESS) {
    return;
  }
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  n->result = pccl_fail(POLYCCL_ERROR_INVALID, "%s:%lu: %s", n->file, n->elements.data[element].line, message);
}

void pccl_nccl_assume(pccl_nccl *n, int32_t element, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  for (size_t i = 0; i < n->assumptions.len; i++) {
    if (strcmp(n->assumptions.data[i].text, text) == 0) {
      n->assumptions.data[i].count++;
      return;
    }
  }
  if (n->assumptions.len >= MAX_ASSUMPTIONS) {
    n->more_assumptions++;
    return;
  }
  pccl_nccl_assumption kept = {pccl_strdup(text), element >= 0 ? n->elements.data[element].line : 0, 1};
  if (kept.text == NULL || !pccl_vec_push(&n->assumptions, kept)) {
    free(kept.text);
    n->result = n->result == POLYCCL_SUCCESS ? pccl_no_memory("a topology's assumptions") : n->result;
  }
}

polyccl_result pccl_nccl_tell_assumptions(pccl_nccl *n) {
  for (size_t i = 0; i < n->assumptions.len; i++) {
    const pccl_nccl_assumption *a = &n->assumptions.data[i];
    char text[640], more[64] = "";
    if (a->count > 1) {
      snprintf(more, sizeof more, " and %zu more", a->count - 1);
    }
    if (a->line > 0) {
      snprintf(text, sizeof text, "%s (line %lu%s)", a->text, a->line, more);
    } else {
      snprintf(text, sizeof text, "%s", a->text);
    }
    PCCL_TRY(pccl_builder_assume(&n->builder, text));
    PCCL_LOG(PCCL_LOG_WARN, "%s: %s", n->file, text);
  }
  if (n->more_assumptions > 0) {
    char text[64];
    snprintf(text, sizeof text, "%zu more such values were replaced", n->more_assumptions);
    PCCL_TRY(pccl_builder_assume(&n->builder, text));
  }
  return POLYCCL_SUCCESS;
}

const char *pccl_nccl_value(const pccl_nccl *n, int32_t element, const char *name) {
  const pccl_nccl_element *e = &n->elements.data[element];
  for (size_t i = e->attribute; i < e->attribute + e->attributes; i++) {
    if (strcmp(n->text.data + n->attributes.data[i].name, name) == 0) {
      return n->text.data + n->attributes.data[i].value;
    }
  }
  return NULL;
}

bool pccl_nccl_starts(const pccl_nccl *n, int32_t element, const char *name, const char *prefix) {
  const char *value = pccl_nccl_value(n, element, name);
  return value != NULL && strncmp(value, prefix, strlen(prefix)) == 0;
}

bool pccl_nccl_number(const pccl_nccl *n, int32_t element, const char *name, double min, double max, double *number) {
  const char *text = pccl_nccl_value(n, element, name);
  char *end = NULL;
  double value = text != NULL ? strtod(text, &end) : 0;
  if (text == NULL || end == text || !(value >= min && value <= max)) {
    return false;
  }
  *number = value;
  return true;
}

bool pccl_nccl_busid(const char *text, uint64_t *id) {
  uint64_t value = 0;
  int digits = 0; /* without leading zeros */
  bool any = false;
  for (; text != NULL && (isxdigit((unsigned char)*text) || *text == ':' || *text == '.'); text++) {
    if (*text == ':' || *text == '.') {
      continue;
    }
    int digit = isdigit((unsigned char)*text) ? *text - '0' : tolower((unsigned char)*text) - 'a' + 10;
    any = true;
    digits += digits > 0 || digit > 0;
    if (digits > 16) {
      return false;
    }
    value = value << 4 | (uint64_t)digit;
  }
  *id = value;
  return any;
}

bool pccl_nccl_busid_hidden(const char *text) {
  int digits = 0;
  for (; text != NULL && *text != '\0' && *text != '.'; text++) {
    if (*text != ':' && tolower((unsigned char)*text) != 'f') {
      return false;
    }
    digits += *text != ':';
  }
  return digits >= 8;
}

/* ---- PCIe ---- */

double pccl_nccl_pcie(pccl_nccl *n, int32_t pci) {
  if (n->elements.data[pci].pcie > 0) {
    return n->elements.data[pci].pcie;
  }
  const char *speed_text = pccl_nccl_value(n, pci, "link_speed"), *width_text = pccl_nccl_value(n, pci, "link_width");
  double speed, width;
  if (!pccl_nccl_number(n, pci, "link_speed", 1, 1000, &speed)) {
    speed = 8;
    pccl_nccl_assume(n, pci, "a pci element has link_speed=\"%.40s\"; 8 GT/s are taken, as NCCL does",
                     speed_text != NULL ? speed_text : "");
  }
  if (!pccl_nccl_number(n, pci, "link_width", 1, 32, &width)) { /* Linux gives 0 or 255 for an unknown width */
    width = 16;
    pccl_nccl_assume(n, pci, "a pci element has link_width=\"%.40s\"; 16 lanes are taken",
                     width_text != NULL ? width_text : "");
  }
  double coding = speed < 8 ? 0.8 : 128.0 / 130.0;
  return n->elements.data[pci].pcie = speed * width * coding / 8;
}
