/* What a subcommand takes, as a table: options ("--name value" or "--name=value"), parameters (-p) and files. The one
 * place where words of the command line become numbers. `polyccl help --options` prints the tables. */
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
  PCCL_TAKES_LIST,        /* what take() says: a list with commas */
  PCCL_TAKES_NAME,        /* what take() says: a name that the library knows */
  PCCL_TAKES_JOINED,      /* what take() says: a text, only as "--name=value"; NULL: none */
  PCCL_TAKES_PARAMETER,   /* a pccl_program_args: name=value; the value may be joined ("-pname=value") */
  PCCL_TAKES_PATH         /* named "": an argument that is no option; a const char *, or what take() says */
} pccl_option_takes;

/* A row of a table, which ends with a NULL name. */
typedef struct pccl_tool_option {
  const char *name;
  pccl_option_takes takes;
  const char *wants; /* for messages: "a number of slots" */
  size_t at;         /* of the value in the subcommand's arguments */
  uint64_t min, max;
  const char *const *words;                    /* ends with NULL */
  bool (*take)(void *into, const char *value); /* false: the value is wrong */
  size_t given;                                /* of a bool that is set where the option is given; 0: none */
} pccl_tool_option;

/* Takes all of argv[1] .. by the table into the subcommand's arguments. After "--" nothing is an option. The exit
 * status; the error was printed. */
int pccl_tool_parse(const char *tool, const pccl_tool_option *options, void *into, int argc, char **argv);

/* Digits only, within min .. max. */
bool pccl_tool_number(const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* Words that several subcommands take, in the order of their values. */
extern const char *const pccl_alloc_words[], *const pccl_order_words[], *const pccl_schedule_words[];
extern const char *const pccl_format_words[]; /* polyccl_format: "plan", then the targets that take XML */

/* The word for what an option takes: "number", "size", ... */
const char *pccl_option_kind(const pccl_tool_option *option);

/* The name among `count` that is nearest to what was typed; NULL: none is near. */
const char *pccl_nearest(const char *typed, const char *(*name)(const void *from, size_t index), const void *from,
                         size_t count);

#endif
