#include "watchdog.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tools.h"

/* Sanitizers reserve terabytes of addresses. */
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

static struct {
  timer_t timer;
  bool has_timer, has_limit;
  struct sigaction action_before;
  sigset_t mask_before;
  struct rlimit limit_before;
  char message[512];
  size_t length;
} watch;

static void end_command(int number) {
  (void)number;
  ssize_t written = write(STDERR_FILENO, watch.message, watch.length);
  (void)written;
  _exit(PCCL_EXIT_INVALID);
}

static void start_clock(double seconds) {
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGNAL};
  if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &watch.timer) != 0) {
    return;
  }
  struct sigaction action = {.sa_handler = end_command};
  sigset_t signals;
  sigemptyset(&action.sa_mask);
  sigemptyset(&signals);
  sigaddset(&signals, SIGNAL);
  sigaction(SIGNAL, &action, &watch.action_before);
  pthread_sigmask(SIG_UNBLOCK, &signals, &watch.mask_before);
  time_t whole = seconds < 1e9 ? (time_t)seconds : 1000000000;
  long rest = seconds < 1e9 ? (long)((seconds - (double)whole) * 1e9) : 0;
  struct itimerspec due = {.it_value = {whole, whole == 0 && rest == 0 ? 1 : rest}};
  timer_settime(watch.timer, 0, &due, NULL);
  watch.has_timer = true;
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
  if (!LIMITS_MEMORY || bytes == 0 || used == 0 || bytes > SIZE_MAX - used ||
      getrlimit(RLIMIT_AS, &watch.limit_before) != 0) {
    return;
  }
  struct rlimit limit = watch.limit_before;
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > used + bytes) {
    limit.rlim_cur = used + bytes;
    watch.has_limit = setrlimit(RLIMIT_AS, &limit) == 0;
  }
}

void pccl_watchdog_begin(const char *tool, const char *what, double seconds, size_t bytes) {
  int length = snprintf(watch.message, sizeof watch.message,
                        "polyccl %s: %.300s: reading this program took more than %g seconds of processor time "
                        "(POLYCCL_LUA_INSTRUCTIONS); does it end?\n",
                        tool, what, seconds);
  watch.length = length > 0 && (size_t)length < sizeof watch.message ? (size_t)length : sizeof watch.message - 1;
  limit_memory(bytes);
  start_clock(seconds);
}

void pccl_watchdog_end(void) {
  if (watch.has_timer) {
    timer_delete(watch.timer);
    pthread_sigmask(SIG_SETMASK, &watch.mask_before, NULL);
    sigaction(SIGNAL, &watch.action_before, NULL);
    watch.has_timer = false;
  }
  if (watch.has_limit) {
    setrlimit(RLIMIT_AS, &watch.limit_before);
    watch.has_limit = false;
  }
}
