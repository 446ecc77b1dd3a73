/* polyccl run --generated: a plan's code, made and compiled on the spot. The shared object ends up in memory (memfd),
 * so that nothing stays behind however the run ends. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <polyccl/codegen.h>

#include "base/error.h"
#include "base/file.h"
#include "run.h"

extern char **environ;

static polyccl_result write_source(const polyccl_plan *plan, const char *path) {
  FILE *file = fopen(path, "we");
  if (file == NULL) {
    return pccl_fail_errno("%s: cannot write", path);
  }
  polyccl_result result = polyccl_plan_generate(plan, POLYCCL_TARGET_C, file);
  if (fclose(file) != 0 && result == POLYCCL_SUCCESS) {
    result = pccl_fail_errno("%s: cannot write", path);
  }
  return result;
}

static polyccl_result compile_source(const char *source, const char *object) {
  const char *compiler = getenv("CC");
  compiler = compiler != NULL && compiler[0] != '\0' ? compiler : "cc";
#if defined(__SANITIZE_THREAD__)
  const char *checked = "-fsanitize=thread";
#elif defined(__SANITIZE_ADDRESS__)
  const char *checked = "-fsanitize=address,undefined";
#else
  const char *checked = "-g0";
#endif
  const char *arguments[] = {compiler, "-std=gnu17", "-O3", checked, "-shared", "-fPIC", "-o", object, source, NULL};
  pid_t child;
  int error = posix_spawnp(&child, compiler, NULL, NULL, (char *const *)arguments, environ);
  if (error != 0) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "--generated needs a C compiler: %s: %s", compiler, strerror(error));
  }
  int status;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return pccl_fail(POLYCCL_ERROR_INTERNAL, "%s did not compile the generated code", compiler);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result into_memory(const char *object, char *path, size_t bytes) {
  char *content = NULL;
  size_t length = 0;
  PCCL_TRY(pccl_read_file(object, (size_t)1 << 30, &content, &length));
  int fd = memfd_create("polyccl-code", 0);
  polyccl_result result = POLYCCL_SUCCESS;
  for (size_t done = 0; fd >= 0 && done < length;) {
    ssize_t wrote = write(fd, content + done, length - done);
    if (wrote < 0 && errno != EINTR) {
      close(fd);
      fd = -1;
    }
    done += wrote > 0 ? (size_t)wrote : 0;
  }
  if (fd < 0) {
    result = pccl_fail_errno("no memory file for the generated code");
  } else {
    snprintf(path, bytes, "/proc/self/fd/%d", fd); /* the ranks inherit the descriptor */
  }
  free(content);
  return result;
}

polyccl_result pccl_run_generate(const polyccl_plan *plan, char *path, size_t bytes) {
  char folder[] = "/tmp/polyccl-XXXXXX";
  if (mkdtemp(folder) == NULL) {
    return pccl_fail_errno("%s: cannot make a folder", folder);
  }
  char source[64], object[64];
  snprintf(source, sizeof source, "%s/plan.c", folder);
  snprintf(object, sizeof object, "%s/plan.so", folder);
  polyccl_result result = write_source(plan, source);
  if (result == POLYCCL_SUCCESS) {
    result = compile_source(source, object);
  }
  if (result == POLYCCL_SUCCESS) {
    result = into_memory(object, path, bytes);
  }
  unlink(source);
  unlink(object);
  rmdir(folder);
  return result;
}
