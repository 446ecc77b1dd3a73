/* Programs in Lua: whatever the text, the reader ends within its bounds with a program or an error; a right program
 * compiles to a plan that the verifier accepts, or is refused with an error. */
#include <stdlib.h>
#include <string.h>

#include <polyccl/compile.h>

#include "language/loader.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  setenv("POLYCCL_LUA_MEMORY", "16m", 1);
  setenv("POLYCCL_LUA_INSTRUCTIONS", "200k", 1);
  return 0;
}

/* The files of tests/programs hold many cases: one of them, by the length. */
static const char *choose(const char *text, size_t *length) {
  static const char mark[] = "--- case:";
  const char *starts[256];
  size_t count = 0;
  for (const char *at = strstr(text, mark); at != NULL && count < 255; at = strstr(at + 1, mark)) {
    starts[count++] = at;
  }
  if (count == 0) {
    return text;
  }
  starts[count] = text + *length;
  size_t which = *length % count;
  *length = (size_t)(starts[which + 1] - starts[which]);
  return starts[which];
}

static void compile(const polyccl_program *program) {
  polyccl_program_summary summary;
  if (polyccl_program_check(program, &summary) != POLYCCL_SUCCESS) {
    return;
  }
  const polyccl_program_config *config = polyccl_program_get_config(program);
  enum { MAX = 200 };
  if (summary.operations > MAX || config->ranks > MAX || config->chunks > MAX || config->instances > 8) {
    return; /* right, but too slow to compile many times a second */
  }
  polyccl_plan *plan = NULL;
  if (polyccl_compile(program, NULL, &plan) == POLYCCL_SUCCESS) {
    polyccl_plan_destroy(plan);
  } else if (polyccl_last_error()[0] == '\0') {
    abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1);
  if (text == NULL) {
    return 0;
  }
  memcpy(text, data, size);
  text[size] = '\0';
  size_t length = size;
  const char *start = choose(text, &length);
  polyccl_param ranks = {"ranks", "3"};
  polyccl_program *program = NULL;
  polyccl_result result = pccl_program_load_text("fuzz.lua", start, length, NULL, &ranks, size % 2, &program);
  if (result == POLYCCL_SUCCESS) {
    compile(program);
  } else if (program != NULL || polyccl_last_error()[0] == '\0') {
    abort();
  }
  polyccl_program_destroy(program);
  free(text);
  return 0;
}
