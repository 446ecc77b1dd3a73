/* Programs from bytes, and what each stage works for them, for the fuzzer whose objective is work (fuzz_work.c) and the
 * climber (work_climb.c). A record of the input is a loop of operations, so that few bytes make programs of thousands
 * of regular messages, which is where passes that are not linear show.
 *
 * A stage may take a fixed amount of work (work_count.h) and so much for each unit of its input: chunks, operations,
 * steps, bytes of text. */
#ifndef FUZZ_WORK_H
#define FUZZ_WORK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/compile.h>
#include <polyccl/simulator.h>

#include "language/text.h"
#include "program/program.h"
#include "view/page.h"
#include "view/pictures.h"
#include "view/simulated.h"
#include "work_count.h"

typedef enum work_stage {
  WORK_BUILD,
  WORK_LUA,
  WORK_CHECK,
  WORK_COMPILE,
  WORK_HPDS,
  WORK_ROUND_ROBIN,
  WORK_BEST,
  WORK_WRITE,
  WORK_READ,
  WORK_WRITE_XML,
  WORK_READ_XML,
  WORK_VERIFY,
  WORK_VERIFY_HPDS,
  WORK_SIMULATE,
  WORK_PICTURE,
  WORK_PAGE,
  WORK_STAGES
} work_stage;

/* Blocks for a unit of each stage, about twice the most that is known. HPDS sorts; a simulation shares links out anew
 * whenever a message starts or ends; a step of a picture is several lines of text; the first look of schedule best
 * compiles and simulates the program in some tens of ways, cut in up to 64 parts. */
static const struct {
  const char *name;
  double per_unit;
} work_stage_of[WORK_STAGES] = {[WORK_BUILD] = {"build", 300},
                                [WORK_LUA] = {"lua", 200},
                                [WORK_CHECK] = {"check", 200},
                                [WORK_COMPILE] = {"connection", 2000},
                                [WORK_HPDS] = {"hpds", 2500},
                                [WORK_ROUND_ROBIN] = {"round-robin", 2000},
                                [WORK_BEST] = {"best", 1e6},
                                [WORK_WRITE] = {"write", 400},
                                [WORK_READ] = {"read", 100},
                                [WORK_WRITE_XML] = {"write-xml", 1500},
                                [WORK_READ_XML] = {"read-xml", 50},
                                [WORK_VERIFY] = {"verify", 400},
                                [WORK_VERIFY_HPDS] = {"verify-hpds", 400},
                                [WORK_SIMULATE] = {"simulate", 4000},
                                [WORK_PICTURE] = {"picture", 6000},
                                [WORK_PAGE] = {"page", 2500}};

static const double work_fixed = 1e6;

/* Schedule best tries programs of up to so many units only: one of 8192 takes seconds. */
static const double work_max_best = 1024;

typedef struct work {
  double done[WORK_STAGES], units[WORK_STAGES]; /* units 0: not reached */
} work;

/* ---- programs ---- */

enum { WORK_HEAD = 6, WORK_RECORD = 14, WORK_OPERATIONS = 1 << 13, WORK_CELLS = 1 << 18 };

static int work_wrap(int64_t value, int below) {
  int64_t rest = below > 0 ? value % below : 0;
  return (int)(rest < 0 ? rest + below : rest);
}

static polyccl_hints work_hints(unsigned byte, int k) {
  polyccl_hints hints = POLYCCL_NO_HINTS;
  if ((byte & 7) == 1) {
    hints.channel = (int)(byte >> 3);
  } else if ((byte & 7) == 2) {
    hints.channel = k;
  } else if ((byte & 7) == 3) {
    hints.send_tb = hints.recv_tb = k % (1 + (int)(byte >> 3) * 64);
  }
  return hints;
}

static void work_say_chunk(FILE *lua, const polyccl_ref *ref) {
  fprintf(lua, "chunk(%d, %s, %d, %d)", ref->rank, ref->buffer == POLYCCL_INPUT ? "input" : "s", ref->index, ref->size);
}

/* The operation as a line of a Lua program. */
static void work_say(FILE *lua, bool reduces, const polyccl_ref *source, const polyccl_ref *target,
                     const polyccl_hints *hints) {
  work_say_chunk(lua, reduces ? target : source);
  if (reduces) {
    fputs(":reduce(", lua);
    work_say_chunk(lua, source);
  } else {
    fprintf(lua, ":copy(%d, %s, %d", target->rank, target->buffer == POLYCCL_INPUT ? "input" : "s", target->index);
  }
  if (hints->channel >= 0) {
    fprintf(lua, ", {ch = %d}", hints->channel);
  }
  fputs(")\n", lua);
}

/* Operations that the builder refuses are left out. */
static int work_record(polyccl_program *p, const uint8_t *record, int left, FILE *lua) {
  const polyccl_program_config *config = polyccl_program_get_config(p);
  int repeat = (1 + record[8] % 16) << (record[8] / 16 % 12), done = 0;
  polyccl_ref last = {0};
  for (int k = 0; k < repeat && k < left; k++, done++) {
    polyccl_location at = {"work", 1 + k};
    int size = 1 + record[7] % 8;
    size = size < config->chunks ? size : config->chunks;
    int room = config->chunks - size + 1;
    int from = work_wrap(record[1] + (int64_t)k * (int8_t)record[9], config->ranks);
    int to = work_wrap(record[2] + (int64_t)k * (int8_t)record[10], config->ranks);
    int i = work_wrap(record[3] + 256 * record[4] + (int64_t)k * (int8_t)record[11], room);
    int j = work_wrap(record[5] + 256 * record[6] + (int64_t)k * (int8_t)record[12], room);
    polyccl_hints hints = work_hints(record[13], k);
    polyccl_ref source, target;
    if (record[0] % 4 == 2 && last.size > 0) {
      source = last; /* a chain */
    } else if (polyccl_program_chunk(p, from, POLYCCL_INPUT, i, size, at, &source) != POLYCCL_SUCCESS) {
      continue;
    }
    polyccl_result result = POLYCCL_ERROR_INVALID;
    bool reduces = record[0] % 4 == 1;
    if (reduces) {
      if (polyccl_program_chunk(p, to, POLYCCL_INPUT, j, size, at, &target) == POLYCCL_SUCCESS) {
        result = polyccl_program_reduce(p, &target, &source, hints, at, &last);
      }
    } else if (record[0] % 4 == 3) {
      result = polyccl_program_copy(p, &source, to, POLYCCL_SCRATCH, -1, hints, at, &last);
    } else {
      result = polyccl_program_copy(p, &source, to, POLYCCL_INPUT, j, hints, at, &last);
    }
    if (result == POLYCCL_SUCCESS) {
      work_say(lua, reduces, &source, &last, &hints);
    }
  }
  return done;
}

/* NULL: too short, or refused. `lua` gets the program as text. */
static polyccl_program *work_program(const uint8_t *data, size_t size, FILE *lua) {
  if (size < WORK_HEAD + WORK_RECORD) {
    return NULL;
  }
  polyccl_program_config config = {.size = sizeof(polyccl_program_config),
                                   .collective = POLYCCL_CUSTOM,
                                   .ranks = 1 + data[0] % 64,
                                   .chunks = 1 + (data[1] + 256 * data[2]) % 8192,
                                   .instances = 1 + (data[3] % 8 == 7 ? data[3] / 8 : 0),
                                   .replication = data[4] % 2 ? POLYCCL_BATCHED : POLYCCL_INTERLEAVED,
                                   .inplace = data[4] % 4 < 2,
                                   .no_fusion = data[4] % 8 == 7};
  int scratch;
  polyccl_program *p = NULL;
  if ((int64_t)config.ranks * config.chunks * config.instances > WORK_CELLS ||
      polyccl_program_create(&config, &p) != POLYCCL_SUCCESS) {
    return NULL;
  }
  if (polyccl_program_scratch(p, "scratch", &scratch) != POLYCCL_SUCCESS) {
    polyccl_program_destroy(p);
    return NULL;
  }
  fprintf(lua, "allreduce {ranks = %d, chunks = %d, inplace = true}\ns = scratch(\"scratch\")\n", config.ranks,
          config.chunks);
  int left = WORK_OPERATIONS / config.instances;
  for (size_t at = WORK_HEAD; at + WORK_RECORD <= size && left > 0; at += WORK_RECORD) {
    left -= work_record(p, data + at, left, lua);
  }
  return p;
}

/* ---- stages ---- */

#define WORK_RUN(w, stage, amount, call)               \
  do {                                                 \
    uint64_t start_ = work_blocks;                     \
    (call);                                            \
    (w)->done[stage] = (double)(work_blocks - start_); \
    (w)->units[stage] = (double)(amount);              \
  } while (0)

/* Writes the plan and reads it again. */
static void work_trip(work *w, const polyccl_plan *plan, double parts, polyccl_format format, work_stage write,
                      work_stage read) {
  char *text = NULL;
  size_t length = 0;
  FILE *memory = open_memstream(&text, &length);
  polyccl_result result;
  WORK_RUN(w, write, parts, result = polyccl_plan_write(plan, format, memory));
  fclose(memory);
  polyccl_plan *again = NULL;
  if (result == POLYCCL_SUCCESS) {
    WORK_RUN(w, read, length, (void)polyccl_plan_parse("work", text, length, &again));
  }
  polyccl_plan_destroy(again);
  free(text);
}

static void work_page(work *w, const polyccl_plan *plan, const polyccl_topology *topology, double parts,
                      const polyccl_simulation *simulation) {
  polyccl_trace *trace = NULL;
  char *text = NULL;
  size_t length = 0;
  FILE *memory = open_memstream(&text, &length);
  uint64_t start = work_blocks;
  if (pccl_trace_of_simulation(simulation, plan, topology, &trace) == POLYCCL_SUCCESS) {
    const polyccl_trace *traces[] = {trace};
    (void)pccl_page_write("work", NULL, 0, traces, 1, memory);
  }
  w->done[WORK_PAGE] = (double)(work_blocks - start);
  w->units[WORK_PAGE] = parts;
  polyccl_trace_destroy(trace);
  fclose(memory);
  free(text);
}

/* Chunks that steps move, and chunks of outputs, each of which is compared with what it must hold. */
static double work_chunks(const polyccl_plan *plan) {
  double chunks = 0;
  for (size_t i = 0; i < plan->steps; i++) {
    chunks += plan->step[i].count;
  }
  for (int rank = 0; rank < plan->ranks; rank++) {
    int32_t input, output;
    polyccl_plan_shape(plan, rank, &input, &output);
    chunks += input + output;
  }
  return chunks;
}

static double work_parts(const polyccl_plan *plan) {
  return (double)(plan->steps + plan->waits + plan->tbs + plan->connections + plan->posts + plan->locations);
}

static void work_on_plan(work *w, const polyccl_plan *plan, const polyccl_topology *topology) {
  double parts = work_parts(plan);
  work_trip(w, plan, parts, POLYCCL_FORMAT_PLAN, WORK_WRITE, WORK_READ);
  work_trip(w, plan, parts, POLYCCL_FORMAT_XML, WORK_WRITE_XML, WORK_READ_XML);
  polyccl_sim_options options = POLYCCL_SIM_DEFAULTS;
  options.bytes = 1 << 20;
  options.micro_batches = 2;
  options.fifo_depth = 64;
  options.keep = POLYCCL_SIM_TIMELINE | POLYCCL_SIM_LINK_USE | POLYCCL_SIM_CRITICAL;
  polyccl_simulation *simulation = NULL;
  polyccl_result result;
  WORK_RUN(w, WORK_SIMULATE, 2 * parts, result = polyccl_simulate(plan, topology, &options, &simulation));
  if (result == POLYCCL_SUCCESS) {
    work_page(w, plan, topology, 2 * parts, simulation);
  }
  polyccl_simulation_destroy(simulation);
  pccl_svg svg = {0};
  WORK_RUN(w, WORK_PICTURE, parts, result = pccl_picture_plan(&svg, plan, -1));
  pccl_text_free(&svg.out);
}

static void work_compile(work *w, const polyccl_program *p, const polyccl_topology *topology, work_stage stage,
                         double units) {
  polyccl_compile_options how = {.size = sizeof(polyccl_compile_options), .no_verify = true, .topology = topology};
  how.policy = stage == WORK_COMPILE ? POLYCCL_POLICY_CONNECTION : POLYCCL_POLICY_STATE;
  how.schedule = stage == WORK_ROUND_ROBIN ? POLYCCL_SCHEDULE_ROUND_ROBIN
                 : stage == WORK_BEST      ? POLYCCL_SCHEDULE_BEST
                                           : POLYCCL_SCHEDULE_HPDS;
  how.seconds = 1e-9; /* of schedule best: its first look, at a size of one micro-batch */
  how.bytes = 1 << 16;
  polyccl_plan *plan = NULL;
  polyccl_result result;
  WORK_RUN(w, stage, units, result = polyccl_compile(p, &how, &plan));
  if (result == POLYCCL_SUCCESS && stage == WORK_COMPILE) {
    WORK_RUN(w, WORK_VERIFY, work_parts(plan) + work_chunks(plan), (void)polyccl_plan_verify(plan, NULL));
    work_on_plan(w, plan, topology);
  } else if (result == POLYCCL_SUCCESS && stage == WORK_HPDS) {
    WORK_RUN(w, WORK_VERIFY_HPDS, work_parts(plan) + work_chunks(plan), (void)polyccl_plan_verify(plan, NULL));
  }
  polyccl_plan_destroy(plan);
}

static void work_on_program(work *w, const polyccl_program *p, const polyccl_topology *topology) {
  double cells = (double)p->cells * p->config.ranks + (double)p->scratch_chunks;
  w->units[WORK_BUILD] = cells + (double)p->moved;
  polyccl_result result;
  WORK_RUN(w, WORK_CHECK, cells + (double)p->moved, result = polyccl_program_check(p, NULL));
  if (result == POLYCCL_SUCCESS) {
    double units = (cells + (double)p->moved) * p->refine;
    for (work_stage stage = WORK_COMPILE; stage <= WORK_BEST; stage++) {
      if (stage != WORK_BEST || units <= work_max_best) {
        work_compile(w, p, topology, stage, units);
      }
    }
  }
}

static work work_of(const uint8_t *data, size_t size, const polyccl_topology *topology) {
  work w = {0};
  char *text = NULL;
  size_t length = 0;
  FILE *lua = open_memstream(&text, &length);
  uint64_t start = work_blocks;
  polyccl_program *p = work_program(data, size, lua);
  double built = (double)(work_blocks - start);
  fclose(lua);
  if (p != NULL) {
    w.done[WORK_BUILD] = built;
    work_on_program(&w, p, topology);
    polyccl_program *again = NULL;
    WORK_RUN(&w, WORK_LUA, (double)length + (double)p->cells * p->config.ranks + (double)p->moved,
             (void)pccl_program_load_text("work.lua", text, length, NULL, NULL, 0, &again));
    polyccl_program_destroy(again);
  }
  polyccl_program_destroy(p);
  free(text);
  return w;
}

/* The share of its allowance that a stage took. */
static double work_share(const work *w, int stage) {
  double allowance = work_slack * (work_fixed + work_stage_of[stage].per_unit * w->units[stage]);
  return w->units[stage] > 0 ? w->done[stage] / allowance : 0;
}

static polyccl_topology *work_topology(void) {
  polyccl_topology *topology = NULL;
  if (polyccl_topology_open("switch:64", &topology) != POLYCCL_SUCCESS) {
    fprintf(stderr, "%s\n", polyccl_last_error());
    abort();
  }
  return topology;
}

#endif
