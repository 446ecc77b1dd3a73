/* polyccl info */
#include <stdio.h>

#include "base/options.h"
#include "tools.h"

int pccl_tool_info(int argc, char **argv) {
  if (argc > 1) {
    return pccl_tool_usage("info", "takes no arguments, got \"%s\"", argv[1]);
  }
  printf("polyccl %d.%d.%d\n", POLYCCL_VERSION_MAJOR, POLYCCL_VERSION_MINOR, POLYCCL_VERSION_PATCH);
  printf("compiler: %s, C%ld\n", __VERSION__, __STDC_VERSION__);
  printf("options (environment):\n");
  for (const pccl_option_entry *entry = pccl_options; entry->name != NULL; entry++) {
    printf("  %-26s %-12s %s\n", entry->name, entry->preset[0] != '\0' ? entry->preset : "(unset)", entry->help);
  }
  return PCCL_EXIT_OK;
}
