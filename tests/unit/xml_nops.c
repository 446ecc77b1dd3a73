/* Plans into which nops have been put at random: before steps whose waits they take over, behind steps for which others
 * waited and now wait for the nop. They mean what they meant, and executors, which drop nops, must run them right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <polyccl/compile.h>
#include <polyccl/language.h>

#include "base/vec.h"
#include "xml_targets.h"

typedef struct sprinkler {
  uint64_t seed;
  const polyccl_plan *from;
  int32_t *place; /* [steps]: new number in its thread block */
  bool *before, *behind;
  PCCL_VEC(polyccl_step) step;
  PCCL_VEC(polyccl_wait) wait;
} sprinkler;

static unsigned draw(sprinkler *s, unsigned below) {
  s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(s->seed >> 33) % below;
}

static void place_steps(sprinkler *s) {
  for (size_t t = 0; t < s->from->tbs; t++) {
    const polyccl_thread_block *tb = &s->from->tb[t];
    int32_t next = 0;
    for (int32_t i = tb->step; i < tb->step + tb->steps; i++) {
      s->before[i] = draw(s, 4) == 0;
      s->behind[i] = draw(s, 4) == 0;
      next += s->before[i];
      s->place[i] = next++;
      next += s->behind[i];
    }
  }
}

static void add(sprinkler *s, const polyccl_step *like, int32_t *made) {
  polyccl_step step = *like;
  step.wait = (int32_t)s->wait.len;
  step.waits = 0;
  *made = (int32_t)s->step.len;
  assert_true(pccl_vec_push(&s->step, step));
}

/* The wait, or one for the nop behind the step that it names. */
static void add_wait(sprinkler *s, const polyccl_plan_rank *rank, polyccl_wait wait) {
  int32_t on = s->from->tb[rank->tb + wait.tb].step + wait.step;
  int32_t more = s->behind[on] && draw(s, 2) != 0;
  assert_true(pccl_vec_push(&s->wait, (polyccl_wait){wait.tb, s->place[on] + more}));
  s->step.data[s->step.len - 1].waits++;
}

static void sprinkle_tb(sprinkler *s, polyccl_thread_block *tb) {
  static const polyccl_step nop = {.op = POLYCCL_STEP_NOP, .recv = -1, .send = -1, .location = -1};
  const polyccl_plan_rank *rank = &s->from->rank[tb->rank];
  int32_t first = (int32_t)s->step.len, made;
  for (int32_t i = tb->step; i < tb->step + tb->steps; i++) {
    const polyccl_step *step = &s->from->step[i];
    int32_t stolen = s->before[i] ? (int32_t)draw(s, (unsigned)step->waits + 1) : 0;
    if (s->before[i]) {
      add(s, &nop, &made);
      for (int32_t w = 0; w < stolen; w++) {
        add_wait(s, rank, s->from->wait[step->wait + w]);
      }
    }
    add(s, step, &made);
    for (int32_t w = stolen; w < step->waits; w++) {
      add_wait(s, rank, s->from->wait[step->wait + w]);
    }
    if (s->behind[i]) {
      add(s, &nop, &made);
    }
  }
  tb->step = first;
  tb->steps = (int32_t)s->step.len - first;
}

/* Takes the place of the plan's steps and waits. */
static void sprinkle(polyccl_plan *plan, uint64_t seed) {
  sprinkler s = {.seed = seed, .from = plan};
  s.place = calloc(plan->steps + 1, sizeof *s.place);
  s.before = calloc(plan->steps + 1, sizeof *s.before);
  s.behind = calloc(plan->steps + 1, sizeof *s.behind);
  polyccl_thread_block *tb = calloc(plan->tbs + 1, sizeof *tb);
  assert_true(s.place != NULL && s.before != NULL && s.behind != NULL && tb != NULL);
  place_steps(&s);
  for (size_t t = 0; t < plan->tbs; t++) {
    tb[t] = plan->tb[t];
    sprinkle_tb(&s, &tb[t]);
  }
  free(plan->tb);
  free(plan->step);
  free(plan->wait);
  plan->tb = tb;
  plan->step = s.step.data;
  plan->steps = s.step.len;
  plan->wait = s.wait.data;
  plan->waits = s.wait.len;
  free(s.place);
  free(s.before);
  free(s.behind);
}

static void nops_at_random(void **state) {
  (void)state;
  static const char *const algorithms[] = {"allreduce_oneshot", "allreduce_allpairs", "allreduce_halving_doubling",
                                           "allreduce_ring", "reduce_scatter_allpairs"};
  int written = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    char path[512], ranks[8];
    polyccl_program *program;
    polyccl_plan *plan;
    snprintf(path, sizeof path, POLYCCL_SOURCE_DIR "/algorithms/%s.lua", algorithms[seed % 5]);
    snprintf(ranks, sizeof ranks, "%d", (int)(2 + seed % 3));
    polyccl_param param = {"ranks", ranks};
    polyccl_compile_options options = {.size = sizeof(polyccl_compile_options),
                                       .placement = seed % 2 == 0 ? POLYCCL_IN_PLACE : POLYCCL_OUT_OF_PLACE};
    assert_int_equal(polyccl_program_load(path, &param, 1, &program), POLYCCL_SUCCESS);
    assert_int_equal(polyccl_compile(program, &options, &plan), POLYCCL_SUCCESS);
    sprinkle(plan, seed);
    if (polyccl_plan_verify(plan, NULL) != POLYCCL_SUCCESS) {
      fail_msg("seed %d: %s", (int)seed, polyccl_last_error());
    }
    written += check_plan(path, plan);
    polyccl_plan_destroy(plan);
    polyccl_program_destroy(program);
  }
  assert_int_equal(written, 60 * TARGETS);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nops_at_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
