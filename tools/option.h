/* Options that have a value: "--name value" or "--name=value". */
#ifndef PCCL_TOOLS_OPTION_H
#define PCCL_TOOLS_OPTION_H

#include <stdbool.h>

typedef struct pccl_tool_option {
  const char *name, *wants;                    /* wants: for the message, "a number of slots" */
  bool (*take)(void *into, const char *value); /* into: the subcommand's arguments; false: the value is wrong */
} pccl_tool_option;

/* Takes argv[*at] (and its value, moving *at) if it is in the table, which ends with a NULL name. 1: taken; 0: another
 * argument; -1: a wrong value, an error was printed. */
int pccl_tool_take(const char *tool, const pccl_tool_option *options, void *into, int argc, char **argv, int *at);

/* The value of one option, moving *at past it; NULL: argv[*at] is another argument. "" where the value is missing. */
const char *pccl_tool_value(const char *name, int argc, char **argv, int *at);

#endif
