/* polyccl verify: what is proved of a plan from anywhere. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <polyccl/plan.h>

#include "option.h"
#include "tools.h"

static const char *yes_no(bool yes) { return yes ? "yes" : "no"; }

static void print_report(const char *path, const polyccl_plan *plan, const polyccl_verify_report *report) {
  printf("%s: right\n", path);
  printf("  %s on %d ranks, %d chunks, %s, %s, %s\n", polyccl_collective_name(plan->collective), plan->ranks,
         plan->chunks, plan->inplace ? "in place" : "out of place", polyccl_protocol_name(plan->protocol),
         plan->order == POLYCCL_BATCH_MAJOR ? "batch-major" : "task-major");
  printf("  thread blocks %zu (at most %d on a rank), steps %zu (at most %zu in a chain), channels %d\n", plan->tbs,
         report->max_tbs, plan->steps, report->longest, report->channels);
  printf("  no deadlock from FIFO depth %d on\n", report->fifo_depth);
  printf("  counts that the chunks do not divide: %s\n", yes_no(report->uneven));
  printf("  the same bits on every rank: %s\n", yes_no(report->identical));
}

static polyccl_result verify(const char *path) {
  polyccl_plan *plan;
  polyccl_verify_report report;
  polyccl_result result = polyccl_plan_read(path, &plan);
  if (result != POLYCCL_SUCCESS) {
    return result;
  }
  result = polyccl_plan_verify(plan, &report);
  if (result == POLYCCL_SUCCESS) {
    print_report(path, plan, &report);
  }
  polyccl_plan_destroy(plan);
  return result;
}

typedef struct verify_args {
  const char *path;
} verify_args;

const pccl_tool_option pccl_verify_options[] = {
    {.name = "", .takes = PCCL_TAKES_PATH, .wants = "a plan", .at = offsetof(verify_args, path)},
    {.name = NULL},
};

int pccl_tool_verify(int argc, char **argv) {
  verify_args args = {0};
  int status = pccl_tool_parse("verify", pccl_verify_options, &args, argc, argv);
  if (status != PCCL_EXIT_OK || args.path == NULL) {
    return status != PCCL_EXIT_OK ? status : pccl_tool_usage("verify", "expects one plan: polyccl verify PLAN");
  }
  polyccl_result result = verify(args.path);
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("verify", result);
  }
  if (fflush(stdout) != 0) {
    fprintf(stderr, "polyccl verify: cannot write the report: %s\n", strerror(errno));
    return PCCL_EXIT_FAILED;
  }
  return PCCL_EXIT_OK;
}
