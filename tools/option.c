#include "option.h"

#include <string.h>

#include "tools.h"

const char *pccl_tool_value(const char *name, int argc, char **argv, int *at) {
  size_t length = strlen(name);
  if (strncmp(argv[*at], name, length) != 0) {
    return NULL;
  }
  if (argv[*at][length] == '=') {
    return argv[*at] + length + 1;
  }
  if (argv[*at][length] == '\0') {
    return *at + 1 < argc ? argv[++*at] : "";
  }
  return NULL;
}

int pccl_tool_take(const char *tool, const pccl_tool_option *options, void *into, int argc, char **argv, int *at) {
  for (const pccl_tool_option *option = options; option->name != NULL; option++) {
    const char *value = pccl_tool_value(option->name, argc, argv, at);
    if (value == NULL) {
      continue;
    }
    if (option->take(into, value)) {
      return 1;
    }
    pccl_tool_usage(tool, "%s wants %s, not \"%s\"", option->name, option->wants, value);
    return -1;
  }
  return 0;
}
