/* The simulator against what can be worked out by hand: single transfers, shared links, credit, waits, both loop
 * orders, rings; conservation of time and bytes; determinism; plans that cannot end; sizes at the edge. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <polyccl/simulator.h>

/* Model X: copies 10 GB/s, reduces 5 GB/s; a step costs 1 us, a message 2 us besides the links, a call 5 us. */
#define MODEL                                                                                                          \
  "{\"polyccl_topology\":1,\"name\":\"test\",\"source\":\"made up\",\"models\":[{\"name\":\"X\",\"vendor\":\"acme\","  \
  "\"reduce_bandwidth\":5,\"local_bandwidth\":1000,\"contention\":0,\"protocols\":{\"Simple\":{\"copy_bandwidth\":10," \
  "\"efficiency\":1,\"step_cost\":1,\"latency\":2,\"network_latency\":0,\"launch_cost\":5,\"slot_bytes\":1000000,"     \
  "\"fifo_depth\":2},\"LL\":{\"copy_bandwidth\":4,\"efficiency\":0.5,\"step_cost\":0.25,\"latency\":0,"                \
  "\"network_latency\":0,\"launch_cost\":5,\"slot_bytes\":1000,\"fifo_depth\":8}}}],\"machines\":[\"m\"],"

/* Devices d0 .. around a switch, each port `gbps`, 0.5 us a link. */
static polyccl_topology *star(int devices, double gbps) {
  char *text = malloc(65536);
  int at = snprintf(text, 65536, MODEL "\"nodes\":[{\"name\":\"sw\",\"kind\":\"switch\",\"machine\":\"m\"}");
  for (int i = 0; i < devices; i++) {
    at += snprintf(text + at, (size_t)(65536 - at),
                   ",{\"name\":\"d%d\",\"kind\":\"device\",\"machine\":\"m\",\"model\":\"X\",\"rank\":%d}", i, i);
  }
  at += snprintf(text + at, (size_t)(65536 - at), "],\"links\":[");
  for (int i = 0; i < devices; i++) {
    at += snprintf(text + at, (size_t)(65536 - at), "%s{\"between\":[\"d%d\",\"sw\"],\"bandwidth\":%g,\"latency\":0.5}",
                   i > 0 ? "," : "", i, gbps);
  }
  at += snprintf(text + at, (size_t)(65536 - at), "]}");
  polyccl_topology *t = NULL;
  if (polyccl_topology_parse("test", text, (size_t)at, &t) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  free(text);
  return t;
}

static polyccl_plan *plan_of(const char *text) {
  polyccl_plan *plan = NULL;
  if (polyccl_plan_parse("test.plan", text, strlen(text), &plan) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  return plan;
}

static polyccl_simulation *simulate(const polyccl_plan *plan, const polyccl_topology *t, polyccl_sim_options options) {
  polyccl_simulation *s = NULL;
  if (polyccl_simulate(plan, t, &options, &s) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  return s;
}

static polyccl_sim_options of_bytes(uint64_t bytes, int batches) {
  polyccl_sim_options options = POLYCCL_SIM_DEFAULTS;
  options.bytes = bytes;
  options.micro_batches = batches;
  options.keep = POLYCCL_SIM_CRITICAL | POLYCCL_SIM_TIMELINE | POLYCCL_SIM_LINK_USE;
  return options;
}

#define assert_near(value, expected) assert_float_equal((value), (expected), 1e-5)

static polyccl_simulation *run_text(const char *text, const polyccl_topology *t, polyccl_sim_options options) {
  polyccl_plan *plan = plan_of(text);
  polyccl_simulation *s = simulate(plan, t, options);
  polyccl_plan_destroy(plan);
  return s;
}

#define SENDRECV                                                                                                       \
  "polyccl-plan 1\nname \"sendrecv\"\ncollective sendrecv\nranks 2\nchunks 1\nroot 0\npeer 1\nfile 0 \"a.lua\"\nrank " \
  "0 "                                                                                                                 \
  "scratch 0\ntb\nsend i0 x1 to 1.0 at 0:7\nrank 1 scratch 0\ntb\nrecv o0 x1 from 0.0 at 0:8\n"

/* Launch 5; send 1 + B/10000; links 2 x 0.5 + message 2; receive 1 + B/10000. */
static void one_transfer(void **state) {
  (void)state;
  polyccl_topology *t = star(2, 50);
  polyccl_simulation *s = run_text(SENDRECV, t, of_bytes(100000, 1));
  assert_near(s->time, 5 + 1 + 10 + 3 + 1 + 10);
  assert_near(s->launch, 5);
  assert_near(s->algorithm, 100000 / 30.0 / 1e3);
  assert_near(s->bus, s->algorithm);
  assert_near(s->tb[0].time[POLYCCL_SIM_BUSY], 11);
  assert_near(s->tb[0].time[POLYCCL_SIM_IDLE], 19);
  assert_near(s->tb[1].time[POLYCCL_SIM_BUSY], 11);
  assert_near(s->tb[1].time[POLYCCL_SIM_WAIT_DATA], 14);
  assert_near(s->tb[1].time[POLYCCL_SIM_IDLE], 5);
  assert_int_equal(s->executions, 2);
  assert_int_equal(s->events, 0);
  /* The path: the send, then the receive that waited for it; each line with what it stands for. */
  assert_int_equal(s->criticals, 2);
  assert_int_equal(s->critical[0].rank, 0);
  assert_int_equal(s->critical[1].rank, 1);
  assert_int_equal(s->critical[1].cause, POLYCCL_SIM_WAIT_DATA);
  assert_int_equal(s->lines, 2);
  assert_int_equal(s->line[0].at.line, 8);
  assert_near(s->line[0].time, 14);
  assert_int_equal(s->line[1].at.line, 7);
  assert_near(s->line[1].time, 11);
  polyccl_simulation_destroy(s);
  /* A link slower than the thread block holds the send up, not the receive. */
  polyccl_topology *slow = star(2, 2);
  s = run_text(SENDRECV, slow, of_bytes(100000, 1));
  assert_near(s->time, 5 + 1 + 50 + 3 + 1 + 10);
  polyccl_simulation_destroy(s);
  /* LL: half of what is on the link are flags; the thread block copies 4 GB/s of payload. */
  polyccl_sim_options ll = of_bytes(100000, 1);
  ll.protocol = POLYCCL_LL;
  s = run_text(SENDRECV, slow, ll);
  assert_near(s->time, 5 + 0.25 + 100 + 1 + 0.25 + 25);
  polyccl_simulation_destroy(s);
  /* No bytes: only costs. */
  s = run_text(SENDRECV, t, of_bytes(0, 1));
  assert_near(s->time, 5 + 1 + 3 + 1);
  polyccl_simulation_destroy(s);
  polyccl_topology_destroy(t);
  polyccl_topology_destroy(slow);
}

/* As few micro-batches as make each message fit into its slot; LL's slots are smaller. */
static void micro_batches_fit_slots(void **state) {
  (void)state;
  polyccl_topology *t = star(2, 50);
  const struct {
    uint64_t bytes;
    int protocol, expected;
  } cases[] = {{1, 0, 1}, {1000000, 0, 1}, {1000001, 0, 2}, {10000000, 0, 10}, {1000, 1, 1}, {2500, 1, 3}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    polyccl_sim_options options = of_bytes(cases[i].bytes, 0);
    options.protocol = cases[i].protocol;
    polyccl_simulation *s = run_text(SENDRECV, t, options);
    assert_int_equal(s->micro_batches, cases[i].expected);
    polyccl_simulation_destroy(s);
  }
  polyccl_topology_destroy(t);
}

/* Depth 1: the next send waits until the slot is free and the news is back; depth 2: sender and receiver overlap. */
static void credit_limits(void **state) {
  (void)state;
  polyccl_topology *t = star(2, 50);
  polyccl_sim_options options = of_bytes(400000, 4);
  options.fifo_depth = 1;
  polyccl_simulation *s = run_text(SENDRECV, t, options);
  /* A round: send 11, message 3, receive 11, credit 1; the last without its credit. */
  assert_near(s->time, 5 + 4 * (11 + 3 + 11 + 1) - 1);
  assert_near(s->tb[0].time[POLYCCL_SIM_WAIT_CREDIT], 3 * (3 + 11 + 1));
  assert_near(s->tb[1].time[POLYCCL_SIM_WAIT_DATA], 14 + 3 * (1 + 11 + 3));
  polyccl_simulation_destroy(s);
  options.fifo_depth = 4;
  s = run_text(SENDRECV, t, options);
  assert_near(s->time, 5 + 4 * 11 + 3 + 11);
  assert_near(s->tb[0].time[POLYCCL_SIM_WAIT_CREDIT], 0);
  polyccl_simulation_destroy(s);
  /* Depth 2, worked out by hand: sends start at 5, 16, 31, 42 (the credits of the first two are back at 31, 42). */
  options.fifo_depth = 0;
  s = run_text(SENDRECV, t, options);
  assert_int_equal(s->fifo_depth, 2);
  assert_near(s->time, 42 + 11 + 3 + 11);
  assert_near(s->tb[0].time[POLYCCL_SIM_WAIT_CREDIT], 31 - 27);
  polyccl_simulation_destroy(s);
  polyccl_topology_destroy(t);
}

/* Rank 0 sends to 1 and 2 at once. */
#define FAN_OUT                                                                                                 \
  "polyccl-plan 1\nname \"fan\"\ncollective custom\nranks 3\nchunks 3\nfile 0 \"a.lua\"\nrank 0 scratch 0\n"    \
  "tb\nsend i0 x1 to 1.0\ntb\nsend i1 x2 to 2.0\nrank 1 scratch 0\ntb\nrecv o0 x1 from 0.0\nrank 2 scratch 0\n" \
  "tb\nrecv o1 x2 from 0.0\n"

static void flows_share_a_link(void **state) {
  (void)state;
  polyccl_topology *t = star(3, 10); /* one thread block fills the port */
  polyccl_simulation *s = run_text(FAN_OUT, t, of_bytes(300000, 1));
  /* 100 kB and 200 kB share 10 GB/s: the first ends after 20 us, then the second is alone for 10 us. */
  assert_near(s->tb[0].time[POLYCCL_SIM_BUSY], 1 + 20);
  assert_near(s->tb[1].time[POLYCCL_SIM_BUSY], 1 + 30);
  assert_near(s->tb[3].time[POLYCCL_SIM_WAIT_DATA], 31 + 3);
  assert_true(s->exact);
  polyccl_simulation_destroy(s);
  polyccl_sim_options contended = of_bytes(300000, 1);
  contended.contention = 0.25; /* one block fills the port; two get 1 / 1.25 of it */
  s = run_text(FAN_OUT, t, contended);
  assert_near(s->tb[0].time[POLYCCL_SIM_BUSY], 1 + 25);
  assert_near(s->tb[1].time[POLYCCL_SIM_BUSY], 1 + 25 + 10);
  polyccl_simulation_destroy(s);
  polyccl_topology_destroy(t);
}

#define WAITS                                                                                \
  "polyccl-plan 1\nname \"waits\"\ncollective custom\nranks 1\nchunks 2\nrank 0 scratch 1\n" \
  "tb\ncopy i0 s0 x1\nnop wait 1.0\ntb\nreduce s0 o0 x1 wait 0.0\ncopy i1 o1 x1\n"

/* Copies at 10 GB/s, reductions at 5; a nop costs nothing. The second block waits for the first, batch by batch. */
static void waits_hold(void **state) {
  (void)state;
  polyccl_topology *t = star(1, 10);
  polyccl_simulation *s = run_text(WAITS, t, of_bytes(200000, 1));
  assert_near(s->time, 5 + 11 + 21 + 11);
  assert_near(s->tb[0].time[POLYCCL_SIM_WAIT_BLOCKS], 21);
  assert_near(s->tb[1].time[POLYCCL_SIM_WAIT_BLOCKS], 11);
  assert_int_equal(s->criticals, 3);
  assert_int_equal(s->critical[1].cause, POLYCCL_SIM_WAIT_BLOCKS);
  polyccl_simulation_destroy(s);
  /* Two micro-batches, batch-major: copy 6, reduce 11, copy 6, and the first block waits for each reduction. */
  s = run_text(WAITS, t, of_bytes(200000, 2));
  assert_near(s->time, 5 + 6 + 11 + 6 + 11 + 6);
  polyccl_simulation_destroy(s);
  /* Task-major: both copies, both reductions as their copies are done (6, then back to back), then both copies. */
  polyccl_sim_options task = of_bytes(200000, 2);
  task.order = POLYCCL_TASK_MAJOR;
  s = run_text(WAITS, t, task);
  assert_near(s->time, 5 + 6 + 2 * 11 + 2 * 6);
  assert_near(s->tb[0].time[POLYCCL_SIM_WAIT_BLOCKS], (6 + 22) - 12);
  polyccl_simulation_destroy(s);
  polyccl_topology_destroy(t);
}

/* AllGather ring, one chunk each: n - 1 hops in lockstep; closed form with fused forwarding. */
static void ring_closed_form(void **state) {
  (void)state;
  enum { N = 5 };
  char text[4096];
  int at = snprintf(text, sizeof text, "polyccl-plan 1\nname \"ring\"\ncollective allgather\nranks %d\nchunks 1\n", N);
  for (int r = 0; r < N; r++) {
    int from = (r + N - 1) % N, to = (r + 1) % N;
    at += snprintf(text + at, sizeof text - (size_t)at, "rank %d scratch 0\ntb\nsend i0 x1 to %d.0\n", r, to);
    for (int s = 1; s < N - 1; s++) {
      at += snprintf(text + at, sizeof text - (size_t)at, "rcs o%d x1 from %d.0 to %d.0\n", (r - s + N) % N, from, to);
    }
    at += snprintf(text + at, sizeof text - (size_t)at, "recv o%d x1 from %d.0\ntb\ncopy i0 o%d x1\n", to, from, r);
  }
  polyccl_topology *t = star(N, 50);
  polyccl_simulation *s = run_text(text, t, of_bytes(N * 50000, 1));
  double hop = 1 + 5 + 3; /* cost, 50 kB at 10 GB/s, message */
  assert_near(s->time, 5 + (N - 1) * hop + 1 + 5);
  assert_near(s->bus_factor, (N - 1.0) / N);
  double carried = 0;
  for (size_t l = 0; l < s->links; l++) {
    carried += s->link[l].bytes;
  }
  assert_near(carried, 2.0 * N * (N - 1) * 50000); /* two links a hop */
  polyccl_simulation_destroy(s);
  polyccl_topology_destroy(t);
}

/* The machine's thread blocks share a processor: one after another. */
static void processors_are_shared(void **state) {
  (void)state;
  polyccl_topology *t = star(1, 10);
  t->model[0].concurrent_blocks = 1;
  static const char text[] =
      "polyccl-plan 1\nname \"two\"\ncollective custom\nranks 1\nchunks 2\nrank 0 scratch 0\n"
      "tb\ncopy i0 o0 x1\ntb\ncopy i1 o1 x1\n";
  polyccl_simulation *s = run_text(text, t, of_bytes(200000, 2));
  assert_near(s->time, 5 + 4 * 6);
  for (int b = 0; b < 2; b++) {
    assert_near(s->tb[b].time[POLYCCL_SIM_BUSY], 12);
  }
  assert_int_equal(s->criticals, 4);
  polyccl_simulation_destroy(s);
  t->model[0].concurrent_blocks = 2;
  s = run_text(text, t, of_bytes(200000, 2));
  assert_near(s->time, 5 + 2 * 6);
  polyccl_simulation_destroy(s);
  t->model[0].local_bandwidth = 10; /* both at once, but the memory gives 10 GB/s in all */
  s = run_text(text, t, of_bytes(200000, 1));
  assert_near(s->time, 5 + 1 + 20);
  polyccl_simulation_destroy(s);
  polyccl_topology_destroy(t);
}

/* By reference the receiver moves the bytes, once, and the send is only its cost. */
static void by_reference_moves_once(void **state) {
  (void)state;
  polyccl_topology *t = star(2, 50);
  polyccl_plan *plan = plan_of(SENDRECV);
  t->model[0].by_reference = true;
  polyccl_simulation *s = simulate(plan, t, of_bytes(100000, 1));
  assert_near(s->time, 5 + 1 + 10 + 3 + 1 + 10); /* not marked: as before */
  polyccl_simulation_destroy(s);
  plan->step[0].flags = POLYCCL_FLAG_GET;
  s = simulate(plan, t, of_bytes(100000, 1));
  assert_near(s->time, 5 + 1 + 3 + 1 + 10);
  double carried = 0;
  for (size_t l = 0; l < s->links; l++) {
    carried += s->link[l].bytes;
  }
  assert_near(carried, 2 * 100000);
  polyccl_simulation_destroy(s);
  plan->step[0].flags = 0;
  plan->step[1].flags = POLYCCL_FLAG_PUT;
  s = simulate(plan, t, of_bytes(100000, 1));
  assert_near(s->time, 5 + 1 + 10 + 3 + 1);
  polyccl_simulation_destroy(s);
  polyccl_plan_destroy(plan);
  /* Two messages on one connection, only the first by reference: each its own way. */
  plan = plan_of(
      "polyccl-plan 1\nname \"two\"\ncollective sendrecv\nranks 2\nchunks 2\npeer 1\nrank 0 scratch 0\n"
      "tb\nsend i0 x1 to 1.0\nsend i1 x1 to 1.0\nrank 1 scratch 0\ntb\nrecv o0 x1 from 0.0\n"
      "recv o1 x1 from 0.0\n");
  plan->step[0].flags = POLYCCL_FLAG_GET;
  s = simulate(plan, t, of_bytes(200000, 1));
  /* Sends end at 6 and 17; the receiver fetches from 9 to 20, and takes the second out of its slot by 31. */
  assert_near(s->time, 31);
  polyccl_simulation_destroy(s);
  polyccl_plan_destroy(plan);
  polyccl_topology_destroy(t);
}

static void check_conservation(const polyccl_plan *plan, const polyccl_topology *t, const polyccl_simulation *s) {
  double *busy = calloc(s->tbs, sizeof *busy), *bytes = calloc(s->links, sizeof *bytes);
  for (size_t b = 0; b < s->tbs; b++) {
    double sum = 0;
    for (int state = 0; state < POLYCCL_SIM_STATE_COUNT; state++) {
      assert_true(s->tb[b].time[state] >= 0);
      sum += s->tb[b].time[state];
    }
    assert_near(sum, s->time);
  }
  for (size_t i = 0; i < s->records; i++) {
    const polyccl_sim_record *r = &s->record[i];
    assert_true(r->start < r->end && r->end <= s->time + 1e-9);
    if (i > 0 && r[-1].rank == r->rank && r[-1].tb == r->tb) {
      assert_true(r[-1].end <= r->start + 1e-9);
    }
    if (r->state == POLYCCL_SIM_BUSY) {
      busy[plan->rank[r->rank].tb + r->tb] += r->end - r->start;
    }
  }
  for (size_t b = 0; b < s->tbs; b++) {
    assert_near(busy[b], s->tb[b].time[POLYCCL_SIM_BUSY]);
  }
  /* What flows over each link over time is what the steps send over it, and never more than it carries. */
  for (size_t i = 0; i < s->uses; i++) {
    const polyccl_sim_use *u = &s->use[i];
    assert_true(u->rate >= 0 && u->rate <= t->link[u->link].bandwidth * (1 + 1e-9));
    if (i + 1 < s->uses && u[1].link == u->link) {
      bytes[u->link] += u->rate * (u[1].time - u->time) * 1e3;
    } else {
      assert_float_equal(u->rate, 0, 0);
    }
  }
  for (size_t l = 0; l < s->links; l++) {
    assert_float_equal(bytes[l], s->link[l].bytes, 1e-4 * s->link[l].bytes + 1);
  }
  double path = s->launch;
  for (size_t l = 0; l < s->lines; l++) {
    path += s->line[l].time;
  }
  assert_near(path, s->time);
  for (size_t i = 1; i < s->criticals; i++) {
    assert_true(s->critical[i - 1].end <= s->critical[i].start + 1e-9);
  }
  free(busy);
  free(bytes);
}

/* Every rank sends a chunk to every other, `blocks` thread blocks each way. */
static char *all_to_all(int n, int blocks) {
  size_t size = 1 << 20;
  char *text = malloc(size);
  int at = snprintf(text, size, "polyccl-plan 1\nname \"a2a\"\ncollective alltoall\nranks %d\nchunks 1\n", n);
  for (int r = 0; r < n; r++) {
    at += snprintf(text + at, size - (size_t)at, "rank %d scratch 0\n", r);
    for (int b = 0; b < 2 * blocks; b++) {
      at += snprintf(text + at, size - (size_t)at, "tb\n");
      for (int o = 1 + b / 2; o < n; o += blocks) {
        int to = (r + o) % n, from = (r - o + n) % n;
        at += snprintf(text + at, size - (size_t)at, b % 2 == 0 ? "send i%d x1 to %d.0\n" : "recv o%d x1 from %d.0\n",
                       b % 2 == 0 ? to : from, b % 2 == 0 ? to : from);
      }
    }
    at += snprintf(text + at, size - (size_t)at, "tb\ncopy i%d o%d x1\n", r, r);
  }
  return text;
}

/* All that the command prints. */
static char *text_of(const polyccl_simulation *s, const polyccl_plan *plan, const polyccl_topology *t) {
  char *text = NULL;
  size_t length = 0;
  FILE *to = open_memstream(&text, &length);
  assert_int_equal(polyccl_simulation_write(s, plan, t, to), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_simulation_write_timeline(s, plan, to), POLYCCL_SUCCESS);
  fclose(to);
  return text;
}

static void nothing_is_lost_and_runs_repeat(void **state) {
  (void)state;
  char *text = all_to_all(9, 3);
  polyccl_plan *plan = plan_of(text);
  for (int variant = 0; variant < 6; variant++) {
    polyccl_topology *t = star(9, variant % 3 == 0 ? 11 : variant % 3 == 1 ? 25 : 100);
    t->link[0].bandwidth = 3;
    if (variant >= 3) {
      t->model[0].concurrent_blocks = 2;
      t->model[0].local_bandwidth = 15;
    }
    polyccl_sim_options options = of_bytes(9 * 70000, 3);
    polyccl_simulation *a = simulate(plan, t, options), *b = simulate(plan, t, options);
    check_conservation(plan, t, a);
    char *text_a = text_of(a, plan, t), *text_b = text_of(b, plan, t);
    assert_string_equal(text_a, text_b);
    assert_non_null(strstr(text_a, "critical path"));
    free(text_a);
    free(text_b);
    options.keep = 0;
    polyccl_simulation *quiet = simulate(plan, t, options);
    assert_float_equal(quiet->time, a->time, 0); /* looking does not change it */
    polyccl_simulation_destroy(quiet);
    polyccl_simulation_destroy(a);
    polyccl_simulation_destroy(b);
    polyccl_topology_destroy(t);
  }
  polyccl_plan_destroy(plan);
  free(text);
}

/* ---- what cannot end, and bad input ---- */

static void assert_fails(const polyccl_plan *plan, const polyccl_topology *t, polyccl_sim_options options,
                         polyccl_result expected, const char *words) {
  polyccl_simulation *s = NULL;
  assert_int_equal(polyccl_simulate(plan, t, &options, &s), expected);
  assert_null(s);
  if (strstr(polyccl_last_error(), words) == NULL) {
    fail_msg("\"%s\" is not in: %s", words, polyccl_last_error());
  }
}

static void deadlocks_are_named(void **state) {
  (void)state;
  polyccl_topology *t = star(3, 10);
  static const struct {
    const char *steps, *words;
  } cases[] = {
      /* both receive first */
      {"rank 0 scratch 0\ntb\nrecv o0 x1 from 1.0 at 0:3\nsend i0 x1 to 1.0 at 0:4\nrank 1 scratch 0\ntb\n"
       "recv o0 x1 from 0.0 at 0:5\nsend i0 x1 to 0.0\n",
       "rank 0, thread block 0, step 0 (recv, a.lua:3) waits for a message from rank 1, channel 0; rank 1, thread "
       "block 0, step 0 (recv, a.lua:5) waits for a message from rank 0, channel 0 (a cycle)"},
      /* nobody sends */
      {"rank 0 scratch 0\ntb\nrecv o0 x1 from 1.0\nrank 1 scratch 0\n",
       "waits for a message from rank 1, channel 0, and nobody is left to do that"},
      /* nobody receives the third */
      {"rank 0 scratch 0\ntb\nsend i0 x1 to 1.0\nsend i0 x1 to 1.0\nsend i0 x1 to 1.0\nrank 1 scratch 0\n",
       "step 2 (send) waits for a free slot to rank 1, channel 0 (depth 2), and nobody is left"},
      /* waits of two blocks for each other; of a step for itself */
      {"rank 0 scratch 0\ntb\nnop wait 1.0\ntb\nnop wait 0.0\nrank 1 scratch 0\n", "(a cycle)"},
      {"rank 0 scratch 0\ntb\nnop wait 0.0\nrank 1 scratch 0\n", "waits for thread block 0, step 0 (a cycle)"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[2048];
    snprintf(text, sizeof text,
             "polyccl-plan 1\nname \"bad\"\ncollective custom\nranks 2\nchunks 1\nfile 0 \"a.lua\"\n%s",
             cases[i].steps);
    polyccl_plan *plan = plan_of(text);
    assert_fails(plan, t, of_bytes(1000, 1), POLYCCL_ERROR_INVALID, cases[i].words);
    polyccl_plan_destroy(plan);
  }
  polyccl_topology_destroy(t);
}

static void bad_input_is_refused(void **state) {
  (void)state;
  polyccl_topology *t = star(2, 10), *one = star(1, 10);
  polyccl_plan *plan = plan_of(SENDRECV);
  assert_fails(plan, one, of_bytes(1, 1), POLYCCL_ERROR_INVALID,
               "the plan has 2 ranks, but the topology \"test\" has 1");
  polyccl_sim_options options = of_bytes(1, -1);
  assert_fails(plan, t, options, POLYCCL_ERROR_INVALID, "out of range");
  options = of_bytes(1, 1);
  options.protocol = 17;
  assert_fails(plan, t, options, POLYCCL_ERROR_INVALID, "protocol 17");
  options = of_bytes(UINT64_MAX, 0);
  assert_fails(plan, t, options, POLYCCL_ERROR_LIMIT, "micro-batches");
  options = of_bytes(1, 1 << 29);
  assert_fails(plan, t, options, POLYCCL_ERROR_LIMIT, "memory");
  plan->step[1].recv = 5;
  assert_fails(plan, t, of_bytes(1, 1), POLYCCL_ERROR_INVALID, "connection does not exist");
  plan->step[1].recv = 0;
  plan->step[1].waits = 1;
  assert_fails(plan, t, of_bytes(1, 1), POLYCCL_ERROR_INVALID, "waits are out of range");
  plan->step[1].waits = 0;
  plan->tb[1].step = 0;
  assert_fails(plan, t, of_bytes(1, 1), POLYCCL_ERROR_INVALID, "");
  polyccl_plan_destroy(plan);
  polyccl_topology_destroy(t);
  polyccl_topology_destroy(one);
}

/* No ranks' worth of work: a plan without a step takes its launch. */
static void empty_plans_end(void **state) {
  (void)state;
  polyccl_topology *t = star(1, 10);
  static const char *const texts[] = {
      "polyccl-plan 1\nname \"none\"\ncollective allreduce\nranks 1\nchunks 1\ninplace yes\nrank 0 scratch 0\n",
      "polyccl-plan 1\nname \"none\"\ncollective allreduce\nranks 1\nchunks 1\ninplace yes\nrank 0 scratch 0\ntb\n",
  };
  for (size_t i = 0; i < 2; i++) {
    polyccl_simulation *s = run_text(texts[i], t, of_bytes(1000, 4));
    assert_near(s->time, 5);
    assert_int_equal(s->executions, 0);
    assert_int_equal(s->criticals, 0);
    assert_near(s->bus, 0); /* one rank: the factor is 0 */
    polyccl_simulation_destroy(s);
  }
  polyccl_topology_destroy(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_transfer),
      cmocka_unit_test(micro_batches_fit_slots),
      cmocka_unit_test(credit_limits),
      cmocka_unit_test(flows_share_a_link),
      cmocka_unit_test(waits_hold),
      cmocka_unit_test(ring_closed_form),
      cmocka_unit_test(processors_are_shared),
      cmocka_unit_test(by_reference_moves_once),
      cmocka_unit_test(nothing_is_lost_and_runs_repeat),
      cmocka_unit_test(deadlocks_are_named),
      cmocka_unit_test(bad_input_is_refused),
      cmocka_unit_test(empty_plans_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
