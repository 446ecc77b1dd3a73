/* The line protocols: data and its arrival travel together, so a small message costs one transfer of a cache line.
 *
 * LL. A 64-bit word holds 4 bytes of data and a 32-bit flag, written and read by one relaxed atomic access. C11 lets no
 * reader see half of an atomic store, so a word with the awaited flag carries its data with it; no order between words
 * is needed, since each has its own flag. The reader may load a word again after it saw the flag: read-read coherence
 * gives the same or a later value, and there is no later one until the reader has given the slot back.
 *
 * LL128. A 128-byte line holds a 64-bit flag and 120 bytes of data. The writer stores the data, then the flag with
 * release; the reader loads the flag with acquire, then the data. That is C11's ordinary message passing, one per line:
 * right on every memory model, without any assumption about vector stores (on x86 both are plain moves; on Arm one
 * stlr and one ldar a line). The flag stands first, so that a message of up to 56 bytes touches one 64-byte line.
 *
 * A flag must differ from all that the word may still hold. LL128's is the message's 64-bit number, which never comes
 * again. LL's has 31 bits of the number and the top bit set (fresh memory is 0), and the sender wipes the ring every
 * 2^30 messages, so no flag older than that is left.
 *
 * Sizes in bytes of payload; a piece of a message starts at a line's start (pccl_line_pitch). No OS calls: this file
 * also serves generated kernels. */
#ifndef PCCL_KERNEL_LINES_H
#define PCCL_KERNEL_LINES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
  PCCL_LL_PAYLOAD = 4,
  PCCL_LL128_PAYLOAD = 120,
  PCCL_LL128_BYTES = 128,
  /* Payload per round of decoding, reducing, encoding: whole lines and whole elements, and it stays in L1. */
  PCCL_LINE_BLOCK = 16 * PCCL_LL128_PAYLOAD
};

typedef struct pccl_ll128_line {
  _Atomic uint64_t flag;
  unsigned char data[PCCL_LL128_PAYLOAD];
} pccl_ll128_line;

static inline uint32_t pccl_ll_flag(uint64_t message) { return (uint32_t)message | 0x80000000u; }
static inline uint64_t pccl_ll128_flag(uint64_t message) { return message + 1; }

/* Asks for a line that will be written soon: when the reader has it, its way back is as long as that of a message. */
static inline void pccl_will_write(const void *line) {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
  __builtin_prefetch(line, 1);
#endif
}

/* ---- LL ---- */

static inline void pccl_ll_write(char *slot, size_t at, const void *src, size_t bytes, uint64_t message) {
  _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)slot + at / PCCL_LL_PAYLOAD;
  uint64_t flag = (uint64_t)pccl_ll_flag(message) << 32;
  const char *from = src;
  uint32_t data;
  size_t whole = bytes / PCCL_LL_PAYLOAD;
  for (size_t i = 0; i < whole; i++) {
    memcpy(&data, from + i * PCCL_LL_PAYLOAD, sizeof data);
    atomic_store_explicit(&word[i], flag | data, memory_order_relaxed);
  }
  if (bytes % PCCL_LL_PAYLOAD != 0) {
    data = 0;
    memcpy(&data, from + whole * PCCL_LL_PAYLOAD, bytes % PCCL_LL_PAYLOAD);
    atomic_store_explicit(&word[whole], flag | data, memory_order_relaxed);
  }
}

/* Flags without data, for what lies beyond a short chunk's end. `at` is rounded up to a line. */
static inline void pccl_ll_pad(char *slot, size_t at, size_t end, uint64_t message) {
  _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)slot;
  uint64_t flag = (uint64_t)pccl_ll_flag(message) << 32;
  for (size_t i = (at + PCCL_LL_PAYLOAD - 1) / PCCL_LL_PAYLOAD; i * PCCL_LL_PAYLOAD < end; i++) {
    atomic_store_explicit(&word[i], flag, memory_order_relaxed);
  }
}

/* Payload up to `end` that has arrived, a multiple of the payload of a line, looking from *at on. */
static inline bool pccl_ll_arrived(const char *slot, size_t *at, size_t end, uint64_t message) {
  const _Atomic uint64_t *word = (const _Atomic uint64_t *)(const void *)slot;
  uint32_t flag = pccl_ll_flag(message);
  for (; *at < end; *at += PCCL_LL_PAYLOAD) {
    if ((uint32_t)(atomic_load_explicit(&word[*at / PCCL_LL_PAYLOAD], memory_order_relaxed) >> 32) != flag) {
      return false;
    }
  }
  return true;
}

static inline void pccl_ll_read(const char *slot, size_t at, void *dst, size_t bytes) {
  const _Atomic uint64_t *word = (const _Atomic uint64_t *)(const void *)slot + at / PCCL_LL_PAYLOAD;
  char *to = dst;
  size_t whole = bytes / PCCL_LL_PAYLOAD;
  for (size_t i = 0; i < whole; i++) {
    uint32_t data = (uint32_t)atomic_load_explicit(&word[i], memory_order_relaxed);
    memcpy(to + i * PCCL_LL_PAYLOAD, &data, sizeof data);
  }
  if (bytes % PCCL_LL_PAYLOAD != 0) {
    uint32_t data = (uint32_t)atomic_load_explicit(&word[whole], memory_order_relaxed);
    memcpy(to + whole * PCCL_LL_PAYLOAD, &data, bytes % PCCL_LL_PAYLOAD);
  }
}

/* ---- LL128 ---- */

static inline void pccl_ll128_write(char *slot, size_t at, const void *src, size_t bytes, uint64_t message) {
  pccl_ll128_line *line = (pccl_ll128_line *)(void *)slot + at / PCCL_LL128_PAYLOAD;
  const char *from = src;
  for (; bytes >= PCCL_LL128_PAYLOAD; line++, from += PCCL_LL128_PAYLOAD, bytes -= PCCL_LL128_PAYLOAD) {
    memcpy(line->data, from, PCCL_LL128_PAYLOAD);
    atomic_store_explicit(&line->flag, pccl_ll128_flag(message), memory_order_release);
  }
  if (bytes > 0) {
    memcpy(line->data, from, bytes);
    atomic_store_explicit(&line->flag, pccl_ll128_flag(message), memory_order_release);
  }
}

static inline void pccl_ll128_pad(char *slot, size_t at, size_t end, uint64_t message) {
  pccl_ll128_line *line = (pccl_ll128_line *)(void *)slot;
  for (size_t i = (at + PCCL_LL128_PAYLOAD - 1) / PCCL_LL128_PAYLOAD; i * PCCL_LL128_PAYLOAD < end; i++) {
    atomic_store_explicit(&line[i].flag, pccl_ll128_flag(message), memory_order_release);
  }
}

static inline bool pccl_ll128_arrived(const char *slot, size_t *at, size_t end, uint64_t message) {
  const pccl_ll128_line *line = (const pccl_ll128_line *)(const void *)slot;
  for (; *at < end; *at += PCCL_LL128_PAYLOAD) {
    if (atomic_load_explicit(&line[*at / PCCL_LL128_PAYLOAD].flag, memory_order_acquire) != pccl_ll128_flag(message)) {
      return false;
    }
  }
  return true;
}

static inline void pccl_ll128_read(const char *slot, size_t at, void *dst, size_t bytes) {
  const pccl_ll128_line *line = (const pccl_ll128_line *)(const void *)slot + at / PCCL_LL128_PAYLOAD;
  char *to = dst;
  for (; bytes >= PCCL_LL128_PAYLOAD; line++, to += PCCL_LL128_PAYLOAD, bytes -= PCCL_LL128_PAYLOAD) {
    memcpy(to, line->data, PCCL_LL128_PAYLOAD);
  }
  memcpy(to, line->data, bytes);
}

#endif
