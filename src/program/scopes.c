/* parallelize: scopes whose operations are cut into parts, and how fine that cuts the buffers. */
#include "base/error.h"
#include "program/program.h"

static int64_t greatest_common_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

polyccl_result polyccl_program_parallel_begin(polyccl_program *program, int instances, polyccl_location at) {
  enum { MAX_PARTS = 1024 };
  int64_t product = (int64_t)program->parallel.data[program->parallel.len - 1] * instances;
  if (instances < 1 || product > MAX_PARTS) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "parallelize by %d is out of range (1 to %d in all)", instances,
                        MAX_PARTS);
  }
  int64_t parts = program->refine / program->config.instances;
  int64_t refine = parts / greatest_common_divisor(parts, product) * product * program->config.instances;
  int64_t max = program->input > program->output ? program->input : program->output;
  if (refine * max > POLYCCL_MAX_CHUNKS) {
    return pccl_fail_at(POLYCCL_ERROR_LIMIT, at, "parallelize cuts the buffers into %lld chunks (at most %d)",
                        (long long)(refine * max), POLYCCL_MAX_CHUNKS);
  }
  if (!pccl_vec_push(&program->parallel, (int32_t)product)) {
    return pccl_no_memory("a parallelize scope");
  }
  program->refine = (int32_t)refine;
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_program_parallel_end(polyccl_program *program) {
  if (program->parallel.len < 2) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "no parallelize scope is open");
  }
  program->parallel.len--;
  return POLYCCL_SUCCESS;
}
