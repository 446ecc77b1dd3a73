#include "compiler/passes.h"

#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

typedef struct pass_row {
  const char *name;
  unsigned groups;
  polyccl_result (*run)(pccl_ir *ir);
  size_t phase; /* where its seconds go in polyccl_compile_times */
} pass_row;

enum {
  LOWERING = PCCL_PASSES_LOWERING,
  CONNECTION = PCCL_PASSES_CONNECTION,
  STATE = PCCL_PASSES_STATE,
};

#define PHASE(name) offsetof(polyccl_compile_times, name)

static const pass_row rows[] = {
    {"refine", LOWERING, pccl_pass_refine, PHASE(lower)},
    {"lower", LOWERING, pccl_pass_lower, PHASE(lower)},
    {"fuse", CONNECTION, pccl_pass_fuse, PHASE(schedule)},
    {"channel", CONNECTION, pccl_pass_channel, PHASE(schedule)},
    {"order", CONNECTION, pccl_pass_order, PHASE(schedule)},
    {"block", CONNECTION, pccl_pass_block, PHASE(allocate)},
    {"schedule", STATE, pccl_pass_schedule, PHASE(schedule)},
    {"allocate", STATE, pccl_pass_allocate, PHASE(allocate)},
    {"wait", CONNECTION | STATE, pccl_pass_wait, PHASE(wait)},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

#ifdef NDEBUG
enum { CHECK_EACH_PASS = 0 };
#else
enum { CHECK_EACH_PASS = 1 };
#endif

static bool is_dumped(const pass_row *row, const polyccl_compile_options *options) {
  return options->dump != NULL && strcmp(options->dump, row->name) == 0;
}

static void dump_ir(const pccl_ir *ir) {
  pccl_ir_dump(ir, ir->options->dump_to != NULL ? ir->options->dump_to : stderr);
}

polyccl_result pccl_passes_run(pccl_ir *ir, unsigned groups) {
  for (int i = 0; i < ROWS; i++) {
    const pass_row *row = &rows[i];
    if ((row->groups & groups) == 0) {
      continue;
    }
    double since = pccl_now_seconds();
    PCCL_TRY(row->run(ir));
    if (ir->options->times != NULL) {
      *(double *)((char *)ir->options->times + row->phase) += pccl_seconds_since(&since);
    }
    if (CHECK_EACH_PASS) {
      PCCL_TRY(pccl_ir_check(ir, row->name));
    }
    if (is_dumped(row, ir->options)) {
      dump_ir(ir);
    }
  }
  return POLYCCL_SUCCESS;
}

void pccl_passes_dump(const pccl_ir *ir, unsigned groups) {
  for (int i = 0; i < ROWS; i++) {
    if ((rows[i].groups & groups) != 0 && is_dumped(&rows[i], ir->options)) {
      dump_ir(ir);
    }
  }
}

polyccl_result pccl_passes_check_dump(const polyccl_compile_options *options) {
  char known[256] = "";
  bool found = options->dump == NULL;
  for (int i = 0; i < ROWS; i++) {
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", rows[i].name);
    found = found || is_dumped(&rows[i], options);
  }
  return found ? POLYCCL_SUCCESS
               : pccl_fail(POLYCCL_ERROR_INVALID, "unknown pass \"%s\" (known: %s)", options->dump, known);
}
