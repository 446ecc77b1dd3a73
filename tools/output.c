#include "output.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools.h"

/* ---- files that an interrupted command must not leave ---- */

enum { MAX_OPEN = 8 };
static char *volatile unfinished[MAX_OPEN];
static volatile pid_t owner; /* forked ranks have the names, but the files are not theirs */

static void remove_unfinished(int number) {
  for (int i = 0; i < MAX_OPEN && owner == getpid(); i++) {
    if (unfinished[i] != NULL) {
      unlink(unfinished[i]);
    }
  }
  signal(number, SIG_DFL);
  raise(number);
}

static void watch_signals(void) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    struct sigaction now, ours = {.sa_handler = remove_unfinished};
    if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL) {
      sigaction(numbers[i], &ours, NULL);
    }
  }
}

static void replace_unfinished(char *old, char *name) {
  for (int i = 0; i < MAX_OPEN; i++) {
    if (unfinished[i] == old) {
      unfinished[i] = name;
      return;
    }
  }
}

static void forget_unfinished(pccl_output *output) {
  if (output->temporary != NULL) {
    replace_unfinished(output->temporary, NULL);
    free(output->temporary);
    output->temporary = NULL;
  }
}

/* ---- outputs ---- */

static int cannot_write(const pccl_output *output) {
  return pccl_tool_usage(output->tool, "%s: cannot write: %s", output->path != NULL ? output->path : "standard output",
                         strerror(errno));
}

int pccl_output_open(pccl_output *output, const char *tool, const char *path) {
  *output = (pccl_output){.tool = tool, .path = path, .file = stdout};
  if (path == NULL || strcmp(path, "-") == 0) {
    output->path = NULL;
    return PCCL_EXIT_OK;
  }
  struct stat status;
  bool special = stat(path, &status) == 0 && !S_ISREG(status.st_mode); /* a pipe or a device is not replaced */
  if (!special) {
    size_t size = strlen(path) + 32;
    output->temporary = malloc(size);
    if (output->temporary == NULL) {
      return pccl_tool_usage(tool, "out of memory");
    }
    snprintf(output->temporary, size, "%s.%ld.tmp", path, (long)getpid());
    owner = getpid();
    replace_unfinished(NULL, output->temporary);
    watch_signals();
  }
  output->file = fopen(special ? path : output->temporary, "we");
  if (output->file == NULL) {
    int result = cannot_write(output);
    forget_unfinished(output);
    return result;
  }
  return PCCL_EXIT_OK;
}

int pccl_output_close(pccl_output *output, int status) {
  bool failed = fflush(output->file) != 0 || ferror(output->file) != 0;
  failed = (output->path != NULL && fclose(output->file) != 0) || failed;
  if (status == PCCL_EXIT_OK && output->temporary != NULL && !failed) {
    failed = rename(output->temporary, output->path) != 0;
  }
  if (status == PCCL_EXIT_OK && failed) {
    cannot_write(output);
    status = PCCL_EXIT_FAILED;
  }
  if (status != PCCL_EXIT_OK && output->temporary != NULL) {
    unlink(output->temporary);
  }
  forget_unfinished(output);
  return status;
}
