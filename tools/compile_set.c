/* polyccl compile --policy set, which writes a folder of plans; and what --timings prints. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "compile.h"
#include "output.h"
#include "program/program.h"
#include "sizes.h"
#include "tools.h"

enum { MAX_PATH = 4096 };

static const char *placement_of(const polyccl_plan *plan) { return plan->inplace ? "in-place" : "out-of-place"; }

static int path_of(char *path, const char *folder, const char *name, const polyccl_plan *plan, size_t number) {
  int length = snprintf(path, MAX_PATH, "%s/%s-%s-%zu.plan", folder, name, placement_of(plan), number);
  return length < 0 || length >= MAX_PATH ? pccl_tool_usage("compile", "%s: the path is too long", folder)
                                          : PCCL_EXIT_OK;
}

/* Replaces what is not a letter, a digit, _ or - by _, so that the name is good for a file on every system. */
static void plain_name(const char *name, char *plain, size_t room) {
  size_t i = 0;
  for (; name[i] != '\0' && i + 1 < room; i++) {
    bool safe = strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", name[i]) != NULL;
    plain[i] = name[i];
    if (!safe) {
      plain[i] = '_';
    }
  }
  plain[i] = '\0';
  if (i == 0) {
    snprintf(plain, room, "plan");
  }
}

/* Removes what an earlier, larger set of this name left: NAME-PLACEMENT-N.plan with N >= `from`. */
static void remove_rest(const char *folder, const char *name, const polyccl_plan *plan, size_t from) {
  char prefix[300], path[MAX_PATH];
  snprintf(prefix, sizeof prefix, "%s-%s-", name, placement_of(plan));
  DIR *dir = opendir(folder);
  for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL; entry = readdir(dir)) {
    const char *number = entry->d_name + strlen(prefix);
    char *end;
    if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 || *number < '0' || *number > '9') {
      continue;
    }
    unsigned long value = strtoul(number, &end, 10);
    if (strcmp(end, ".plan") == 0 && value >= from &&
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < MAX_PATH) {
      unlink(path);
    }
  }
  if (dir != NULL) {
    closedir(dir);
  }
}

static int32_t max_tbs(const polyccl_plan *plan) {
  int32_t max = 0;
  for (int rank = 0; rank < plan->ranks; rank++) {
    max = plan->rank[rank].tbs > max ? plan->rank[rank].tbs : max;
  }
  return max;
}

static int write_plan(const polyccl_plan *plan, const char *path) {
  pccl_output output;
  int status = pccl_output_open(&output, "compile", path);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  polyccl_result result = polyccl_plan_write(plan, POLYCCL_FORMAT_PLAN, output.file);
  status = pccl_output_close(&output, result == POLYCCL_SUCCESS ? PCCL_EXIT_OK : pccl_tool_failed("compile", result));
  if (status == PCCL_EXIT_OK) {
    char from[32], to[32];
    printf("%s  %s to %s  %s, %d thread blocks a rank\n", path, pccl_size_text(plan->min_bytes, from, sizeof from),
           plan->max_bytes > 0 ? pccl_size_text(plan->max_bytes, to, sizeof to) : "any size",
           plan->order == POLYCCL_BATCH_MAJOR ? "batch-major" : "task-major", max_tbs(plan));
  }
  return status;
}

int pccl_compile_set(const polyccl_program *program, const polyccl_compile_options *options, uint64_t min, uint64_t max,
                     const char *folder) {
  polyccl_plan_set *set;
  char name[200], path[MAX_PATH];
  plain_name(program->name, name, sizeof name);
  polyccl_result result = polyccl_compile_set(program, options, min, max, &set);
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("compile", result);
  }
  int status = PCCL_EXIT_OK;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
    pccl_fail_errno("%s: cannot make the folder", folder);
    status = pccl_tool_failed("compile", POLYCCL_ERROR_INVALID);
  }
  for (size_t i = 0; i < set->plans && status == PCCL_EXIT_OK; i++) {
    status = path_of(path, folder, name, set->plan[i], i);
    status = status == PCCL_EXIT_OK ? write_plan(set->plan[i], path) : status;
  }
  if (status == PCCL_EXIT_OK) {
    remove_rest(folder, name, set->plan[0], set->plans);
  }
  polyccl_plan_set_destroy(set);
  return status;
}

void pccl_compile_print_times(const polyccl_compile_times *t, double load) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double total = load + t->check + t->lower + t->schedule + t->allocate + t->wait + t->emit + t->verify;
  fprintf(stderr,
          "load %.3f s, check %.3f s, lower %.3f s, schedule %.3f s, allocate %.3f s, wait %.3f s, emit %.3f s, "
          "verify %.3f s, total %.3f s, peak %ld MiB\n",
          load, t->check, t->lower, t->schedule, t->allocate, t->wait, t->emit, t->verify, total,
          usage.ru_maxrss / 1024);
}
