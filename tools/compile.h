/* polyccl compile, in two parts: compile.c reads the arguments and compiles one plan, compile_set.c a folder of plans.
 */
#ifndef PCCL_TOOLS_COMPILE_H
#define PCCL_TOOLS_COMPILE_H

#include <polyccl/compile.h>

/* Writes the set for sizes from `min` to `max` as FOLDER/NAME-in-place-0.plan, -1 and so on (or -out-of-place), made
 * where it is missing; plans of an earlier set of this name are replaced. Prints which plan is for which sizes. The
 * exit status. */
int pccl_compile_set(const polyccl_program *program, const polyccl_compile_options *options, uint64_t min, uint64_t max,
                     const char *folder);

/* Seconds by phase and peak memory, on standard error; `load`: reading the program. */
void pccl_compile_print_times(const polyccl_compile_times *times, double load);

#endif
