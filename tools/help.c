#include "help.h"

#include <string.h>

#include "option.h"

enum {
  WIDTH = 100,
  MARGIN = 2,
  MAX_FLAG = 24
}; /* columns of a line, left of an option, of an option beside its text */

/* The first `bytes` of the text in lines of at most WIDTH columns from column `indent` on, where the first line already
 * is. */
static void print_wrapped(const char *text, int bytes, int indent) {
  const char *end = text + bytes;
  int column = indent;
  while (text < end) {
    int length = (int)strcspn(text, " \n");
    if (column > indent && column + 1 + length > WIDTH) {
      printf("\n%*s", indent, "");
      column = indent;
    }
    column += printf("%s%.*s", column > indent ? " " : "", length, text);
    text += length;
    text += strspn(text, " ");
  }
  putchar('\n');
}

/* "--name VALUE", "-pVALUE" apart, "--name[=VALUE]". */
static int format_flag(const pccl_tool_option *option, char *flag, size_t room) {
  bool joined = option->takes == PCCL_TAKES_JOINED;
  return option->value == NULL ? snprintf(flag, room, "%s", option->name)
                               : snprintf(flag, room, joined ? "%s[=%s]" : "%s %s", option->name, option->value);
}

static void print_option(const pccl_tool_option *option, int width) {
  char flag[80];
  int length = format_flag(option, flag, sizeof flag);
  printf("%*s%-*s", MARGIN, "", width, flag);
  if (length > width) {
    printf("\n%*s", MARGIN + width, "");
  }
  printf("%*s", MARGIN, "");
  print_wrapped(option->help, (int)strlen(option->help), MARGIN + width + MARGIN);
}

static void print_tool_options(const pccl_tool_option *options) {
  int width = 0;
  char flag[80];
  for (const pccl_tool_option *option = options; option->name != NULL; option++) {
    int length = option->name[0] != '\0' ? format_flag(option, flag, sizeof flag) : 0;
    width = length > width ? length : width;
  }
  width = width < MAX_FLAG ? width : MAX_FLAG;
  if (width > 0) {
    putchar('\n');
  }
  for (const pccl_tool_option *option = options; option->name != NULL; option++) {
    if (option->name[0] != '\0') {
      print_option(option, width);
    }
  }
}

/* A line for each of the usages, which a newline separates. */
static void print_usage(const pccl_tool *tool) {
  const char *usage = tool->usage, *before = "usage:";
  do {
    int length = (int)strcspn(usage, "\n");
    int indent = printf(length > 0 ? "%-6s polyccl %s " : "%-6s polyccl %s", before, tool->name);
    print_wrapped(usage, length, indent);
    before = "";
    usage += length;
  } while (*usage++ != '\0');
}

void pccl_help_print_tool(const pccl_tool *tool) {
  print_usage(tool);
  printf("\n%s\n", tool->summary);
  if (tool->description[0] != '\0') {
    putchar('\n');
    print_wrapped(tool->description, (int)strlen(tool->description), 0);
  }
  print_tool_options(tool->options);
}

void pccl_help_print(FILE *to) {
  fprintf(to,
          "usage: polyccl COMMAND [ARGUMENT ...]\n\n"
          "PolyCCL compiles, checks, runs and simulates programs of collective communication, such as an\n"
          "AllReduce. A program says which chunks of data move where. The compiler makes a plan of it, which\n"
          "says what every thread block does and when. The same plan is verified, simulated and run.\n\n"
          "Commands:\n");
  for (const pccl_tool *const *tool = pccl_tools; *tool != NULL; tool++) {
    fprintf(to, "  %-10s %s\n", (*tool)->name, (*tool)->summary);
  }
  fprintf(to,
          "\nTo begin with (the programs are in algorithms/):\n"
          "  polyccl check algorithms/allreduce_ring.lua -p ranks=8\n"
          "  polyccl run algorithms/allreduce_ring.lua --ranks 2 --size 1m\n"
          "  polyccl simulate algorithms/allreduce_ring.lua -p ranks=16 --topology ndv4:2 --size 64m\n\n"
          "polyccl help COMMAND explains a command; polyccl help --options lists all options; polyccl --version\n"
          "prints the version. The manual pages are polyccl(1) and polyccl-COMMAND(1).\n");
}

void pccl_help_print_options(void) {
  for (const pccl_tool *const *tool = pccl_tools; *tool != NULL; tool++) {
    for (const pccl_tool_option *option = (*tool)->options; option->name != NULL; option++) {
      if (option->name[0] != '\0') {
        printf("%s %s %s\n", (*tool)->name, option->name, pccl_option_kind(option));
      }
    }
  }
}
