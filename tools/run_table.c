/* The table of polyccl run, as nccl-tests prints it. */
#include <stdio.h>

#include "base/error.h"
#include "run_ranks.h"

/* The ratio of bus bandwidth to algorithm bandwidth, as nccl-tests defines it. */
static double bus_factor(const polyccl_plan *plan) {
  double n = plan->ranks;
  switch (plan->collective) {
    case POLYCCL_ALLREDUCE: return 2 * (n - 1) / n;
    case POLYCCL_ALLGATHER:
    case POLYCCL_REDUCE_SCATTER:
    case POLYCCL_GATHER:
    case POLYCCL_SCATTER:
    case POLYCCL_ALLTOALL: return (n - 1) / n;
    default: return 1;
  }
}

const polyccl_plan *pccl_run_any_plan(const pccl_run_args *args) {
  return args->plan[0] != NULL ? args->plan[0] : args->plan[1];
}

size_t pccl_run_blocks(const polyccl_plan *plan) {
  pccl_collective_spec spec = {.kind = plan->collective, .ranks = plan->ranks, .chunks = 1};
  int in, out;
  pccl_collective_shape(&spec, &in, &out);
  return (size_t)(in > out ? in : out);
}

void pccl_run_print_head(const pccl_run_args *args) {
  const polyccl_plan *plan = pccl_run_any_plan(args);
  if (args->folder != NULL) {
    printf("# polyccl run: plans of %s, %s, %d ranks as %s, buffers %s\n", args->folder,
           polyccl_collective_name(plan->collective), plan->ranks, args->threads ? "threads" : "processes",
           args->shared ? "shared" : "private");
  } else {
    printf("# polyccl run: %s, %d ranks as %s, %s, %s, buffers %s\n", plan->name != NULL ? plan->name : "plan",
           plan->ranks, args->threads ? "threads" : "processes", polyccl_protocol_name(plan->protocol),
           plan->order == POLYCCL_BATCH_MAJOR ? "batch-major" : "task-major", args->shared ? "shared" : "private");
  }
  printf("#%41s %32s %32s\n", "", "out-of-place         ", "in-place           ");
  printf("#%12s %12s %6s %6s %5s %10s %7s %7s %6s %10s %7s %7s %6s\n", "size", "count", "type", "redop", "root", "time",
         "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
  printf("#%12s %12s %6s %6s %5s %10s %7s %7s %6s %10s %7s %7s %6s\n", "(B)", "(elements)", "", "", "", "(us)",
         "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

static bool is_rooted(polyccl_collective collective) {
  return collective == POLYCCL_BROADCAST || collective == POLYCCL_REDUCE || collective == POLYCCL_GATHER ||
         collective == POLYCCL_SCATTER || collective == POLYCCL_SENDRECV;
}

void pccl_run_print_line(pccl_run_job *j, size_t bytes, size_t count, const pccl_run_measured m[PCCL_RUN_PLACEMENTS]) {
  const polyccl_plan *plan = pccl_run_any_plan(j->args);
  printf(" %12zu %12zu %6s %6s %5d", bytes, count, polyccl_dtype_name(j->args->dtype),
         pccl_collective_reduces(plan->collective) ? polyccl_redop_name(j->args->op) : "none",
         is_rooted(plan->collective) ? plan->root : -1);
  for (int i = 0; i < PCCL_RUN_PLACEMENTS; i++) {
    if (!m[i].done) {
      printf(" %10s %7s %7s %6s", "N/A", "", "", "");
      continue;
    }
    double bandwidth = m[i].seconds > 0 ? (double)bytes / m[i].seconds / 1e9 : 0;
    char wrong[24] = "N/A";
    if (j->args->check) {
      snprintf(wrong, sizeof wrong, "%llu", (unsigned long long)m[i].wrong);
    }
    printf(m[i].seconds < 1e-5 ? " %10.3f" : m[i].seconds < 1e-3 ? " %10.2f" : " %10.1f", m[i].seconds * 1e6);
    printf(" %7.2f %7.2f %6s", bandwidth, bandwidth * bus_factor(plan), wrong);
    j->bandwidth += bandwidth * bus_factor(plan);
    j->lines++;
  }
  printf("\n");
}

polyccl_result pccl_run_flush_table(void) {
  bool lost = ferror(stdout) != 0;
  return fflush(stdout) == 0 && !lost ? POLYCCL_SUCCESS : pccl_fail_errno("standard output: cannot write");
}
