/* What happens when a rank dies, leaves, stops or never comes: every other rank ends with an error that names it, in
 * time; nothing is left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec_util.h"
#include "runtime/launcher.h"

typedef enum fate { KILLED, EXITS, CRASHES, LEAVES, ABORTS, STOPS, FAILS } fate;

typedef struct story {
  polyccl_plan *plan;
  fate fate;
  int victim;
} story;

/* Rounds for ever; the victim meets its fate after some. */
static polyccl_result doomed(polyccl_comm *comm, void *argument) {
  const story *s = argument;
  int id;
  polyccl_result result = polyccl_comm_add_plan(comm, s->plan, &id);
  static _Thread_local float in[3000], out[3000];
  for (int round = 0; result == POLYCCL_SUCCESS; round++) {
    if (round == 20 && polyccl_comm_user_rank(comm) == s->victim) {
      switch (s->fate) {
        case KILLED: raise(SIGKILL); break;
        case EXITS: _exit(0);
        case CRASHES: signal(SIGSEGV, SIG_DFL), raise(SIGSEGV); break;
        case LEAVES: return POLYCCL_SUCCESS;
        case ABORTS: polyccl_comm_abort(comm); break;
        case STOPS: raise(SIGSTOP); break;
        case FAILS: return polyccl_run_plan(comm, 99, in, out, 1, POLYCCL_FLOAT32, POLYCCL_SUM, NULL);
      }
    }
    result = polyccl_run_plan(comm, id, in, out, 3000, POLYCCL_FLOAT32, POLYCCL_SUM, NULL);
  }
  return result;
}

static void expect_text(const char *wanted) {
  if (strstr(polyccl_last_error(), wanted) == NULL) {
    fail_msg("\"%s\" does not say \"%s\"", polyccl_last_error(), wanted);
  }
}

static void death_ends_all(void **state) {
  (void)state;
  static const struct {
    fate fate;
    const char *says;
  } cases[] = {{KILLED, "rank 2: was killed by signal 9"},
               {EXITS, "rank 2: ended with exit status 0 before its work was done"},
               {CRASHES, "rank 2: was killed by signal 11"},
               {LEAVES, "rank 2 left the communicator"},
               {ABORTS, "rank 2 aborted the communicator"},
               {FAILS, "rank 2: plan 99 is not loaded"}};
  polyccl_plan *plan = make_ring(4, false, POLYCCL_SIMPLE);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    story s = {plan, cases[i].fate, 2};
    double start = pccl_now_seconds();
    assert_int_not_equal(pccl_launch_processes(4, doomed, &s), POLYCCL_SUCCESS);
    assert_true(pccl_now_seconds() - start < 10); /* far below the time-out; the promise is 2 s on an idle machine */
    expect_text(cases[i].says);
  }
  polyccl_plan_destroy(plan);
}

/* A rank that a debugger has stopped: not dead, but it does not do its part. The time-out leaves room for a loaded
 * machine, on which a rank that is well may stand still for long. */
static void stopped_rank_runs_out_of_time(void **state) {
  (void)state;
  setenv("POLYCCL_TIMEOUT", "3", 1);
  polyccl_plan *plan = make_ring(3, false, POLYCCL_SIMPLE);
  pid_t launcher = fork();
  if (launcher == 0) {
    story s = {plan, STOPS, 1};
    alarm(60); /* a launcher that waits for ever */
    bool failed = pccl_launch_processes(3, doomed, &s) != POLYCCL_SUCCESS;
    if (failed && strstr(polyccl_last_error(), "rank 1 waits for nobody") != NULL) {
      _exit(7);
    }
    fprintf(stderr, "%s\n", failed ? polyccl_last_error() : "no error");
    _exit(1);
  }
  int status;
  assert_int_equal(waitpid(launcher, &status, 0), launcher);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 7);
  polyccl_plan_destroy(plan);
  unsetenv("POLYCCL_TIMEOUT");
}

/* One rank fails, and none comes to say so before the launcher ends them. */
static polyccl_result silent_end(polyccl_comm *comm, void *argument) {
  (void)argument;
  polyccl_comm_abort(comm);
  while (getppid() != 1) {
    pause();
  }
  return POLYCCL_SUCCESS;
}

static void killed_ranks_are_a_failure(void **state) {
  (void)state;
  assert_int_equal(pccl_launch_processes(3, silent_end, NULL), POLYCCL_ERROR_REMOTE);
  expect_text("aborted the communicator");
}

typedef struct orphans {
  polyccl_plan *plan;
  _Atomic int pid[3];
} orphans;

static polyccl_result for_ever(polyccl_comm *comm, void *argument) {
  orphans *o = *(orphans **)argument;
  int id;
  polyccl_result result = polyccl_comm_add_plan(comm, o->plan, &id);
  float in[8] = {0}, out[8];
  while (result == POLYCCL_SUCCESS) {
    result = polyccl_run_plan(comm, id, in, out, 8, POLYCCL_FLOAT32, POLYCCL_SUM, NULL);
    atomic_store(&o->pid[polyccl_comm_user_rank(comm)], (int)getpid());
  }
  return result;
}

/* Whoever kills the launcher, its ranks go with it. */
static void ranks_die_with_their_launcher(void **state) {
  (void)state;
  orphans *o = mmap(NULL, sizeof *o, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(o != MAP_FAILED);
  o->plan = make_ring(3, false, POLYCCL_SIMPLE);
  pid_t launcher = fork();
  if (launcher == 0) {
    _exit(pccl_launch_processes(3, for_ever, &o) == POLYCCL_SUCCESS ? 0 : 1);
  }
  double start = pccl_now_seconds();
  while (pccl_now_seconds() - start < 20 &&
         (atomic_load(&o->pid[0]) == 0 || atomic_load(&o->pid[1]) == 0 || atomic_load(&o->pid[2]) == 0)) {
    usleep(1000);
  }
  assert_int_equal(kill(launcher, SIGKILL), 0);
  assert_int_equal(waitpid(launcher, NULL, 0), launcher);
  for (int rank = 0; rank < 3; rank++) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", atomic_load(&o->pid[rank]));
    bool gone = false;
    while (!gone && pccl_now_seconds() - start < 30) {
      FILE *file = fopen(path, "r");
      gone = file == NULL || fgets(line, sizeof line, file) == NULL || strstr(line, ") Z ") != NULL;
      if (file != NULL) {
        fclose(file);
      }
      usleep(1000);
    }
    assert_true(gone);
  }
  polyccl_plan_destroy(o->plan);
  munmap(o, sizeof *o);
}

/* Without the launcher's eyes: peers find out by themselves. */
static void death_is_noticed_without_a_launcher(void **state) {
  (void)state;
  polyccl_plan *plan = make_oneshot(2, 1, false, POLYCCL_SIMPLE, POLYCCL_BATCH_MAJOR);
  polyccl_unique_id unique;
  assert_int_equal(polyccl_get_unique_id(&unique), POLYCCL_SUCCESS);
  int gate[2];
  assert_int_equal(pipe(gate), 0);
  pid_t child = fork();
  if (child == 0) {
    polyccl_comm *comm;
    char byte;
    bool joined = polyccl_comm_init_rank(&comm, 2, unique, 1) == POLYCCL_SUCCESS;
    close(gate[1]);
    _exit(joined && read(gate[0], &byte, 1) == 0 ? 0 : 1); /* dies when the other rank has joined, too */
  }
  polyccl_comm *comm;
  assert_int_equal(polyccl_comm_init_rank(&comm, 2, unique, 0), POLYCCL_SUCCESS);
  close(gate[0]);
  close(gate[1]);
  int id;
  assert_int_equal(polyccl_comm_add_plan(comm, plan, &id), POLYCCL_SUCCESS);
  float in[4] = {1, 2, 3, 4}, out[4];
  assert_int_equal(polyccl_run_plan(comm, id, in, out, 4, POLYCCL_FLOAT32, POLYCCL_SUM, NULL), POLYCCL_ERROR_REMOTE);
  expect_text("rank 1 (process");
  expect_text("has died");
  assert_int_equal(polyccl_comm_get_async_error(comm), POLYCCL_ERROR_REMOTE);
  assert_int_equal(polyccl_run_plan(comm, id, in, out, 4, POLYCCL_FLOAT32, POLYCCL_SUM, NULL), POLYCCL_ERROR_REMOTE);
  polyccl_comm_destroy(comm);
  assert_int_equal(waitpid(child, NULL, 0), child);
  polyccl_plan_destroy(plan);
}

static void joining_is_checked(void **state) {
  (void)state;
  setenv("POLYCCL_TIMEOUT", "1", 1);
  polyccl_unique_id id;
  polyccl_comm *comm = NULL;
  assert_int_equal(polyccl_get_unique_id(&id), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_comm_init_rank(&comm, 3, id, 1), POLYCCL_ERROR_TIMEOUT);
  expect_text("2 of 3 ranks did not join within 1 s: rank 0, 2");
  assert_null(comm);
  assert_int_not_equal(polyccl_comm_init_rank(&comm, 3, id, 1), POLYCCL_SUCCESS);
  expect_text("taken");
  assert_int_equal(polyccl_get_unique_id(&id), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_comm_init_rank(&comm, 1, id, 0), POLYCCL_SUCCESS);
  polyccl_comm *second = NULL;
  assert_int_not_equal(polyccl_comm_init_rank(&second, 1, id, 0), POLYCCL_SUCCESS);
  polyccl_comm_destroy(comm);
  memset(&id, 7, sizeof id);
  assert_int_equal(polyccl_comm_init_rank(&comm, 1, id, 0), POLYCCL_ERROR_INVALID);
  assert_int_equal(polyccl_comm_init_rank(&comm, 0, id, 0), POLYCCL_ERROR_INVALID);
  assert_int_equal(polyccl_comm_init_rank(&comm, 2, id, 2), POLYCCL_ERROR_INVALID);
  assert_int_equal(polyccl_comm_init_rank(&comm, 5000, id, 2), POLYCCL_ERROR_INVALID);
  unsetenv("POLYCCL_TIMEOUT");
}

static void child_of_a_fork_is_refused(void **state) {
  (void)state;
  polyccl_comm *comm;
  assert_int_equal(polyccl_comm_init_all(&comm, 1), POLYCCL_SUCCESS);
  polyccl_plan *plan = make_ring(1, false, POLYCCL_SIMPLE);
  int id;
  assert_int_equal(polyccl_comm_add_plan(comm, plan, &id), POLYCCL_SUCCESS);
  float in = 3, out = 0;
  pid_t child = fork();
  if (child == 0) {
    polyccl_result result = polyccl_run_plan(comm, id, &in, &out, 1, POLYCCL_FLOAT32, POLYCCL_SUM, NULL);
    polyccl_comm_destroy(comm);
    _exit(result == POLYCCL_ERROR_INVALID && strstr(polyccl_last_error(), "fork()") != NULL ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(polyccl_run_plan(comm, id, &in, &out, 1, POLYCCL_FLOAT32, POLYCCL_SUM, NULL), POLYCCL_SUCCESS);
  assert_true(out == 3);
  polyccl_comm_destroy(comm);
  polyccl_plan_destroy(plan);
}

static int entries(const char *path) {
  int count = 0;
  DIR *folder = opendir(path);
  assert_non_null(folder);
  while (readdir(folder) != NULL) {
    count++;
  }
  closedir(folder);
  return count;
}

static long resident_pages(void) {
  long size = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
  fclose(file);
  return size;
}

static polyccl_result one_call(polyccl_comm *comm, void *argument) {
  int id;
  polyccl_result result = polyccl_comm_add_plan(comm, argument, &id);
  void *in = NULL, *out = NULL;
  if (result == POLYCCL_SUCCESS && polyccl_mem_alloc(&in, 40000) == POLYCCL_SUCCESS &&
      polyccl_mem_alloc(&out, 40000) == POLYCCL_SUCCESS) {
    result = polyccl_run_plan(comm, id, in, out, 10000, POLYCCL_FLOAT32, POLYCCL_SUM, NULL);
  }
  polyccl_mem_free(in);
  polyccl_mem_free(out);
  return result;
}

/* 1,000 communicators: descriptors, threads, address space and files are as before. */
static void nothing_piles_up(void **state) {
  (void)state;
  polyccl_plan *plan = make_oneshot(2, 2, false, POLYCCL_SIMPLE, POLYCCL_BATCH_MAJOR);
  assert_int_equal(pccl_launch_threads(2, one_call, plan), POLYCCL_SUCCESS);
  int descriptors = 0, threads = 0, files = entries("/dev/shm");
  long pages = 0;
  for (int i = 0; i < 1000; i++) {
    if (i == 100) {
      descriptors = entries("/proc/self/fd");
      threads = entries("/proc/self/task");
      pages = resident_pages();
    }
    assert_int_equal(pccl_launch_threads(2, one_call, plan), POLYCCL_SUCCESS);
  }
  assert_int_equal(entries("/proc/self/fd"), descriptors);
  assert_int_equal(entries("/proc/self/task"), threads);
  assert_int_equal(entries("/dev/shm"), files);
  assert_true(resident_pages() < pages + 20000); /* allocators may differ; a leaked segment is 1,000 times 3 MB */
  polyccl_plan_destroy(plan);
}

/* With POLYCCL_CHECK, calls that differ are an error that names both, and so is a rank that does not call. */
static polyccl_result at_odds(polyccl_comm *comm, void *argument) {
  polyccl_plan *const *plans = argument;
  int rank = polyccl_comm_user_rank(comm), kind = *(const int *)plans[1];
  polyccl_result result = polyccl_comm_add_plan(comm, plans[0], NULL);
  float in[16] = {0}, out[16];
  if (result == POLYCCL_SUCCESS) {
    result = polyccl_allreduce(in, out, 8, POLYCCL_FLOAT32, POLYCCL_SUM, comm, NULL);
  }
  if (result != POLYCCL_SUCCESS || (kind == 2 && rank == 1)) {
    return result;
  }
  if (kind == 1 && rank == 1) {
    return polyccl_broadcast(in, out, 8, POLYCCL_FLOAT32, 2, comm, NULL);
  }
  return polyccl_allreduce(in, out, kind == 0 && rank == 1 ? 9 : 8, POLYCCL_FLOAT32, POLYCCL_SUM, comm, NULL);
}

static void different_calls_are_found(void **state) {
  (void)state;
  setenv("POLYCCL_CHECK", "1", 1);
  setenv("POLYCCL_TIMEOUT", "1", 1);
  polyccl_plan *plan = make_oneshot(3, 1, false, POLYCCL_SIMPLE, POLYCCL_BATCH_MAJOR);
  static const struct {
    polyccl_result result;
    const char *first, *second;
  } cases[] = {{POLYCCL_ERROR_INVALID, "of 8 f32, sum", "of 9 f32, sum"},
               {POLYCCL_ERROR_INVALID, "allreduce of 8", "broadcast of 8 f32, root 2"},
               {POLYCCL_ERROR_TIMEOUT, "in call 2 (allreduce of 8", "for rank 1 to call"}};
  for (int kind = 0; kind < 3; kind++) {
    polyccl_plan *arguments[2] = {plan, (polyccl_plan *)(void *)&kind};
    assert_int_equal(pccl_launch_threads(3, at_odds, arguments), cases[kind].result);
    expect_text(cases[kind].first);
    expect_text(cases[kind].second);
  }
  polyccl_plan_destroy(plan);
  unsetenv("POLYCCL_CHECK");
  unsetenv("POLYCCL_TIMEOUT");
}

static void arguments_are_checked(void **state) {
  (void)state;
  polyccl_comm *comm;
  assert_int_equal(polyccl_comm_init_all(&comm, 1), POLYCCL_SUCCESS);
  polyccl_plan *outofplace = make_ring(1, false, POLYCCL_SIMPLE), *inplace = make_ring(1, true, POLYCCL_SIMPLE);
  polyccl_plan *two = make_ring(2, false, POLYCCL_SIMPLE);
  int out_id, in_id;
  assert_int_equal(polyccl_comm_add_plan(comm, outofplace, &out_id), POLYCCL_SUCCESS);
  float a[8] = {0}, b[8] = {0};
  assert_int_equal(polyccl_comm_add_plan(comm, inplace, &in_id), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_comm_add_plan(comm, two, NULL), POLYCCL_ERROR_INVALID);
  for (int i = 0; i < 2; i++) {
    int id = i == 0 ? out_id : in_id;
    assert_int_equal(polyccl_run_plan(comm, id, a, a + 1, 4, POLYCCL_FLOAT32, POLYCCL_SUM, NULL),
                     POLYCCL_ERROR_INVALID);
    expect_text("overlap");
    assert_int_equal(polyccl_run_plan(comm, id, a, NULL, 4, POLYCCL_FLOAT32, POLYCCL_SUM, NULL), POLYCCL_ERROR_INVALID);
    expect_text("the receive buffer of allreduce is NULL");
    assert_int_equal(polyccl_run_plan(comm, id, NULL, b, 4, POLYCCL_FLOAT32, POLYCCL_SUM, NULL), POLYCCL_ERROR_INVALID);
    expect_text("the send buffer of allreduce is NULL");
  }
  assert_int_equal(polyccl_run_plan(comm, out_id, a, b, SIZE_MAX / 2, POLYCCL_FLOAT32, POLYCCL_SUM, NULL),
                   POLYCCL_ERROR_INVALID);
  assert_int_equal(polyccl_run_plan(comm, out_id, a, b, 4, (polyccl_dtype)77, POLYCCL_SUM, NULL),
                   POLYCCL_ERROR_INVALID);
  assert_int_equal(polyccl_run_plan(comm, out_id, a, b, 4, POLYCCL_FLOAT32, (polyccl_redop)77, NULL),
                   POLYCCL_ERROR_INVALID);
  assert_int_equal(polyccl_run_plan(comm, 7, a, b, 4, POLYCCL_FLOAT32, POLYCCL_SUM, NULL), POLYCCL_ERROR_INVALID);
  assert_int_equal(polyccl_run_plan(NULL, 0, a, b, 4, POLYCCL_FLOAT32, POLYCCL_SUM, NULL), POLYCCL_ERROR_INVALID);
  assert_int_equal(polyccl_run_plan(comm, out_id, NULL, NULL, 0, POLYCCL_FLOAT32, POLYCCL_SUM, NULL), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_allreduce(a, b, 8, POLYCCL_FLOAT32, POLYCCL_AVG, comm, NULL), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_allreduce(a, a, 8, POLYCCL_FLOAT32, POLYCCL_SUM, comm, NULL), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_allgather(a, b, 8, POLYCCL_FLOAT32, comm, NULL), POLYCCL_ERROR_UNSUPPORTED);
  for (int root = -1; root <= 1; root += 2) {
    assert_int_equal(polyccl_broadcast(a, b, 8, POLYCCL_FLOAT32, root, comm, NULL), POLYCCL_ERROR_INVALID);
    expect_text("is out of range (0 to 0)");
    assert_int_equal(polyccl_reduce(a, b, 8, POLYCCL_FLOAT32, POLYCCL_SUM, root, comm, NULL), POLYCCL_ERROR_INVALID);
    assert_int_equal(polyccl_gather(a, b, 8, POLYCCL_FLOAT32, root, comm, NULL), POLYCCL_ERROR_INVALID);
    assert_int_equal(polyccl_scatter(a, b, 8, POLYCCL_FLOAT32, root, comm, NULL), POLYCCL_ERROR_INVALID);
  }
  assert_int_equal(polyccl_mem_free(a), POLYCCL_ERROR_INVALID);
  polyccl_comm_destroy(comm);
  polyccl_comm_destroy(comm);
  expect_text("was destroyed before");
  polyccl_comm_destroy(NULL);
  polyccl_plan_destroy(outofplace);
  polyccl_plan_destroy(inplace);
  polyccl_plan_destroy(two);
}

int main(void) {
  setenv("POLYCCL_BUILTIN", "0", 1); /* what no loaded plan does is an error here */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(death_ends_all),
      cmocka_unit_test(stopped_rank_runs_out_of_time),
      cmocka_unit_test(ranks_die_with_their_launcher),
      cmocka_unit_test(killed_ranks_are_a_failure),
      cmocka_unit_test(death_is_noticed_without_a_launcher),
      cmocka_unit_test(joining_is_checked),
      cmocka_unit_test(child_of_a_fork_is_refused),
      cmocka_unit_test(nothing_piles_up),
      cmocka_unit_test(different_calls_are_found),
      cmocka_unit_test(arguments_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
