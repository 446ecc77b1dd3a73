/* For the tests of plans written for the executors of MSCCL XML: the targets and models of them, and a check that a
 * plan comes right on each. */
#ifndef PCCL_TESTS_XML_TARGETS_H
#define PCCL_TESTS_XML_TARGETS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../interpreter/interpreter.h"
#include "../interpreter/msccl.h"

enum { TARGETS = 3, RUNS = 12 };

static const struct {
  polyccl_format format;
  const msccl_runtime *runtime;
} targets[TARGETS] = {{POLYCCL_FORMAT_XML, &msccl_microsoft},
                      {POLYCCL_FORMAT_XML_AZURE, &msccl_azure},
                      {POLYCCL_FORMAT_XML_RCCL, &msccl_rccl}};

static inline polyccl_result write_xml(const polyccl_plan *plan, polyccl_format format, char **xml) {
  size_t length;
  FILE *memory = open_memstream(xml, &length);
  assert_non_null(memory);
  polyccl_result result = polyccl_plan_write(plan, format, memory);
  fclose(memory);
  return result;
}

/* *why is set where it does not come right. */
static inline bool runs_right(const msccl_runtime *runtime, const char *xml, const polyccl_plan *plan, char *why,
                              size_t size) {
  /* Small messages, and, if the file is for such sizes, large ones. */
  bool any_size = strstr(xml, "maxBytes=\"0\"") != NULL || strstr(xml, "maxBytes=\"9223372036854775807\"") != NULL;
  for (int single = 0; single < (any_size ? 2 : 1); single++) {
    polyccl_plan *loaded;
    if (!msccl_load(runtime, xml, plan, single != 0, &loaded, why, size)) {
      return false;
    }
    interpreter_outcome outcome = INTERPRETER_RIGHT;
    for (int run = 0; run < RUNS && outcome == INTERPRETER_RIGHT; run++) {
      interpreter_options options = {
          .micro_batches = 1 + run % 3, .depth = loaded->fifo_depth, .seed = (uint64_t)run + 1};
      outcome = interpret(loaded, &options, why, size);
    }
    polyccl_plan_destroy(loaded);
    if (outcome != INTERPRETER_RIGHT) {
      return false;
    }
  }
  return true;
}

/* Written for each target, the plan comes right there; returns for how many it was written. */
static inline int check_plan(const char *name, const polyccl_plan *plan) {
  char why[256];
  int written = 0;
  for (int i = 0; i < TARGETS; i++) {
    char *xml;
    polyccl_result result = write_xml(plan, targets[i].format, &xml);
    if (result == POLYCCL_SUCCESS) {
      written++;
      if (!runs_right(targets[i].runtime, xml, plan, why, sizeof why)) {
        fail_msg("%s: %s in\n%s", name, why, xml);
      }
    } else if (result != POLYCCL_ERROR_LIMIT && result != POLYCCL_ERROR_UNSUPPORTED) {
      fail_msg("%s: %s", name, polyccl_last_error());
    }
    free(xml);
  }
  return written;
}

static inline polyccl_plan *plan_of(const char *text) {
  polyccl_plan *plan;
  if (polyccl_plan_parse("text", text, strlen(text), &plan) != POLYCCL_SUCCESS ||
      polyccl_plan_verify(plan, NULL) != POLYCCL_SUCCESS) {
    fail_msg("%s in\n%s", polyccl_last_error(), text);
  }
  return plan;
}

#endif
