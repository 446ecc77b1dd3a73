/* Topologies from JSON and from NCCL's XML: what is read has all its routes, prints, draws, and comes back equal. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/topology.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(const polyccl_topology *t, polyccl_result (*write)(const polyccl_topology *, FILE *)) {
  char *text = NULL;
  size_t length;
  FILE *to = open_memstream(&text, &length);
  if (write(t, to) != POLYCCL_SUCCESS) {
    fprintf(stderr, "%s\n", polyccl_last_error());
    abort();
  }
  fclose(to);
  return text;
}

static void trip(const polyccl_topology *t) {
  char *text = written(t, polyccl_topology_write_json);
  polyccl_topology *again = NULL;
  if (polyccl_topology_parse("again", text, strlen(text), &again) != POLYCCL_SUCCESS) {
    fprintf(stderr, "%s in\n%s", polyccl_last_error(), text);
    abort();
  }
  char *text_again = written(again, polyccl_topology_write_json);
  if (strcmp(text, text_again) != 0) {
    fprintf(stderr, "%s comes back as\n%s", text, text_again);
    abort();
  }
  free(text);
  free(text_again);
  polyccl_topology_destroy(again);
}

static void walk_routes(const polyccl_topology *t) {
  for (int src = 0; src < t->ranks && src < 32; src++) {
    for (int dst = 0; dst < t->ranks && dst < 32; dst++) {
      size_t count;
      if (polyccl_topology_route(t, src, dst, NULL, 0, &count) != POLYCCL_SUCCESS) {
        fprintf(stderr, "%s\n", polyccl_last_error());
        abort();
      }
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char mark[] = "expect: "; /* the tests' bad files say first what is wrong with them */
  const uint8_t *end = size > strlen(mark) && memcmp(data, mark, strlen(mark)) == 0 ? memchr(data, '\n', size) : NULL;
  if (end != NULL) {
    size -= (size_t)(end + 1 - data);
    data = end + 1;
  }
  polyccl_topology *t = NULL;
  if (polyccl_topology_parse("fuzz", (const char *)data, size, &t) != POLYCCL_SUCCESS) {
    return 0;
  }
  walk_routes(t);
  trip(t);
  free(written(t, polyccl_topology_write_text));
  free(written(t, polyccl_topology_write_svg));
  polyccl_topology_destroy(t);
  return 0;
}
