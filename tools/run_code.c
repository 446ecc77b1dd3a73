/* polyccl run --generated: generates the code of a plan and compiles it. Source and shared object are files in memory
 * (memfd), so that nothing remains however the run ends. */
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
#include "run.h"

extern char **environ;

enum { PATH_BYTES = 64 };

/* The compiler and the ranks inherit the descriptor, and find the file by it. */
static polyccl_result make_file(const char *name, char path[PATH_BYTES], int *fd) {
  *fd = memfd_create(name, 0);
  if (*fd < 0) {
    return pccl_fail_errno("no memory file for the generated code");
  }
  snprintf(path, PATH_BYTES, "/proc/self/fd/%d", *fd);
  return POLYCCL_SUCCESS;
}

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
  const char *arguments[] = {compiler, "-std=gnu17", "-O3", checked, "-shared", "-fPIC",
                             "-o",     object,       "-x",  "c",     source,    NULL};
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

polyccl_result pccl_run_generate(const polyccl_plan *plan, char *path, size_t bytes) {
  char source[PATH_BYTES], object[PATH_BYTES];
  int source_fd, object_fd;
  PCCL_TRY(make_file("polyccl-source", source, &source_fd));
  polyccl_result result = make_file("polyccl-code", object, &object_fd);
  if (result == POLYCCL_SUCCESS) {
    result = write_source(plan, source);
    if (result == POLYCCL_SUCCESS) {
      result = compile_source(source, object);
    }
    if (result == POLYCCL_SUCCESS) {
      snprintf(path, bytes, "%s", object);
    } else {
      close(object_fd);
    }
  }
  close(source_fd);
  return result;
}
