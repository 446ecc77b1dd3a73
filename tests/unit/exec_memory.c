/* Calls on memory of every kind: right data, and where the memory allows it straight from buffer to buffer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exec_util.h"
#include "plan/reference.h"
#include "runtime/comm.h"
#include "runtime/launcher.h"

/* What a rank's buffers are. */
typedef enum kind { PRIVATE, REGISTERED_FILE, REGISTERED_PRIVATE, ALLOCATED } kind;

typedef struct room {
  kind kind;
  char *memory;
  size_t bytes;
  polyccl_registration *registration;
} room;

/* The file has the rank in its name and other things before the buffer. */
static polyccl_result make_room(kind has, int rank, size_t bytes, room *r) {
  enum { BEFORE = 1 << 17 };
  char name[40];
  snprintf(name, sizeof name, "polyccl-test-%d", rank);
  *r = (room){.kind = has, .bytes = bytes};
  if (has == ALLOCATED) {
    return polyccl_mem_alloc((void **)&r->memory, bytes);
  }
  int fd = has == REGISTERED_FILE ? memfd_create(name, MFD_CLOEXEC) : -1;
  if (fd >= 0 && ftruncate(fd, (off_t)(BEFORE + bytes)) != 0) {
    return POLYCCL_ERROR_SYSTEM;
  }
  r->memory = fd >= 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, BEFORE)
                      : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  polyccl_result result = r->memory == MAP_FAILED ? POLYCCL_ERROR_SYSTEM
                          : has == PRIVATE        ? POLYCCL_SUCCESS
                                                  : polyccl_register(r->memory, bytes, &r->registration);
  if (fd >= 0) {
    close(fd);
  }
  return result;
}

static void free_room(room *r) {
  if (r->kind == ALLOCATED) {
    polyccl_mem_free(r->memory);
    return;
  }
  polyccl_deregister(r->registration);
  munmap(r->memory, r->bytes);
}

/* The file of this rank's buffers is mapped here. */
static bool maps_file_of(int rank) {
  char wanted[60], line[400];
  bool found = false;
  snprintf(wanted, sizeof wanted, "memfd:polyccl-test-%d ", rank);
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    found = found || strstr(line, wanted) != NULL;
  }
  if (maps != NULL) {
    fclose(maps);
  }
  return found;
}

static polyccl_result complain(const char *what, int rank, size_t index, int32_t wanted, int32_t found) {
  fprintf(stderr, "%s: rank %d, element %zu: wanted %d, found %d\n", what, rank, index, wanted, found);
  return POLYCCL_ERROR_INTERNAL;
}

/* Element `index` of what `rank` gives in call `round`; sums of all ranks' stay exact. */
static int32_t value(int rank, size_t index, int round) {
  return (int32_t)((rank + 1) * 1000003 + (int)(index % 90001) * 7 + round * 31);
}

static int32_t sum(int ranks, size_t index, int round) {
  int32_t total = 0;
  for (int rank = 0; rank < ranks; rank++) {
    total += value(rank, index, round);
  }
  return total;
}

typedef struct job {
  kind even, odd; /* what ranks of each kind have */
  size_t count;
  int calls;
  bool maps; /* the ranks map each other's files */
} job;

typedef enum op { ALLREDUCE, ALLGATHER, REDUCE_SCATTER, ALLTOALL, BROADCAST, OPS } op;
static const char *const names[OPS] = {"allreduce", "allgather", "reduce_scatter", "alltoall", "broadcast"};

static polyccl_result call(op what, const void *in, void *out, size_t count, polyccl_comm *comm) {
  switch (what) {
    case ALLREDUCE: return polyccl_allreduce(in, out, count, POLYCCL_INT32, POLYCCL_SUM, comm, NULL);
    case ALLGATHER: return polyccl_allgather(in, out, count, POLYCCL_INT32, comm, NULL);
    case REDUCE_SCATTER: return polyccl_reduce_scatter(in, out, count, POLYCCL_INT32, POLYCCL_SUM, comm, NULL);
    case ALLTOALL: return polyccl_alltoall(in, out, count, POLYCCL_INT32, comm, NULL);
    default: return polyccl_broadcast(in, out, count, POLYCCL_INT32, polyccl_comm_count(comm) - 1, comm, NULL);
  }
}

static int32_t expected(op what, int rank, int ranks, size_t count, size_t i, int round) {
  int block = (int)(i / count);
  switch (what) {
    case ALLREDUCE: return sum(ranks, i, round);
    case ALLGATHER: return value(block, i % count, round);
    case REDUCE_SCATTER: return sum(ranks, (size_t)rank * count + i, round);
    case ALLTOALL: return value(block, (size_t)rank * count + i % count, round);
    default: return value(ranks - 1, i, round);
  }
}

static polyccl_result run_calls(polyccl_comm *comm, const job *j, op what, int32_t *in, int32_t *out) {
  int rank = polyccl_comm_user_rank(comm), ranks = polyccl_comm_count(comm);
  size_t blocks_in = what == REDUCE_SCATTER || what == ALLTOALL ? (size_t)ranks : 1;
  size_t blocks_out = what == ALLGATHER || what == ALLTOALL ? (size_t)ranks : 1;
  for (int round = 0; round < j->calls; round++) {
    for (size_t i = 0; i < blocks_in * j->count; i++) {
      in[i] = value(rank, i, round);
    }
    memset(out, 0xee, blocks_out * j->count * sizeof *out);
    polyccl_result result = call(what, in, out, j->count, comm);
    if (result != POLYCCL_SUCCESS) {
      return result;
    }
    for (size_t i = 0; i < blocks_out * j->count; i++) {
      int32_t wanted = expected(what, rank, ranks, j->count, i, round);
      if (out[i] != wanted) {
        return complain(names[what], rank, i, wanted, out[i]);
      }
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result run_job(polyccl_comm *comm, void *argument) {
  const job *j = argument;
  int rank = polyccl_comm_user_rank(comm), ranks = polyccl_comm_count(comm);
  kind mine = rank % 2 == 0 ? j->even : j->odd;
  size_t bytes = (j->count * (size_t)ranks + 64) * sizeof(int32_t);
  room in, out;
  polyccl_result result = make_room(mine, rank, bytes, &in);
  if (result != POLYCCL_SUCCESS) {
    return result;
  }
  result = make_room(mine, rank, bytes, &out);
  for (int what = 0; what < OPS && result == POLYCCL_SUCCESS; what++) {
    /* The buffers begin within a page. */
    result = run_calls(comm, j, (op)what, (int32_t *)(void *)in.memory + 3, (int32_t *)(void *)out.memory + 5);
  }
  if (result == POLYCCL_SUCCESS && j->maps && !maps_file_of((rank + 1) % ranks) && !maps_file_of((rank + 2) % ranks)) {
    fprintf(stderr, "rank %d maps nobody's buffers\n", rank);
    result = POLYCCL_ERROR_INTERNAL;
  }
  free_room(&in);
  free_room(&out);
  return result;
}

static void expect_right(int ranks, bool threads, job j) {
  polyccl_result result = threads ? pccl_launch_threads(ranks, run_job, &j) : pccl_launch_processes(ranks, run_job, &j);
  if (result != POLYCCL_SUCCESS) {
    fail_msg("%d ranks, kinds %d and %d, %zu elements: %s", ranks, (int)j.even, (int)j.odd, j.count,
             polyccl_last_error());
  }
}

static void registered_files_go_by_reference(void **state) {
  (void)state;
  for (int ranks = 2; ranks <= 3; ranks++) {
    expect_right(ranks, false,
                 (job){.even = REGISTERED_FILE, .odd = REGISTERED_FILE, .count = 30001, .calls = 3, .maps = true});
    expect_right(ranks, true, (job){.even = REGISTERED_FILE, .odd = REGISTERED_FILE, .count = 30001, .calls = 3});
  }
}

static void kinds_mix(void **state) {
  (void)state;
  static const kind kinds[][2] = {{REGISTERED_FILE, PRIVATE},
                                  {PRIVATE, ALLOCATED},
                                  {REGISTERED_PRIVATE, REGISTERED_FILE},
                                  {ALLOCATED, REGISTERED_PRIVATE},
                                  {PRIVATE, PRIVATE}};
  static const char *const modes[] = {"auto", "0", "1"};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    for (int ranks = 2; ranks <= 3; ranks++) {
      for (int mode = 0; mode < 3; mode++) {
        setenv("POLYCCL_KERNEL_COPY", modes[mode], 1);
        expect_right(ranks, false, (job){.even = kinds[i][0], .odd = kinds[i][1], .count = 30001, .calls = 2});
      }
      unsetenv("POLYCCL_KERNEL_COPY");
      expect_right(ranks, true, (job){.even = kinds[i][0], .odd = kinds[i][1], .count = 30001, .calls = 2});
    }
  }
}

/* Enough messages that receivers try both ways and choose. */
static void many_calls_stay_right(void **state) {
  (void)state;
  expect_right(2, false, (job){.even = PRIVATE, .odd = PRIVATE, .count = 30001, .calls = 40});
}

/* ---- a rank that was stopped ---- */

enum { STOPPED_COUNT = 60000 };

static bool is_stopped(pid_t pid) {
  char path[40], line[400] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "r");
  if (file != NULL) {
    if (fgets(line, sizeof line, file) == NULL) {
      line[0] = '\0';
    }
    fclose(file);
  }
  const char *state = strrchr(line, ')');
  return state != NULL && strncmp(state, ") T", 3) == 0;
}

/* Rank 0 waits in vain for rank 1, frees its memory and lets rank 1 go on. */
static polyccl_result wait_and_free(polyccl_comm *comm, int id, float *in, float *out) {
  pid_t other = comm->executor.member.peer[1].pid;
  polyccl_result result = polyccl_run_plan(comm, id, in, out, STOPPED_COUNT, POLYCCL_FLOAT32, POLYCCL_SUM, NULL);
  polyccl_mem_free(in);
  polyccl_mem_free(out);
  while (!is_stopped(other)) {
    usleep(1000);
  }
  kill(other, SIGCONT);
  return result == POLYCCL_ERROR_TIMEOUT ? POLYCCL_SUCCESS : POLYCCL_ERROR_INTERNAL;
}

/* Rank 1 is stopped where it has looked at the abort notice and has not yet read what rank 0 lends it. */
static polyccl_result stop_in_a_call(polyccl_comm *comm, int id, float *in, float *out) {
  pccl_executor *executor = &comm->executor;
  pccl_prepared *prepared;
  polyccl_result result =
      pccl_prepare(executor, comm->plans.data[id], STOPPED_COUNT, POLYCCL_FLOAT32, POLYCCL_SUM, &prepared);
  if (result != POLYCCL_SUCCESS) {
    return result;
  }
  executor->member.calls++;
  memset(out, 0xee, STOPPED_COUNT * sizeof *out);
  pccl_execution x;
  result = pccl_execution_begin(&x, executor, prepared, in, out, pccl_call_signature(executor, prepared));
  raise(SIGSTOP);
  while (result == POLYCCL_SUCCESS && pccl_execution_round(&x)) {
  }
  /* It has read zeros where rank 0's numbers were: the memory is gone, and nothing else happened. */
  for (size_t i = 0; i < STOPPED_COUNT && result == POLYCCL_SUCCESS; i++) {
    if (out[i] != in[i]) {
      result = complain("after the stop", 1, i, (int32_t)in[i], (int32_t)out[i]);
    }
  }
  return result;
}

static polyccl_result meet_the_stop(polyccl_comm *comm, void *argument) {
  int id, rank = polyccl_comm_user_rank(comm);
  float *in = NULL, *out = NULL;
  polyccl_result result = polyccl_comm_add_plan(comm, argument, &id);
  if (result != POLYCCL_SUCCESS || polyccl_mem_alloc((void **)&in, STOPPED_COUNT * sizeof *in) != POLYCCL_SUCCESS ||
      polyccl_mem_alloc((void **)&out, STOPPED_COUNT * sizeof *out) != POLYCCL_SUCCESS) {
    return POLYCCL_ERROR_MEMORY;
  }
  for (size_t i = 0; i < STOPPED_COUNT; i++) {
    in[i] = (float)((rank + 1) * 100 + (int)(i % 97));
  }
  /* Each maps the other's memory. */
  result = polyccl_run_plan(comm, id, in, out, STOPPED_COUNT, POLYCCL_FLOAT32, POLYCCL_SUM, NULL);
  if (result != POLYCCL_SUCCESS) {
    return result;
  }
  return rank == 0 ? wait_and_free(comm, id, in, out) : stop_in_a_call(comm, id, in, out);
}

static void a_stopped_rank_outlives_the_memory(void **state) {
  (void)state;
  setenv("POLYCCL_TIMEOUT", "1", 1);
  polyccl_plan *plan = make_oneshot(2, 1, false, POLYCCL_SIMPLE, POLYCCL_BATCH_MAJOR);
  assert_int_equal(pccl_plan_mark_references(plan), POLYCCL_SUCCESS);
  if (pccl_launch_processes(2, meet_the_stop, plan) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  polyccl_plan_destroy(plan);
  unsetenv("POLYCCL_TIMEOUT");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(registered_files_go_by_reference), cmocka_unit_test(kinds_mix),
                                     cmocka_unit_test(many_calls_stay_right),
                                     cmocka_unit_test(a_stopped_rank_outlives_the_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
