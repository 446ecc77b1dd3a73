#include <polyccl/compile.h>

#include "language/synth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_OPERATIONS = 2000 }; /* checked and compiled, so that the fuzzer stays fast */

/* TE-CCL's JSON and ForestColl's XML: what the check passes must compile to a plan that the verifier passes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  polyccl_program *program = NULL;
  polyccl_program_summary summary;
  polyccl_plan *plan = NULL;
  if (!pccl_is_synth(pccl_kind_of((const char *)data, size))) {
    return -1;
  }
  if (pccl_program_load_text("fuzz", (const char *)data, size, NULL, NULL, 0, &program) != POLYCCL_SUCCESS) {
    return 0;
  }
  const polyccl_program_config *config = polyccl_program_get_config(program);
  bool small = (int64_t)config->ranks * config->ranks * config->chunks <= MAX_OPERATIONS;
  if (small && polyccl_program_check(program, &summary) == POLYCCL_SUCCESS) {
    if (polyccl_compile(program, NULL, &plan) != POLYCCL_SUCCESS) {
      abort();
    }
    polyccl_plan_destroy(plan);
  }
  polyccl_program_destroy(program);
  return 0;
}
