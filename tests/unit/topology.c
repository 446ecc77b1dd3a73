/* Topologies: routes and their rules, scale, sharing between threads, the JSON round trip of every shipped machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <expat.h>
#include <pthread.h>

#include <polyccl/topology.h>

static polyccl_topology *open_topology(const char *spec) {
  polyccl_topology *t = NULL;
  if (polyccl_topology_open(spec, &t) != POLYCCL_SUCCESS) {
    fail_msg("%s: %s", spec, polyccl_last_error());
  }
  return t;
}

static polyccl_topology *parse(const char *text) {
  polyccl_topology *t = NULL;
  if (polyccl_topology_parse("test", text, strlen(text), &t) != POLYCCL_SUCCESS) {
    fail_msg("%s", polyccl_last_error());
  }
  return t;
}

enum { MOST_HOPS = 64 };

/* "a b c": the nodes of the route. */
static const char *route_text(const polyccl_topology *t, int src, int dst, char *text, size_t size) {
  int32_t links[MOST_HOPS];
  size_t count = 0;
  assert_int_equal(polyccl_topology_route(t, src, dst, links, MOST_HOPS, &count), POLYCCL_SUCCESS);
  assert_in_range(count, 0, MOST_HOPS);
  snprintf(text, size, "%s", t->node[t->rank[src].node].name);
  int32_t at = t->rank[src].node;
  for (size_t i = 0; i < count; i++) {
    const polyccl_link *link = &t->link[links[i]];
    assert_int_equal(link->from, at);
    at = link->to;
    size_t used = strlen(text);
    snprintf(text + used, size - used, " %s", t->node[at].name);
  }
  assert_int_equal(at, t->rank[dst].node);
  return text;
}

#define assert_route(t, src, dst, expected)                                            \
  do {                                                                                 \
    char text[4096];                                                                   \
    assert_string_equal(route_text((t), (src), (dst), text, sizeof text), (expected)); \
  } while (0)

/* Inside a machine by NVSwitch; between machines by the NIC next to each end, whoever is at the other. */
static void routes_take_the_nearest_way(void **state) {
  (void)state;
  polyccl_topology *t = open_topology("ndv4:3");
  assert_int_equal(t->ranks, 24);
  assert_int_equal(t->machines, 3);
  assert_route(t, 9, 14, "m1.gpu1 m1.switch m1.gpu6");
  assert_route(t, 3, 3, "m0.gpu3");
  assert_route(t, 3, 17, "m0.gpu3 m0.pcie1 m0.nic3 network m2.nic1 m2.pcie0 m2.gpu1");
  assert_route(t, 23, 4, "m2.gpu7 m2.pcie3 m2.nic7 network m0.nic4 m0.pcie2 m0.gpu4");
  assert_true(polyccl_topology_linked(t, 3, 17));
  assert_false(polyccl_topology_linked(t, 3, 24));
  assert_false(polyccl_topology_linked(t, -1, 3));
  polyccl_topology_destroy(t);
}

/* One NIC for eight GPUs, and two for one: shared, and dealt out. */
static void nics_are_shared_or_dealt_out(void **state) {
  (void)state;
  polyccl_topology *t = open_topology("ndv2:2");
  assert_route(t, 0, 8, "m0.gpu0 m0.pcie0 m0.nic0 network m1.nic0 m1.pcie0 m1.gpu0");
  assert_route(t, 6, 9, "m0.gpu6 m0.pcie3 m0.cpu1 m0.cpu0 m0.pcie0 m0.nic0 network m1.nic0 m1.pcie0 m1.gpu1");
  polyccl_topology_destroy(t);
  t = open_topology("dgx-a100:2,gpus=2,nics=4,pcie=0");
  assert_route(t, 0, 3, "m0.gpu0 m0.nic0 network m1.nic3 m1.gpu1");
  polyccl_topology_destroy(t);
}

/* Devices pass messages on only where there is no other way. */
static void devices_are_the_last_resort(void **state) {
  (void)state;
  polyccl_topology *t = open_topology("dgx1");
  assert_route(t, 0, 4, "m0.gpu0 m0.gpu4");
  assert_route(t, 0, 5, "m0.gpu0 m0.pcie0 m0.cpu0 m0.cpu1 m0.pcie2 m0.gpu5");
  assert_true(polyccl_topology_linked(t, 0, 5));
  polyccl_topology_destroy(t);
  t = open_topology("dgx1,pcie=0");
  assert_true(polyccl_topology_linked(t, 0, 4));
  assert_false(polyccl_topology_linked(t, 0, 5));
  polyccl_topology_destroy(t);
  t = open_topology("ring:7");
  assert_route(t, 1, 6, "m0.d1 m0.d0 m0.d6");
  assert_false(polyccl_topology_linked(t, 1, 6));
  assert_true(polyccl_topology_linked(t, 6, 0));
  polyccl_topology_destroy(t);
}

static void overrides_reach_the_links(void **state) {
  (void)state;
  polyccl_topology *t = open_topology("h100:2,nic=12.5,nvlink=100,latency=3,nvlink-latency=0.75");
  int network = 0, nvlink = 0;
  for (size_t i = 0; i < t->links; i++) {
    const char *type = t->link_type[t->link[i].type];
    if (strcmp(type, "network") == 0) {
      assert_true(t->link[i].bandwidth == 12.5 && t->link[i].latency == 3);
      network++;
    } else if (strcmp(type, "NVLink") == 0) {
      assert_true(t->link[i].bandwidth == 100 && t->link[i].latency == 0.75);
      nvlink++;
    }
  }
  assert_int_equal(network, 2 * 2 * 8);
  assert_int_equal(nvlink, 2 * 2 * 8);
  polyccl_topology_destroy(t);
}

/* Machines of two vendors on one network: each rank has its own model. */
static void kinds_of_machines_join(void **state) {
  (void)state;
  polyccl_topology *t = open_topology("h100:1+mi300x:2,gpus=4");
  assert_int_equal(t->ranks, 16);
  assert_string_equal(t->model[t->rank[7].model].vendor, "nvidia");
  assert_string_equal(t->model[t->rank[8].model].vendor, "amd");
  assert_int_equal(t->rank[12].machine, 2);
  polyccl_topology_destroy(t);
}

static const char cables[] =
    "{\"polyccl_topology\": 1, \"machines\": [\"a\", \"b\"], \"nodes\": ["
    "{\"name\": \"a0\", \"kind\": \"device\", \"machine\": \"a\", \"rank\": 1},"
    "{\"name\": \"b0\", \"kind\": \"device\", \"machine\": \"b\", \"rank\": 0},"
    "{\"name\": \"an\", \"kind\": \"nic\", \"machine\": \"a\"}, {\"name\": \"bn\", \"kind\": \"nic\", \"machine\": "
    "\"b\"}"
    "], \"links\": [{\"between\": [\"a0\", \"an\"], \"bandwidth\": 10, \"latency\": 1},"
    "{\"between\": [\"b0\", \"bn\"], \"bandwidth\": 10, \"latency\": 1},"
    "{\"from\": \"an\", \"to\": \"bn\", \"bandwidth\": 5, \"latency\": 1},"
    "{\"from\": \"bn\", \"to\": \"an\", \"bandwidth\": 2.5, \"latency\": 1}]}";

/* Two machines may be joined by a cable, with other figures each way. */
static void a_cable_joins_two_machines(void **state) {
  (void)state;
  polyccl_topology *t = parse(cables);
  assert_route(t, 1, 0, "a0 an bn b0");
  assert_route(t, 0, 1, "b0 bn an a0");
  int32_t links[3];
  size_t count;
  assert_int_equal(polyccl_topology_route(t, 0, 1, links, 3, &count), POLYCCL_SUCCESS);
  assert_true(t->link[links[1]].bandwidth == 2.5);
  assert_int_equal(polyccl_topology_route(t, 0, 1, NULL, 0, &count), POLYCCL_SUCCESS);
  assert_int_equal(count, 3);
  count = 99;
  assert_int_equal(polyccl_topology_route(t, 0, 2, links, 3, &count), POLYCCL_ERROR_INVALID);
  assert_int_equal(count, 99);
  polyccl_topology_destroy(t);
}

/* Equal ways through several spines are used by different pairs, always the same. */
static void equal_ways_are_shared_out(void **state) {
  (void)state;
  char text[16384] = "{\"polyccl_topology\": 1, \"machines\": [\"m\"], \"nodes\": [";
  for (int i = 0; i < 16; i++) {
    sprintf(text + strlen(text), "{\"name\": \"d%d\", \"kind\": \"device\", \"machine\": \"m\", \"rank\": %d},", i, i);
  }
  for (int i = 0; i < 4; i++) {
    sprintf(text + strlen(text), "%s{\"name\": \"s%d\", \"kind\": \"switch\", \"machine\": \"m\"}", i > 0 ? "," : "",
            i);
  }
  strcat(text, "], \"links\": [");
  for (int i = 0; i < 64; i++) {
    sprintf(text + strlen(text), "%s{\"between\": [\"d%d\", \"s%d\"], \"bandwidth\": 10, \"latency\": 1}",
            i > 0 ? "," : "", i / 4, i % 4);
  }
  strcat(text, "]}");
  polyccl_topology *t = parse(text), *again = parse(text);
  int used[4] = {0};
  for (int src = 0; src < 16; src++) {
    for (int dst = 0; dst < 16; dst++) {
      char one[64], two[64];
      route_text(t, src, dst, one, sizeof one);
      assert_string_equal(one, route_text(again, src, dst, two, sizeof two));
      const char *through = strchr(one, 's');
      used[src != dst ? through[1] - '0' : 0] += src != dst;
    }
  }
  for (int i = 0; i < 4; i++) {
    assert_in_range(used[i], 30, 90); /* 240 pairs over 4 */
  }
  polyccl_topology_destroy(t);
  polyccl_topology_destroy(again);
}

/* 4096 ranks: every pair of a sample, and no table of all pairs. */
static void routes_scale(void **state) {
  (void)state;
  polyccl_topology *t = open_topology("a100-roce:512");
  assert_int_equal(t->ranks, 4096);
  for (int src = 0; src < t->ranks; src += 37) {
    for (int dst = 0; dst < t->ranks; dst += 41) {
      size_t count;
      assert_int_equal(polyccl_topology_route(t, src, dst, NULL, 0, &count), POLYCCL_SUCCESS);
      int same = src / 8 == dst / 8, leaf = src / 32 == dst / 32;
      assert_int_equal(count, src == dst ? 0 : same ? 2 : leaf ? 6 : 8);
    }
  }
  polyccl_topology_destroy(t);
}

static char *to_json(const polyccl_topology *t, size_t *length) {
  char *text = NULL;
  FILE *to = open_memstream(&text, length);
  assert_int_equal(polyccl_topology_write_json(t, to), POLYCCL_SUCCESS);
  fclose(to);
  return text;
}

static void json_reads_back_equal(void **state) {
  (void)state;
  static const char *const more[] = {POLYCCL_SOURCE_DIR "/tests/topology/rates.json",
                                     "a100-roce:9,leaf=2",
                                     "h100:1+mi300x:1,nic=33.3",
                                     "dgx1,pcie=0",
                                     "ring:3",
                                     "host:3"};
  const polyccl_synthetic *shipped = polyccl_topology_synthetic();
  size_t count = 0, extra = sizeof more / sizeof more[0];
  while (shipped[count].name != NULL) {
    assert_true(strlen(shipped[count].help) > 0 && strlen(shipped[count].source) > 0);
    count++;
  }
  assert_true(count >= 12);
  for (size_t i = 0; i < count + extra; i++) {
    polyccl_topology *t = open_topology(i < count ? shipped[i].name : more[i - count]), *back = NULL;
    size_t length, length_back;
    char *text = to_json(t, &length);
    assert_int_equal(polyccl_topology_parse("back", text, length, &back), POLYCCL_SUCCESS);
    char *text_back = to_json(back, &length_back);
    assert_string_equal(text, text_back);
    assert_int_equal(t->links, back->links);
    assert_memory_equal(t->rank, back->rank, (size_t)t->ranks * sizeof *t->rank);
    assert_string_equal(t->source, back->source);
    free(text);
    free(text_back);
    polyccl_topology_destroy(t);
    polyccl_topology_destroy(back);
  }
}

/* Rates of a call's size: as given at the sizes given, the geometric mean half-way between, constant beyond. */
static void rates_follow_the_size(void **state) {
  (void)state;
  polyccl_topology *t = open_topology(POLYCCL_SOURCE_DIR "/tests/topology/rates.json");
  static const struct {
    uint64_t bytes;
    double simple, ll128, reduce, local;
  } expected[] = {{0, 16, 4, 20, 100},
                  {1024, 16, 4, 20, 100},
                  {32768, 8, 2, 10, 50.4975},
                  {1 << 20, 4, 1, 5, 25.5},
                  {UINT64_MAX, 4, 1, 5, 25.5}};
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
    polyccl_device_model at = polyccl_device_model_at(&t->model[0], expected[i].bytes);
    assert_float_equal(at.protocol[POLYCCL_SIMPLE].copy_bandwidth, expected[i].simple, 1e-4);
    assert_float_equal(at.protocol[POLYCCL_LL128].copy_bandwidth, expected[i].ll128, 1e-4);
    assert_float_equal(at.reduce_bandwidth, expected[i].reduce, 1e-4);
    assert_float_equal(at.forward_bandwidth, expected[i].reduce / 10, 1e-4);
    assert_float_equal(at.local_bandwidth, expected[i].local, 1e-3);
  }
  polyccl_topology_destroy(t);
  t = open_topology("ndv4:1");
  polyccl_device_model at = polyccl_device_model_at(&t->model[0], 1 << 30);
  assert_float_equal(at.protocol[POLYCCL_SIMPLE].copy_bandwidth, 24, 0);
  polyccl_topology_destroy(t);
}

static void XMLCALL count_groups(void *count, const char *name, const char **attributes) {
  (void)attributes;
  *(int *)count += strcmp(name, "g") == 0;
}

/* Pictures are well-formed whatever the names are, and show every node and link of a small topology once. */
static void pictures_are_well_formed(void **state) {
  (void)state;
  static const char hostile[] =
      "{\"polyccl_topology\": 1, \"name\": \"<&>'\\\"\", \"machines\": [\"]]>\"], \"nodes\": ["
      "{\"name\": \"<a\\\"\", \"kind\": \"device\", \"machine\": \"]]>\", \"rank\": 0},"
      "{\"name\": \"&#0;\u00e9\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\", \"kind\": \"device\", \"machine\": \"]]>\","
      "\"rank\": 1}], \"links\": [{\"between\": [\"<a\\\"\", \"&#0;\u00e9\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d\"],"
      "\"bandwidth\": 1, \"latency\": 0, \"type\": \"--><!--\"}]}";
  static const char *const specs[] = {"ndv4:2", "ring:1", "dgx2:9", "fully:70", "a100-roce:40"};
  for (int i = -1; i < (int)(sizeof specs / sizeof specs[0]); i++) {
    polyccl_topology *t = i < 0 ? parse(hostile) : open_topology(specs[i]);
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    assert_int_equal(polyccl_topology_write_svg(t, to), POLYCCL_SUCCESS);
    fclose(to);
    int groups = 0;
    XML_Parser parser = XML_ParserCreate(NULL);
    XML_SetUserData(parser, &groups);
    XML_SetStartElementHandler(parser, count_groups);
    assert_int_equal(XML_Parse(parser, text, (int)length, 1), XML_STATUS_OK);
    XML_ParserFree(parser);
    if (i <= 0) {
      assert_int_equal(groups, t->nodes + t->links / 2);
    }
    free(text);
    polyccl_topology_destroy(t);
  }
}

static void *walk_all(void *argument) {
  const polyccl_topology *t = argument;
  size_t sum = 0;
  for (int src = 0; src < t->ranks; src++) {
    for (int dst = 0; dst < t->ranks; dst++) {
      size_t count = 0;
      if (polyccl_topology_route(t, src, dst, NULL, 0, &count) != POLYCCL_SUCCESS) {
        return NULL;
      }
      sum += count;
    }
  }
  return (void *)(uintptr_t)sum;
}

/* Tables are made on first use, by whichever thread comes first. */
static void threads_share_a_topology(void **state) {
  (void)state;
  enum { THREADS = 4 };
  polyccl_topology *t = open_topology("dgx2:6");
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, walk_all, t), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *sum = NULL;
    pthread_join(threads[i], &sum);
    assert_int_equal((uintptr_t)sum, 96 * (15 * 2 + 80 * 6));
  }
  polyccl_topology_destroy(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(routes_take_the_nearest_way), cmocka_unit_test(nics_are_shared_or_dealt_out),
      cmocka_unit_test(devices_are_the_last_resort), cmocka_unit_test(overrides_reach_the_links),
      cmocka_unit_test(kinds_of_machines_join),      cmocka_unit_test(a_cable_joins_two_machines),
      cmocka_unit_test(equal_ways_are_shared_out),   cmocka_unit_test(routes_scale),
      cmocka_unit_test(json_reads_back_equal),       cmocka_unit_test(rates_follow_the_size),
      cmocka_unit_test(pictures_are_well_formed),    cmocka_unit_test(threads_share_a_topology),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
