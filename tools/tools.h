/* The polyccl command: one file per subcommand, `int pccl_tool_NAME(int argc, char **argv)`, listed in command.c.
 * argv[0] is the subcommand's name. Exit status: 0 done, 1 ran and failed (wrong data, a rank died), 2 bad input. */
#ifndef PCCL_TOOLS_H
#define PCCL_TOOLS_H

#include <polyccl/types.h>

#include "option.h"

enum { PCCL_EXIT_OK = 0, PCCL_EXIT_FAILED = 1, PCCL_EXIT_INVALID = 2 };

/* The whole command: argv[1] is the subcommand. The exit status. */
int pccl_command(int argc, char **argv);

/* Prints "polyccl NAME: message" to stderr, returns PCCL_EXIT_INVALID. */
int pccl_tool_usage(const char *tool, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints polyccl_last_error() to stderr; the exit status that `result` means. */
int pccl_tool_failed(const char *tool, polyccl_result result);

/* Prints to stderr what the topology's reader assumed, a line each. */
struct polyccl_topology;
void pccl_tool_say_assumptions(const char *tool, const struct polyccl_topology *topology);

int pccl_tool_build(int argc, char **argv);
int pccl_tool_calibrate(int argc, char **argv);
int pccl_tool_check(int argc, char **argv);
int pccl_tool_compare(int argc, char **argv);
int pccl_tool_compile(int argc, char **argv);
int pccl_tool_export(int argc, char **argv);
int pccl_tool_info(int argc, char **argv);
int pccl_tool_run(int argc, char **argv);
int pccl_tool_simulate(int argc, char **argv);
int pccl_tool_topology(int argc, char **argv);
int pccl_tool_verify(int argc, char **argv);
int pccl_tool_view(int argc, char **argv);

/* What each takes (option.h), and the text of its --help where that stands beside it. */
extern const pccl_tool_option pccl_build_options[], pccl_calibrate_options[], pccl_check_options[],
    pccl_compare_options[], pccl_compile_options[], pccl_export_options[], pccl_info_options[], pccl_run_options[],
    pccl_simulate_options[], pccl_topology_options[], pccl_verify_options[], pccl_view_options[];
extern const char pccl_calibrate_help[], pccl_compare_help[], pccl_export_help[], pccl_run_help[], pccl_simulate_help[];

#endif
