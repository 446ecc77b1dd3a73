/* What every rank of polyccl run does: for each size fill, warm up, measure, run once more on fresh data and check. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"
#include "run.h"
#include "runtime/call_trace.h"
#include "runtime/launcher.h"

/* Events of a rank in a trace: pages that are not written cost nothing. */
enum { MOST_EVENTS = 1 << 19, TRACED_CALLS = 9 };
static const size_t trace_bytes = sizeof(pccl_call_trace) + MOST_EVENTS * sizeof(pccl_call_record);

enum { GUARD = 256, GUARD_BYTE = 0xa5, MOST_SAMPLES = 51, MOST_BATCH = 200 };
static const double wanted_seconds = 0.25; /* per size and placement, by the clock */

/* Memory that all ranks share, apart from the library: its own barrier, samples, sums. */
typedef struct board {
  _Atomic uint32_t arrived, phase;
  _Atomic uint64_t wrong, overwritten, total_wrong;
  _Atomic uint64_t start; /* --apart: when the next call begins, ns */
  int batch, samples;
  double sample[];
} board;

typedef struct job {
  const pccl_run_args *args;
  board *board;
  double bandwidth; /* rank 0's sums for the average */
  int lines;
  char *traces; /* two pccl_call_trace per rank, trace_bytes apart; NULL: no trace */
} job;

typedef struct buffers {
  char *input, *output; /* of the call */
  char *memory[2];      /* as allocated, guards around */
  size_t bytes[2];      /* inside the guards */
} buffers;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Spins with yields; ends when the communicator was aborted. */
static polyccl_result barrier(polyccl_comm *comm, board *b) {
  uint32_t ranks = (uint32_t)polyccl_comm_count(comm), phase = atomic_load(&b->phase);
  if (atomic_fetch_add(&b->arrived, 1) + 1 == ranks) {
    atomic_store(&b->arrived, 0);
    atomic_store(&b->phase, phase + 1);
    return POLYCCL_SUCCESS;
  }
  bool crowded = (long)ranks > sysconf(_SC_NPROCESSORS_ONLN);
  for (uint32_t spins = 1; atomic_load_explicit(&b->phase, memory_order_acquire) == phase; spins++) {
    if (crowded || spins % 20000 == 0) {
      sched_yield();
    }
    if (spins % 20000 == 0) {
      PCCL_TRY(polyccl_comm_get_async_error(comm));
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- buffers ---- */

static polyccl_result make_buffer(const pccl_run_args *args, size_t bytes, char **memory) {
  size_t all = bytes + 2 * GUARD + args->offset * polyccl_dtype_size(args->dtype);
  void *made = NULL;
  if (args->shared) {
    PCCL_TRY(polyccl_mem_alloc(&made, all));
  } else if (posix_memalign(&made, 4096, all) != 0) {
    return pccl_fail(POLYCCL_ERROR_MEMORY, "no memory for a buffer of %zu bytes", all);
  }
  *memory = made;
  return POLYCCL_SUCCESS;
}

static void free_buffers(const pccl_run_args *args, buffers *b) {
  for (int i = 0; i < 2; i++) {
    if (args->shared) {
      polyccl_mem_free(b->memory[i]);
    } else {
      free(b->memory[i]);
    }
  }
}

static polyccl_result make_buffers(const pccl_run_args *args, const polyccl_plan *plan, int rank, size_t count,
                                   buffers *b) {
  size_t element = polyccl_dtype_size(args->dtype);
  pccl_collective_spec spec = {.kind = plan->collective,
                               .ranks = plan->ranks,
                               .chunks = plan->chunks,
                               .chunks_out = plan->chunks_out,
                               .inplace = plan->inplace,
                               .root = plan->root,
                               .peer = plan->peer};
  int in, out;
  pccl_collective_shape(&spec, &in, &out);
  size_t in_bytes = count * (size_t)in / (size_t)plan->chunks * element;
  size_t out_bytes = count * (size_t)out / (size_t)plan->chunks * element;
  *b = (buffers){0};
  bool one = plan->inplace;
  b->bytes[0] = one ? (in_bytes > out_bytes ? in_bytes : out_bytes) : in_bytes;
  b->bytes[1] = one ? 0 : out_bytes;
  polyccl_result result = make_buffer(args, b->bytes[0], &b->memory[0]);
  if (result == POLYCCL_SUCCESS) {
    result = make_buffer(args, b->bytes[1], &b->memory[1]);
  }
  if (result != POLYCCL_SUCCESS) {
    free_buffers(args, b);
    return result;
  }
  size_t shift = GUARD + args->offset * element;
  b->input = b->memory[0] + shift;
  b->output = b->memory[1] + shift;
  if (one) {
    int in_cell = pccl_collective_cell(&spec, rank, false, 0), out_cell = pccl_collective_cell(&spec, rank, true, 0);
    b->output = b->input + (size_t)(out_cell / plan->chunks) * count * element;
    b->input += (size_t)(in_cell / plan->chunks) * count * element;
  }
  return POLYCCL_SUCCESS;
}

/* Everything that is not input is set to a byte that no result has in all its places. */
static void reset(const pccl_run_args *args, const polyccl_plan *plan, int rank, size_t count, buffers *b) {
  size_t shift = args->offset * polyccl_dtype_size(args->dtype);
  for (int i = 0; i < 2; i++) {
    memset(b->memory[i], GUARD_BYTE, b->bytes[i] + 2 * GUARD + shift);
  }
  pccl_collective_spec spec = {.kind = plan->collective,
                               .ranks = plan->ranks,
                               .chunks = plan->chunks,
                               .chunks_out = plan->chunks_out,
                               .root = plan->root,
                               .peer = plan->peer};
  pccl_run_fill(&spec, rank, args->dtype, args->op, count, b->input);
}

static uint64_t overwritten(const pccl_run_args *args, const buffers *b) {
  uint64_t found = 0;
  size_t shift = GUARD + args->offset * polyccl_dtype_size(args->dtype);
  for (int i = 0; i < 2; i++) {
    for (size_t k = 0; k < shift; k++) {
      found += (unsigned char)b->memory[i][k] != GUARD_BYTE;
    }
    for (size_t k = 0; k < GUARD; k++) {
      found += (unsigned char)b->memory[i][shift + b->bytes[i] + k] != GUARD_BYTE;
    }
  }
  return found;
}

/* ---- measuring ---- */

typedef struct measured {
  bool done;
  double seconds;
  uint64_t wrong;
} measured;

/* `id`: the plan; with a folder the placement, the library chooses the plan. */
static polyccl_result call(polyccl_comm *comm, int id, const pccl_run_args *args, const buffers *b, size_t count,
                           int times) {
  for (int i = 0; i < times; i++) {
    PCCL_TRY(args->folder != NULL
                 ? pccl_run_call(comm, args->plan[id], b->input, b->output, count, args->dtype, args->op)
                 : polyccl_run_plan(comm, id, b->input, b->output, count, args->dtype, args->op));
  }
  return POLYCCL_SUCCESS;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The slowest rank of each sample, the median of the samples. */
static double median(const board *b, int ranks) {
  double slowest[MOST_SAMPLES];
  for (int s = 0; s < b->samples; s++) {
    slowest[s] = 0;
    for (int r = 0; r < ranks; r++) {
      double t = b->sample[r * MOST_SAMPLES + s];
      slowest[s] = t > slowest[s] ? t : slowest[s];
    }
  }
  qsort(slowest, (size_t)b->samples, sizeof *slowest, by_value);
  return slowest[b->samples / 2];
}

/* Rank 0 decides how many calls make a sample and how many samples there are. */
static polyccl_result plan_samples(polyccl_comm *comm, job *j, int id, const buffers *b, size_t count) {
  int trial = 5;
  PCCL_TRY(call(comm, id, j->args, b, count, j->args->warmup + 1));
  PCCL_TRY(barrier(comm, j->board));
  double start = now();
  PCCL_TRY(call(comm, id, j->args, b, count, trial));
  double each = (now() - start) / trial;
  if (polyccl_comm_user_rank(comm) == 0) {
    double batch = each > 0 ? 0.001 / each : MOST_BATCH;
    j->board->batch = batch < 1 || j->args->apart ? 1 : batch > MOST_BATCH ? MOST_BATCH : (int)batch;
    double samples = wanted_seconds / (each * j->board->batch + 1e-9);
    j->board->samples = samples < 5 ? 5 : samples > MOST_SAMPLES ? MOST_SAMPLES : (int)samples;
    if (j->args->iterations > 0) {
      j->board->batch = j->args->apart ? 1 : (j->args->iterations + MOST_SAMPLES - 1) / MOST_SAMPLES;
      int wanted = j->args->iterations / j->board->batch;
      j->board->samples = wanted > MOST_SAMPLES ? MOST_SAMPLES : wanted;
    }
  }
  return barrier(comm, j->board);
}

/* All ranks go on at one time of the clock, since they leave a barrier microseconds apart. */
static polyccl_result start_together(polyccl_comm *comm, board *b, double *start) {
  enum { AHEAD_NS = 20000 };
  PCCL_TRY(barrier(comm, b));
  if (polyccl_comm_user_rank(comm) == 0) {
    atomic_store(&b->start, (uint64_t)(now() * 1e9) + AHEAD_NS);
  }
  PCCL_TRY(barrier(comm, b));
  double at = (double)atomic_load(&b->start) * 1e-9;
  while ((*start = now()) < at) {
  }
  *start = at;
  return POLYCCL_SUCCESS;
}

static polyccl_result measure(polyccl_comm *comm, job *j, int id, const buffers *b, size_t count) {
  PCCL_TRY(plan_samples(comm, j, id, b, count));
  double *mine = j->board->sample + (size_t)polyccl_comm_user_rank(comm) * MOST_SAMPLES;
  int batch = j->board->batch;
  for (int s = 0; s < j->board->samples; s++) {
    double start;
    if (j->args->apart) {
      PCCL_TRY(start_together(comm, j->board, &start));
    } else {
      PCCL_TRY(barrier(comm, j->board));
      start = now();
    }
    PCCL_TRY(call(comm, id, j->args, b, count, batch));
    mine[s] = (now() - start) / batch;
  }
  return barrier(comm, j->board);
}

/* What the rank recorded: of the call just made, and of the quickest one so far. */
typedef enum which { CURRENT = 0, QUICKEST } which;

static pccl_call_trace *trace_of(const job *j, int rank, which w) {
  return (pccl_call_trace *)(void *)(j->traces + (2 * (size_t)rank + w) * trace_bytes);
}

/* From the first rank's start to the last event, all ranks. */
static uint64_t duration(const job *j, int ranks) {
  uint64_t begin = UINT64_MAX, end = 0;
  for (int rank = 0; rank < ranks; rank++) {
    const pccl_call_trace *trace = trace_of(j, rank, CURRENT);
    begin = trace->begin < begin ? trace->begin : begin;
    for (size_t i = 0; i < trace->count; i++) {
      end = trace->record[i].end > end ? trace->record[i].end : end;
    }
  }
  return end > begin ? end - begin : 0;
}

/* A few more calls, all ranks together; the quickest stays, since whatever else the machine does only adds. */
static polyccl_result record(polyccl_comm *comm, job *j, int id, const buffers *b, size_t count) {
  int rank = polyccl_comm_user_rank(comm);
  pccl_call_trace *trace = trace_of(j, rank, CURRENT);
  trace->capacity = MOST_EVENTS;
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < TRACED_CALLS; i++) {
    PCCL_TRY(barrier(comm, j->board));
    pccl_record_calls(comm, trace);
    polyccl_result result = call(comm, id, j->args, b, count, 1);
    pccl_record_calls(comm, NULL);
    PCCL_TRY(result);
    PCCL_TRY(barrier(comm, j->board));
    uint64_t now_took = duration(j, polyccl_comm_count(comm)); /* every rank finds the same */
    if (now_took < least) {
      least = now_took;
      memcpy(trace_of(j, rank, QUICKEST), trace, sizeof *trace + trace->count * sizeof trace->record[0]);
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result run_one(polyccl_comm *comm, job *j, int placement, int id, size_t count, measured *m) {
  const pccl_run_args *args = j->args;
  const polyccl_plan *plan = args->plan[placement];
  int rank = polyccl_comm_user_rank(comm);
  buffers b;
  PCCL_TRY(make_buffers(args, plan, rank, count, &b));
  reset(args, plan, rank, count, &b);
  polyccl_result result = measure(comm, j, id, &b, count);
  if (result == POLYCCL_SUCCESS && rank == 0) {
    m->seconds = median(j->board, polyccl_comm_count(comm));
  }
  if (result == POLYCCL_SUCCESS && j->traces != NULL) {
    result = record(comm, j, id, &b, count);
  }
  if (result == POLYCCL_SUCCESS && args->check) {
    reset(args, plan, rank, count, &b);
    result = barrier(comm, j->board);
    if (result == POLYCCL_SUCCESS) {
      result = call(comm, id, args, &b, count, 1);
    }
    if (result == POLYCCL_SUCCESS) {
      atomic_fetch_add(&j->board->wrong, pccl_run_wrong(plan, rank, args->dtype, args->op, count, b.output));
      atomic_fetch_add(&j->board->overwritten, overwritten(args, &b));
    }
  }
  if (result == POLYCCL_SUCCESS) {
    result = barrier(comm, j->board);
  }
  free_buffers(args, &b);
  if (result == POLYCCL_SUCCESS && rank == 0) {
    m->done = true;
    m->wrong = atomic_exchange(&j->board->wrong, 0);
    atomic_fetch_add(&j->board->total_wrong, m->wrong);
  }
  return result;
}

/* ---- the table ---- */

/* What a busy link carries per byte of algorithm bandwidth, as nccl-tests counts. */
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

static const polyccl_plan *any_plan(const pccl_run_args *args) {
  return args->plan[0] != NULL ? args->plan[0] : args->plan[1];
}

/* Blocks of the larger buffer: what a size in bytes counts. */
static size_t blocks_of(const polyccl_plan *plan) {
  pccl_collective_spec spec = {.kind = plan->collective, .ranks = plan->ranks, .chunks = 1};
  int in, out;
  pccl_collective_shape(&spec, &in, &out);
  return (size_t)(in > out ? in : out);
}

static void print_head(const pccl_run_args *args) {
  const polyccl_plan *plan = any_plan(args);
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

static void print_line(job *j, size_t bytes, size_t count, const measured m[PCCL_RUN_PLACEMENTS]) {
  const polyccl_plan *plan = any_plan(j->args);
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

/* A table that nobody can read ends the run. */
static polyccl_result flush_table(void) {
  bool lost = ferror(stdout) != 0;
  return fflush(stdout) == 0 && !lost ? POLYCCL_SUCCESS : pccl_fail_errno("standard output: cannot write");
}

static polyccl_result run_size(polyccl_comm *comm, job *j, const int *ids, size_t count) {
  measured m[PCCL_RUN_PLACEMENTS] = {{0}};
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
    const polyccl_plan *plan = any_plan(j->args);
    print_line(j, count * blocks_of(plan) * polyccl_dtype_size(j->args->dtype), count, m);
    PCCL_TRY(flush_table());
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result run_sizes(polyccl_comm *comm, job *j, const int *ids) {
  const pccl_run_args *args = j->args;
  if (args->has_count) {
    return run_size(comm, j, ids, args->count);
  }
  const polyccl_plan *plan = any_plan(args);
  size_t unit = blocks_of(plan) * polyccl_dtype_size(args->dtype);
  size_t custom = plan->collective == POLYCCL_CUSTOM ? (size_t)plan->chunks : 1; /* whole chunks */
  uint64_t bytes = args->sizes.min;
  do {
    size_t count = (size_t)bytes / unit / custom * custom;
    PCCL_TRY(run_size(comm, j, ids, count > 0 ? count : custom));
  } while (pccl_sizes_next(&args->sizes, &bytes));
  return POLYCCL_SUCCESS;
}

static polyccl_result rank_main(polyccl_comm *comm, void *argument) {
  job j = *(const job *)argument;
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
    print_head(j.args);
  }
  PCCL_TRY(run_sizes(comm, &j, ids));
  if (prints) {
    uint64_t guards = atomic_load(&j.board->overwritten);
    if (j.args->check) {
      printf("# Out of bounds values : %llu %s\n", (unsigned long long)guards, guards == 0 ? "OK" : "FAILED");
    }
    printf("# Avg bus bandwidth    : %.4g\n", j.lines > 0 ? j.bandwidth / j.lines : 0);
    PCCL_TRY(flush_table());
  }
  return POLYCCL_SUCCESS;
}

/* The plan whose call was recorded last: the placements take turns. */
static polyccl_result write_trace(const job *j) {
  const pccl_run_args *args = j->args;
  const polyccl_plan *plan = args->plan[1] != NULL ? args->plan[1] : args->plan[0];
  uint64_t zero = UINT64_MAX;
  for (int rank = 0; rank < plan->ranks; rank++) {
    zero = trace_of(j, rank, QUICKEST)->begin < zero ? trace_of(j, rank, QUICKEST)->begin : zero;
  }
  polyccl_trace *trace;
  PCCL_TRY(polyccl_trace_create(plan, "measured", &trace));
  polyccl_result result = POLYCCL_SUCCESS;
  for (int rank = 0; rank < plan->ranks && result == POLYCCL_SUCCESS; rank++) {
    result = pccl_call_trace_add(trace_of(j, rank, QUICKEST), rank, zero, trace);
  }
  if (result == POLYCCL_SUCCESS) {
    result = polyccl_trace_finish(trace);
  }
  if (result == POLYCCL_SUCCESS) {
    result = polyccl_trace_write(trace, args->trace);
  }
  polyccl_trace_destroy(trace);
  return result;
}

/* Memory for the ranks' traces, which all processes share. */
static polyccl_result map_traces(job *j, int ranks) {
  void *memory = mmap(NULL, 2 * (size_t)ranks * trace_bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return pccl_fail_errno("no memory for the traces of %d ranks", ranks);
  }
  j->traces = memory;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_run_all(const pccl_run_args *args, uint64_t *wrong) {
  int ranks = any_plan(args)->ranks;
  size_t bytes = sizeof(board) + (size_t)ranks * MOST_SAMPLES * sizeof(double);
  board *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    return pccl_fail_errno("no memory shared with the ranks");
  }
  job j = {.args = args, .board = shared};
  polyccl_result result = args->trace != NULL ? map_traces(&j, ranks) : POLYCCL_SUCCESS;
  if (result == POLYCCL_SUCCESS) {
    result = args->threads ? pccl_launch_threads(ranks, rank_main, &j) : pccl_launch_processes(ranks, rank_main, &j);
  }
  if (result == POLYCCL_SUCCESS && j.traces != NULL) {
    result = write_trace(&j);
  }
  if (j.traces != NULL) {
    munmap(j.traces, 2 * (size_t)ranks * trace_bytes);
  }
  *wrong = atomic_load(&shared->total_wrong) + atomic_load(&shared->overwritten);
  munmap(shared, bytes);
  return result;
}
