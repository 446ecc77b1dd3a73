/* polyccl topology */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/topology.h>

#include "option.h"
#include "output.h"
#include "tools.h"

static int list_machines(void) {
  for (const polyccl_synthetic *machine = polyccl_topology_synthetic(); machine->name != NULL; machine++) {
    printf("%-10s %s\n           %s\n", machine->name, machine->help, machine->source);
  }
  return PCCL_EXIT_OK;
}

typedef polyccl_result (*writer)(const polyccl_topology *, FILE *);

static int write_to(const polyccl_topology *topology, writer write, const char *path) {
  pccl_output output;
  int status = pccl_output_open(&output, "topology", path);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  polyccl_result result = write(topology, output.file);
  return pccl_output_close(&output, result == POLYCCL_SUCCESS ? PCCL_EXIT_OK : pccl_tool_failed("topology", result));
}

void pccl_tool_say_assumptions(const char *tool, const polyccl_topology *topology) {
  for (size_t i = 0; i < topology->assumptions; i++) {
    fprintf(stderr, "polyccl %s: %s: assumed: %s\n", tool, topology->name, topology->assumption[i]);
  }
}

int pccl_tool_topology(int argc, char **argv) {
  const char *spec = NULL, *path = NULL, *value;
  polyccl_topology_hints hints = POLYCCL_TOPOLOGY_NO_HINTS;
  writer write = polyccl_topology_write_text;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--list") == 0) {
      return list_machines();
    } else if (strcmp(argv[i], "--json") == 0) {
      write = polyccl_topology_write_json;
    } else if (strcmp(argv[i], "--svg") == 0) {
      write = polyccl_topology_write_svg;
    } else if ((value = pccl_tool_value("--gpu", argc, argv, &i)) != NULL) {
      hints.gpu = value;
    } else if ((value = pccl_tool_value("--nic", argc, argv, &i)) != NULL) {
      hints.nic = value;
    } else if (strcmp(argv[i], "-o") == 0 && i + 1 < argc) {
      path = argv[++i];
    } else if (argv[i][0] == '-' || spec != NULL) {
      return pccl_tool_usage("topology", "does not know \"%s\"", argv[i]);
    } else {
      spec = argv[i];
    }
  }
  if (spec == NULL) {
    return pccl_tool_usage("topology", "needs a topology: a file, or one of those that --list shows");
  }
  polyccl_topology *topology;
  polyccl_result result = polyccl_topology_open_hinted(spec, &hints, &topology);
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("topology", result);
  }
  int status = write_to(topology, write, path);
  if (status == PCCL_EXIT_OK && (write != polyccl_topology_write_text || path != NULL)) {
    pccl_tool_say_assumptions("topology", topology); /* text says it itself */
  }
  polyccl_topology_destroy(topology);
  return status;
}
