/* Runs the phases of the verifier in order, and names steps in its errors. */
#include "plan/verify.h"
#include "plan/reference.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

const char *pccl_verify_buffer(uint8_t buffer) {
  static const char *const names[] = {"input", "output", "scratch"};
  return buffer <= POLYCCL_BUF_SCRATCH ? names[buffer] : "unknown buffer";
}

polyccl_result pccl_verify_no_memory(const pccl_verify *v, const char *what) {
  const polyccl_plan *plan = v->plan;
  size_t cells = v->cell != NULL && v->parts != NULL ? v->cell[plan->ranks] : 0;
  return pccl_fail(POLYCCL_ERROR_MEMORY,
                   "out of memory for %s: the plan has %d ranks, %zu thread blocks, %zu steps, %zu connections and %zu "
                   "chunks in use",
                   what, plan->ranks, plan->tbs, plan->steps, plan->connections, cells);
}

pccl_step_name pccl_verify_name(const pccl_verify *v, int32_t step) {
  pccl_step_name name;
  const polyccl_plan *plan = v->plan;
  int32_t tb = v->step_tb[step], rank = plan->tb[tb].rank;
  const char *op = polyccl_step_op_name(plan->step[step].op);
  polyccl_location at = pccl_step_location(plan, &plan->step[step]);
  int length = snprintf(name.text, sizeof name.text, "rank %d tb %d step %d (%s", rank, tb - plan->rank[rank].tb,
                        step - plan->tb[tb].step, op);
  if (at.file != NULL) {
    snprintf(name.text + length, sizeof name.text - (size_t)length, ", %.100s:%d)", at.file, at.line);
  } else {
    snprintf(name.text + length, sizeof name.text - (size_t)length, ")");
  }
  return name;
}

polyccl_result pccl_verify_fail(const pccl_verify *v, int32_t step, const char *format, ...) {
  char text[640];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const polyccl_plan *plan = v->plan;
  int32_t tb = v->step_tb[step], rank = plan->tb[tb].rank;
  const char *op = polyccl_step_op_name(plan->step[step].op);
  return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_step_location(plan, &plan->step[step]),
                      "rank %d tb %d step %d (%s) %s", rank, tb - plan->rank[rank].tb, step - plan->tb[tb].step,
                      op != NULL ? op : "?", text);
}

polyccl_result pccl_verify_order_phases(pccl_verify *v) {
  PCCL_TRY(pccl_verify_bounds(v));
  PCCL_TRY(pccl_verify_match(v));
  return pccl_verify_order(v);
}

static polyccl_result run_all_phases(pccl_verify *v) {
  PCCL_TRY(pccl_verify_order_phases(v));
  PCCL_TRY(pccl_verify_race(v));
  PCCL_TRY(pccl_verify_references(v));
  return pccl_verify_post(v);
}

void pccl_verify_free(pccl_verify *v) {
  free(v->step_tb);
  free(v->cell);
  free(v->part);
  free(v->parts);
  free(v->from);
  free(v->to);
  free(v->order);
  free(v->level);
}

polyccl_result polyccl_plan_verify(const polyccl_plan *plan, polyccl_verify_report *report) {
  if (plan == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "no plan to verify");
  }
  pccl_verify v = {.plan = plan};
  polyccl_result result = run_all_phases(&v);
  if (result == POLYCCL_SUCCESS && report != NULL) {
    *report = v.report;
  }
  pccl_verify_free(&v);
  return result;
}

polyccl_result pccl_plan_min_depth(const polyccl_plan *plan, int32_t *depth) {
  polyccl_plan unknown = *plan; /* the depth that the plan names does not matter */
  unknown.fifo_depth = 0;
  pccl_verify v = {.plan = &unknown};
  polyccl_result result = pccl_verify_order_phases(&v);
  if (result == POLYCCL_SUCCESS) {
    *depth = v.report.fifo_depth;
  }
  pccl_verify_free(&v);
  return result;
}

polyccl_result pccl_plan_mark_references(polyccl_plan *plan) {
  if (plan->steps > PCCL_REFERENCE_MAX_STEPS || plan->ranks > PCCL_REFERENCE_MAX_RANKS) {
    return POLYCCL_SUCCESS;
  }
  pccl_verify v = {.plan = plan};
  polyccl_result result = pccl_verify_order_phases(&v);
  result = result == POLYCCL_SUCCESS ? pccl_verify_mark(&v, plan) : result;
  pccl_verify_free(&v);
  return result;
}
