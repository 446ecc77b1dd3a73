/* Checks that this machine has the memory that a run needs before anything starts, since the kernel would kill a
 * process that takes more, or another process, without an error message. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/options.h"
#include "run_ranks.h"

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Returns the number of a line "NAME:   123 kB" of /proc/meminfo in bytes; 0 if there is no such line. */
static uint64_t read_meminfo(const char *text, const char *name) {
  const char *line = strstr(text, name);
  unsigned long long kilobytes = 0;
  return line != NULL && sscanf(line + strlen(name), ": %llu", &kilobytes) == 1 ? (uint64_t)kilobytes << 10 : 0;
}

static size_t read_text(const char *path, char *text, size_t room) {
  FILE *file = fopen(path, "re");
  size_t length = file != NULL ? fread(text, 1, room - 1, file) : 0;
  if (file != NULL) {
    fclose(file);
  }
  text[length] = '\0';
  return length;
}

/* Returns the bytes that the machine and this control group (a container) have left; UINT64_MAX if unknown. */
static uint64_t available_memory(void) {
  static const char *const limits[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
  char text[4096];
  uint64_t bytes = UINT64_MAX;
  if (read_text("/proc/meminfo", text, sizeof text) > 0 && strstr(text, "MemAvailable") != NULL) {
    bytes = read_meminfo(text, "MemAvailable") + read_meminfo(text, "SwapFree");
  }
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
    uint64_t limit;
    if (read_text(limits[i], text, sizeof text) > 0) {
      text[strcspn(text, "\n")] = '\0';
      bytes = pccl_parse_number(text, &limit) ? min_u64(bytes, limit) : bytes;
    }
  }
  return bytes;
}

static uint64_t limit_of(int resource) {
  struct rlimit limit;
  return getrlimit((__rlimit_resource_t)resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
             ? (uint64_t)limit.rlim_cur
             : UINT64_MAX;
}

/* Adds up buffers and scratch of one placement: of the largest rank and of all ranks. False if they exceed 64 bits. */
static bool count_memory(const pccl_run_args *args, const polyccl_plan *plan, size_t count, uint64_t *largest,
                         uint64_t *all) {
  size_t bytes[2], element = polyccl_dtype_size(args->dtype);
  if (!pccl_run_buffer_bytes(args, plan, count, bytes)) {
    return false;
  }
  uint64_t stride = pccl_collective_stride(plan->chunks, count, element), buffers, scratch, rank_bytes;
  *largest = *all = 0;
  for (int rank = 0; rank < plan->ranks; rank++) {
    if (__builtin_add_overflow((uint64_t)bytes[0], (uint64_t)bytes[1], &buffers) ||
        __builtin_mul_overflow(stride * element, (uint64_t)plan->rank[rank].scratch, &scratch) ||
        __builtin_add_overflow(buffers, scratch, &rank_bytes) || __builtin_add_overflow(*all, rank_bytes, all)) {
      return false;
    }
    *largest = rank_bytes > *largest ? rank_bytes : *largest;
  }
  return true;
}

static polyccl_result too_much(const pccl_run_args *args, const polyccl_plan *plan, size_t count, uint64_t bytes,
                               uint64_t limit, const char *what) {
  char wanted[32], had[32];
  return pccl_fail(POLYCCL_ERROR_LIMIT,
                   "%s: a call of %zu elements of %s per block on %d ranks needs %s of memory, %s %s",
                   args->size_option, count, polyccl_dtype_name(args->dtype), plan->ranks,
                   bytes == UINT64_MAX ? "more than 16 EiB" : pccl_size_text(bytes, wanted, sizeof wanted),
                   pccl_size_text(limit, had, sizeof had), what);
}

polyccl_result pccl_run_check_memory(const pccl_run_args *args, size_t count) {
  uint64_t there = available_memory();
  uint64_t allowed = min_u64(limit_of(RLIMIT_AS), limit_of(RLIMIT_DATA)), resident = limit_of(RLIMIT_RSS);
  for (int i = 0; i < PCCL_RUN_PLACEMENTS; i++) {
    const polyccl_plan *plan = args->plan[i];
    uint64_t largest = UINT64_MAX, all = UINT64_MAX;
    if (plan == NULL) {
      continue;
    }
    bool counted = count_memory(args, plan, count, &largest, &all);
    if (!counted || all > there) {
      return too_much(args, plan, count, counted ? all : UINT64_MAX, there, "is available");
    }
    uint64_t process = args->threads ? all : largest;
    if (process > allowed) {
      return too_much(args, plan, count, process, allowed, "is the limit of a process (ulimit)");
    }
    if (all > resident) {
      return too_much(args, plan, count, all, resident, "is the limit (ulimit -m)");
    }
  }
  return POLYCCL_SUCCESS;
}
