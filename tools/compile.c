/* polyccl compile PROGRAM: a plan, as text or as MSCCL XML. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <polyccl/compile.h>

#include "base/error.h"
#include "compile.h"
#include "option.h"
#include "output.h"
#include "plan/plan.h"
#include "program_args.h"
#include "sizes.h"
#include "tools.h"

typedef struct compile_args {
  pccl_program_args program;
  polyccl_compile_options options;
  bool tuned; /* an option that only compiling knows was given */
  polyccl_format format;
  const char *output;   /* NULL: standard output */
  const char *topology; /* NULL: none */
  bool set, timings;
  pccl_sizes sizes; /* min 0: not given */
} compile_args;

static const char *const format_names[] = {
    [POLYCCL_FORMAT_PLAN] = "plan", [POLYCCL_FORMAT_XML] = "xml", [POLYCCL_FORMAT_XML_AZURE] = "azure"};

static int parse_format(const char *name, polyccl_format *format) {
  for (size_t i = 0; i < sizeof format_names / sizeof format_names[0]; i++) {
    if (strcmp(name, format_names[i]) == 0) {
      *format = (polyccl_format)i;
      return PCCL_EXIT_OK;
    }
  }
  return pccl_tool_usage("compile", "unknown format \"%s\" (known: plan, xml, azure)", name);
}

static int parse_word(const char *option, const char *word, const char *const *words, int *number) {
  char known[128] = "";
  for (int i = 0; words[i] != NULL; i++) {
    if (strcmp(word, words[i]) == 0) {
      *number = i;
      return PCCL_EXIT_OK;
    }
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", words[i]);
  }
  return pccl_tool_usage("compile", "unknown %s \"%s\" (known: %s)", option, word, known);
}

static int parse_number(const char *option, const char *word, int most, int *number) {
  char *end;
  long value = strtol(word, &end, 10);
  if (*word == '\0' || *end != '\0' || value < 0 || value > most) {
    return pccl_tool_usage("compile", "%s wants a number from 0 to %d, not \"%s\"", option, most, word);
  }
  *number = (int)value;
  return PCCL_EXIT_OK;
}

/* How to compile; -1: none of these. */
static int parse_schedule(compile_args *args, int argc, char **argv, int *i) {
  static const char *const policies[] = {"connection", "state", "set", NULL};
  static const char *const schedules[] = {"hpds", "round-robin", "best", NULL};
  const char *value;
  int number = 0, status = -1;
  if ((value = pccl_tool_value("--policy", argc, argv, i)) != NULL) {
    status = parse_word("policy", value, policies, &number);
    args->set = number == 2;
    args->options.policy = args->set ? POLYCCL_POLICY_CONNECTION : (polyccl_policy)number;
  } else if ((value = pccl_tool_value("--schedule", argc, argv, i)) != NULL) {
    status = parse_word("schedule", value, schedules, &number);
    args->options.schedule = (polyccl_schedule)number;
  } else if ((value = pccl_tool_value("--topology", argc, argv, i)) != NULL) {
    args->topology = value;
    status = PCCL_EXIT_OK;
  } else if ((value = pccl_tool_value("--max-tb", argc, argv, i)) != NULL) {
    status = parse_number("--max-tb", value, 65535, &args->options.max_tbs);
  } else if ((value = pccl_tool_value("--size", argc, argv, i)) != NULL) {
    if (!pccl_sizes_parse(value, &args->sizes) || args->sizes.min == 0) {
      return pccl_tool_usage("compile", "--size wants %s, not \"%s\"", PCCL_SIZES_WANTED, value);
    }
    status = PCCL_EXIT_OK;
  } else if ((value = pccl_tool_value("--instances", argc, argv, i)) != NULL) {
    status = parse_number("--instances", value, 65536, &args->options.instances);
  } else if (strcmp(argv[*i], "--no-fusion") == 0) {
    args->options.no_fusion = true;
    status = PCCL_EXIT_OK;
  } else if ((value = pccl_tool_value("--seconds", argc, argv, i)) != NULL) {
    status = parse_number("--seconds", value, 3600, &number);
    args->options.seconds = number;
  }
  return status;
}

static int parse(compile_args *args, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char *error = NULL, *value;
    int scheduled = parse_schedule(args, argc, argv, &i);
    if (scheduled == PCCL_EXIT_INVALID) {
      return scheduled;
    }
    if (scheduled == PCCL_EXIT_OK) {
      args->tuned = true;
      continue;
    }
    if ((value = pccl_tool_value("--format", argc, argv, &i)) != NULL) {
      int status = parse_format(value, &args->format);
      if (status != PCCL_EXIT_OK) {
        return status;
      }
    } else if ((value = pccl_tool_value("--dump", argc, argv, &i)) != NULL) {
      args->options.dump = value;
      args->tuned = true;
    } else if ((value = pccl_tool_value("-o", argc, argv, &i)) != NULL) {
      if (*value == '\0') {
        return pccl_tool_usage("compile", "-o wants a file");
      }
      args->output = value;
    } else if (strcmp(argv[i], "--timings") == 0) {
      args->timings = true;
    } else if (strcmp(argv[i], "--in-place") == 0) {
      args->options.placement = POLYCCL_IN_PLACE;
      args->tuned = true;
    } else if (strcmp(argv[i], "--out-of-place") == 0) {
      args->options.placement = POLYCCL_OUT_OF_PLACE;
      args->tuned = true;
    } else if (!pccl_program_args_take(&args->program, argc, argv, &i, &error)) {
      return pccl_tool_usage("compile", "unexpected argument \"%s\"", argv[i]);
    } else if (error != NULL) {
      return pccl_tool_usage("compile", "%s", error);
    }
  }
  if (args->set && args->output == NULL) {
    return pccl_tool_usage("compile", "policy set wants a folder (-o FOLDER)");
  }
  if (args->sizes.min != args->sizes.max && !args->set) {
    return pccl_tool_usage("compile", "a range of sizes is for policy set");
  }
  args->options.bytes = args->sizes.min;
  return args->program.path != NULL
             ? PCCL_EXIT_OK
             : pccl_tool_usage("compile", "which program? (polyccl compile PROGRAM [-p name=value ...])");
}

static int write_out(const polyccl_plan *plan, const compile_args *args) {
  pccl_output output;
  int status = pccl_output_open(&output, "compile", args->output);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  polyccl_result result = polyccl_plan_write(plan, args->format, output.file);
  return pccl_output_close(&output, result == POLYCCL_SUCCESS ? PCCL_EXIT_OK : pccl_tool_failed("compile", result));
}

/* A plan in another format, verified on the way; its FIFO depth is filled in where it says none. */
static int convert(const compile_args *args) {
  polyccl_plan *plan = NULL;
  polyccl_verify_report report;
  pccl_accept_compile_context context = {args->format, &args->options};
  pccl_accept accept = {pccl_accept_compile, &context};
  polyccl_result result = polyccl_plan_read(args->program.path, &plan);
  result = result == POLYCCL_SUCCESS ? pccl_accept_plan(&accept, plan) : result;
  result = result == POLYCCL_SUCCESS ? polyccl_plan_verify(plan, &report) : result;
  if (result != POLYCCL_SUCCESS) {
    polyccl_plan_destroy(plan);
    return pccl_tool_failed("compile", result);
  }
  plan->fifo_depth = plan->fifo_depth > 0 ? plan->fifo_depth : report.fifo_depth;
  int status = write_out(plan, args);
  polyccl_plan_destroy(plan);
  return status;
}

/* A plan to be compiled anew: the program that makes its moves. */
static polyccl_result program_of_plan(const char *path, const pccl_accept *accept, polyccl_program **program) {
  polyccl_plan *plan = NULL;
  PCCL_TRY(polyccl_plan_read(path, &plan));
  polyccl_result result = pccl_accept_plan(accept, plan);
  result = result == POLYCCL_SUCCESS ? polyccl_program_from_plan(plan, program) : result;
  polyccl_plan_destroy(plan);
  return result;
}

static int compile_program(const compile_args *args, const polyccl_program *program, double load) {
  polyccl_plan *plan = NULL;
  polyccl_compile_options options = args->options;
  polyccl_compile_times times;
  polyccl_result result = POLYCCL_SUCCESS;
  options.times = args->timings ? &times : NULL;
  int status = PCCL_EXIT_OK;
  if (args->set) {
    uint64_t min = args->sizes.min > 0 ? args->sizes.min : 1 << 10;
    uint64_t max = args->sizes.min > 0 ? args->sizes.max : 1 << 30;
    options.times = NULL;
    status = pccl_compile_set(program, &options, min, max, args->output);
  } else {
    result = polyccl_compile(program, &options, &plan);
  }
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("compile", result);
  }
  if (plan == NULL) {
    return status;
  }
  status = write_out(plan, args);
  polyccl_plan_destroy(plan);
  if (args->timings) {
    pccl_compile_print_times(&times, load);
  }
  return status;
}

/* What neither the format nor the topology takes is refused before anything is made. */
static int load_and_compile(const compile_args *args, bool is_plan) {
  const pccl_program_args *given = &args->program;
  pccl_accept_compile_context context = {args->format, &args->options};
  pccl_accept accept = {pccl_accept_compile, &context};
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  polyccl_program *program = NULL;
  polyccl_result result = is_plan ? program_of_plan(given->path, &accept, &program)
                                  : pccl_program_load_for(given->path, given->params, given->count, &accept, &program);
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("compile", result);
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  double load = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9;
  int status = compile_program(args, program, load);
  polyccl_program_destroy(program);
  return status;
}

static int compile(compile_args *args) {
  bool is_plan;
  polyccl_result result = pccl_is_plan_file(args->program.path, &is_plan);
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("compile", result);
  }
  if (is_plan && args->program.count > 0) {
    return pccl_tool_usage("compile", "%s is a plan, it has no parameters (-p)", args->program.path);
  }
  if (is_plan && !args->tuned) {
    return convert(args);
  }
  polyccl_topology *topology = NULL;
  if (args->topology != NULL) {
    result = polyccl_topology_open(args->topology, &topology);
    if (result != POLYCCL_SUCCESS) {
      return pccl_tool_failed("compile", result);
    }
  }
  args->options.topology = topology;
  int status = load_and_compile(args, is_plan);
  polyccl_topology_destroy(topology);
  return status;
}

int pccl_tool_compile(int argc, char **argv) {
  compile_args args = {0};
  int status = parse(&args, argc, argv);
  if (status == PCCL_EXIT_OK) {
    status = compile(&args);
  }
  pccl_program_args_free(&args.program);
  return status;
}
