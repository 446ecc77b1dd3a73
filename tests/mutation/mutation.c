/* mutation [-n MUTANTS] [-s SEED] [-r RUNS] [-v] PLAN...
 *
 * Changes each plan at random, MUTANTS times. The verifier must refuse the mutant, or the interpreter must find it
 * right under RUNS random interleavings at the least FIFO depth, with several micro-batches, and with counts that the
 * chunks do not divide where the verifier promises that. An accepted and wrong mutant is printed and ends with status
 * 1. Refused mutants are run too, 16 times as often, to tell how many come right all the same (for each of these one
 * may ask whether the verifier is too strict, or the fault too rare to be met by chance); -v prints those.
 *
 * What the library calls right on ranks in place (plan/alias.h) must come right with random ranks in place, too. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <polyccl/plan.h>

#include "../interpreter/interpreter.h"
#include "mutate.h"
#include "plan/alias.h"

typedef struct settings {
  int mutants, runs;
  uint64_t seed;
  bool verbose;
} settings;

enum { REASONS = 10 };
static const struct {
  const char *mark, *name;
} reasons[REASONS] = {
    {"a race", "race"},
    {"deadlock", "deadlock"},
    {"but so does", "a connection shared by thread blocks"},
    {"only read", "writes the input out of place"},
    {"overlap", "overlapping operands"},
    {"holds nothing", "reads what holds nothing"},
    {"last written by", "wrong at the end"},
    {"no step wrote", "wrong at the end"},
    {"marked", "marks for messages by reference"},
    {"", "bounds and matching"},
};

typedef struct tally {
  long mutants, accepted, refused, right; /* right: refused, but the interpreter found nothing wrong */
  long shared;                            /* accepted, and right on ranks in place */
  long reason[REASONS];
} tally;

static void print_mutant(const polyccl_plan *mutant, const char *changes, const char *verdict) {
  printf("---- %s\n%s", verdict, changes);
  polyccl_plan_write(mutant, POLYCCL_FORMAT_PLAN, stdout);
}

static interpreter_options options_for(const settings *s, const polyccl_plan *plan, int run, int depth) {
  int batches = run % 4 == 0 ? 1 : 1 + run % 6;
  if (plan->order == POLYCCL_TASK_MAJOR && run % 3 == 0) {
    batches = 2 * depth * plan->ranks + 1; /* many, as the deadlocks of this order need them */
  }
  return (interpreter_options){
      .micro_batches = batches, .depth = depth, .seed = s->seed * 1000003u + (uint64_t)run + 1};
}

/* `identical` of the report is exact for an allreduce: the ranks' bits agree if and only if it says so. */
static interpreter_outcome judge_bits(const settings *s, const polyccl_plan *plan, const polyccl_verify_report *report,
                                      char *why, size_t size) {
  interpreter_options options = options_for(s, plan, 0, report->fifo_depth);
  options.same_bits = true;
  interpreter_outcome outcome = interpret(plan, &options, why, size);
  if (report->identical || plan->collective != POLYCCL_ALLREDUCE) {
    return outcome;
  }
  snprintf(why, size, "all ranks have the same bits");
  return outcome == INTERPRETER_WRONG ? INTERPRETER_RIGHT : INTERPRETER_WRONG;
}

/* The first outcome that is not right. */
static interpreter_outcome judge(const settings *s, const polyccl_plan *plan, int runs, int depth, bool uneven,
                                 char *why, size_t size) {
  for (int run = 0; run < runs; run++) {
    interpreter_options options = options_for(s, plan, run, depth);
    if (uneven && run % 2 == 1) {
      options.missing = 1 + run * 7 % (plan->chunks * options.micro_batches);
    }
    interpreter_outcome outcome = interpret(plan, &options, why, size);
    if (outcome != INTERPRETER_RIGHT) {
      return outcome;
    }
  }
  return INTERPRETER_RIGHT;
}

/* The marks of a sender hold for its placement. */
static void set_marks(polyccl_plan *plan, const polyccl_step *marked, uint64_t in_place) {
  for (size_t t = 0; t < plan->tbs; t++) {
    bool shared = (in_place >> plan->tb[t].rank & 1) != 0;
    for (int32_t s = plan->tb[t].step; s < plan->tb[t].step + plan->tb[t].steps; s++) {
      bool get = (marked[s].flags & (shared ? PCCL_FLAG_GET_IN_PLACE : POLYCCL_FLAG_GET)) != 0;
      plan->step[s].flags = (uint8_t)((marked[s].flags & POLYCCL_FLAG_PUT) | (get ? POLYCCL_FLAG_GET : 0));
    }
  }
}

/* With random ranks in place; *shared: the library says that this is right. */
static interpreter_outcome judge_placements(const settings *s, const polyccl_plan *plan, int depth, bool *shared,
                                            char *why, size_t size) {
  pccl_alias alias;
  if (pccl_alias_find(plan, &alias) != POLYCCL_SUCCESS) {
    return INTERPRETER_NO_MEMORY;
  }
  *shared = alias.safe;
  polyccl_plan *copy = alias.safe ? mutation_copy(plan) : NULL;
  interpreter_outcome outcome = alias.safe && copy == NULL ? INTERPRETER_NO_MEMORY : INTERPRETER_RIGHT;
  for (int run = 0; copy != NULL && run < s->runs && outcome == INTERPRETER_RIGHT; run++) {
    interpreter_options options = options_for(s, plan, run, depth);
    options.in_place = options.seed * 0x9e3779b97f4a7c15u >> 20;
    set_marks(copy, alias.step, options.in_place);
    outcome = interpret(copy, &options, why, size);
  }
  polyccl_plan_destroy(copy);
  pccl_alias_free(&alias);
  return outcome;
}

static void count_refusal(const settings *s, tally *t, const polyccl_plan *mutant, const char *changes) {
  char why[256], message[512];
  snprintf(message, sizeof message, "%s", polyccl_last_error());
  t->refused++;
  int depth = mutant->fifo_depth > 0 ? mutant->fifo_depth : 1;
  if (mutant->fifo_depth < 0 || judge(s, mutant, 16 * s->runs, depth, false, why, sizeof why) != INTERPRETER_RIGHT) {
    return;
  }
  t->right++;
  int r = 0;
  while (strstr(message, reasons[r].mark) == NULL) {
    r++;
  }
  t->reason[r]++;
  if (s->verbose) {
    char verdict[600];
    snprintf(verdict, sizeof verdict, "refused, but right: %s", message);
    print_mutant(mutant, changes, verdict);
  }
}

/* False: accepted and wrong. */
static bool try_mutant(const settings *s, tally *t, const polyccl_plan *mutant, const char *changes) {
  polyccl_verify_report report;
  char why[256], verdict[300];
  t->mutants++;
  if (polyccl_plan_verify(mutant, &report) != POLYCCL_SUCCESS) {
    count_refusal(s, t, mutant, changes);
    return true;
  }
  t->accepted++;
  bool shared = false;
  if (judge(s, mutant, s->runs, report.fifo_depth, report.uneven, why, sizeof why) == INTERPRETER_RIGHT &&
      judge_bits(s, mutant, &report, why, sizeof why) == INTERPRETER_RIGHT &&
      judge_placements(s, mutant, report.fifo_depth, &shared, why, sizeof why) == INTERPRETER_RIGHT) {
    t->shared += shared;
    return true;
  }
  snprintf(verdict, sizeof verdict, "ACCEPTED AND WRONG: %s", why);
  print_mutant(mutant, changes, verdict);
  return false;
}

static bool try_plan(const settings *s, tally *t, const polyccl_plan *plan) {
  uint64_t random = s->seed * 0x9e3779b97f4a7c15u + 88172645463325252u;
  for (int i = 0; i < s->mutants; i++) {
    polyccl_plan *mutant = mutation_copy(plan);
    if (mutant == NULL) {
      fprintf(stderr, "mutation: no memory\n");
      return false;
    }
    char changes[512] = "";
    int wanted = i % 4 == 3 ? 2 : 1, made = 0;
    for (int attempt = 0; attempt < 100 && made < wanted; attempt++) {
      char what[128];
      if (mutate(mutant, &random, what, sizeof what)) {
        size_t at = strlen(changes);
        snprintf(changes + at, sizeof changes - at, "# %s\n", what);
        made++;
      }
    }
    bool fine = try_mutant(s, t, mutant, changes);
    polyccl_plan_destroy(mutant);
    if (!fine) {
      return false;
    }
  }
  return true;
}

/* The unchanged plan must be accepted and right itself. */
static bool try_file(const settings *s, tally *all, const char *path) {
  polyccl_plan *plan;
  polyccl_verify_report report;
  char why[256] = "";
  if (polyccl_plan_read(path, &plan) != POLYCCL_SUCCESS) {
    fprintf(stderr, "mutation: %s\n", polyccl_last_error());
    return false;
  }
  bool fine = polyccl_plan_verify(plan, &report) == POLYCCL_SUCCESS, shared = false;
  if (!fine) {
    fprintf(stderr, "mutation: %s is refused: %s\n", path, polyccl_last_error());
  } else if (judge(s, plan, s->runs, report.fifo_depth, report.uneven, why, sizeof why) != INTERPRETER_RIGHT ||
             judge_bits(s, plan, &report, why, sizeof why) != INTERPRETER_RIGHT ||
             judge_placements(s, plan, report.fifo_depth, &shared, why, sizeof why) != INTERPRETER_RIGHT) {
    fprintf(stderr, "mutation: %s is accepted and wrong: %s\n", path, why);
    fine = false;
  }
  tally t = {0};
  fine = fine && try_plan(s, &t, plan);
  const char *name = strrchr(path, '/');
  printf("%-48s %7ld mutants %7ld accepted %7ld refused, of these right %6ld (%.1f %%)\n", name ? name + 1 : path,
         t.mutants, t.accepted, t.refused, t.right, t.refused > 0 ? 100.0 * (double)t.right / (double)t.refused : 0.0);
  fflush(stdout);
  all->mutants += t.mutants, all->accepted += t.accepted, all->refused += t.refused, all->right += t.right;
  all->shared += t.shared;
  for (int r = 0; r < REASONS; r++) {
    all->reason[r] += t.reason[r];
  }
  polyccl_plan_destroy(plan);
  return fine;
}

int main(int argc, char **argv) {
  settings s = {.mutants = 1000, .runs = 24, .seed = 1};
  int option;
  while ((option = getopt(argc, argv, "n:s:r:v")) != -1) {
    switch (option) {
      case 'n': s.mutants = atoi(optarg); break;
      case 's': s.seed = strtoull(optarg, NULL, 10); break;
      case 'r': s.runs = atoi(optarg); break;
      case 'v': s.verbose = true; break;
      default: fprintf(stderr, "usage: mutation [-n MUTANTS] [-s SEED] [-r RUNS] [-v] PLAN...\n"); return 2;
    }
  }
  tally all = {0};
  bool fine = optind < argc;
  for (int i = optind; i < argc; i++) {
    fine = try_file(&s, &all, argv[i]) && fine;
  }
  printf("%-48s %7ld mutants %7ld accepted %7ld refused, of these right %6ld (%.1f %%)\n", "all", all.mutants,
         all.accepted, all.refused, all.right, all.refused > 0 ? 100.0 * (double)all.right / (double)all.refused : 0.0);
  printf("  accepted, and right on ranks in place: %ld\n", all.shared);
  for (int r = 0; r < REASONS; r++) {
    if (all.reason[r] > 0) {
      printf("  refused and right, %-40s %6ld\n", reasons[r].name, all.reason[r]);
    }
  }
  return fine ? 0 : 1;
}
