/* pccl_ops (plan/plan.c) says as data what a step does. Two sources do it: kernel/step.h for the interpreter and
 * kernel/moves.h for generated code. This test compares both with every row of the table, under every protocol, with
 * whole and short chunks, for a sum and for averages. The interpreter also moves messages by reference. Other messages
 * come from the implementation's own send and go to its own recv. */
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

/* A reduction of 4-byte elements; averages show that each operand comes with its own number of contributions. */
typedef struct reduction_kind {
  polyccl_dtype dtype;
  polyccl_redop redop;
  uint64_t addends;
} reduction_kind;

/* Where a message lies. By get it is in the sender's buffer. By put the sender has stored it in the receiver's. */
typedef enum way { BY_SLOT, BY_GET, BY_PUT } way;

/* One step of one implementation on one chunk: `n` elements in the message, `src_n` and `dst_n` valid in the chunks. */
typedef struct trial {
  uint8_t op;
  polyccl_protocol protocol;
  reduction_kind kind;
  way in_way, out_way;
  bool stream;   /* results bypass the cache */
  size_t sent_n; /* by put: valid elements in the receiver's chunk */
  size_t n, src_n, dst_n;
  int32_t message[MAX_ELEMENTS], src[MAX_ELEMENTS], dst[MAX_ELEMENTS]; /* dst: before and after */
  int32_t sent[MAX_ELEMENTS];
} trial;

typedef void (*implementation)(trial *t);

_Alignas(128) static char slot_in[SLOT_BYTES], slot_out[SLOT_BYTES];

static pccl_reduce_fn reduction(const trial *t) { return pccl_reduce_kernels()->reduce[t->kind.dtype][t->kind.redop]; }

/* ---- kernel/step.h ---- */

static void interpret(const trial *t, uint8_t op, const int32_t *src, size_t src_n, int32_t *dst, size_t dst_n,
                      char *in, char *out) {
  pccl_arithmetic arithmetic = {
      .kernels = pccl_reduce_kernels(), .reduce = reduction(t), .element = sizeof(int32_t), .stream = t->stream};
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
                    .out_number = 5,
                    .addends = t->kind.addends};
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

/* The same step with the ways of its messages as runtime/execute.c gives them to pccl_move_memory(). */
static void step_h_by_reference(trial *t) {
  pccl_arithmetic arithmetic = {
      .kernels = pccl_reduce_kernels(), .reduce = reduction(t), .element = sizeof(int32_t), .stream = t->stream};
  pccl_move move = {.src = (const char *)t->src,
                    .dst = (char *)t->dst,
                    .in = slot_in,
                    .out = slot_out,
                    .n = t->n,
                    .src_n = t->src_n,
                    .dst_n = t->dst_n,
                    .in_n = t->n,
                    .out_n = t->n,
                    .addends = t->kind.addends};
  memcpy(slot_in, t->message, t->n * sizeof(int32_t));
  if (t->in_way == BY_GET) {
    move.in = (const char *)t->message;
  } else if (t->in_way == BY_PUT) {
    memcpy(t->dst, t->message, t->dst_n * sizeof(int32_t));
    move.in = (const char *)t->dst;
    move.in_n = t->dst_n;
  }
  if (t->out_way == BY_GET) {
    move.out = NULL;
    move.out_n = 0;
  } else if (t->out_way == BY_PUT) {
    move.out = (char *)t->sent;
    move.out_n = t->sent_n;
  }
  pccl_move_memory(&arithmetic, t->op, &move, t->out_way == BY_PUT);
  arithmetic.kernels->stream_fence();
  if (pccl_ops[t->op].sends && t->out_way == BY_SLOT) {
    memcpy(t->sent, slot_out, t->n * sizeof(int32_t));
  } else if (t->out_way == BY_GET) { /* the receiver reads the buffer that the step has read or written */
    bool writes = pccl_ops[t->op].writes_dst;
    memcpy(t->sent, writes ? t->dst : t->src, (writes ? t->dst_n : t->src_n) * sizeof(int32_t));
  }
}

/* ---- kernel/moves.h ---- */

static void generated(const trial *t, int op, const int32_t *src, size_t src_n, int32_t *dst, size_t dst_n, char *in,
                      char *out) {
  pccl_k_call call = {.slot_bytes = SLOT_BYTES, .depth = 1, .element = sizeof(int32_t), .reduce = reduction(t)};
  pccl_k_end recv = {.slots = in, .count = 5}, send = {.slots = out, .count = 5};
  pccl_k_span from = {(char *)(uintptr_t)src, src_n}, to = {(char *)dst, dst_n};
  assert_int_equal(pccl_k_move_chunk(&call, (int)t->protocol, op, in != NULL ? &recv : NULL, out != NULL ? &send : NULL,
                                     from, to, t->n, 0, t->kind.addends),
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

/* An element's bits. */
static int32_t bits_of(const trial *t, int32_t value) {
  float real = (float)value;
  if (t->kind.dtype == POLYCCL_FLOAT32) {
    memcpy(&value, &real, sizeof value);
  }
  return value;
}

static int32_t message_at(const trial *t, size_t i) { return bits_of(t, 1000000 + (int32_t)i); }
static int32_t src_at(const trial *t, size_t i) { return bits_of(t, 20000 + 3 * (int32_t)i); }
static int32_t dst_at(const trial *t, size_t i) { return bits_of(t, 700 + 7 * (int32_t)i); }

/* The step's value at element i. A step that reduces has two operands: the local chunk, of which `dst` comes before
 * `src`, and then the message. */
static int32_t value_at(const trial *t, const pccl_op_traits *op, size_t i) {
  int32_t operand[3], value;
  int operands = 0;
  if (op->reads_dst) {
    operand[operands++] = dst_at(t, i);
  }
  if (op->reads_src) {
    operand[operands++] = src_at(t, i);
  }
  if (op->receives) {
    operand[operands++] = message_at(t, i);
  }
  assert_int_equal(operands, op->reduces ? 2 : 1);
  if (!op->reduces) {
    return operand[0];
  }
  reduction(t)(&value, &operand[0], &operand[1], 1, t->kind.addends);
  return value;
}

static void fill(trial *t) {
  for (size_t i = 0; i < MAX_ELEMENTS; i++) {
    t->message[i] = message_at(t, i);
    t->src[i] = src_at(t, i);
    t->dst[i] = dst_at(t, i);
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
  size_t stored = op->writes_dst ? defined : 0, sent = op->sends ? defined : 0;
  sent = t->out_way == BY_PUT ? pccl_min_size(sent, t->sent_n) : sent;
  for (size_t i = 0; i < sizeof slot_out && (!op->sends || t->out_way != BY_SLOT); i++) {
    if (slot_out[i] != 0) {
      fail_msg("%s, %s, %s: a step that does not send by slot wrote a slot", name, op->name,
               polyccl_protocol_name(t->protocol));
    }
  }
  for (size_t i = 0; i < MAX_ELEMENTS; i++) {
    int32_t wanted = i < stored ? value_at(t, op, i) : dst_at(t, i);
    bool defines = i < stored || i >= t->dst_n || !op->writes_dst;
    if (defines && t->dst[i] != wanted) {
      fail_msg("%s, %s, %s, in by %d, out by %d: dst[%zu] of %zu (src %zu, dst %zu) is %d, not %d", name, op->name,
               polyccl_protocol_name(t->protocol), t->in_way, t->out_way, i, t->n, t->src_n, t->dst_n, t->dst[i],
               wanted);
    }
    if (i < sent && t->sent[i] != value_at(t, op, i)) {
      fail_msg("%s, %s, %s, in by %d, out by %d: element %zu of %zu sent (src %zu, dst %zu) is %d, not %d", name,
               op->name, polyccl_protocol_name(t->protocol), t->in_way, t->out_way, i, t->n, t->src_n, t->dst_n,
               t->sent[i], value_at(t, op, i));
    }
    if (t->out_way == BY_PUT && i >= t->sent_n && t->sent[i] != UNTOUCHED) {
      fail_msg("%s, %s: by put element %zu beyond the receiver's %zu was written", name, op->name, i, t->sent_n);
    }
  }
}

static const size_t lengths[] = {1, 29, 30, 31, 480, 481, 2048, 2999};
enum { LENGTHS = sizeof lengths / sizeof *lengths };
static const reduction_kind kinds[] = {{POLYCCL_INT32, POLYCCL_SUM, 0},
                                       {POLYCCL_FLOAT32, POLYCCL_AVG, PCCL_K_ADDENDS(5, 1, 0)},
                                       {POLYCCL_FLOAT32, POLYCCL_AVG, PCCL_K_ADDENDS(1, 2, 1)}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Runs one step with whole and with short chunks. */
static void check_lengths(implementation run_step, const char *name, trial *t, size_t n) {
  size_t less = n - (n + 2) / 3;
  for (int shortened = 0; shortened < 8; shortened++) {
    t->n = n;
    t->src_n = shortened & 1 ? less : n;
    t->dst_n = shortened & 2 ? less : n;
    t->sent_n = shortened & 4 ? less : n;
    fill(t);
    run_step(t);
    compare(t, name);
  }
}

static void check_table(implementation run_step, const char *name) {
  static trial t;
  for (int op = POLYCCL_STEP_SEND; op < POLYCCL_STEP_OP_COUNT; op++) {
    for (int protocol = 0; protocol < POLYCCL_PROTOCOL_COUNT; protocol++) {
      for (int k = 0; k < KINDS; k++) {
        for (int i = 0; i < LENGTHS; i++) {
          t.op = (uint8_t)op;
          t.protocol = (polyccl_protocol)protocol;
          t.kind = kinds[k];
          check_lengths(run_step, name, &t, lengths[i]);
        }
      }
    }
  }
}

static void the_interpreter_follows_the_table(void **state) {
  (void)state;
  check_table(step_h, "kernel/step.h");
}

static void generated_code_follows_the_table(void **state) {
  (void)state;
  check_table(moves_h, "kernel/moves.h");
}

/* A step that stores nothing cannot receive by put, and one that forwards a sum it does not store cannot send by get.
 */
static bool has_ways(const pccl_op_traits *op, way in, way out) {
  return (in == BY_SLOT || (op->receives && (in == BY_GET || op->writes_dst))) &&
         (out == BY_SLOT || (op->sends && (out == BY_PUT || op->writes_dst || !op->receives)));
}

static void messages_by_reference_follow_the_table(void **state) {
  (void)state;
  static trial t;
  for (int choice = 0; choice < POLYCCL_STEP_OP_COUNT * 18; choice++) {
    t.op = (uint8_t)(choice / 18);
    t.protocol = POLYCCL_SIMPLE;
    t.in_way = (way)(choice % 3);
    t.out_way = (way)(choice / 3 % 3);
    t.stream = choice / 9 % 2 != 0;
    for (int k = 0; t.op != POLYCCL_STEP_NOP && has_ways(&pccl_ops[t.op], t.in_way, t.out_way) && k < KINDS; k++) {
      t.kind = kinds[k];
      for (int i = 0; i < LENGTHS; i++) {
        check_lengths(step_h_by_reference, "kernel/step.h by reference", &t, lengths[i]);
      }
    }
  }
}

/* The two headers define the numbers of ops and protocols each by itself, since generated files carry no plan.h. */
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
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_interpreter_follows_the_table), cmocka_unit_test(generated_code_follows_the_table),
      cmocka_unit_test(messages_by_reference_follow_the_table), cmocka_unit_test(numbers_agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
