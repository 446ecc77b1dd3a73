/* What a step does is said once, as data, in pccl_ops (plan/plan.c); two sources do it, kernel/step.h for the
 * interpreter and kernel/moves.h for generated code. Here both are held against every row of the table, under every
 * protocol, with whole and short chunks. Messages come from the implementation's own send and go to its own recv. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/moves.h"
#include "kernel/step.h"
#include "plan/plan.h"

enum { MAX_ELEMENTS = 3000, SLOT_BYTES = 2 * MAX_ELEMENTS * (int)sizeof(int32_t) + 4096, UNTOUCHED = -1 };

/* One step of one implementation on one chunk: `n` elements in the message, `src_n` and `dst_n` valid in the chunks. */
typedef struct trial {
  uint8_t op;
  polyccl_protocol protocol;
  size_t n, src_n, dst_n;
  int32_t message[MAX_ELEMENTS], src[MAX_ELEMENTS], dst[MAX_ELEMENTS]; /* dst: before and after */
  int32_t sent[MAX_ELEMENTS];
} trial;

typedef void (*implementation)(trial *t);

_Alignas(128) static char slot_in[SLOT_BYTES], slot_out[SLOT_BYTES];

/* ---- kernel/step.h ---- */

static void interpret(const trial *t, uint8_t op, const int32_t *src, size_t src_n, int32_t *dst, size_t dst_n,
                      char *in, char *out) {
  const pccl_kernels *kernels = pccl_reduce_kernels();
  pccl_arithmetic arithmetic = {
      .kernels = kernels, .reduce = kernels->reduce[POLYCCL_INT32][POLYCCL_SUM], .element = sizeof(int32_t)};
  pccl_move move = {.src = (const char *)src,
                    .dst = (char *)dst,
                    .in = in,
                    .out = out,
                    .n = t->n,
                    .src_n = src_n,
                    .dst_n = dst_n,
                    .in_n = t->n,
                    .out_n = t->n,
                    .in_number = 5,
                    .out_number = 5};
  if (t->protocol == POLYCCL_SIMPLE) {
    pccl_move_memory(&arithmetic, op, &move, false);
  } else {
    pccl_move_lines(t->protocol, &arithmetic, op, &move);
  }
}

static void step_h(trial *t) {
  interpret(t, POLYCCL_STEP_SEND, t->message, t->n, NULL, 0, NULL, slot_in);
  interpret(t, t->op, t->src, t->src_n, t->dst, t->dst_n, slot_in, slot_out);
  if (pccl_ops[t->op].sends) {
    interpret(t, POLYCCL_STEP_RECV, NULL, 0, t->sent, t->n, slot_out, NULL);
  }
}

/* ---- kernel/moves.h ---- */

static void generated(const trial *t, int op, const int32_t *src, size_t src_n, int32_t *dst, size_t dst_n, char *in,
                      char *out) {
  pccl_k_call call = {.slot_bytes = SLOT_BYTES,
                      .depth = 1,
                      .element = sizeof(int32_t),
                      .reduce = pccl_reduce_kernels()->reduce[POLYCCL_INT32][POLYCCL_SUM]};
  pccl_k_end recv = {.slots = in, .count = 5}, send = {.slots = out, .count = 5};
  pccl_k_span from = {(char *)(uintptr_t)src, src_n}, to = {(char *)dst, dst_n};
  assert_int_equal(pccl_k_move_chunk(&call, (int)t->protocol, op, in != NULL ? &recv : NULL, out != NULL ? &send : NULL,
                                     from, to, t->n, 0, 0),
                   0);
}

static void moves_h(trial *t) {
  bool receives = pccl_ops[t->op].receives, sends = pccl_ops[t->op].sends;
  generated(t, PCCL_K_SEND, t->message, t->n, NULL, 0, NULL, slot_in);
  generated(t, t->op, t->src, t->src_n, t->dst, t->dst_n, receives ? slot_in : NULL, sends ? slot_out : NULL);
  if (sends) {
    generated(t, PCCL_K_RECV, NULL, 0, t->sent, t->n, slot_out, NULL);
  }
}

/* ---- the table ---- */

static int32_t message_at(size_t i) { return 1000000 + (int32_t)i; }
static int32_t src_at(size_t i) { return 20000 + 3 * (int32_t)i; }
static int32_t dst_at(size_t i) { return 700 + 7 * (int32_t)i; }

/* The step's value at element i: its operands, summed where it reduces. */
static int32_t value_at(const pccl_op_traits *op, size_t i) {
  return (op->receives ? message_at(i) : 0) + (op->reads_src ? src_at(i) : 0) + (op->reads_dst ? dst_at(i) : 0);
}

static void fill(trial *t) {
  for (size_t i = 0; i < MAX_ELEMENTS; i++) {
    t->message[i] = message_at(i);
    t->src[i] = src_at(i);
    t->dst[i] = dst_at(i);
    t->sent[i] = UNTOUCHED;
  }
  memset(slot_in, 0, sizeof slot_in);
  memset(slot_out, 0, sizeof slot_out);
}

/* Elements that the step defines: a value ends where the shorter of its chunks does (docs/plan.md, Counts that chunks
 * do not divide: in a plan that may run so, a value is stored only at the place of its block that it comes from). */
static void compare(const trial *t, const char *name) {
  const pccl_op_traits *op = &pccl_ops[t->op];
  size_t defined = op->reads_src ? pccl_min_size(t->src_n, t->n) : t->n;
  defined = op->writes_dst ? pccl_min_size(defined, t->dst_n) : defined;
  size_t stored = op->writes_dst ? defined : 0;
  for (size_t i = 0; i < sizeof slot_out && !op->sends; i++) {
    if (slot_out[i] != 0) {
      fail_msg("%s, %s, %s: a step that does not send wrote a slot", name, op->name,
               polyccl_protocol_name(t->protocol));
    }
  }
  for (size_t i = 0; i < MAX_ELEMENTS; i++) {
    int32_t wanted = i < stored ? value_at(op, i) : dst_at(i);
    bool defines = i < stored || i >= t->dst_n || !op->writes_dst;
    if (defines && t->dst[i] != wanted) {
      fail_msg("%s, %s, %s: dst[%zu] of %zu (src %zu, dst %zu) is %d, not %d", name, op->name,
               polyccl_protocol_name(t->protocol), i, t->n, t->src_n, t->dst_n, t->dst[i], wanted);
    }
    if (op->sends && i < defined && t->sent[i] != value_at(op, i)) {
      fail_msg("%s, %s, %s: element %zu of %zu sent (src %zu, dst %zu) is %d, not %d", name, op->name,
               polyccl_protocol_name(t->protocol), i, t->n, t->src_n, t->dst_n, t->sent[i], value_at(op, i));
    }
  }
}

static void hold(implementation run_step, const char *name) {
  static const size_t lengths[] = {1, 29, 30, 31, 480, 481, 2048, 2999};
  static trial t;
  for (int op = POLYCCL_STEP_SEND; op < POLYCCL_STEP_OP_COUNT; op++) {
    for (int protocol = 0; protocol < POLYCCL_PROTOCOL_COUNT; protocol++) {
      for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        for (int shortened = 0; shortened < 4; shortened++) {
          size_t n = lengths[k], less = n - (n + 2) / 3;
          t.op = (uint8_t)op;
          t.protocol = (polyccl_protocol)protocol;
          t.n = n;
          t.src_n = shortened & 1 ? less : n;
          t.dst_n = shortened & 2 ? less : n;
          fill(&t);
          run_step(&t);
          compare(&t, name);
        }
      }
    }
  }
}

static void the_interpreter_follows_the_table(void **state) {
  (void)state;
  hold(step_h, "kernel/step.h");
}

static void generated_code_follows_the_table(void **state) {
  (void)state;
  hold(moves_h, "kernel/moves.h");
}

/* The two headers number the ops and protocols alike, since one carries no header of the other. */
static void numbers_agree(void **state) {
  (void)state;
  assert_int_equal(PCCL_K_NOP, POLYCCL_STEP_NOP);
  assert_int_equal(PCCL_K_SEND, POLYCCL_STEP_SEND);
  assert_int_equal(PCCL_K_RECV, POLYCCL_STEP_RECV);
  assert_int_equal(PCCL_K_RCS, POLYCCL_STEP_RCS);
  assert_int_equal(PCCL_K_RRC, POLYCCL_STEP_RRC);
  assert_int_equal(PCCL_K_RRCS, POLYCCL_STEP_RRCS);
  assert_int_equal(PCCL_K_RRS, POLYCCL_STEP_RRS);
  assert_int_equal(PCCL_K_COPY, POLYCCL_STEP_COPY);
  assert_int_equal(PCCL_K_REDUCE, POLYCCL_STEP_REDUCE);
  assert_int_equal(POLYCCL_STEP_OP_COUNT, POLYCCL_STEP_REDUCE + 1);
  assert_int_equal(PCCL_K_SIMPLE, POLYCCL_SIMPLE);
  assert_int_equal(PCCL_K_LL, POLYCCL_LL);
  assert_int_equal(PCCL_K_LL128, POLYCCL_LL128);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_interpreter_follows_the_table),
                                     cmocka_unit_test(generated_code_follows_the_table),
                                     cmocka_unit_test(numbers_agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
