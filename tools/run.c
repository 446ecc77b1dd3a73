/* polyccl run: the arguments and the outcome. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "option.h"
#include "output.h"
#include "program_args.h"
#include "run_load.h"
#include "tools.h"

/* ---- arguments ---- */

/* --generated compiles code, --generated=FILE.so loads it. */
static bool take_generated(void *into, const char *value) {
  pccl_run_request *args = into;
  args->generated = value == NULL;
  args->code = value;
  return value == NULL || *value != '\0';
}

static const pccl_tool_option run_options[] = {
    PCCL_PROGRAM_OPTIONS(pccl_run_request),
    {.name = "--collective",
     .value = "NAME",
     .help = "Run this collective. It is needed for a folder that has plans for several.",
     .takes = PCCL_TAKES_NAME,
     .expects = "allreduce, allgather, ...",
     .at = offsetof(pccl_run_request, collective),
     .parse_name = pccl_parse_collective,
     .given = offsetof(pccl_run_request, has_collective)},
    {.name = "--ranks",
     .value = "N",
     .help = "Give the program's parameter ranks the value N; of a folder, use the plans for N ranks.",
     .takes = PCCL_TAKES_NUMBER,
     .at = offsetof(pccl_run_request, ranks),
     .min = 1,
     .max = POLYCCL_MAX_LOCAL_RANKS},
    {.name = "--size",
     .value = "MIN[:MAX[:FACTOR]]",
     .help = "Run calls of MIN to MAX bytes of a rank's larger buffer (default 1k:64m:4). Each size is FACTOR"
             " times the one before (default 2); +STEP instead of FACTOR adds STEP. Sizes that come to the "
             "same count run once, and a size below one element runs one element. Sizes that need more memory"
             " than this machine has, or than ulimit -m, -v or -d allows, are an error before anything "
             "starts.",
     .takes = PCCL_TAKES_SIZES,
     .at = offsetof(pccl_run_request, run.sizes)},
    {.name = "--count",
     .value = "N",
     .help = "Run calls of N elements in each block instead of sizes in bytes.",
     .takes = PCCL_TAKES_SIZE,
     .expects = "a number of elements",
     .at = offsetof(pccl_run_request, run.count),
     .min = 0,
     .max = PCCL_MAX_BYTES,
     .given = offsetof(pccl_run_request, run.has_count)},
    {.name = "--dtype",
     .value = "TYPE",
     .help = "Use the data type f32 (default), f64, i32, i64, u8, f16, bf16, u32, u64, i8, bool, f8e4m3 or f8e5m2.",
     .takes = PCCL_TAKES_NAME,
     .expects = "f32, f64, i32, i64, u8, f16, bf16, u32, u64, i8, bool, f8e4m3 or f8e5m2",
     .at = offsetof(pccl_run_request, run.dtype),
     .parse_name = pccl_parse_dtype},
    {.name = "--op",
     .value = "OP",
     .help = "Reduce by sum (default), prod, min, max or avg.",
     .takes = PCCL_TAKES_NAME,
     .expects = "sum, prod, min, max or avg",
     .at = offsetof(pccl_run_request, run.op),
     .parse_name = pccl_parse_redop},
    {.name = "--in-place",
     .help = "Run only in place.",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(pccl_run_request, only_in_place)},
    {.name = "--out-of-place",
     .help = "Run only out of place.",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(pccl_run_request, only_out_of_place)},
    {.name = "--alloc",
     .value = "private|shared",
     .help = PCCL_HELP_ALLOC,
     .takes = PCCL_TAKES_WORD,
     .at = offsetof(pccl_run_request, alloc),
     .words = pccl_alloc_words},
    {.name = "--offset",
     .value = "N",
     .help = "Start the buffers N elements after their aligned address.",
     .takes = PCCL_TAKES_NUMBER,
     .expects = "a number of elements",
     .at = offsetof(pccl_run_request, offset),
     .min = 0,
     .max = 4096},
    {.name = "--generated",
     .value = "FILE.so",
     .help = "Run generated code instead of the interpreter: compile it now with cc or $CC, or load FILE.so, "
             "which was compiled from the output of polyccl build.",
     .takes = PCCL_TAKES_JOINED,
     .expects = "a file",
     .take = take_generated},
    {.name = "--threads",
     .help = "Run ranks as threads of one process.",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(pccl_run_request, run.threads)},
    {.name = "--iters",
     .value = "N",
     .help = "Time N calls of each size. The default depends on how long a call takes.",
     .takes = PCCL_TAKES_NUMBER,
     .expects = "a number of calls",
     .at = offsetof(pccl_run_request, run.iterations),
     .min = 1,
     .max = 1 << 30},
    {.name = "--warmup",
     .value = "N",
     .help = "Make N calls before those that are timed (default 2).",
     .takes = PCCL_TAKES_NUMBER,
     .expects = "a number of calls",
     .at = offsetof(pccl_run_request, run.warmup),
     .min = 0,
     .max = 1 << 30},
    {.name = "--apart",
     .help = "Start every timed call after a barrier. By default calls follow one another, and a call that "
             "only sends overlaps with the next.",
     .takes = PCCL_TAKES_NOTHING,
     .at = offsetof(pccl_run_request, run.apart)},
    {.name = "--check",
     .value = "0|1",
     .help = "Check the results (1, default) or not (0).",
     .takes = PCCL_TAKES_NUMBER,
     .at = offsetof(pccl_run_request, check),
     .min = 0,
     .max = 1},
    {.name = "--protocol",
     .value = "NAME",
     .help = PCCL_HELP_PROTOCOL,
     .takes = PCCL_TAKES_NAME,
     .expects = "Simple, LL or LL128",
     .at = offsetof(pccl_run_request, protocol),
     .parse_name = pccl_parse_protocol,
     .given = offsetof(pccl_run_request, has_protocol)},
    {.name = "--order",
     .value = "NAME",
     .help = PCCL_HELP_ORDER,
     .takes = PCCL_TAKES_WORD,
     .at = offsetof(pccl_run_request, order),
     .words = pccl_order_words,
     .given = offsetof(pccl_run_request, has_order)},
    {.name = "--trace",
     .value = "FILE",
     .help = "Write a trace of every step for polyccl view --trace-in: the fastest of nine more calls of the "
             "last size. If both placements run, the trace is of the call in place.",
     .takes = PCCL_TAKES_TEXT,
     .expects = "a file",
     .at = offsetof(pccl_run_request, trace)},
    {.name = "--depth",
     .value = "N",
     .help = "Give each connection N slots, at least as many as the plan needs.",
     .takes = PCCL_TAKES_NUMBER,
     .expects = "a number of slots",
     .at = offsetof(pccl_run_request, depth),
     .min = 1,
     .max = 1 << 20},
    {.name = NULL},
};

static int parse_run_args(pccl_run_request *args, int argc, char **argv) {
  int status = pccl_tool_parse("run", run_options, args, argc, argv);
  if (status != PCCL_EXIT_OK) {
    return status;
  }
  args->run.shared = args->alloc != 0;
  args->run.offset = (size_t)args->offset;
  args->run.check = args->check != 0;
  args->run.size_option = args->run.has_count ? "--count" : "--size";
  if (args->only_in_place && args->only_out_of_place) {
    return pccl_tool_usage("run", "--in-place and --out-of-place exclude each other");
  }
  if (args->trace != NULL && (args->generated || args->code != NULL)) {
    return pccl_tool_usage("run", "--trace records the interpreter; it excludes --generated");
  }
  return args->program.path != NULL ? PCCL_EXIT_OK : pccl_tool_missing("run", "a program, a plan or a folder");
}

/* ---- the run ---- */

static int run_plans(pccl_run_request *args) {
  polyccl_result result = pccl_run_load(args);
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

static int run_command(int argc, char **argv) {
  pccl_run_request args = {.check = 1,
                           .program = {.accept = {pccl_accept_local, NULL}},
                           .run = {.sizes = {.min = 1024, .max = (uint64_t)64 << 20, .factor = 4},
                                   .dtype = POLYCCL_FLOAT32,
                                   .op = POLYCCL_SUM,
                                   .warmup = 2}};
  int status = parse_run_args(&args, argc, argv);
  if (status == PCCL_EXIT_OK) {
    status = run_plans(&args);
  }
  for (int i = 0; i < PCCL_RUN_PLACEMENTS; i++) {
    polyccl_plan_destroy(args.run.plan[i]);
  }
  pccl_program_args_free(&args.program);
  return status;
}

const pccl_tool pccl_run_tool = {
    .name = "run",
    .usage = "PROGRAM|PLAN|FOLDER [-p NAME=VALUE ...] [--ranks N] [--size MIN[:MAX[:FACTOR]]] [OPTION ...]",
    .summary = "Run a program or a plan on processes of this machine and check the results.",
    .description =
        "The command starts one process for each rank, fills the buffers with values that differ by rank "
        "and place, runs calls of each size, and checks every element of the results and the bytes around"
        " the buffers. It prints the table of nccl-tests; a time is the median over samples of the "
        "slowest rank. A program is compiled both out of place and in place; a plan has one placement. "
        "From a FOLDER all plans (NAME.plan and NAME.xml) are loaded, and each call uses the one that "
        "fits; POLYCCL_DEBUG=info prints which one, and why not the others.",
    .options = run_options,
    .run = run_command,
};
