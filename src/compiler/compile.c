/* Program to plan: the checks, the passes of a policy (passes.c has their table) or the search, the plan, its proof. */
#include "base/clock.h"
#include "base/error.h"
#include "base/sized.h"
#include "compiler/passes.h"
#include "compiler/schedule.h"
#include "compiler/search.h"
#include "plan/reference.h"

static polyccl_result run_policy(pccl_ir *ir) {
  const polyccl_compile_options *options = ir->options;
  if (options->policy == POLYCCL_POLICY_CONNECTION) {
    return pccl_passes_run(ir, PCCL_PASSES_LOWERING | PCCL_PASSES_CONNECTION);
  }
  if (options->schedule != POLYCCL_SCHEDULE_BEST) {
    return pccl_passes_run(ir, PCCL_PASSES_LOWERING | PCCL_PASSES_STATE);
  }
  double since = pccl_now_seconds();
  PCCL_TRY(pccl_search_schedule(ir));
  PCCL_LAP(ir, &since, schedule);
  pccl_passes_dump(ir, PCCL_PASSES_STATE);
  return POLYCCL_SUCCESS;
}

/* The verifier decides, on the plan as it will run. */
static polyccl_result prove_plan(polyccl_plan *plan) {
  PCCL_TRY(pccl_plan_mark_references(plan));
  polyccl_verify_report report;
  PCCL_TRY(polyccl_plan_verify(plan, &report));
  plan->fifo_depth = report.fifo_depth;
  return POLYCCL_SUCCESS;
}

static polyccl_result compile_program(pccl_ir *ir, polyccl_plan **plan) {
  const polyccl_compile_options *options = ir->options;
  polyccl_plan *made = NULL;
  double since = pccl_now_seconds();
  if (options->policy == POLYCCL_POLICY_STATE) {
    PCCL_TRY(pccl_schedule_check_options(ir->program, options));
  }
  PCCL_TRY(pccl_refine_check(ir));
  if (!options->no_verify) {
    PCCL_TRY(polyccl_program_check(ir->program, NULL));
    PCCL_LAP(ir, &since, check);
  }
  PCCL_TRY(run_policy(ir));
  since = pccl_now_seconds();
  PCCL_TRY(pccl_pass_emit(ir, &made));
  PCCL_LAP(ir, &since, emit);
  polyccl_result result = options->no_verify ? POLYCCL_SUCCESS : prove_plan(made);
  if (result != POLYCCL_SUCCESS) {
    polyccl_plan_destroy(made);
    return result;
  }
  PCCL_LAP(ir, &since, verify);
  *plan = made;
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_compile(const polyccl_program *program, const polyccl_compile_options *given,
                               polyccl_plan **plan) {
  polyccl_compile_options options = POLYCCL_COMPILE_DEFAULTS;
  PCCL_TRY(pccl_sized_read("polyccl_compile_options", given, &options, sizeof options, sizeof options));
  PCCL_TRY(pccl_passes_check_dump(&options));
  if (program->parallel.len > 1) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: a parallelize scope is still open", program->name);
  }
  if (options.instances < 0 || options.instances > POLYCCL_MAX_CHUNKS) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%d instances are out of range (1 to %d)", options.instances,
                     POLYCCL_MAX_CHUNKS);
  }
  if (options.times != NULL) {
    *options.times = (polyccl_compile_times){0};
  }
  pccl_ir ir = pccl_ir_of(program, &options, options.instances);
  polyccl_result result = compile_program(&ir, plan);
  if (result == POLYCCL_ERROR_MEMORY) {
    pccl_suffix(result, "; %s has %d ranks of %d chunks in %d parts, and %zu operations", program->name,
                program->config.ranks, program->cells, ir.refine, program->operations.len);
  }
  pccl_ir_free(&ir);
  return result;
}
