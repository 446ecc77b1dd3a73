#include "base/escape.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

static const char replacement[] = "\xEF\xBF\xBD";

/* Bytes of the UTF-8 character at `text`, 0 for a malformed one (overlong, surrogate, above U+10FFFF, cut off). */
static size_t utf8_length(const unsigned char *text) {
  static const uint32_t min_code[] = {0, 0, 0x80, 0x800, 0x10000};
  if (text[0] < 0x80) {
    return 1;
  }
  size_t length = text[0] >= 0xF0 && text[0] < 0xF8 ? 4 : text[0] >= 0xE0 && text[0] < 0xF0 ? 3 : 2;
  if (text[0] < 0xC0 || text[0] >= 0xF8) {
    return 0;
  }
  uint32_t code = text[0] & (0x7Fu >> length);
  for (size_t i = 1; i < length; i++) {
    if ((text[i] & 0xC0) != 0x80) {
      return 0;
    }
    code = code << 6 | (text[i] & 0x3Fu);
  }
  bool wrong = code < min_code[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000);
  return wrong || code == 0xFFFE || code == 0xFFFF ? 0 : length;
}

void pccl_escape_xml(pccl_text *out, const char *text) {
  for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
    size_t length = utf8_length(at);
    if (length == 1 && (*at == '<' || *at == '>' || *at == '&' || *at == '"' || *at == '\'')) {
      pccl_text_add(out, "&#%d;", *at);
    } else if (length == 0 || (*at < 0x20 && *at != '\t' && *at != '\n' && *at != '\r') || *at == 0x7F) {
      pccl_text_bytes(out, replacement, 3);
    } else {
      pccl_text_bytes(out, (const char *)at, length);
    }
    at += length == 0 ? 1 : length;
  }
}

void pccl_escape_json(pccl_text *out, const char *text) {
  pccl_text_bytes(out, "\"", 1);
  for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
    size_t length = utf8_length(at);
    if (length == 0) {
      pccl_text_bytes(out, replacement, 3);
    } else if (*at == '"' || *at == '\\') {
      pccl_text_add(out, "\\%c", *at);
    } else if (*at < 0x20 || *at == 0x7F || *at == '<' || *at == '>' || *at == '&') {
      pccl_text_add(out, "\\u%04x", *at);
    } else {
      pccl_text_bytes(out, (const char *)at, length);
    }
    at += length == 0 ? 1 : length;
  }
  pccl_text_bytes(out, "\"", 1);
}

void pccl_json_number(pccl_text *out, double value) {
  char digits[400]; /* DBL_MAX has 309 digits */
  int length = snprintf(digits, sizeof digits, "%.6f", isfinite(value) ? value : 0);
  while (digits[length - 1] == '0') {
    length--;
  }
  length -= digits[length - 1] < '0';
  for (int i = 0; i < length; i++) {
    digits[i] = digits[i] == ',' ? '.' : digits[i]; /* the locale's decimal sign */
  }
  pccl_text_bytes(out, digits, (size_t)length);
}
