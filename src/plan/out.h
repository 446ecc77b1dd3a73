/* A buffer for text that goes to a file: plans have millions of steps, and fprintf() would cost more than all other
 * work. Set `len` to 0 and `to` to the file before use, and call pccl_out_flush() at the end; failures stay in
 * ferror(to). */
#ifndef PCCL_PLAN_OUT_H
#define PCCL_PLAN_OUT_H

#include <stdint.h>
#include <stdio.h>

typedef struct pccl_out {
  FILE *to;
  size_t len;
  char text[1 << 16];
} pccl_out;

static inline void pccl_out_flush(pccl_out *out) {
  fwrite(out->text, 1, out->len, out->to);
  out->len = 0;
}

static inline void pccl_out_char(pccl_out *out, char c) {
  if (out->len == sizeof out->text) {
    pccl_out_flush(out);
  }
  out->text[out->len++] = c;
}

static inline void pccl_out_put(pccl_out *out, const char *text) {
  for (; *text != '\0'; text++) {
    pccl_out_char(out, *text);
  }
}

static inline void pccl_out_number(pccl_out *out, uint64_t number) {
  char digits[20];
  int n = 0;
  do {
    digits[n++] = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  while (n > 0) {
    pccl_out_char(out, digits[--n]);
  }
}

#endif
