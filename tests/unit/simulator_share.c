/* Link sharing, change by change, against max-min fairness worked out afresh by progressive filling. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/map.h"
#include "simulator/machine.h"

enum { FLOWS = 40, RESOURCES = 12, MOST_HOPS = 5 };

typedef struct world {
  sim s;
  int32_t way[FLOWS][MOST_HOPS];
  int hops[FLOWS];
  bool active[FLOWS];
  uint64_t seed;
} world;

static uint32_t draw(world *w, uint32_t below) { return (uint32_t)(pccl_mix64(w->seed++) >> 33) % below; }

static world *make_world(uint64_t seed) {
  world *w = calloc(1, sizeof *w);
  w->seed = seed;
  sim *s = &w->s;
  s->tbs = FLOWS;
  s->max_exact_updates = UINT64_MAX;
  s->resources = RESOURCES;
  s->resource = calloc(RESOURCES, sizeof *s->resource);
  s->member = calloc(RESOURCES * FLOWS, sizeof *s->member);
  s->flow = calloc(FLOWS, sizeof *s->flow);
  s->other = calloc(2 * FLOWS, sizeof *s->other);
  s->level = calloc(RESOURCES, sizeof *s->level);
  s->dirty = calloc(RESOURCES + 1, sizeof *s->dirty);
  s->end_dirty = calloc(RESOURCES + 1, sizeof *s->end_dirty);
  s->queue.heap = calloc(FLOWS + RESOURCES, sizeof *s->queue.heap);
  s->queue.place = malloc((FLOWS + RESOURCES) * sizeof *s->queue.place);
  memset(s->queue.place, -1, (FLOWS + RESOURCES) * sizeof *s->queue.place);
  for (int r = 0; r < RESOURCES; r++) {
    double contention = seed % 2 == 1 && r % 3 == 0 ? 0.1 : 0;
    s->level[r] = INFINITY;
    s->resource[r] = (sim_resource){.capacity = (double)(1 + draw(w, 9)), .contention = contention, .flow = r * FLOWS};
  }
  for (int f = 0; f < FLOWS; f++) {
    int first = (int)draw(w, RESOURCES), step = 1 + (int)draw(w, 2) * 4; /* 1 and 5: prime to 12 */
    w->hops[f] = 1 + (int)draw(w, MOST_HOPS);
    for (int h = 0; h < w->hops[f]; h++) {
      w->way[f][h] = (first + h * step) % RESOURCES;
    }
  }
  return w;
}

static void free_world(world *w) {
  pccl_sim_free(&w->s);
  free(w);
}

static double contended(const world *w, int r) {
  int flows = 0;
  double wanted = 0, capacity = w->s.resource[r].capacity;
  for (int f = 0; f < FLOWS; f++) {
    for (int h = 0; h < w->hops[f] && w->active[f]; h++) {
      if (w->way[f][h] == r) {
        flows++;
        wanted += w->s.flow[f].cap;
      }
    }
  }
  double excess = flows > 0 ? flows - ceil(capacity * flows / wanted - 1e-9) : 0;
  return excess > 0 ? capacity / (1 + w->s.resource[r].contention * excess) : capacity;
}

/* Raises all rates together; who meets a full resource or its cap stops. */
static void fill(const world *w, double *rate) {
  double left[RESOURCES];
  bool stopped[FLOWS];
  for (int r = 0; r < RESOURCES; r++) {
    left[r] = contended(w, r);
  }
  for (int f = 0; f < FLOWS; f++) {
    rate[f] = 0;
    stopped[f] = !w->active[f];
  }
  for (int going = 1; going;) {
    int on[RESOURCES] = {0};
    double step = INFINITY;
    going = 0;
    for (int f = 0; f < FLOWS; f++) {
      if (!stopped[f]) {
        going = 1;
        step = fmin(step, w->s.flow[f].cap - rate[f]);
        for (int h = 0; h < w->hops[f]; h++) {
          on[w->way[f][h]]++;
        }
      }
    }
    for (int r = 0; r < RESOURCES; r++) {
      step = on[r] > 0 ? fmin(step, left[r] / on[r]) : step;
    }
    for (int r = 0; going && r < RESOURCES; r++) {
      left[r] -= step * on[r];
    }
    for (int f = 0; f < FLOWS; f++) {
      if (!stopped[f]) {
        rate[f] += step;
        stopped[f] = rate[f] >= w->s.flow[f].cap - 1e-9;
        for (int h = 0; h < w->hops[f]; h++) {
          stopped[f] = stopped[f] || left[w->way[f][h]] < 1e-9;
        }
      }
    }
  }
}

static void rates_are_max_min_fair(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 60; seed++) {
    world *w = make_world(1000 * seed + seed % 2);
    for (int change = 0; change < 120; change++) {
      w->s.now += 1 + (int64_t)draw(w, 100);
      int at_once = 1 + (int)draw(w, 4);
      for (int i = 0; i < at_once; i++) {
        int f = (int)draw(w, FLOWS);
        if (w->active[f]) {
          pccl_sim_flow_remove(&w->s, f);
        } else {
          pccl_sim_flow_add(&w->s, f, 1e9, 0.25 * (1 + draw(w, 16)), w->way[f], w->hops[f]);
        }
        w->active[f] = !w->active[f];
      }
      pccl_sim_share(&w->s);
      double fair[FLOWS];
      fill(w, fair);
      for (int f = 0; f < FLOWS; f++) {
        if (w->active[f]) {
          assert_float_equal(w->s.flow[f].rate, fair[f], 1e-7);
        }
      }
    }
    free_world(w);
  }
}

/* The next to end in the queue is the next to end. */
static void queue_holds_the_first_end(void **state) {
  (void)state;
  world *w = make_world(7);
  for (int f = 0; f < FLOWS; f++) {
    pccl_sim_flow_add(&w->s, f, 1000.0 * (1 + draw(w, 50)), 1 + draw(w, 3), w->way[f], w->hops[f]);
    w->active[f] = true;
  }
  pccl_sim_share(&w->s);
  for (int left = FLOWS; left > 0;) {
    int64_t first = INT64_MAX;
    for (int f = 0; f < FLOWS; f++) {
      if (w->active[f] && w->s.flow[f].end < first) {
        first = w->s.flow[f].end;
      }
    }
    assert_true(w->s.queue.count > 0);
    assert_int_equal(w->s.queue.heap[0].time, first);
    w->s.now = first;
    for (int f = 0; f < FLOWS; f++) {
      if (w->active[f] && w->s.flow[f].end <= first) {
        pccl_sim_flow_remove(&w->s, f);
        w->active[f] = false;
        left--;
      }
    }
    pccl_sim_share(&w->s);
  }
  assert_int_equal(w->s.queue.count, 0);
  free_world(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rates_are_max_min_fair),
      cmocka_unit_test(queue_holds_the_first_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
