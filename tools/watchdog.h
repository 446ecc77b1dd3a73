/* The last resort while a program is read. The sandbox keeps its bounds by itself; should it ever not come back, in
 * some call of C that was not thought of, the kernel's clock and memory limit end the command: with one line on
 * standard error and exit status 2. Nothing is left over, since a command makes no files and no shared memory before it
 * has read its program. */
#ifndef PCCL_TOOLS_WATCHDOG_H
#define PCCL_TOOLS_WATCHDOG_H

#include <stdbool.h>
#include <stddef.h>

#include <polyccl/types.h>

/* From now on until pccl_watchdog_end() the process ends with exit status 2 when this thread has used so many more
 * seconds of processor time; where it is the only thread, it can get at most `bytes` (0: any number) more memory. What
 * cannot be set is left as it is. `what` names the program in the message. One at a time in each thread. */
void pccl_watchdog_begin(const char *tool, const char *what, double seconds, size_t bytes);
void pccl_watchdog_end(void);

/* False in builds with sanitizers, which reserve terabytes of addresses. */
bool pccl_watchdog_limits_memory(void);

#endif
