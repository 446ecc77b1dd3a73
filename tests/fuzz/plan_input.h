/* What the fuzzers do with a plan once it has been read: everything that a command might. */
#ifndef FUZZ_PLAN_INPUT_H
#define FUZZ_PLAN_INPUT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/compile.h>

/* The plan in `format`, NULL where it does not fit. */
static char *fuzz_write(const polyccl_plan *plan, polyccl_format format, size_t *length) {
  char *text = NULL;
  FILE *memory = open_memstream(&text, length);
  polyccl_result result = polyccl_plan_write(plan, format, memory);
  fclose(memory);
  if (result == POLYCCL_SUCCESS) {
    return text;
  }
  free(text);
  return NULL;
}

/* Written, read and written again, a plan is the same text; what cannot be written is no plan that was read. */
static void fuzz_text_trip(const polyccl_plan *plan) {
  polyccl_plan *again = NULL;
  size_t length, again_length;
  char *text = fuzz_write(plan, POLYCCL_FORMAT_PLAN, &length);
  if (text == NULL || polyccl_plan_parse("again", text, length, &again) != POLYCCL_SUCCESS) {
    abort();
  }
  char *text_again = fuzz_write(again, POLYCCL_FORMAT_PLAN, &again_length);
  if (text_again == NULL || strcmp(text, text_again) != 0) {
    abort();
  }
  free(text);
  free(text_again);
  polyccl_plan_destroy(again);
}

/* A plan that was verified and fits is right when it comes back. */
static void fuzz_xml_trip(const polyccl_plan *plan, polyccl_format format) {
  polyccl_plan *again = NULL;
  size_t length;
  char *text = fuzz_write(plan, format, &length);
  if (text == NULL) {
    return;
  }
  if (polyccl_plan_parse("again", text, length, &again) != POLYCCL_SUCCESS ||
      polyccl_plan_verify(again, NULL) != POLYCCL_SUCCESS) {
    fprintf(stderr, "%s in\n%s", polyccl_last_error(), text);
    abort();
  }
  free(text);
  polyccl_plan_destroy(again);
}

/* A right plan is a right program. */
static void fuzz_lift(const polyccl_plan *plan) {
  polyccl_program *program = NULL;
  if (polyccl_program_from_plan(plan, &program) != POLYCCL_SUCCESS) {
    fprintf(stderr, "%s\n", polyccl_last_error());
    abort();
  }
  polyccl_program_destroy(program);
}

static int fuzz_plan(const uint8_t *data, size_t size) {
  polyccl_plan *plan = NULL;
  if (polyccl_plan_parse("fuzz", (const char *)data, size, &plan) != POLYCCL_SUCCESS) {
    return 0;
  }
  fuzz_text_trip(plan);
  if (polyccl_plan_verify(plan, NULL) == POLYCCL_SUCCESS) {
    fuzz_xml_trip(plan, POLYCCL_FORMAT_XML);
    fuzz_xml_trip(plan, POLYCCL_FORMAT_XML_AZURE);
    fuzz_xml_trip(plan, POLYCCL_FORMAT_XML_RCCL);
    fuzz_lift(plan);
  }
  polyccl_plan_destroy(plan);
  return 0;
}

#endif
