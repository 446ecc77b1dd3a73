/* The command: its subcommands, their help, and the choice among them. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "option.h"
#include "tools.h"

typedef struct tool {
  const char *name, *arguments, *help;
  int (*run)(int argc, char **argv);
  const char *help_text; /* what its --help prints, or, where that does not begin with "usage", adds */
  const pccl_tool_option *options;
} tool;

static const tool tools[] = {
    {"build", "PLAN|--interpreter [--target c|cuda|hip] [-o FILE]",
     "the plan as source: a function per thread block, no interpreter", pccl_tool_build,
     "  --target c|cuda|hip   C for this machine (default; compile it as a shared object and run it with polyccl run\n"
     "                        --generated=FILE.so), or one cooperative kernel for nvcc or hipcc\n"
     "  --interpreter         instead of a plan's code the kernel that runs any plan, for cuda and hip\n"
     "  -o FILE               instead of standard output\n",
     pccl_build_options},
    {"calibrate", "[-o FILE] [--ranks N] [--alloc private|shared] ...",
     "measure the CPU executor on this machine, write a topology of it", pccl_tool_calibrate, pccl_calibrate_help,
     pccl_calibrate_options},
    {"check", "PROGRAM [-p name=value ...] [--params]", "the symbolic check of a program, and a summary",
     pccl_tool_check,
     "  -p name=value   a parameter of the program\n"
     "  --params        list the program's parameters instead, with their defaults\n",
     pccl_check_options},
    {"compare", "PROGRAM|PLAN [-p name=value ...] ... --topology MACHINE|FILE --size MIN:MAX ...",
     "simulated bandwidth over size, as a table and a chart", pccl_tool_compare, pccl_compare_help,
     pccl_compare_options},
    {"compile", "PROGRAM|PLAN [-p name=value ...] [-o FILE] [--format plan|xml|azure] ...",
     "a verified plan, as text or MSCCL XML; of a plan, the same in another format, or compiled anew",
     pccl_tool_compile,
     "  -p name=value                  a parameter of the program (polyccl check PROGRAM --params)\n"
     "  -o FILE                        instead of standard output\n"
     "  --format plan|xml|azure        plan text (default), MSCCL XML, or the Azure executor's XML\n"
     "  --in-place, --out-of-place     for one buffer or two, whatever the program was written for\n"
     "  --policy connection|state|set  thread blocks and channels as MSCCLang (default), or scheduled as ResCCL, or\n"
     "                                 what is best where as a folder (-o) of plans for ranges of sizes\n"
     "  --instances N                  copies of the program, each on its part of the data\n"
     "  --no-fusion                    policy connection: receives and sends stay apart\n"
     "  --timings                      seconds by phase and peak memory, on standard error\n"
     "  --dump PASS                    the intermediate form after a pass, on standard error\n\n"
     "With policies state and set:\n"
     "  --topology MACHINE|FILE        the machine whose links are shared out (polyccl topology --list)\n"
     "  --schedule hpds|round-robin|best\n"
     "                                 the order of tasks; best searches with the simulator as judge\n"
     "  --max-tb N                     most thread blocks on a rank\n"
     "  --size SIZE, --seconds N       schedule best: the size to be best at, and time for the search\n"
     "  --size MIN:MAX                 policy set: the sizes that count (1k:1g)\n",
     pccl_compile_options},
    {"export", "PROGRAM|PLAN [-p name=value ...] --chakra PREFIX --size SIZE",
     "Chakra execution traces, one for each rank, for ASTRA-sim", pccl_tool_export, pccl_export_help,
     pccl_export_options},
    {"info", "", "version, build, devices, transports, every option with its default", pccl_tool_info, "",
     pccl_info_options},
    {"run",
     "PROGRAM|PLAN|FOLDER [-p name=value ...] [--size MIN[:MAX[:FACTOR]]] [--count N] [--dtype TYPE] [--op OP] ...",
     "run it on processes of this machine, check every element, print the table of nccl-tests", pccl_tool_run,
     pccl_run_help, pccl_run_options},
    {"simulate", "PROGRAM|PLAN [-p name=value ...] --topology MACHINE|FILE --size SIZE ...",
     "how long it takes on a modelled machine, and why", pccl_tool_simulate, pccl_simulate_help, pccl_simulate_options},
    {"topology", "MACHINE|FILE [--gpu MODEL] [--nic MODEL] [--json|--svg] [-o FILE] | --list",
     "a machine model: devices, links, ranks, routes from rank 0", pccl_tool_topology,
     "  --list       the machines that are known, with the sources of their figures\n"
     "  --gpu MODEL  the GPUs of a virtual machine's NCCL_TOPO_FILE: H100-SXM5, ...\n"
     "  --nic MODEL  its NICs: ConnectX-7, ..., or Gb/s: 400\n"
     "  --json       as JSON that reads back equal\n"
     "  --svg        as a picture\n"
     "  -o FILE      instead of standard output\n",
     pccl_topology_options},
    {"verify", "PLAN", "prove that a plan from anywhere cannot hang, race or compute the wrong thing", pccl_tool_verify,
     "PLAN is plan text or MSCCL XML.\n", pccl_verify_options},
    {"view", "PLAN|PROGRAM [-p name=value ...] [--topology T [--size S]] [--trace-in FILE] [--svg] [-o FILE] ...",
     "a page or a picture: thread blocks over time, links, the way of a chunk, measured beside simulated",
     pccl_tool_view,
     "  --topology MACHINE|FILE   simulate it there\n"
     "  --size SIZE               bytes of a rank's larger buffer (default 1m)\n"
     "  --protocol NAME           Simple, LL, LL128 instead of the plan's own\n"
     "  --micro-batches N         instead of as few as make messages fit into FIFO slots\n"
     "  --trace-in FILE           show a trace of polyccl run --trace, beside the simulation where there is one\n"
     "  --trace FILE              write the simulation as Chrome trace events\n"
     "  --svg                     a picture instead of a page: the timeline, or without times the plan\n"
     "  --chunk N, --rank R       pictures: the way of a chunk of the larger buffer; one rank in detail\n"
     "  -o FILE                   instead of standard output\n",
     pccl_view_options},
};
enum { TOOLS = sizeof tools / sizeof tools[0] };

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
  fprintf(to, "\npolyccl COMMAND --help says more; so do the manual pages, polyccl(1) and polyccl-COMMAND(1).\n");
}

static bool asks_for_help(const char *argument) {
  return strcmp(argument, "help") == 0 || strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static const char *tool_name(const void *from, size_t index) { return ((const tool *)from)[index].name; }

static int unknown_command(const char *name) {
  const char *near = pccl_nearest(name, tool_name, tools, TOOLS);
  fprintf(stderr,
          near != NULL ? "polyccl: unknown command \"%s\" (is it %s?)\n"
                       : "polyccl: unknown command \"%s\" (see polyccl help)\n",
          name, near);
  return PCCL_EXIT_INVALID;
}

/* A line for each option: the command, the option, what it takes. */
static void print_options(void) {
  for (int i = 0; i < TOOLS; i++) {
    for (const pccl_tool_option *option = tools[i].options; option->name != NULL; option++) {
      if (option->name[0] != '\0') {
        printf("%s %s %s\n", tools[i].name, option->name, pccl_option_kind(option));
      }
    }
  }
}

static void print_tool_help(const tool *chosen) {
  if (strncmp(chosen->help_text, "usage", 5) == 0) {
    fputs(chosen->help_text, stdout);
    return;
  }
  printf("usage: polyccl %s %s\n\n%s\n", chosen->name, chosen->arguments, chosen->help);
  printf(chosen->help_text[0] != '\0' ? "\n%s" : "%s", chosen->help_text);
}

static int run_tool(const tool *chosen, int argc, char **argv) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      print_tool_help(chosen);
      return PCCL_EXIT_OK;
    }
  }
  return chosen->run(argc, argv);
}

int pccl_command(int argc, char **argv) {
  if (argc < 2) {
    print_help(stderr);
    return PCCL_EXIT_INVALID;
  }
  char help[] = "--help", *swapped[] = {argv[argc - 1], help, NULL};
  if (asks_for_help(argv[1])) {
    if (argc == 3 && strcmp(argv[2], "--options") == 0) {
      print_options();
      return PCCL_EXIT_OK;
    }
    if (argc > 3) {
      return pccl_tool_usage("help", "unexpected argument \"%s\" (polyccl help [COMMAND|--options])", argv[3]);
    }
    if (argc == 2 || asks_for_help(argv[2])) {
      print_help(stdout);
      return PCCL_EXIT_OK;
    }
    argc = 2; /* polyccl help COMMAND */
    argv = swapped;
  } else if (strcmp(argv[1], "--version") == 0) {
    if (argc > 2) {
      return pccl_tool_usage("--version", "unexpected argument \"%s\"", argv[2]);
    }
    printf("polyccl %d.%d.%d\n", POLYCCL_VERSION_MAJOR, POLYCCL_VERSION_MINOR, POLYCCL_VERSION_PATCH);
    return PCCL_EXIT_OK;
  } else {
    argc--;
    argv++;
  }
  for (int i = 0; i < TOOLS; i++) {
    if (strcmp(argv[0], tools[i].name) == 0) {
      return run_tool(&tools[i], argc, argv);
    }
  }
  return unknown_command(argv[0]);
}
