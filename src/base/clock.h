/* The clock that everything is timed by. */
#ifndef PCCL_BASE_CLOCK_H
#define PCCL_BASE_CLOCK_H

#include <stdint.h>

uint64_t pccl_now(void);       /* nanoseconds, monotonic */
double pccl_now_seconds(void); /* the same in seconds */

#endif
