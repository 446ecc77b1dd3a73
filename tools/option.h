/* The arguments of a subcommand as a table: options ("--name value" or "--name=value"), parameters (-p) and files.
 * Only this module converts words of the command line to values. `polyccl help` prints the tables. A new option is one
 * row, a member of the subcommand's arguments, and an item of its manual page. */
#ifndef PCCL_TOOLS_OPTION_H
#define PCCL_TOOLS_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pccl_option_takes {
  PCCL_TAKES_NOTHING = 0, /* a bool, set to true */
  PCCL_TAKES_NUMBER,      /* an int within min .. max */
  PCCL_TAKES_SIZE,        /* a uint64_t within min .. max, with units (sizes.h) */
  PCCL_TAKES_SIZES,       /* a pccl_sizes */
  PCCL_TAKES_SHARE,       /* a double from 0 to 1 */
  PCCL_TAKES_WORD,        /* an int, the index in `words` */
  PCCL_TAKES_TEXT,        /* a const char *, not empty */
  PCCL_TAKES_LIST,        /* words with commas, which take() reads */
  PCCL_TAKES_NAME,        /* an int, from a name that parse_name() knows */
  PCCL_TAKES_JOINED,      /* nothing, or a text as "--name=value", which take() reads; NULL for nothing */
  PCCL_TAKES_PARAMETER,   /* a pccl_program_args: "-p name=value" or "-pname=value" */
  PCCL_TAKES_PATH         /* named "": an argument that is not an option; a const char *, or what take() reads */
} pccl_option_takes;

/* A row of a table, which ends with a NULL name. */
typedef struct pccl_tool_option {
  const char *name;
  const char *value; /* for help: "FILE"; NULL: the option takes no value */
  const char *help;  /* one sentence or more */
  pccl_option_takes takes;
  const char *expects; /* for messages: "a number of slots" */
  size_t at;           /* of the value in the subcommand's arguments */
  uint64_t min, max;
  const char *const *words;                    /* ends with NULL */
  bool (*take)(void *into, const char *value); /* false: the value is wrong */
  bool (*parse_name)(const char *name, int *value);
  size_t given; /* of a bool that is set if the option is given; 0: none */
} pccl_tool_option;

/* Reads argv[1] and what follows into the subcommand's arguments. After "--" nothing is an option. Returns the exit
 * status; if it is not 0, the error was printed. */
int pccl_tool_parse(const char *tool, const pccl_tool_option *options, void *into, int argc, char **argv);

/* Reads a number of digits only; false if it is not within min .. max. */
bool pccl_tool_number(const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* parse_name() of options that name one of the library's enumerations. */
bool pccl_parse_dtype(const char *name, int *value);
bool pccl_parse_redop(const char *name, int *value);
bool pccl_parse_protocol(const char *name, int *value);
bool pccl_parse_collective(const char *name, int *value);

/* Rows and texts that several subcommands have. */
#define PCCL_OUTPUT_OPTION(ARGS, MEMBER)                                                       \
  {                                                                                            \
    .name = "-o", .value = "FILE",                                                             \
    .help = "Write to FILE instead of standard output. The file appears whole or not at all.", \
    .takes = PCCL_TAKES_TEXT, .expects = "a file", .at = offsetof(ARGS, MEMBER)                \
  }
#define PCCL_TOPOLOGY_OPTION(ARGS, MEMBER)                                                          \
  {                                                                                                 \
    .name = "--topology", .value = "MACHINE|FILE",                                                  \
    .help =                                                                                         \
        "Simulate on this machine. polyccl topology --list prints the machines; a name may have a " \
        "number of nodes and changes, as in ndv4:2,nic=25.",                                        \
    .takes = PCCL_TAKES_TEXT, .expects = "a machine or a file", .at = offsetof(ARGS, MEMBER)        \
  }
#define PCCL_HELP_PROTOCOL "Use the protocol Simple, LL or LL128 instead of the plan's own."
#define PCCL_HELP_ORDER "Use the loop order batch-major or task-major instead of the plan's own."
#define PCCL_HELP_ALLOC \
  "Use buffers that only their own process addresses (default), or buffers that all processes address."
#define PCCL_HELP_MICRO_BATCHES \
  "Cut the call into N micro-batches. The default is the smallest number whose messages fit into FIFO slots."

/* Words that several subcommands know, in the order of their values. */
extern const char *const pccl_alloc_words[], *const pccl_order_words[], *const pccl_schedule_words[];
extern const char *const pccl_format_words[]; /* in the order of polyccl_format */

/* Returns the word for what an option takes: "number", "size", ... */
const char *pccl_option_kind(const pccl_tool_option *option);

/* Returns the name among `count` that is nearest to what was typed; NULL if none is near. */
const char *pccl_nearest(const char *typed, const char *(*name)(const void *from, size_t index), const void *from,
                         size_t count);

#endif
