/* One thread reads and writes LL and LL128 lines: the C form of generated kernels. The lines are those of lines.h,
 * which explains why their order is right. This header uses the compiler's atomics, since generated files carry no
 * system header for them. */
#ifndef PCCL_KERNEL_LINES_C_H
#define PCCL_KERNEL_LINES_C_H

PCCL_FN int pccl_k_lines_arrived(int protocol, const char *slot, uint64_t *at, size_t end, uint64_t message) {
  if (protocol == PCCL_K_LL) {
    const uint64_t *word = (const uint64_t *)(const void *)slot;
    for (; *at < end; *at += PCCL_K_LL_DATA) {
      if ((pccl_k_load_relaxed(&word[*at / PCCL_K_LL_DATA]) >> 32) != pccl_k_ll_flag(message) >> 32) {
        return 0;
      }
    }
    return 1;
  }
  for (; *at < end; *at += PCCL_K_LL128_DATA) {
    const char *line = slot + *at / PCCL_K_LL128_DATA * PCCL_K_LL128_LINE;
    if (pccl_k_load((const uint64_t *)(const void *)line) != message + 1) {
      return 0;
    }
  }
  return 1;
}

/* The loops copy whole words and lines, whose size is constant; the rest is copied after them. */
PCCL_FN void pccl_k_lines_read(int protocol, const char *slot, size_t at, char *dst, size_t bytes) {
  if (protocol == PCCL_K_LL) {
    const uint64_t *word = (const uint64_t *)(const void *)slot + at / PCCL_K_LL_DATA;
    size_t whole = bytes / PCCL_K_LL_DATA, left = bytes % PCCL_K_LL_DATA;
    for (size_t i = 0; i < whole; i++) {
      uint32_t data = (uint32_t)pccl_k_load_relaxed(&word[i]);
      memcpy(dst + i * PCCL_K_LL_DATA, &data, PCCL_K_LL_DATA);
    }
    if (left > 0) {
      uint32_t data = (uint32_t)pccl_k_load_relaxed(&word[whole]);
      memcpy(dst + whole * PCCL_K_LL_DATA, &data, left);
    }
    return;
  }
  const char *line = slot + at / PCCL_K_LL128_DATA * PCCL_K_LL128_LINE;
  for (; bytes >= PCCL_K_LL128_DATA; bytes -= PCCL_K_LL128_DATA) {
    memcpy(dst, line + 8, PCCL_K_LL128_DATA);
    dst += PCCL_K_LL128_DATA;
    line += PCCL_K_LL128_LINE;
  }
  memcpy(dst, line + 8, bytes);
}

PCCL_FN void pccl_k_ll_write(uint64_t *word, const char *src, size_t bytes, size_t end, uint64_t flag) {
  size_t whole = bytes / PCCL_K_LL_DATA, left = bytes % PCCL_K_LL_DATA, i = 0;
  for (; i < whole; i++) {
    uint32_t data;
    memcpy(&data, src + i * PCCL_K_LL_DATA, PCCL_K_LL_DATA);
    pccl_k_store_relaxed(&word[i], flag | data);
  }
  if (left > 0) {
    uint32_t data = 0;
    memcpy(&data, src + whole * PCCL_K_LL_DATA, left);
    pccl_k_store_relaxed(&word[i++], flag | data);
  }
  for (; i * PCCL_K_LL_DATA < end; i++) {
    pccl_k_store_relaxed(&word[i], flag);
  }
}

/* Writes `bytes` of data and then flags without data up to `end`, both counted from `at`, the start of a line. */
PCCL_FN void pccl_k_lines_write(int protocol, char *slot, size_t at, const char *src, size_t bytes, size_t end,
                                uint64_t message) {
  if (protocol == PCCL_K_LL) {
    pccl_k_ll_write((uint64_t *)(void *)slot + at / PCCL_K_LL_DATA, src, bytes, end, pccl_k_ll_flag(message));
    return;
  }
  char *line = slot + at / PCCL_K_LL128_DATA * PCCL_K_LL128_LINE,
       *last = line + (end + PCCL_K_LL128_DATA - 1) / PCCL_K_LL128_DATA * PCCL_K_LL128_LINE;
  for (; bytes >= PCCL_K_LL128_DATA; bytes -= PCCL_K_LL128_DATA) {
    memcpy(line + 8, src, PCCL_K_LL128_DATA);
    pccl_k_store((uint64_t *)(void *)line, message + 1);
    src += PCCL_K_LL128_DATA;
    line += PCCL_K_LL128_LINE;
  }
  if (bytes > 0) {
    memcpy(line + 8, src, bytes);
  }
  for (; line < last; line += PCCL_K_LL128_LINE) {
    pccl_k_store((uint64_t *)(void *)line, message + 1);
  }
}

/* Decodes, reduces and encodes one piece after another, so that a piece stays in L1. */
PCCL_FN int pccl_k_lines_move(const pccl_k_call *c, int protocol, int op, const char *in, uint64_t in_number, char *out,
                              uint64_t out_number, pccl_k_span src, pccl_k_span dst, size_t n, size_t at,
                              uint64_t addends) {
  (void)in_number; /* pccl_k_lines_arrived() has checked every flag */
  size_t e = c->element, bytes = n * e;
  if (op == PCCL_K_SEND) {
    pccl_k_lines_write(protocol, out, at, src.at, src.n * e, bytes, out_number);
    return 0;
  }
  if (op == PCCL_K_RECV) {
    pccl_k_lines_read(protocol, in, at, dst.at, dst.n * e);
    return 0;
  }
  char piece[PCCL_K_PIECE] __attribute__((aligned(64)));
  for (size_t i = 0; i < bytes; i += PCCL_K_PIECE) {
    size_t now = pccl_k_min(PCCL_K_PIECE, bytes - i);
    pccl_k_lines_read(protocol, in, at + i, piece, now);
    if (op != PCCL_K_RCS && src.n * e > i) {
      pccl_k_reduce(c, piece, NULL, src.at + i, piece, pccl_k_min(now, src.n * e - i) / e, addends);
    }
    if (op != PCCL_K_RRS && dst.n * e > i) {
      memcpy(dst.at + i, piece, pccl_k_min(now, dst.n * e - i));
    }
    if (op != PCCL_K_RRC) {
      pccl_k_lines_write(protocol, out, at + i, piece, now, now, out_number);
    }
  }
  return 0;
}

#endif
