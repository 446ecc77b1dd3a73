/* polyccl info: what this build is and what the environment sets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/options.h"
#include "kernel/reduce.h"
#include "option.h"
#include "tools.h"

#if defined(__SANITIZE_ADDRESS__)
static const char build_kind[] = "address sanitizer";
#elif defined(__SANITIZE_THREAD__)
static const char build_kind[] = "thread sanitizer";
#elif defined(NDEBUG)
static const char build_kind[] = "release";
#else
static const char build_kind[] = "debug";
#endif

static void print_processor(void) {
  char line[256] = "";
  FILE *file = fopen("/proc/cpuinfo", "re");
  while (file != NULL && fgets(line, sizeof line, file) != NULL && strncmp(line, "model name", 10) != 0) {
    line[0] = '\0';
  }
  if (file != NULL) {
    fclose(file);
  }
  char *name = strchr(line, ':');
  line[strcspn(line, "\n")] = '\0';
  printf("  cpu        %s, %ld cores, reductions for %s\n", name != NULL ? name + 2 : "unknown processor",
         sysconf(_SC_NPROCESSORS_ONLN), pccl_reduce_kernels()->name);
}

static void print_devices(void) {
  printf("devices:\n");
  print_processor();
  printf("  simulated  any topology (polyccl topology --list)\n");
}

static void print_transports(void) {
  printf("transports:\n");
  printf("  shared memory  ranks that are processes of one machine, in a memory file that has no name\n");
  printf("  same process   ranks that are threads\n");
  printf("  by reference   both, between buffers of polyccl_mem_alloc()\n");
}

static void print_options(void) {
  printf("options (environment; default, what it is for):\n");
  for (const pccl_option_entry *entry = pccl_options; entry->name != NULL; entry++) {
    printf("  %-26s %-12s %s\n", entry->name, entry->default_value[0] != '\0' ? entry->default_value : "(unset)",
           entry->help);
    const char *value = getenv(entry->name);
    if (value != NULL && value[0] != '\0') {
      printf("  %-26s %s\n", "  set to", value);
    }
  }
}

static const pccl_tool_option info_options[] = {{0}};

static int info_command(int argc, char **argv) {
  int status = pccl_tool_parse("info", info_options, NULL, argc, argv);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  struct utsname system;
  printf("polyccl %d.%d.%d\n", POLYCCL_VERSION_MAJOR, POLYCCL_VERSION_MINOR, POLYCCL_VERSION_PATCH);
  printf("build: %s, %s\n", build_kind,
#if defined(__clang__)
         "clang " __clang_version__
#else
         "gcc " __VERSION__
#endif
  );
  if (uname(&system) == 0) {
    printf("system: %s %s, %s\n", system.sysname, system.release, system.machine);
  }
  print_devices();
  print_transports();
  print_options();
  return PCCL_EXIT_OK;
}

const pccl_tool pccl_info_tool = {
    .name = "info",
    .usage = "",
    .summary = "Print the version, the build, devices, transports, and the environment's options.",
    .description = "Each option is printed with its default, its meaning and, if the environment sets it, its value.",
    .options = info_options,
    .run = info_command,
};
