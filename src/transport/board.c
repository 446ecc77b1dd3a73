#include "transport/board.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

void pccl_futex_wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }

void pccl_futex_wait(_Atomic uint32_t *word, uint32_t value, long microseconds) {
  struct timespec limit = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};
  syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

static void add_cpus(pccl_board *board) {
  cpu_set_t mine;
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) {
    return;
  }
  for (int cpu = 0; cpu < CPU_SETSIZE && cpu < PCCL_CPU_WORDS * 64; cpu++) {
    if (CPU_ISSET(cpu, &mine)) {
      atomic_fetch_or(&board->cpus[cpu / 64], (uint64_t)1 << (cpu % 64));
    }
  }
}

polyccl_result pccl_board_join(pccl_board *board, int ranks, int rank, int32_t pid, const uint64_t *cookie) {
  int32_t said = 0;
  if (!atomic_compare_exchange_strong(&board->ranks, &said, ranks) && said != ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d joins a communicator of %d ranks, others said %d", rank, ranks,
                     (int)said);
  }
  uint32_t absent = PCCL_RANK_ABSENT;
  if (!atomic_compare_exchange_strong(&board->cell[rank].state, &absent, PCCL_RANK_JOINING)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d of this unique id is taken: an id makes one communicator", rank);
  }
  board->cell[rank].pid = pid;
  board->cell[rank].cookie_at = (uintptr_t)cookie;
  board->cell[rank].cookie = *cookie;
  add_cpus(board);
  atomic_store(&board->cell[rank].state, PCCL_RANK_JOINED);
  atomic_fetch_add(&board->joined, 1);
  pccl_futex_wake(&board->joined);
  return POLYCCL_SUCCESS;
}

void pccl_board_leave(pccl_board *board, int rank) {
  atomic_store(&board->cell[rank].state, PCCL_RANK_LEFT);
  for (int other = 0; other < atomic_load(&board->ranks); other++) {
    pccl_board_ring(board, other);
  }
}

int pccl_board_cpus(pccl_board *board) {
  int count = 0;
  for (int i = 0; i < PCCL_CPU_WORDS; i++) {
    count += __builtin_popcountll(atomic_load(&board->cpus[i]));
  }
  return count > 0 ? count : 1;
}

void pccl_board_ring(pccl_board *board, int rank) {
  pccl_rank_cell *cell = &board->cell[rank];
  atomic_store_explicit(&cell->sleeping, 0, memory_order_relaxed);
  atomic_fetch_add_explicit(&cell->bell, 1, memory_order_release);
  pccl_futex_wake(&cell->bell);
}

void pccl_board_sleep(pccl_board *board, int rank, uint32_t bell, long microseconds) {
  pccl_futex_wait(&board->cell[rank].bell, bell, microseconds);
}

void pccl_board_abort(pccl_board *board, polyccl_result result, const char *format, ...) {
  uint32_t none = 0;
  if (atomic_compare_exchange_strong(&board->aborted, &none, 1)) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(board->abort_reason, sizeof board->abort_reason, format, arguments);
    va_end(arguments);
    board->abort_result = (int32_t)result;
    atomic_store_explicit(&board->aborted, 2, memory_order_release);
  }
  for (int rank = 0; rank < POLYCCL_MAX_LOCAL_RANKS && rank < atomic_load(&board->ranks); rank++) {
    atomic_fetch_add(&board->cell[rank].bell, 1);
    pccl_futex_wake(&board->cell[rank].bell);
  }
  pccl_futex_wake(&board->joined);
}

polyccl_result pccl_board_error(pccl_board *board) {
  /* The writer may have been interrupted, or may have died, in the middle of the notice. */
  for (int i = 0; i < 1000 && atomic_load_explicit(&board->aborted, memory_order_acquire) != 2; i++) {
    usleep(100);
  }
  if (atomic_load_explicit(&board->aborted, memory_order_acquire) != 2) {
    return pccl_fail(POLYCCL_ERROR_REMOTE, "the communicator was aborted");
  }
  return pccl_fail((polyccl_result)board->abort_result, "%.*s", PCCL_REASON_BYTES, board->abort_reason);
}

bool pccl_board_claim(pccl_board *board, int rank, uint64_t number, pccl_claim *claim) {
  pccl_posted_claim *from = &board->cell[rank].posted[number % PCCL_CLAIMS];
  if (atomic_load_explicit(&from->number, memory_order_acquire) != number) {
    return false;
  }
  uint64_t word[4];
  for (int i = 0; i < 4; i++) {
    word[i] = atomic_load_explicit(&from->word[i], memory_order_acquire);
  }
  if (atomic_load_explicit(&from->number, memory_order_acquire) != number) {
    return false;
  }
  *claim = (pccl_claim){.count = word[0],
                        .plan = word[1],
                        .collective = (int16_t)(uint16_t)(word[2] >> 48),
                        .dtype = (int16_t)(uint16_t)(word[2] >> 32),
                        .op = (int32_t)(uint32_t)word[2],
                        .root = (int32_t)(uint32_t)(word[3] >> 32),
                        .id = (int32_t)(uint32_t)word[3]};
  return true;
}
