#include "base/clock.h"

#include <time.h>

uint64_t pccl_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double pccl_now_seconds(void) { return 1e-9 * (double)pccl_now(); }
