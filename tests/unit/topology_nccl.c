/* NCCL's topology XML: the figures by generation and vendor, the values that are replaced, hosts that share NVSwitches,
 * the files of virtual machines. tests/topology has whole files with what is read in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <polyccl/topology.h>

#include "base/file.h"

static const char folder[] = POLYCCL_SOURCE_DIR "/tests/topology";

static polyccl_topology *read_xml(const char *format, ...) __attribute__((format(printf, 1, 2)));
static polyccl_topology *read_xml(const char *format, ...) {
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  assert_true(vasprintf(&text, format, arguments) > 0);
  va_end(arguments);
  polyccl_topology *t = NULL;
  if (polyccl_topology_parse("test.xml", text, strlen(text), &t) != POLYCCL_SUCCESS) {
    fail_msg("%s in\n%s", polyccl_last_error(), text);
  }
  free(text);
  return t;
}

static polyccl_topology *open_file(const char *name) {
  char spec[4096];
  snprintf(spec, sizeof spec, "%s%s%s", name[0] == '/' ? "" : folder, name[0] == '/' ? "" : "/", name);
  polyccl_topology *t = NULL;
  if (polyccl_topology_open(spec, &t) != POLYCCL_SUCCESS) {
    fail_msg("%s: %s", spec, polyccl_last_error());
  }
  return t;
}

static int find_node(const polyccl_topology *t, const char *name) {
  for (size_t i = 0; i < t->nodes; i++) {
    if (strcmp(t->node[i].name, name) == 0) {
      return (int)i;
    }
  }
  return -1;
}

/* GB/s of the link of this type from one node to another; 0: there is none. */
static double rate(const polyccl_topology *t, const char *from, const char *to, const char *type) {
  int a = find_node(t, from), b = find_node(t, to);
  assert_true(a >= 0 && b >= 0);
  for (size_t i = 0; i < t->links; i++) {
    if (t->link[i].from == a && t->link[i].to == b && strcmp(t->link_type[t->link[i].type], type) == 0) {
      return t->link[i].bandwidth;
    }
  }
  return 0;
}

static void expect_rate(const polyccl_topology *t, const char *from, const char *to, const char *type, double wanted) {
  double found = rate(t, from, to, type);
  if (found < wanted * 0.9999 || found > wanted * 1.0001) {
    fail_msg("%s -> %s: %s of %g GB/s, not %g", from, to, type, found, wanted);
  }
}

static bool assumes(const polyccl_topology *t, const char *text) {
  for (size_t i = 0; i < t->assumptions; i++) {
    if (strstr(t->assumption[i], text) != NULL) {
      return true;
    }
  }
  return false;
}

static size_t count_named(const polyccl_topology *t, const char *text) {
  size_t count = 0;
  for (size_t i = 0; i < t->nodes; i++) {
    count += strstr(t->node[i].name, text) != NULL;
  }
  return count;
}

#define GPU(busid, dev, links)                                                                                   \
  "<pci busid=\"" busid "\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"" #dev \
  "\" sm=\"80\" rank=\"" #dev "\">" links "</gpu></pci>"

/* ---- (a), (c): figures ---- */

static void sockets_by_vendor(void **state) {
  (void)state;
  static const struct {
    const char *attributes;
    double rate;
    const char *said; /* NULL: nothing needs to be */
  } cases[] = {
      {"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"79\"", 6, NULL},
      {"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"84\"", 6, NULL},
      {"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\"", 10, NULL},
      {"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"142\"", 10, NULL},
      {"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\"", 22, NULL},
      {"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"207\"", 40, NULL},
      {"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"15\" modelid=\"207\"", 6, NULL},
      {"arch=\"x86_64\" vendor=\"GenuineIntel\"", 6, "has no familyid"},
      {"arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"25\" modelid=\"1\"", 16, NULL},
      {"arch=\"x86_64\" vendor=\"CentaurHauls\" familyid=\"7\" modelid=\"27\"", 6, NULL},
      {"arch=\"x86_64\" vendor=\"  Shanghai  \" familyid=\"7\" modelid=\"91\"", 9, NULL},
      {"arch=\"arm64\"", 6, NULL},
      {"arch=\"ppc64\"", 32, NULL},
      {"arch=\"x86_64\" vendor=\"HygonGenuine\"", 16, "vendor=\"HygonGenuine\""},
      {"", 16, "arch=\"\""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    polyccl_topology *t = read_xml(
        "<system><cpu numaid=\"0\" %s>" GPU("1", 0, "") "</cpu><cpu numaid=\"1\" %s/><cpu numaid=\"2\" %s/></system>",
        cases[i].attributes, cases[i].attributes, cases[i].attributes);
    for (int a = 0; a < 3; a++) {
      for (int b = 0; b < 3; b++) {
        char from[16], to[16];
        snprintf(from, sizeof from, "m0.cpu%d", a);
        snprintf(to, sizeof to, "m0.cpu%d", b);
        expect_rate(t, from, to, "socket", a != b ? cases[i].rate : 0);
      }
    }
    assert_int_equal(t->assumptions, cases[i].said != NULL);
    assert_true(cases[i].said == NULL || assumes(t, cases[i].said));
    polyccl_topology_destroy(t);
  }
}

static void links_by_generation(void **state) {
  (void)state;
  static const struct {
    const char *sm;
    double rate;
    bool known;
  } cases[] = {{"60", 18, true},    {"70", 20, true},     {"75", 20, true},     {"80", 20, true},
               {"86", 12, true},    {"89", 20, false},    {"90", 20.6, true},   {"100", 40.1, true},
               {"103", 40.1, true}, {"120", 40.1, false}, {"107", 40.1, false}, {"999", 40.1, false},
               {"50", 20, false},   {"", 20, false},      {"nine", 20, false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    polyccl_topology *t = read_xml(
        "<system><cpu><pci busid=\"1\"><gpu dev=\"0\" sm=\"%s\">"
        "<nvlink target=\"9\" count=\"3\" tclass=\"0x068000\"/></gpu></pci></cpu></system>",
        cases[i].sm);
    expect_rate(t, "m0.gpu0", "m0.nvswitch", "NVLink", 3 * cases[i].rate);
    assert_int_equal(assumes(t, "which is not known; its NVLinks have"), !cases[i].known);
    polyccl_topology_destroy(t);
  }
}

/* ---- (d): bus ids ---- */

static void bus_ids_are_numbers(void **state) {
  (void)state;
  static const struct {
    const char *busid, *target;
    bool same;
  } cases[] = {{"0000:0B:00.0", "0000:0b:00.0", true},      {"00000000:0b:00.0", "0000:0b:00.0", true},
               {"0000:0b:00.0", "00000000:0B:00.0", true},  {"0b:00.0", "0000:0b:00.0", true},
               {"10000:01:00.0", "010000:01:00.0", true},   {"0000:0b:00.0", "0000:0b:00.1", false},
               {"0001:0b:00.0", "0000:0b:00.0", false},     {"0000:0b:00.0", "", false},
               {"0000:0b:00.0", "12345678123456781", false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    polyccl_topology *t = read_xml(
        "<system><cpu>"
        "<pci busid=\"ee\"><gpu dev=\"0\" sm=\"80\"><nvlink target=\"%s\" count=\"2\" "
        "tclass=\"0x030200\"/></gpu></pci><pci busid=\"%s\"><gpu dev=\"1\" sm=\"80\"/></pci>"
        "</cpu></system>",
        cases[i].target, cases[i].busid);
    expect_rate(t, "m0.gpu0", "m0.gpu1", "NVLink", cases[i].same ? 40 : 0);
    expect_rate(t, "m0.gpu1", "m0.gpu0", "NVLink", cases[i].same ? 40 : 0);
    assert_int_equal(assumes(t, "no GPU of its host has this bus id"), !cases[i].same);
    polyccl_topology_destroy(t);
  }
}

/* ---- (e): values ---- */

/* Every attribute with every odd value: the file is read, and says so where something else was taken. */
static void no_value_refuses_a_file(void **state) {
  (void)state;
  static const char *const names[] = {"SPEED", "WIDTH",  "NETSPEED", "COUNT", "C2CBW",  "C2CCOUNT", "SM",   "DEV",
                                      "RANK",  "TCLASS", "TARGET",   "BUSID", "FAMILY", "ARCH",     "HASH", "PART"};
  static const char *const values[] = {
      "",   "0",   "255", "-1",  "-3",   "nan",        "inf",  "x",   "99999999999999999999",
      "0x", "1e9", "1.5", "é<>", "\t\n", "2147483648", "0x20", "16x", "200000000"};
  static const char form[] =
      "<system><cpu arch=\"ARCH\" vendor=\"GenuineIntel\" familyid=\"FAMILY\" modelid=\"85\" host_hash=\"HASH\">"
      "<pci busid=\"BUSID\" class=\"0x030200\" link_speed=\"SPEED\" link_width=\"WIDTH\">"
      "<gpu dev=\"DEV\" sm=\"SM\" rank=\"RANK\" mlopart=\"PART\"><nvlink target=\"TARGET\" count=\"COUNT\" "
      "tclass=\"TCLASS\"/><c2c bw=\"C2CBW\" count=\"C2CCOUNT\"/></gpu></pci>"
      "<pci busid=\"2\"><nic><net name=\"n\" dev=\"DEV\" speed=\"NETSPEED\"/></nic></pci></cpu></system>";
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
      pccl_text text = {0};
      const char *value = strcmp(values[k], "é<>") == 0 ? "é&lt;&gt;" : values[k];
      size_t length = strlen(names[i]);
      for (const char *c = form; *c != '\0';) {
        bool here = strncmp(c, names[i], length) == 0 && c[-1] == '"' && c[length] == '"';
        pccl_text_add(&text, "%.*s", here ? (int)strlen(value) : 1, here ? value : c);
        c += here ? length : 1;
      }
      polyccl_topology *t = NULL;
      if (polyccl_topology_parse("test.xml", text.data, text.len, &t) != POLYCCL_SUCCESS) {
        fail_msg("%s=\"%s\": %s", names[i], values[k], polyccl_last_error());
      }
      assert_int_equal(t->ranks, 1);
      polyccl_topology_destroy(t);
      pccl_text_free(&text);
    }
  }
}

static void replaced_values_are_said(void **state) {
  (void)state;
  polyccl_topology *t = open_file("nccl_odd_values.xml");
  expect_rate(t, "m0.gpu0", "m0.cpu0", "PCIe", 8 * 16 * 128.0 / 130 / 8);
  static const char *const said[] = {"link_speed=\"Unknown\"",
                                     "link_width=\"255\"",
                                     "link_width=\"0\"",
                                     "count=\"0\"",
                                     "bw=\"0\"",
                                     "speed=\"-1\"",
                                     "speed=\"nan\"",
                                     "0000:0c:00.0",
                                     "leads from a GPU to itself"};
  for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
    if (!assumes(t, said[i])) {
      fail_msg("nothing says %s", said[i]);
    }
  }
  assert_false(assumes(t, "200000000")); /* it is taken as it stands */
  polyccl_topology_destroy(t);
}

/* What was assumed is told once for all elements that are alike, and survives JSON. */
static void assumptions_are_counted_and_kept(void **state) {
  (void)state;
  polyccl_topology *t = read_xml(
      "<system><cpu>\n<pci busid=\"1\"><gpu dev=\"0\" sm=\"80\"/></pci>\n"
      "<pci busid=\"2\"><gpu dev=\"1\" sm=\"80\"/></pci></cpu></system>");
  assert_int_equal(t->assumptions, 2);
  assert_string_equal(t->assumption[0],
                      "a pci element has link_speed=\"\"; 8 GT/s are taken, as NCCL does (line 2 and 1 more)");
  char *json = NULL;
  size_t length;
  FILE *to = open_memstream(&json, &length);
  assert_int_equal(polyccl_topology_write_json(t, to), POLYCCL_SUCCESS);
  fclose(to);
  polyccl_topology *again = NULL;
  assert_int_equal(polyccl_topology_parse("again.json", json, length, &again), POLYCCL_SUCCESS);
  assert_int_equal(again->assumptions, 2);
  assert_string_equal(again->assumption[1], t->assumption[1]);
  free(json);
  polyccl_topology_destroy(t);
  polyccl_topology_destroy(again);
}

/* ---- (b): NVSwitches outside the hosts ---- */

static size_t route_length(const polyccl_topology *t, int src, int dst, bool *through_nic) {
  int32_t links[32];
  size_t count = 0;
  assert_int_equal(polyccl_topology_route(t, src, dst, links, 32, &count), POLYCCL_SUCCESS);
  *through_nic = false;
  for (size_t i = 0; i < count; i++) {
    *through_nic = *through_nic || t->node[t->link[links[i]].to].kind == POLYCCL_NODE_NIC;
  }
  return count;
}

static void expect_domains(const polyccl_topology *t, int ranks, int of_domain) {
  assert_int_equal(t->ranks, ranks);
  assert_int_equal(t->machines, (ranks + of_domain - 1) / of_domain);
  assert_int_equal(count_named(t, "nvswitch"), (ranks + of_domain - 1) / of_domain);
  for (int dst = 1; dst < ranks; dst++) {
    bool through_nic;
    size_t length = route_length(t, 0, dst, &through_nic);
    assert_int_equal(through_nic, dst >= of_domain);
    assert_true(dst >= of_domain || length == 2);
    assert_true(polyccl_topology_linked(t, 0, dst));
  }
}

static void copies_of_a_host_share_the_switch(void **state) {
  (void)state;
  static const struct {
    const char *spec;
    int ranks;
  } cases[] = {{"nccl_gb200.xml", 4},        {"nccl_gb200.xml:1", 4},         {"nccl_gb200.xml:2", 8},
               {"nccl_gb200.xml:18", 72},    {"nccl_gb200.xml:19", 76},       {"nccl_gb200.xml:40", 160},
               {"nccl_gb200_2hosts.xml", 8}, {"nccl_gb200_2hosts.xml:9", 72}, {"nccl_gb200_2hosts.xml:10", 80}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    polyccl_topology *t = open_file(cases[i].spec);
    expect_domains(t, cases[i].ranks, 72);
    polyccl_topology_destroy(t);
  }
}

static void json_keeps_the_domain(void **state) {
  (void)state;
  polyccl_topology *t = open_file("nccl_gb200.xml");
  char path[] = "/tmp/polyccl-domain-XXXXXX", spec[64];
  int file = mkstemp(path);
  assert_true(file >= 0);
  FILE *to = fdopen(file, "w");
  assert_int_equal(polyccl_topology_write_json(t, to), POLYCCL_SUCCESS);
  fclose(to);
  polyccl_topology_destroy(t);
  snprintf(spec, sizeof spec, "%s:19", path);
  t = open_file(spec);
  expect_domains(t, 76, 72);
  polyccl_topology_destroy(t);
  unlink(path);
}

#define HOST(hash, arch, target) \
  "<cpu host_hash=\"" hash "\" arch=\"" arch "\" vendor=\"AuthenticAMD\">" GPU(                                \
      "1", 0, "<nvlink target=\"" target "\" count=\"18\" tclass=\"0x068000\"/>") "<nic><net name=\"n\" "      \
                                                                                  "speed=\"400000\"/></nic></cpu>"

/* Switches that the hosts see are theirs; those of which NCCL sees nothing join the hosts of one file. */
static void hosts_of_one_file(void **state) {
  (void)state;
  polyccl_topology *t = read_xml("<system>" HOST("0xa", "x86_64", "0000:c0:00.0") HOST("0xb", "x86_64", "0000:c0:00.0")
                                     HOST("0x0A", "x86_64", "0000:c0:00.0") "</system>");
  assert_int_equal(t->machines, 2);
  assert_int_equal(count_named(t, "nvswitch"), 2);
  assert_int_equal(find_node(t, "network") >= 0, 1);
  polyccl_topology_destroy(t);
  t = read_xml("<system>" HOST("0xa", "arm64", "fffffff:ffff:ff") HOST("0xb", "arm64", "fffffff:ff:ff.0") "</system>");
  assert_int_equal(t->machines, 1);
  expect_rate(t, "m0.h1.gpu0", "m0.nvswitch", "NVLink", 360);
  assert_true(assumes(t, "one NVLink domain"));
  polyccl_topology_destroy(t);
  t = read_xml("<system>" HOST("0xa", "x86_64", "fffffff:ff:ff.0") "</system>"); /* a virtual machine */
  assert_int_equal(t->node[find_node(t, "m0.nvswitch")].domain, 0);
  polyccl_topology_destroy(t);
}

/* ---- (f), (g) ---- */

static void ranks_share_a_gpu(void **state) {
  (void)state;
  polyccl_topology *t = open_file("nccl_shared_gpus.xml");
  assert_int_equal(t->ranks, 5);
  expect_rate(t, "m0.gpu0", "m0.cpu0", "PCIe", 31.5077);
  expect_rate(t, "m0.gpu0", "m0.gpu1.part0", "NVLink", 40); /* four links of 20 GB/s, halved by the partitions */
  expect_rate(t, "m0.gpu1.part1", "m0.gpu0", "NVLink", 40);
  for (int src = 0; src < t->ranks; src++) {
    for (int dst = 0; dst < t->ranks; dst++) {
      assert_true(src == dst || polyccl_topology_linked(t, src, dst));
    }
  }
  polyccl_topology_destroy(t);
}

static polyccl_result open_vm(const char *gpu, const char *nic, polyccl_topology **t) {
  polyccl_topology_hints hints = POLYCCL_TOPOLOGY_NO_HINTS;
  hints.gpu = gpu;
  hints.nic = nic;
  return polyccl_topology_open_hinted(POLYCCL_SOURCE_DIR "/tests/topology/nccl_vm.xml:2", &hints, t);
}

static void hints_fill_what_the_file_leaves_open(void **state) {
  (void)state;
  polyccl_topology *t = NULL;
  assert_int_equal(open_vm("H100-SXM5", "ConnectX-5", &t), POLYCCL_SUCCESS);
  assert_int_equal(t->ranks, 4);
  assert_string_equal(t->model[0].name, "H100-SXM5");
  expect_rate(t, "1.m0.gpu1", "1.m0.nvswitch", "NVLink", 18 * 20.6);
  expect_rate(t, "0.m0.nic1.0102:00:00.0", "network", "network", 12.5);
  polyccl_topology_destroy(t);
  assert_int_equal(open_vm("MI300X", "80", &t), POLYCCL_SUCCESS);
  expect_rate(t, "0.m0.gpu0", "0.m0.gpu1", "xGMI", 48);
  expect_rate(t, "0.m0.nic0.0101:00:00.0", "network", "network", 10);
  polyccl_topology_destroy(t);
  t = NULL;
  assert_int_equal(open_vm("H1000", NULL, &t), POLYCCL_ERROR_INVALID);
  assert_non_null(strstr(polyccl_last_error(), "H1000"));
  assert_int_equal(open_vm(NULL, "-4", &t), POLYCCL_ERROR_INVALID);
  assert_null(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sockets_by_vendor),
                                     cmocka_unit_test(links_by_generation),
                                     cmocka_unit_test(bus_ids_are_numbers),
                                     cmocka_unit_test(no_value_refuses_a_file),
                                     cmocka_unit_test(replaced_values_are_said),
                                     cmocka_unit_test(assumptions_are_counted_and_kept),
                                     cmocka_unit_test(copies_of_a_host_share_the_switch),
                                     cmocka_unit_test(json_keeps_the_domain),
                                     cmocka_unit_test(hosts_of_one_file),
                                     cmocka_unit_test(ranks_share_a_gpu),
                                     cmocka_unit_test(hints_fill_what_the_file_leaves_open)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
