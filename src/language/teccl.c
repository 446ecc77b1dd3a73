/* Reads TE-CCL's schedules: JSON with "N-Flows", a list of
 *     "Chunk 0 from 13 traveled over 13->12 in epoch 0"     (perhaps "... with volume 0.5 ...", "... via switches 4")
 * and "N-Chunk paths", an object of
 *     "Demand at 5 for chunk 0 from 13 met by epoch 3": the hops of that chunk, or a list of paths of hops.
 * An AllGather is read from its flows. An AllToAll's chunks travel in parts over several paths ("volume"); it is read
 * from the paths, each chunk cut into equal pieces (docs/formats.md). */
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "language/teccl.h"

polyccl_location pccl_teccl_place(const pccl_teccl_reader *r, int32_t line) {
  return (polyccl_location){r->schedule->file, line};
}

polyccl_result pccl_teccl_wrong_sentence(pccl_teccl_reader *r, const char *text, const char *form) {
  if (text == NULL) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_teccl_place(r, r->cursor.line), "expected the string \"%s\"", form);
  }
  return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_teccl_place(r, pccl_line_of(&r->cursor, text)),
                      "\"%.120s\": expected \"%s\"", text, form);
}

/* ---- nodes ---- */

static polyccl_result add_node(pccl_teccl_reader *r, int32_t node) {
  bool is_new;
  if (pccl_map_put(&r->ranks, (uint64_t)node, 0, &is_new) == NULL || (is_new && !pccl_vec_push(&r->nodes, node))) {
    return pccl_no_memory("a schedule");
  }
  return POLYCCL_SUCCESS;
}

static int by_number(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* Ranks are the nodes that want or have chunks; if there are no demands, all nodes. */
static polyccl_result number_nodes(pccl_teccl_reader *r) {
  if (r->nodes.len == 0 || r->nodes.len > POLYCCL_MAX_RANKS) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_teccl_place(r, 0), "%zu ranks are out of range (1 to %d)",
                        r->nodes.len, POLYCCL_MAX_RANKS);
  }
  qsort(r->nodes.data, r->nodes.len, sizeof *r->nodes.data, by_number);
  for (size_t i = 0; i < r->nodes.len; i++) {
    *pccl_map_get(&r->ranks, (uint64_t)r->nodes.data[i]) = i;
  }
  r->schedule->ranks = (int32_t)r->nodes.len;
  return POLYCCL_SUCCESS;
}

int32_t pccl_teccl_rank(const pccl_teccl_reader *r, int32_t node) {
  uint64_t *rank = pccl_map_get(&r->ranks, (uint64_t)node);
  return rank != NULL ? (int32_t)*rank : -1;
}

static polyccl_result source_rank(const pccl_teccl_reader *r, const pccl_flow *f, int32_t *rank) {
  *rank = pccl_teccl_rank(r, f->source);
  return *rank >= 0 ? POLYCCL_SUCCESS
                    : pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_teccl_place(r, f->line),
                                   "node %d has chunks but no demand names it", f->source);
}

/* ---- flows: AllGather, and AllToAll in whole chunks ---- */

static polyccl_result read_flows(pccl_teccl_reader *r, const json_t *list) {
  size_t i;
  json_t *item;
  json_array_foreach(list, i, item) {
    pccl_flow f = {0};
    const char *text = json_string_value(item);
    if (text == NULL || !pccl_teccl_flow(text, &f)) {
      return pccl_teccl_wrong_sentence(r, text, "Chunk C from S traveled over I->J in epoch K");
    }
    f.line = pccl_line_of(&r->cursor, text);
    f.serial = (int32_t)i;
    if (!pccl_vec_push(&r->flows, f)) {
      return pccl_no_memory("a schedule");
    }
  }
  return POLYCCL_SUCCESS;
}

static int by_epoch(const void *a, const void *b) {
  const pccl_flow *x = a, *y = b;
  return x->epoch != y->epoch ? (x->epoch > y->epoch) - (x->epoch < y->epoch)
                              : (x->serial > y->serial) - (x->serial < y->serial);
}

polyccl_result pccl_teccl_add_hop(pccl_teccl_reader *r, pccl_hop hop) {
  return pccl_vec_push(&r->schedule->hop, hop) ? POLYCCL_SUCCESS : pccl_no_memory("a schedule");
}

/* A switch stores nothing, so what it passes on comes from the rank that sent it there. */
static polyccl_result add_flow(pccl_teccl_reader *r, const pccl_flow *f, int32_t root, int32_t chunk) {
  uint64_t what = ((uint64_t)root << 20 | (uint64_t)f->chunk) << 21;
  int32_t from = pccl_teccl_rank(r, f->from), to = pccl_teccl_rank(r, f->to);
  if (from < 0) {
    uint64_t *held = pccl_map_get(&r->held, what | (uint64_t)f->from);
    if (held == NULL) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_teccl_place(r, f->line),
                          "switch %d does not have chunk %d from %d in epoch %d", f->from, f->chunk, f->source,
                          f->epoch);
    }
    from = (int32_t)*held;
  }
  if (to < 0) {
    uint64_t *held = pccl_map_put(&r->held, what | (uint64_t)f->to, 0, NULL);
    if (held == NULL) {
      return pccl_no_memory("a schedule");
    }
    *held = (uint64_t)from;
    return POLYCCL_SUCCESS;
  }
  return pccl_teccl_add_hop(
      r,
      (pccl_hop){.root = root, .chunk = chunk, .size = 1, .src = from, .dst = to, .order = f->epoch, .line = f->line});
}

static polyccl_result add_flows(pccl_teccl_reader *r) {
  pccl_synth *s = r->schedule;
  int32_t max = 0;
  for (size_t i = 0; i < r->flows.len; i++) {
    max = r->flows.data[i].chunk > max ? r->flows.data[i].chunk : max;
  }
  bool exchange = s->collective == POLYCCL_ALLTOALL;
  s->chunks = exchange ? max / s->ranks + 1 : max + 1;
  if (r->flows.len > 0) {
    qsort(r->flows.data, r->flows.len, sizeof *r->flows.data, by_epoch);
  }
  for (size_t i = 0; i < r->flows.len; i++) {
    const pccl_flow *f = &r->flows.data[i];
    int32_t root;
    PCCL_TRY(source_rank(r, f, &root));
    if (fabs(f->volume - 1) > 1e-4) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_teccl_place(r, f->line),
                          "a part of a chunk (volume %g) needs the file's \"Chunk paths\"", f->volume);
    }
    int32_t chunk = exchange ? f->chunk % s->ranks * s->chunks + f->chunk / s->ranks : f->chunk;
    PCCL_TRY(add_flow(r, f, root, chunk));
  }
  return POLYCCL_SUCCESS;
}

/* ---- the file ---- */

/* Finds the member whose key is `name` after a number ("7-Flows"). */
static json_t *find_member(json_t *object, const char *name) {
  const char *key;
  json_t *value;
  json_object_foreach(object, key, value) {
    const char *at = key + strspn(key, "0123456789-");
    if (strcasecmp(at, name) == 0) {
      return value;
    }
  }
  return NULL;
}

static polyccl_result add_demand_nodes(pccl_teccl_reader *r, json_t *paths) {
  const char *key;
  json_t *value;
  json_object_foreach(paths, key, value) {
    pccl_demand d;
    if (!pccl_teccl_demand(key, &d) || !json_is_array(value)) {
      return pccl_teccl_wrong_sentence(r, key, "Demand at D for chunk C from S met by epoch K\": [hops]");
    }
    PCCL_TRY(add_node(r, d.at));
    PCCL_TRY(add_node(r, d.source));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result add_flow_nodes(pccl_teccl_reader *r) {
  for (size_t i = 0; i < r->flows.len; i++) {
    PCCL_TRY(add_node(r, r->flows.data[i].source));
    PCCL_TRY(add_node(r, r->flows.data[i].from));
    PCCL_TRY(add_node(r, r->flows.data[i].to));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result read_root(pccl_teccl_reader *r, json_t *root) {
  json_t *flows = find_member(root, "Flows"), *paths = find_member(root, "Chunk paths");
  if (flows == NULL && paths == NULL) {
    return pccl_kind_refuse(r->schedule->file, PCCL_KIND_JSON, PCCL_USE_PROGRAM);
  }
  if (!json_is_array(flows)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: the list of flows (\"7-Flows\") is missing", r->schedule->file);
  }
  pccl_line_of(&r->cursor, "Flows\"");
  PCCL_TRY(read_flows(r, flows));
  if (paths != NULL) {
    pccl_line_of(&r->cursor, "paths\"");
    PCCL_TRY(add_demand_nodes(r, paths));
  }
  if (r->nodes.len == 0) {
    PCCL_TRY(add_flow_nodes(r));
  }
  PCCL_TRY(number_nodes(r));
  r->schedule->collective = POLYCCL_ALLGATHER;
  for (size_t i = 0; i < r->flows.len; i++) {
    /* Only the solver for AllToAll writes volumes. */
    if (r->flows.data[i].has_volume) {
      r->schedule->collective = POLYCCL_ALLTOALL;
    }
  }
  bool by_paths = r->schedule->collective == POLYCCL_ALLTOALL && json_object_size(paths) > 0;
  return by_paths ? pccl_teccl_add_demands(r, paths) : add_flows(r);
}

polyccl_result pccl_teccl_read(pccl_loader *loader, const char *text, size_t length, pccl_synth *schedule) {
  pccl_teccl_reader r = {.loader = loader, .schedule = schedule, .cursor = {text, text + length, 1}};
  json_t *root;
  PCCL_TRY(pccl_synth_parse_json(schedule->file, text, length, &root));
  polyccl_result result = read_root(&r, root);
  json_decref(root);
  pccl_map_free(&r.ranks);
  pccl_map_free(&r.held);
  pccl_vec_free(&r.flows);
  pccl_vec_free(&r.nodes);
  return result;
}
