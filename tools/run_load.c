#include "run_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <polyccl/compile.h>
#include <polyccl/language.h>

#include "base/error.h"
#include "plan/plan.h"

static polyccl_result override_plan(const pccl_run_request *args, polyccl_plan *plan) {
  if (args->has_protocol) {
    plan->protocol = args->protocol;
  }
  if (args->has_order) {
    plan->order = (polyccl_loop_order)args->order;
  }
  if (args->has_order || args->depth > 0) {
    plan->fifo_depth = args->depth; /* 0: the verifier finds the minimum */
  }
  return POLYCCL_SUCCESS;
}

/* The placement that the program declares must compile. The other one may fail unless an option asks for it. */
static polyccl_result compile_both(pccl_run_request *args, const polyccl_program *program) {
  static const polyccl_placement placement[PCCL_RUN_PLACEMENTS] = {POLYCCL_OUT_OF_PLACE, POLYCCL_IN_PLACE};
  bool only = args->only_in_place || args->only_out_of_place;
  bool written = polyccl_program_get_config(program)->inplace;
  for (int i = 0; i < PCCL_RUN_PLACEMENTS; i++) {
    if ((i == 0 && args->only_in_place) || (i == 1 && args->only_out_of_place)) {
      continue;
    }
    polyccl_compile_options how = {.size = sizeof(polyccl_compile_options), .placement = placement[i]};
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

static polyccl_result load_program(pccl_run_request *args) {
  polyccl_param *params = calloc(args->program.count + 1, sizeof *params);
  if (params == NULL) {
    return pccl_no_memory("parameters");
  }
  size_t count = args->program.count;
  if (count > 0) {
    memcpy(params, args->program.params, count * sizeof *params);
  }
  char ranks[16];
  if (args->ranks > 0) {
    snprintf(ranks, sizeof ranks, "%d", args->ranks);
    params[count++] = (polyccl_param){"ranks", ranks};
  }
  polyccl_program *program = NULL;
  polyccl_result result =
      pccl_program_args_load("run", args->program.path, params, count, &args->program.accept, &program);
  free(params);
  if (result == POLYCCL_SUCCESS) {
    result = compile_both(args, program);
  }
  polyccl_program_destroy(program);
  return result;
}

static polyccl_result load_plan(pccl_run_request *args) {
  polyccl_plan *plan;
  if (args->program.count > 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s is a plan; it has no parameters (-p)", args->program.path);
  }
  PCCL_TRY(polyccl_plan_read(args->program.path, &plan));
  args->run.plan[plan->inplace] = plan;
  if (plan->inplace ? args->only_out_of_place : args->only_in_place) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s is %s", args->program.path,
                     plan->inplace ? "in place" : "out of place");
  }
  if (args->ranks > 0 && args->ranks != plan->ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s is for %d ranks, not %d", args->program.path, plan->ranks, args->ranks);
  }
  return POLYCCL_SUCCESS;
}

static bool is_folder(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static polyccl_result load_folder(pccl_run_request *args) {
  if (args->program.count > 0 || args->has_protocol || args->has_order || args->depth > 0 || args->generated ||
      args->code != NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID,
                     "%s is a folder; its plans run without -p, --protocol, --order, --depth and --generated",
                     args->program.path);
  }
  pccl_run_folder folder = {.path = args->program.path,
                            .ranks = args->ranks,
                            .has_collective = args->has_collective,
                            .collective = args->collective};
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

polyccl_result pccl_run_load(pccl_run_request *args) {
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
      PCCL_TRY(override_plan(args, args->run.plan[i]));
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
