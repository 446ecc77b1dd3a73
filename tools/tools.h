/* The polyccl command. Each subcommand is a file NAME.c that defines pccl_NAME_tool and a line in PCCL_TOOLS; its files
 * stand in CMakeLists.txt, its manual page in docs/man. */
#ifndef PCCL_TOOLS_H
#define PCCL_TOOLS_H

#include <polyccl/types.h>

#include "option.h"

/* What the command ends with: it succeeded; it ran and failed (wrong data, a rank died); the input is wrong. */
enum { PCCL_EXIT_OK = 0, PCCL_EXIT_FAILED = 1, PCCL_EXIT_INVALID = 2 };

typedef struct pccl_tool {
  const char *name;
  const char *usage;       /* what follows the name; a newline separates several usages */
  const char *summary;     /* one sentence */
  const char *description; /* further sentences, or "" */
  const pccl_tool_option *options;
  int (*run)(int argc, char **argv); /* argv[0] is the name; the exit status */
} pccl_tool;

/* Every subcommand, in the order in which polyccl help lists them. */
#define PCCL_TOOLS(X) \
  X(check)            \
  X(compile)          \
  X(verify)           \
  X(run)              \
  X(simulate)         \
  X(compare)          \
  X(view)             \
  X(topology)         \
  X(calibrate)        \
  X(build)            \
  X(export)           \
  X(info)

#define PCCL_DECLARE_TOOL(name) extern const pccl_tool pccl_##name##_tool;
PCCL_TOOLS(PCCL_DECLARE_TOOL)
#undef PCCL_DECLARE_TOOL

/* The same as a list that ends with NULL. */
extern const pccl_tool *const pccl_tools[];

/* The whole command: argv[1] is the subcommand. The exit status. */
int pccl_command(int argc, char **argv);

/* Prints "polyccl NAME: message" to standard error, returns PCCL_EXIT_INVALID. */
int pccl_tool_usage(const char *tool, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for an argument that was not given: `what` is "a plan" or "--size". */
int pccl_tool_missing(const char *tool, const char *what);

/* Prints polyccl_last_error() to standard error; the exit status that `result` means. */
int pccl_tool_failed(const char *tool, polyccl_result result);

/* Prints to standard error what the topology's reader assumed, a line each. */
struct polyccl_topology;
void pccl_tool_say_assumptions(const char *tool, const struct polyccl_topology *topology);

#endif
