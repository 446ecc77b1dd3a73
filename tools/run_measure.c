/* Times calls: a sample is a batch of calls, a time is the median over the samples of the slowest rank. */
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "run_ranks.h"

/* A sample is a batch of calls that takes about a millisecond, so that reading the clock (tens of nanoseconds) and the
 * barrier (microseconds) do not count; of very short calls it is MAX_BATCH calls. */
enum { MAX_BATCH = 200 };
static const double batch_seconds = 0.001;
static const double wanted_seconds = 0.25; /* of the samples of a size and placement without --iters */

/* Waits for the other ranks; fails if the communicator was aborted. */
polyccl_result pccl_run_barrier(polyccl_comm *comm, pccl_run_board *b) {
  uint32_t ranks = (uint32_t)polyccl_comm_count(comm), phase = atomic_load(&b->phase);
  if (atomic_fetch_add(&b->arrived, 1) + 1 == ranks) {
    atomic_store(&b->arrived, 0);
    atomic_store(&b->phase, phase + 1);
    return POLYCCL_SUCCESS;
  }
  bool oversubscribed = (long)ranks > sysconf(_SC_NPROCESSORS_ONLN);
  for (uint32_t spins = 1; atomic_load_explicit(&b->phase, memory_order_acquire) == phase; spins++) {
    if (oversubscribed || spins % 20000 == 0) {
      sched_yield();
    }
    if (spins % 20000 == 0) {
      PCCL_TRY(polyccl_comm_get_async_error(comm));
    }
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_run_calls(polyccl_comm *comm, int id, const pccl_run_args *args, const pccl_run_buffers *b,
                              size_t count, int times) {
  for (int i = 0; i < times; i++) {
    PCCL_TRY(args->folder != NULL
                 ? pccl_run_call(comm, args->plan[id], b->input, b->output, count, args->dtype, args->op)
                 : polyccl_run_plan(comm, id, b->input, b->output, count, args->dtype, args->op, NULL));
  }
  return POLYCCL_SUCCESS;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double pccl_run_median(const pccl_run_board *b, int ranks) {
  double slowest[PCCL_RUN_MAX_SAMPLES];
  for (int s = 0; s < b->samples; s++) {
    slowest[s] = 0;
    for (int r = 0; r < ranks; r++) {
      double t = b->sample[r * PCCL_RUN_MAX_SAMPLES + s];
      slowest[s] = t > slowest[s] ? t : slowest[s];
    }
  }
  qsort(slowest, (size_t)b->samples, sizeof *slowest, by_value);
  return slowest[b->samples / 2];
}

/* Rank 0 decides how many calls make a sample and how many samples there are. */
static polyccl_result plan_samples(polyccl_comm *comm, pccl_run_job *j, int id, const pccl_run_buffers *b,
                                   size_t count) {
  int trial = 5;
  PCCL_TRY(pccl_run_calls(comm, id, j->args, b, count, j->args->warmup + 1));
  PCCL_TRY(pccl_run_barrier(comm, j->board));
  double start = pccl_now_seconds();
  PCCL_TRY(pccl_run_calls(comm, id, j->args, b, count, trial));
  double each = (pccl_now_seconds() - start) / trial;
  if (polyccl_comm_user_rank(comm) == 0) {
    double batch = each > 0 ? batch_seconds / each : MAX_BATCH;
    j->board->batch = batch < 1 || j->args->apart ? 1 : batch > MAX_BATCH ? MAX_BATCH : (int)batch;
    double samples = wanted_seconds / (each * j->board->batch + 1e-9);
    j->board->samples = samples < 5 ? 5 : samples > PCCL_RUN_MAX_SAMPLES ? PCCL_RUN_MAX_SAMPLES : (int)samples;
    if (j->args->iterations > 0) {
      j->board->batch = j->args->apart ? 1 : (j->args->iterations + PCCL_RUN_MAX_SAMPLES - 1) / PCCL_RUN_MAX_SAMPLES;
      int wanted = j->args->iterations / j->board->batch;
      j->board->samples = wanted > PCCL_RUN_MAX_SAMPLES ? PCCL_RUN_MAX_SAMPLES : wanted;
    }
  }
  return pccl_run_barrier(comm, j->board);
}

/* Lets all ranks start at one time of the clock, since they leave a barrier microseconds apart. */
static polyccl_result start_together(polyccl_comm *comm, pccl_run_board *b, double *start) {
  enum { AHEAD_NS = 20000 }; /* longer than the ranks need to leave a barrier */
  PCCL_TRY(pccl_run_barrier(comm, b));
  if (polyccl_comm_user_rank(comm) == 0) {
    atomic_store(&b->start, pccl_now() + AHEAD_NS);
  }
  PCCL_TRY(pccl_run_barrier(comm, b));
  double at = (double)atomic_load(&b->start) * 1e-9;
  while ((*start = pccl_now_seconds()) < at) {
  }
  *start = at;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_run_measure(polyccl_comm *comm, pccl_run_job *j, int id, const pccl_run_buffers *b, size_t count) {
  PCCL_TRY(plan_samples(comm, j, id, b, count));
  double *mine = j->board->sample + (size_t)polyccl_comm_user_rank(comm) * PCCL_RUN_MAX_SAMPLES;
  int batch = j->board->batch;
  for (int s = 0; s < j->board->samples; s++) {
    double start;
    if (j->args->apart) {
      PCCL_TRY(start_together(comm, j->board, &start));
    } else {
      PCCL_TRY(pccl_run_barrier(comm, j->board));
      start = pccl_now_seconds();
    }
    PCCL_TRY(pccl_run_calls(comm, id, j->args, b, count, batch));
    mine[s] = (pccl_now_seconds() - start) / batch;
  }
  return pccl_run_barrier(comm, j->board);
}
