#include "watchdog.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tools.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITS_MEMORY false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define LIMITS_MEMORY false
#endif
#endif
#ifndef LIMITS_MEMORY
#define LIMITS_MEMORY true
#endif

enum { SIGNAL = SIGXCPU }; /* what the kernel sends for too much processor time */

typedef struct watch {
  timer_t timer;
  bool has_timer, has_limit;
  sigset_t mask_before;
  struct rlimit limit_before;
  char message[512];
  size_t length;
} watch;

/* Each thread may read a program of its own. */
static _Thread_local watch mine;

static void end_command(int number, siginfo_t *info, void *context) {
  (void)context;
  if (info->si_code != SI_TIMER) { /* sent by another cause, such as ulimit -t */
    signal(number, SIG_DFL);
    raise(number);
    return;
  }
  const watch *due = info->si_value.sival_ptr;
  ssize_t written = write(STDERR_FILENO, due->message, due->length);
  (void)written;
  _exit(PCCL_EXIT_INVALID);
}

static void start_clock(double seconds) {
  struct sigaction action = {.sa_sigaction = end_command, .sa_flags = SA_SIGINFO};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGNAL, .sigev_value = {.sival_ptr = &mine}};
  sigset_t signals;
  sigemptyset(&action.sa_mask);
  sigemptyset(&signals);
  sigaddset(&signals, SIGNAL);
  if (sigaction(SIGNAL, &action, NULL) != 0 || timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &mine.timer) != 0) {
    return;
  }
  pthread_sigmask(SIG_UNBLOCK, &signals, &mine.mask_before);
  time_t whole = seconds < 1e9 ? (time_t)seconds : 1000000000;
  long rest = seconds < 1e9 ? (long)((seconds - (double)whole) * 1e9) : 0;
  struct itimerspec due = {.it_value = {whole, whole == 0 && rest == 0 ? 1 : rest}};
  timer_settime(mine.timer, 0, &due, NULL);
  mine.has_timer = true;
}

/* The limit is that of the process, and other threads may need more. */
static bool is_only_thread(void) {
  FILE *file = fopen("/proc/self/status", "r");
  char line[256];
  int threads = 0;
  while (file != NULL && threads == 0 && fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "Threads: %d", &threads) != 1) {
      threads = 0;
    }
  }
  if (file != NULL) {
    fclose(file);
  }
  return threads == 1;
}

static size_t bytes_in_use(void) {
  size_t pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file != NULL) {
    if (fscanf(file, "%zu", &pages) != 1) {
      pages = 0;
    }
    fclose(file);
  }
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void limit_memory(size_t bytes) {
  size_t used = bytes_in_use();
  if (!LIMITS_MEMORY || bytes == 0 || used == 0 || bytes > SIZE_MAX - used || !is_only_thread() ||
      getrlimit(RLIMIT_AS, &mine.limit_before) != 0) {
    return;
  }
  struct rlimit limit = mine.limit_before;
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > used + bytes) {
    limit.rlim_cur = used + bytes;
    mine.has_limit = setrlimit(RLIMIT_AS, &limit) == 0;
  }
}

bool pccl_watchdog_limits_memory(void) { return LIMITS_MEMORY; }

void pccl_watchdog_begin(const char *tool, const char *what, double seconds, size_t bytes) {
  int length = snprintf(mine.message, sizeof mine.message,
                        "polyccl %s: %.300s: reading this program took more than %g seconds of processor time "
                        "(POLYCCL_LUA_INSTRUCTIONS); check that it ends\n",
                        tool, what, seconds);
  mine.length = length > 0 && (size_t)length < sizeof mine.message ? (size_t)length : sizeof mine.message - 1;
  limit_memory(bytes);
  start_clock(seconds);
}

void pccl_watchdog_end(void) {
  if (mine.has_timer) {
    timer_delete(mine.timer);
    pthread_sigmask(SIG_SETMASK, &mine.mask_before, NULL);
    mine.has_timer = false;
  }
  if (mine.has_limit) {
    setrlimit(RLIMIT_AS, &mine.limit_before);
    mine.has_limit = false;
  }
}
