/* polyccl topology: prints or draws the model of a machine. */
#include <stdio.h>

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

typedef struct topology_args {
  const char *spec, *path;
  polyccl_topology_hints hints;
  bool list, json, svg;
} topology_args;

static const pccl_tool_option topology_options[] = {
    {.name = "", .takes = PCCL_TAKES_PATH, .expects = "a machine or a file", .at = offsetof(topology_args, spec)},
    {.name = "--list",
     .help = "List the machines with the sources of their figures.",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(topology_args, list)},
    {.name = "--gpu",
     .value = "MODEL",
     .help = "Name the GPUs of NCCL's XML, such as H100-SXM5, if the file of a virtual machine does not.",
     .takes = PCCL_TAKES_TEXT,
     .expects = "a model of GPU",
     .at = offsetof(topology_args, hints.gpu)},
    {.name = "--nic",
     .value = "MODEL",
     .help = "Name its NICs, such as ConnectX-7 or EFA, or give their Gb/s.",
     .takes = PCCL_TAKES_TEXT,
     .expects = "a model of NIC, or Gb/s",
     .at = offsetof(topology_args, hints.nic)},
    {.name = "--json",
     .help = "Write JSON that polyccl reads back as the same topology.",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(topology_args, json)},
    {.name = "--svg", .help = "Draw a picture.", .takes = PCCL_TAKES_NOTHING, .at = offsetof(topology_args, svg)},
    PCCL_OUTPUT_OPTION(topology_args, path),
    {.name = NULL},
};

static int topology_command(int argc, char **argv) {
  topology_args args = {.hints = POLYCCL_TOPOLOGY_NO_HINTS};
  int status = pccl_tool_parse("topology", topology_options, &args, argc, argv);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  if (args.list) {
    return list_machines();
  }
  if (args.json && args.svg) {
    return pccl_tool_usage("topology", "--json and --svg exclude each other");
  }
  if (args.spec == NULL) {
    return pccl_tool_missing("topology", "a machine or a file");
  }
  writer write = args.json  ? polyccl_topology_write_json
                 : args.svg ? polyccl_topology_write_svg
                            : polyccl_topology_write_text;
  polyccl_topology *topology;
  polyccl_result result = polyccl_topology_open_hinted(args.spec, &args.hints, &topology);
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("topology", result);
  }
  status = write_to(topology, write, args.path);
  if (status == PCCL_EXIT_OK && (write != polyccl_topology_write_text || args.path != NULL)) {
    pccl_tool_say_assumptions("topology", topology); /* the text contains them */
  }
  polyccl_topology_destroy(topology);
  return status;
}

const pccl_tool pccl_topology_tool = {
    .name = "topology",
    .usage = "MACHINE|FILE [--gpu MODEL] [--nic MODEL] [--json|--svg] [-o FILE]\n--list",
    .summary = "Print the model of a machine.",
    .description =
        "The command prints devices, links, ranks, and the routes from rank 0. MACHINE is a name that "
        "--list prints, perhaps with a number of nodes and changes, as in ndv4:2,nic=25. FILE is this "
        "project's JSON, the XML that NCCL writes (NCCL_TOPO_DUMP_FILE) or reads (NCCL_TOPO_FILE), "
        "hwloc's XML (lstopo), or a topology of TACCL; its content tells which. FILE:4 is four such "
        "machines on a network. Lines that begin with assumed: or source: say what a file leaves open and"
        " which value is used instead.",
    .options = topology_options,
    .run = topology_command,
};
