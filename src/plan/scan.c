#include "plan/scan.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"

static inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static inline void skip_blanks(pccl_scan *scan) {
  while (scan->at < scan->end && is_blank(*scan->at)) {
    scan->at++;
  }
}

/* True where a word may end: blank, line end, comment. */
static inline bool is_at_boundary(const pccl_scan *scan) { return pccl_scan_at_end(scan) || is_blank(*scan->at); }

bool pccl_scan_line(pccl_scan *scan) {
  if (!scan->started) {
    scan->started = true;
    scan->line = 1;
    skip_blanks(scan);
    if (!pccl_scan_at_end(scan)) {
      return true;
    }
  }
  while (scan->at < scan->end) {
    const char *newline = memchr(scan->at, '\n', (size_t)(scan->end - scan->at));
    scan->at = newline != NULL ? newline + 1 : scan->end;
    if (scan->at == scan->end) {
      break;
    }
    scan->line++;
    skip_blanks(scan);
    if (!pccl_scan_at_end(scan)) {
      return true;
    }
  }
  return false;
}

pccl_word pccl_scan_word(pccl_scan *scan) {
  pccl_word word = {scan->at, 0};
  while (!is_at_boundary(scan)) {
    scan->at++;
  }
  word.len = (size_t)(scan->at - word.at);
  skip_blanks(scan);
  return word;
}

bool pccl_scan_accept(pccl_scan *scan, const char *text) {
  pccl_scan ahead = *scan;
  if (!pccl_word_is(pccl_scan_word(&ahead), text)) {
    return false;
  }
  *scan = ahead;
  return true;
}

polyccl_location pccl_scan_place(const pccl_scan *scan) { return (polyccl_location){scan->name, scan->line}; }

polyccl_result pccl_scan_expected(pccl_scan *scan, const char *what) {
  enum { SHOWN = 40 };
  char found[SHOWN + 1];
  pccl_scan ahead = *scan;
  pccl_word word = pccl_scan_word(&ahead);
  size_t n = word.len < SHOWN ? word.len : SHOWN;
  for (size_t i = 0; i < n; i++) {
    found[i] = (unsigned char)word.at[i] < ' ' || word.at[i] == 127 ? '?' : word.at[i];
  }
  found[n] = '\0';
  if (n == 0) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_scan_place(scan), "expected %s, found the line's end", what);
  }
  return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_scan_place(scan), "expected %s, found \"%s\"%s", what, found,
                      n < word.len ? "..." : "");
}

/* Digits only; false leaves the scanner where it was. */
static inline bool read_digits(pccl_scan *scan, uint64_t max, uint64_t *value) {
  const char *at = scan->at;
  uint64_t number = 0;
  while (at < scan->end && *at >= '0' && *at <= '9') {
    unsigned digit = (unsigned)(*at - '0');
    if (number > (UINT64_MAX - digit) / 10) {
      return false;
    }
    number = number * 10 + digit;
    at++;
  }
  if (at == scan->at || number > max) {
    return false;
  }
  scan->at = at;
  *value = number;
  return true;
}

polyccl_result pccl_scan_number(pccl_scan *scan, const char *what, uint64_t min, uint64_t max, uint64_t *value) {
  pccl_scan start = *scan;
  uint64_t number;
  if (!read_digits(scan, max, &number) || !is_at_boundary(scan) || number < min) {
    char text[160];
    snprintf(text, sizeof text, "%.80s (%llu to %llu)", what, (unsigned long long)min, (unsigned long long)max);
    return pccl_scan_expected(&start, text);
  }
  skip_blanks(scan);
  *value = number;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_scan_pair(pccl_scan *scan, const char *what, char separator, int32_t max_first, int32_t max_second,
                              int32_t *first, int32_t *second) {
  pccl_scan start = *scan;
  uint64_t a, b;
  bool right = read_digits(scan, (uint64_t)max_first, &a) && scan->at < scan->end && *scan->at == separator;
  if (right) {
    scan->at++;
    right = read_digits(scan, (uint64_t)max_second, &b) && is_at_boundary(scan);
  }
  if (!right) {
    return pccl_scan_expected(&start, what);
  }
  skip_blanks(scan);
  *first = (int32_t)a;
  *second = (int32_t)b;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_scan_lettered(pccl_scan *scan, const char *what, char letter, int32_t max, int32_t *value) {
  pccl_scan start = *scan;
  uint64_t number = 0;
  bool right = scan->at < scan->end && *scan->at == letter;
  if (right) {
    scan->at++;
    right = read_digits(scan, (uint64_t)max, &number) && is_at_boundary(scan);
  }
  if (!right) {
    return pccl_scan_expected(&start, what);
  }
  skip_blanks(scan);
  *value = (int32_t)number;
  return POLYCCL_SUCCESS;
}

static int hex_digit_value(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One character of a string, escapes resolved; -1: not a right one. */
static int read_string_character(pccl_scan *scan) {
  char c = *scan->at++;
  if (c != '\\') {
    return c == '\n' || c == '\0' ? -1 : (unsigned char)c;
  }
  if (scan->at == scan->end) {
    return -1;
  }
  switch (*scan->at++) {
    case '"': return '"';
    case '\\': return '\\';
    case 'n': return '\n';
    case 't': return '\t';
    case 'x': {
      int high = scan->end - scan->at >= 2 ? hex_digit_value(scan->at[0]) : -1;
      int low = high >= 0 ? hex_digit_value(scan->at[1]) : -1;
      if (low < 0 || high * 16 + low == 0) {
        return -1;
      }
      scan->at += 2;
      return high * 16 + low;
    }
    default: return -1;
  }
}

polyccl_result pccl_scan_string(pccl_scan *scan, const char *what, char **value) {
  pccl_scan start = *scan;
  if (scan->at == scan->end || *scan->at != '"') {
    return pccl_scan_expected(&start, what);
  }
  const char *close = scan->at + 1;
  while (close < scan->end && *close != '"' && *close != '\n') {
    close += *close == '\\' && close + 1 < scan->end ? 2 : 1;
  }
  if (close >= scan->end || *close != '"') {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_scan_place(scan), "the string has no closing quote");
  }
  char *text = pccl_array((size_t)(close - scan->at), 1);
  if (text == NULL) {
    return pccl_no_memory("a string");
  }
  size_t n = 0;
  scan->at++;
  while (scan->at < close) {
    int c = read_string_character(scan);
    if (c < 0 || scan->at > close) {
      free(text);
      return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_scan_place(scan),
                          "a string may hold \\\", \\\\, \\n, \\t and \\xHH (not \\x00), and no other escape");
    }
    text[n++] = (char)c;
  }
  text[n] = '\0';
  scan->at = close + 1;
  if (!is_at_boundary(scan)) {
    free(text);
    return pccl_scan_expected(scan, "a blank after the string");
  }
  skip_blanks(scan);
  *value = text;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_scan_end(pccl_scan *scan) {
  return pccl_scan_at_end(scan) ? POLYCCL_SUCCESS : pccl_scan_expected(scan, "the line's end");
}
