/* TE-CCL's AllToAll: each demand lists the paths of a chunk and the share of it that each path carries. Chunks are cut
 * into equal pieces, and every path gets as many of them as its share asks for. */
#include <math.h>

#include "base/error.h"
#include "base/log.h"
#include "language/teccl.h"

enum {
  EXACT_PIECES = 16, /* tried before volumes are rounded */
  MAX_PIECES = 256
};

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
static polyccl_result read_path(pccl_teccl_reader *r, const json_t *list, const pccl_demand *d, path *p) {
  size_t i;
  json_t *item;
  int32_t now = d->source;
  *p = (path){.first = (int32_t)r->flows.len, .volume = 1};
  json_array_foreach(list, i, item) {
    pccl_flow f = {.chunk = d->chunk, .source = d->source};
    const char *text = hop_text(item);
    if (text == NULL || !pccl_teccl_hop(text, &f)) {
      return pccl_teccl_wrong_sentence(r, text, "I->J with volume V in epoch K");
    }
    f.line = pccl_line_of(&r->cursor, text);
    if (f.from != now || (p->hops > 0 && f.epoch < r->flows.data[r->flows.len - 1].epoch)) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_teccl_place(r, f.line),
                          "the path of chunk %d from %d to %d is at node %d, but goes on from node %d in epoch %d",
                          d->chunk, d->source, d->at, now, f.from, f.epoch);
    }
    now = f.to;
    p->volume = f.volume < p->volume ? f.volume : p->volume;
    p->hops++;
    if (!pccl_vec_push(&r->flows, f)) {
      return pccl_no_memory("a schedule");
    }
  }
  if (now != d->at) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_teccl_place(r, 0),
                        "a path of chunk %d from %d ends at node %d, not %d", d->chunk, d->source, now, d->at);
  }
  return POLYCCL_SUCCESS;
}

/* Adds the hops of the path between ranks; a hop to a switch and the one from it are one hop. */
static polyccl_result add_path(pccl_teccl_reader *r, const path *p, const pccl_demand *d, int32_t chunk) {
  int32_t root = pccl_teccl_rank(r, d->source), from = root;
  for (int32_t i = p->first; i < p->first + p->hops; i++) {
    const pccl_flow *f = &r->flows.data[i];
    int32_t to = pccl_teccl_rank(r, f->to);
    if (to < 0) {
      continue;
    }
    PCCL_TRY(pccl_teccl_add_hop(r, (pccl_hop){.root = root,
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

/* Distributes r->pieces over the paths by the method of largest remainders. */
static void apportion(const pccl_teccl_reader *r, path *paths, size_t count) {
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

/* Reads the paths of one demand: a list of paths, or one path without a list around it. */
static polyccl_result read_paths(pccl_teccl_reader *r, const json_t *value, const pccl_demand *d, path_list *paths) {
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
      return pccl_no_memory("a schedule");
    }
    total = p.volume;
  }
  json_array_foreach(plain ? NULL : value, i, item) {
    PCCL_TRY(read_path(r, item, d, &p));
    if (!pccl_vec_push(paths, p)) {
      return pccl_no_memory("a schedule");
    }
    total += p.volume;
  }
  return fabs(total - 1) < 1e-2 ? POLYCCL_SUCCESS
                                : pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_teccl_place(r, 0),
                                               "the paths of chunk %d from %d to %d carry %g of it, not all", d->chunk,
                                               d->source, d->at, total);
}

static bool is_exact(const path_list *paths, int32_t pieces) {
  for (size_t i = 0; i < paths->len; i++) {
    double shares = paths->data[i].volume * pieces;
    if (fabs(shares - round(shares)) > 1e-4 * pieces) {
      return false;
    }
  }
  return true;
}

/* Goes through all demands. `add` false: finds the smallest r->pieces that carries all volumes exactly, up to
 * EXACT_PIECES. `add` true: adds the hops. */
static polyccl_result each_demand(pccl_teccl_reader *r, json_t *object, bool add) {
  const char *key;
  json_t *value;
  path_list paths = {0};
  polyccl_result result = POLYCCL_SUCCESS;
  pccl_synth *s = r->schedule;
  json_object_foreach(object, key, value) {
    pccl_demand d;
    (void)pccl_teccl_demand(key, &d); /* it was checked when nodes were numbered */
    pccl_line_of(&r->cursor, key);
    result = read_paths(r, value, &d, &paths);
    if (result == POLYCCL_SUCCESS && !add) {
      while (r->pieces < EXACT_PIECES && !is_exact(&paths, r->pieces)) {
        r->pieces++;
      }
    } else if (result == POLYCCL_SUCCESS) {
      int32_t chunk = pccl_teccl_rank(r, d.at) * s->chunks + d.chunk / s->ranks * r->pieces;
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

polyccl_result pccl_teccl_add_demands(pccl_teccl_reader *r, json_t *object) {
  pccl_synth *s = r->schedule;
  pccl_line_cursor start = r->cursor;
  const char *key;
  json_t *value;
  int32_t blocks = 1;
  json_object_foreach(object, key, value) {
    pccl_demand d;
    (void)value;
    (void)pccl_teccl_demand(key, &d);
    if (d.chunk % s->ranks != pccl_teccl_rank(r, d.at)) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_teccl_place(r, pccl_line_of(&r->cursor, key)),
                          "chunk %d from %d is wanted at node %d (rank %d), but in an AllToAll on %d ranks it is meant "
                          "for rank %d",
                          d.chunk, d.source, d.at, pccl_teccl_rank(r, d.at), s->ranks, d.chunk % s->ranks);
    }
    blocks = d.chunk / s->ranks + 1 > blocks ? d.chunk / s->ranks + 1 : blocks;
  }
  int pieces;
  PCCL_TRY(pccl_synth_param_int(r->loader, "pieces", 0, 0, MAX_PIECES,
                                "equal pieces that every chunk is cut into; 0: the fewest, up to 16, that carry the "
                                "schedule's volumes exactly, else 16, with volumes rounded",
                                &pieces));
  r->pieces = pieces > 0 ? pieces : 1;
  if (pieces == 0) {
    PCCL_TRY(each_demand(r, object, false));
    r->cursor = start;
  }
  if (r->pieces == EXACT_PIECES && pieces == 0) {
    PCCL_INFO("%s: volumes are rounded to multiples of 1/16 of a chunk", s->file);
  }
  if (blocks > POLYCCL_MAX_CHUNKS / r->pieces) {
    return pccl_fail_at(POLYCCL_ERROR_LIMIT, pccl_teccl_place(r, 0), "%d chunks in %d pieces are too many", blocks,
                        r->pieces);
  }
  s->chunks = blocks * r->pieces;
  return each_demand(r, object, true);
}
