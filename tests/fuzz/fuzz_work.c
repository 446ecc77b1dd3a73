/* Work for each unit of input: whatever the program, no stage takes more than its allowance (work.h). */
#include "work.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static polyccl_topology *topology;
  topology = topology != NULL ? topology : work_topology();
  work w = work_of(data, size, topology);
  for (int stage = 0; stage < WORK_STAGES; stage++) {
    if (work_share(&w, stage) > 1) {
      fprintf(stderr, "%s: %.4g blocks for %.0f units\n", work_stage_of[stage].name, w.done[stage], w.units[stage]);
      abort();
    }
  }
  return 0;
}
