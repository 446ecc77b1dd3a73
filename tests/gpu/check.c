/* Runs a plan's kernel on a device and checks every element of every rank, or measures the kernel. If
 * POLYCCL_CUDA_DRIVER names driver_on_threads.so, the device is this machine's threads.
 *
 *   gpu_check [options] IMAGE PLAN
 *   --counts A,B,...   elements of a block (default 1,13,4000)       --calls N      calls for each (default 2)
 *   --threads N        of a thread block                             --slot BYTES   of a connection
 *   --processes P      ranks in several processes                    --device N
 *   --timeout S        of a call                                     --absent       the last process stays away
 *   --bench BYTES      measures instead: a row of the table, the best of 5 times --iters N (default 20) launches
 *
 * Exit status: 0 right, 1 wrong or failed, 77 no device. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../tools/run.h"
#include "base/error.h"
#include "base/vec.h"
#include "device/gpu.h"
#include "kernel/reduce.h"
#include "plan/plan.h"

enum { GUARD = 256, GUARD_BYTE = 0xa5, SKIPPED = 77, MAX_PROCESSES = 16, MAX_MAIL = 256, SAMPLES = 5 };

/* Shared by the processes. */
typedef struct board {
  atomic_uint arrived, phase, failed;
  unsigned char mail[MAX_PROCESSES][MAX_MAIL];
} board;

typedef struct job {
  const char *image, *plan_path;
  size_t count[16];
  int counts, calls, device, iters;
  size_t bench;
  bool absent;
  pccl_gpu_options options;
  board *board;
  polyccl_plan *plan;
  pccl_gpu_device *open;
  pccl_gpu *gpu;
  int first, last; /* this process's ranks */
} job;

typedef struct memory {
  char *there[2]; /* as allocated, guards around */
  size_t bytes[2];
  size_t input, output; /* offsets of the call's buffers in there[0], there[in place ? 0 : 1] */
  int output_in;
} memory;

static polyccl_result exchange_mail(void *context, const void *mine, size_t bytes, void *all) {
  job *j = context;
  board *b = j->board;
  unsigned phase = atomic_load(&b->phase), processes = (unsigned)j->options.processes;
  if (bytes > MAX_MAIL) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%zu bytes to exchange", bytes);
  }
  for (int round = 0; round < 2; round++) { /* all have written; all have read */
    if (round == 0) {
      memcpy(b->mail[j->options.process], mine, bytes);
    } else {
      for (unsigned p = 0; p < processes; p++) {
        memcpy((char *)all + p * bytes, b->mail[p], bytes);
      }
    }
    if (atomic_fetch_add(&b->arrived, 1) + 1 == processes) {
      atomic_store(&b->arrived, 0);
      atomic_store(&b->phase, phase + 1);
    }
    time_t end = time(NULL) + 60;
    while (atomic_load(&b->phase) == phase) {
      if (atomic_load(&b->failed) != 0 || time(NULL) > end) {
        return pccl_fail(POLYCCL_ERROR_REMOTE, "another process failed or stays away");
      }
      sched_yield();
    }
    phase++;
  }
  return POLYCCL_SUCCESS;
}

static pccl_collective_spec spec_of(const polyccl_plan *plan) { return pccl_plan_spec(plan); }

static polyccl_result make_memory(const job *j, int rank, size_t count, size_t element, memory *m) {
  pccl_collective_spec spec = spec_of(j->plan);
  int in, out, chunks = j->plan->chunks;
  pccl_collective_shape(&spec, &in, &out);
  size_t bytes[2] = {count * (size_t)in / (size_t)chunks * element, count * (size_t)out / (size_t)chunks * element};
  *m = (memory){.bytes = {bytes[0], bytes[1]}, .input = GUARD, .output = GUARD, .output_in = 1};
  if (j->plan->inplace) {
    m->bytes[0] = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
    m->bytes[1] = 0;
    m->input += (size_t)(pccl_collective_cell(&spec, rank, false, 0) / chunks) * count * element;
    m->output += (size_t)(pccl_collective_cell(&spec, rank, true, 0) / chunks) * count * element;
    m->output_in = 0;
  }
  for (int i = 0; i < 2; i++) {
    void *at = NULL;
    PCCL_TRY(pccl_cuda_driver.alloc(j->open, m->bytes[i] + 2 * GUARD, &at));
    m->there[i] = at;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result fill_memory(const job *j, int rank, size_t count, polyccl_dtype dtype, polyccl_redop op,
                                  const memory *m) {
  for (int i = 0; i < 2; i++) {
    size_t bytes = m->bytes[i] + 2 * GUARD;
    char *here = malloc(bytes);
    if (here == NULL) {
      return pccl_no_memory("data");
    }
    memset(here, GUARD_BYTE, bytes);
    if (i == 0) {
      pccl_run_fill(j->plan, rank, dtype, op, count, here + m->input);
    }
    polyccl_result result = pccl_cuda_driver.write(j->open, m->there[i], here, bytes);
    free(here);
    PCCL_TRY(result);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_memory(const job *j, int rank, size_t count, polyccl_dtype dtype, polyccl_redop op,
                                   const memory *m, uint64_t *wrong) {
  for (int i = 0; i < 2; i++) {
    size_t bytes = m->bytes[i] + 2 * GUARD;
    char *here = malloc(bytes);
    if (here == NULL) {
      return pccl_no_memory("data");
    }
    polyccl_result result = pccl_cuda_driver.read(j->open, here, m->there[i], bytes);
    for (size_t k = 0; k < GUARD && result == POLYCCL_SUCCESS; k++) {
      *wrong += (unsigned char)here[k] != GUARD_BYTE;
      *wrong += (unsigned char)here[bytes - 1 - k] != GUARD_BYTE;
    }
    if (result == POLYCCL_SUCCESS && i == m->output_in) {
      *wrong += pccl_run_wrong(j->plan, rank, dtype, op, count, here + m->output);
    }
    free(here);
    PCCL_TRY(result);
  }
  return POLYCCL_SUCCESS;
}

typedef struct buffers {
  memory *m;
  void **input, **output;
} buffers;

static void free_buffers(const job *j, buffers *b) {
  for (int r = j->first; r < j->last && b->m != NULL; r++) {
    pccl_cuda_driver.release(j->open, b->m[r].there[0]);
    pccl_cuda_driver.release(j->open, b->m[r].there[1]);
  }
  free(b->m);
  free(b->input);
  free(b->output);
}

static polyccl_result make_buffers(const job *j, size_t count, size_t element, buffers *b) {
  size_t ranks = (size_t)j->plan->ranks;
  *b = (buffers){calloc(ranks, sizeof(memory)), calloc(ranks, sizeof(void *)), calloc(ranks, sizeof(void *))};
  if (b->m == NULL || b->input == NULL || b->output == NULL) {
    return pccl_no_memory("buffers");
  }
  for (int r = j->first; r < j->last; r++) {
    PCCL_TRY(make_memory(j, r, count, element, &b->m[r]));
    b->input[r] = b->m[r].there[0] + b->m[r].input;
    b->output[r] = b->m[r].there[b->m[r].output_in] + b->m[r].output;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result call_and_check(const job *j, size_t count, polyccl_dtype dtype, polyccl_redop op,
                                     uint64_t *wrong) {
  buffers b;
  polyccl_result result = make_buffers(j, count, polyccl_dtype_size(dtype), &b);
  for (int call = 0; call < j->calls && result == POLYCCL_SUCCESS; call++) {
    for (int r = j->first; r < j->last && result == POLYCCL_SUCCESS; r++) {
      result = fill_memory(j, r, count, dtype, op, &b.m[r]);
    }
    if (result == POLYCCL_SUCCESS && !(j->absent && j->options.process == j->options.processes - 1)) {
      result = pccl_gpu_call(j->gpu, &(pccl_gpu_call_args){count, dtype, op, b.input, b.output, 1, NULL});
    }
    for (int r = j->first; r < j->last && result == POLYCCL_SUCCESS && !j->absent; r++) {
      result = check_memory(j, r, count, dtype, op, &b.m[r], wrong);
    }
  }
  free_buffers(j, &b);
  return result;
}

static polyccl_result check_all(const job *j, uint64_t *wrong, int *runs) {
  static const polyccl_redop ops[] = {POLYCCL_SUM, POLYCCL_MAX, POLYCCL_AVG, POLYCCL_PROD, POLYCCL_MIN};
  polyccl_verify_report report;
  PCCL_TRY(polyccl_plan_verify(j->plan, &report));
  bool custom = j->plan->collective == POLYCCL_CUSTOM;
  size_t chunks = (size_t)j->plan->chunks;
  for (int i = 0; i < j->counts; i++) {
    for (int t = 0; t < POLYCCL_DTYPE_COUNT; t++) {
      size_t count = j->count[i];
      if (custom || !report.uneven) { /* whole chunks only */
        count = (count + chunks - 1) / chunks * chunks;
      }
      polyccl_redop op = custom ? POLYCCL_SUM : ops[(i + t) % 5];
      op = pccl_reduction_defined((polyccl_dtype)t, op) ? op : POLYCCL_SUM;
      uint64_t before = *wrong;
      PCCL_TRY(call_and_check(j, count, (polyccl_dtype)t, op, wrong));
      if (*wrong != before) {
        printf("%s: count %zu, %s, %s: %llu wrong\n", j->plan_path, count, polyccl_dtype_name((polyccl_dtype)t),
               polyccl_redop_name(op), (unsigned long long)(*wrong - before));
      }
      ++*runs;
    }
  }
  return POLYCCL_SUCCESS;
}

/* Prints a row: plan, protocol, order, kernel, thread blocks, threads, bytes, microseconds, GB/s of the algorithm. */
static polyccl_result measure_calls(const job *j, uint64_t *wrong) {
  size_t unit = 4 * (size_t)j->plan->chunks, count = (j->bench + unit - 1) / unit * unit / 4;
  buffers b;
  double best = 0, seconds = 0;
  polyccl_result result = make_buffers(j, count, 4, &b);
  for (int r = j->first; r < j->last && result == POLYCCL_SUCCESS; r++) {
    result = fill_memory(j, r, count, POLYCCL_FLOAT32, POLYCCL_MAX, &b.m[r]);
  }
  for (int i = 0; i <= SAMPLES && result == POLYCCL_SUCCESS; i++) {
    result = pccl_gpu_call(j->gpu, &(pccl_gpu_call_args){count, POLYCCL_FLOAT32, POLYCCL_MAX, b.input, b.output,
                                                         i == 0 ? 1 : j->iters, &seconds});
    seconds /= j->iters;
    if (i == 0) { /* warms up, and its data is checked */
      for (int r = j->first; r < j->last && result == POLYCCL_SUCCESS; r++) {
        result = check_memory(j, r, count, POLYCCL_FLOAT32, POLYCCL_MAX, &b.m[r], wrong);
      }
    } else if (i == 1 || seconds < best) {
      best = seconds;
    }
  }
  free_buffers(j, &b);
  PCCL_TRY(result);
  int blocks, max;
  pccl_gpu_blocks(j->gpu, &blocks, &max);
  printf("%-28s %-7s %-11s %4d %7d %12zu %12.2f %10.3f\n", j->plan->name, polyccl_protocol_name(j->plan->protocol),
         j->plan->order == POLYCCL_TASK_MAJOR ? "task-major" : "batch-major", blocks, j->options.threads, count * 4,
         best * 1e6, (double)(count * 4) / best * 1e-9);
  return POLYCCL_SUCCESS;
}

static int report_failure(const job *j, polyccl_result result) {
  if (j->board != NULL) {
    atomic_store(&j->board->failed, 1);
  }
  fprintf(stderr, "gpu_check: %s: %s\n", polyccl_result_name(result), polyccl_last_error());
  return 1;
}

static int run_process(job *j) {
  polyccl_result result = pccl_cuda_driver.open(j->device, &j->open);
  if (result == POLYCCL_ERROR_UNSUPPORTED) {
    printf("skipped: no device (%s)\n", polyccl_last_error());
    return SKIPPED;
  }
  int processes = j->options.processes > 0 ? j->options.processes : 1;
  j->first = j->last = -1;
  for (int r = 0; r < j->plan->ranks; r++) {
    if ((int)((int64_t)r * processes / j->plan->ranks) == j->options.process) {
      j->first = j->first < 0 ? r : j->first;
      j->last = r + 1;
    }
  }
  uint64_t wrong = 0;
  int runs = 0;
  if (result == POLYCCL_SUCCESS) {
    result = pccl_gpu_open(&pccl_cuda_driver, j->open, j->plan, &j->options, &j->gpu);
  }
  if (result == POLYCCL_SUCCESS) {
    result = j->bench > 0 ? measure_calls(j, &wrong) : check_all(j, &wrong, &runs);
  }
  int status = result != POLYCCL_SUCCESS ? report_failure(j, result) : wrong != 0;
  if (status == 0 && j->bench == 0 && j->options.process == 0) {
    printf("%s: %d runs of %d calls, every element right\n", j->plan_path, runs, j->calls);
  } else if (wrong != 0) {
    printf("%s: %llu elements wrong\n", j->plan_path, (unsigned long long)wrong);
  }
  pccl_gpu_close(j->gpu);
  if (j->open != NULL) {
    pccl_cuda_driver.close(j->open);
  }
  fflush(stdout);
  return status;
}

static int run_processes(job *j) {
  j->board = mmap(NULL, sizeof *j->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (j->board == MAP_FAILED || j->options.processes > MAX_PROCESSES) {
    fprintf(stderr, "gpu_check: too many processes\n");
    return 1;
  }
  j->options.exchange = exchange_mail;
  j->options.context = j;
  pid_t child[MAX_PROCESSES];
  for (int p = 0; p < j->options.processes; p++) {
    j->options.process = p;
    child[p] = fork(); /* before the driver is touched */
    if (child[p] == 0) {
      _exit(run_process(j));
    }
  }
  int worst = 0;
  for (int p = 0; p < j->options.processes; p++) {
    int status = 1;
    if (child[p] < 0 || waitpid(child[p], &status, 0) < 0 || !WIFEXITED(status)) {
      status = 1 << 8;
    }
    status = WEXITSTATUS(status);
    if (status != 0 && (worst == 0 || worst == SKIPPED)) {
      worst = status;
    }
    if (status != 0) {
      atomic_store(&j->board->failed, 1);
    }
  }
  return worst;
}

static int read_arguments(int argc, char **argv, job *j) {
  const char *counts = "1,13,4000";
  for (int i = 1; i < argc; i++) {
    const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(name, "--absent") == 0) {
      j->absent = true;
      continue;
    }
    if (name[0] != '-') {
      *(j->image == NULL ? &j->image : &j->plan_path) = name;
      continue;
    }
    i++;
    if (strcmp(name, "--counts") == 0) {
      counts = value;
    } else if (strcmp(name, "--calls") == 0) {
      j->calls = atoi(value);
    } else if (strcmp(name, "--threads") == 0) {
      j->options.threads = atoi(value);
    } else if (strcmp(name, "--slot") == 0) {
      j->options.slot_bytes = (size_t)atoll(value);
    } else if (strcmp(name, "--processes") == 0) {
      j->options.processes = atoi(value);
    } else if (strcmp(name, "--device") == 0) {
      j->device = atoi(value);
    } else if (strcmp(name, "--timeout") == 0) {
      j->options.timeout = atof(value);
    } else if (strcmp(name, "--bench") == 0) {
      j->bench = (size_t)atoll(value);
    } else if (strcmp(name, "--iters") == 0) {
      j->iters = atoi(value);
    } else {
      return -1;
    }
  }
  for (const char *at = counts; at != NULL && j->counts < 16; at = strchr(at, ',')) {
    at += *at == ',';
    j->count[j->counts++] = (size_t)atoll(at);
  }
  return j->plan_path == NULL ? -1 : 0;
}

int main(int argc, char **argv) {
  job j = {.calls = 2, .iters = 20, .options.threads = 256};
  if (read_arguments(argc, argv, &j) != 0 || j.calls < 1 || j.iters < 1) {
    fprintf(stderr, "usage: gpu_check [options] IMAGE PLAN; see tests/gpu/check.c\n");
    return 2;
  }
  j.options.image = j.image;
  if (polyccl_plan_read(j.plan_path, &j.plan) != POLYCCL_SUCCESS) {
    return report_failure(&j, POLYCCL_ERROR_INVALID);
  }
  int status = j.options.processes > 1 ? run_processes(&j) : run_process(&j);
  polyccl_plan_destroy(j.plan);
  return status;
}
