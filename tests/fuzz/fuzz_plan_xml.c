#include "plan_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Anything that begins with '<' is read as XML; other input teaches nothing here. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0 || data[0] != '<') {
    return -1;
  }
  return fuzz_plan(data, size);
}
