/* polyccl compile, in two parts: compile.c reads the arguments and compiles one plan, compile_set.c a folder of plans.
 */
#ifndef PCCL_TOOLS_COMPILE_H
#define PCCL_TOOLS_COMPILE_H

#include <polyccl/compile.h>

/* Compiles the set for sizes from `min` to `max` bytes, makes the folder if it is missing, and writes the plans as
 * FOLDER/NAME-in-place-0.plan, -1 and so on (or -out-of-place). They replace an earlier set of this name. Prints which
 * plan is for which sizes. Returns the exit status. */
int pccl_compile_set(const polyccl_program *program, const polyccl_compile_options *options, uint64_t min, uint64_t max,
                     const char *folder);

/* Prints the seconds of each phase and the peak memory to standard error; `load` is the time of reading the program. */
void pccl_compile_print_times(const polyccl_compile_times *times, double load);

#endif
