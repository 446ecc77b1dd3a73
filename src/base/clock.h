/* The clock of all measurements and time-outs. */
#ifndef PCCL_BASE_CLOCK_H
#define PCCL_BASE_CLOCK_H

#include <stdint.h>

uint64_t pccl_now(void);       /* nanoseconds since an unspecified start; never goes back */
double pccl_now_seconds(void); /* the same in seconds */

#endif
