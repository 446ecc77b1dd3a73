/* What polyccl help and --help print. All of it comes from the subcommands' own tables (tools.h, option.h). */
#ifndef PCCL_TOOLS_HELP_H
#define PCCL_TOOLS_HELP_H

#include <stdio.h>

#include "tools.h"

/* What the command is, and a line for each subcommand. */
void pccl_help_print(FILE *to);

/* Usage, description and options of a subcommand, to standard output. */
void pccl_help_print_tool(const pccl_tool *tool);

/* A line for each option of each subcommand, to standard output: the subcommand, the option, what it takes. */
void pccl_help_print_options(void);

#endif
