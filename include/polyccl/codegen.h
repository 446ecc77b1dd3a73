/* Writes plans as source. A generated file executes its own plan alone, without the cost of interpreting a table of
 * steps. Source of the idea: the generated kernels of ResCCL (SIGCOMM'25).
 *
 * Each thread block of each rank becomes a function in which ops, places, connections and waits are constants. The text
 * of src/kernel/moves.h, which the file carries, says what a step does. So the file compiles alone:
 *
 *   c      cc -O3 -shared -fPIC -o plan.so plan.c     polyccl_comm_add_generated() (polyccl.h) loads the result
 *   cuda   nvcc -arch=sm_90 ...                       one cooperative kernel, with a GPU thread block per thread block
 *   hip    hipcc --offload-arch=gfx90a ...            the same
 *
 * Thread safety: any thread may call these functions at any time, as long as no thread changes the plan or uses the
 * stream meanwhile. */
#ifndef POLYCCL_CODEGEN_H
#define POLYCCL_CODEGEN_H

#include <stdio.h>

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum polyccl_target { POLYCCL_TARGET_C = 0, POLYCCL_TARGET_CUDA, POLYCCL_TARGET_HIP } polyccl_target;

/* Writes the plan as source to `to`, which the caller owns and closes. The same plan gives the same bytes. In generated
 * code all messages pass through slots; the plan's marks for messages by reference have no effect. Errors: INVALID for
 * an unknown target; the verifier's error if the plan does not pass it; MEMORY; SYSTEM if `to` cannot be written. After
 * an error `to` may hold a part of the source. */
POLYCCL_API polyccl_result polyccl_plan_generate(const polyccl_plan *plan, polyccl_target target, FILE *to);

/* Writes the interpreter kernel, which reads the steps of any plan from a table, to `to`, which the caller owns and
 * closes. Generated kernels are compared with it. Errors: UNSUPPORTED for a target other than CUDA and HIP; SYSTEM if
 * `to` cannot be written. */
POLYCCL_API polyccl_result polyccl_interpreter_generate(polyccl_target target, FILE *to);

/* A 64-bit hash of the plan's collective, connections and steps. It is equal for plans that do the same, whatever their
 * names and source lines. A generated file carries the fingerprint of its plan, and executors refuse it for any other
 * plan. */
POLYCCL_API uint64_t polyccl_plan_fingerprint(const polyccl_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
