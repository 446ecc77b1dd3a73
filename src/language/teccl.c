/* TE-CCL's schedules: JSON with "N-Flows", a list of
 *     "Chunk 0 from 13 traveled over 13->12 in epoch 0"     (perhaps "... with volume 0.5 ...", "... via switches 4")
 * and "N-Chunk paths", an object of
 *     "Demand at 5 for chunk 0 from 13 met by epoch 3": the hops of that chunk, or a list of paths of hops.
 * An AllGather is read from its flows. An AllToAll's chunks travel in parts over several paths ("volume"); it is read
 * from the paths, each chunk cut into equal pieces (docs/formats.md). */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/log.h"
#include "base/map.h"
#include "language/synth.h"
#include "language/teccl.h"

enum {
  EXACT_PIECES = 16, /* tried before volumes are rounded */
  MOST_PIECES = 256
};

typedef struct reader {
  pccl_loader *loader;
  pccl_synth *schedule;
  const char *text, *end;
  const char *cursor; /* for line numbers: strings stand in the text in the order in which they are read */
  int32_t cursor_line;
  pccl_map ranks; /* node -> rank; the others are switches */
  PCCL_VEC(pccl_flow) flows;
  PCCL_VEC(int32_t) nodes;
  pccl_map held; /* (node, source, chunk) of a switch -> the rank from which it came */
  int32_t pieces;
} reader;

static polyccl_result no_memory(void) { return pccl_no_memory("a schedule"); }

static polyccl_location at_line(const reader *r, int32_t line) { return (polyccl_location){r->schedule->file, line}; }

/* The line of the next place where `string` stands in the text, 0 when it cannot be told (escapes). */
static int32_t line_of(reader *r, const char *string) {
  size_t length = strlen(string);
  if (r->cursor == NULL) {
    return 0;
  }
  const char *found = memmem(r->cursor, (size_t)(r->end - r->cursor), string, length);
  if (found == NULL) {
    r->cursor = NULL; /* do not search the rest again and again */
    return 0;
  }
  for (const char *at = r->cursor; at < found; at++) {
    r->cursor_line += *at == '\n' ? 1 : 0;
  }
  r->cursor = found;
  return r->cursor_line;
}

/* `text` NULL: what stands there is no string. */
static polyccl_result wrong_sentence(reader *r, const char *text, const char *form) {
  if (text == NULL) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(r, r->cursor_line), "expected the string \"%s\"", form);
  }
  return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(r, line_of(r, text)), "\"%.120s\": expected \"%s\"", text, form);
}

/* ---- nodes ---- */

static polyccl_result note_node(reader *r, int32_t node) {
  bool is_new;
  if (pccl_map_put(&r->ranks, (uint64_t)node, 0, &is_new) == NULL || (is_new && !pccl_vec_push(&r->nodes, node))) {
    return no_memory();
  }
  return POLYCCL_SUCCESS;
}

static int by_number(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

/* Ranks are the nodes that want chunks or have some; without demands, all. */
static polyccl_result number_nodes(reader *r) {
  if (r->nodes.len == 0 || r->nodes.len > POLYCCL_MAX_RANKS) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(r, 0), "%zu ranks are out of range (1 to %d)", r->nodes.len,
                        POLYCCL_MAX_RANKS);
  }
  qsort(r->nodes.data, r->nodes.len, sizeof *r->nodes.data, by_number);
  for (size_t i = 0; i < r->nodes.len; i++) {
    *pccl_map_get(&r->ranks, (uint64_t)r->nodes.data[i]) = i;
  }
  r->schedule->ranks = (int32_t)r->nodes.len;
  return POLYCCL_SUCCESS;
}

/* -1: a switch. */
static int32_t rank_of(const reader *r, int32_t node) {
  uint64_t *rank = pccl_map_get(&r->ranks, (uint64_t)node);
  return rank != NULL ? (int32_t)*rank : -1;
}

static polyccl_result source_rank(const reader *r, const pccl_flow *f, int32_t *rank) {
  *rank = rank_of(r, f->source);
  return *rank >= 0 ? POLYCCL_SUCCESS
                    : pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(r, f->line),
                                   "node %d has chunks but no demand names it", f->source);
}

/* ---- flows: AllGather, and AllToAll in whole chunks ---- */

static polyccl_result read_flows(reader *r, const json_t *list) {
  size_t i;
  json_t *item;
  json_array_foreach(list, i, item) {
    pccl_flow f = {0};
    const char *text = json_string_value(item);
    if (text == NULL || !pccl_teccl_flow(text, &f)) {
      return wrong_sentence(r, text, "Chunk C from S traveled over I->J in epoch K");
    }
    f.line = line_of(r, text);
    f.serial = (int32_t)i;
    if (!pccl_vec_push(&r->flows, f)) {
      return no_memory();
    }
  }
  return POLYCCL_SUCCESS;
}

static int by_epoch(const void *a, const void *b) {
  const pccl_flow *x = a, *y = b;
  return x->epoch != y->epoch ? (x->epoch > y->epoch) - (x->epoch < y->epoch)
                              : (x->serial > y->serial) - (x->serial < y->serial);
}

static polyccl_result add_hop(reader *r, pccl_hop hop) {
  return pccl_vec_push(&r->schedule->hop, hop) ? POLYCCL_SUCCESS : no_memory();
}

/* A switch keeps nothing: what it passes on comes from the rank that sent it there. */
static polyccl_result add_flow(reader *r, const pccl_flow *f, int32_t root, int32_t chunk) {
  uint64_t what = ((uint64_t)root << 20 | (uint64_t)f->chunk) << 21;
  int32_t from = rank_of(r, f->from), to = rank_of(r, f->to);
  if (from < 0) {
    uint64_t *held = pccl_map_get(&r->held, what | (uint64_t)f->from);
    if (held == NULL) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(r, f->line),
                          "switch %d does not have chunk %d from %d in epoch %d", f->from, f->chunk, f->source,
                          f->epoch);
    }
    from = (int32_t)*held;
  }
  if (to < 0) {
    uint64_t *held = pccl_map_put(&r->held, what | (uint64_t)f->to, 0, NULL);
    if (held == NULL) {
      return no_memory();
    }
    *held = (uint64_t)from;
    return POLYCCL_SUCCESS;
  }
  return add_hop(
      r,
      (pccl_hop){.root = root, .chunk = chunk, .size = 1, .src = from, .dst = to, .order = f->epoch, .line = f->line});
}

static polyccl_result add_flows(reader *r) {
  pccl_synth *s = r->schedule;
  int32_t most = 0;
  for (size_t i = 0; i < r->flows.len; i++) {
    most = r->flows.data[i].chunk > most ? r->flows.data[i].chunk : most;
  }
  bool exchange = s->collective == POLYCCL_ALLTOALL;
  s->chunks = exchange ? most / s->ranks + 1 : most + 1;
  if (r->flows.len > 0) {
    qsort(r->flows.data, r->flows.len, sizeof *r->flows.data, by_epoch);
  }
  for (size_t i = 0; i < r->flows.len; i++) {
    const pccl_flow *f = &r->flows.data[i];
    int32_t root;
    PCCL_TRY(source_rank(r, f, &root));
    if (fabs(f->volume - 1) > 1e-4) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(r, f->line),
                          "a part of a chunk (volume %g) needs the file's \"Chunk paths\"", f->volume);
    }
    int32_t chunk = exchange ? f->chunk % s->ranks * s->chunks + f->chunk / s->ranks : f->chunk;
    PCCL_TRY(add_flow(r, f, root, chunk));
  }
  return POLYCCL_SUCCESS;
}

/* ---- paths: AllToAll in parts of chunks ---- */

typedef struct path {
  int32_t first, hops; /* in flows */
  int32_t share;       /* pieces */
  double volume;
} path;

/* A hop is "text" or [epoch, "text"]. */
static const char *hop_text(const json_t *item) {
  if (json_is_array(item) && json_array_size(item) == 2) {
    item = json_array_get(item, 1);
  }
  return json_string_value(item);
}

static bool is_hop(const json_t *item) {
  return json_is_string(item) || (json_array_size(item) == 2 && json_is_integer(json_array_get(item, 0)));
}

/* Adds the path's hops to flows and checks that they lead from the source to where the demand is. */
static polyccl_result read_path(reader *r, const json_t *list, const pccl_demand *d, path *p) {
  size_t i;
  json_t *item;
  int32_t now = d->source;
  *p = (path){.first = (int32_t)r->flows.len, .volume = 1};
  json_array_foreach(list, i, item) {
    pccl_flow f = {.chunk = d->chunk, .source = d->source};
    const char *text = hop_text(item);
    if (text == NULL || !pccl_teccl_hop(text, &f)) {
      return wrong_sentence(r, text, "I->J with volume V in epoch K");
    }
    f.line = line_of(r, text);
    if (f.from != now || (p->hops > 0 && f.epoch < r->flows.data[r->flows.len - 1].epoch)) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(r, f.line),
                          "the path of chunk %d from %d to %d is at node %d, but goes on from node %d in epoch %d",
                          d->chunk, d->source, d->at, now, f.from, f.epoch);
    }
    now = f.to;
    p->volume = f.volume < p->volume ? f.volume : p->volume;
    p->hops++;
    if (!pccl_vec_push(&r->flows, f)) {
      return no_memory();
    }
  }
  if (now != d->at) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(r, 0), "a path of chunk %d from %d ends at node %d, not %d",
                        d->chunk, d->source, now, d->at);
  }
  return POLYCCL_SUCCESS;
}

/* The path's hops between ranks; those to a switch and from it are one. */
static polyccl_result add_path(reader *r, const path *p, const pccl_demand *d, int32_t chunk) {
  int32_t root = rank_of(r, d->source), from = root;
  for (int32_t i = p->first; i < p->first + p->hops; i++) {
    const pccl_flow *f = &r->flows.data[i];
    int32_t to = rank_of(r, f->to);
    if (to < 0) {
      continue;
    }
    PCCL_TRY(add_hop(r, (pccl_hop){.root = root,
                                   .chunk = chunk,
                                   .size = p->share,
                                   .src = from,
                                   .dst = to,
                                   .order = f->epoch,
                                   .line = f->line}));
    from = to;
  }
  return POLYCCL_SUCCESS;
}

/* Shares of r->pieces by largest remainder. */
static void apportion(const reader *r, path *paths, size_t count) {
  int32_t left = r->pieces;
  for (size_t i = 0; i < count; i++) {
    paths[i].share = (int32_t)(paths[i].volume * r->pieces + 1e-3);
    paths[i].share = paths[i].share < left ? paths[i].share : left;
    left -= paths[i].share;
  }
  for (; left > 0; left--) {
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
      best =
          paths[i].volume * r->pieces - paths[i].share > paths[best].volume * r->pieces - paths[best].share ? i : best;
    }
    paths[best].share++;
  }
}

typedef PCCL_VEC(path) path_list;

/* One demand: its paths, or one path given plainly. */
static polyccl_result read_paths(reader *r, const json_t *value, const pccl_demand *d, path_list *paths) {
  size_t i;
  json_t *item;
  double total = 0;
  path p;
  paths->len = 0;
  r->flows.len = 0;
  bool plain = json_array_size(value) > 0 && is_hop(json_array_get(value, 0));
  if (plain) {
    PCCL_TRY(read_path(r, value, d, &p));
    if (!pccl_vec_push(paths, p)) {
      return no_memory();
    }
    total = p.volume;
  }
  json_array_foreach(plain ? NULL : value, i, item) {
    PCCL_TRY(read_path(r, item, d, &p));
    if (!pccl_vec_push(paths, p)) {
      return no_memory();
    }
    total += p.volume;
  }
  return fabs(total - 1) < 1e-2 ? POLYCCL_SUCCESS
                                : pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(r, 0),
                                               "the paths of chunk %d from %d to %d carry %g of it, not all", d->chunk,
                                               d->source, d->at, total);
}

static bool exact(const path_list *paths, int32_t pieces) {
  for (size_t i = 0; i < paths->len; i++) {
    double shares = paths->data[i].volume * pieces;
    if (fabs(shares - round(shares)) > 1e-4 * pieces) {
      return false;
    }
  }
  return true;
}

/* Calls `use` for each demand with its paths. */
static polyccl_result each_demand(reader *r, json_t *object, bool add) {
  const char *key;
  json_t *value;
  path_list paths = {0};
  polyccl_result result = POLYCCL_SUCCESS;
  pccl_synth *s = r->schedule;
  json_object_foreach(object, key, value) {
    pccl_demand d;
    (void)pccl_teccl_demand(key, &d); /* it was right when nodes were numbered */
    line_of(r, key);
    result = read_paths(r, value, &d, &paths);
    if (result == POLYCCL_SUCCESS && !add) {
      while (r->pieces < EXACT_PIECES && !exact(&paths, r->pieces)) {
        r->pieces++;
      }
    } else if (result == POLYCCL_SUCCESS) {
      int32_t chunk = rank_of(r, d.at) * s->chunks + d.chunk / s->ranks * r->pieces;
      apportion(r, paths.data, paths.len);
      for (size_t i = 0; i < paths.len && result == POLYCCL_SUCCESS; i++) {
        result = paths.data[i].share > 0 ? add_path(r, &paths.data[i], &d, chunk) : POLYCCL_SUCCESS;
        chunk += paths.data[i].share;
      }
    }
    if (result != POLYCCL_SUCCESS) {
      break;
    }
  }
  pccl_vec_free(&paths);
  return result;
}

static polyccl_result add_demands(reader *r, json_t *object) {
  pccl_synth *s = r->schedule;
  const char *cursor = r->cursor;
  int32_t line = r->cursor_line;
  const char *key;
  json_t *value;
  int32_t blocks = 1;
  json_object_foreach(object, key, value) {
    pccl_demand d;
    (void)value;
    (void)pccl_teccl_demand(key, &d);
    if (d.chunk % s->ranks != rank_of(r, d.at)) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(r, line_of(r, key)),
                          "chunk %d from %d is wanted at node %d (rank %d), but in an AllToAll on %d ranks it is meant "
                          "for rank %d",
                          d.chunk, d.source, d.at, rank_of(r, d.at), s->ranks, d.chunk % s->ranks);
    }
    blocks = d.chunk / s->ranks + 1 > blocks ? d.chunk / s->ranks + 1 : blocks;
  }
  int pieces;
  PCCL_TRY(pccl_synth_param_int(r->loader, "pieces", 0, 0, MOST_PIECES,
                                "equal pieces that every chunk is cut into; 0: the fewest, up to 16, that carry the "
                                "schedule's volumes exactly, else 16, with volumes rounded",
                                &pieces));
  r->pieces = pieces > 0 ? pieces : 1;
  if (pieces == 0) {
    PCCL_TRY(each_demand(r, object, false));
    r->cursor = cursor;
    r->cursor_line = line;
  }
  if (r->pieces == EXACT_PIECES && pieces == 0) {
    PCCL_INFO("%s: volumes are rounded to sixteenths of a chunk where they are none", s->file);
  }
  if (blocks > POLYCCL_MAX_CHUNKS / r->pieces) {
    return pccl_fail_at(POLYCCL_ERROR_LIMIT, at_line(r, 0), "%d chunks in %d pieces are too many", blocks, r->pieces);
  }
  s->chunks = blocks * r->pieces;
  return each_demand(r, object, true);
}

/* ---- the file ---- */

/* The member whose key is `name` after its number ("7-Flows"). */
static json_t *member(json_t *object, const char *name) {
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

static polyccl_result note_demands(reader *r, json_t *paths) {
  const char *key;
  json_t *value;
  json_object_foreach(paths, key, value) {
    pccl_demand d;
    if (!pccl_teccl_demand(key, &d) || !json_is_array(value)) {
      return wrong_sentence(r, key, "Demand at D for chunk C from S met by epoch K\": [hops]");
    }
    PCCL_TRY(note_node(r, d.at));
    PCCL_TRY(note_node(r, d.source));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result note_flows(reader *r) {
  for (size_t i = 0; i < r->flows.len; i++) {
    PCCL_TRY(note_node(r, r->flows.data[i].source));
    PCCL_TRY(note_node(r, r->flows.data[i].from));
    PCCL_TRY(note_node(r, r->flows.data[i].to));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result read_root(reader *r, json_t *root) {
  json_t *flows = member(root, "Flows"), *paths = member(root, "Chunk paths");
  if (flows == NULL && paths == NULL) {
    return pccl_kind_refuse(r->schedule->file, PCCL_KIND_JSON, PCCL_USE_PROGRAM);
  }
  if (!json_is_array(flows)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: no list of flows (\"7-Flows\")", r->schedule->file);
  }
  line_of(r, "Flows\"");
  PCCL_TRY(read_flows(r, flows));
  if (paths != NULL) {
    line_of(r, "paths\"");
    PCCL_TRY(note_demands(r, paths));
  }
  if (r->nodes.len == 0) {
    PCCL_TRY(note_flows(r));
  }
  PCCL_TRY(number_nodes(r));
  r->schedule->collective = POLYCCL_ALLGATHER;
  for (size_t i = 0; i < r->flows.len; i++) {
    /* Only AllToAll's solver speaks of volumes. */
    if (r->flows.data[i].has_volume) {
      r->schedule->collective = POLYCCL_ALLTOALL;
    }
  }
  bool by_paths = r->schedule->collective == POLYCCL_ALLTOALL && json_object_size(paths) > 0;
  return by_paths ? add_demands(r, paths) : add_flows(r);
}

polyccl_result pccl_teccl_read(pccl_loader *loader, const char *text, size_t length, pccl_synth *schedule) {
  json_error_t error;
  reader r = {
      .loader = loader, .schedule = schedule, .text = text, .end = text + length, .cursor = text, .cursor_line = 1};
  json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
  if (root == NULL) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(&r, error.line), "not well-formed JSON: %s", error.text);
  }
  polyccl_result result = read_root(&r, root);
  json_decref(root);
  pccl_map_free(&r.ranks);
  pccl_map_free(&r.held);
  pccl_vec_free(&r.flows);
  pccl_vec_free(&r.nodes);
  return result;
}
