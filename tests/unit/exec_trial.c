/* By slot or by copy: the receiver asks for the quicker way, whatever the sender does. The times are given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "executor/trial.h"

enum { BYTES = 40000 };

typedef struct world {
  pccl_end end;
  _Atomic uint32_t asked;
  pccl_prepared plan;
  uint64_t slot_ns, copy_ns;
} world;

static void begin(world *w, uint64_t slot_ns, uint64_t copy_ns) {
  *w = (world){.slot_ns = slot_ns, .copy_ns = copy_ns};
  w->end.copies = &w->asked;
}

/* A sender that does as it was asked `late` messages ago; the share of messages by copy. */
static double follow(world *w, size_t bytes, int messages, int late) {
  int copies = 0;
  bool asked[8] = {false};
  pccl_trial *trial = &w->end.trial[size_class(bytes)];
  for (int i = 0; i < messages; i++) {
    asked[i % 8] = wants_copy(&w->end, bytes);
    bool by_copy = asked[(i + 8 - late) % 8];
    bool timed = is_timed(trial);
    pccl_trial_note(&w->end, trial, &w->plan, by_copy, bytes, !timed ? 0 : by_copy ? w->copy_ns : w->slot_ns);
    copies += by_copy;
  }
  return (double)copies / messages;
}

static void the_quicker_way_is_asked_for(void **state) {
  (void)state;
  for (int late = 0; late < 4; late++) {
    world w;
    begin(&w, 3000, 2000);
    assert_true(follow(&w, BYTES, 10000, late) > 0.9);
    begin(&w, 2000, 6000);
    assert_true(follow(&w, BYTES, 10000, late) < 0.1);
  }
}

/* Each class of sizes has its own answer. */
static void sizes_do_not_disturb_each_other(void **state) {
  (void)state;
  world w;
  begin(&w, 3000, 2000);
  follow(&w, BYTES, 1000, 0);
  w.copy_ns = 9000;
  follow(&w, 4 * BYTES, 1000, 0);
  assert_true(wants_copy(&w.end, BYTES));
  assert_false(wants_copy(&w.end, 4 * BYTES));
  assert_false(wants_copy(&w.end, PCCL_MIN_COPY_BYTES - 1));
}

/* What was right may become wrong. */
static void it_tries_again(void **state) {
  (void)state;
  world w;
  begin(&w, 3000, 2000);
  follow(&w, BYTES, 2000, 0);
  w.copy_ns = 9000;
  follow(&w, BYTES, 2000, 0);
  assert_true(follow(&w, BYTES, 10000, 0) < 0.1);
  w.copy_ns = 1000;
  follow(&w, BYTES, 2000, 0);
  assert_true(follow(&w, BYTES, 10000, 0) > 0.9);
}

/* A sender that knows only slots is never taken to be slow or quick by copy. */
static void a_sender_need_not_follow(void **state) {
  (void)state;
  world w;
  begin(&w, 3000, 0);
  pccl_trial *trial = &w.end.trial[size_class(BYTES)];
  for (int i = 0; i < 1000; i++) {
    pccl_trial_note(&w.end, trial, &w.plan, false, BYTES, w.slot_ns);
  }
  assert_int_equal(trial->phase, PCCL_TRIAL_SECOND);
  assert_true(wants_copy(&w.end, BYTES));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_quicker_way_is_asked_for),
                                     cmocka_unit_test(sizes_do_not_disturb_each_other),
                                     cmocka_unit_test(it_tries_again), cmocka_unit_test(a_sender_need_not_follow)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
