#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools.h"

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
  }
  output->file = fopen(special ? path : output->temporary, "we");
  if (output->file == NULL) {
    int result = cannot_write(output);
    free(output->temporary);
    output->temporary = NULL;
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
  free(output->temporary);
  output->temporary = NULL;
  return status;
}
