/* A second line of defence while a program is read. The sandbox keeps its bounds by itself. If it does not return, for
 * example from a C function that runs too long, a timer or the memory limit of the kernel ends the command with one
 * line on standard error and exit status 2. Nothing remains, since a command makes no files and no shared memory before
 * it has read its program. */
#ifndef PCCL_TOOLS_WATCHDOG_H
#define PCCL_TOOLS_WATCHDOG_H

#include <stdbool.h>
#include <stddef.h>

#include <polyccl/types.h>

/* Until pccl_watchdog_end(), the process ends with exit status 2 when this thread has used `seconds` more of processor
 * time. If it is the only thread, it can get at most `bytes` more memory (0: no limit). A timer or limit that the
 * system refuses is left out. `what` names the program in the message. Each thread can have one watchdog. */
void pccl_watchdog_begin(const char *tool, const char *what, double seconds, size_t bytes);
void pccl_watchdog_end(void);

/* Returns false in builds with sanitizers, which reserve terabytes of addresses. */
bool pccl_watchdog_limits_memory(void);

#endif
