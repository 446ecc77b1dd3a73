/* What the ranks of a communicator on one host share beside their connections: who is there, doorbells, the calls that
 * each rank makes, and the abort notice. It lies in shared memory (shm/segment.h). All functions may be called by any
 * rank at any time; none blocks. */
#ifndef PCCL_TRANSPORT_BOARD_H
#define PCCL_TRANSPORT_BOARD_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <polyccl/types.h>

#include "memory/reference.h"

enum {
  PCCL_LINE = 128, /* two cache lines: what x86 prefetches together, and one line of some Arm */
  PCCL_REASON_BYTES = 400,
  PCCL_CPU_WORDS = 16,
  PCCL_CALL_BUFFERS = 3, /* input, output, scratch: polyccl_plan_buffer */
  PCCL_CLAIMS = 16
};

typedef enum pccl_rank_state {
  PCCL_RANK_ABSENT = 0,
  PCCL_RANK_JOINING,
  PCCL_RANK_JOINED,
  PCCL_RANK_LEFT
} pccl_rank_state;

/* What a call is, so that ranks that disagree can be told. */
typedef struct pccl_claim {
  uint64_t count;
  uint64_t plan; /* fingerprint of the plan and of how it is run; 0: none was chosen */
  int16_t collective, dtype;
  int32_t op;
  int32_t root;
  int32_t id; /* the plan's number; -1: chosen by the library */
} pccl_claim;

/* A record as the owner leaves it for others; `number` is stored last. */
typedef struct pccl_posted_claim {
  _Atomic uint64_t number; /* of the call, from 1 */
  _Atomic uint64_t word[4];
} pccl_posted_claim;

/* What others see of a rank. */
typedef struct pccl_rank_cell {
  alignas(PCCL_LINE) _Atomic uint32_t state; /* pccl_rank_state */
  int32_t pid;
  uint64_t cookie_at, cookie; /* a word of the rank's memory, by which others know its process again */
  /* The doorbell: others ring when they have written something for this rank and it sleeps. */
  alignas(PCCL_LINE) _Atomic uint32_t sleeping;
  _Atomic uint32_t bell;
  _Atomic int32_t awaits; /* 1 + the rank that this one has waited for a while; 0: none */
  /* The buffers of the running call by reference; valid for call number `call`. */
  alignas(PCCL_LINE) _Atomic uint64_t call;
  pccl_reference buffer[PCCL_CALL_BUFFERS];
  _Atomic uint32_t inside; /* 1: a call with messages by reference runs, which may touch others' buffers */
  /* Calls: number n is in posted[n % PCCL_CLAIMS]. */
  alignas(PCCL_LINE) _Atomic uint64_t made;
  pccl_posted_claim posted[PCCL_CLAIMS];
} pccl_rank_cell;

typedef struct pccl_board {
  _Atomic int32_t ranks; /* 0: not known yet */
  _Atomic uint32_t joined;
  _Atomic uint64_t cpus[PCCL_CPU_WORDS]; /* that some rank may run on */
  /* The abort notice: the first writer moves aborted 0 -> 1, writes, then 2. */
  alignas(PCCL_LINE) _Atomic uint32_t aborted;
  int32_t abort_result;
  char abort_reason[PCCL_REASON_BYTES];
  alignas(PCCL_LINE) pccl_rank_cell cell[POLYCCL_MAX_LOCAL_RANKS];
} pccl_board;

/* ---- joining ---- */

/* Takes the place of `rank`. `cookie` stays where it is until the rank leaves. INVALID: the place is taken, or others
 * said another number of ranks. */
polyccl_result pccl_board_join(pccl_board *board, int ranks, int rank, int32_t pid, const uint64_t *cookie);
/* The rank sends and takes nothing more. Wakes all. */
void pccl_board_leave(pccl_board *board, int rank);
static inline pccl_rank_state pccl_board_state(pccl_board *board, int rank) {
  return (pccl_rank_state)atomic_load_explicit(&board->cell[rank].state, memory_order_acquire);
}
/* The number of CPUs that the ranks may run on, once all have joined. */
int pccl_board_cpus(pccl_board *board);

/* ---- doorbells ---- */

void pccl_board_ring(pccl_board *board, int rank);
/* Sleeps while the bell of `rank` has the value `bell`, at most `microseconds`. */
void pccl_board_sleep(pccl_board *board, int rank, uint32_t bell, long microseconds);

/* ---- the abort notice ---- */

/* Writes the notice unless there is one, and wakes everybody. */
void pccl_board_abort(pccl_board *board, polyccl_result result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline bool pccl_board_aborted(pccl_board *board) {
  return atomic_load_explicit(&board->aborted, memory_order_acquire) != 0;
}
/* pccl_fail() with the notice. */
polyccl_result pccl_board_error(pccl_board *board);

/* ---- calls ---- */

/* `number` counts the rank's calls from 1. */
static inline void pccl_board_post(pccl_board *board, int rank, uint64_t number, const pccl_claim *claim) {
  pccl_rank_cell *cell = &board->cell[rank];
  pccl_posted_claim *to = &cell->posted[number % PCCL_CLAIMS];
  atomic_store_explicit(&to->number, 0, memory_order_relaxed);
  atomic_store_explicit(&to->word[0], claim->count, memory_order_release);
  atomic_store_explicit(&to->word[1], claim->plan, memory_order_release);
  atomic_store_explicit(
      &to->word[2],
      (uint64_t)(uint16_t)claim->collective << 48 | (uint64_t)(uint16_t)claim->dtype << 32 | (uint32_t)claim->op,
      memory_order_release);
  atomic_store_explicit(&to->word[3], (uint64_t)(uint32_t)claim->root << 32 | (uint32_t)claim->id,
                        memory_order_release);
  atomic_store_explicit(&to->number, number, memory_order_release);
  atomic_store_explicit(&cell->made, number, memory_order_release);
}
/* False: call `number` of the rank is not there yet, or is so long ago that its record is gone. */
bool pccl_board_claim(pccl_board *board, int rank, uint64_t number, pccl_claim *claim);
static inline uint64_t pccl_board_calls(pccl_board *board, int rank) {
  return atomic_load_explicit(&board->cell[rank].made, memory_order_acquire);
}

void pccl_futex_wake(_Atomic uint32_t *word);
/* Sleeps while *word == value, at most `microseconds`. */
void pccl_futex_wait(_Atomic uint32_t *word, uint32_t value, long microseconds);

#endif
