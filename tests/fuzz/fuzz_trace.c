/* Traces as JSON: what is read can be written, drawn and read again, and is then written the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/trace.h>

#include "view/page.h"
#include "view/pictures.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(const polyccl_trace *trace, size_t *length) {
  char *text = NULL;
  FILE *to = open_memstream(&text, length);
  if (polyccl_trace_write(trace, to) != POLYCCL_SUCCESS) {
    fprintf(stderr, "%s\n", polyccl_last_error());
    abort();
  }
  fclose(to);
  return text;
}

static void draw(const polyccl_trace *trace) {
  pccl_svg svg = {0};
  if (pccl_picture_timeline(&svg, trace, -1) == POLYCCL_SUCCESS) {
    pccl_text_free(&svg.out);
  }
  FILE *nowhere = fopen("/dev/null", "w");
  if (nowhere == NULL || pccl_page_write("fuzz", NULL, 0, &trace, 1, nowhere) != POLYCCL_SUCCESS) {
    abort();
  }
  fclose(nowhere);
}

/* The first writing rounds times to picoseconds; from then on nothing may change. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  polyccl_trace *trace = NULL, *again = NULL;
  if (polyccl_trace_parse("fuzz", (const char *)data, size, &trace) != POLYCCL_SUCCESS) {
    return 0;
  }
  draw(trace);
  size_t length, again_length;
  char *text = written(trace, &length);
  if (polyccl_trace_parse("again", text, length, &again) != POLYCCL_SUCCESS) {
    fprintf(stderr, "%s in\n%s", polyccl_last_error(), text);
    abort();
  }
  if (again->records != trace->records || again->blocks != trace->blocks || again->steps != trace->steps) {
    fprintf(stderr, "%zu records come back as %zu\n", trace->records, again->records);
    abort();
  }
  free(text);
  text = written(again, &again_length);
  free(text);
  polyccl_trace_destroy(trace);
  polyccl_trace_destroy(again);
  return 0;
}
