/* Chakra traces, read back by a decoder of its own that knows the protocol buffers' wire format and the schema's field
 * numbers only: every message has its two ends with equal sizes, and the nodes of all ranks can run to the end. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <polyccl/compile.h>
#include <polyccl/language.h>
#include <polyccl/simulator.h>

enum { COMP = 4, SEND = 5, RECV = 6, MOST_NODES = 4096, MOST_DEPS = 16, MOST_RANKS = 16 };

typedef struct node {
  uint64_t id, type, deps[MOST_DEPS], size, src, dst, tag, ops, touched;
  int dep_count, cpu;
  char name[96];
  bool done;
} node;

typedef struct reader {
  const uint8_t *at, *end;
} reader;

static uint64_t varint(reader *r) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    assert_true(r->at < r->end && shift < 64);
    uint8_t byte = *r->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) {
      return value;
    }
  }
}

static reader part(reader *r) {
  uint64_t length = varint(r);
  assert_true(length <= (size_t)(r->end - r->at));
  reader made = {r->at, r->at + length};
  r->at += length;
  return made;
}

static void copy_text(reader text, char *to, size_t room) {
  assert_true((size_t)(text.end - text.at) < room);
  memcpy(to, text.at, (size_t)(text.end - text.at));
  to[text.end - text.at] = '\0';
}

/* Fields of an attribute: name 1, uint32 11, uint64 13, bool 27. */
static void read_attribute(reader r, node *n) {
  char name[32] = "";
  uint64_t value = UINT64_MAX;
  while (r.at < r.end) {
    uint64_t key = varint(&r);
    if (key == (1 << 3 | 2)) {
      copy_text(part(&r), name, sizeof name);
    } else {
      bool u64 = strcmp(name, "comm_size") == 0 || strcmp(name, "num_ops") == 0 || strcmp(name, "tensor_size") == 0;
      assert_int_equal(key >> 3, strcmp(name, "is_cpu_op") == 0 ? 27 : u64 ? 13 : 11);
      assert_int_equal(key & 7, 0);
      value = varint(&r);
    }
  }
  assert_true(value != UINT64_MAX);
  const struct {
    const char *name;
    uint64_t *to;
  } known[] = {{"comm_size", &n->size}, {"comm_src", &n->src}, {"comm_dst", &n->dst},
               {"comm_tag", &n->tag},   {"num_ops", &n->ops},  {"tensor_size", &n->touched}};
  if (strcmp(name, "is_cpu_op") == 0) {
    n->cpu = (int)value;
    return;
  }
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (strcmp(name, known[i].name) == 0) {
      *known[i].to = value;
      return;
    }
  }
  fail_msg("unknown attribute \"%s\"", name);
}

/* Fields of a node: id 1, name 2, type 3, data_deps 5 (packed), attr 10. */
static node read_node(reader r) {
  node n = {.cpu = -1};
  while (r.at < r.end) {
    uint64_t key = varint(&r);
    switch (key) {
      case 1 << 3 | 0: n.id = varint(&r); break;
      case 2 << 3 | 2: copy_text(part(&r), n.name, sizeof n.name); break;
      case 3 << 3 | 0: n.type = varint(&r); break;
      case 5 << 3 | 2:
        for (reader deps = part(&r); deps.at < deps.end;) {
          assert_in_range(n.dep_count, 0, MOST_DEPS - 1);
          n.deps[n.dep_count++] = varint(&deps);
        }
        break;
      case 10 << 3 | 2: read_attribute(part(&r), &n); break;
      default: fail_msg("unknown field %" PRIu64, key);
    }
  }
  assert_int_equal(n.cpu, 0);
  return n;
}

static int read_file(const char *path, node *nodes) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  static uint8_t bytes[1 << 20];
  size_t length = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_true(length > 0 && length < sizeof bytes);
  reader r = {bytes, bytes + length};
  reader metadata = part(&r);
  char version[16];
  assert_int_equal(varint(&metadata), 1 << 3 | 2);
  copy_text(part(&metadata), version, sizeof version);
  assert_string_equal(version, "0.0.4");
  int count = 0;
  while (r.at < r.end) {
    assert_in_range(count, 0, MOST_NODES - 1);
    nodes[count++] = read_node(part(&r));
  }
  return count;
}

typedef struct traces {
  node *nodes[MOST_RANKS];
  int count[MOST_RANKS], ranks;
} traces;

static node *find(const traces *t, int rank, uint64_t id) {
  for (int i = 0; i < t->count[rank]; i++) {
    if (t->nodes[rank][i].id == id) {
      return &t->nodes[rank][i];
    }
  }
  fail_msg("rank %d has no node %" PRIu64, rank, id);
  return NULL;
}

/* The other end of a message; exactly one. */
static node *other_end(const traces *t, const node *n) {
  int rank = (int)(n->type == SEND ? n->dst : n->src), found = 0;
  node *other = NULL;
  for (int i = 0; i < t->count[rank]; i++) {
    node *m = &t->nodes[rank][i];
    if (m->type == (n->type == SEND ? RECV : SEND) && m->src == n->src && m->dst == n->dst && m->tag == n->tag) {
      other = m;
      found++;
    }
  }
  assert_int_equal(found, 1);
  return other;
}

static bool ready(const traces *t, int rank, const node *n) {
  for (int d = 0; d < n->dep_count; d++) {
    if (!find(t, rank, n->deps[d])->done) {
      return false;
    }
  }
  return n->type != RECV || other_end(t, n)->done;
}

static void run_to_the_end(const traces *t) {
  int left = 0;
  for (int r = 0; r < t->ranks; r++) {
    left += t->count[r];
  }
  for (bool moved = true; moved && left > 0;) {
    moved = false;
    for (int r = 0; r < t->ranks; r++) {
      for (int i = 0; i < t->count[r]; i++) {
        node *n = &t->nodes[r][i];
        if (!n->done && ready(t, r, n)) {
          n->done = moved = true;
          left--;
        }
      }
    }
  }
  assert_int_equal(left, 0);
}

static uint64_t export_and_check(const char *program, const char *ranks, uint64_t bytes, int *sends) {
  char path[512], prefix[64], file[128];
  snprintf(path, sizeof path, POLYCCL_SOURCE_DIR "/algorithms/%s", program);
  snprintf(prefix, sizeof prefix, "chakra_test_%ld", (long)getpid());
  polyccl_param param = {"ranks", ranks};
  polyccl_program *built = NULL;
  polyccl_plan *plan = NULL;
  assert_int_equal(polyccl_program_load(path, &param, 1, &built), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_compile(built, NULL, &plan), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_plan_write_chakra(plan, bytes, prefix), POLYCCL_SUCCESS);
  traces t = {.ranks = plan->ranks};
  uint64_t carried = 0;
  *sends = 0;
  for (int r = 0; r < t.ranks; r++) {
    t.nodes[r] = calloc(MOST_NODES, sizeof *t.nodes[r]);
    snprintf(file, sizeof file, "%s.%d.et", prefix, r);
    t.count[r] = read_file(file, t.nodes[r]);
    unlink(file);
  }
  for (int r = 0; r < t.ranks; r++) {
    for (int i = 0; i < t.count[r]; i++) {
      const node *n = &t.nodes[r][i];
      assert_ptr_equal(find(&t, r, n->id), n); /* ids are unique */
      assert_true(n->name[0] != '\0');
      if (n->type == SEND || n->type == RECV) {
        assert_int_equal(n->type == SEND ? n->src : n->dst, r);
        assert_int_equal(other_end(&t, n)->size, n->size);
        assert_true(n->size > 0);
        carried += n->type == SEND ? n->size : 0;
        *sends += n->type == SEND;
      } else {
        assert_int_equal(n->type, COMP);
      }
    }
  }
  run_to_the_end(&t);
  for (int r = 0; r < t.ranks; r++) {
    free(t.nodes[r]);
  }
  polyccl_plan_destroy(plan);
  polyccl_program_destroy(built);
  return carried;
}

static void traces_read_back(void **state) {
  (void)state;
  int sends;
  /* A ring AllReduce sends 2 (n - 1) times the data in all, in messages of an n-th. */
  assert_int_equal(export_and_check("allreduce_ring.lua", "4", 4000, &sends), 2 * 3 * 4000);
  assert_int_equal(sends, 2 * 3 * 4);
  assert_int_equal(export_and_check("alltoall.lua", "5", 5 * 300, &sends), 5 * 4 * 300);
  assert_int_equal(sends, 5 * 4);
  export_and_check("allreduce_halving_doubling.lua", "8", 1000003, &sends);
  export_and_check("allreduce_allpairs.lua", "3", 7, &sends);
}

static void bad_input_leaves_nothing(void **state) {
  (void)state;
  static const char text[] =
      "polyccl-plan 1\nname \"s\"\ncollective sendrecv\nranks 2\nchunks 1\npeer 1\nrank 0 scratch 0\ntb\n"
      "send i0 x1 to 1.0\nrank 1 scratch 0\ntb\nrecv o0 x1 from 0.0\n";
  polyccl_plan *plan = NULL;
  assert_int_equal(polyccl_plan_parse("s", text, strlen(text), &plan), POLYCCL_SUCCESS);
  assert_int_equal(polyccl_plan_write_chakra(plan, 8, ""), POLYCCL_ERROR_INVALID);
  assert_int_equal(polyccl_plan_write_chakra(plan, 8, "/no/such/folder/x"), POLYCCL_ERROR_INVALID);
  assert_non_null(strstr(polyccl_last_error(), "/no/such/folder/x.0.et"));
  polyccl_plan_destroy(plan);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(traces_read_back),
      cmocka_unit_test(bad_input_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
