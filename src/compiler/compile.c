/* The table of contents: every pass in its order. */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sized.h"
#include "compiler/state.h"
#include "plan/reference.h"

typedef struct pass {
  const char *name;
  polyccl_result (*run)(pccl_ir *ir);
} pass;

/* Policy "connection", after refine and lower. */
static const pass passes[] = {
    {"fuse", pccl_pass_fuse},   {"channel", pccl_pass_channel}, {"order", pccl_pass_order},
    {"block", pccl_pass_block}, {"wait", pccl_pass_wait},
};
enum { PASSES = sizeof passes / sizeof passes[0] };

#ifdef NDEBUG
enum { CHECK_EACH_PASS = 0 };
#else
enum { CHECK_EACH_PASS = 1 };
#endif

static void dump_after(const pccl_ir *ir, const char *name, const polyccl_compile_options *options) {
  if (options->dump != NULL && strcmp(options->dump, name) == 0) {
    pccl_ir_dump(ir, options->dump_to != NULL ? options->dump_to : stderr);
  }
}

static polyccl_result check_dump_name(const polyccl_compile_options *options) {
  if (options->dump == NULL || strcmp(options->dump, "refine") == 0 || strcmp(options->dump, "lower") == 0 ||
      strcmp(options->dump, "schedule") == 0) {
    return POLYCCL_SUCCESS;
  }
  for (int i = 0; i < PASSES; i++) {
    if (strcmp(options->dump, passes[i].name) == 0) {
      return POLYCCL_SUCCESS;
    }
  }
  return pccl_fail(POLYCCL_ERROR_INVALID,
                   "unknown pass \"%s\" (known: refine, lower, fuse, channel, order, block, wait, schedule)",
                   options->dump);
}

static void note_pass(const pccl_ir *ir, int number, double *since) {
  if (ir->times != NULL) {
    double *to = strcmp(passes[number].name, "block") == 0  ? &ir->times->allocate
                 : strcmp(passes[number].name, "wait") == 0 ? &ir->times->wait
                                                            : &ir->times->schedule;
    *to += pccl_seconds_since(since);
  }
}

polyccl_result pccl_connection_passes(pccl_ir *ir, const polyccl_compile_options *options) {
  double at = pccl_now_seconds();
  for (int i = 0; i < PASSES; i++) {
    PCCL_TRY(passes[i].run(ir));
    note_pass(ir, i, &at);
    if (CHECK_EACH_PASS) {
      PCCL_TRY(pccl_ir_check(ir, passes[i].name));
    }
    dump_after(ir, passes[i].name, options);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result run_passes(pccl_ir *ir, const polyccl_compile_options *options) {
  double at = pccl_now_seconds();
  if (options->policy == POLYCCL_POLICY_STATE && options->schedule == POLYCCL_SCHEDULE_BEST) {
    PCCL_TRY(pccl_state_search(ir, options));
    PCCL_LAP(ir, &at, schedule);
    dump_after(ir, "schedule", options);
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(pccl_pass_refine(ir, options->placement));
  dump_after(ir, "refine", options);
  PCCL_TRY(pccl_pass_lower(ir));
  dump_after(ir, "lower", options);
  PCCL_LAP(ir, &at, lower);
  if (options->policy == POLYCCL_POLICY_CONNECTION) {
    return pccl_connection_passes(ir, options);
  }
  PCCL_TRY(pccl_state_once(ir, options));
  dump_after(ir, "schedule", options);
  return POLYCCL_SUCCESS;
}

/* The last word has the verifier, on the plan as it will run. */
static polyccl_result prove(polyccl_plan *plan) {
  PCCL_TRY(pccl_plan_mark_references(plan));
  polyccl_verify_report report;
  PCCL_TRY(polyccl_plan_verify(plan, &report));
  plan->fifo_depth = report.fifo_depth;
  return POLYCCL_SUCCESS;
}

static polyccl_result compile(const polyccl_program *program, const polyccl_compile_options *options, pccl_ir *ir,
                              polyccl_plan **plan) {
  polyccl_plan *made = NULL;
  double at = pccl_now_seconds();
  if (options->policy == POLYCCL_POLICY_STATE) {
    PCCL_TRY(pccl_state_check(ir, options));
  }
  PCCL_TRY(pccl_refine_check(ir, options->placement));
  if (!options->no_verify) {
    PCCL_TRY(polyccl_program_check(program, NULL));
    PCCL_LAP(ir, &at, check);
  }
  PCCL_TRY(run_passes(ir, options));
  at = pccl_now_seconds();
  PCCL_TRY(pccl_pass_emit(ir, &made));
  PCCL_LAP(ir, &at, emit);
  polyccl_result result = options->no_verify ? POLYCCL_SUCCESS : prove(made);
  if (result != POLYCCL_SUCCESS) {
    polyccl_plan_destroy(made);
    return result;
  }
  PCCL_LAP(ir, &at, verify);
  *plan = made;
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_compile(const polyccl_program *program, const polyccl_compile_options *options,
                               polyccl_plan **plan) {
  polyccl_compile_options own = POLYCCL_COMPILE_DEFAULTS;
  PCCL_TRY(pccl_sized_read("polyccl_compile_options", options, &own, sizeof own, sizeof own));
  options = &own;
  PCCL_TRY(check_dump_name(options));
  if (program->parallel.len > 1) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: a parallelize scope is still open", program->name);
  }
  if (options->instances < 0 || options->instances > POLYCCL_MAX_CHUNKS) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%d instances are out of range (1 to %d)", options->instances,
                     POLYCCL_MAX_CHUNKS);
  }
  if (options->times != NULL) {
    *options->times = (polyccl_compile_times){0};
  }
  pccl_ir ir = pccl_ir_of(program, options->instances);
  ir.no_fusion = options->no_fusion;
  ir.times = options->times;
  polyccl_result result = compile(program, options, &ir, plan);
  if (result == POLYCCL_ERROR_MEMORY) {
    pccl_suffix(result, "; %s has %d ranks of %d chunks in %d parts, and %zu operations", program->name,
                program->config.ranks, program->cells, ir.refine, program->operations.len);
  }
  pccl_ir_free(&ir);
  return result;
}
