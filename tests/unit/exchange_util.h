/* Patterns of sends and receives that follow from a seed, so that every rank knows what every other does. */
#ifndef PCCL_TESTS_EXCHANGE_UTIL_H
#define PCCL_TESTS_EXCHANGE_UTIL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/polyccl.h>

#include "base/map.h"
#include "executor/exchange.h"
#include "runtime/comm.h"
#include "runtime/launcher.h"

/* Byte `at` of the message: it differs between pairs, messages and places. */
static inline unsigned char tag(int src, int dst, int message, size_t at) {
  return (unsigned char)(pccl_mix64((uint64_t)src << 50 ^ (uint64_t)dst << 40 ^ (uint64_t)message << 32 ^ at / 8) >>
                         (at % 8 * 8));
}

/* A number below `below` that follows from its arguments. */
static inline size_t draw(uint64_t seed, int a, int b, int c, size_t below) {
  return (size_t)(pccl_mix64(pccl_mix64(seed) ^ (uint64_t)(a + 1) << 42 ^ (uint64_t)(b + 1) << 21 ^ (uint64_t)(c + 1)) %
                  below);
}

/* Buffers of one rank: private memory, or memory that others can address. */
typedef struct arena {
  bool shared;
  size_t used;
  void *memory[512];
} arena;

static inline void *arena_take(arena *a, size_t bytes) {
  void *memory = NULL;
  if (a->used == sizeof a->memory / sizeof a->memory[0]) {
    abort();
  }
  if (a->shared ? polyccl_mem_alloc(&memory, bytes + 1) != POLYCCL_SUCCESS : (memory = malloc(bytes + 1)) == NULL) {
    abort();
  }
  a->memory[a->used++] = memory;
  return memory;
}

static inline void arena_free(arena *a) {
  while (a->used > 0) {
    void *memory = a->memory[--a->used];
    if (a->shared) {
      polyccl_mem_free(memory);
    } else {
      free(memory);
    }
  }
}

static inline polyccl_result exchange_all(polyccl_comm *comm, const pccl_transfer *transfer, size_t transfers,
                                          const char *kind) {
  pccl_exchange *x;
  polyccl_result result = pccl_exchange_begin(&comm->executor, transfer, transfers, kind, &x);
  if (result == POLYCCL_SUCCESS) {
    result = pccl_exchange_wait(x);
    pccl_exchange_free(x);
  }
  return result;
}

#endif
