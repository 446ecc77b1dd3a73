/* The interpreter on the same files as the verifier: right under every interleaving for tests/plans/right, found wrong
 * under one of them for tests/plans/bad, but for files with a line "# interpreter: REASON", where a rule forbids what
 * would come right on this machine. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/plan.h>

#include "base/file.h"
#include "interpreter.h"

enum { RUNS = 400 };

static bool check(const char *path, bool right) {
  polyccl_plan *plan;
  char why[256] = "", *text;
  size_t length;
  if (polyccl_plan_read(path, &plan) != POLYCCL_SUCCESS ||
      pccl_read_file(path, 1 << 24, &text, &length) != POLYCCL_SUCCESS) {
    printf("%s\n", polyccl_last_error());
    return false;
  }
  bool excused = strstr(text, "# interpreter: ") != NULL;
  polyccl_verify_report report = {.fifo_depth = plan->fifo_depth > 0 ? plan->fifo_depth : 1};
  if (right) {
    polyccl_plan_verify(plan, &report);
  }
  interpreter_outcome outcome = INTERPRETER_RIGHT;
  for (int run = 0; run < RUNS && outcome == INTERPRETER_RIGHT; run++) {
    interpreter_options options = {
        .micro_batches = 1 + run % 20, .depth = report.fifo_depth, .seed = (uint64_t)run + 1};
    if (right && run % 2 != 0) { /* what min, max and sums make of special floats */
      options.reduction = (interpreter_reduction)(1 + run / 2 % (report.identical ? 3 : 2));
      options.same_bits = options.reduction == INTERPRETER_FLOAT_ADD;
    }
    options.missing = report.uneven ? run % (plan->chunks * options.micro_batches) : 0;
    outcome = interpret(plan, &options, why, sizeof why);
  }
  bool fine = (outcome == INTERPRETER_RIGHT) == (right || excused);
  if (!fine) {
    printf("%s: %s\n", path, outcome == INTERPRETER_RIGHT ? "comes right" : why);
  }
  free(text);
  polyccl_plan_destroy(plan);
  return fine;
}

static bool walk(const char *folder, bool right, int *found) {
  struct dirent **entry;
  int count = scandir(folder, &entry, NULL, alphasort);
  bool fine = true;
  for (int i = 0; i < count; i++) {
    char path[1024];
    if (strstr(entry[i]->d_name, ".plan") != NULL) {
      snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
      fine = check(path, right) && fine;
      ++*found;
    }
    free(entry[i]);
  }
  if (count >= 0) {
    free(entry);
  }
  return fine;
}

int main(void) {
  int found = 0;
  bool fine = walk(POLYCCL_SOURCE_DIR "/tests/plans/right", true, &found);
  fine = walk(POLYCCL_SOURCE_DIR "/tests/plans/bad", false, &found) && fine;
  printf("%d plans\n", found);
  return fine && found > 40 ? 0 : 1;
}
