/* A scanner for line-based text: items are words separated by blanks, '#' starts a comment. No memory per word.
 *
 *     while (pccl_scan_line(&scan)) {      // stands at a line's first word
 *       PCCL_TRY(pccl_scan_number(&scan, "a rank", 0, 7, &n));
 *       PCCL_TRY(pccl_scan_end(&scan));    // nothing else on the line
 *     }
 * Errors are INVALID with "name:line: expected WHAT, found ...". */
#ifndef PCCL_PLAN_SCAN_H
#define PCCL_PLAN_SCAN_H

#include <stdbool.h>
#include <string.h>

#include <polyccl/types.h>

typedef struct pccl_scan {
  const char *at, *end; /* at: the next character, never a blank between calls */
  const char *name;
  int32_t line;
  bool started;
} pccl_scan;

typedef struct pccl_word {
  const char *at;
  size_t len;
} pccl_word;

/* Goes to the next line that has a word; whatever is left of this one is passed over. False: no more. */
bool pccl_scan_line(pccl_scan *scan);

/* True at the line's end. */
static inline bool pccl_scan_at_end(const pccl_scan *scan) {
  return scan->at == scan->end || *scan->at == '\n' || *scan->at == '#';
}

/* Consumes the next word; empty at the line's end. */
pccl_word pccl_scan_word(pccl_scan *scan);
static inline bool pccl_word_is(pccl_word word, const char *text) {
  return strlen(text) == word.len && memcmp(word.at, text, word.len) == 0;
}
/* Consumes the next word if it is `text`. */
bool pccl_scan_accept(pccl_scan *scan, const char *text);

/* Consumes a decimal number in [min, max], a whole word. */
polyccl_result pccl_scan_number(pccl_scan *scan, const char *what, uint64_t min, uint64_t max, uint64_t *value);
/* Consumes "A<separator>B", both within [0, max]. */
polyccl_result pccl_scan_pair(pccl_scan *scan, const char *what, char separator, int32_t max_first, int32_t max_second,
                              int32_t *first, int32_t *second);
/* Consumes `letter`, then a number up to `max`: x4. */
polyccl_result pccl_scan_lettered(pccl_scan *scan, const char *what, char letter, int32_t max, int32_t *value);
/* Consumes a string in double quotes with \" \\ \n \t \xHH; *value is the caller's to free. */
polyccl_result pccl_scan_string(pccl_scan *scan, const char *what, char **value);
polyccl_result pccl_scan_end(pccl_scan *scan);

polyccl_location pccl_scan_place(const pccl_scan *scan);
/* The error "expected WHAT, found <the next word>". */
polyccl_result pccl_scan_expected(pccl_scan *scan, const char *what) __attribute__((cold));

#endif
