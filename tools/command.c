/* The command: the choice among its subcommands, and their errors. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "help.h"
#include "option.h"
#include "tools.h"

#define TOOL_ADDRESS(name) &pccl_##name##_tool,
const pccl_tool *const pccl_tools[] = {PCCL_TOOLS(TOOL_ADDRESS) NULL};

int pccl_tool_usage(const char *name, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "polyccl %s: ", name);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  return PCCL_EXIT_INVALID;
}

int pccl_tool_missing(const char *name, const char *what) {
  return pccl_tool_usage(name, "%s is missing (see polyccl %s --help)", what, name);
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

static bool asks_for_help(const char *argument) {
  return strcmp(argument, "help") == 0 || strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static const char *tool_name(const void *from, size_t index) { return ((const pccl_tool *const *)from)[index]->name; }

static int refuse_unknown(const char *name) {
  size_t count = 0;
  while (pccl_tools[count] != NULL) {
    count++;
  }
  const char *near = pccl_nearest(name, tool_name, pccl_tools, count);
  fprintf(stderr,
          near != NULL ? "polyccl: unknown command \"%s\" (is it %s?)\n"
                       : "polyccl: unknown command \"%s\" (see polyccl help)\n",
          name, near);
  return PCCL_EXIT_INVALID;
}

static const pccl_tool *find_tool(const char *name) {
  for (const pccl_tool *const *tool = pccl_tools; *tool != NULL; tool++) {
    if (strcmp((*tool)->name, name) == 0) {
      return *tool;
    }
  }
  return NULL;
}

/* polyccl help [COMMAND|--options], of which `topic` is the last argument or NULL. */
static int help_command(const char *topic) {
  if (topic == NULL || asks_for_help(topic)) {
    pccl_help_print(stdout);
    return PCCL_EXIT_OK;
  }
  if (strcmp(topic, "--options") == 0) {
    pccl_help_print_options();
    return PCCL_EXIT_OK;
  }
  const pccl_tool *tool = find_tool(topic);
  if (tool == NULL) {
    return refuse_unknown(topic);
  }
  pccl_help_print_tool(tool);
  return PCCL_EXIT_OK;
}

/* polyccl COMMAND [ARGUMENT ...] without the first word; --help counts wherever it stands. */
static int tool_command(int argc, char **argv) {
  const pccl_tool *tool = find_tool(argv[0]);
  if (tool == NULL) {
    return refuse_unknown(argv[0]);
  }
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      pccl_help_print_tool(tool);
      return PCCL_EXIT_OK;
    }
  }
  return tool->run(argc, argv);
}

int pccl_command(int argc, char **argv) {
  if (argc < 2) {
    pccl_help_print(stderr);
    return PCCL_EXIT_INVALID;
  }
  if (asks_for_help(argv[1])) {
    return argc <= 3 ? help_command(argc == 3 ? argv[2] : NULL)
                     : pccl_tool_usage("help", "unexpected argument \"%s\" (usage: polyccl help [COMMAND|--options])",
                                       argv[3]);
  }
  if (strcmp(argv[1], "--version") == 0) {
    if (argc > 2) {
      return pccl_tool_usage("--version", "unexpected argument \"%s\"", argv[2]);
    }
    printf("polyccl %d.%d.%d\n", POLYCCL_VERSION_MAJOR, POLYCCL_VERSION_MINOR, POLYCCL_VERSION_PATCH);
    return PCCL_EXIT_OK;
  }
  return tool_command(argc - 1, argv + 1);
}
