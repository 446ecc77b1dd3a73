/* Sequences of calls of right plans, equal and different ones, with ranks a call apart: every call must come right.
 * What docs/verifier.md says keeps them apart must matter: each wrong setting must be found. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/plan.h>

#include "sequence.h"

enum { MAX_PLANS = 256, SEEDS = 120 };

typedef struct entry {
  char name[256];
  polyccl_plan *plan;
  int depth;
} entry;

static entry plans[MAX_PLANS];
static int count;

static const char *flaw_name[SEQUENCE_FLAWS] = {"as it is", "enters early", "returns early", "puts early", "reshapes"};

static bool read_plans(const char *folder) {
  struct dirent **file;
  int files = scandir(folder, &file, NULL, alphasort);
  bool fine = files > 0;
  for (int i = 0; i < files; i++) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, file[i]->d_name);
    if (strstr(file[i]->d_name, ".plan") != NULL && count < MAX_PLANS) {
      entry *e = &plans[count];
      polyccl_verify_report report;
      if (polyccl_plan_read(path, &e->plan) == POLYCCL_SUCCESS &&
          polyccl_plan_verify(e->plan, &report) == POLYCCL_SUCCESS) {
        snprintf(e->name, sizeof e->name, "%s", file[i]->d_name);
        e->depth = report.fifo_depth;
        count++;
      } else {
        printf("%s: %s\n", path, polyccl_last_error());
        fine = false;
      }
    }
    free(file[i]);
  }
  if (files >= 0) {
    free(file);
  }
  return fine;
}

/* The first call is of plan `first`; the others are of it too, or of any plans of as many ranks. */
static interpreter_outcome run(int first, uint64_t seed, sequence_flaw flaw, int *apart, char *why, size_t size) {
  sequence_call call[SEQUENCE_CALLS];
  int calls = 2 + (int)(seed % (SEQUENCE_CALLS - 1));
  uint64_t random = seed * 0x9e3779b97f4a7c15u;
  bool equal = seed % 2 == 0;
  for (int c = 0; c < calls; c++) {
    int which = first;
    do {
      random = random * 6364136223846793005u + 1442695040888963407u;
      which = equal || c == 0 ? first : (int)((random >> 33) % (uint64_t)count);
    } while (plans[which].plan->ranks != plans[first].plan->ranks);
    call[c] = (sequence_call){.plan = plans[which].plan,
                              .micro_batches = 1 + (int)(random >> 40) % 4,
                              .depth = plans[which].depth * (1 + (int)(random >> 50) % 3)};
  }
  return interpret_sequence(call, calls, flaw, seed, apart, why, size);
}

int main(void) {
  bool fine = read_plans(POLYCCL_SOURCE_DIR "/tests/plans/right");
  fine = read_plans(POLYCCL_SOURCE_DIR "/tests/golden") && fine;
  int wrong[SEQUENCE_FLAWS] = {0}, apart = 0, none = 0;
  for (int p = 0; p < count; p++) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
      char why[256] = "";
      if (run(p, seed, SEQUENCE_AS_IT_IS, &apart, why, sizeof why) != INTERPRETER_RIGHT) {
        printf("%s, seed %d: %s\n", plans[p].name, (int)seed, why);
        fine = false;
        break;
      }
      for (int flaw = 1; flaw < SEQUENCE_FLAWS; flaw++) {
        wrong[flaw] += run(p, seed, (sequence_flaw)flaw, &none, why, sizeof why) != INTERPRETER_RIGHT;
      }
    }
  }
  printf("%d plans, %d sequences each; %d times a rank was a call ahead\n", count, SEEDS, apart);
  for (int flaw = 1; flaw < SEQUENCE_FLAWS; flaw++) {
    printf("%s: found in %d of %d\n", flaw_name[flaw], wrong[flaw], count * SEEDS);
    fine = fine && wrong[flaw] > 0;
  }
  for (int p = 0; p < count; p++) {
    polyccl_plan_destroy(plans[p].plan);
  }
  return fine && apart > 1000 ? 0 : 1;
}
