/* Programs from bytes, and what each stage works for them, for the fuzzer whose objective is work (fuzz_work.c) and the
 * climber (work_climb.c). A record of the input is a loop of operations, so that few bytes make programs of thousands
 * of regular messages, which is where passes that are not linear show.
 *
 * Work is counted in instructions of this thread where the kernel counts them, which is the same in every run, else in
 * processor time. A stage may take a fixed amount and so much for each unit of its input: chunks, operations, steps. */
#ifndef FUZZ_WORK_H
#define FUZZ_WORK_H

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <polyccl/compile.h>
#include <polyccl/simulator.h>

#include "program/program.h"
#include "view/pictures.h"

typedef enum work_stage {
  WORK_CHECK,
  WORK_COMPILE,
  WORK_HPDS,
  WORK_ROUND_ROBIN,
  WORK_WRITE,
  WORK_VERIFY,
  WORK_SIMULATE,
  WORK_VIEW,
  WORK_STAGES
} work_stage;

static const char *const work_names[WORK_STAGES] = {"check", "connection", "hpds",     "round-robin",
                                                    "write", "verify",     "simulate", "view"};

typedef struct work {
  double done[WORK_STAGES], units[WORK_STAGES]; /* units 0: not reached */
} work;

#if defined(__SANITIZE_ADDRESS__)
#define WORK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WORK_SANITIZED 1
#endif
#endif
#ifdef WORK_SANITIZED
static const double work_slack = 8;
#else
static const double work_slack = 1;
#endif

/* Instructions: so many for any input, so many for a unit of each stage. `order` may try 64 times; a step of a picture
 * is several lines of text; a simulation shares links out anew whenever a message starts or ends. */
static const double work_fixed = 2e7;
static const double work_per_unit[WORK_STAGES] = {2e4, 4e4, 2e4, 2e4, 2e4, 2e4, 1.6e5, 8e4};

/* ---- the counter ---- */

static int work_counter(void) {
  static int counter = -2;
  if (counter == -2) {
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_HW_INSTRUCTIONS,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    counter = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
  }
  return counter;
}

static double work_now(void) {
  uint64_t count;
  if (work_counter() >= 0 && read(work_counter(), &count, sizeof count) == (ssize_t)sizeof count) {
    return (double)count;
  }
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return ((double)now.tv_sec * 1e9 + (double)now.tv_nsec) * 2; /* about what a core does */
}

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

/* Operations that the builder refuses are left out. */
static int work_record(polyccl_program *p, const uint8_t *record, int left) {
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
    if (record[0] % 4 == 1) {
      if (polyccl_program_chunk(p, to, POLYCCL_INPUT, j, size, at, &target) == POLYCCL_SUCCESS) {
        (void)polyccl_program_reduce(p, &target, &source, hints, at, &last);
      }
    } else if (record[0] % 4 == 3) {
      (void)polyccl_program_copy(p, &source, to, POLYCCL_SCRATCH, -1, hints, at, &last);
    } else {
      (void)polyccl_program_copy(p, &source, to, POLYCCL_INPUT, j, hints, at, &last);
    }
  }
  return done;
}

/* NULL: too short, or refused. */
static polyccl_program *work_program(const uint8_t *data, size_t size) {
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
  int left = WORK_OPERATIONS / config.instances;
  for (size_t at = WORK_HEAD; at + WORK_RECORD <= size && left > 0; at += WORK_RECORD) {
    left -= work_record(p, data + at, left);
  }
  return p;
}

/* ---- stages ---- */

#define WORK_RUN(w, stage, amount, call)    \
  do {                                      \
    double start_ = work_now();             \
    (call);                                 \
    (w)->done[stage] = work_now() - start_; \
    (w)->units[stage] = (amount);           \
  } while (0)

static void work_on_plan(work *w, const polyccl_plan *plan, const polyccl_topology *topology) {
  char *text = NULL;
  size_t length = 0;
  FILE *memory = open_memstream(&text, &length);
  polyccl_result result = POLYCCL_SUCCESS;
  double parts = (double)(plan->steps + plan->waits + plan->tbs + plan->connections + plan->posts + plan->locations);
  double chunks = 0;
  for (size_t i = 0; i < plan->steps; i++) {
    chunks += plan->step[i].count;
  }
  WORK_RUN(w, WORK_WRITE, parts, result = polyccl_plan_write(plan, POLYCCL_FORMAT_PLAN, memory));
  fclose(memory);
  free(text);
  if (result == POLYCCL_SUCCESS && getenv("WORK_VERIFY") != NULL) {
    WORK_RUN(w, WORK_VERIFY, parts + chunks, result = polyccl_plan_verify(plan, NULL));
  }
  polyccl_sim_options options = POLYCCL_SIM_DEFAULTS;
  options.bytes = 1 << 20;
  options.micro_batches = 2;
  options.fifo_depth = 64;
  options.keep = POLYCCL_SIM_TIMELINE | POLYCCL_SIM_LINK_USE | POLYCCL_SIM_CRITICAL;
  polyccl_simulation *simulation = NULL;
  WORK_RUN(w, WORK_SIMULATE, 2 * parts, result = polyccl_simulate(plan, topology, &options, &simulation));
  polyccl_simulation_destroy(simulation);
  pccl_svg svg = {0};
  WORK_RUN(w, WORK_VIEW, parts, result = pccl_picture_plan(&svg, plan, -1));
  pccl_text_free(&svg.out);
}

static void work_compile(work *w, const polyccl_program *p, const polyccl_topology *topology, work_stage stage,
                         double units) {
  polyccl_compile_options how = {.size = sizeof(polyccl_compile_options), .no_verify = true, .topology = topology};
  how.policy = stage == WORK_COMPILE ? POLYCCL_POLICY_CONNECTION : POLYCCL_POLICY_STATE;
  how.schedule = stage == WORK_ROUND_ROBIN ? POLYCCL_SCHEDULE_ROUND_ROBIN : POLYCCL_SCHEDULE_HPDS;
  polyccl_plan *plan = NULL;
  polyccl_result result;
  WORK_RUN(w, stage, units, result = polyccl_compile(p, &how, &plan));
  if (result == POLYCCL_SUCCESS && stage == WORK_COMPILE) {
    work_on_plan(w, plan, topology);
  }
  polyccl_plan_destroy(plan);
}

static work work_of(const uint8_t *data, size_t size, const polyccl_topology *topology) {
  work w = {0};
  polyccl_program *p = work_program(data, size);
  if (p == NULL) {
    return w;
  }
  double cells = (double)p->cells * p->config.ranks + (double)p->scratch_chunks;
  polyccl_result result;
  WORK_RUN(&w, WORK_CHECK, cells + (double)p->moved, result = polyccl_program_check(p, NULL));
  if (result == POLYCCL_SUCCESS) {
    double units = (cells + (double)p->moved) * p->refine;
    work_compile(&w, p, topology, WORK_COMPILE, units);
    work_compile(&w, p, topology, WORK_HPDS, units);
    work_compile(&w, p, topology, WORK_ROUND_ROBIN, units);
  }
  polyccl_program_destroy(p);
  return w;
}

/* The share of its allowance that a stage took. */
static double work_share(const work *w, int stage) {
  return w->units[stage] > 0 ? w->done[stage] / (work_slack * (work_fixed + work_per_unit[stage] * w->units[stage]))
                             : 0;
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
