/* polyccl verify: proves that a plan is right and reports what it needs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <polyccl/plan.h>

#include "base/error.h"
#include "option.h"
#include "plan/xml_target.h"
#include "tools.h"

static const char *yes_no(bool yes) { return yes ? "yes" : "no"; }

/* XML does not say how many slots a connection has; each executor has its own number. */
static void print_slots(const polyccl_plan *plan, int32_t needed) {
  printf("  slots of the targets with %s:", polyccl_protocol_name(plan->protocol));
  for (int format = POLYCCL_FORMAT_XML; pccl_format_words[format] != NULL; format++) {
    int32_t has = pccl_xml_target_of((polyccl_format)format)->depth[plan->protocol];
    printf("%s %s %d%s", format > POLYCCL_FORMAT_XML ? "," : "", pccl_format_words[format], has,
           has < needed ? " (too few)" : "");
  }
  printf("\n");
}

static void print_report(const char *path, const polyccl_plan *plan, const polyccl_verify_report *report) {
  printf("%s: right\n", path);
  printf("  %s on %d ranks, %d chunks, %s, %s, %s\n", polyccl_collective_name(plan->collective), plan->ranks,
         plan->chunks, plan->inplace ? "in place" : "out of place", polyccl_protocol_name(plan->protocol),
         plan->order == POLYCCL_BATCH_MAJOR ? "batch-major" : "task-major");
  printf("  thread blocks %zu (at most %d on a rank), steps %zu (at most %zu in a chain), channels %d\n", plan->tbs,
         report->max_tbs, plan->steps, report->longest, report->channels);
  printf("  no deadlock from FIFO depth %d on\n", report->fifo_depth);
  if (plan->order == POLYCCL_BATCH_MAJOR) { /* the targets know no other order */
    print_slots(plan, report->fifo_depth);
  }
  printf("  counts that the chunks do not divide: %s\n", yes_no(report->uneven));
  printf("  the same bits on every rank: %s\n", yes_no(report->identical));
}

/* A target can run a plan if the plan can be written for it. */
static polyccl_result check_target(const char *path, const polyccl_plan *plan, polyccl_format target) {
  FILE *nowhere = fopen("/dev/null", "w");
  if (nowhere == NULL) {
    return pccl_fail_errno("cannot open /dev/null");
  }
  polyccl_result result = polyccl_plan_write(plan, target, nowhere);
  fclose(nowhere);
  if (result != POLYCCL_SUCCESS) {
    return pccl_prefix(result, "%s is right, but not for the target %s: ", path, pccl_format_words[target]);
  }
  return POLYCCL_SUCCESS;
}

/* `target` POLYCCL_FORMAT_PLAN: none. */
static polyccl_result verify_plan_file(const char *path, polyccl_format target) {
  polyccl_plan *plan;
  polyccl_verify_report report;
  polyccl_result result = polyccl_plan_read(path, &plan);
  if (result != POLYCCL_SUCCESS) {
    return result;
  }
  result = polyccl_plan_verify(plan, &report);
  if (result == POLYCCL_SUCCESS && target != POLYCCL_FORMAT_PLAN) {
    result = check_target(path, plan, target);
  }
  if (result == POLYCCL_SUCCESS) {
    print_report(path, plan, &report);
    if (target != POLYCCL_FORMAT_PLAN) {
      printf("  fits the target %s: yes\n", pccl_format_words[target]);
    }
  }
  polyccl_plan_destroy(plan);
  return result;
}

typedef struct verify_args {
  const char *path;
  int target; /* an index in the words from POLYCCL_FORMAT_XML on */
  bool has_target;
} verify_args;

static const pccl_tool_option verify_options[] = {
    {.name = "--target",
     .value = "xml|azure|rccl",
     .help = "Check also that the plan fits this executor of MSCCL XML. The names are the formats of polyccl "
             "compile.",
     .takes = PCCL_TAKES_WORD,
     .at = offsetof(verify_args, target),
     .words = &pccl_format_words[POLYCCL_FORMAT_XML],
     .given = offsetof(verify_args, has_target)},
    {.name = "", .takes = PCCL_TAKES_PATH, .expects = "a plan", .at = offsetof(verify_args, path)},
    {.name = NULL},
};

static int verify_command(int argc, char **argv) {
  verify_args args = {0};
  int status = pccl_tool_parse("verify", verify_options, &args, argc, argv);
  if (status != PCCL_EXIT_OK || args.path == NULL) {
    return status != PCCL_EXIT_OK ? status : pccl_tool_missing("verify", "a plan");
  }
  polyccl_result result = verify_plan_file(
      args.path, args.has_target ? (polyccl_format)(POLYCCL_FORMAT_XML + args.target) : POLYCCL_FORMAT_PLAN);
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("verify", result);
  }
  if (fflush(stdout) != 0) {
    fprintf(stderr, "polyccl verify: cannot write the report: %s\n", strerror(errno));
    return PCCL_EXIT_FAILED;
  }
  return PCCL_EXIT_OK;
}

const pccl_tool pccl_verify_tool = {
    .name = "verify",
    .usage = "PLAN [--target NAME]",
    .summary = "Prove that a plan is right.",
    .description =
        "PLAN is plan text or MSCCL XML, from any compiler. The command proves that the plan stays in its"
        " buffers, that sends and receives match, that it cannot deadlock at its FIFO depth with any "
        "number of micro-batches, that it has no data race, and that every output chunk is right at the "
        "end. If it is wrong, the error names the first fault by rank, thread block, step and source "
        "line. If it is right, the report gives the minimum FIFO depth that the plan needs and the slots "
        "that the executors of MSCCL XML have.",
    .options = verify_options,
    .run = verify_command,
};
