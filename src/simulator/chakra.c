/* Chakra execution traces of a plan, for ASTRA-sim and other readers of the format: PREFIX.RANK.et per rank, each a
 * metadata message and then nodes, every message with its length as a varint in front.
 *
 * A step becomes up to three nodes of its rank: the receive, the computation (a reduction or a local copy), the send;
 * ids are 3 x (the step's number in its rank) + 0, 1, 2. Each depends on the one before in its step; the first depends
 * on the last node of the thread block's step before and of every step it waits on, each named once (a reader strikes
 * out one of two equal dependencies and waits for ever for the other). A message's tag is its number among those from
 * the same rank to the same rank, counted over all channels. What the format has no word for is left out:
 * credit, micro-batches (a message is whole), thread blocks (but for the order they give). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <polyccl/simulator.h>

#include "base/error.h"
#include "base/file.h"
#include "base/map.h"
#include "base/vec.h"
#include "chakra.pb-c.h"
#include "plan/plan.h"

enum { PART_RECV = 0, PART_COMPUTE, PART_SEND, PARTS, MAX_ATTRIBUTES = 6, NAME = 96 };

/* Tags are written as int32. */
#define PCCL_CHAKRA_MAX_MESSAGES ((uint64_t)INT32_MAX + 1)

typedef struct chakra_writer {
  const polyccl_plan *plan;
  uint64_t bytes, chunks; /* of the larger buffer */
  uint32_t *next_tag[2];  /* by connection: of the next send, of the next receive */
  uint32_t *tag;          /* by step, 2 each: of its receive, of its send */
  FILE *file;
  uint8_t *packed;
  size_t room;
  PCCL_VEC(uint64_t) deps;
} chakra_writer;

static uint64_t payload(const chakra_writer *w, int32_t count) {
  unsigned __int128 product = (unsigned __int128)w->bytes * (uint64_t)count;
  return (uint64_t)((product + w->chunks - 1) / w->chunks);
}

/* ---- tags ---- */

/* Connections of one pair of ranks number their messages one after another. */
static polyccl_result first_tags(const polyccl_plan *plan, const uint32_t *sends, uint32_t *first) {
  pccl_map used = {0};
  polyccl_result result = POLYCCL_SUCCESS;
  for (size_t c = 0; c < plan->connections && result == POLYCCL_SUCCESS; c++) {
    const polyccl_connection *connection = &plan->connection[c];
    bool is_new;
    uint64_t *next =
        pccl_map_put(&used, (uint64_t)connection->src * (uint64_t)plan->ranks + (uint64_t)connection->dst, 0, &is_new);
    if (next == NULL) {
      result = pccl_no_memory("message tags");
      break;
    }
    first[c] = (uint32_t)*next;
    *next += sends[c];
    if (*next > PCCL_CHAKRA_MAX_MESSAGES) {
      result = pccl_fail(POLYCCL_ERROR_LIMIT, "rank %d sends more than 2^31 messages to rank %d", connection->src,
                         connection->dst);
    }
  }
  pccl_map_free(&used);
  return result;
}

static polyccl_result number_messages(chakra_writer *w) {
  const polyccl_plan *plan = w->plan;
  uint32_t *sends = pccl_zeroed(plan->connections, sizeof *sends);
  for (int i = 0; i < 2; i++) {
    w->next_tag[i] = pccl_zeroed(plan->connections, sizeof *w->next_tag[i]);
  }
  w->tag = pccl_zeroed(plan->steps, 2 * sizeof *w->tag);
  polyccl_result result = sends == NULL || w->next_tag[0] == NULL || w->next_tag[1] == NULL || w->tag == NULL
                              ? pccl_no_memory("message tags")
                              : POLYCCL_SUCCESS;
  if (result == POLYCCL_SUCCESS) {
    for (size_t i = 0; i < plan->steps; i++) {
      if (plan->step[i].send >= 0) {
        sends[plan->step[i].send]++;
      }
    }
    result = first_tags(plan, sends, w->next_tag[0]);
  }
  if (result == POLYCCL_SUCCESS) {
    memcpy(w->next_tag[1], w->next_tag[0], plan->connections * sizeof *w->next_tag[1]);
    for (size_t i = 0; i < plan->steps; i++) {
      const polyccl_step *step = &plan->step[i];
      w->tag[2 * i] = step->recv >= 0 ? w->next_tag[1][step->recv]++ : 0;
      w->tag[2 * i + 1] = step->send >= 0 ? w->next_tag[0][step->send]++ : 0;
    }
  }
  free(sends);
  return result;
}

/* ---- messages ---- */

static polyccl_result write_packed(chakra_writer *w, const ProtobufCMessage *message) {
  size_t size = protobuf_c_message_get_packed_size(message);
  if (size > w->room) {
    uint8_t *grown = realloc(w->packed, size + 256);
    if (grown == NULL) {
      return pccl_no_memory("a trace");
    }
    w->packed = grown;
    w->room = size + 256;
  }
  protobuf_c_message_pack(message, w->packed);
  size_t rest = size;
  for (; rest > 0x7f; rest >>= 7) {
    fputc((int)(rest & 0x7f) | 0x80, w->file);
  }
  fputc((int)rest, w->file);
  fwrite(w->packed, 1, size, w->file);
  return POLYCCL_SUCCESS;
}

typedef struct chakra_node {
  Chakra__Node node;
  Chakra__Attribute attribute[MAX_ATTRIBUTES], *pointer[MAX_ATTRIBUTES];
  char name[NAME];
} chakra_node;

static Chakra__Attribute *add_attribute(chakra_node *n, char *name) {
  size_t at = n->node.n_attr++;
  chakra__attribute__init(&n->attribute[at]);
  n->attribute[at].name = name;
  n->pointer[at] = &n->attribute[at];
  return n->pointer[at];
}

/* The types are those that the feeder of mlcommons/chakra reads; ASTRA-sim's converts any integer. */
static void add_i32(chakra_node *n, char *name, int32_t value) {
  Chakra__Attribute *a = add_attribute(n, name);
  a->value_case = CHAKRA__ATTRIBUTE__VALUE_INT32_VAL;
  a->int32_val = value;
}

static void add_i64(chakra_node *n, char *name, uint64_t value) {
  Chakra__Attribute *a = add_attribute(n, name);
  a->value_case = CHAKRA__ATTRIBUTE__VALUE_INT64_VAL;
  a->int64_val = (int64_t)value;
}

static void add_u64(chakra_node *n, char *name, uint64_t value) {
  Chakra__Attribute *a = add_attribute(n, name);
  a->value_case = CHAKRA__ATTRIBUTE__VALUE_UINT64_VAL;
  a->uint64_val = value;
}

static void start_node(chakra_node *n, uint64_t id, Chakra__NodeType type) {
  chakra__node__init(&n->node);
  n->node.id = id;
  n->node.type = type;
  n->node.name = n->name;
  n->node.attr = n->pointer;
  Chakra__Attribute *cpu = add_attribute(n, "is_cpu_op");
  cpu->value_case = CHAKRA__ATTRIBUTE__VALUE_BOOL_VAL;
  cpu->bool_val = false;
}

static void fill_message(chakra_writer *w, chakra_node *n, int32_t index, bool sends) {
  const polyccl_step *step = &w->plan->step[index];
  const polyccl_connection *c = &w->plan->connection[sends ? step->send : step->recv];
  add_i64(n, "comm_size", payload(w, step->count));
  add_i32(n, "comm_src", c->src);
  add_i32(n, "comm_dst", c->dst);
  add_i32(n, "comm_tag", (int32_t)w->tag[2 * (size_t)index + sends]);
}

/* Operations on elements of 4 bytes; bytes read and written. */
static void fill_computation(chakra_writer *w, chakra_node *n, const polyccl_step *step) {
  uint64_t bytes = pccl_op_moves(step->op) ? payload(w, step->count) : 0;
  bool reduces = pccl_ops[step->op].reduces;
  add_i64(n, "num_ops", reduces ? (bytes + 3) / 4 : 1);
  add_u64(n, "tensor_size", (reduces ? 3 : 2) * bytes);
}

static bool has_part(const polyccl_step *step, int part) {
  const pccl_op_traits *op = &pccl_ops[step->op];
  switch (part) {
    case PART_RECV: return op->receives;
    case PART_SEND: return op->sends;
    default: return op->reduces || (!op->receives && !op->sends);
  }
}

static uint64_t last_node(const chakra_writer *w, const polyccl_plan_rank *rank, int32_t step) {
  int part = PART_SEND;
  while (!has_part(&w->plan->step[step], part)) {
    part--;
  }
  int32_t first = w->plan->tb[rank->tb].step;
  return (uint64_t)(step - first) * PARTS + (uint64_t)part;
}

static int compare_ids(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void drop_equal_deps(chakra_writer *w) {
  size_t kept = 0;
  qsort(w->deps.data, w->deps.len, sizeof *w->deps.data, compare_ids);
  for (size_t i = 0; i < w->deps.len; i++) {
    if (kept == 0 || w->deps.data[i] != w->deps.data[kept - 1]) {
      w->deps.data[kept++] = w->deps.data[i];
    }
  }
  w->deps.len = kept;
}

static polyccl_result find_deps(chakra_writer *w, const polyccl_plan_rank *rank, const polyccl_thread_block *tb,
                                int32_t index) {
  const polyccl_step *step = &w->plan->step[index];
  w->deps.len = 0;
  bool kept = index == tb->step || pccl_vec_push(&w->deps, last_node(w, rank, index - 1));
  for (int32_t i = step->wait; i < step->wait + step->waits && kept; i++) {
    const polyccl_thread_block *on = &w->plan->tb[rank->tb + w->plan->wait[i].tb];
    kept = pccl_vec_push(&w->deps, last_node(w, rank, on->step + w->plan->wait[i].step));
  }
  if (!kept) {
    return pccl_no_memory("a trace");
  }
  if (w->deps.len > 1) {
    drop_equal_deps(w);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result write_step(chakra_writer *w, const polyccl_plan_rank *rank, int32_t t, int32_t index) {
  static const Chakra__NodeType types[PARTS] = {CHAKRA__NODE_TYPE__COMM_RECV_NODE, CHAKRA__NODE_TYPE__COMP_NODE,
                                                CHAKRA__NODE_TYPE__COMM_SEND_NODE};
  static const char *const part_names[PARTS] = {"recv", "compute", "send"};
  const polyccl_thread_block *tb = &w->plan->tb[t];
  const polyccl_step *step = &w->plan->step[index];
  PCCL_TRY(find_deps(w, rank, tb, index));
  uint64_t base = (uint64_t)(index - w->plan->tb[rank->tb].step) * PARTS;
  for (int part = 0; part < PARTS; part++) {
    if (!has_part(step, part)) {
      continue;
    }
    chakra_node n = {0};
    start_node(&n, base + (uint64_t)part, types[part]);
    snprintf(n.name, sizeof n.name, "tb %d step %d %s (%s)", t - rank->tb, index - tb->step,
             polyccl_step_op_name((polyccl_step_op)step->op), part_names[part]);
    if (part == PART_COMPUTE) {
      fill_computation(w, &n, step);
    } else {
      fill_message(w, &n, index, part == PART_SEND);
    }
    n.node.n_data_deps = w->deps.len;
    n.node.data_deps = w->deps.data;
    PCCL_TRY(write_packed(w, &n.node.base));
    w->deps.len = 0;
    if (!pccl_vec_push(&w->deps, base + (uint64_t)part)) {
      return pccl_no_memory("a trace");
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result write_rank(chakra_writer *w, int32_t r) {
  const polyccl_plan_rank *rank = &w->plan->rank[r];
  Chakra__Metadata metadata;
  chakra__metadata__init(&metadata);
  metadata.version = "0.0.4";
  PCCL_TRY(write_packed(w, &metadata.base));
  for (int32_t t = rank->tb; t < rank->tb + rank->tbs; t++) {
    for (int32_t i = 0; i < w->plan->tb[t].steps; i++) {
      PCCL_TRY(write_step(w, rank, t, w->plan->tb[t].step + i));
    }
  }
  return POLYCCL_SUCCESS;
}

/* ---- files ---- */

static polyccl_result write_file(chakra_writer *w, int32_t r, const char *path) {
  w->file = fopen(path, "wbe");
  if (w->file == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: cannot write: %s", path, strerror(errno));
  }
  polyccl_result result = write_rank(w, r);
  bool failed = ferror(w->file) != 0;
  failed = fclose(w->file) != 0 || failed;
  return result == POLYCCL_SUCCESS && failed ? pccl_fail_errno("%s: cannot write", path) : result;
}

static polyccl_result write_files(chakra_writer *w, const char *prefix) {
  pccl_text path = {0};
  polyccl_result result = POLYCCL_SUCCESS;
  int32_t r = 0;
  for (; r < w->plan->ranks && result == POLYCCL_SUCCESS; r++) {
    path.len = 0;
    pccl_text_add(&path, "%s.%d.et", prefix, r);
    result = path.failed ? pccl_no_memory("a path") : write_file(w, r, path.data);
  }
  while (result != POLYCCL_SUCCESS && r > 0 && !path.failed) { /* nothing half-written stays behind */
    r--;
    path.len = 0;
    pccl_text_add(&path, "%s.%d.et", prefix, r);
    unlink(path.data);
  }
  pccl_text_free(&path);
  return result;
}

static polyccl_result check_order(const polyccl_plan *plan) {
  PCCL_TRY(pccl_plan_well_formed(plan));
  for (size_t t = 0; t < plan->tbs; t++) {
    const polyccl_thread_block *tb = &plan->tb[t];
    if (t > 0 && tb->step != tb[-1].step + tb[-1].steps) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "the plan's steps are not in the order of its thread blocks");
    }
    const polyccl_plan_rank *rank = &plan->rank[tb->rank];
    for (int32_t i = 0; i < tb->steps; i++) {
      const polyccl_step *step = &plan->step[tb->step + i];
      for (int32_t w = step->wait; w < step->wait + step->waits; w++) {
        const polyccl_wait *wait = &plan->wait[w];
        if (wait->tb >= rank->tbs || wait->step >= plan->tb[rank->tb + wait->tb].steps) {
          return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d waits for a step that does not exist", tb->rank);
        }
      }
    }
  }
  return POLYCCL_SUCCESS;
}

/* Sizes are written as int64; tensor_size is up to three times a message. */
static polyccl_result check_sizes(const chakra_writer *w) {
  for (size_t i = 0; i < w->plan->steps; i++) {
    unsigned __int128 product = (unsigned __int128)w->bytes * (uint64_t)w->plan->step[i].count;
    if (product / w->chunks > INT64_MAX / 3 - 1) {
      return pccl_fail(POLYCCL_ERROR_LIMIT, "a message of %d of %llu chunks of %llu bytes is too large for a trace",
                       w->plan->step[i].count, (unsigned long long)w->chunks, (unsigned long long)w->bytes);
    }
  }
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_plan_write_chakra(const polyccl_plan *plan, uint64_t bytes, const char *prefix) {
  PCCL_TRY(check_order(plan));
  if (prefix == NULL || *prefix == '\0') {
    return pccl_fail(POLYCCL_ERROR_INVALID, "a trace needs a prefix for its files");
  }
  int32_t input, output;
  polyccl_plan_shape(plan, 0, &input, &output);
  chakra_writer w = {.plan = plan, .bytes = bytes, .chunks = (uint64_t)(input > output ? input : output)};
  PCCL_TRY(check_sizes(&w));
  polyccl_result result = number_messages(&w);
  if (result == POLYCCL_SUCCESS) {
    result = write_files(&w, prefix);
  }
  free(w.next_tag[0]);
  free(w.next_tag[1]);
  free(w.tag);
  free(w.packed);
  free(w.deps.data);
  return result;
}
