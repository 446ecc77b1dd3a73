/* Message numbers run on for the life of a communicator: the numbers in LL's flags come again, and what old messages
 * have left in a ring must not be taken for new ones. The counters are set forward to just before each place where bits
 * turn over, with the rings full of flags that would then be right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sched.h>

#include "exec_util.h"
#include "executor/messages.h"
#include "kernel/lines.h"
#include "runtime/comm.h"
#include "runtime/launcher.h"

typedef struct wrap {
  polyccl_plan *plan;
  uint64_t start;
  _Atomic int ready;
} wrap;

static void meet(wrap *w, int ranks, int round) {
  atomic_fetch_add(&w->ready, 1);
  while (atomic_load(&w->ready) < ranks * round) {
    sched_yield();
  }
}

/* Old words in the ring: data of the past with the flag of the message after next in their slot. (Of the next one there
 * can be none: it is 2^16 messages away, and the last wiping was at most 2^15 ago.) */
static void poison(pccl_end *end, uint64_t number, uint32_t signature) {
  _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)end->slots;
  for (size_t i = 0; i < end->bytes / sizeof *word; i++) {
    atomic_store_explicit(&word[i],
                          (uint64_t)pccl_ll_flag(
                              stamp_of(POLYCCL_LL, number + end->depth + i * sizeof *word / end->slot_bytes, signature))
                                  << 32 |
                              0xdeadu,
                          memory_order_relaxed);
  }
}

static bool is_wiped(const pccl_end *end) {
  const _Atomic uint64_t *word = (const _Atomic uint64_t *)(const void *)end->slots;
  for (size_t i = 0; i < end->bytes / sizeof *word; i++) {
    if ((uint32_t)atomic_load_explicit(&word[i], memory_order_relaxed) == 0xdeadu) {
      return false;
    }
  }
  return true;
}

/* Of the next call, which is like the last one but for its number: every round of the test whose flags are forged
 * makes the same call. */
static uint32_t signature_of_next(const polyccl_comm *comm) {
  return comm->executor.recent->signature + (uint32_t)(comm->executor.member.calls + 1) * PCCL_CALL_STRIDE;
}

static polyccl_result across(polyccl_comm *comm, void *argument) {
  wrap *w = argument;
  int rank = polyccl_comm_user_rank(comm), id;
  float in[700], out[700];
  polyccl_result result = polyccl_comm_add_plan(comm, w->plan, &id);
  for (int round = 0; round < 200 && result == POLYCCL_SUCCESS; round++) {
    size_t count = round % 3 == 0 ? 700 : 1 + (size_t)round % 5;
    if (round == 1) {
      meet(w, 2, 1); /* all is quiet: nothing in flight */
      for (size_t i = 0; i < comm->executor.member.ends.len; i++) {
        pccl_end *end = comm->executor.member.ends.data[i];
        bool sender = end->depth != 0;
        if (sender && w->plan->protocol == POLYCCL_LL) {
          poison(end, w->start, signature_of_next(comm));
        }
        end->cached += w->start - end->count;
        end->count = w->start;
        atomic_store(sender ? end->tail : end->head, w->start);
      }
      meet(w, 2, 2);
    }
    for (size_t i = 0; i < count; i++) {
      in[i] = (float)(round * 1000 + (int)i + rank);
    }
    result = polyccl_run_plan(comm, id, in, out, count, POLYCCL_FLOAT32, POLYCCL_SUM, NULL);
    for (size_t i = 0; i < count && result == POLYCCL_SUCCESS; i++) {
      if (out[i] != (float)(2 * (round * 1000 + (int)i) + 1)) {
        fprintf(stderr, "start %llx, round %d, element %zu: %g\n", (unsigned long long)w->start, round, i,
                (double)out[i]);
        result = POLYCCL_ERROR_INTERNAL;
      }
    }
  }
  for (size_t i = 0; i < comm->executor.member.ends.len && w->plan->protocol == POLYCCL_LL; i++) {
    const pccl_end *end = comm->executor.member.ends.data[i];
    if (end->depth != 0 && !is_wiped(end)) {
      fprintf(stderr, "start %llx: old flags are left\n", (unsigned long long)w->start);
      return POLYCCL_ERROR_INTERNAL;
    }
  }
  return result;
}

static void numbers_turn_over(void **state) {
  (void)state;
  static const uint64_t turns[] = {(uint64_t)1 << 15, (uint64_t)1 << 16, (uint64_t)1 << 32, (uint64_t)1 << 39,
                                   (uint64_t)1 << 40};
  for (int protocol = 0; protocol < POLYCCL_PROTOCOL_COUNT; protocol++) {
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++) {
      wrap w = {.plan = make_oneshot(2, 1, false, (polyccl_protocol)protocol, POLYCCL_BATCH_MAJOR),
                .start = turns[i] - (protocol == POLYCCL_LL ? 0 : 20)};
      assert_int_equal(pccl_launch_threads(2, across, &w), POLYCCL_SUCCESS);
      polyccl_plan_destroy(w.plan);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_turn_over)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
