/* Plan -> source: kernels generated instead of interpreted (ResCCL, SIGCOMM'25, generated kernel). Every thread block
 * of every rank becomes a function in which ops, places, connections and waits are constants; what steps do comes from
 * one portable source (src/kernel/moves.h), whose text the file carries, so that it compiles alone:
 *
 *   c      cc -O3 -shared -fPIC -o plan.so plan.c     loaded by polyccl_comm_add_generated() (polyccl.h)
 *   cuda   nvcc -arch=sm_90 ...                       one cooperative kernel, a GPU thread block per thread block
 *   hip    hipcc --offload-arch=gfx90a ...            the same
 */
#ifndef POLYCCL_CODEGEN_H
#define POLYCCL_CODEGEN_H

#include <stdio.h>

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum polyccl_target { POLYCCL_TARGET_C = 0, POLYCCL_TARGET_CUDA, POLYCCL_TARGET_HIP } polyccl_target;

/* The same plan gives the same bytes. Errors: a plan that does not pass the verifier; SYSTEM when `to` does not take
 * it. Messages go through FIFO slots; marks for messages by reference are not used. */
POLYCCL_API polyccl_result polyccl_plan_generate(const polyccl_plan *plan, polyccl_target target, FILE *to);

/* The kernel that runs any plan from a table of its steps, for targets CUDA and HIP: what generated kernels are
 * compared with. */
POLYCCL_API polyccl_result polyccl_interpreter_generate(polyccl_target target, FILE *to);

/* Identifies what a plan does: equal for plans with equal steps, whatever their names and lines. Generated files carry
 * it, so that they are run for their own plan only. */
POLYCCL_API uint64_t polyccl_plan_fingerprint(const polyccl_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
