#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pccl_log_level chosen;
static FILE *stream;

static const char *const level_names[] = {"none", "version", "warn", "info", "trace"};

/* POLYCCL_DEBUG_FILE with %h and %p replaced by host and process id. */
static void expand_path(const char *pattern, char *path, size_t size) {
  size_t at = 0;
  for (; *pattern != '\0' && at + 1 < size; pattern++) {
    char piece[256] = {pattern[0], '\0'};
    if (pattern[0] == '%' && pattern[1] == 'h') {
      gethostname(piece, sizeof piece - 1);
      pattern++;
    } else if (pattern[0] == '%' && pattern[1] == 'p') {
      snprintf(piece, sizeof piece, "%ld", (long)getpid());
      pattern++;
    }
    int n = snprintf(path + at, size - at, "%s", piece);
    at += n > 0 ? (size_t)n : 0;
  }
  path[at < size ? at : size - 1] = '\0';
}

/* A wrong value of an option is reported once, since whoever set it expects a log. */
static void read_environment(void) {
  stream = stderr;
  const char *level = pccl_option("POLYCCL_DEBUG");
  bool known = false;
  for (size_t i = 0; i < sizeof level_names / sizeof level_names[0]; i++) {
    if (strcasecmp(level, level_names[i]) == 0) {
      chosen = (pccl_log_level)i;
      known = true;
    }
  }
  if (!known) {
    fprintf(stderr, "polyccl: POLYCCL_DEBUG=%s is not a level (none, version, warn, info, trace)\n", level);
  }
  const char *pattern = pccl_option("POLYCCL_DEBUG_FILE");
  if (pattern[0] != '\0') {
    char path[4096];
    expand_path(pattern, path, sizeof path);
    FILE *file = fopen(path, "ae");
    if (file != NULL) {
      setvbuf(file, NULL, _IOLBF, 0);
      stream = file;
    } else {
      fprintf(stderr, "polyccl: POLYCCL_DEBUG_FILE: cannot write %s: %s\n", path, strerror(errno));
    }
  }
}

bool pccl_log_enabled(pccl_log_level level) {
  pthread_once(&once, read_environment);
  return level != PCCL_LOG_NONE && level <= chosen;
}

void pccl_log_write(pccl_log_level level, const char *format, ...) {
  char text[4096];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stream, "polyccl[%ld] %s: %s\n", (long)getpid(), level_names[level], text);
}
