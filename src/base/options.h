/* Options from the environment: one table of {name, default, help}; `polyccl info` prints it. */
#ifndef PCCL_BASE_OPTIONS_H
#define PCCL_BASE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include <polyccl/types.h>

typedef struct pccl_option_entry {
  const char *name, *default_value, *help;
} pccl_option_entry;

/* The whole table; ends with a NULL name. */
extern const pccl_option_entry pccl_options[];

/* Returns the value from the environment or else the default. The name must be in the table. */
const char *pccl_option(const char *name);

/* Stores the value as a number within min .. max; it may have a suffix k, m or g (powers of 1024). INVALID with the
 * name and the range for anything else. */
polyccl_result pccl_option_number(const char *name, uint64_t min, uint64_t max, size_t *value);
/* The same for any number. */
polyccl_result pccl_option_size(const char *name, size_t *value);

/* Reads a text of digits; false if it has anything else or the number does not fit. */
int pccl_parse_number(const char *text, uint64_t *value);

/* The same with an optional unit k, m or g, or also kb, kib and so on, in either case; all are powers of 1024. */
int pccl_parse_size(const char *text, uint64_t *value);

#endif
