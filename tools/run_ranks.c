/* What every rank of polyccl run does: for each size fill, warm up, measure, run once more on fresh data and check. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/error.h"
#include "run_ranks.h"
#include "runtime/launcher.h"

static polyccl_result run_one(polyccl_comm *comm, pccl_run_job *j, int placement, int id, size_t count,
                              pccl_run_measured *m) {
  const pccl_run_args *args = j->args;
  const polyccl_plan *plan = args->plan[placement];
  int rank = polyccl_comm_user_rank(comm);
  pccl_run_buffers b;
  PCCL_TRY(pccl_run_make_buffers(args, plan, rank, count, &b));
  pccl_run_reset(args, plan, rank, count, &b);
  polyccl_result result = pccl_run_measure(comm, j, id, &b, count);
  if (result == POLYCCL_SUCCESS && rank == 0) {
    m->seconds = pccl_run_median(j->board, polyccl_comm_count(comm));
  }
  if (result == POLYCCL_SUCCESS && j->traces != NULL) {
    result = pccl_run_record(comm, j, id, &b, count);
  }
  if (result == POLYCCL_SUCCESS && args->check) {
    pccl_run_reset(args, plan, rank, count, &b);
    result = pccl_run_barrier(comm, j->board);
    if (result == POLYCCL_SUCCESS) {
      result = pccl_run_calls(comm, id, args, &b, count, 1);
    }
    if (result == POLYCCL_SUCCESS) {
      atomic_fetch_add(&j->board->wrong, pccl_run_wrong(plan, rank, args->dtype, args->op, count, b.output));
      atomic_fetch_add(&j->board->overwritten, pccl_run_overwritten(args, &b));
    }
  }
  if (result == POLYCCL_SUCCESS) {
    result = pccl_run_barrier(comm, j->board);
  }
  pccl_run_free_buffers(args, &b);
  if (result == POLYCCL_SUCCESS && rank == 0) {
    m->done = true;
    m->wrong = atomic_exchange(&j->board->wrong, 0);
    atomic_fetch_add(&j->board->total_wrong, m->wrong);
  }
  return result;
}

static polyccl_result run_size(polyccl_comm *comm, pccl_run_job *j, const int *ids, size_t count) {
  pccl_run_measured m[PCCL_RUN_PLACEMENTS] = {{0}};
  for (int i = 0; i < PCCL_RUN_PLACEMENTS; i++) {
    if (j->args->plan[i] != NULL) {
      PCCL_TRY(run_one(comm, j, i, ids[i], count, &m[i]));
    }
  }
  if (polyccl_comm_user_rank(comm) == 0 && j->args->seconds != NULL) {
    for (int i = 0; i < PCCL_RUN_PLACEMENTS; i++) {
      j->args->seconds[j->lines++] = m[i].done ? m[i].seconds : 0;
    }
  } else if (polyccl_comm_user_rank(comm) == 0) {
    const polyccl_plan *plan = pccl_run_any_plan(j->args);
    pccl_run_print_line(j, count * pccl_run_blocks(plan) * polyccl_dtype_size(j->args->dtype), count, m);
    PCCL_TRY(pccl_run_flush_table());
  }
  return POLYCCL_SUCCESS;
}

/* Returns the count of a call of `bytes` bytes of the larger buffer. A custom collective gets whole chunks; a size
 * below one element, or chunk, counts as one. */
static size_t count_of(const pccl_run_args *args, uint64_t bytes) {
  const polyccl_plan *plan = pccl_run_any_plan(args);
  size_t unit = pccl_run_blocks(plan) * polyccl_dtype_size(args->dtype);
  size_t custom = plan->collective == POLYCCL_CUSTOM ? (size_t)plan->chunks : 1;
  size_t count = (size_t)bytes / unit / custom * custom;
  return count > 0 || bytes == 0 ? count : custom;
}

/* Runs each count once, though several small sizes may have the same. */
static polyccl_result run_sizes(polyccl_comm *comm, pccl_run_job *j, const int *ids) {
  const pccl_run_args *args = j->args;
  if (args->has_count) {
    return run_size(comm, j, ids, args->count);
  }
  uint64_t bytes = args->sizes.min;
  size_t count = count_of(args, bytes);
  PCCL_TRY(run_size(comm, j, ids, count));
  while (pccl_sizes_next(&args->sizes, &bytes)) {
    if (count_of(args, bytes) != count) {
      count = count_of(args, bytes);
      PCCL_TRY(run_size(comm, j, ids, count));
    }
  }
  return POLYCCL_SUCCESS;
}

static size_t largest_count(const pccl_run_args *args) {
  uint64_t bytes = args->sizes.min;
  while (!args->has_count && pccl_sizes_next(&args->sizes, &bytes)) {
  }
  return args->has_count ? (size_t)args->count : count_of(args, bytes);
}

static polyccl_result rank_main(polyccl_comm *comm, void *argument) {
  pccl_run_job j = *(const pccl_run_job *)argument;
  int ids[PCCL_RUN_PLACEMENTS] = {-1, -1};
  if (j.args->folder != NULL) {
    ids[0] = 0;
    ids[1] = 1;
    PCCL_TRY(polyccl_comm_add_folder(comm, j.args->folder, NULL));
  }
  for (int i = 0; i < PCCL_RUN_PLACEMENTS; i++) {
    if (j.args->plan[i] != NULL && j.args->folder == NULL) {
      const char *code = j.args->code[i];
      PCCL_TRY(code != NULL ? polyccl_comm_add_generated(comm, j.args->plan[i], code, &ids[i])
                            : polyccl_comm_add_plan(comm, j.args->plan[i], &ids[i]));
    }
  }
  bool prints = polyccl_comm_user_rank(comm) == 0 && j.args->seconds == NULL;
  if (prints) {
    pccl_run_print_head(j.args);
  }
  PCCL_TRY(run_sizes(comm, &j, ids));
  if (prints) {
    uint64_t guards = atomic_load(&j.board->overwritten);
    if (j.args->check) {
      printf("# Out of bounds values : %llu %s\n", (unsigned long long)guards, guards == 0 ? "OK" : "FAILED");
    }
    printf("# Avg bus bandwidth    : %.4g\n", j.lines > 0 ? j.bandwidth / j.lines : 0);
    PCCL_TRY(pccl_run_flush_table());
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_run_all(const pccl_run_args *args, uint64_t *wrong) {
  int ranks = pccl_run_any_plan(args)->ranks;
  PCCL_TRY(pccl_run_check_memory(args, largest_count(args)));
  size_t bytes = sizeof(pccl_run_board) + (size_t)ranks * PCCL_RUN_MAX_SAMPLES * sizeof(double);
  pccl_run_board *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    return pccl_fail_errno("no memory shared with the ranks");
  }
  pccl_run_job j = {.args = args, .board = shared};
  polyccl_result result = args->trace != NULL ? pccl_run_map_traces(&j, ranks) : POLYCCL_SUCCESS;
  if (result == POLYCCL_SUCCESS) {
    result = args->threads ? pccl_launch_threads(ranks, rank_main, &j) : pccl_launch_processes(ranks, rank_main, &j);
  }
  if (result == POLYCCL_SUCCESS && j.traces != NULL) {
    result = pccl_run_write_trace(&j);
  }
  pccl_run_unmap_traces(&j, ranks);
  *wrong = atomic_load(&shared->total_wrong) + atomic_load(&shared->overwritten);
  munmap(shared, bytes);
  return result;
}
