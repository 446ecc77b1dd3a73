#include "workers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { MAX_THREADS = 64, QUIET_SECONDS = 2 };

typedef struct crew {
  pccl_job job;
  void *context;
  size_t count;
  atomic_size_t next;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  size_t ended, working; /* jobs; threads */
  bool failed;
  size_t failed_at;
  polyccl_result result;
  char *error;
  size_t room;
} crew;

static void end_job(crew *c, size_t index, polyccl_result result) {
  pthread_mutex_lock(&c->lock);
  c->ended++;
  if (result != POLYCCL_SUCCESS && (!c->failed || index < c->failed_at)) {
    c->failed = true;
    c->failed_at = index;
    c->result = result;
    snprintf(c->error, c->room, "%s", polyccl_last_error());
  }
  pthread_cond_signal(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

static void *run_worker(void *argument) {
  crew *c = argument;
  for (;;) {
    pthread_mutex_lock(&c->lock);
    bool stop = c->failed;
    pthread_mutex_unlock(&c->lock);
    size_t index = stop ? c->count : atomic_fetch_add(&c->next, 1);
    if (index >= c->count) {
      break;
    }
    end_job(c, index, c->job(c->context, index));
  }
  pthread_mutex_lock(&c->lock);
  c->working--;
  pthread_cond_signal(&c->changed);
  pthread_mutex_unlock(&c->lock);
  return NULL;
}

/* Waits for all threads. Rewrites one line on a terminal, prints one every two seconds elsewhere. */
static void report_until_done(crew *c, const char *what) {
  bool terminal = isatty(STDERR_FILENO) != 0, shown = false;
  double start = pccl_now_seconds();
  double next = terminal ? 0.2 : QUIET_SECONDS;
  pthread_mutex_lock(&c->lock);
  while (c->working > 0) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&c->changed, &c->lock, &until);
    if (pccl_now_seconds() - start >= next && c->working > 0) {
      fprintf(stderr, terminal ? "\r%s: %zu of %zu " : "%s: %zu of %zu\n", what, c->ended, c->count);
      next = pccl_now_seconds() - start + (terminal ? 0.2 : QUIET_SECONDS);
      shown = true;
    }
  }
  pthread_mutex_unlock(&c->lock);
  if (terminal && shown) {
    fprintf(stderr, "\r\033[K");
  }
}

polyccl_result pccl_run_jobs(const char *what, size_t count, pccl_job job, void *context, char *error, size_t room) {
  crew c = {.job = job, .context = context, .count = count, .error = error, .room = room};
  pthread_mutex_init(&c.lock, NULL);
  pthread_cond_init(&c.changed, NULL);
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  size_t wanted = cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : (size_t)cores, threads = 0;
  wanted = wanted < count ? wanted : count;
  pthread_t thread[MAX_THREADS];
  c.working = wanted;
  while (threads < wanted && pthread_create(&thread[threads], NULL, run_worker, &c) == 0) {
    threads++;
  }
  pthread_mutex_lock(&c.lock);
  c.working -= wanted - threads;
  pthread_mutex_unlock(&c.lock);
  if (threads == 0 && count > 0) { /* the system gives no thread, so this one does the work */
    c.working = 1;
    run_worker(&c);
  }
  report_until_done(&c, what);
  for (size_t i = 0; i < threads; i++) {
    pthread_join(thread[i], NULL);
  }
  pthread_cond_destroy(&c.changed);
  pthread_mutex_destroy(&c.lock);
  return c.failed ? c.result : POLYCCL_SUCCESS;
}
