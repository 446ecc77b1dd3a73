/* The line protocols LL and LL128. A line carries data together with a flag that says that the data has arrived, so a
 * small message costs one transfer of a cache line.
 *
 * LL. A 64-bit word holds 4 bytes of data and a 32-bit flag. One relaxed atomic access writes or reads it. In C11 no
 * reader sees half of an atomic store, so a word with the awaited flag carries its data. Words need no order between
 * them, since each has its own flag. The reader may load a word again after it saw the flag: read-read coherence gives
 * the same or a later value, and the sender writes no later one until the reader has given the slot back.
 *
 * LL128. A 128-byte line holds a 64-bit flag and 120 bytes of data. The writer stores the data and then the flag with
 * release; the reader loads the flag with acquire and then the data. This is the message passing of C11, once per line.
 * It is right on every memory model and assumes nothing about vector stores. On x86 both accesses are plain moves; on
 * Arm they are one stlr and one ldar. The flag is first, so a message of up to 56 bytes touches one 64-byte line.
 *
 * A flag must differ from everything that its word may still hold. The flag of LL128 is made of the message's 64-bit
 * number, which never repeats. The flag of LL has 31 bits of the number and the top bit set, since fresh memory is 0;
 * the sender wipes the ring every 2^30 messages, so no older flag is left.
 *
 * Sizes are bytes of payload. Each chunk's part of a message starts at the start of a line. This file makes no OS
 * calls. */
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
  /* Payload bytes that are decoded, reduced and encoded at once: whole lines, whole elements, and small enough for L1.
   */
  PCCL_LINE_BLOCK = 16 * PCCL_LL128_PAYLOAD
};

typedef struct pccl_ll128_line {
  _Atomic uint64_t flag;
  unsigned char data[PCCL_LL128_PAYLOAD];
} pccl_ll128_line;

static inline uint32_t pccl_ll_flag(uint64_t message) { return (uint32_t)message | 0x80000000u; }
static inline uint64_t pccl_ll128_flag(uint64_t message) { return message + 1; }

/* Prefetches a line for writing. While the reader has the line, fetching it back takes as long as a message does. */
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

/* Writes flags without data for the lines beyond the end of a short chunk. `at` is rounded up to a line. */
static inline void pccl_ll_pad(char *slot, size_t at, size_t end, uint64_t message) {
  _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)slot;
  uint64_t flag = (uint64_t)pccl_ll_flag(message) << 32;
  for (size_t i = (at + PCCL_LL_PAYLOAD - 1) / PCCL_LL_PAYLOAD; i * PCCL_LL_PAYLOAD < end; i++) {
    atomic_store_explicit(&word[i], flag, memory_order_relaxed);
  }
}

/* Advances *at over the lines that have arrived, up to `end`. True: all have. */
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
