/* polyccl: compile, check, run and look at collective programs. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools.h"

typedef struct tool {
  const char *name, *arguments, *help;
  int (*run)(int argc, char **argv);
} tool;

static const tool tools[] = {
    {"build", "PLAN [--target c|cuda|hip] [-o FILE]", "the plan as source: a function per thread block, no interpreter",
     pccl_tool_build},
    {"calibrate", "[-o FILE] [--ranks N] [--alloc private|shared] ...",
     "measure the CPU executor on this machine, write a topology of it", pccl_tool_calibrate},
    {"check", "PROGRAM [-p name=value ...] [--params]", "the symbolic check of a program, and a summary",
     pccl_tool_check},
    {"compare", "PROGRAM|PLAN [-p name=value ...] ... --topology MACHINE|FILE --size MIN:MAX ...",
     "simulated bandwidth over size, as a table and a chart (polyccl compare --help)", pccl_tool_compare},
    {"compile",
     "PROGRAM|PLAN [-p name=value ...] [-o FILE] [--format plan|xml|azure] [--in-place|--out-of-place] "
     "[--policy connection|state] [--schedule hpds|round-robin|best] [--topology T] [--max-tb N] [--size S] [--seconds "
     "N] "
     "[--dump PASS]",
     "a verified plan, as text or MSCCL XML; of a plan, the same in another format, or compiled anew",
     pccl_tool_compile},
    {"export", "PROGRAM|PLAN [-p name=value ...] --chakra PREFIX --size SIZE",
     "Chakra execution traces, one for each rank, for ASTRA-sim", pccl_tool_export},
    {"info", "", "version, build, devices, transports, every option with its default", pccl_tool_info},
    {"run",
     "PROGRAM|PLAN|FOLDER [-p name=value ...] [--size MIN[:MAX[:FACTOR]]] [--count N] [--dtype TYPE] [--op OP] ...",
     "run it on processes of this machine, check every element, print the table of nccl-tests (polyccl run --help)",
     pccl_tool_run},
    {"simulate", "PROGRAM|PLAN [-p name=value ...] --topology MACHINE|FILE --size SIZE ...",
     "how long it takes on a modelled machine, and why (polyccl simulate --help)", pccl_tool_simulate},
    {"topology", "MACHINE|FILE [--json|--svg] [-o FILE] | --list",
     "a machine model: devices, links, ranks, routes from rank 0", pccl_tool_topology},
    {"verify", "PLAN", "prove that a plan from anywhere cannot hang, race or compute the wrong thing",
     pccl_tool_verify},
    {"view",
     "PLAN|PROGRAM [-p name=value ...] [--topology T [--size S]] [--trace-in FILE] [--trace FILE] "
     "[--svg [--chunk N|--rank R]] [-o FILE]",
     "a page or a picture: thread blocks over time, links, the way of a chunk, measured beside simulated",
     pccl_tool_view},
};
enum { TOOLS = sizeof tools / sizeof tools[0] };

/* These answer --help themselves, at length. */
static bool has_own_help(const char *name) {
  static const char *const names[] = {"calibrate", "compare", "export", "run", "simulate"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(names[i], name) == 0) {
      return true;
    }
  }
  return false;
}

int pccl_tool_usage(const char *name, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "polyccl %s: ", name);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  return PCCL_EXIT_INVALID;
}

int pccl_tool_failed(const char *name, polyccl_result result) {
  fprintf(stderr, "polyccl %s: %s\n", name, polyccl_last_error());
  switch (result) {
    case POLYCCL_SUCCESS: return PCCL_EXIT_OK;
    case POLYCCL_ERROR_INVALID:
    case POLYCCL_ERROR_UNSUPPORTED:
    case POLYCCL_ERROR_LIMIT: return PCCL_EXIT_INVALID;
    default: return PCCL_EXIT_FAILED;
  }
}

static void print_help(FILE *to) {
  fprintf(to, "usage: polyccl COMMAND ...\n\n");
  for (int i = 0; i < TOOLS; i++) {
    fprintf(to, "  polyccl %s %s\n        %s\n", tools[i].name, tools[i].arguments, tools[i].help);
  }
}

int main(int argc, char **argv) {
  if (argc < 2) {
    print_help(stderr);
    return PCCL_EXIT_INVALID;
  }
  if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    print_help(stdout);
    return PCCL_EXIT_OK;
  }
  if (strcmp(argv[1], "--version") == 0) {
    printf("polyccl %d.%d.%d\n", POLYCCL_VERSION_MAJOR, POLYCCL_VERSION_MINOR, POLYCCL_VERSION_PATCH);
    return PCCL_EXIT_OK;
  }
  for (int i = 0; i < TOOLS; i++) {
    if (strcmp(argv[1], tools[i].name) == 0) {
      if (argc == 3 && strcmp(argv[2], "--help") == 0 && !has_own_help(tools[i].name)) {
        printf("usage: polyccl %s %s\n\n%s\n", tools[i].name, tools[i].arguments, tools[i].help);
        return PCCL_EXIT_OK;
      }
      return tools[i].run(argc - 1, argv + 1);
    }
  }
  fprintf(stderr, "polyccl: unknown command \"%s\" (see polyccl help)\n", argv[1]);
  return PCCL_EXIT_INVALID;
}
