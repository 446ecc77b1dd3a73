/* polyccl run: a program or a plan on the ranks of this machine. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <polyccl/compile.h>
#include <polyccl/language.h>

#include "base/error.h"
#include "base/options.h"
#include "option.h"
#include "output.h"
#include "plan/plan.h"
#include "program_args.h"
#include "run.h"
#include "tools.h"

static const char help[] =
    "usage: polyccl run PROGRAM|PLAN|FOLDER [-p name=value ...] [options]\n\n"
    "Runs it on as many processes of this machine as it has ranks, with data that tells ranks and places apart, "
    "checks\n"
    "every element and the bytes around the buffers, and prints the table of nccl-tests. Times are medians of the\n"
    "slowest rank. A program is compiled both out of place and in place; a plan has one placement.\n"
    "Of a FOLDER all plans are loaded, and each call takes the one that fits (POLYCCL_DEBUG=info says which and "
    "why).\n\n"
    "  --collective NAME         which of a folder's plans\n"
    "  --ranks N                 the program's parameter `ranks`\n"
    "  --size MIN[:MAX[:FACTOR]] bytes of the larger buffer, 1k:64m:4 if not given; +STEP instead of FACTOR adds\n"
    "  --count N                 elements per block instead of sizes\n"
    "  --dtype TYPE              f32 (default), f64, i32, i64, u8, f16, bf16\n"
    "  --op OP                   sum (default), prod, min, max, avg\n"
    "  --in-place, --out-of-place   only this placement\n"
    "  --alloc private|shared    buffers of the process (default), or that all processes can address\n"
    "  --offset N                buffers start N elements off their alignment\n"
    "  --generated[=FILE.so]     compile each plan to code (cc, or $CC) and run that instead of interpreting it; "
    "FILE.so:\n"
    "                            code compiled before (polyccl build)\n"
    "  --threads                 ranks are threads of one process\n"
    "  --iters N                 calls that are timed (default: by the clock)\n"
    "  --warmup N                calls before (default 2)\n"
    "  --apart                   time every call by itself, after a barrier (by default calls follow one another, and\n"
    "                            those that only send overlap with the next)\n"
    "  --check 0|1               check the results (default 1)\n"
    "  --protocol NAME           Simple, LL, LL128 instead of the plan's own\n"
    "  --order NAME              batch-major or task-major instead of the plan's own\n"
    "  --trace FILE              record the quickest of nine more calls of the last size, for polyccl view --trace-in "
    "(in place, where\n"
    "                            both placements run)\n"
    "  --depth N                 slots of a connection, at least what the plan needs\n";

typedef struct run_args {
  pccl_program_args program;
  pccl_run_args run;
  const char *ranks, *code;
  bool only_in_place, only_out_of_place, has_protocol, has_order, generated;
  polyccl_protocol protocol;
  polyccl_loop_order order;
  bool has_collective; /* for folders */
  polyccl_collective collective;
  int depth;
  const char *trace;
  char made[PCCL_RUN_PLACEMENTS][64]; /* where code that was made here lies */
} run_args;

static bool parse_int(const char *text, int least, int most, int *value) {
  char *end;
  long number = strtol(text, &end, 10);
  if (*text == '\0' || *end != '\0' || number < least || number > most) {
    return false;
  }
  *value = (int)number;
  return true;
}

/* ---- options with a value ---- */

static bool take_size(void *into, const char *value) {
  run_args *args = into;
  return pccl_sizes_parse(value, &args->run.sizes) && args->run.sizes.min > 0;
}
static bool take_count(void *into, const char *value) {
  run_args *args = into;
  uint64_t number;
  args->run.has_count = pccl_parse_size(value, &number) && number <= SIZE_MAX;
  args->run.count = args->run.has_count ? (size_t)number : 0;
  return args->run.has_count;
}
static bool take_dtype(void *into, const char *value) {
  run_args *args = into;
  return polyccl_dtype_parse(value, &args->run.dtype) == POLYCCL_SUCCESS;
}
static bool take_op(void *into, const char *value) {
  run_args *args = into;
  return polyccl_redop_parse(value, &args->run.op) == POLYCCL_SUCCESS;
}
static bool take_protocol(void *into, const char *value) {
  run_args *args = into;
  args->has_protocol = true;
  return polyccl_protocol_parse(value, &args->protocol) == POLYCCL_SUCCESS;
}
static bool take_order(void *into, const char *value) {
  run_args *args = into;
  args->has_order = true;
  args->order = strcmp(value, "task-major") == 0 ? POLYCCL_TASK_MAJOR : POLYCCL_BATCH_MAJOR;
  return args->order == POLYCCL_TASK_MAJOR || strcmp(value, "batch-major") == 0;
}
static bool take_alloc(void *into, const char *value) {
  run_args *args = into;
  args->run.shared = strcmp(value, "shared") == 0;
  return args->run.shared || strcmp(value, "private") == 0;
}
static bool take_ranks(void *into, const char *value) {
  run_args *args = into;
  int ranks;
  args->ranks = value;
  return parse_int(value, 1, POLYCCL_MAX_LOCAL_RANKS, &ranks);
}
static bool take_collective(void *into, const char *value) {
  run_args *args = into;
  args->has_collective = true;
  return polyccl_collective_parse(value, &args->collective) == POLYCCL_SUCCESS;
}
static bool take_iters(void *into, const char *value) {
  run_args *args = into;
  return parse_int(value, 1, 1 << 30, &args->run.iterations);
}
static bool take_warmup(void *into, const char *value) {
  run_args *args = into;
  return parse_int(value, 0, 1 << 30, &args->run.warmup);
}
static bool take_depth(void *into, const char *value) {
  run_args *args = into;
  return parse_int(value, 1, 1 << 20, &args->depth);
}
static bool take_offset(void *into, const char *value) {
  run_args *args = into;
  int offset;
  bool good = parse_int(value, 0, 4096, &offset);
  args->run.offset = good ? (size_t)offset : 0;
  return good;
}
static bool take_trace(void *into, const char *value) {
  run_args *args = into;
  args->trace = value;
  return *value != '\0';
}
static bool take_check(void *into, const char *value) {
  run_args *args = into;
  args->run.check = strcmp(value, "1") == 0;
  return args->run.check || strcmp(value, "0") == 0;
}

static const pccl_tool_option options[] = {
    {"--size", PCCL_SIZES_WANTED ", from 1", take_size},
    {"--count", "a number of elements", take_count},
    {"--dtype", "f32, f64, i32, i64, u8, f16 or bf16", take_dtype},
    {"--op", "sum, prod, min, max or avg", take_op},
    {"--protocol", "Simple, LL or LL128", take_protocol},
    {"--order", "batch-major or task-major", take_order},
    {"--alloc", "private or shared", take_alloc},
    {"--collective", "allreduce, allgather, ...", take_collective},
    {"--ranks", "a number from 1 to 1024", take_ranks},
    {"--iters", "a number of calls", take_iters},
    {"--warmup", "a number of calls", take_warmup},
    {"--depth", "a number of slots", take_depth},
    {"--offset", "0 to 4096 elements", take_offset},
    {"--check", "0 or 1", take_check},
    {"--trace", "a file", take_trace},
    {NULL, NULL, NULL},
};

static int parse(run_args *args, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char *error = NULL;
    int taken = pccl_tool_take("run", options, args, argc, argv, &i);
    if (taken < 0) {
      return PCCL_EXIT_INVALID;
    }
    if (taken > 0) {
      continue;
    }
    if (strcmp(argv[i], "--in-place") == 0) {
      args->only_in_place = true;
    } else if (strcmp(argv[i], "--out-of-place") == 0) {
      args->only_out_of_place = true;
    } else if (strcmp(argv[i], "--generated") == 0) {
      args->generated = true;
    } else if (strncmp(argv[i], "--generated=", 12) == 0) {
      args->code = argv[i] + 12;
    } else if (strcmp(argv[i], "--threads") == 0) {
      args->run.threads = true;
    } else if (strcmp(argv[i], "--apart") == 0) {
      args->run.apart = true;
    } else if (!pccl_program_args_take(&args->program, argc, argv, &i, &error)) {
      return pccl_tool_usage("run", "unexpected argument \"%s\"", argv[i]);
    } else if (error != NULL) {
      return pccl_tool_usage("run", "%s", error);
    }
  }
  if (args->only_in_place && args->only_out_of_place) {
    return pccl_tool_usage("run", "--in-place and --out-of-place exclude each other");
  }
  return args->program.path != NULL
             ? PCCL_EXIT_OK
             : pccl_tool_usage("run", "which program or plan? (polyccl run PROGRAM|PLAN ..., see polyccl run --help)");
}

/* ---- plans ---- */

static polyccl_result adjust(const run_args *args, polyccl_plan *plan) {
  if (args->has_protocol) {
    plan->protocol = args->protocol;
  }
  if (args->has_order) {
    plan->order = args->order;
  }
  if (args->has_order || args->depth > 0) {
    plan->fifo_depth = args->depth; /* 0: the verifier finds the least */
  }
  return POLYCCL_SUCCESS;
}

/* The placement that the program was written for must compile; that the other one cannot be had is no error unless it
 * was asked for. */
static polyccl_result compile_both(run_args *args, const polyccl_program *program) {
  static const polyccl_placement placement[PCCL_RUN_PLACEMENTS] = {POLYCCL_OUT_OF_PLACE, POLYCCL_IN_PLACE};
  bool only = args->only_in_place || args->only_out_of_place;
  bool written = polyccl_program_get_config(program)->inplace;
  for (int i = 0; i < PCCL_RUN_PLACEMENTS; i++) {
    if ((i == 0 && args->only_in_place) || (i == 1 && args->only_out_of_place)) {
      continue;
    }
    polyccl_compile_options how = {.placement = placement[i]};
    polyccl_result result = polyccl_compile(program, &how, &args->run.plan[i]);
    if (result != POLYCCL_SUCCESS && (only || i == (int)written)) {
      return result;
    }
    if (result != POLYCCL_SUCCESS) {
      fprintf(stderr, "polyccl run: only %s: %s\n", i == 0 ? "in place" : "out of place", polyccl_last_error());
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result load_program(run_args *args) {
  polyccl_param *params = calloc(args->program.count + 1, sizeof *params);
  if (params == NULL) {
    return pccl_no_memory("parameters");
  }
  size_t count = args->program.count;
  if (count > 0) {
    memcpy(params, args->program.params, count * sizeof *params);
  }
  if (args->ranks != NULL) {
    params[count++] = (polyccl_param){"ranks", args->ranks};
  }
  polyccl_program *program = NULL;
  polyccl_result result = pccl_program_load_for(args->program.path, params, count, &args->program.accept, &program);
  free(params);
  if (result == POLYCCL_SUCCESS) {
    result = compile_both(args, program);
  }
  polyccl_program_destroy(program);
  return result;
}

static polyccl_result load_plan(run_args *args) {
  polyccl_plan *plan;
  if (args->program.count > 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s is a plan; -p is for programs", args->program.path);
  }
  PCCL_TRY(polyccl_plan_read(args->program.path, &plan));
  args->run.plan[plan->inplace] = plan;
  if (plan->inplace ? args->only_out_of_place : args->only_in_place) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s is %s", args->program.path,
                     plan->inplace ? "in place" : "out of place");
  }
  int ranks;
  if (args->ranks != NULL && parse_int(args->ranks, 1, POLYCCL_MAX_LOCAL_RANKS, &ranks) && ranks != plan->ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s is for %d ranks, not %d", args->program.path, plan->ranks, ranks);
  }
  return POLYCCL_SUCCESS;
}

static bool is_folder(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static polyccl_result load_folder(run_args *args) {
  if (args->program.count > 0 || args->has_protocol || args->has_order || args->depth > 0 || args->generated ||
      args->code != NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s is a folder: its plans run as they are", args->program.path);
  }
  pccl_run_folder folder = {
      .path = args->program.path, .has_collective = args->has_collective, .collective = args->collective};
  if (args->ranks != NULL) {
    folder.ranks = atoi(args->ranks);
  }
  PCCL_TRY(pccl_run_open_folder(&folder, &args->run));
  int unwanted = args->only_in_place ? 0 : args->only_out_of_place ? 1 : -1;
  if (unwanted >= 0) {
    polyccl_plan_destroy(args->run.plan[unwanted]);
    args->run.plan[unwanted] = NULL;
  }
  return args->run.plan[0] != NULL || args->run.plan[1] != NULL
             ? POLYCCL_SUCCESS
             : pccl_fail(POLYCCL_ERROR_INVALID, "%s: no plan of this placement", folder.path);
}

static polyccl_result load(run_args *args) {
  if (is_folder(args->program.path)) {
    return load_folder(args);
  }
  if (args->has_collective) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s is one file; --collective chooses among the plans of a folder",
                     args->program.path);
  }
  bool plan;
  PCCL_TRY(pccl_is_plan_file(args->program.path, &plan));
  PCCL_TRY(plan ? load_plan(args) : load_program(args));
  for (int i = 0; i < PCCL_RUN_PLACEMENTS; i++) {
    if (args->run.plan[i] != NULL) {
      PCCL_TRY(adjust(args, args->run.plan[i]));
      PCCL_TRY(pccl_accept_plan(&args->program.accept, args->run.plan[i]));
      PCCL_TRY(polyccl_plan_verify(args->run.plan[i], NULL));
      if (args->code != NULL) {
        args->run.code[i] = args->code;
      } else if (args->generated) {
        args->run.code[i] = args->made[i];
        PCCL_TRY(pccl_run_generate(args->run.plan[i], args->made[i], sizeof args->made[i]));
      }
    }
  }
  return POLYCCL_SUCCESS;
}

static int run(run_args *args) {
  polyccl_result result = load(args);
  if (result != POLYCCL_SUCCESS) {
    return pccl_tool_failed("run", result);
  }
  pccl_output output;
  if (args->trace != NULL) {
    int status = pccl_output_open(&output, "run", args->trace);
    if (status != PCCL_EXIT_OK) {
      return status;
    }
    args->run.trace = output.file;
  }
  uint64_t wrong = 0;
  signal(SIGPIPE, SIG_IGN); /* the rank that prints reports it, as any failed write */
  result = pccl_run_all(&args->run, &wrong);
  int status = result == POLYCCL_SUCCESS ? PCCL_EXIT_OK : pccl_tool_failed("run", result);
  if (args->trace != NULL) {
    status = pccl_output_close(&output, status);
  }
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  if (wrong > 0) {
    fprintf(stderr, "polyccl run: %llu wrong elements or bytes\n", (unsigned long long)wrong);
    return PCCL_EXIT_FAILED;
  }
  return PCCL_EXIT_OK;
}

int pccl_tool_run(int argc, char **argv) {
  if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    fputs(help, stdout);
    return PCCL_EXIT_OK;
  }
  run_args args = {.program = {.accept = {pccl_accept_local, NULL}},
                   .run = {.sizes = {.min = 1024, .max = (uint64_t)64 << 20, .factor = 4},
                           .dtype = POLYCCL_FLOAT32,
                           .op = POLYCCL_SUM,
                           .check = true,
                           .warmup = 2}};
  int status = parse(&args, argc, argv);
  if (status == PCCL_EXIT_OK && args.trace != NULL && (args.generated || args.code != NULL)) {
    status = pccl_tool_usage("run", "--trace watches the interpreter; leave --generated out");
  }
  if (status == PCCL_EXIT_OK) {
    status = run(&args);
  }
  for (int i = 0; i < PCCL_RUN_PLACEMENTS; i++) {
    polyccl_plan_destroy(args.run.plan[i]);
  }
  pccl_program_args_free(&args.program);
  return status;
}
