#include "plan_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Anything that does not begin with '<' is read as text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return fuzz_plan(data, size); }
