/* Random programs through the compiler: whatever the author writes, in any placement, replication and number of
 * instances, the verifier must find the plan right. The model here keeps, per chunk, how often it holds each leaf. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <polyccl/compile.h>
#include <polyccl/topology.h>

#include "base/map.h"

enum { RANKS = 5, CHUNKS = 4, BUFFERS = 3, ROOM = 8, LEAVES = RANKS * CHUNKS, OPERATIONS = 30, MOST_COPIES = 40 };

typedef struct content {
  bool held;
  int times[LEAVES];
} content;

typedef struct operation {
  bool reduce;
  int from, from_buffer, from_index, to, to_buffer, to_index, size, parallel;
} operation;

typedef struct scenario {
  uint64_t seed;
  int ranks, chunks;
  bool inplace;
  operation operations[OPERATIONS];
  int count;
  content chunk[RANKS][BUFFERS][ROOM];
} scenario;

static unsigned draw(scenario *s, unsigned below) {
  s->seed = pccl_mix64(s->seed);
  return (unsigned)(s->seed >> 33) % below;
}

/* In place, input and output are one. */
static content *at(scenario *s, int rank, int buffer, int index) {
  return &s->chunk[rank][s->inplace && buffer == POLYCCL_OUTPUT ? POLYCCL_INPUT : buffer][index];
}

static bool apply(scenario *s, const operation *o) {
  bool same_buffer = o->from_buffer == o->to_buffer ||
                     (s->inplace && o->from_buffer < POLYCCL_SCRATCH && o->to_buffer < POLYCCL_SCRATCH);
  if (o->from == o->to && same_buffer && abs(o->from_index - o->to_index) < o->size) {
    return false;
  }
  for (int i = 0; i < o->size; i++) {
    content *from = at(s, o->from, o->from_buffer, o->from_index + i);
    content *to = at(s, o->to, o->to_buffer, o->to_index + i);
    int total = 0;
    for (int k = 0; k < LEAVES; k++) {
      total += from->times[k] + (o->reduce ? to->times[k] : 0);
    }
    if (!from->held || (o->reduce && !to->held) || total > MOST_COPIES) {
      return false;
    }
  }
  for (int i = 0; i < o->size; i++) {
    content *from = at(s, o->from, o->from_buffer, o->from_index + i);
    content *to = at(s, o->to, o->to_buffer, o->to_index + i);
    for (int k = 0; k < LEAVES; k++) {
      to->times[k] = from->times[k] + (o->reduce ? to->times[k] : 0);
    }
    to->held = true;
  }
  return true;
}

static void invent(scenario *s) {
  s->ranks = 1 + (int)draw(s, RANKS);
  s->chunks = 1 + (int)draw(s, CHUNKS);
  s->inplace = draw(s, 2) != 0;
  for (int r = 0; r < s->ranks; r++) {
    for (int c = 0; c < s->chunks; c++) {
      content *input = at(s, r, POLYCCL_INPUT, c);
      input->held = true;
      input->times[r * CHUNKS + c] = 1;
    }
  }
  for (int tries = 0; tries < 400 && s->count < OPERATIONS; tries++) {
    operation o = {.reduce = draw(s, 3) == 0,
                   .from = (int)draw(s, (unsigned)s->ranks),
                   .to = (int)draw(s, (unsigned)s->ranks),
                   .from_buffer = (int)draw(s, BUFFERS),
                   .to_buffer = (int)draw(s, BUFFERS),
                   .size = 1 + (int)draw(s, 3),
                   .parallel = draw(s, 4) == 0 ? 2 : 1};
    int from_room = (o.from_buffer == POLYCCL_SCRATCH ? ROOM : s->chunks) - o.size;
    int to_room = (o.to_buffer == POLYCCL_SCRATCH ? ROOM : s->chunks) - o.size;
    if (from_room < 0 || to_room < 0) {
      continue;
    }
    o.from_index = (int)draw(s, (unsigned)from_room + 1);
    o.to_index = (int)draw(s, (unsigned)to_room + 1);
    if (apply(s, &o)) {
      s->operations[s->count++] = o;
    }
  }
}

static polyccl_program *write_program(scenario *s, int instances, polyccl_replication replication, bool no_fusion) {
  polyccl_program_config config = {.size = sizeof(polyccl_program_config),
                                   .collective = POLYCCL_CUSTOM,
                                   .ranks = s->ranks,
                                   .chunks = s->chunks,
                                   .inplace = s->inplace,
                                   .instances = instances,
                                   .replication = replication,
                                   .no_fusion = no_fusion};
  polyccl_program *p = NULL;
  assert_int_equal(polyccl_program_create(&config, &p), POLYCCL_SUCCESS);
  for (int r = 0; r < s->ranks; r++) {
    for (int c = 0; c < s->chunks; c++) {
      polyccl_leaf leaves[MOST_COPIES];
      int count = 0;
      content *want = at(s, r, POLYCCL_OUTPUT, c);
      for (int k = 0; k < LEAVES && want->held; k++) {
        for (int t = 0; t < want->times[k]; t++) {
          leaves[count++] = (polyccl_leaf){k / CHUNKS, k % CHUNKS};
        }
      }
      if (count > 0) {
        assert_int_equal(polyccl_program_post(p, r, c, leaves, count), POLYCCL_SUCCESS);
      }
    }
  }
  int scratch;
  assert_int_equal(polyccl_program_scratch(p, "tmp", &scratch), POLYCCL_SUCCESS);
  assert_int_equal(scratch, POLYCCL_SCRATCH);
  for (int i = 0; i < s->count; i++) {
    const operation *o = &s->operations[i];
    polyccl_location line = {"random", i + 1};
    polyccl_ref from, to, done;
    polyccl_result result = polyccl_program_parallel_begin(p, o->parallel, line);
    result = result ? result : polyccl_program_chunk(p, o->from, o->from_buffer, o->from_index, o->size, line, &from);
    if (o->reduce) {
      result = result ? result : polyccl_program_chunk(p, o->to, o->to_buffer, o->to_index, o->size, line, &to);
      result = result ? result : polyccl_program_reduce(p, &to, &from, POLYCCL_NO_HINTS, line, &done);
    } else {
      result = result ? result
                      : polyccl_program_copy(p, &from, o->to, o->to_buffer, o->to_index, POLYCCL_NO_HINTS, line, &done);
    }
    result = result ? result : polyccl_program_parallel_end(p);
    if (result != POLYCCL_SUCCESS) {
      fail_msg("%s", polyccl_last_error());
    }
  }
  return p;
}

static void show(const scenario *s) {
  printf("ranks %d chunks %d inplace %d\n", s->ranks, s->chunks, s->inplace);
  for (int i = 0; i < s->count; i++) {
    const operation *o = &s->operations[i];
    printf("%d: %s %d.%c%d -> %d.%c%d x%d par %d\n", i + 1, o->reduce ? "reduce" : "copy", o->from,
           "ios"[o->from_buffer], o -> from_index, o -> to, "ios"[o->to_buffer], o -> to_index, o -> size,
           o -> parallel);
  }
}

static void compile_all_ways(scenario *s, const polyccl_topology *topology, uint64_t seed) {
  for (int way = 0; way < 11; way++) {
    polyccl_program *p = write_program(s, 1 + way % 3, way & 2 ? POLYCCL_BATCHED : POLYCCL_INTERLEAVED, way == 7);
    polyccl_compile_options options = {.size = sizeof(polyccl_compile_options),
                                       .placement = s->inplace && way & 1 ? POLYCCL_OUT_OF_PLACE : POLYCCL_AS_WRITTEN};
    if (way > 7) {
      options.policy = POLYCCL_POLICY_STATE;
      options.schedule = way == 8 ? POLYCCL_SCHEDULE_ROUND_ROBIN : POLYCCL_SCHEDULE_HPDS;
      options.topology = topology;
      options.max_tbs = way == 10 ? 1 : 0;
    }
    polyccl_plan *plan = NULL;
    if (polyccl_compile(p, &options, &plan) != POLYCCL_SUCCESS) {
      show(s);
      fail_msg("seed %llu way %d: %s", (unsigned long long)seed, way, polyccl_last_error());
    }
    polyccl_plan_destroy(plan);
    polyccl_program_destroy(p);
  }
}

static void random_programs_compile_to_right_plans(void **state) {
  (void)state;
  const char *first = getenv("POLYCCL_TEST_SEED"), *many = getenv("POLYCCL_TEST_SEEDS");
  uint64_t begin = first != NULL ? strtoull(first, NULL, 10) : 1;
  uint64_t count = many != NULL ? strtoull(many, NULL, 10) : 400;
  polyccl_topology *topology = NULL;
  assert_int_equal(polyccl_topology_open("fully:5", &topology), POLYCCL_SUCCESS);
  for (uint64_t seed = begin; seed < begin + count; seed++) {
    scenario *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->seed = seed;
    invent(s);
    compile_all_ways(s, topology, seed);
    free(s);
  }
  polyccl_topology_destroy(topology);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs_compile_to_right_plans)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
